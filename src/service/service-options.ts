import type { Authorize } from '../actions/route.ts'
import { readLimits } from '../body-types/limits.ts'
import type { BodyLimits } from '../body-types/types.ts'
import type { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import type { ErrorHook } from '../core/node-handler.ts'
import { checkValues } from '../core/option-values.ts'
import { readOptions } from '../core/options.ts'
import type { TrustProxy } from '../core/peer.ts'
import type { Reply } from '../core/reply.ts'
import type { AuthOptions } from '../handlers/auth.ts'
import type { CorsOptions } from '../handlers/preflight.ts'
import { createDefaultFormats } from '../patch-formats/default-formats.ts'
import type { PatchFormat } from '../patch-formats/types.ts'
import { OPERATIONS_VALUES, SERVICE_VALUES } from './definition-values.ts'
import type { OperationsOptions } from './operations.ts'
import type { ResourceDefinition } from './resource-definitions.ts'

/** Authentication of a service, and what the principal may do. */
export interface ServiceAuthOptions extends Omit<AuthOptions, 'authorize' | 'onError'> {
  /** Who may do what, where a definition does not say; see {@link Authorize}. Default: everybody everything. */
  readonly authorize?: Authorize
}

export interface ServiceOptions {
  /**
   * Definitions by path pattern. Left out: every path may be written, read, patched and removed, POST creates
   * `path/{id}`, and GET of a path without content of its own lists what lies below it.
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
  /** Proxies whose word on the scheme counts: addresses, CIDR blocks, `'loopback'`, or a function. Default: none. */
  readonly trustProxy?: TrustProxy
  /** Hosts that are served; others get 421 (RFC 9110 §15.5.20). Default: all. */
  readonly allowedHosts?: readonly string[]
  /** Whether X-HTTP-Method-Override turns a POST into PUT, PATCH or DELETE. Default false. */
  readonly methodOverride?: boolean
  /** The longest request target below the mount, in characters; 414 beyond (RFC 9110 §15.5.15). Default 2048. */
  readonly maxTargetLength?: number
  /** Limits on parsed content; see {@link BodyLimits} for the defaults. */
  readonly limits?: Partial<BodyLimits>
  /** Patch formats. Default: JSON Patch and JSON Merge Patch. */
  readonly patchFormats?: readonly PatchFormat[]
  /** Content codings of request content that are accepted and decoded. Default: none. */
  readonly codings?: readonly ('gzip' | 'deflate' | 'br')[]
  /** Cache-Control of successful answers, where a definition does not say. Default `no-cache`. */
  readonly cacheControl?: string
  /** The prefix of Location and Link that clients see. Default: the one that the host mounts the service at. */
  readonly mountPath?: string
  /**
   * Whether the host's mount path has to be spelled exactly as `mountPath`: Express takes `/API` for `/api`, and one
   * resource would have two names. Others are not ours. Default false.
   */
  readonly strictMount?: boolean
  /** Whether a host gets the requests that no definition is for. Default true; false answers them with 404. */
  readonly fallthrough?: boolean
  /** Told of unexpected errors, which clients never see. Default: `console.error`. */
  readonly onError?: ErrorHook
  /** Makes the answer for an error. Default: a problem document (RFC 9457), nothing for 412. */
  readonly formatError?: (error: HttpError, exchange: Exchange) => Reply
  /** `'forward'` gives unexpected errors to the host's `next(error)` instead of answering 500. Default `'answer'`. */
  readonly errors?: 'answer' | 'forward'
  /** How accepted work is done; see {@link OperationsOptions} for the defaults. */
  readonly operations?: OperationsOptions
  /** Milliseconds without progress after which a client that neither sends nor reads is given up. Default 30 000. */
  readonly idleTimeout?: number
  /**
   * For development: called with one line per request that says why it was answered as it was; `true` logs
   * it. Default false.
   */
  readonly explain?: boolean | ((line: string) => void)
  /** The clock, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

const NAMES = [
  ...(['resources', 'cors', 'auth', 'https', 'trustProxy', 'allowedHosts', 'methodOverride'] as const),
  ...([
    'maxTargetLength',
    'limits',
    'patchFormats',
    'codings',
    'cacheControl',
    'mountPath',
    'strictMount',
    'fallthrough',
  ] as const),
  ...(['onError', 'formatError', 'errors', 'operations', 'idleTimeout', 'explain', 'now'] as const),
] as const

/** The options that have no default: left out, they leave something out. */
type Optional = 'resources' | 'cors' | 'auth' | 'trustProxy' | 'allowedHosts' | 'methodOverride' | 'onError'
type WithDefault = 'maxTargetLength' | 'patchFormats' | 'codings' | 'cacheControl' | 'fallthrough' | 'idleTimeout'

/** The options of a service with every default filled in. */
export interface ServiceSettings
  extends Pick<ServiceOptions, Optional | 'formatError' | 'explain'>,
    Required<Pick<ServiceOptions, WithDefault | 'https' | 'now' | 'operations'>> {
  readonly mountPath: string | undefined
  /** The only mount path that counts, if one does. */
  readonly onlyMount: string | undefined
  readonly limits: BodyLimits
  /** Whether unexpected errors are the host's. */
  readonly forwardErrors: boolean
}

/** @throws TypeError for options that do not exist or make no sense */
export function readServiceOptions(given: ServiceOptions | undefined): ServiceSettings {
  const options = readOptions('createResourceService', given, NAMES)
  checkValues('createResourceService', options, SERVICE_VALUES)
  const { maxTargetLength = 2048, idleTimeout = 30_000, mountPath, https = 'required' } = options
  if (!(maxTargetLength > 0)) throw new TypeError('createResourceService needs a positive maxTargetLength.')
  if (!(idleTimeout > 0)) throw new TypeError('createResourceService needs a positive idleTimeout in milliseconds.')
  if (mountPath !== undefined && !/^(?:\/[^/?#\s]+)+$|^$/.test(mountPath)) {
    throw new TypeError('createResourceService needs a mountPath such as "/api", without a slash at the end.')
  }
  if (options.strictMount === true && mountPath === undefined) {
    throw new TypeError('createResourceService needs a mountPath for strictMount to compare with.')
  }
  const limits = readLimits('createResourceService', options.limits)
  return {
    ...options,
    https,
    maxTargetLength,
    idleTimeout,
    mountPath,
    onlyMount: options.strictMount === true ? mountPath : undefined,
    limits,
    patchFormats: options.patchFormats ?? createDefaultFormats(limits.depth),
    codings: options.codings ?? [],
    cacheControl: options.cacheControl ?? 'no-cache',
    fallthrough: options.fallthrough ?? true,
    forwardErrors: options.errors === 'forward',
    operations: readOperationsOptions(options.operations),
    now: options.now ?? Date.now,
  }
}

function readOperationsOptions(given: OperationsOptions | undefined): OperationsOptions {
  const names = ['path', 'concurrency', 'maxAttempts', 'pollInterval', 'queue'] as const
  const options = readOptions('operations', given, names)
  checkValues('operations', options, OPERATIONS_VALUES)
  return options
}
