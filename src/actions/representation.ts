import { hash } from 'node:crypto'
import { quoteValue } from '../core/option-values.ts'
import { readProperty } from '../core/options.ts'
import { type KeptFields, keepFields, type RangedBody, type Reply, rangeReply } from '../core/reply.ts'
import type { Sharing } from '../protocol/cache-control.ts'
import { formatHttpDate } from '../protocol/dates.ts'
import { mergeVary } from '../protocol/field-value.ts'
import { dateToSend, formatEntityTag, isEntityTag, isSecondOver, type Validators } from '../protocol/preconditions.ts'
import { isResource } from '../stores/rules.ts'
import type { StoredResource, StoredState } from '../stores/types.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'
import { addContentFields, lastModifiedOf, replyBodyOf, versionOf } from './stored-content.ts'

/** What is derived from one state of a resource, once, and kept beside it. */
interface Prepared extends Validators {
  /** The state itself: a copy of it, which a store may change in places, takes these along. */
  readonly resource: StoredResource
  readonly route: Route
  /** The date that is sent as Last-Modified, which is not later than now; `undefined` where none is known. */
  readonly date: number | undefined
  // Made on first use: many states are replaced before they are read.
  /** Content-Type, ETag, Last-Modified and what else describes the representation. */
  fields: readonly string[] | undefined
  body: RangedBody | undefined
  ok: KeptBySharing | undefined
  notModified: KeptBySharing | undefined
}

/** Kept fields for each Cache-Control that there is. */
type KeptBySharing = Record<Sharing, KeptFields | undefined>

const PREPARED = Symbol('prepared representation')

/** Derives what answers need from a state; at most once for a state that the store returns repeatedly. */
function prepare(resource: StoredResource, route: Route): Prepared {
  const now = route.context.now()
  const keeper = resource as StoredResource & { [PREPARED]?: Prepared }
  const known = keeper[PREPARED]
  // A date that is to come is sent as another one at every moment, also where the clock was set back meanwhile.
  const isPast = resource.lastModified === undefined || resource.lastModified <= now
  if (isPast && known !== undefined && known.resource === resource && known.route === route) return known
  const prepared = describe(resource, route, now)
  // A date that is not strong yet may become so.
  const isFinal = isPast && (resource.dateIsStrong !== undefined || prepared.dateIsStrong === true)
  if (isFinal && Object.isExtensible(resource)) keeper[PREPARED] = prepared
  return prepared
}

function describe(resource: StoredResource, route: Route, now: number): Prepared {
  if (!(resource.size >= 0)) throw new TypeError(`The store says that ${resource.path} has ${resource.size} bytes.`)
  const lastModified = lastModifiedOf(resource)
  const { dateIsStrong = isSecondOver(lastModified, now) } = resource
  const date = dateToSend(lastModified, now)
  const tag = entityTagOf(resource)
  return {
    resource,
    route,
    entityTags: tag === undefined ? [] : [tag],
    lastModified,
    dateIsStrong,
    date,
    fields: undefined,
    body: undefined,
    ok: undefined,
    notModified: undefined,
  }
}

function describeContent(resource: StoredResource, prepared: Prepared): readonly string[] {
  const { entityTags, date } = prepared
  const fields = ['Content-Type', resource.contentType]
  if (entityTags.length > 0) fields.push('ETag', entityTags[0]!)
  if (date !== undefined) fields.push('Last-Modified', formatHttpDate(date))
  addContentFields(fields, resource, prepared.route)
  return fields
}

/**
 * The validators of the representation that a request selects, then the tags of the others. Renditions of one state have tags
 * of their own: different bytes, different strong tags (RFC 9110 §8.8.3.3). `render` sees who asks, so each principal has
 * others: browsers send the tag of what another user has got, and would show that after a 304.
 */
export function selectedValidators(exchange: ResourceExchange, resource: StoredResource): Validators {
  const { rendition, route, principal } = exchange
  const prepared = prepare(resource, route)
  const { entityTags, lastModified, dateIsStrong } = prepared
  if (route.renditions.length === 0 || entityTags.length === 0) return prepared
  // What was read without credentials may be written with them.
  const sender = principal && hash('sha256', `${principal.scheme}\n${principal.id}`, 'base64url').slice(0, 22)
  const callers = sender === undefined ? [''] : [`~${sender}`, '']
  const others = callers.flatMap((caller) =>
    route.renditions.map((_, index) => formatEntityTag(`${resource.version}~${index}${caller}`)),
  )
  return { entityTags: [...entityTags, ...others].slice(rendition + 1), lastModified, dateIsStrong }
}

/** What answers need from a state: as it was derived when the request read that state, or derived now. */
function preparedFor(exchange: ResourceExchange, resource: StoredResource): Prepared {
  const known = exchange.validators as Partial<Prepared> | undefined
  return known?.resource === resource ? (known as Prepared) : prepare(resource, exchange.route)
}

/**
 * Adds ETag and Last-Modified of a state, and the Date that goes with them.
 * @param tag of the rendition that is sent; default: that of the stored representation
 */
export function addStateFields(
  fields: string[],
  resource: StoredResource,
  route: Route,
  tag: string | undefined = entityTagOf(resource),
): void {
  const now = route.context.now()
  const date = dateToSend(lastModifiedOf(resource), now)
  if (tag !== undefined) fields.push('ETag', tag)
  if (date !== undefined) fields.push('Last-Modified', formatHttpDate(date))
  addDate(fields, resource, now)
}

/** Adds Date where that of Node could be earlier than Last-Modified (RFC 9110 §8.8.2.1). */
function addDate(fields: string[], { lastModified }: StoredResource, now: number): void {
  if (!isBeforeDate(lastModified, now)) fields.push('Date', formatHttpDate(now))
}

// The accessor of the global costs 350 instructions each time.
const { performance } = globalThis

/** Whether a date is before the Date that Node sends, which is the machine's and may be some milliseconds behind. */
function isBeforeDate(lastModified: number | undefined, now: number): boolean {
  if (lastModified === undefined) return true
  return isSecondOver(lastModified, Math.min(now, performance.timeOrigin + performance.now()))
}

function keepNone(): KeptBySharing {
  return { public: undefined, authorized: undefined, private: undefined }
}

/** What describes the stored representation, its validators included. */
export function representationFields(resource: StoredResource, route: Route): readonly string[] {
  const prepared = prepare(resource, route)
  return (prepared.fields ??= describeContent(resource, prepared))
}

/** 200 with the stored representation, or 206 with the selected ranges of it. */
export function representationReply(exchange: ResourceExchange, resource: StoredResource): Reply {
  const now = exchange.route.context.now()
  const prepared = preparedFor(exchange, resource)
  const fields = (prepared.fields ??= describeContent(resource, prepared))
  // A HEAD sends none, and the store may not have read it.
  const body = exchange.method === 'HEAD' ? '' : (prepared.body ??= replyBodyOf(resource))
  if (exchange.ranges !== undefined) {
    const all = [...fields, 'Cache-Control', exchange.cacheControl, 'Accept-Ranges', 'bytes']
    addDate(all, resource, now)
    return rangeReply(exchange.ranges, all, body, resource.size)
  }
  const bySharing = (prepared.ok ??= keepNone())
  const kept = (bySharing[exchange.sharing] ??= keepFields([
    ...fields,
    ...['Content-Length', String(resource.size), 'Cache-Control', exchange.cacheControl, 'Accept-Ranges', 'bytes'],
  ]))
  if (isBeforeDate(resource.lastModified, now)) return { status: 200, headers: kept.headers, body, kept }
  const headers = [...kept.headers]
  addDate(headers, resource, now)
  return { status: 200, headers, body }
}

/**
 * An answer to a write that carries the representation just stored; it may never be asked for again, so nothing is kept.
 * @param fields what else the answer says; they become the fields of the reply
 */
export function writtenReply(
  exchange: ResourceExchange,
  resource: StoredResource,
  status: number,
  fields: string[],
  validators: 'with-validators' | 'without' = 'with-validators',
  cacheControl: string = exchange.cacheControl,
): Reply {
  const { route } = exchange
  // A cache may answer a GET with that of PATCH (RFC 5789 §2).
  if (route.renditions.length > 0) exchange.vary = mergeVary(exchange.vary, 'Accept')
  fields.push('Content-Type', resource.contentType, 'Content-Length', String(resource.size))
  if (validators === 'with-validators') addStateFields(fields, resource, route)
  addContentFields(fields, resource, route)
  fields.push('Cache-Control', cacheControl)
  return { status, headers: fields, body: replyBodyOf(resource) }
}

/** 304 with the fields of the 200 that caches need, and no others (RFC 9110 §15.4.5). */
export function notModifiedReply(exchange: ResourceExchange, resource: StoredResource): Reply {
  if (exchange.rendition >= 0) {
    const selected = { ...preparedFor(exchange, resource), ...exchange.validators }
    return { status: 304, headers: [...validatorOf(selected), 'Cache-Control', exchange.cacheControl] }
  }
  const prepared = preparedFor(exchange, resource)
  const bySharing = (prepared.notModified ??= keepNone())
  const kept = (bySharing[exchange.sharing] ??= keepFields([
    ...validatorOf(prepared),
    ...['Cache-Control', exchange.cacheControl],
  ]))
  return { status: 304, headers: kept.headers, kept }
}

/** ETag, or Last-Modified where there is no tag, if there is either. */
function validatorOf({ entityTags, date }: Prepared): readonly string[] {
  if (entityTags.length > 0) return ['ETag', entityTags[0]!]
  return date === undefined ? [] : ['Last-Modified', formatHttpDate(date)]
}

/** The part of a state that its tag is made of. */
type TaggedState = Pick<StoredResource, 'version' | 'entityTag'>

/**
 * The entity tag that the service sends with a stored resource (RFC 9110 §8.8.3): for jobs and tests that read the store
 * themselves. Representations that a definition makes from the stored one have other tags.
 * @param state what `read` of a store gave, or a resource that `write`, `create` or `list` gave
 * @returns the tag with its quotes; `undefined` where there is no resource, or the store says that it has no tag
 * @throws TypeError for a store that gives a tag which no condition could match, or a version that is not text
 * @example
 * const tag = entityTagOf(await store.read('/tasks/7'))
 * await fetch(url, { method: 'PUT', headers: { 'If-Match': tag }, body })
 */
export function entityTagOf(state: StoredState | TaggedState): string | undefined {
  const resource = state as StoredState
  if (!isResource(resource)) return undefined
  const entityTag = readProperty(resource, 'entityTag')
  const tag = entityTag ?? formatEntityTag(versionOf(resource))
  if (tag === '') return undefined
  if (tag !== entityTag || (typeof tag === 'string' && isEntityTag(tag))) return tag
  throw new TypeError(`An entity tag has double quotes around it; the store gave ${quoteValue(tag)}.`)
}
