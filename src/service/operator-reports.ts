import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { formatLogText, type RequestEvent, writeToConsole } from '../core/diagnostics.ts'
import type { Exchange } from '../core/exchange.ts'
import { andThen, type MaybePromise, orElse } from '../core/maybe-promise.ts'
import { createAvailability, isStoreFailure, type Log, reportFailure } from '../core/operator-log.ts'
import { describeValue } from '../core/option-values.ts'
import type { CreateResult, ListOptions, Page, RemoveResult, ResourceStore, WriteResult } from '../stores/types.ts'

/** Called while the items of a collection are indexed that were there before. */
export type ReportIndexing = (
  collection: string,
  progress: { readonly indexed: number; readonly isDone: boolean },
) => void

/** Reports to the log how far the indexing of existing items is. */
export function createIndexReport(log: Log): ReportIndexing {
  return (collection, { indexed, isDone }) => {
    const place = formatLogText(collection === '' ? '/' : collection)
    log({
      level: 'info',
      part: 'index',
      state: isDone ? 'up' : 'down',
      message: isDone
        ? `The items of ${place} are indexed (${indexed}).`
        : `The items of ${place} are being indexed; ${indexed} are done. Lists that need the index are answered 503 until then.`,
    })
  }
}

/**
 * Writes one line per request that says why it was answered as it was: `PUT /docs/a 412: evaluateConditions: If-Match
 * failed`.
 * @param owns whether an exchange belongs to the service that asks
 * @returns what stops it
 */
export function createExplainer(
  explain: boolean | ((line: string) => void) | undefined,
  owns: (exchange: Exchange) => boolean,
): () => void {
  if (explain === undefined || explain === false) return () => {}
  const write: (line: string) => unknown = explain === true ? (line) => writeToConsole('log', line) : explain
  const listen = (message: unknown): void => {
    const event = message as RequestEvent
    if (!owns(event.exchange)) return
    // What a subscriber of a channel throws is uncaught, and would end the process.
    orElse(() => write(`${event.method} ${event.target} ${event.status}: ${event.reason}`), reportFailure)
  }
  subscribe('http-resource-service:request', listen)
  return () => unsubscribe('http-resource-service:request', listen)
}

/**
 * The same store, which checks what it gives, and reports when it fails and when it works again. An `HttpError` 503 is not an
 * unexpected error: without this report nothing would say that the database is away.
 */
export function watchStore(store: ResourceStore, log: Log): ResourceStore {
  const availability = createAvailability('store', 'The store works again.')
  availability.watch(log)
  let failing: 'nothing' | 'writes' | 'everything' = 'nothing'

  function succeed(kind: 'read' | 'write'): void {
    // A full disk or a database that has become read-only: that it can be read changes nothing.
    if (failing === 'writes' && kind === 'read') return
    failing = 'nothing'
    availability.succeed()
  }

  function fail(kind: 'read' | 'write', error: unknown): never {
    if (isStoreFailure(error)) {
      if (kind === 'read') failing = 'everything'
      else if (failing === 'nothing') failing = 'writes'
      const { status } = error as { status: number }
      availability.fail((reason) => `The store fails: ${reason}; requests that need it are answered ${status}.`, error)
    }
    throw error
  }

  /** Makes calls, and reports how each ends. */
  function observe(kind: 'read' | 'write'): <Value>(call: () => MaybePromise<Value>) => MaybePromise<Value> {
    const done = <Value>(value: Value): Value => {
      if (value === null) throw new TypeError('The store gave null. read() gives undefined where nothing is.')
      if (failing !== 'nothing') succeed(kind)
      return value
    }
    const failed = (error: unknown): never => fail(kind, error)
    return (call) => orElse(() => andThen(call(), done), failed)
  }
  const reading = observe('read')
  const writing = observe('write')

  function change<Result extends ChangeResult>(
    method: 'write' | 'create' | 'remove',
    call: () => MaybePromise<Result>,
  ): MaybePromise<Result> {
    return writing(() => andThen(call(), (result) => checkChange(method, result)))
  }

  return {
    ...(store.supports && { supports: store.supports }),
    read: (path, options) => reading(() => store.read(path, options)),
    list: (collection, options) =>
      reading(() => andThen(store.list(collection, options), (page) => checkPage(page, options))),
    write: (path, content, options) => change('write', () => store.write(path, content, options)),
    create: (collection, content, options) => change('create', () => store.create(collection, content, options)),
    remove: (path, options) => change('remove', () => store.remove(path, options)),
    ...(store.stage && { stage: (body, options) => writing(() => store.stage!(body, options)) }),
  }
}

/**
 * A page as the contract has it: what walks through pages relies on it to come to an end. A count that was not asked for is
 * left out: it would tell of items that the caller may not see.
 * @throws TypeError for a store that gives another one
 */
function checkPage(page: Page, { after, limit, query }: ListOptions): Page {
  const { items, next, total } = page ?? ({} as Page)
  if (!Array.isArray(items))
    throw new TypeError(`The store gave as items of a page ${describeValue(items)}, not a list.`)
  if (items.length > limit) throw new TypeError(`The store gave ${items.length} items for a page of at most ${limit}.`)
  if (next !== undefined && (typeof next !== 'string' || next === '')) {
    throw new TypeError(`The store gave as cursor of the next page ${describeValue(next)}.`)
  }
  if (next !== undefined && next === after)
    throw new TypeError('The store gave the cursor of a page as that of the next.')
  if (total === undefined) return page
  if (query?.count !== true) return next === undefined ? { items } : { items, next }
  if (Number.isSafeInteger(total) && total >= 0) return page
  throw new TypeError(`The store gave as total of a list ${describeValue(total)}.`)
}

type ChangeResult = WriteResult | CreateResult | RemoveResult

const OUTCOMES: Readonly<Record<'write' | 'create' | 'remove', readonly string[]>> = {
  write: ['replaced', 'created', 'conflict'],
  create: ['created', 'conflict'],
  remove: ['removed', 'absent', 'conflict'],
}

/**
 * The result of a change as the contract has it: what is not a conflict is acknowledged.
 * @throws TypeError for a store that gives another one, whose change may have been made or not
 */
function checkChange<Result extends ChangeResult>(method: keyof typeof OUTCOMES, result: Result): Result {
  const outcome: unknown = result?.outcome
  if (OUTCOMES[method].includes(outcome as string)) return result
  const given = typeof outcome === 'string' ? JSON.stringify(outcome) : describeValue(outcome)
  throw new TypeError(`The store gave as outcome of ${method}() ${given}.`)
}
