import { setImmediate } from 'node:timers/promises'
import { andThen, isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import { mergeCaching } from '../protocol/cache-control.ts'
import { isJsonContentType } from '../protocol/media-type.ts'
import type { Page, StoredResource } from '../stores/types.ts'
import { entriesOf, mayRefuseEntries, mayShow } from './entry-rights.ts'
import { countPlain, fetchPage } from './page.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { isSealed, openCursor, sealCursor } from './sealed-cursor.ts'

/** Entries that are refused for one page before it ends early: what one request may cost. */
const MOST_REFUSED = 2000
/** Bytes of JSON in them, which `authorize` may have had parsed. */
const MOST_REFUSED_BYTES = 16 * 1024 * 1024
/** Pages of the store that are judged for one. */
const MOST_PAGES = 200
/**
 * What an empty page counts for, beside one, where another follows; a page that is filled in part counts for its share. A
 * store may have looked at many entries to find so few, and may give empty pages without an end.
 */
const EMPTY = 50
/** Bytes of entries that are judged in one go, each counted as at least so many. */
const PAUSE = 256 * 1024
const ENTRY = 4096
/** The least entries to ask a store for once some have been refused. */
const CHUNK = 50

/**
 * Reads a page of the entries that the caller may see: each is judged by the definition of its own path. Refused entries
 * are replaced by later ones, and the cursor names an entry of the page: neither the number of entries nor Link shows that
 * entries were left out.
 * @param after a cursor from an earlier page
 * @throws HttpError 400 for a sealed cursor that the service has not made
 */
export function readVisiblePage(
  exchange: ResourceExchange,
  after: string | undefined,
  limit: number,
): MaybePromise<Page> {
  const cursor = after === undefined || !isSealed(after) ? after : openCursor(exchange, after)
  return andThen(cursor, (cursor) => {
    if (mayRefuseEntries(exchange)) return judgePages(exchange, cursor, limit)
    return andThen(fetchPage(exchange, cursor, limit, 'count'), (page) => countPlain(exchange, cursor, page))
  })
}

interface Judged {
  /** How many entries have been judged. */
  readonly count: number
  readonly shown: readonly StoredResource[]
}

/** The verdicts of one request, and what it has spent on entries that it does not show. */
class Judge {
  readonly #exchange: ResourceExchange
  readonly #verdicts = new Map<string, boolean>()
  #refused = 0
  #bytes = 0
  #pages = 0
  #unpaused = 0

  constructor(exchange: ResourceExchange) {
    this.#exchange = exchange
  }

  get isSpent(): boolean {
    return this.#refused >= MOST_REFUSED || this.#bytes >= MOST_REFUSED_BYTES || this.#pages >= MOST_PAGES
  }

  /**
   * Judges the entries of a page in order, until all are judged or too many have been refused.
   * @param size how many were asked for
   */
  async judge({ items, next }: Page, size: number): Promise<Judged> {
    const shown: StoredResource[] = []
    this.#pages += next === undefined ? 1 : 1 + EMPTY * (1 - items.length / size)
    let count = 0
    for (const item of items) {
      const key = `${item.version} ${item.path}`
      const known = this.#verdicts.get(key)
      if (count > 0 && known === undefined && this.isSpent) break
      count++
      const verdict = known ?? this.#decide(item, key)
      // Most verdicts are there at once: a page of 50 waits for none of them.
      if (isPromise(verdict) ? await verdict : verdict) shown.push(item)
    }
    return { count, shown }
  }

  #decide(item: StoredResource, key: string): MaybePromise<boolean> {
    this.#unpaused += ENTRY + item.size
    if (this.#unpaused <= PAUSE) return this.#ask(item, key)
    this.#unpaused = 0
    // Others have their turn.
    return setImmediate().then(() => this.#ask(item, key))
  }

  #ask(item: StoredResource, key: string): MaybePromise<boolean> {
    return andThen(mayShow(this.#exchange, item), (verdict) => {
      this.#verdicts.set(key, verdict)
      if (verdict) return true
      this.#refused++
      if (isJsonContentType(item.contentType)) this.#bytes += item.size
      return false
    })
  }
}

async function judgePages(exchange: ResourceExchange, after: string | undefined, limit: number): Promise<Page> {
  const judge = new Judge(exchange)
  const page = await collectPage(exchange, judge, after, limit)
  // Others may get another page (RFC 9111 §5.2.2.7). Whether something was refused plays no part: `private` would tell of it.
  if (exchange.principal !== undefined || entriesOf(exchange.route).differ) exchange.sharing = 'private'
  if (exchange.listing?.counting === undefined) return page
  const total = await countShown(exchange)
  return total === undefined ? page : { ...page, total }
}

/** The most entries that are judged one by one to count them. */
const MOST_COUNTED = 1000

/**
 * How many entries of a query the caller may see; `undefined` where that takes too long to find out. The store's own count
 * would tell of entries that are refused.
 */
async function countShown(exchange: ResourceExchange): Promise<number | undefined> {
  const judge = new Judge(exchange)
  let total = 0
  let judged = 0
  let cursor: string | undefined
  do {
    if (judged >= MOST_COUNTED || judge.isSpent) return undefined
    const page: Page = await fetchPage(exchange, cursor, CHUNK)
    const { count, shown } = await judge.judge(page, CHUNK)
    if (count < page.items.length) return undefined
    total += shown.length
    judged += count
    cursor = page.next
  } while (cursor !== undefined)
  return total
}

async function collectPage(
  exchange: ResourceExchange,
  judge: Judge,
  after: string | undefined,
  limit: number,
): Promise<Page> {
  const items: StoredResource[] = []
  let cursor = after
  let size = limit
  for (;;) {
    const page = await fetchPage(exchange, cursor, size)
    const { count, shown } = await judge.judge(page, size)
    const cut = findCut(page, size, count, shown, limit - items.length)
    if (cut !== undefined) {
      size = cut
      continue
    }
    items.push(...shown)
    if (page.next === undefined) return keepWhole(page, { items })
    cursor = page.next
    if (items.length === limit) {
      return keepWhole(page, (await isMoreShown(exchange, judge, cursor)) ? { items, next: cursor } : { items })
    }
    if (judge.isSpent) return { items, next: await sealCursor(exchange, cursor) }
    size = Math.max(limit - items.length, CHUNK)
  }
}

/**
 * How many entries of a page to ask for again, so that its cursor stands behind the last one that is wanted: an entry that
 * completes the answer, or the last that was judged. The cursor of a page that a store ends early may name a later entry,
 * which was not judged. `undefined` where the page ends there.
 * @param size how many entries were asked for
 */
function findCut(
  { items, next }: Page,
  size: number,
  count: number,
  shown: readonly StoredResource[],
  missing: number,
): number | undefined {
  const last = shown[missing - 1]
  if (last === undefined) return count < items.length ? count : undefined
  const isWhole = next === undefined && count === items.length && shown.length === missing
  const isEnd = last === items.at(-1) && items.length >= size
  return isWhole || isEnd ? undefined : items.indexOf(last) + 1
}

/** The page of the store itself, where it is what is shown: what was derived from it is used again. */
function keepWhole(page: Page, shown: Page): Page {
  const { items, next } = shown
  // As many entries may be others: some of an earlier page, in place of some that are refused.
  const isShown = next === page.next && items.length === page.items.length
  return isShown && items.every((item, index) => item === page.items[index]) ? page : shown
}

/** Whether an entry behind a cursor is shown. Where that takes too long to find out, there may be one. */
async function isMoreShown(exchange: ResourceExchange, judge: Judge, after: string): Promise<boolean> {
  let cursor: string | undefined = after
  for (let size = 1; cursor !== undefined; size = CHUNK) {
    if (judge.isSpent) return true
    const page: Page = await fetchPage(exchange, cursor, size)
    const { shown, count } = await judge.judge(page, size)
    if (shown.length > 0 || count < page.items.length) return true
    cursor = page.next
  }
  return false
}

/** Cache-Control of a page: as careful as that of every entry on it, by the definitions that their own paths have. */
export function pageCacheControl(exchange: ResourceExchange, page: Page): string {
  const { route } = exchange
  if (!entriesOf(route).hasOwnCaching) return exchange.cacheControl
  // For users `private` is always said: what one part allows shared caches for, another may not.
  const sharing = exchange.sharing === 'public' ? 'public' : 'private'
  const owners = new Set(page.items.map((item) => route.context.findRoute(item.path) ?? route))
  return [...owners].reduce((value, own) => mergeCaching(value, own.cacheControl[sharing]), route.cacheControl[sharing])
}
