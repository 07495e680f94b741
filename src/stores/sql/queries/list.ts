import { HttpError } from '../../../core/errors.ts'
import { andThen, type MaybePromise } from '../../../core/maybe-promise.ts'
import type { ListOptions, ListQuery, Page } from '../../lists.ts'
import type { StoredResource } from '../../types.ts'
import { toBytes } from '../rows.ts'
import type { SelectedPage } from './page.ts'
import type { Found, WindowRequest } from './steps.ts'
import { edgeColumns } from './window.ts'

/** Lists by queries. */
export interface SqlQueries {
  list(collection: string, options: ListOptions, query: ListQuery): MaybePromise<Page>
}

/** A page; or `incomplete` while members of the collection have no entry. */
export type Listed = MaybePromise<Page> | 'incomplete'

/**
 * Lists at once where all members have their entries, and otherwise once more after the indexer has had some time.
 * @param index lets the indexer work
 * @throws HttpError 503 where members still have no entry
 */
export function listWhenIndexed(attempt: () => MaybePromise<Listed>, index: () => Promise<void>): MaybePromise<Page> {
  return andThen(attempt(), (page) => (page === 'incomplete' ? listAgain(attempt, index) : page))
}

async function listAgain(attempt: () => MaybePromise<Listed>, index: () => Promise<void>): Promise<Page> {
  await index()
  const page = await attempt()
  if (page !== 'incomplete') return page
  throw new HttpError(503, 'ERR_INDEXING', {
    detail: 'The items of this collection are being indexed.',
    headers: { 'Retry-After': '1' },
  })
}

/** The answer to a step, from the rows of its statement. */
export function readAnswer(
  { kind, window }: WindowRequest,
  rows: readonly Record<string, unknown>[],
): readonly Found[] | number {
  if (kind === 'count') return rows[0]!['n'] as number
  const columns = kind === 'rows' ? window.columns : edgeColumns(window)
  return rows.map((row) => ({
    keys: columns.map((slot) => toBytes(row[`v${slot}`])),
    sortKey: row['sort_key'] as string,
  }))
}

export function createPage(
  items: readonly StoredResource[],
  { next, total }: Partial<Pick<SelectedPage, 'next' | 'total'>>,
): Page {
  return { items, ...(next === undefined ? {} : { next }), ...(total === undefined ? {} : { total }) }
}

/** The page of a collection that has neither members nor an index. */
export function createEmptyPage({ count }: ListQuery): Page {
  return createPage([], count ? { total: 0 } : {})
}
