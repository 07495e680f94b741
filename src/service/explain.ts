import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { publishFailure, type RequestEvent, writeToConsole } from '../core/diagnostics.ts'
import type { Exchange } from '../core/exchange.ts'
import { catchRejection } from '../core/maybe-promise.ts'

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
  const fail = (error: unknown): void => publishFailure({ error, stage: 'background' })
  const listen = (message: unknown): void => {
    const event = message as RequestEvent
    if (!owns(event.exchange)) return
    // What a subscriber of a channel throws is uncaught, and would end the process.
    try {
      catchRejection(write(`${event.method} ${event.target} ${event.status}: ${event.reason}`), fail)
    } catch (error) {
      fail(error)
    }
  }
  subscribe('http-resource-service:request', listen)
  return () => unsubscribe('http-resource-service:request', listen)
}
