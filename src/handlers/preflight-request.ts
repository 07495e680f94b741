import type { Exchange } from '../core/exchange.ts'

/** Whether a request is a preflight: OPTIONS with Origin and Access-Control-Request-Method; other OPTIONS asks for Allow. */
export function isPreflightRequest(exchange: Exchange): boolean {
  return asksForMethod(exchange) && exchange.field('origin') !== undefined
}

/** Whether a request is a preflight if it has an Origin. */
export function asksForMethod(exchange: Exchange): boolean {
  return exchange.method === 'OPTIONS' && exchange.field('access-control-request-method') !== undefined
}
