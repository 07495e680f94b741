import type { ListQuery } from './index-types.ts'
import type { StoredResource } from './types.ts'

export interface ReadOptions {
  /** Whether hidden resources are returned; otherwise they look like tombstones. Default false. */
  readonly hidden?: boolean
  /** The caller needs no content: a store may then leave `body` empty. Default false. */
  readonly metadataOnly?: boolean
  /** Aborts when the client has left: a call that waits may then end with its reason. */
  readonly signal?: AbortSignal
}

export interface ListOptions {
  /**
   * The cursor of the page before; left out for the first page. It has been with the client: whatever it says, answer
   * with some page or throw an `HttpError` below 500.
   */
  readonly after?: string | undefined
  /** The most items to return, at least 1. */
  readonly limit: number
  /** Whether hidden resources are listed as well. Default false. */
  readonly hidden?: boolean
  /**
   * Which members, and in which order; all of them where it is left out. Only with stores that support `queries`. While
   * items that exist already are being indexed by its rules, throw `HttpError` 503 `ERR_INDEXING` with Retry-After.
   */
  readonly query?: ListQuery | undefined
  /** As for `read`. */
  readonly signal?: AbortSignal
}

export interface Page {
  /**
   * Direct members in a stable order: names that are integers by value, then all others in an order of the store's own; with
   * a query in its order. A member that exists during the whole of a walk through the pages is seen exactly once.
   */
  readonly items: readonly StoredResource[]
  /** Cursor of the next page; left out on the last one. */
  readonly next?: string | undefined
  /** How many members match the query, on whichever page; only where `query.count` asks for it. */
  readonly total?: number | undefined
}
