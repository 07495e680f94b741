import type { ResourceExchange } from '../actions/resource-exchange.ts'
import type { MaybePromise, Step } from '../core/handler.ts'
import { changeOptions } from '../core/options.ts'
import type { Reply } from '../core/reply.ts'
import { createHostCheck } from '../handlers/allowed-hosts.ts'
import { createAuthentication } from '../handlers/auth.ts'
import { createCrossSiteCheck } from '../handlers/cross-site.ts'
import { METHOD_OVERRIDE_FIELD, overrideMethod } from '../handlers/method-override.ts'
import { type CorsOptions, createCors } from '../handlers/preflight.ts'
import { createHttpsCheck } from '../handlers/require-https.ts'
import { DEFAULT_ALLOWED_HEADERS, DEFAULT_EXPOSED_HEADERS } from '../protocol/cors.ts'
import type { Method } from '../protocol/methods.ts'
import type { ServiceSettings } from './service-options.ts'

const NO_METHODS: readonly Method[] = []

type OptionalStep = Step<ResourceExchange> | undefined

/** The steps that keep out whoever has no business here; `undefined` where an option leaves one out. */
export interface Access {
  /** Whether a request came by https, over TLS or over TLS to a trusted proxy. */
  isSecure(exchange: ResourceExchange): boolean
  readonly checkHost: OptionalStep
  readonly checkTransport: OptionalStep
  readonly overrideMethod: OptionalStep
  readonly applyCors: OptionalStep
  readonly authenticate: OptionalStep
  readonly checkCrossSite: Step<ResourceExchange>
  /** Ends the reports on what the steps depend on. */
  close(): void
}

export function createAccess(settings: ServiceSettings): Access {
  const { allowedHosts, trustProxy, authentication } = settings
  const transport = createHttpsCheck(
    { mode: settings.https, ...(trustProxy === undefined ? {} : { trustProxy }) },
    { log: settings.log, remedy: "set https: 'optional'" },
  )
  const cors = settings.cors === undefined ? undefined : createCors(completeCors(settings.cors, settings))
  const auth = authentication === undefined ? undefined : createAuthentication(authentication)
  const stopWatching = auth?.watch(settings.log)

  function applyCors(exchange: ResourceExchange): MaybePromise<Reply | undefined> {
    const { route, method } = exchange
    if (route !== undefined) return cors!.apply(exchange, route.methods)
    // Scripts shall see that there is nothing; no preflight is answered for it.
    return method === 'OPTIONS' ? undefined : cors!.apply(exchange, NO_METHODS)
  }

  function authenticate(exchange: ResourceExchange): MaybePromise<undefined> {
    return auth!.authenticate(exchange, exchange.route.requiresCredentials)
  }

  return {
    isSecure: transport.isSecure,
    checkHost: allowedHosts === undefined ? undefined : createHostCheck(allowedHosts),
    checkTransport: settings.https === 'optional' ? undefined : transport.step,
    overrideMethod: settings.methodOverride ? overrideMethod : undefined,
    applyCors: cors === undefined ? undefined : applyCors,
    authenticate: auth === undefined ? undefined : authenticate,
    checkCrossSite: createCrossSiteCheck({
      isSecure: transport.isSecure,
      ...(cors === undefined ? {} : { allows: cors.allows }),
    }),
    close: () => stopWatching?.(),
  }
}

/** Scripts may name the field that stands for a method, and see that an answer is repeated, where that can be. */
function completeCors(cors: CorsOptions, { methodOverride, resources }: ServiceSettings): CorsOptions {
  const allowedHeaders =
    methodOverride && cors.allowedHeaders === undefined
      ? { allowedHeaders: [...DEFAULT_ALLOWED_HEADERS, METHOD_OVERRIDE_FIELD] }
      : {}
  const repeats = Object.values(resources ?? {}).some(({ options }) => options.idempotency !== undefined)
  const exposedHeaders =
    repeats && cors.exposedHeaders === undefined
      ? { exposedHeaders: [...DEFAULT_EXPOSED_HEADERS, 'Idempotency-Replayed'] }
      : {}
  return changeOptions(cors, { ...allowedHeaders, ...exposedHeaders })
}
