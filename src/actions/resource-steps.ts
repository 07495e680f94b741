import { tooLarge } from '../body-types/limits.ts'
import { isUtf8Charset } from '../body-types/text.ts'
import { createContentVerifier, expectDigests } from '../core/content-digest.ts'
import { note, refuse } from '../core/diagnostics.ts'
import { HttpError, malformedField } from '../core/errors.ts'
import { mayStateDigests } from '../core/fields.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import type { Reply } from '../core/reply.ts'
import { checkContentCoding, declaredLength } from '../core/request-content.ts'
import { selectRanges } from '../protocol/byte-range.ts'
import { readLanguages } from '../protocol/content-language.ts'
import { mergeVary } from '../protocol/field-value.ts'
import { isInMediaRange, isJsonType, parseMediaType, selectMediaType } from '../protocol/media-type.ts'
import { evaluateIfRange } from '../protocol/preconditions.ts'
import { notModified, render } from './get.ts'
import { listNotModifiedReply } from './list.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { AcceptedType, ContentRule } from './route.ts'
import { checkConditions, isPatchType, setState } from './state.ts'
import { requireParent } from './target-steps.ts'

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
  const { limit } = takeType(exchange, rule)
  checkContentCoding(exchange.field('content-encoding'), exchange.route.context.contentCodings)
  const length = declaredLength(exchange)
  if (length !== undefined && length > limit) throw tooLarge(limit)
  if (exchange.method !== 'PATCH' && exchange.route.storedHeaders.includes('Content-Language')) {
    checkLanguage(exchange.field('content-language'))
  }
  if (exchange.method === 'PUT' && exchange.field('content-range') !== undefined) {
    throw malformedField('PUT replaces the whole: Content-Range has no place here.')
  }
  // A query is not stored.
  const needsDigests = exchange.route.needsDigests && exchange.method !== 'QUERY'
  if (needsDigests || mayStateDigests(exchange)) expectDigests(exchange, needsDigests)
  return undefined
}

/** Characters of a language that is stored: every answer carries it again, and clients have limits. */
const LONGEST_LANGUAGE = 256

/** @throws HttpError 400 for a language that is malformed, or too long to be sent again */
function checkLanguage(field: string | undefined): void {
  if (field === undefined || (field.length <= LONGEST_LANGUAGE && readLanguages(field) !== undefined)) return
  throw malformedField('Content-Language is malformed.')
}

/** Takes the media type of the content. @throws HttpError 415 with a hint; 400 for a malformed type */
function takeType(exchange: ResourceExchange, rule: ContentRule): AcceptedType {
  const spelling = exchange.field('content-type') ?? rule.defaultType
  let type = rule.accepted
  if (type === undefined || type.spelling !== spelling) rule.accepted = type = acceptType(exchange, spelling, rule)
  exchange.contentType = type.essence
  exchange.hasJson = type.isJson
  exchange.contentParameters = type.parameters
  return type
}

function acceptType(exchange: ResourceExchange, spelling: string | undefined, rule: ContentRule): AcceptedType {
  // RFC 10008 §2: the content has no meaning without its type.
  if (spelling === undefined && exchange.method === 'QUERY') throw malformedField('QUERY needs a Content-Type.')
  if (spelling === undefined) throw unsupported(rule, `The content has no Content-Type.${listTypes(rule)}`)
  const type = parseMediaType(spelling)
  // It is sent again with the content: what is not ASCII means something else to every recipient.
  if (type === undefined || /[^\t\x20-\x7e]/.test(spelling)) throw malformedField('Content-Type is malformed.')
  const { essence, parameters } = type
  if (!rule.types.some((range) => isAccepted(range, essence, rule))) {
    throw unsupported(rule, `Content of type ${essence} is not taken here.${listTypes(rule)}`)
  }
  if (isMisplacedPatch(exchange, essence) && !rule.types.includes(essence)) {
    throw unsupported(rule, `${essence} describes changes: send it with PATCH.`)
  }
  // RFC 8259 §8.1. A form that POST takes says so when it is read: other definitions keep forms as they are.
  if ((essence.endsWith('json') || exchange.method === 'QUERY') && !isUtf8Charset(parameters.get('charset'))) {
    throw unsupported(rule, `Content of type ${essence} is UTF-8.`)
  }
  const boundary = parameters.get('boundary') ?? ''
  if (essence === 'multipart/form-data' && (boundary === '' || boundary.length > 70)) {
    throw malformedField('multipart/form-data needs a boundary of 1 to 70 characters.')
  }
  return { spelling, essence, parameters, isJson: isJsonType(essence), limit: rule.limit(essence) }
}

/** `application/json` stands for its relatives with a `+json` suffix as well, except where patch formats are named. */
function isAccepted(range: string, essence: string, { hint }: ContentRule): boolean {
  if (isInMediaRange(range, essence)) return true
  return hint !== 'Accept-Patch' && range === 'application/json' && essence.endsWith('+json')
}

/** Which types are taken: clients often send another one, or none, and their readers see no header fields. */
function listTypes({ types }: ContentRule): string {
  if (types.includes('*/*')) return ''
  const others = types.slice(0, -1).join(', ')
  return ` Send ${others === '' ? '' : `${others} or `}${types.at(-1)}.`
}

/**
 * Whether content is a patch document that the method would store as a JSON resource: a change of two members would become
 * the whole resource (RFC 5789 §2). A route that stores all types as they are stores patch documents too.
 */
function isMisplacedPatch({ route, method }: ResourceExchange, essence: string): boolean {
  if (method === 'PATCH' || !isPatchType(route, essence)) return false
  return method === 'POST' ? route.collection?.content !== 'raw' : route.isJson
}

function unsupported(rule: ContentRule, detail: string): HttpError {
  return new HttpError(415, 'ERR_UNSUPPORTED_MEDIA_TYPE', { detail, headers: { [rule.hint]: rule.types.join(', ') } })
}

/** Hidden resources are shown on request, where the definition has an `authorize` to decide. */
export function seeHidden(exchange: ResourceExchange): undefined {
  const { route, queryText } = exchange
  // Before any 404: a resource that `authorize` hides is answered like an absent one.
  if (route.renditions.length > 0) exchange.vary = mergeVary(exchange.vary, 'Accept')
  if (queryText === '' || route.deletion !== 'soft' || route.authorize === undefined) return undefined
  exchange.wantsHidden = exchange.query.get('deleted') === 'true'
  return undefined
}

/** What may be acceptable although the usual type is not: a relative of it, such as application/vnd.x+json. */
const OPEN = /\*\/\*|json/i

/** 406 where the definition alone tells that nothing is acceptable, and demands it (RFC 9110 §12.5.1, §15.5.7). */
export function negotiate(exchange: ResourceExchange): undefined {
  const accept = exchange.field('accept')
  if (accept === undefined || OPEN.test(accept)) return undefined
  const { usualType, offers } = exchange.route
  selectOffer(exchange, [usualType!, ...offers])
  exchange.rendition = -1 // What is sent depends on what is stored.
}

/** The current state: 404, 410. PUT and POST go on without one. Where the store took its time, the parent is judged anew. */
export function loadCurrent(exchange: ResourceExchange): MaybePromise<undefined> {
  if (exchange.concealed !== undefined) refuse(exchange, 'authorize hides it', exchange.concealed)
  const loaded = exchange.action.load(exchange) as MaybePromise<undefined>
  // A POST without a condition has read nothing that it could show, and asks for its parent before it writes.
  const showsNothing = exchange.method === 'POST' && exchange.conditions === undefined
  if (!exchange.route.hasParent || showsNothing) return loaded
  return andThen(loaded, () => andThen(requireParent(exchange), () => undefined))
}

/** Bytes of content up to which another representation is made of it: all of it is held in memory meanwhile. */
const LARGEST_RENDERED = 64 * 1024 * 1024

/** Selects among what there is: the stored resource says of which type it is. */
export function negotiateStored(exchange: ResourceExchange): undefined {
  const { route, current, page } = exchange
  if (exchange.field('accept') === undefined || (route.accept === 'lenient' && page !== undefined)) return undefined
  const type = page === undefined ? current?.contentType : 'application/json'
  if (type === undefined) return undefined
  const stored = type === route.usualType?.essence ? route.usualType : parseMediaType(type)
  if (stored === undefined) return undefined
  const isLarge = page === undefined && current!.size > LARGEST_RENDERED
  selectOffer(exchange, isLarge ? [stored] : [stored, ...route.offers])
  if (exchange.rendition >= 0) setState(exchange, exchange.state)
}

function selectOffer(exchange: ResourceExchange, offers: Parameters<typeof selectMediaType>[1]): void {
  const index = selectMediaType(exchange.field('accept'), offers)
  if (index < 0 && exchange.route.accept === 'strict') {
    exchange.vary = mergeVary(exchange.vary, 'Accept')
    throw new HttpError(406, 'ERR_NOT_ACCEPTABLE', {
      detail: `Available: ${offers.map((offer) => offer.essence).join(', ')}.`,
    })
  }
  // Of nothing that is acceptable, the stored representation.
  exchange.rendition = Math.max(index, 0) - 1
}

/** 428, 412 and 304 (RFC 9110 §13.2.2, RFC 6585 §3). */
export function evaluateConditions(exchange: ResourceExchange): MaybePromise<Reply | undefined> {
  if (checkConditions(exchange) === 'proceed') return undefined
  const { page } = exchange
  return page === undefined ? notModified(exchange) : listNotModifiedReply(exchange, page)
}

/** 416, or the ranges to send (RFC 9110 §14.2). Only GET has ranges, and only of what has bytes of its own. */
export function selectContent(exchange: ResourceExchange): MaybePromise<undefined> {
  if (exchange.rendition < 0) return selectRequestedRanges(exchange)
  return andThen(render(exchange, exchange.current!), () => selectRequestedRanges(exchange))
}

function selectRequestedRanges(exchange: ResourceExchange): undefined {
  const { method, validators } = exchange
  const range = exchange.field('range')
  if (range === undefined || method !== 'GET' || exchange.page !== undefined) return undefined
  const ifRange = exchange.field('if-range')
  if (ifRange !== undefined && !evaluateIfRange(ifRange, validators!, exchange.route.context.now())) {
    note(exchange, 'If-Range does not match')
    return undefined
  }
  const size = exchange.rendered?.length ?? exchange.current!.size
  const selection = selectRanges(range, size)
  if (selection === 'whole') note(exchange, 'Range ignored')
  if (selection === 'unsatisfiable') {
    const error = new HttpError(416, 'ERR_RANGE_NOT_SATISFIABLE', { headers: { 'Content-Range': `bytes */${size}` } })
    refuse(exchange, `no byte of ${size} is asked for`, error)
  }
  if (selection !== 'whole') exchange.ranges = selection
  return undefined
}
