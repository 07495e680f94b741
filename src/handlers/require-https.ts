import type { ErrorHook } from '../core/failures.ts'
import type { Handler } from '../core/handler.ts'
import { createHandler } from '../core/node-handler.ts'
import { createLog, type Log } from '../core/operator-log.ts'
import { CHECKED_LATER, FUNCTION, LOG, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { createAddressFinder, type TrustProxy } from '../core/peer.ts'
import { createHttpsCheck } from './access-checks.ts'

/** Options of `requireHttps`. */
export interface RequireHttpsOptions {
  /** Whose X-Forwarded-Proto and Forwarded count. Default: of no proxy. */
  readonly trustProxy?: TrustProxy
  /** How cleartext is refused: 403, or 426 with Upgrade (RFC 9110 §15.5.22). Default: 403. */
  readonly status?: 403 | 426
  /** Called with unexpected errors. Default: `console.error`. */
  readonly onError?: ErrorHook
  /**
   * Receives `{ level, part, state, message, error }` when cleartext is refused, and when requests come over https again.
   * `false` turns it off. Default: one line on the console.
   */
  readonly log?: Log | boolean
}

const OPTIONS = {
  trustProxy: CHECKED_LATER,
  status: withDefault({ accepts: (value) => value === 403 || value === 426, text: '403 or 426' }, 403),
  onError: FUNCTION,
  log: LOG,
} satisfies OptionTable<RequireHttpsOptions>

/**
 * Standalone middleware that refuses cleartext requests before their credentials are read (RFC 9110 §4.2.2).
 *
 * Requests from this machine without forwarding fields pass, so that development just works.
 * @returns a handler for `http.createServer`, Express and Connect; a request that passes goes on to `next`
 * @throws TypeError for an option that does not exist or a proxy that is not an address
 * @example
 * app.use(requireHttps({ trustProxy: '10.0.0.0/8' }))
 */
export function requireHttps(options: RequireHttpsOptions = {}): Handler {
  const { trustProxy, status, onError, log } = resolveOptions('requireHttps', options, OPTIONS)
  const report = { log: createLog(log), remedy: 'do without requireHttps' }
  const { step } = createHttpsCheck(trustProxy, report, status)
  const findAddress = createAddressFinder(trustProxy)
  return createHandler({
    role: 'guard',
    run(exchange) {
      // For the middleware behind: a guard counts wrong passwords by the address of the client.
      if (findAddress !== undefined) exchange.findAddress = findAddress
      return step(exchange)
    },
    onError,
    forwardErrors: true,
  })
}
