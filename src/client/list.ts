import { isJsonObject, type JsonValue } from '../core/json.ts'
import { createError, parseContent, refuse, resolveReference } from './answers.ts'
import type { AnyPath, AnyTraits, PathTypes, Trait } from './definition-paths.ts'
import { type Call, getJson } from './read.ts'
import { expectSuccess, type Failure, type Success } from './results.ts'
import type { RequestOptions } from './transport.ts'

/** Options of `list`. */
export interface ListOptions<Types extends PathTypes> extends RequestOptions {
  /**
   * Conditions: `{ status: 'open', dueAt: { gte: '2026-01-01T00:00:00Z' } }`. A list stands for any of its values; `undefined`
   * and an empty list are left out.
   */
  readonly query?: QueryOf<Types['traits']> | undefined
  /** Sort keys; `-name` descends. */
  readonly sort?: SortOf<Types['traits']> | readonly SortOf<Types['traits']>[] | undefined
  /** Items on a page. Default: the server's. */
  readonly limit?: number | undefined
  /** Whether to ask for the number of all items. */
  readonly count?: boolean | undefined
  /** The `next` of a page, with the same `query` and `sort`: the list begins behind that page. Default: at the first item. */
  readonly after?: string | undefined
}

/** A list of content that is not JSON: where each item is. */
export interface ListedContent {
  /** The name of the item in the collection. */
  readonly id: string | number
  /** The path of the item, as a URI reference. */
  readonly href: string
  /** The media type. */
  readonly type: string
  /** Length of the content in bytes. */
  readonly size: number
}

export type ListedItem<Types extends PathTypes> = Types['traits'] extends AnyTraits
  ? JsonValue
  : Types['content'] extends 'json'
    ? Types['output']
    : ListedContent

const LISTING = [400, 401, 403, 404] as const

interface PageOf<Value> {
  readonly items: readonly Value[]
  /** The number of all items, with the option `count`. */
  readonly total: number | undefined
  /** What the option `after` takes for the page that follows; `undefined` on the last page. */
  readonly next: string | undefined
}

export type PageResult<Value> = Success<200, PageOf<Value>> | Failure<(typeof LISTING)[number]>

/** The items of a collection, page after page. Iterating it throws a ResponseError for a refusal; `pages` do not. */
export interface List<Value> extends AsyncIterable<Value> {
  /** The pages; a refusal is the last. */
  pages(): AsyncGenerator<PageResult<Value>, void, void>
}

export function listItems(call: Call<ListOptions<AnyPath>>): List<unknown> {
  const first = formatTarget(call)

  async function* pages(): AsyncGenerator<PageResult<unknown>, void, void> {
    let next: string | undefined = first
    // Pages that lead back would never end. One of them is kept, ever later ones: as many as there are would fill memory.
    let kept = first
    for (let count = 1; next; count++) {
      const answer = await getJson({ ...call, url: next })
      if (answer.status !== 200) return yield refuse(answer, LISTING)
      const total = answer.headers.get('x-total-count') ?? ''
      const items = parseContent(answer)
      if (!Array.isArray(items)) throw createError(answer, 'The content of the response is not a list.')
      const target = findNext(answer.headers.get('link'))
      const after = new URLSearchParams(target?.split('?')[1]).get('after') || undefined
      yield { ok: true, status: 200, items, total: /^\d+$/.test(total) ? Number(total) : undefined, next: after }
      const following: string | undefined = target && resolveReference(answer, target)
      if (!(count & (count - 1))) kept = next // a power of two
      next = following === kept ? undefined : following
    }
  }

  return {
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const page of pages()) yield* expectSuccess(page).items
    },
  }
}

const LINK = /<([^<>]*)>((?:\s*;\s*[^\s;,<>"=]+(?:=(?:"(?:[^"\\]|\\.)*"|[^\s;,<>"]*))?)*)/g

/** The target of the link to the next page (RFC 8288). */
function findNext(field: string | null): string | undefined {
  for (const [, target, parameters] of String(field).matchAll(LINK)) {
    const relation = /;\s*rel=(?:"[^"]*"|[^\s;]+)/i.exec(parameters!)
    if (/["=\s]next(?![^\s"])/i.test(String(relation))) return target
  }
  return undefined
}

/** The target of a page, with its query: `?status=open&dueAt[gte]=...&sort=-dueAt`. */
function formatTarget(call: Call<ListOptions<AnyPath>>): string {
  const { query = {}, sort, limit, count, after, signal: _, timeout: __, ...others } = call.options ?? {}
  for (const name of Object.keys(others)) throw new TypeError(`list has no option "${name}".`)
  const target = new URL(call.url)
  const add = (values: object, property?: string): void => {
    for (const [name, value] of Object.entries(values)) {
      // A `Date` may be of another realm.
      if (!property && isJsonObject(value) && !value['toISOString']) add(value, name)
      else {
        for (const item of [value].flat() as (Partial<Date> | undefined)[]) {
          const parameter = property ? `${property}[${name}]` : name
          if (item !== undefined) target.searchParams.append(parameter, item?.toISOString?.() ?? String(item))
        }
      }
    }
  }
  add(query)
  add({ sort: (sort && String(sort)) || undefined, limit, count: count || undefined, after })
  return target.href
}

type Scalar = string | number | boolean | Date
/** Query parameters of a list whose definition is not known. */
type AnyQuery = Readonly<Record<string, Operand | Readonly<Record<string, Operand>>>>
type Operand = Scalar | readonly Scalar[] | undefined

interface Bounds<Value> {
  readonly gt?: Value | undefined
  readonly gte?: Value | undefined
  readonly lt?: Value | undefined
  readonly lte?: Value | undefined
}
type Conditions<Value, More = object> = Value | readonly Value[] | (Equality<Value> & More)
interface Equality<Value> {
  readonly ne?: Value | readonly Value[] | undefined
  readonly exists?: boolean | undefined
}
type ConditionOf<Type> = Type extends { readonly type: infer Named }
  ? ConditionOf<Named>
  : Type extends 'string'
    ? Conditions<string, Bounds<string> & { readonly prefix?: string | undefined }>
    : Type extends 'number' | 'integer'
      ? Conditions<number, Bounds<number>>
      : Type extends 'boolean'
        ? Conditions<boolean>
        : Type extends 'date-time'
          ? Conditions<string | Date, Bounds<string | Date>>
          : Conditions<Scalar, Bounds<Scalar>>

/** The properties that a target may name, and so a list: not those that are sensitive. */
type Open<Query> = {
  readonly [Name in keyof Query as Query[Name] extends { readonly sensitive: true } ? never : Name]: Query[Name]
}
/** What a list can be asked for: the option `query` of its definition says which properties, and of which types. */
type QueryOf<Traits> =
  Trait<Traits, 'query', undefined> extends infer Query extends object
    ? { readonly [Name in keyof Open<Query>]?: ConditionOf<Open<Query>[Name]> | undefined }
    : AnyQuery
/** Sort keys; `-name` descends. */
type SortOf<Traits> = Traits extends AnyTraits
  ? string
  : Trait<Traits, 'query', undefined> extends infer Query extends object
    ? (keyof Open<Query> & string) | `-${keyof Open<Query> & string}`
    : string
