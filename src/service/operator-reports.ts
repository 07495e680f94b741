import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { formatLogText, type RequestEvent, writeToConsole } from '../core/diagnostics.ts'
import type { Exchange } from '../core/exchange.ts'
import { orElse } from '../core/maybe-promise.ts'
import { type Log, reportFailure } from '../core/operator-log.ts'

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
