import type { JsonValue } from '../core/json.ts'
import { parseDateTime } from '../protocol/dates.ts'
import { type IndexedValue, isIndexedText, LONGEST_TEXT } from '../stores/lists.ts'

/** A property by which lists can be filtered and ordered. */
export interface QueryProperty {
  readonly name: string
  readonly type: QueryType
  /** Reference tokens of the JSON Pointer to its value. */
  readonly pointer: readonly string[]
  /** Whether it must not be in a request target. */
  readonly isSensitive: boolean
}

/** What the query of a list may say. */
export interface QueryRules {
  readonly properties: ReadonlyMap<string, QueryProperty>
  readonly allowsCount: boolean
  /** Whether `deleted` has a meaning. */
  readonly allowsDeleted: boolean
}

/** The parameters that are not filters. */
export const RESERVED_PARAMETERS: readonly string[] = ['limit', 'after', 'sort', 'count', 'deleted']

export const MOST_VALUES = 8
export const MOST_CONDITIONS = 4
export const MOST_SORT_KEYS = 2
/** The most parameters of a valid query. Among one more there is always a fault, so that no further ones need be read. */
export const MOST_PARAMETERS: number = MOST_CONDITIONS * MOST_VALUES + RESERVED_PARAMETERS.length
/** The most properties of an index, those of the scope included. */
export const MOST_PROPERTIES = 16

/** A parameter as it is written: `status`, `dueAt[gte]`. */
export function nameParameter(property: string, operator: QueryOperator): string {
  return operator === '' ? property : `${property}[${operator}]`
}

/** The sentence that lists the parameters of a collection. */
export function describeParameters({ properties, allowsCount, allowsDeleted }: QueryRules): string {
  const names = [
    ...properties.keys(),
    'limit',
    'after',
    ...(properties.size > 0 ? ['sort'] : []),
    ...(allowsCount ? ['count'] : []),
    ...(allowsDeleted ? ['deleted'] : []),
  ]
  return `The parameters are: ${names.join(', ')}.`
}

/** The sentence that lists the operators of a property. */
export function describeOperators({ name, type }: QueryProperty): string {
  const names = QUERY_TYPES[type].operators.map((operator) => nameParameter(name, operator))
  return `The conditions on ${name} are: ${names.join(', ')}.`
}

/** The type of a property by which lists are filtered and ordered. */
export type QueryType = 'string' | 'number' | 'boolean' | 'date-time'

/** Operators of a filter; the empty one is equality. */
export type QueryOperator = '' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte' | 'exists' | 'prefix'

/** What a type of properties means. */
interface TypeFacts {
  readonly operators: readonly QueryOperator[]
  /** What a value is, for messages. */
  readonly text: string
  /** About the most characters of a value in a cursor. */
  readonly longest: number
  /** Reads a value in a query. @returns `undefined` for a value of another type */
  readonly parse: (text: string) => IndexedValue | undefined
  /** Reads a value in JSON. @returns `undefined` for a value of another type, or one that cannot be indexed */
  readonly take: (value: JsonValue) => IndexedValue | undefined
}

const ORDERED: readonly QueryOperator[] = ['', 'ne', 'gt', 'gte', 'lt', 'lte', 'exists']
/** A number as JSON writes it (RFC 8259 §6). */
export const JSON_NUMBER: RegExp = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

function takeText(value: JsonValue): IndexedValue | undefined {
  return typeof value === 'string' && isIndexedText(value) ? value : undefined
}

/** Beyond 2^53 one double stands for several integers (RFC 8259 §6). */
function takeNumber(value: JsonValue): IndexedValue | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : value === 0 ? 0 : value
}

function takeDateTime(value: JsonValue): IndexedValue | undefined {
  return typeof value === 'string' ? parseDateTime(value) : undefined
}

/** The types, and what each means. */
export const QUERY_TYPES: Readonly<Record<QueryType, TypeFacts>> = {
  string: {
    operators: [...ORDERED, 'prefix'],
    text: `text of at most ${LONGEST_TEXT} bytes of UTF-8, without U+0000`,
    longest: LONGEST_TEXT + 3,
    parse: takeText,
    take: takeText,
  },
  number: {
    operators: ORDERED,
    text: 'a number, as JSON writes it, with no integer beyond 2^53',
    longest: 25,
    parse: (text) => (JSON_NUMBER.test(text) ? takeNumber(Number(text)) : undefined),
    take: takeNumber,
  },
  boolean: {
    operators: ['', 'ne', 'exists'],
    text: 'true or false',
    longest: 6,
    parse: parseBoolean,
    take: (value) => (typeof value === 'boolean' ? value : undefined),
  },
  'date-time': {
    operators: ORDERED,
    text: 'a date-time of RFC 3339 such as 2026-01-31T12:00:00Z (in a query, a plus sign is written %2B)',
    longest: 33,
    parse: takeDateTime,
    take: takeDateTime,
  },
}

export function parseBoolean(text: string): boolean | undefined {
  return text === 'true' ? true : text === 'false' ? false : undefined
}

/** The value of a property of the scope, which has any of the types that JSON and an index have. */
export function takeAny(value: JsonValue): IndexedValue | undefined {
  return typeof value === 'boolean' ? value : (takeText(value) ?? takeNumber(value))
}
