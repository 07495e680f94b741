import type { ErrorHook } from '../core/failures.ts'
import type { Handler } from '../core/handler.ts'
import { atOnce } from '../core/maybe-promise.ts'
import { createHandler } from '../core/node-handler.ts'
import { either, FUNCTION, listOf, oneOf, withDefault } from '../core/option-values.ts'
import { type OptionTable, omitOptions, resolveOptions } from '../core/options.ts'
import { readTarget } from '../core/place.ts'
import type { RequestView } from '../core/request-view.ts'
import { METHODS_AND_QUERY, type Method } from '../protocol/request-line.ts'
import { createCors } from './cors.ts'
import { CORS_OPTIONS, type CorsOptions } from './cors-options.ts'

export type { CorsOptions, Origins } from './cors-options.ts'

/** Options of `preflight`. It needs `origins`. */
export interface PreflightOptions extends CorsOptions {
  /** The methods of the resources behind it; OPTIONS may be left out. Default: all methods. */
  readonly methods?: readonly Method[] | ((request: RequestView) => readonly Method[])
  /** Called with unexpected errors. Default: `console.error`. */
  readonly onError?: ErrorHook
}

const OPTIONS = {
  ...CORS_OPTIONS,
  methods: withDefault(either(listOf(oneOf(...METHODS_AND_QUERY), 1), FUNCTION), METHODS_AND_QUERY),
  onError: FUNCTION,
} satisfies OptionTable<PreflightOptions>

/**
 * Standalone middleware that answers preflights and adds the CORS fields to every other response, errors included.
 * Mount it before authentication and routes.
 * @returns a handler for Express and Connect; everything but a preflight goes on to `next`
 * @throws TypeError for `*` with credentials, for an origin that no browser sends, and for options that do not exist
 * @example
 * app.use('/api', preflight({ origins: ['https://app.example'], methods: ['GET', 'PUT'] }))
 */
export function preflight(options: PreflightOptions): Handler {
  const read = resolveOptions('preflight', options, OPTIONS)
  const { methods, onError } = read
  const cors = createCors(omitOptions(read, 'methods', 'onError'))
  return createHandler({
    role: 'guard',
    methods: ['OPTIONS'],
    run(exchange) {
      readTarget(exchange)
      return cors.apply(exchange, typeof methods === 'function' ? atOnce(methods(exchange)) : methods)
    },
    onError,
    forwardErrors: true,
  })
}
