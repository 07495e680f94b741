import { refuse } from '../core/diagnostics.ts'
import { HttpError, malformedField } from '../core/errors.ts'
import { createRepeatedFieldSearch } from '../core/fields.ts'
import type { Step } from '../core/handler.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { PASS } from '../core/node-handler.ts'
import { findHostFault, isTargetFormWrong, leadsBack, readScheme } from '../core/place.ts'
import { emptyReply } from '../core/reply.ts'
import { addPending } from '../core/write-head.ts'
import {
  formatAllow,
  isSafeMethod,
  METHODS,
  METHODS_AND_QUERY,
  type Method,
  parseRequestTarget,
} from '../protocol/request-line.ts'
import { isResource, splitPath } from '../stores/rules.ts'
import { mayShow } from './entry-rights.ts'
import { ReadUntilLeft, type ResourceExchange, WHOLE } from './resource-exchange.ts'
import type { Route } from './route.ts'
import type { RouteTable } from './route-table.ts'

/** Node 20 drops fields beyond about a thousand without a word; a trailing If-Match would be gone. */
const MAX_RAW_HEADERS = 2000

/** Fields that may be sent once only: recipients differ about which of two counts (RFC 9110 §5.3). */
const findRepeatedField = createRepeatedFieldSearch('host', 'content-type', 'content-length', 'authorization', 'origin')

/**
 * 414, 400, 431, 505, 501 and 421: what is wrong with the target, or with the message around it.
 * @param maxTargetLength characters below the mount
 */
export function createTargetStep(
  maxTargetLength: number,
  isSecure: (exchange: ResourceExchange) => boolean,
): Step<ResourceExchange> {
  return function checkTarget(exchange) {
    const { length } = exchange.place.target
    // RFC 9110 §15.5.15
    if (length > maxTargetLength) refuse(exchange, `${length} characters`, new HttpError(414, 'ERR_TARGET_TOO_LONG'))
    checkMessage(exchange)
    // RFC 9110 §7.4, unless a trusted proxy vouches for it.
    if (readScheme(exchange) !== 'https' || isSecure(exchange)) return undefined
    throw new HttpError(421, 'ERR_MISDIRECTED', { detail: 'The target is https, and the connection is not encrypted.' })
  }
}

/** 400 for a target or message that is malformed; 431 for more fields than Node can be trusted to pass on. */
export function checkMessage(exchange: ResourceExchange): void {
  if (exchange.isMalformed) {
    throw new HttpError(400, 'ERR_MALFORMED_TARGET', { detail: 'The request target is malformed.' })
  }
  const { req } = exchange
  // Node takes a request line that ends in HTTP/2.0 (RFC 9110 §15.6.6). A request that no connection carried has text or nothing.
  if (!exchange.isHttp2 && req.httpVersionMajor !== 1 && typeof req.httpVersionMajor === 'number') {
    throw new HttpError(505, 'ERR_VERSION_NOT_SUPPORTED', { detail: 'This is a server of HTTP/1.1.', expose: true })
  }
  if (req.rawHeaders.length >= MAX_RAW_HEADERS) {
    throw new HttpError(431, 'ERR_FIELDS_TOO_LARGE', { detail: 'The request has too many fields.' })
  }
  checkTransferCoding(exchange)
  const repeated = findRepeatedField(req)
  if (repeated !== undefined) throw malformedField(`The field ${repeated} was sent more than once.`)
  const fault = findHostFault(exchange)
  if (fault !== undefined) throw malformedField(fault)
}

/** 400 where it is unclear how long the content is, 501 where Node has not decoded it. */
function checkTransferCoding(exchange: ResourceExchange): void {
  const coding = exchange.field('transfer-encoding')
  if (coding === undefined) return
  if (/,[ \t]*chunked$/i.test(coding)) {
    // Node takes the chunks apart and leaves the rest coded (RFC 9112 §6.1).
    throw new HttpError(501, 'ERR_UNSUPPORTED_CODING', {
      detail: 'Only chunked is taken as transfer coding.',
      expose: true,
    })
  }
  const isOld = !exchange.isHttp2 && exchange.req.httpVersionMinor === 0
  if (!isOld && coding.trim() !== '' && exchange.field('content-length') === undefined) return
  // What follows may be content or another request: programs differ (RFC 9112 §6.1, §11.2).
  if (!exchange.isHttp2) exchange.res.shouldKeepAlive = false
  throw malformedField(
    isOld ? 'HTTP/1.0 has no Transfer-Encoding.' : 'Transfer-Encoding is empty, or beside Content-Length.',
  )
}

/** What becomes of requests for other paths, and the one mount of the service, where it has only one. */
interface Fallthrough {
  readonly fallthrough: boolean
  readonly onlyMount: string | undefined
}

/** Reads the target and finds its route. Without a route, the request goes on to the host, if there is one. */
export function createRouteStep(table: RouteTable, { fallthrough, onlyMount }: Fallthrough): Step<ResourceExchange> {
  return function findRoute(exchange) {
    const { place } = exchange
    if (!place.isClear) {
      exchange.isMalformed = isTargetFormWrong(exchange)
      exchange.path = pathForLog(place.target)
      return exchange.canPass ? PASS : undefined
    }
    const target = isTargetFormWrong(exchange) ? undefined : parseRequestTarget(place.target)
    if (target === undefined) {
      exchange.isMalformed = place.target !== '*' || exchange.method !== 'OPTIONS'
      exchange.path = pathForLog(place.target)
    } else {
      exchange.path = target.path
      exchange.queryText = target.query
      const isMisspelt = onlyMount === undefined ? !leadsBack(place) : place.mount !== onlyMount
      if (!isMisspelt) exchange.route = table.find(target.path)!
      if (exchange.route !== undefined) {
        const { storePath, documentation } = exchange.route
        exchange.storePath = storePath ?? target.path
        // RFC 9745 §2, RFC 8594 §3: on every answer of the resource, errors included.
        if (documentation.fields.length > 0) addPending(exchange, documentation.fields)
      }
    }
    const isOurs = exchange.route !== undefined || place.target === '*' || (table.isOpen && exchange.isMalformed)
    return isOurs || !fallthrough || !exchange.canPass ? undefined : PASS
  }
}

/** The path that a log shows for a malformed target. A target of an unknown form may hold a password, and shows none. */
function pathForLog(target: string): string {
  return /^[/*][^?]*/.exec(target)?.[0] ?? ''
}

/**
 * 501 for a method that no resource here has (RFC 9110 §15.6.2); 204 for OPTIONS, of `*` about the server as a whole; 404 for a
 * path that names nothing; 405 with Allow (§15.5.6).
 */
export function createMethodStep(table: RouteTable): Step<ResourceExchange> {
  const methods = table.hasQuery ? METHODS_AND_QUERY : METHODS
  const known: ReadonlySet<string> = new Set(methods)
  return function checkMethod(exchange) {
    const { method, route, place } = exchange
    if (!known.has(method)) refuse(exchange, 'unknown method', new HttpError(501, 'ERR_METHOD_NOT_IMPLEMENTED'))
    if (route === undefined) {
      if (place.target === '*' && place.isClear) {
        return emptyReply(204, ['Allow', formatAllow(methods), 'Cache-Control', 'no-cache'])
      }
      refuse(exchange, 'no definition is for this path', new HttpError(404, 'ERR_NOT_FOUND'))
    }
    exchange.action = route.actions[method as Method]!
    if (exchange.action !== undefined) return undefined
    if (method === 'OPTIONS') return emptyReply(204, [...route.capabilities, 'Cache-Control', 'no-cache'])
    const allow = route.methods.join(', ')
    const error = new HttpError(405, 'ERR_METHOD_NOT_ALLOWED', { headers: { Allow: allow } })
    refuse(exchange, `allowed are ${allow}`, error)
  }
}

/**
 * Whether the target of a request is below a resource that the caller may see, where its definition asks for that.
 * @throws HttpError 404 where the parent does not exist, is deleted, or would be refused to a GET of this caller
 */
export function checkParent(exchange: ResourceExchange): MaybePromise<undefined> {
  const path = parentOf(exchange)
  if (path === undefined) return undefined
  exchange.parentSeenAt = exchange.route.context.now()
  return andThen(isVisible(exchange, path), (isShown) => {
    if (isShown) return undefined
    refuse(exchange, 'the parent is not there for this caller', new HttpError(404, 'ERR_NOT_FOUND'))
  })
}

/** Milliseconds for which a verdict on the parent holds, for reads and for writes: what a store that is slow may be asked again. */
const FRESH = 1000
const FRESH_FOR_WRITES = 100

/**
 * The path that must be present when the target is created, as `parentOf` gives it. Where the content took its time, the
 * parent is judged anew: it may have gone, and be that of another caller by now.
 * @throws HttpError 404 as `checkParent`
 */
export function requireParent(exchange: ResourceExchange): MaybePromise<string | undefined> {
  const path = parentOf(exchange)
  if (path === undefined) return undefined
  const age = Math.abs(exchange.route.context.now() - exchange.parentSeenAt)
  if (age < (isSafeMethod(exchange.method) ? FRESH : FRESH_FOR_WRITES)) return path
  return andThen(checkParent(exchange), () => path)
}

/** The path that must be present when the target is written; `undefined` where the definition asks for none. */
export function parentOf({ route, storePath }: ResourceExchange): string | undefined {
  return route.hasParent ? findParent(route, storePath) : undefined
}

/** The resource that a collection is below. */
function findParent(route: Route, path: string): string {
  let collection = path
  if (route.isFile) collection = splitPath(collection).collection
  if (route.collection === undefined) collection = splitPath(collection).collection
  return splitPath(collection).collection
}

/** Whether a GET of a path would show this caller a resource, and one of what it is below in turn. */
async function isVisible(exchange: ResourceExchange, path: string): Promise<boolean> {
  const { store, findRoute } = exchange.route.context
  const own = findRoute(path)
  if (own === undefined) return false
  if (own.hasParent && !(await isVisible(exchange, findParent(own, path)))) return false
  // Nothing is under an alias: a collection below one is another one than that below the path of the singleton.
  const state = await store.read(path, new ReadUntilLeft(exchange, WHOLE))
  return isResource(state) && mayShow(exchange, state)
}
