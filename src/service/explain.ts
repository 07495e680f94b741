import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { writeToConsole } from '../core/console-line.ts'
import type { RequestEvent } from '../core/diagnostics.ts'
import type { Exchange } from '../core/exchange.ts'

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
  const write = explain === true ? (line: string) => writeToConsole('log', line) : explain
  const listen = (message: unknown): void => {
    const event = message as RequestEvent
    if (owns(event.exchange)) write(`${event.method} ${event.target} ${event.status}: ${event.reason}`)
  }
  subscribe('http-resource-service:request', listen)
  return () => unsubscribe('http-resource-service:request', listen)
}
