import type { ResourceExchange } from '../actions/resource-exchange.ts'
import type { ContentRule } from '../actions/route.ts'
import { isPatchType } from '../actions/state.ts'
import { tooLarge } from '../body-types/limits.ts'
import { createContentVerifier, expectDigests } from '../core/content-digest.ts'
import { HttpError } from '../core/errors.ts'
import { checkContentCoding, declaredLength } from '../core/request-content.ts'
import { isLanguageList } from '../protocol/content-disposition.ts'
import { isInMediaRange, type MediaType, parseMediaType } from '../protocol/media-type.ts'

/**
 * What fields alone say about the content, before a byte of it is read: 415 with a hint, 413, 400 for a partial PUT
 * (RFC 9110 §14.5), for a language that could not be sent again, and for digests that are malformed (RFC 9530 §2).
 */
export function checkContent(exchange: ResourceExchange): undefined {
  const rule = exchange.action.content
  if (rule === undefined) {
    // Content of DELETE means nothing and is not read (RFC 9110 §9.3.5): its digests need only be well-formed.
    if (exchange.method === 'DELETE') createContentVerifier(exchange)
    return undefined
  }
  takeType(exchange, exchange.field('content-type'), rule)
  checkContentCoding(exchange.field('content-encoding'), exchange.route.context.contentCodings)
  const length = declaredLength(exchange)
  if (length !== undefined) {
    const limit = rule.limit(exchange.contentType)
    if (length > limit) throw tooLarge(limit)
  }
  if (exchange.method !== 'PATCH' && exchange.route.storedHeaders.includes('Content-Language')) {
    checkLanguage(exchange.field('content-language'))
  }
  if (exchange.method === 'PUT' && exchange.field('content-range') !== undefined) {
    throw new HttpError(400, 'ERR_MALFORMED_FIELD', {
      detail: 'PUT replaces the whole: Content-Range has no place here.',
    })
  }
  // A query is not stored.
  expectDigests(exchange, exchange.route.needsDigests && exchange.method !== 'QUERY')
  return undefined
}

/** Characters of a language that is stored: every answer carries it again, and clients have limits. */
const MOST = 256

/** @throws HttpError 400 for a language that is malformed, or too long to be sent again */
function checkLanguage(field: string | undefined): void {
  if (field === undefined || field === '' || (field.length <= MOST && isLanguageList(field))) return
  throw new HttpError(400, 'ERR_MALFORMED_FIELD', { detail: 'Content-Language is malformed.' })
}

/** A media type that content of a method may have, and how it was spelled. */
interface AcceptedType extends MediaType {
  readonly spelling: string
}

/**
 * The type that a rule has accepted last. Most clients of a resource send one type; to read and judge it anew costs 2,900
 * instructions of the 150,000 of a small PUT. A rule belongs to one method of one route.
 */
const acceptedLast = new WeakMap<ContentRule, AcceptedType>()

/** Takes the media type of the content. @throws HttpError 415 with a hint; 400 for a malformed type */
function takeType(exchange: ResourceExchange, field: string | undefined, rule: ContentRule): void {
  const spelling = field ?? rule.defaultType
  let type = acceptedLast.get(rule)
  if (type === undefined || type.spelling !== spelling) {
    type = acceptType(exchange, spelling, rule)
    acceptedLast.set(rule, type)
  }
  exchange.contentType = type.essence
  exchange.contentParameters = type.parameters
}

function acceptType(exchange: ResourceExchange, spelling: string | undefined, rule: ContentRule): AcceptedType {
  // RFC 10008 §2: the content has no meaning without its type.
  if (spelling === undefined && exchange.method === 'QUERY') {
    throw new HttpError(400, 'ERR_MALFORMED_FIELD', { detail: 'QUERY needs a Content-Type.' })
  }
  if (spelling === undefined) throw unsupported(rule, `The content has no Content-Type.${listTypes(rule)}`)
  const type = parseMediaType(spelling)
  // It is sent again with the content: what is not ASCII means something else to every recipient.
  if (type === undefined || /[^\t\x20-\x7e]/.test(spelling)) {
    throw new HttpError(400, 'ERR_MALFORMED_FIELD', { detail: 'Content-Type is malformed.' })
  }
  const { essence, parameters } = type
  if (!rule.types.some((range) => isAccepted(range, essence, rule))) {
    throw unsupported(rule, `Content of type ${essence} is not taken here.${listTypes(rule)}`)
  }
  if (isMisplacedPatch(exchange, essence) && !rule.types.includes(essence)) {
    throw unsupported(rule, `${essence} describes changes: send it with PATCH.`)
  }
  if (essence.endsWith('json') && !isUtf8(parameters.get('charset'))) {
    throw unsupported(rule, 'JSON is UTF-8 (RFC 8259 section 8.1).')
  }
  if (essence === 'multipart/form-data' && !isBoundary(parameters.get('boundary'))) {
    throw new HttpError(400, 'ERR_MALFORMED_FIELD', {
      detail: 'multipart/form-data needs a boundary of 1 to 70 characters.',
    })
  }
  return { spelling, essence, parameters }
}

/** `application/json` stands for its relatives with a `+json` suffix as well, except where patch formats are named. */
function isAccepted(range: string, essence: string, { hint }: ContentRule): boolean {
  if (isInMediaRange(range, essence)) return true
  return hint !== 'Accept-Patch' && range === 'application/json' && essence.endsWith('+json')
}

/** Which patch documents are taken: clients often send `application/json`, and their readers see no header fields. */
function listTypes({ hint, types }: ContentRule): string {
  return hint === 'Accept-Patch' ? ` Send ${types.join(' or ')}.` : ''
}

/**
 * Whether content is a patch document that the method would store as a JSON resource: a change of two members would become
 * the whole resource (RFC 5789 §2). A route that stores all types as they are stores patch documents too.
 */
function isMisplacedPatch({ route, method }: ResourceExchange, essence: string): boolean {
  if (method === 'PATCH' || !isPatchType(route, essence)) return false
  return method === 'POST' ? route.collection?.content !== 'raw' : route.isJson
}

function isUtf8(charset: string | undefined): boolean {
  return charset === undefined || /^(?:utf-?8|us-ascii)$/i.test(charset)
}

function isBoundary(boundary: string | undefined): boolean {
  return boundary !== undefined && boundary.length >= 1 && boundary.length <= 70
}

function unsupported(rule: ContentRule, detail: string): HttpError {
  return new HttpError(415, 'ERR_UNSUPPORTED_MEDIA_TYPE', { detail, headers: { [rule.hint]: rule.types.join(', ') } })
}
