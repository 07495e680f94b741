import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { type ContentSource, precede, type RangedBody, type ReplyBody, SHORT, sliceText } from '../core/reply.ts'
import type { ListQuery } from '../stores/lists.ts'
import { isResource, UntilLeft } from '../stores/rules.ts'
import type { ListOptions, Page, ResourceStore, StoredResource } from '../stores/types.ts'
import { collectionPathOf, type ResourceExchange } from './resource-exchange.ts'
import { replyBodyOf } from './stored-content.ts'

/** Pages up to this size are one value, which is kept beside the page; others are written as they are read. */
const LARGEST_VALUE = 256 * 1024
/** About what is written at once of a page that is larger. */
const BLOCK = 64 * 1024
/** Entries from this size on are not held until it is their turn. Larger ones than `SHORT` are the store's own memory. */
const LARGEST_HELD = 16 * 1024

/** An entry of a page. */
export interface PageEntry {
  readonly body: RangedBody
  /** Reads the body again. @throws Error when it is another by now */
  readonly reread: ((signal: AbortSignal | undefined) => Promise<RangedBody>) | undefined
}

/** An entry that is the content of an item itself. */
export function itemEntry(store: ResourceStore, item: StoredResource): PageEntry {
  const { path, version, hidden = false } = item
  const reread = async (signal: AbortSignal | undefined): Promise<RangedBody> => {
    const state = await store.read(path, { hidden, ...(signal && { signal }) })
    // The length of the page is sent already, and its tag names this version.
    if (isResource(state) && state.version === version) return replyBodyOf(state)
    throw new Error(`${path} has changed while the page that it is on was being sent.`)
  }
  return { body: replyBodyOf(item), reread }
}

export function lengthOf(entry: ReplyBody): number {
  return typeof entry === 'string' || entry instanceof Uint8Array ? entry.length : entry.size
}

/**
 * The content of a page: its entries as a JSON array, joined and never parsed.
 *
 * A large page is read while it is written, one entry after the other. An entry gives the bytes of the state that was
 * listed or fails, as content of stores does: a change in between may break the answer off, and never mixes states or
 * changes the length.
 */
export function joinEntries(page: readonly PageEntry[]): ReplyBody {
  const entries = page.map(({ body }) => body)
  const size = entries.reduce((sum, entry) => sum + lengthOf(entry), entries.length + 1)
  if (size > LARGEST_VALUE) return streamEntries(page.map(letGo), size)
  if (entries.every((entry) => typeof entry === 'string')) return `[${entries.join(',')}]`
  if (entries.every((entry) => typeof entry === 'string' || entry instanceof Uint8Array)) {
    const parts = entries.flatMap((entry, i) => [Buffer.from(i === 0 ? '[' : ','), Buffer.from(entry as Uint8Array)])
    return Buffer.concat([...parts, Buffer.from(']')])
  }
  return streamEntries(entries, size)
}

/** Reads a body when it is its turn, where holding it would take memory. */
function letGo({ body, reread }: PageEntry): RangedBody {
  const isValue = typeof body === 'string' || body instanceof Uint8Array
  if (!isValue || reread === undefined || body.length < LARGEST_HELD || body.length > SHORT) return body
  const read = async function* (signal: AbortSignal | undefined): AsyncGenerator<Uint8Array, void, undefined> {
    yield* piecesOf(await reread(signal), signal)
  }
  return { size: body.length, open: read, openRange: (_first, _last, signal) => read(signal) }
}

function streamEntries(entries: readonly RangedBody[], size: number): ContentSource {
  const isHeld = (entry: RangedBody): boolean => lengthOf(entry) < LARGEST_HELD
  const held = entries.reduce((sum, entry) => sum + (isHeld(entry) ? lengthOf(entry) : 0), 0)
  return { size, held, open: (signal) => readEntries(entries, signal) }
}

/** Gathers short texts: a write for each of a few hundred entries would cost more than all of them. */
async function* readEntries(
  entries: readonly RangedBody[],
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void, undefined> {
  let text = '['
  for (const [index, entry] of entries.entries()) {
    if (index > 0) text += ','
    if (typeof entry === 'string' && entry.length <= BLOCK) {
      text += entry
      if (text.length < BLOCK) continue
      yield Buffer.from(text, 'latin1')
      text = ''
      continue
    }
    yield* precede(Buffer.from(text, 'latin1'), piecesOf(entry, signal))
    text = ''
  }
  yield Buffer.from(text + ']', 'latin1')
}

function piecesOf(
  entry: RangedBody,
  signal: AbortSignal | undefined,
): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  if (typeof entry === 'string') return sliceText(entry, BLOCK)
  return entry instanceof Uint8Array ? [entry] : entry.open(signal)
}

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
  const options = new ListUntilLeft(exchange, after, limit, query)
  return exchange.route.context.store.list(collectionPathOf(exchange), options)
}

/** Options of a list that ends when the client has left. */
class ListUntilLeft extends UntilLeft implements ListOptions {
  readonly after: string | undefined
  readonly limit: number
  readonly hidden: boolean
  readonly query: ListQuery | undefined

  constructor(exchange: ResourceExchange, after: string | undefined, limit: number, query: ListQuery | undefined) {
    super(exchange)
    this.after = after
    this.limit = limit
    this.hidden = exchange.wantsHidden
    this.query = query
  }
}
