import type { ResourceExchange } from '../actions/resource-exchange.ts'
import { checkMessage } from '../actions/target-steps.ts'
import type { Handler, Step } from '../core/handler.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { changeOptions } from '../core/options.ts'
import type { Reply } from '../core/reply.ts'
import { createCrossSiteCheck, createHostCheck, createHttpsCheck } from '../handlers/access-checks.ts'
import { createAuthentication } from '../handlers/authentication.ts'
import { createCors } from '../handlers/cors.ts'
import type { CorsOptions } from '../handlers/cors-options.ts'
import { METHOD_OVERRIDE_FIELD, overrideMethod } from '../handlers/override-method.ts'
import type { MetadataEndpoint } from '../handlers/resource-metadata.ts'
import { DEFAULT_ALLOWED_HEADERS, DEFAULT_EXPOSED_HEADERS } from '../protocol/cors.ts'
import type { Method } from '../protocol/request-line.ts'
import type { ServiceSettings } from './service-options.ts'

const NO_METHODS: readonly Method[] = []

type OptionalStep = Step<ResourceExchange> | undefined

/** The steps that refuse requests by origin, host, scheme and credentials; `undefined` where an option leaves one out. */
export interface Access {
  /** Whether a request came by https, over TLS or over TLS to a trusted proxy. */
  isSecure(exchange: ResourceExchange): boolean
  /** Serves the metadata of the protected resource. */
  readonly answerMetadata: OptionalStep
  /** See `Handler.isWellKnown`. */
  readonly isWellKnown: Handler['isWellKnown']
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
  const transport = createHttpsCheck(trustProxy, { log: settings.log, remedy: "set https: 'optional'" })
  const cors = settings.cors === undefined ? undefined : createCors(completeCors(settings.cors, settings))
  const auth = authentication === undefined ? undefined : createAuthentication(authentication)
  const stopWatching = auth?.watch(settings.log)

  function applyCors(exchange: ResourceExchange): MaybePromise<Reply | undefined> {
    const { route, method } = exchange
    if (route !== undefined) return cors!.apply(exchange, route.methods)
    // Scripts shall see that there is nothing; no preflight is answered for it.
    return method === 'OPTIONS' ? undefined : cors!.apply(exchange, NO_METHODS)
  }

  return {
    isSecure: transport.isSecure,
    answerMetadata: auth?.metadata && createMetadataStep(auth.metadata),
    isWellKnown: auth?.metadata?.isWellKnown,
    checkHost: allowedHosts === undefined ? undefined : createHostCheck(allowedHosts),
    checkTransport: settings.https === 'optional' ? undefined : transport.step,
    overrideMethod: settings.methodOverride ? overrideMethod : undefined,
    applyCors: cors === undefined ? undefined : applyCors,
    authenticate: auth && ((exchange) => auth.authenticate(exchange, exchange.route.requiresCredentials)),
    checkCrossSite: createCrossSiteCheck(transport.isSecure, cors),
    close: () => stopWatching?.(),
  }
}

/** The target is checked first: a request that programs delimit differently is refused wherever it goes. */
function createMetadataStep({ covers, answer }: MetadataEndpoint): Step<ResourceExchange> {
  return function answerMetadata(exchange) {
    if (!covers(exchange)) return undefined
    checkMessage(exchange)
    return answer(exchange)
  }
}

/**
 * Scripts may name the method that a POST stands for and the coding of their content, read which digests are required, see that
 * an answer is repeated, and read what is said of queries.
 */
function completeCors(
  cors: CorsOptions,
  { methodOverride, contentCodings, resources = {} }: ServiceSettings,
): CorsOptions {
  const allowed = [
    ...(methodOverride ? [METHOD_OVERRIDE_FIELD] : []),
    ...(contentCodings.length > 0 ? ['Content-Encoding'] : []),
  ]
  const needsDigests = Object.values(resources).some(({ options }) => options.digests === 'required')
  const repeats = Object.values(resources).some(({ options }) => options.idempotency !== undefined)
  const lists = Object.values(resources).flatMap(({ kind, options }) => (kind === 'collection' ? [options] : []))
  const exposed = [
    ...(needsDigests ? ['Want-Content-Digest'] : []),
    ...(repeats ? ['Idempotency-Replayed'] : []),
    ...(lists.some(({ count }) => count === true) ? ['X-Total-Count'] : []),
    ...(lists.some(({ query, count }) => query !== undefined || count === true) ? ['Accept-Query'] : []),
  ]
  return changeOptions(cors, {
    ...(allowed.length > 0 &&
      cors.allowedHeaders === undefined && { allowedHeaders: [...DEFAULT_ALLOWED_HEADERS, ...allowed] }),
    ...(exposed.length > 0 &&
      cors.exposedHeaders === undefined && { exposedHeaders: [...DEFAULT_EXPOSED_HEADERS, ...exposed] }),
  })
}
