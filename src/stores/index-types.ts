/** Queries over collections: the part of the store contract that selects, orders and counts members by their values. */

import type { MaybePromise } from '../core/maybe-promise.ts'
import type { StoredResource } from './types.ts'

/**
 * A value by which members are selected and ordered; `null` where an item has none. Values compare alike in every store:
 * `null` before `false`, `false` before `true`, these before numbers, numbers as IEEE 754 doubles, numbers before strings,
 * strings by code point. A string has at most 256 bytes of UTF-8, without U+0000 and lone surrogates; a number is finite,
 * and `-0` is `0`. The service checks all of this before it calls a store.
 */
export type IndexedValue = string | number | boolean | null

/** The values of one item, by the name of the indexed property; a name that is left out is `null`. */
export type IndexedValues = Readonly<Record<string, IndexedValue>>

/** How the members of one collection are indexed. The service makes it from the definition. */
export interface CollectionIndex {
  /** Names the rules by which values are taken from content; other rules have another name. At most 64 characters. */
  readonly version: string
  /** Names of the indexed properties, ascending; at most 16. */
  readonly properties: readonly string[]
  /** Those of them that lists of most callers compare by equality, all together: the properties of the scope. */
  readonly scope: readonly string[]
  /** Takes the values from a stored item: for items that were written without values, or under other rules. */
  readonly valuesOf: (item: StoredResource) => MaybePromise<IndexedValues>
  /** Called while items that exist already are indexed: how many have been so far, and whether that was all. */
  readonly report?: ((progress: { readonly indexed: number; readonly isDone: boolean }) => void) | undefined
}

/**
 * A condition on one indexed property. `null` matches `notIn`, and `exists` with `false`, and nothing else.
 * `values` are never `null`; at most 8 of them.
 */
export type Condition =
  /** `in`: equal to any of the values. `notIn`: equal to none of them. */
  | { readonly property: string; readonly operator: 'in' | 'notIn'; readonly values: readonly IndexedValue[] }
  | { readonly property: string; readonly operator: 'gt' | 'gte' | 'lt' | 'lte'; readonly value: IndexedValue }
  | { readonly property: string; readonly operator: 'prefix'; readonly value: string }
  | { readonly property: string; readonly operator: 'exists'; readonly value: boolean }

/** One key of an order. `descending` reverses the place of `null` too: last. */
export interface OrderKey {
  readonly property: string
  readonly direction: 'ascending' | 'descending'
}

/**
 * Which members a list shows, and in which order. All conditions must match. Members with equal keys follow each other in
 * the order of a list without a query (names that are integers by value, then others), ascending also where keys descend.
 */
export interface ListQuery {
  readonly index: CollectionIndex
  readonly where: readonly Condition[]
  /** At most two keys. */
  readonly orderBy: readonly OrderKey[]
  /** Whether `Page.total` is wanted. */
  readonly count: boolean
}
