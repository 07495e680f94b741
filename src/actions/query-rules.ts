import { QUERY_TYPES, type QueryOperator, type QueryType } from './query-types.ts'

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
/** The most properties of an index, those of the scope included. */
export const MOST_PROPERTIES = 16

/** The operators of a type. */
export function operatorsOf(type: QueryType): readonly QueryOperator[] {
  return QUERY_TYPES[type].operators
}

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
  return `The conditions on ${name} are: ${operatorsOf(type)
    .map((operator) => nameParameter(name, operator))
    .join(', ')}.`
}
