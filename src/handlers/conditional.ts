import { HttpError } from '../core/errors.ts'
import type { RequestView } from '../core/exchange.ts'
import { andThen, type MaybePromise } from '../core/handler.ts'
import { createHandler, type Handler } from '../core/node-handler.ts'
import { readOptions } from '../core/options.ts'
import { readTarget } from '../core/read-target.ts'
import type { Reply } from '../core/reply.ts'
import { evaluateConditions } from './evaluate.ts'
import { formatValidators, type KnownValidators, resolveValidators } from './validators.ts'

export type { KnownValidators } from './validators.ts'

export interface ConditionalOptions {
  /** Whether changes of what exists need a condition; 428 without one (RFC 6585 §3). Default false. */
  readonly required?: boolean
  /** The clock, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/**
 * A piece that evaluates the preconditions of a request before a route does its work (RFC 9110 §13): 304 and 412 are
 * answered here, everything else goes on to `next`, GET and HEAD with ETag and Last-Modified set on the response.
 *
 * A write has to compare versions itself when it commits: between this check and the write somebody else may be faster.
 * @param validators gives the validators of the current representation; `undefined` when there is none, whereupon reads
 *   go on, so that the route can answer 404
 * @returns a handler for `http.createServer`, Express and Connect, and for Koa through `koaMiddleware`
 * @throws TypeError for an option that does not exist
 * @example
 * app.get('/report', conditional(async () => ({ entityTag: `"${await revision()}"` })), sendReport)
 */
export function conditional(
  validators: (request: RequestView) => MaybePromise<KnownValidators | undefined>,
  options?: ConditionalOptions,
): Handler {
  if (typeof validators !== 'function') throw new TypeError('conditional takes a function that gives the validators.')
  const { required = false, now = Date.now } = readOptions('conditional', options, ['required', 'now'])
  return createHandler({
    run(exchange) {
      readTarget(exchange)
      return andThen(validators(exchange), (known): Reply | undefined => {
        const { method, headers, res } = exchange
        const isRead = method === 'GET' || method === 'HEAD'
        if (method === 'OPTIONS') return undefined // conditions do not apply (RFC 9110 §13.2.1)
        // Only PUT may find nothing and go on under conditions; for others the route's 404 comes first (§13.2.1).
        if (known === undefined && method !== 'PUT') return undefined
        const time = now()
        const current = known === undefined ? undefined : resolveValidators(known, time)
        const isConditional = headers['if-match'] ?? headers['if-none-match'] ?? headers['if-unmodified-since']
        if (required && !isRead && current !== undefined && isConditional === undefined) {
          throw new HttpError(428, 'ERR_PRECONDITION_REQUIRED', { detail: 'Send the ETag you have in If-Match.' })
        }
        const outcome = evaluateConditions(exchange, current, time)
        if (current === undefined || !isRead) return undefined
        const fields = formatValidators(current)
        // A 304 repeats what tells the states apart, and nothing that describes content (§15.4.5).
        if (outcome === 'not-modified') return { status: 304, headers: fields.slice(0, 2) }
        for (let i = 0; i < fields.length; i += 2)
          if (!res.hasHeader(fields[i]!)) res.setHeader(fields[i]!, fields[i + 1]!)
        return undefined
      })
    },
    forwardErrors: true,
  })
}
