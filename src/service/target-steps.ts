import { serverOptions } from '../actions/options.ts'
import type { ResourceExchange } from '../actions/resource-exchange.ts'
import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import { findMount } from '../core/exchange.ts'
import { createRepeatedFieldSearch } from '../core/fields.ts'
import type { Step } from '../core/handler.ts'
import { PASS } from '../core/node-handler.ts'
import type { Reply } from '../core/reply.ts'
import { isKnownMethod, type Method } from '../protocol/methods.ts'
import { parseRequestTarget } from '../protocol/request-target.ts'
import type { RouteTable } from './routes.ts'
import type { ServiceSettings } from './service-options.ts'

/** Node 20 drops fields beyond about a thousand without a word; a trailing If-Match would be gone. */
const MAX_RAW_HEADERS = 2000

/** Fields that may be sent once only: which of two would count is anybody's guess (RFC 9110 §5.3). */
const findRepeatedField = createRepeatedFieldSearch('host', 'content-type', 'content-length', 'authorization', 'origin')

/** 414 for a target that is too long below the mount (RFC 9110 §15.5.15). @param limit characters */
export function createLengthStep(limit: number): Step<ResourceExchange> {
  return function checkTargetLength(exchange) {
    const { length } = exchange.targetText
    if (length <= limit) return undefined
    note(exchange, `${length} characters`)
    throw new HttpError(414, 'ERR_TARGET_TOO_LONG')
  }
}

/** What a host name, an address or a port may consist of (RFC 3986 §3.2); "@" as well, which decides nothing here. */
const HOST = /^[\w.~!$&'()*+,;=:%@[\]-]*$/

/** Requests name one host again and again. */
let lastHost = ''

function isHost(text: string): boolean {
  if (!HOST.test(text)) return false
  lastHost = text
  return true
}

/** 400 for a target or message that is malformed; 431 for more fields than Node can be trusted to pass on. */
export function checkTarget(exchange: ResourceExchange): undefined {
  if (exchange.isMalformed) {
    throw new HttpError(400, 'ERR_MALFORMED_TARGET', { detail: 'The request target is malformed.' })
  }
  const { req, headers } = exchange
  // Node takes a request line that ends in HTTP/2.0 (RFC 9110 §15.6.6).
  if (req.httpVersionMajor !== 1 && !exchange.isHttp2) {
    throw new HttpError(505, 'ERR_VERSION_NOT_SUPPORTED', { detail: 'This is a server of HTTP/1.1.', expose: true })
  }
  if (req.rawHeaders.length >= MAX_RAW_HEADERS) {
    throw new HttpError(431, 'ERR_FIELDS_TOO_LARGE', { detail: 'The request has too many fields.' })
  }
  const coding = headers['transfer-encoding']
  if (coding !== undefined && /,[ \t]*chunked$/i.test(coding)) {
    // Node takes the chunks apart and leaves the rest coded (RFC 9112 §6.1).
    throw new HttpError(501, 'ERR_UNSUPPORTED_CODING', {
      detail: 'Only chunked is taken as transfer coding.',
      expose: true,
    })
  }
  const repeated = findRepeatedField(req)
  if (repeated !== undefined) {
    throw new HttpError(400, 'ERR_MALFORMED_FIELD', { detail: `The field ${repeated} was sent more than once.` })
  }
  // RFC 9112 §3.2
  if (headers.host !== undefined && headers.host !== lastHost && !isHost(headers.host)) {
    throw new HttpError(400, 'ERR_MALFORMED_FIELD', { detail: 'Host is malformed.' })
  }
  return undefined
}

/** OPTIONS * asks about the server as a whole. */
export function answerServerOptions(exchange: ResourceExchange): Reply | undefined {
  return exchange.targetText === '*' ? serverOptions() : undefined
}

/** Reads the target and finds its route; where it has none and the host goes on, the request is the host's. */
export function createRouteStep(
  table: RouteTable,
  { fallthrough, onlyMount }: Pick<ServiceSettings, 'fallthrough' | 'onlyMount'>,
): Step<ResourceExchange> {
  const isMisspelt = ({ req }: ResourceExchange): boolean => onlyMount !== undefined && findMount(req) !== onlyMount
  return function findRoute(exchange) {
    const target = parseRequestTarget(exchange.targetText)
    if (target === undefined) {
      exchange.isMalformed = exchange.targetText !== '*' || exchange.method !== 'OPTIONS'
      // For the log; an absolute-form target may hold a password.
      exchange.path = /^[/*][^?]*/.exec(exchange.targetText)?.[0] ?? ''
    } else {
      exchange.path = target.path
      exchange.queryText = target.query
      if (!isMisspelt(exchange)) exchange.route = table.find(target.path)!
      if (exchange.route !== undefined) exchange.storePath = exchange.route.storePath ?? target.path
    }
    const isOurs = exchange.route !== undefined || exchange.targetText === '*' || (table.isOpen && exchange.isMalformed)
    return isOurs || !fallthrough || !exchange.canPass ? undefined : PASS
  }
}

/** 501 for a method nobody here knows (RFC 9110 §15.6.2); 404 for a path that names nothing. */
export function checkMethodKnown(exchange: ResourceExchange): undefined {
  if (!isKnownMethod(exchange.method)) {
    note(exchange, 'unknown method')
    throw new HttpError(501, 'ERR_METHOD_NOT_IMPLEMENTED')
  }
  if (exchange.route !== undefined) return undefined
  note(exchange, 'no definition is for this path')
  throw new HttpError(404, 'ERR_NOT_FOUND')
}

/** 405 with Allow (RFC 9110 §15.5.6). */
export function checkMethodAllowed(exchange: ResourceExchange): undefined {
  const { route } = exchange
  const action = route.actions[exchange.method as Method]
  if (action === undefined) {
    const allow = route.methods.join(', ')
    note(exchange, `allowed are ${allow}`)
    throw new HttpError(405, 'ERR_METHOD_NOT_ALLOWED', { headers: ['Allow', allow] })
  }
  exchange.action = action
  return undefined
}
