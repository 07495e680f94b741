import type { IncomingMessage } from 'node:http'
import type { AuthScheme } from './types.ts'

/**
 * Verifies the credentials of one request once, however many guards share the scheme: credentials that are good for one
 * use would be refused by the second guard.
 */
export function oncePerRequest(authenticate: AuthScheme['authenticate']): AuthScheme['authenticate'] {
  const results = new WeakMap<IncomingMessage, ReturnType<AuthScheme['authenticate']>>()
  return (value, exchange) => {
    const known = results.get(exchange.req)
    if (known !== undefined) return known
    const result = authenticate(value, exchange)
    results.set(exchange.req, result)
    return result
  }
}
