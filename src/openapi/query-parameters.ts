import {
  describeOperators,
  MOST_SORT_KEYS,
  MOST_VALUES,
  operatorsOf,
  type QueryProperty,
  type QueryRules,
  type QueryType,
} from '../actions/query-rules.ts'
import type { JsonObject, JsonValue } from '../core/json.ts'
import { objectOf } from './json-schema.ts'

const VALUES: Readonly<Record<QueryType, JsonObject>> = {
  string: { type: 'string', maxLength: 256 },
  number: { type: 'number' },
  boolean: { type: 'boolean' },
  'date-time': { type: 'string', format: 'date-time' },
}

/**
 * The parameters by which a list is filtered, ordered and counted. One parameter stands for all conditions on a property: a
 * value or several for equality, an object for others, each of its members in brackets (deepObject).
 */
export function describeFilters(rules: QueryRules): readonly JsonValue[] {
  const filters = [...rules.properties.values()]
    .filter(({ isSensitive }) => !isSensitive)
    .map((property): JsonValue => {
      const { name, type } = property
      return {
        name,
        in: 'query',
        description: `A value, or several for any of them; other conditions in brackets. ${describeOperators(property)}`,
        style: 'deepObject',
        explode: true,
        schema: { anyOf: [VALUES[type], listOf(type), describeConditions(property)] },
      }
    })
  return [...filters, ...describeOthers(rules)]
}

/** The same as the properties of a form, for QUERY. */
export function describeQueryForm(rules: QueryRules): JsonObject {
  const properties: Record<string, JsonValue> = {}
  for (const property of rules.properties.values()) {
    properties[property.name] = listOf(property.type)
    for (const operator of operatorsOf(property.type)) {
      if (operator !== '') properties[`${property.name}[${operator}]`] = describeOperand(property.type, operator)
    }
  }
  properties['limit'] = { type: 'integer', minimum: 1, maximum: 999_999_999 }
  properties['after'] = { type: 'string' }
  if (rules.properties.size > 0) properties['sort'] = describeSort(rules)
  if (rules.allowsCount) properties['count'] = { type: 'boolean' }
  if (rules.allowsDeleted) properties['deleted'] = { type: 'boolean' }
  return { ...objectOf(properties, []), additionalProperties: false }
}

function describeOthers(rules: QueryRules): readonly JsonValue[] {
  const others: JsonValue[] = []
  if (rules.properties.size > 0) {
    others.push({
      name: 'sort',
      in: 'query',
      description: 'One or two properties in the order of their weight; `-` before a name descends. Ties go by id.',
      schema: describeSort(rules),
    })
  }
  if (rules.allowsCount) {
    others.push({
      name: 'count',
      in: 'query',
      description: 'Whether X-Total-Count says how many items match.',
      schema: { type: 'boolean' },
    })
  }
  return others
}

function describeSort({ properties }: QueryRules): JsonObject {
  const names = [...properties.keys()].map((name) => name.replaceAll(/[.$]/g, '\\$&')).join('|')
  return { type: 'string', pattern: `^-?(?:${names})(?:,-?(?:${names})){0,${MOST_SORT_KEYS - 1}}$` }
}

function describeConditions({ type }: QueryProperty): JsonObject {
  const operators = operatorsOf(type).filter((operator) => operator !== '')
  const operands = operators.map((operator) => [operator, describeOperand(type, operator)])
  return { ...objectOf(Object.fromEntries(operands), []), additionalProperties: false }
}

function describeOperand(type: QueryType, operator: string): JsonObject {
  if (operator === 'ne') return listOf(type)
  return operator === 'exists' ? { type: 'boolean' } : VALUES[type]
}

function listOf(type: QueryType): JsonObject {
  return { type: 'array', items: VALUES[type], minItems: 1, maxItems: MOST_VALUES }
}
