import type { Exchange } from '../core/exchange.ts'
import { readField } from '../core/fields.ts'

/** Whether a request is a preflight: OPTIONS with Origin and Access-Control-Request-Method; other OPTIONS asks for Allow. */
export function isPreflightRequest(exchange: Exchange): boolean {
  const { headers } = exchange
  return (
    exchange.method === 'OPTIONS' &&
    readField(headers, 'access-control-request-method') !== undefined &&
    readField(headers, 'origin') !== undefined
  )
}
