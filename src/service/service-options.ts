import type { Authorize } from '../actions/hook-types.ts'
import { type BodyLimits, readLimits } from '../body-types/limits.ts'
import type { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import type { ErrorHook } from '../core/failures.ts'
import { createLog, type Log } from '../core/operator-log.ts'
import {
  BOOLEAN,
  CHECKED_LATER,
  CLOCK,
  describeValue,
  either,
  FUNCTION,
  LOG,
  listOf,
  oneOf,
  PATCH_FORMATS,
  PATH,
  POSITIVE,
  RECORD,
  recordOf,
  required,
  shapedAs,
  TEXT,
  textLike,
  withDefault,
  writtenAs,
} from '../core/option-values.ts'
import { type CompleteOptions, completeOptions, type OptionTable, resolveOptions } from '../core/options.ts'
import { type AddressFinder, createAddressFinder, type TrustProxy } from '../core/peer.ts'
import type { Reply } from '../core/reply.ts'
import {
  AUTHENTICATION_OPTIONS,
  type AuthenticationOptions,
  type AuthenticationSettings,
  readAuth,
} from '../handlers/authentication-options.ts'
import { CORS_OPTIONS, type CorsOptions } from '../handlers/cors-options.ts'
import { OPENAPI_OPTIONS, type OpenApiOptions } from '../openapi/inputs.ts'
import { createDefaultFormats, type PatchFormat } from '../patch-formats/patch-format.ts'
import { type OperationsOptions, type OperationsSettings, readOperationsOptions } from '../work/operations.ts'
import type { ResourceDefinition } from './resource-definitions.ts'
import { CACHE_CONTROL } from './resource-options.ts'

/** The description of a service, and where it is served. */
export interface ServedDescription extends Partial<OpenApiOptions> {
  /** The path below the mount, such as `/openapi.json`. */
  readonly path: string
}

/** Authentication of a service, and what the principal may do. */
export interface ServiceAuthOptions extends AuthenticationOptions {
  /** Decides what a principal may do, where a definition has no `authorize`; see {@link Authorize}. Default: everything. */
  readonly authorize?: Authorize
}

/** Options of `createResourceService`. All have defaults. */
export interface ServiceOptions {
  /**
   * Definitions by path pattern. Without them, every path can be written, read, patched and deleted. POST creates
   * `path/{id}`, and GET of a path without content lists the resources below it, each as `{ id, href, type, size }`.
   */
  readonly resources?: Readonly<Record<string, ResourceDefinition>>
  /** Which other origins may use the service from a browser. Default: none. */
  readonly cors?: CorsOptions
  /** Authentication and authorisation. Default: none. */
  readonly auth?: ServiceAuthOptions
  /**
   * Cleartext requests are refused with 403 before credentials are read, except from this machine without forwarding
   * fields. `'optional'` lets them pass. Default `'required'`.
   */
  readonly https?: 'required' | 'optional'
  /**
   * Proxies whose forwarding fields give the scheme and the address of the client: addresses, CIDR blocks, `'loopback'`,
   * or a function of the address of the peer. Default: none.
   */
  readonly trustProxy?: TrustProxy
  /** Hosts that are served; others get 421 (RFC 9110 §15.5.20). Default: all. */
  readonly allowedHosts?: readonly string[]
  /** Whether X-HTTP-Method-Override turns a POST into PUT, PATCH or DELETE. Default false. */
  readonly methodOverride?: boolean
  /** The longest request target below the mount, in characters; 414 beyond (RFC 9110 §15.5.15). Default 2048. */
  readonly maxTargetLength?: number
  /**
   * Where the OpenAPI description of the service is served, or `{ path, info, servers, version }`; see {@link OpenApiOptions}.
   * It needs the credentials that other reads need. Default: it is not served.
   */
  readonly openapi?: string | ServedDescription
  /** Limits on parsed content; see {@link BodyLimits} for the defaults. */
  readonly limits?: Partial<BodyLimits>
  /**
   * Patch formats. One that is named has limits of its own: where `limits.depth` is not 100, give it the same `maxDepth`, or a
   * patch nests a document so deep that it cannot be sent whole. Default: JSON Patch and JSON Merge Patch, by the `limits`.
   */
  readonly patchFormats?: readonly PatchFormat[]
  /** Content codings of request content that are accepted and decoded. Default: none. */
  readonly contentCodings?: readonly ('gzip' | 'deflate' | 'br')[]
  /** Cache-Control of successful responses, where a definition does not say. Default `no-cache`. */
  readonly cacheControl?: string
  /** The prefix of Location and Link that clients see. Default: the one that the host mounts the service at. */
  readonly mountPath?: string
  /**
   * Whether the host's mount path has to be spelled exactly as `mountPath`: Express takes `/API` for `/api`, and one
   * resource would have two names. Other spellings are unmatched. Default false.
   */
  readonly strictMount?: boolean
  /** Whether a host gets the requests that no definition is for. Default true; false answers them with 404, or 400 for a malformed target. */
  readonly fallthrough?: boolean
  /** Called with unexpected errors, which clients never see. Default: `console.error`. */
  readonly onError?: ErrorHook
  /**
   * Receives `{ level, part, state, message, error }` once when the store, the keys of tokens or the queue of accepted work
   * stops working or cleartext is refused, and once when it works again; also while existing items are indexed. A function
   * that throws does not fail a request. `false` turns reports off. Default: one line on the console.
   */
  readonly log?: Log | boolean
  /**
   * Makes the response for an error. Text is sent as UTF-8. Content-Length and `Cache-Control: no-store` are added, and
   * with the same status the fields of `error.headers` (WWW-Authenticate, Allow, Retry-After), unless the response sets
   * them. Default: a problem document (RFC 9457); 412 has no content.
   */
  readonly formatError?: (error: HttpError, exchange: Exchange) => Reply
  /** `'forward'` gives unexpected errors to the host's `next(error)` instead of answering 500. Default `'respond'`. */
  readonly unexpectedErrors?: 'respond' | 'forward'
  /** How accepted work is done; see {@link OperationsOptions} for the defaults. */
  readonly operations?: OperationsOptions
  /**
   * Milliseconds after which a client that neither sends nor reads is disconnected. While a response is sent, the time that
   * its unread bytes take at 15 kB a second is added, 105 s at most. Default 30 000.
   */
  readonly idleTimeout?: number
  /** For development: called with a line for each request that is answered, with the reason. `true` logs it. Default false. */
  readonly explain?: boolean | ((line: string) => void)
  /** The clock, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

const MOUNT_PATH = textLike(
  /^(?:\/[!"$-.0->@-~]+)+$|^$/,
  'a path such as "/api", as it is sent, with escapes and without a slash at the end',
)

const DEFINITION = shapedAs({ kind: 'string', options: 'object' })

const SERVICE_OPTIONS = {
  resources: writtenAs(recordOf(DEFINITION), "an object of paths and definitions, such as { '/users': collection() }"),
  cors: CHECKED_LATER,
  auth: CHECKED_LATER,
  https: withDefault(oneOf('required', 'optional'), 'required'),
  trustProxy: CHECKED_LATER,
  allowedHosts: CHECKED_LATER,
  methodOverride: withDefault(BOOLEAN, false),
  maxTargetLength: withDefault(POSITIVE, 2048),
  openapi: writtenAs(either(TEXT, RECORD), "a path such as '/openapi.json', or { path, info, servers, version }"),
  limits: CHECKED_LATER,
  patchFormats: PATCH_FORMATS,
  contentCodings: withDefault(listOf(oneOf('gzip', 'deflate', 'br')), []),
  cacheControl: CACHE_CONTROL,
  mountPath: MOUNT_PATH,
  strictMount: withDefault(BOOLEAN, false),
  fallthrough: withDefault(BOOLEAN, true),
  onError: FUNCTION,
  log: LOG,
  formatError: FUNCTION,
  unexpectedErrors: withDefault(oneOf('respond', 'forward'), 'respond'),
  operations: CHECKED_LATER,
  idleTimeout: withDefault(POSITIVE, 30_000),
  explain: withDefault(either(BOOLEAN, FUNCTION), false),
  now: CLOCK,
} satisfies OptionTable<ServiceOptions>

const AUTH_OPTIONS: OptionTable<ServiceAuthOptions> = { ...AUTHENTICATION_OPTIONS, authorize: FUNCTION }
const SERVED_OPTIONS: OptionTable<ServedDescription> = {
  ...OPENAPI_OPTIONS,
  path: required(writtenAs(PATH, "a path, such as '/openapi.json'")),
}

/** The options of a service with every default filled in. */
export interface ServiceSettings
  extends CompleteOptions<
    ServiceOptions,
    | 'https'
    | 'methodOverride'
    | 'maxTargetLength'
    | 'contentCodings'
    | 'strictMount'
    | 'fallthrough'
    | 'unexpectedErrors'
    | 'idleTimeout'
    | 'explain'
    | 'now'
  > {
  /** How the sender of a request is found; `undefined` where a service does not ask. */
  readonly authentication: AuthenticationSettings | undefined
  readonly authorize: Authorize | undefined
  readonly findAddress: AddressFinder | undefined
  readonly openapi: ServedDescription | undefined
  readonly limits: BodyLimits
  readonly patchFormats: readonly PatchFormat[]
  /** The only mount path that counts, if one does. */
  readonly onlyMount: string | undefined
  readonly log: Log
  /** Whether unexpected errors are the host's: asked for, so that its `next` takes them. */
  readonly forwardErrors: false | 'always'
  readonly operations: OperationsSettings
}

/** @throws TypeError for options that do not exist or make no sense */
export function readServiceOptions(given: ServiceOptions | undefined): ServiceSettings {
  checkDefinitions(given?.resources)
  const options = resolveOptions('createResourceService', given, SERVICE_OPTIONS)
  if (options.strictMount && options.mountPath === undefined) {
    throw new TypeError('createResourceService needs a mountPath for strictMount to compare with.')
  }
  const limits = readLimits('createResourceService', options.limits)
  const auth = options.auth === undefined ? undefined : readAuth(options.auth, AUTH_OPTIONS)
  return Object.freeze({
    ...completeOptions(options, SERVICE_OPTIONS),
    cors: options.cors === undefined ? undefined : resolveOptions('cors', options.cors, CORS_OPTIONS),
    authentication: auth,
    authorize: auth?.authorize,
    findAddress: createAddressFinder(options.trustProxy),
    openapi: readServed(options.openapi),
    limits,
    patchFormats: options.patchFormats ?? createDefaultFormats(limits),
    onlyMount: options.strictMount ? options.mountPath : undefined,
    log: createLog(options.log),
    forwardErrors: options.unexpectedErrors === 'forward' && 'always',
    operations: readOperationsOptions(options.operations),
  })
}

/** @throws TypeError that names the path, and the call that was left out */
function checkDefinitions(resources: ServiceOptions['resources']): void {
  if (typeof resources !== 'object' || resources === null || Array.isArray(resources)) return
  for (const [pattern, value] of Object.entries(resources) as [string, unknown][]) {
    if (DEFINITION.accepts(value)) continue
    const call = typeof value === 'function' && /^\w+$/.test(value.name) ? `${value.name}()` : 'collection()'
    const wrong = typeof value === 'function' ? 'call it' : 'a definition is made by a call'
    const kind = typeof value === 'function' ? 'a function' : describeValue(value)
    throw new TypeError(`createResourceService has ${kind} at "${pattern}": ${wrong}, as in ${call}.`)
  }
}

function readServed(given: ServiceOptions['openapi']): ServedDescription | undefined {
  if (given === undefined) return undefined
  return resolveOptions('openapi', typeof given === 'string' ? { path: given } : given, SERVED_OPTIONS)
}
