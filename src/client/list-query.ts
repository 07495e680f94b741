import { isJsonObject, type JsonValue } from '../core/json.ts'
import type { AnyTraits, Trait } from './definition-paths.ts'

type Scalar = string | number | boolean | Date
/** Query parameters of a list whose definition is not known. */
export type AnyQuery = Readonly<
  Record<string, Scalar | readonly Scalar[] | Readonly<Record<string, Scalar | readonly Scalar[]>> | undefined>
>

interface Bounds<Value> {
  readonly gt?: Value
  readonly gte?: Value
  readonly lt?: Value
  readonly lte?: Value
}
type Conditions<Value, More = object> = Value | readonly Value[] | (Equality<Value> & More)
interface Equality<Value> {
  readonly ne?: Value | readonly Value[]
  readonly exists?: boolean
}
type ConditionOf<Type> = Type extends { readonly type: infer Named }
  ? ConditionOf<Named>
  : Type extends 'string'
    ? Conditions<string, Bounds<string> & { readonly prefix?: string }>
    : Type extends 'number' | 'integer'
      ? Conditions<number, Bounds<number>>
      : Type extends 'boolean'
        ? Conditions<boolean>
        : Type extends 'date-time'
          ? Conditions<string | Date, Bounds<string | Date>>
          : Conditions<Scalar, Bounds<Scalar>>

/** What a list can be asked for: the option `query` of its definition says which properties, and of which types. */
export type QueryOf<Traits> =
  Trait<Traits, 'query', undefined> extends infer Query extends object
    ? { readonly [Name in keyof Query]?: ConditionOf<Query[Name]> }
    : AnyQuery
/** Sort keys; `-name` descends. */
export type SortOf<Traits> = Traits extends AnyTraits
  ? string
  : Trait<Traits, 'query', undefined> extends infer Query extends object
    ? (keyof Query & string) | `-${keyof Query & string}`
    : string

export interface ListQuery {
  readonly query?: AnyQuery
  readonly sort?: readonly string[] | string
  readonly limit?: number
  readonly count?: boolean
}

/** The query of a target: `?status=open&dueAt[gte]=...&sort=-dueAt`; empty for none. */
export function formatQuery({ query = {}, sort, limit, count }: ListQuery): string {
  const pairs = new URLSearchParams()
  const add = (name: string, value: unknown): void => {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined) pairs.append(name, item instanceof Date ? item.toISOString() : String(item))
    }
  }
  for (const [name, value] of Object.entries(query)) {
    if (isJsonObject(value as JsonValue | undefined) && !(value instanceof Date)) {
      for (const [operator, operand] of Object.entries(value as object)) add(`${name}[${operator}]`, operand)
    } else add(name, value)
  }
  add('sort', sort && String(sort))
  add('limit', limit)
  add('count', count || undefined)
  const text = String(pairs)
  return text === '' ? '' : `?${text}`
}
