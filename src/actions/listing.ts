import { hash } from 'node:crypto'
import { HttpError } from '../core/errors.ts'
import { formatQueryText, parseQueryText } from '../protocol/query-text.ts'
import { formatPath } from '../protocol/request-line.ts'
import type { Condition, ListQuery } from '../stores/lists.ts'
import { splitPath } from '../stores/rules.ts'
import { type ParsedQuery, parseLimit, parseQuery, refuseParameters } from './parse-query.ts'
import { MOST_PARAMETERS, MOST_SORT_KEYS, QUERY_TYPES, type QueryProperty, type QueryRules } from './query-rules.ts'
import { collectionPathOf, fitsTarget, type ResourceExchange } from './resource-exchange.ts'
import { scopeConditions } from './scope.ts'
import { isSealed, sealedSize } from './sealed-cursor.ts'

/** What a list is asked for. */
export interface Listing {
  readonly limit: number
  /** The cursor of the store. */
  readonly after: string | undefined
  /** The cursor as it was sent. */
  readonly sentAfter: string | undefined
  /** `undefined` for all items in the order of the store. */
  readonly query: ListQuery | undefined
  /** Counts what is listed where the list is counted; a cursor does not depend on it. */
  readonly counting: ListQuery | undefined
  /** Names filter, order and scope: the cursor belongs to them, and the tag depends on them. */
  readonly key: string
  /** The same without values that must not be in a target: a hash of one that is easily guessed would tell it. */
  readonly cursorKey: string
  /** Whether it is one of a collection with rules for queries. */
  readonly isQueried: boolean
  /** The query of the first page, as it belongs into a target; `undefined` where it must not be in one. */
  readonly target: string | undefined
  /** Whether cursors depend on a value that must not be in a target. */
  readonly isSecret: boolean
}

/**
 * Reads what a list is asked for.
 * @param content the parameters in the content of QUERY; `undefined` for other methods
 * @throws HttpError 400 for a query that the definition does not allow
 */
export function readListing(exchange: ResourceExchange, content?: string): Listing {
  const rules = exchange.route.indexing?.query
  return rules === undefined ? readPlain(exchange) : readQueried(exchange, rules, content)
}

/** A collection without rules: it reads `limit` and `after`, and ignores all other parameters. */
function readPlain(exchange: ResourceExchange): Listing {
  const { default: usual, max } = exchange.route.collection!.pageSize
  const where = scopeConditions(exchange)
  const key = where.length === 0 ? '' : JSON.stringify(where)
  const query = where.length === 0 ? undefined : { index: indexOf(exchange), where, orderBy: [], count: false }
  const shared = { query, counting: undefined, key, cursorKey: key, isQueried: false, target: '', isSecret: false }
  if (exchange.queryText === '') return { ...shared, limit: usual, after: undefined, sentAfter: undefined }
  const { query: parameters } = exchange
  const limit = Math.min(max, parseLimit(takeParameter(parameters, 'limit'), refuseParameter) ?? usual)
  const cursor = takeParameter(parameters, 'after')
  if (cursor === undefined) return { ...shared, limit, after: undefined, sentAfter: undefined }
  return { ...shared, limit, after: openBound(cursor, key), sentAfter: cursor }
}

function readQueried(exchange: ResourceExchange, rules: QueryRules, content: string | undefined): Listing {
  const { route, queryText } = exchange
  requireAscii(queryText)
  const inTarget = parseQueryText(queryText, MOST_PARAMETERS)
  const sent = content === undefined ? inTarget : [...inTarget, ...parseContent(exchange, content)]
  const parsed = parseQuery(sent, rules)
  refuseSensitive(content === undefined ? parsed : parseQuery(inTarget, rules))
  const isSensitive = parsed.properties.some((property) => property.isSensitive)
  const where = [...scopeConditions(exchange), ...parsed.where]
  const { orderBy, count } = parsed
  const isPlain = where.length === 0 && orderBy.length === 0
  const query = { index: indexOf(exchange), where, orderBy, count }
  const key = nameList(where, parsed, exchange)
  const open = where.map((condition) => withoutSecret(condition, rules))
  const cursorKey = isSensitive ? nameList(open, parsed, exchange) : key
  const { default: usual, max } = route.collection!.pageSize
  const kept = formatQueryText(sent.filter(({ name }) => name !== 'after'))
  const listing: Listing = {
    limit: Math.min(max, parsed.limit ?? usual),
    after: parsed.after === undefined ? undefined : openSealedBound(parsed.after, cursorKey, isSensitive),
    sentAfter: parsed.after,
    query: isPlain ? undefined : query,
    counting: count ? query : undefined,
    key,
    cursorKey,
    isQueried: true,
    target: isSensitive ? undefined : kept,
    isSecret: isSensitive,
  }
  // Only GET has the query in its target.
  if (exchange.method !== 'QUERY') requireRoomForNext(exchange, listing, rules)
  return listing
}

/** The parameters in the content of QUERY. @throws HttpError 400 for one that hooks have to know, who see the target alone */
function parseContent({ route }: ResourceExchange, content: string): ReturnType<typeof parseQueryText> {
  const parameters = parseQueryText(content, MOST_PARAMETERS)
  const mayShowHidden = route.deletion === 'soft' && route.authorize !== undefined
  if (mayShowHidden && parameters.some(({ name }) => name === 'deleted')) {
    refuseParameter('deleted', 'deleted is sent in the target, also with QUERY.')
  }
  return parameters
}

/** @param where the conditions, in any order */
function nameList(where: readonly object[], { orderBy }: ParsedQuery, { wantsHidden }: ResourceExchange): string {
  const sorted = [...where].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  return JSON.stringify([sorted, orderBy, wantsHidden])
}

function withoutSecret(condition: Condition, { properties }: QueryRules): object {
  const { property, operator } = condition
  return properties.get(property)?.isSensitive === true ? { property, operator } : condition
}

function indexOf(exchange: ResourceExchange): ListQuery['index'] {
  return exchange.route.indexing!.indexOf(collectionPathOf(exchange))
}

/** @throws HttpError 400 for bytes that are not ASCII: Node gives each as a character, which the client did not send */
function requireAscii(queryText: string): void {
  if (!/[^\x21-\x7e]/.test(queryText)) return
  throw new HttpError(400, 'ERR_MALFORMED_QUERY', { detail: 'The query is not percent-encoded.' })
}

function refuseSensitive({ properties }: ParsedQuery): void {
  const names = new Set(properties.filter(({ isSensitive }) => isSensitive).map(({ name }) => name))
  refuseParameters(
    [...names].map((parameter) => ({
      parameter,
      detail: `${parameter} must not be in a target, which logs and histories keep: send the query with QUERY.`,
    })),
  )
}

/** The value of a parameter. @throws HttpError 400 for a second value */
function takeParameter(parameters: URLSearchParams, name: string): string | undefined {
  const [value, ...others] = parameters.getAll(name)
  if (others.length > 0) refuseParameter(name, `${name} is given once.`)
  return value
}

/** @throws HttpError 400 */
function refuseParameter(parameter: string, detail: string): void {
  refuseParameters([{ parameter, detail }])
}

/** Bytes of the hash in a cursor. */
const BINDING = 12

/**
 * A cursor of the store as clients get it: bound to filter, order and scope, where there are any. In base64url, so that
 * no client is tempted to make one.
 */
export function formatCursor(cursor: string, key: string): string {
  const text = Buffer.from(cursor)
  return (key === '' ? text : Buffer.concat([bindingOf(key), text])).toString('base64url')
}

/** As `openBound`; for a secret query the cursor has to be sealed, because the seal is bound to its values. */
function openSealedBound(text: string, key: string, isSecret: boolean): string {
  const cursor = openBound(text, key)
  if (isSecret && !isSealed(cursor)) throw foreignCursor()
  return cursor
}

/** The cursor of the store in one that a client has sent. @throws HttpError 400 for one that does not belong to this list */
function openBound(text: string, key: string): string {
  const bytes = Buffer.from(text, 'base64url')
  const isWhole = text !== '' && bytes.toString('base64url') === text
  if (isWhole && key === '') return bytes.toString()
  if (isWhole && bytes.length > BINDING && bytes.subarray(0, BINDING).equals(bindingOf(key))) {
    return bytes.subarray(BINDING).toString()
  }
  throw foreignCursor()
}

function foreignCursor(): HttpError {
  const detail = 'after is a cursor from a Link field of a response to the same query.'
  return new HttpError(400, 'ERR_MALFORMED_QUERY', { detail, errors: [{ parameter: 'after', detail }] })
}

function bindingOf(key: string): Buffer {
  return hash('sha256', key, 'buffer').subarray(0, BINDING)
}

/** Characters of a name in a cursor: those of integers and random names, and of most others. */
export const USUAL_NAME = 48

/** @throws HttpError 400 for a query whose next page might have a target that is too long, which ends the walk midway */
function requireRoomForNext(exchange: ResourceExchange, { query, target }: Listing, rules: QueryRules): void {
  const keys = (query?.orderBy ?? []).map(({ property }) => rules.properties.get(property)!)
  const bytes = BINDING + 4 + USUAL_NAME + sizeOfKeys(keys)
  requireRoomFor(exchange, `${target}&after=${'-'.repeat(Math.ceil((bytes * 4) / 3))}`)
}

/** @throws HttpError 400 for a query that is too long for a target */
export function requireRoomFor(exchange: ResourceExchange, query: string): void {
  if (fitsTarget(exchange, query)) return
  throw new HttpError(400, 'ERR_MALFORMED_QUERY', {
    detail:
      'The target of a next page might be longer than this server takes. Send the query with QUERY, as content of type ' +
      'application/x-www-form-urlencoded.',
  })
}

/** About the most bytes that the keys of an order take in a cursor: those of the longest properties. */
function sizeOfKeys(properties: readonly QueryProperty[]): number {
  const sizes = properties.map(({ type }) => QUERY_TYPES[type].longest).sort((a, b) => b - a)
  return sizes.slice(0, MOST_SORT_KEYS).reduce((sum, size) => sum + size, 0)
}

/** The query of a next page, before its cursor. */
const LONGEST_QUERY = '?limit=999999999&after='

/** @throws HttpError 414 for the name of a new item after which no next page fits into a target: one item would end the list for everybody */
export function requireRoomAfter({ path, route }: ResourceExchange): void {
  const { collection, name } = splitPath(path)
  const { authorize, context, indexing } = route
  const properties = [...(indexing?.query?.properties.values() ?? [])]
  const size = Buffer.byteLength(name) + sizeOfKeys(properties)
  // A page may have to end behind an item that the client may not see.
  const isOpen = authorize === undefined && !properties.some(({ isSensitive }) => isSensitive)
  const cursor = ((BINDING + (isOpen ? size : sealedSize(size))) * 4) / 3
  if (formatPath(collection).length + LONGEST_QUERY.length + cursor <= context.maxTargetLength) return
  throw new HttpError(414, 'ERR_TARGET_TOO_LONG', { detail: 'The name is too long for an item of a list.' })
}
