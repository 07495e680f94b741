import { formatLogText, publishFailure, writeToConsole } from './diagnostics.ts'
import { isHttpError } from './errors.ts'
import { readThrown } from './failures.ts'
import { orElse } from './maybe-promise.ts'

/**
 * A change in what the requests depend on, for the operator. Each is reported once: when it stops working, and when it works
 * again.
 */
export interface LogEntry {
  /** `'error'` when it stops working; `'info'` when it works again, and for progress. */
  readonly level: 'error' | 'info'
  /**
   * `'store'`: the database. `'keys'`: the keys that tokens are verified with. `'transport'`: cleartext requests are refused.
   * `'queue'`: accepted work is not started. `'index'`: items that exist already are being indexed for `query` or `scope`.
   */
  readonly part: 'store' | 'keys' | 'transport' | 'queue' | 'index'
  /** `'down'`: it has stopped working, or is being indexed. `'up'`: it works again, or all is indexed. */
  readonly state: 'down' | 'up'
  /** One line of plain text, safe for a terminal. */
  readonly message: string
  /** The failure; left out when there is none. */
  readonly error?: unknown
}

/** Receives the changes. Whatever it does, requests are answered. */
export type Log = (entry: LogEntry) => unknown

/** The log of an option: the console by default, nothing for `false`. It never throws. */
export function createLog(log: Log | boolean | undefined): Log {
  if (log === false) return () => undefined
  if (typeof log === 'function') return (entry) => orElse(() => log(entry), reportFailure)
  return ({ message }) => writeToConsole('error', `http-resource-service: ${message}`)
}

/** Tells the operator of a failure that no request is to blame for. */
export function reportFailure(error: unknown): void {
  publishFailure({ error, stage: 'background' })
}

const FIRST_GAP = 1000
const LONGEST_REASON = 300

/**
 * Whether something that requests depend on works. The operator hears of each change, and of nothing else.
 *
 * Clients can cause changes, by requests in cleartext for instance. So a report that follows another one too soon waits, and is
 * dropped when it is no longer true; the wait doubles with each report, up to `longestGap`.
 * @param recovered the message when it works again
 * @param longestGap milliseconds
 */
export function createAvailability(part: LogEntry['part'], recovered: string, longestGap = 60_000) {
  const logs = new Set<Log>()
  const up: LogEntry = Object.freeze({ level: 'info', part, state: 'up', message: recovered })
  let current = up
  let reported = up.state
  let gap = FIRST_GAP
  let nextReport = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined

  function change(entry: LogEntry): void {
    current = entry
    if (timer !== undefined) return
    const wait = nextReport - performance.now()
    if (wait <= 0) report()
    else timer = setTimeout(report, wait).unref()
  }

  function report(): void {
    timer = undefined
    if (current.state === reported) return
    reported = current.state
    const now = performance.now()
    gap = now >= nextReport + longestGap ? FIRST_GAP : Math.min(gap * 2, longestGap)
    nextReport = now + gap
    publishFailure({ error: current.error, stage: 'state', entry: current })
    for (const log of [...logs]) log(current)
  }

  return {
    /** It has failed. @param describe makes the message from the reason; called only for a change */
    fail(describe: (reason: string) => string, error?: unknown): void {
      if (current !== up) return
      const message = formatLogText(describe(reasonOf(error)))
      change(Object.freeze({ level: 'error', part, state: 'down', message, ...(error === undefined ? {} : { error }) }))
    },
    succeed(): void {
      if (current !== up) change(up)
    },
    /** @returns what ends the reports to this log */
    watch(log: Log): () => void {
      // A log that is given twice is called twice.
      const own: Log = (entry) => log(entry)
      logs.add(own)
      return () => void logs.delete(own)
    },
  }
}

/** Why something failed, in a few words: the error that the driver threw, not the answer that was made of it. */
function reasonOf(thrown: unknown): string {
  const error = readThrown(thrown)
  const cause = readThrown(isHttpError(error) ? (error.cause ?? error.detail) : error) as
    | { readonly message?: unknown; readonly code?: unknown; readonly cause?: unknown }
    | undefined
    | null
  // Node's message for an address that cannot be connected to is empty, that of `fetch` says nothing but "fetch failed".
  const texts = [cause, readThrown(cause?.cause) as typeof cause].flatMap((link) => [link?.message, link?.code])
  const known = [...new Set(texts)].filter((text) => typeof text === 'string' && text !== '')
  const text = known.length > 0 ? known.join(', ') : typeof cause === 'string' ? cause : 'no reason is known'
  return text.slice(0, LONGEST_REASON).replace(/\.$/, '')
}

const ofHooks = new WeakSet<object>()

/** Notes what a hook fails with that a store calls: it says nothing of the store. */
export function noteHookFailure(error: unknown): void {
  if (isHttpError(error)) ofHooks.add(error)
}

/**
 * Whether a store could not serve. Unexpected errors, which are answered 500, are reported one by one already; a store that is
 * indexing reports that itself, and serves everything but lists.
 */
export function isStoreFailure(error: unknown): boolean {
  return isHttpError(error) && error.status >= 500 && error.code !== 'ERR_INDEXING' && !ofHooks.has(error)
}
