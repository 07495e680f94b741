import type { IncomingMessage } from 'node:http'
import type { Http2ServerResponse, ServerHttp2Stream } from 'node:http2'
import { Socket } from 'node:net'
import { leadsOut, listReadings, measurePrefix, placeTarget } from '../protocol/path-prefix.ts'
import {
  formatOrigin,
  hasKnownForm,
  isHost,
  normalizeHost,
  parseAuthority,
  parseRequestTarget,
  parseTargetOrigin,
  pathOfTarget,
  toOriginForm,
} from '../protocol/request-line.ts'
import { HttpError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { readField } from './fields.ts'
import { andThen, type MaybePromise, orElse } from './maybe-promise.ts'
import type { HostRequest } from './request-view.ts'

/** Where a host has mounted a handler, as seen from one request. */
export interface Place {
  /** The path prefix of the mount as the client spelled it; empty at the root. */
  readonly mount: string
  /** The request target below the mount, as received, in origin-form: `/users?limit=1`. `*` stays what it is. */
  readonly target: string
  /**
   * Whether the request is below the mount in every reading of its target that counts. Otherwise it is for some programs and
   * not for others; `mount` and `target` are then those around the mount. A guard must not let such a request go on.
   */
  readonly isClear: boolean
}

/** Where the host has mounted the handler that it calls: the end of `originalUrl` that is left in `url`. */
export function findPlace(req: IncomingMessage & HostRequest): Place {
  const { url = '', originalUrl, baseUrl } = req
  const target = toOriginForm(url)
  if (originalUrl === undefined || originalUrl === url) return { mount: '', target, isClear: true }
  const whole = pathOfTarget(originalUrl)
  const path = pathOfTarget(target)
  // "/api" and "/api?x" arrive as "/" and "/?x". Any other URL that is not an end of the original was rewritten.
  const isMountItself = path === '/' && (baseUrl === undefined || (baseUrl !== '' && whole.endsWith(baseUrl)))
  let mount = baseUrl ?? ''
  if (whole.endsWith(path)) mount = whole.slice(0, whole.length - path.length)
  else if (isMountItself) mount = whole
  // Links begin with the mount: "//host" would be the authority of one.
  if (parseRequestTarget(mount || '/') === undefined) mount = baseUrl ?? ''
  // Express 4 takes both slashes of "/api//users" for one when it strips the mount: the second must not get lost, or
  // one resource has two names.
  return mount.endsWith('/')
    ? { mount: mount.slice(0, -1), target: `/${target}`, isClear: true }
    : { mount, target, isClear: true }
}

/**
 * Whether links that begin with the mount lead to what is below it. Hosts match names, as in `/t/:tenant`, against what was
 * received: `..` leads out, and `/\host` to another host (URL Standard, "relative slash state").
 */
export function leadsBack({ mount }: Place): boolean {
  return mount === '' || parseRequestTarget(mount) !== undefined
}

/**
 * The place of a handler that is mounted at a prefix below another place.
 * @param prefix see `placeTarget`
 * @returns `undefined` when the request is outside the prefix in every reading of its target
 */
export function placeBelow(place: Place, prefix: string): Place | undefined {
  if (prefix === '' || !place.isClear) return place
  const { mount, target } = place
  const placement = placeTarget(target, prefix)
  // Dots may lead out of the mount around, and back to the prefix.
  const mayReturn = placement === 'outside' && mount !== '' && leadsOut(listReadings(pathOfTarget(target)))
  if (placement === 'outside' && !mayReturn) return undefined
  if (placement !== 'inside') return { mount, target, isClear: false }
  const length = measurePrefix(pathOfTarget(target), prefix)!
  const rest = target.slice(length)
  return { mount: mount + target.slice(0, length), target: rest.startsWith('/') ? rest : `/${rest}`, isClear: true }
}

/**
 * Whether Host, if there is one, is well-formed. Programs that read `http://${host}${target}` as a URL, as those on Hono do, may
 * find a path in any other: in `host/api/x?`. Over HTTP/2 Node refuses a malformed `:authority`.
 */
export function hasWellFormedHost({ headers }: IncomingMessage): boolean {
  const host = readField(headers, 'host')
  return host === undefined || isHost(host)
}

/** Whether HTTP/2 carries a request. The version alone does not tell: over HTTP/1 a client may write what it likes. */
export function isHttp2(req: IncomingMessage): boolean {
  return req.httpVersionMajor === 2 && 'stream' in req
}

/** The stream of an HTTP/2 exchange. */
export function streamOf({ res }: Exchange): ServerHttp2Stream {
  return (res as unknown as Http2ServerResponse).stream
}

/** The method of a request as the client sent it: `methodOverride`, or a middleware of the host, may have named another. */
export function sentMethod(req: IncomingMessage & HostRequest): string {
  return req.originalMethod ?? req.method ?? ''
}

/** The target of a request as the client sent it, whatever the host has made of it since. */
export function sentTarget(req: IncomingMessage & HostRequest): string {
  return req.originalUrl ?? req.url ?? ''
}

/** The authority that a request is for, as received: `:authority`, that of an absolute-form target, or Host. */
export function readAuthority(exchange: Exchange): string | undefined {
  // An absolute-form target overrides Host (RFC 9112 §3.2.2).
  const authority = exchange.isHttp2
    ? exchange.field(':authority')
    : parseTargetOrigin(sentTarget(exchange.req))?.authority
  return authority ?? exchange.field('host')
}

/** The scheme of the target in lower case (RFC 3986 §3.1), where an absolute-form target or `:scheme` has it. */
export function readScheme(exchange: Exchange): string | undefined {
  if (exchange.isHttp2) return exchange.field(':scheme')?.toLowerCase()
  return parseTargetOrigin(sentTarget(exchange.req))?.scheme
}

/** Whether a target is of none of the forms that requests for resources have, or in absolute-form for no http host. */
export function isTargetFormWrong(exchange: Exchange): boolean {
  const target = sentTarget(exchange.req)
  const isPlain = target.charCodeAt(0) === 0x2f || target === '*'
  // RFC 9113 §8.3.1: a scheme of another protocol is for a gateway to it.
  if (exchange.isHttp2) return !isPlain || !/^https?$/.test(readScheme(exchange) ?? 'http')
  if (isPlain) return false
  const origin = parseTargetOrigin(target)
  return origin === undefined || !/^https?$/.test(origin.scheme) || !isHost(origin.authority)
}

/** Looks for a fault in Host and `:authority`. @returns a sentence for the client; `undefined` without a fault */
export function findHostFault(exchange: Exchange): string | undefined {
  const host = exchange.field('host')
  if (host !== undefined && !isHost(host)) return 'Host is malformed.'
  if (!exchange.isHttp2) return host === undefined && needsHost(exchange.req) ? 'Host is missing.' : undefined
  const authority = exchange.field(':authority')
  if (authority === undefined) return undefined
  if (!isHost(authority)) return ':authority is malformed.'
  const scheme = readScheme(exchange) ?? 'http'
  // RFC 9113 §8.3.1
  const isSame = host === undefined || normalizeHost(host, scheme) === normalizeHost(authority, scheme)
  return isSame ? undefined : 'Host and :authority differ.'
}

/**
 * Whether a message has to have Host (RFC 9112 §3.2). Servers of `node:http2` with `allowHTTP1` leave that to us. Workers make
 * requests that were no messages of HTTP/1.1.
 */
function needsHost({ httpVersionMinor, socket }: IncomingMessage): boolean {
  return httpVersionMinor > 0 && socket instanceof Socket
}

/**
 * Whether `origin` is the origin of the request's own target: scheme, host and port.
 * @param transport `https` when the request is known to have come so. Otherwise a proxy may have ended TLS without
 * telling, and the same host counts with either scheme.
 */
export function isOwnOrigin(exchange: Exchange, origin: string, transport: 'https' | 'unknown'): boolean {
  const text = readAuthority(exchange)
  const authority = text === undefined ? undefined : parseAuthority(text)
  if (authority === undefined) return false
  if (origin === formatOrigin('https', authority)) return true
  return transport === 'unknown' && origin === formatOrigin('http', authority)
}

/** What is left in a decoded path that programs read differently: an escape that was escaped, and `;` parameters. */
const AMBIGUOUS = /%[0-9a-f]{2}|;/i

/**
 * Puts path and query on the exchange of a middleware. A target that has no path of one reading, such as
 * `/@scope%2Fname`, is the host's to judge: its path is what was received, and `readings` what programs may take it
 * for.
 * @throws HttpError 400 for a target that may or may not be below the mount of the middleware, or leads out of it; for `*`
 *   with another method than OPTIONS (RFC 9112 §3.2.4); for a malformed Host
 */
export function readTarget(exchange: Exchange): void {
  const { place } = exchange
  const { target } = place
  if (target === '*' && exchange.method === 'OPTIONS') {
    exchange.path = '*'
    exchange.queryText = ''
    exchange.readings = undefined
    return
  }
  const parsed = parseRequestTarget(target)
  const path = parsed?.path ?? pathOfTarget(target)
  const readings = parsed === undefined || AMBIGUOUS.test(path) ? listReadings(path) : [path]
  // A proxy behind may put a path of its own before the target, and at the root too dots lead out of what was asked about.
  const isLeft = readings?.length !== 1 && leadsOut(readings)
  const isUnclear = !place.isClear || !hasKnownForm(target) || !hasWellFormedHost(exchange.req)
  if (isUnclear || readings === undefined || isLeft) {
    throw new HttpError(400, 'ERR_MALFORMED_TARGET', { detail: 'The request target is malformed.' })
  }
  exchange.path = path
  exchange.queryText = parsed?.query ?? target.slice(path.length + 1)
  exchange.readings = readings.length > 1 ? readings : undefined
}

/**
 * Asks about the path of a request: where programs read it differently, about every reading, until an answer counts.
 * @param ask reads `exchange.path`
 * @param counts whether the other readings cannot change the answer
 * @returns the answer that counts, or the last one
 */
export function askEachReading<Answer>(
  exchange: Exchange,
  ask: () => MaybePromise<Answer>,
  counts: (answer: Answer) => boolean,
): MaybePromise<Answer> {
  const { path, readings } = exchange
  if (readings === undefined) return ask()
  const askFrom = (index: number): MaybePromise<Answer> => {
    exchange.path = readings[index]!
    const asked = orElse(ask, (error) => {
      exchange.path = path
      throw error
    })
    return andThen(asked, (answer) => {
      exchange.path = path
      return counts(answer) || index === readings.length - 1 ? answer : askFrom(index + 1)
    })
  }
  return askFrom(0)
}
