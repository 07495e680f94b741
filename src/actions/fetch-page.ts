import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import type { ListQuery } from '../stores/lists.ts'
import type { Page } from '../stores/types.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { ListUntilLeft } from './store-options.ts'

/** A list in the order of the store has cursors of its own, counted or not, so its items are counted on their own. */
export function countPlain(exchange: ResourceExchange, after: string | undefined, page: Page): MaybePromise<Page> {
  const { query, counting } = exchange.listing ?? {}
  if (counting === undefined || query !== undefined) return page
  if (after === undefined && page.next === undefined) return { ...page, total: page.items.length }
  return andThen(listStored(exchange, undefined, 1, counting), ({ total }) =>
    total === undefined ? page : { ...page, total },
  )
}

/** A page of the store, with the query of the list; not counted unless that is asked for. */
export function fetchPage(
  exchange: ResourceExchange,
  after: string | undefined,
  limit: number,
  counting: 'count' | 'no-count' = 'no-count',
): MaybePromise<Page> {
  const asked = exchange.listing?.query
  const query = asked === undefined || counting === 'count' ? asked : { ...asked, count: false }
  return listStored(exchange, after, limit, query)
}

function listStored(
  exchange: ResourceExchange,
  after: string | undefined,
  limit: number,
  query: ListQuery | undefined,
): MaybePromise<Page> {
  const { route, storePath } = exchange
  const options = new ListUntilLeft(exchange, after, limit, query)
  return route.context.store.list(storePath === '/' ? '' : storePath, options)
}
