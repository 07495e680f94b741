import { rangeReply } from '../core/range-reply.ts'
import { type CompletedFields, createCompletedFields, type RangedBody, type Reply } from '../core/reply.ts'
import { formatEntityTag } from '../protocol/entity-tag.ts'
import { formatHttpDate } from '../protocol/http-date.ts'
import { isSecondOver, type Validators } from '../protocol/preconditions.ts'
import { isLargeBody, type StoredResource } from '../stores/types.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'
import { safetyFields } from './safe-serving.ts'

/** What is derived from one state of a resource, once, and kept beside it. */
interface Prepared {
  readonly route: Route
  readonly validators: Validators
  /** ETag and Last-Modified, as far as the state has them. */
  readonly validatorFields: readonly string[]
  // What follows is made when it is first asked for: many states are replaced before anybody reads them.
  /** Content-Type, ETag, Last-Modified and what else describes the representation. */
  fields: readonly string[] | undefined
  /** Fields of whole answers, by whether credentials had a part in them. */
  ok: KeptFields[] | undefined
  notModified: KeptFields[] | undefined
}

/** The fields of an answer that is given again and again. */
interface KeptFields {
  readonly headers: readonly string[]
  readonly completed: CompletedFields
}

const PREPARED = Symbol('prepared representation')

/** Derives what answers need from a state; at most once for a state that the store returns again and again. */
export function prepare(resource: StoredResource, route: Route): Prepared {
  const keeper = resource as StoredResource & { [PREPARED]?: Prepared }
  const known = keeper[PREPARED]
  if (known !== undefined && known.route === route) return known
  const prepared = describe(resource, route)
  // A date that is not strong yet may become so.
  const isFinal = resource.dateIsStrong !== undefined || prepared.validators.dateIsStrong === true
  if (isFinal && Object.isExtensible(resource)) keeper[PREPARED] = prepared
  return prepared
}

function describe(resource: StoredResource, route: Route): Prepared {
  const tag = resource.entityTag ?? formatEntityTag(resource.version)
  // Never later than the Date of the answer (RFC 9110 §8.8.2.1).
  const { lastModified } = resource
  const date = lastModified === undefined ? undefined : Math.min(lastModified, route.context.now())
  const validators: Validators = {
    entityTags: tag === '' ? [] : [tag, ...route.renditions.map((_, index) => renditionTag(resource, index))],
    lastModified: date,
    dateIsStrong: resource.dateIsStrong ?? isSecondOver(date, route.context.now()),
  }
  const validatorFields = tag === '' ? [] : ['ETag', tag]
  if (date !== undefined) validatorFields.push('Last-Modified', formatHttpDate(date))
  return { route, validators, validatorFields, fields: undefined, ok: undefined, notModified: undefined }
}

function describeContent(resource: StoredResource, route: Route, validators: readonly string[]): string[] {
  const fields = ['Content-Type', resource.contentType, ...validators]
  if (resource.contentEncoding !== undefined) fields.push('Content-Encoding', resource.contentEncoding)
  if (resource.contentLanguage !== undefined) fields.push('Content-Language', resource.contentLanguage)
  if (!route.isJson) fields.push(...safetyFields(resource, route.inline))
  return fields
}

/** Renditions of one state have tags of their own: different bytes, different strong tags (RFC 9110 §8.8.3.3). */
export function renditionTag(resource: StoredResource, index: number): string {
  return formatEntityTag(`${resource.version}~${index}`)
}

/** The validators of the representation that a request selects. */
export function selectedValidators(exchange: ResourceExchange, resource: StoredResource): Validators {
  const { validators } = prepare(resource, exchange.route)
  if (exchange.rendition < 0) return validators
  return { ...validators, entityTags: validators.entityTags.slice(exchange.rendition + 1) }
}

/** ETag and Last-Modified of a state, and the Date that goes with them, for answers that carry no representation. */
export function validatorFields(resource: StoredResource, route: Route): readonly string[] {
  const { validatorFields } = prepare(resource, route)
  const date = dateOf(resource, route)
  return date.length === 0 ? validatorFields : [...validatorFields, ...date]
}

const NO_FIELDS: readonly string[] = []

/**
 * Date for a state as young as this second: the Date that Node keeps may be some milliseconds behind, and then earlier
 * than Last-Modified (RFC 9110 §8.8.2.1).
 */
function dateOf({ lastModified }: StoredResource, { context }: Route): readonly string[] {
  if (lastModified === undefined) return NO_FIELDS
  const now = context.now()
  return isSecondOver(lastModified, now) ? NO_FIELDS : ['Date', formatHttpDate(now)]
}

/** Cache-Control for an answer from a definition: private once credentials had a part in it (RFC 9111 §3.5). */
export function cacheControlFor(exchange: ResourceExchange): string {
  return exchange.isAuthorized ? exchange.route.privateCacheControl : exchange.route.cacheControl
}

/** 200 with the stored representation, or 206 with the selected ranges of it. */
export function representationReply(exchange: ResourceExchange, resource: StoredResource, status = 200): Reply {
  const prepared = prepare(resource, exchange.route)
  const fields = (prepared.fields ??= describeContent(resource, exchange.route, prepared.validatorFields))
  const body = replyBodyOf(resource)
  const date = dateOf(resource, exchange.route)
  if (exchange.ranges !== undefined) {
    const all = [...fields, 'Cache-Control', cacheControlFor(exchange), 'Accept-Ranges', 'bytes', ...date]
    return rangeReply(exchange.ranges, all, body, resource.size)
  }
  const { headers, completed } = ((prepared.ok ??= [])[Number(exchange.isAuthorized)] ??= keep([
    ...fields,
    ...['Content-Length', String(resource.size), 'Cache-Control', cacheControlFor(exchange), 'Accept-Ranges', 'bytes'],
  ]))
  return date === NO_FIELDS ? { status, headers, body, completed } : { status, headers: [...headers, ...date], body }
}

function keep(headers: readonly string[]): KeptFields {
  return { headers, completed: createCompletedFields() }
}

/** An answer to a write that carries the representation just stored; it may never be asked for again, so nothing is kept. */
export function writtenReply(
  exchange: ResourceExchange,
  resource: StoredResource,
  status: number,
  fields: readonly string[],
  validators: 'with-validators' | 'without' = 'with-validators',
  cacheControl: string = cacheControlFor(exchange),
): Reply {
  const { route } = exchange
  const known = validators === 'with-validators' ? validatorFields(resource, route) : NO_FIELDS
  const headers = describeContent(resource, route, known)
  headers.push('Content-Length', String(resource.size), 'Cache-Control', cacheControl, ...fields)
  return { status, headers, body: replyBodyOf(resource) }
}

/** 304 with the fields of the 200 that caches need, and no others (RFC 9110 §15.4.5). */
export function notModifiedReply(exchange: ResourceExchange, resource: StoredResource): Reply {
  if (exchange.rendition >= 0) {
    const tag = renditionTag(resource, exchange.rendition)
    return { status: 304, headers: ['ETag', tag, 'Cache-Control', cacheControlFor(exchange)] }
  }
  const prepared = prepare(resource, exchange.route)
  const { headers, completed } = ((prepared.notModified ??= [])[Number(exchange.isAuthorized)] ??= keep([
    ...prepared.validatorFields.slice(0, 2), // ETag, or Last-Modified where there is no tag
    ...['Cache-Control', cacheControlFor(exchange)],
  ]))
  return { status: 304, headers, completed }
}

/** The content of a resource as a reply sends it. */
export function replyBodyOf(resource: StoredResource): RangedBody {
  const { body, size } = resource
  if (typeof body === 'string') return size === body.length ? body : Buffer.from(body)
  if (!isLargeBody(body)) return body
  const openRange = (first: number, last: number): AsyncIterable<Uint8Array> => body.open(first, last)
  return { size, open: () => openRange(0, size - 1), openRange }
}
