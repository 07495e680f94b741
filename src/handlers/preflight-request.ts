import type { Exchange } from '../core/exchange.ts'
import { readField } from '../core/fields.ts'

/** Whether a request is a preflight: OPTIONS with Origin and Access-Control-Request-Method; other OPTIONS asks for Allow. */
export function isPreflightRequest(exchange: Exchange): boolean {
  return asksForMethod(exchange) && readField(exchange.headers, 'origin') !== undefined
}

/** Whether a request is a preflight if it has an Origin. */
export function asksForMethod({ method, headers }: Exchange): boolean {
  return method === 'OPTIONS' && readField(headers, 'access-control-request-method') !== undefined
}
