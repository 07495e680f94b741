import { HttpError, type ParameterError } from '../core/errors.ts'
import type { QueryParameter } from '../protocol/query-text.ts'
import type { Condition, IndexedValue, OrderKey } from '../stores/lists.ts'
import {
  describeOperators,
  describeParameters,
  MOST_CONDITIONS,
  MOST_SORT_KEYS,
  MOST_VALUES,
  nameParameter,
  parseBoolean,
  QUERY_TYPES,
  type QueryOperator,
  type QueryProperty,
  type QueryRules,
  RESERVED_PARAMETERS,
} from './query-rules.ts'

/** A query of a list that its definition allows. */
export interface ParsedQuery {
  readonly where: readonly Condition[]
  readonly orderBy: readonly OrderKey[]
  readonly limit: number | undefined
  /** The cursor, as it was sent. */
  readonly after: string | undefined
  readonly count: boolean
  /** The properties that it uses, by whichever parameter. */
  readonly properties: readonly QueryProperty[]
}

/** Faults that an answer lists, and characters of a name in it: an answer is not to outgrow its request. */
const MAX_ERRORS = 20
const MAX_NAME = 100

const PARAMETER = /^([^[\]]+)\[([^[\]]*)\]$/

/** The values of one parameter. */
interface Filter {
  readonly property: QueryProperty
  readonly operator: QueryOperator
  readonly values: string[]
}

/**
 * Reads the query of a list. Nothing is left out silently: a filter without effect would show too much.
 * @throws HttpError 400 that names each parameter at fault, and lists what there is
 */
export function parseQuery(parameters: readonly QueryParameter[], rules: QueryRules): ParsedQuery {
  const errors: ParameterError[] = []
  const fail = (parameter: string, detail: string): void => {
    const name = parameter.slice(0, MAX_NAME)
    if (errors.length < MAX_ERRORS && !errors.some((error) => error.parameter === name)) {
      errors.push({ parameter: name, detail })
    }
  }
  const filters = new Map<string, Filter>()
  const others = new Map<string, string>()
  for (const { name, value, isMalformed } of parameters) {
    if (isMalformed) fail(name, 'The parameter is not percent-encoded UTF-8.')
    else if (isReserved(name, rules)) {
      if (others.has(name)) fail(name, `${name} is given once.`)
      others.set(name, value)
    } else addFilter(filters, name, value, rules, fail)
  }
  if (filters.size > MOST_CONDITIONS) {
    fail([...filters.keys()][MOST_CONDITIONS]!, `A query has at most ${MOST_CONDITIONS} conditions.`)
  }
  const where = [...filters.values()].flatMap((filter) => parseFilter(filter, fail) ?? [])
  const orderBy = parseSort(others.get('sort'), rules, fail)
  const limit = parseLimit(others.get('limit'), fail)
  // Checked here; what it asks for is decided before, by the target.
  parseFlag('deleted', others.get('deleted'), fail)
  const parsed: ParsedQuery = {
    where,
    orderBy,
    limit,
    after: others.get('after'),
    count: parseFlag('count', others.get('count'), fail),
    properties: [...where, ...orderBy].map(({ property }) => rules.properties.get(property)!),
  }
  refuseParameters(errors)
  return parsed
}

/** @throws HttpError 400, where there is any error */
export function refuseParameters(errors: readonly ParameterError[]): void {
  if (errors.length === 0) return
  const detail = errors.length === 1 ? errors[0]!.detail : 'The query has parameters that cannot be used here.'
  throw new HttpError(400, 'ERR_MALFORMED_QUERY', { detail, errors })
}

type Fail = (parameter: string, detail: string) => void

function isReserved(name: string, { allowsCount, allowsDeleted, properties }: QueryRules): boolean {
  if (name === 'count') return allowsCount
  if (name === 'deleted') return allowsDeleted
  if (name === 'sort') return properties.size > 0
  return RESERVED_PARAMETERS.includes(name)
}

function addFilter(filters: Map<string, Filter>, name: string, value: string, rules: QueryRules, fail: Fail): void {
  const known = filters.get(name)
  if (known === undefined) {
    const match = PARAMETER.exec(name)
    const property = rules.properties.get(match === null ? name : match[1]!)
    if (property === undefined) {
      return fail(
        name,
        `The parameter ${JSON.stringify(name.slice(0, MAX_NAME))} is not defined for this list. ${describeParameters(rules)}`,
      )
    }
    const operator = match?.[2] ?? ''
    const isKnown = (QUERY_TYPES[property.type].operators as readonly string[]).includes(operator)
    if (!isKnown || (match !== null && operator === '')) return fail(name, describeOperators(property))
    filters.set(name, { property, operator: operator as QueryOperator, values: [value] })
  } else if (known.operator !== '' && known.operator !== 'ne') fail(name, `${name} is given once.`)
  else if (known.values.length === MOST_VALUES) fail(name, `${name} has at most ${MOST_VALUES} values.`)
  else known.values.push(value)
}

function parseFilter({ property: { name, type }, operator, values }: Filter, fail: Fail): Condition | undefined {
  const parameter = nameParameter(name, operator)
  if (operator === 'exists') {
    const value = parseBoolean(values[0]!)
    if (value === undefined) fail(parameter, `${parameter} is true or false.`)
    return value === undefined ? undefined : { property: name, operator, value }
  }
  const parsed = values.map((text) => QUERY_TYPES[type].parse(text))
  const isKnown = (value: IndexedValue | undefined): value is IndexedValue => value !== undefined
  if (!parsed.every(isKnown)) {
    fail(parameter, `${parameter} is ${QUERY_TYPES[type].text}.`)
    return undefined
  }
  switch (operator) {
    case '':
      return { property: name, operator: 'in', values: [...new Set(parsed)] }
    case 'ne':
      return { property: name, operator: 'notIn', values: [...new Set(parsed)] }
    case 'prefix':
      return { property: name, operator, value: parsed[0] as string }
    default:
      return { property: name, operator, value: parsed[0]! }
  }
}

function parseSort(text: string | undefined, { properties }: QueryRules, fail: Fail): readonly OrderKey[] {
  if (text === undefined) return []
  const keys = text.split(',', MOST_SORT_KEYS + 1).map((key): OrderKey => {
    const isDescending = key.startsWith('-')
    return { property: isDescending ? key.slice(1) : key, direction: isDescending ? 'descending' : 'ascending' }
  })
  const names = keys.map(({ property }) => property)
  const isKnown = names.every((name) => properties.has(name))
  if (keys.length > MOST_SORT_KEYS || new Set(names).size < names.length || !isKnown) {
    const all = [...properties.keys()].join(', ')
    fail(
      'sort',
      `sort is one or two different properties with a comma between, each with "-" before it to descend: ${all}.`,
    )
    return []
  }
  return keys
}

export function parseLimit(text: string | undefined, fail: Fail): number | undefined {
  if (text === undefined) return undefined
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  fail('limit', 'limit is a positive integer.')
  return undefined
}

function parseFlag(name: string, text: string | undefined, fail: Fail): boolean {
  const value = text === undefined ? false : parseBoolean(text)
  if (value === undefined) fail(name, `${name} is true or false.`)
  return value === true
}
