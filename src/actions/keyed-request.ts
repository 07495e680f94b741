import { hash } from 'node:crypto'
import { parseMultipart } from '../body-types/multipart.ts'
import { HttpError, isHttpError, malformedField } from '../core/errors.ts'
import { wantsDigests } from '../core/fields.ts'
import type { Step } from '../core/handler.ts'
import { andThen, isPromise, type MaybePromise, orElse } from '../core/maybe-promise.ts'
import type { Reply } from '../core/reply.ts'
import { declaredLength } from '../core/request-content.ts'
import { createUnavailableError } from '../core/unavailable.ts'
import { parseIdempotencyKey } from '../protocol/structured-fields.ts'
import { isResource } from '../stores/rules.ts'
import type { RelatedWrite, ResourceStore, StoredResource, StoredState } from '../stores/types.ts'
import { requireAuthorization } from './authorization.ts'
import { readForFingerprint, SMALL_CONTENT, streamContent } from './content.ts'
import { ERASE } from './delete.ts'
import { Fingerprint, formatRecord, makeRepeatable, RECORDS, readRecord, replayedReply } from './first-answer.ts'
import { addWantedDigests } from './get.ts'
import { HIDDEN, ReadUntilLeft, type ResourceExchange, WHOLE } from './resource-exchange.ts'
import { readInScope, refuseOutOfScope } from './scope.ts'

/** A request that is answered once, however often it is sent. */
export interface KeyedRequest {
  /** Where the record of its first answer is, or will be. */
  readonly path: string
  readonly fingerprint: Fingerprint
}

/** Characters of a key that is not tied to a name: shorter ones could be guessed, and the answer read by others. */
export const SHORTEST_SECRET = 16

/**
 * Whether the request repeats one that was answered: then that answer, and nothing happens (400, 422). A repetition is not
 * judged by the state, which the first request has changed.
 */
export function checkRepeated(exchange: ResourceExchange): MaybePromise<Reply | undefined> {
  const rule = exchange.route.idempotency
  if (rule === undefined || !takesKey(exchange)) return undefined
  const field = exchange.field('idempotency-key')
  if (field === undefined) {
    if (!rule.isRequired) return undefined
    const detail = `The request needs an Idempotency-Key${exchange.method === 'PATCH' ? ' or If-Match with a tag' : ''}.`
    throw new HttpError(400, 'ERR_IDEMPOTENCY_KEY_REQUIRED', { detail })
  }
  const key = parseIdempotencyKey(field)
  if (key === undefined) {
    throw malformedField('Idempotency-Key is one string of 1 to 255 visible ASCII characters without " , ; and \\.')
  }
  // Tokens that name no one, as those of a verifier that returns true, have one principal between them.
  const isNamed = exchange.principal !== undefined && exchange.principal.id !== ''
  if (!isNamed && key.length < SHORTEST_SECRET) {
    throw malformedField(
      `Without credentials that name a principal an Idempotency-Key needs ${SHORTEST_SECRET} characters or more.`,
    )
  }
  exchange.keyed = { path: `${RECORDS}/${nameRecord(exchange, key)}`, fingerprint: beginFingerprint(exchange) }
  if (isLeftToWrite(exchange)) return undefined
  // What was answered before tells of what is hidden now. It is read all the same: what is hidden takes the calls of the
  // store that an absent resource takes.
  if (exchange.concealed !== undefined) return andThen(readFirst(exchange), () => undefined)
  return answerAgain(exchange)
}

/** Stores whose reads take time, by what they did. Kept here, so that a route stays as it was compiled. */
const slowStores = new WeakSet<ResourceStore>()

/**
 * Whether the record is looked for only by the write, which finds it there in any case: one round trip less for a small
 * creation. No state stands between, and a refusal looks for the record before it is sent. A repetition then takes a name
 * that stays unused. A hook is not called for a repetition: with one, the record is read first.
 */
function isLeftToWrite(exchange: ResourceExchange): boolean {
  const { method, conditions, route, keyed } = exchange
  if (method !== 'POST' || conditions !== undefined || route.beforeWrite !== undefined) return false
  // A form that is refused midway has no fingerprint, by which a refusal would look for the record.
  if (keyed!.fingerprint.kind === 'parts') return false
  if (!slowStores.has(route.context.store)) return false
  return (declaredLength(exchange) ?? Number.POSITIVE_INFINITY) <= SMALL_CONTENT
}

/** POST, and PATCH that no tag protects: `*` matches the patched state as well. Other methods are idempotent. */
function takesKey(exchange: ResourceExchange): boolean {
  const { method } = exchange
  return method === 'POST' || (method === 'PATCH' && (exchange.conditions?.ifMatch ?? '*') === '*')
}

/** Keys of different principals, methods and targets have nothing to do with each other. */
function nameRecord(exchange: ResourceExchange, key: string): string {
  const { principal, method, mount, path, queryText, scope } = exchange
  const sender = principal === undefined ? null : [principal.scheme, principal.id]
  const parts = JSON.stringify([sender, method, mount, path, queryText, key, ...(scope === undefined ? [] : [scope])])
  return hash('sha256', parts, 'base64url')
}

function beginFingerprint(exchange: ResourceExchange): Fingerprint {
  const coding = exchange.field('content-encoding')
  const isForm = exchange.contentType === 'multipart/form-data' && exchange.route.collection?.content !== 'raw'
  if (isForm) return new Fingerprint('parts', exchange.contentType, coding)
  return new Fingerprint('bytes', exchange.field('content-type')?.trim() ?? '', coding)
}

/** The first answer, where there is one; `undefined` where the key has not been used, or has expired. */
function answerAgain(exchange: ResourceExchange): MaybePromise<Reply | undefined> {
  return andThen(readFirst(exchange), (state) => {
    if (!isResource(state)) return undefined
    return andThen(requireInScope(exchange), () =>
      repeatAnswer(exchange, state).then((reply) =>
        reply !== undefined && wantsDigests(exchange) ? addWantedDigests(exchange, reply) : reply,
      ),
    )
  })
}

/** Reads the record of the first answer. */
function readFirst(exchange: ResourceExchange): MaybePromise<StoredState> {
  const { store } = exchange.route.context
  const state = store.read(exchange.keyed!.path, new ReadUntilLeft(exchange, WHOLE))
  if (isPromise(state)) slowStores.add(store)
  return state
}

/** The first response describes an item, which may belong to another caller by now. @throws HttpError 404 */
function requireInScope(exchange: ResourceExchange): MaybePromise<void> {
  const { scope, route, storePath } = exchange
  if (scope === undefined || route.collection !== undefined) return undefined
  return andThen(readInScope(exchange, storePath, new ReadUntilLeft(exchange, HIDDEN)), () =>
    refuseOutOfScope(exchange),
  )
}

/**
 * The answer that a record keeps.
 * @returns `undefined` where it has expired; it is gone then
 * @throws HttpError 422 where the record is of another request
 */
export async function repeatAnswer(exchange: ResourceExchange, resource: StoredResource): Promise<Reply | undefined> {
  const { store, now } = exchange.route.context
  const first = await readRecord(resource, exchange)
  if (first.expires <= now()) {
    await store.remove(resource.path, { ...ERASE, expect: { version: resource.version }, signal: exchange.signal })
    return undefined
  }
  const { fingerprint } = exchange.keyed!
  if (fingerprint.state === 'unread') await readFingerprint(exchange, fingerprint)
  if (fingerprint.value === first.fingerprint) return replayedReply(first)
  throw new HttpError(422, 'ERR_IDEMPOTENCY_KEY_REUSED', {
    detail: 'The Idempotency-Key was used for another request.',
  })
}

/** Reads the content for its fingerprint alone. */
async function readFingerprint(exchange: ResourceExchange, fingerprint: Fingerprint): Promise<void> {
  if (fingerprint.kind === 'bytes') return readForFingerprint(exchange)
  const { limits } = exchange.route.context
  const type = { essence: exchange.contentType, parameters: exchange.contentParameters }
  const source = streamContent(exchange, Number.POSITIVE_INFINITY)
  for await (const part of parseMultipart(source, type, limits)) {
    if (part.kind === 'field') fingerprint.addField(part)
    else for await (const _ of fingerprint.tapFile(part));
  }
  fingerprint.endForm()
}

/** The record of an answer, to be written in the same atomic step as the effect; and the answer, as it can be repeated. */
export function recordAnswer(
  exchange: ResourceExchange,
  reply: Reply,
): { readonly reply: Reply; readonly write: RelatedWrite } {
  const { path, fingerprint } = exchange.keyed!
  const { context, idempotency } = exchange.route
  const repeatable = makeRepeatable(reply)
  const { retention } = idempotency!
  const content = {
    contentType: 'text/plain',
    body: formatRecord(repeatable, context.now() + retention, fingerprint.value),
  }
  const kept = retention === Number.POSITIVE_INFINITY ? undefined : { retention }
  return { reply: repeatable, write: { path, content, expect: 'absent', ...kept } }
}

/**
 * The answer of the request that won the race of patches for a key.
 * @throws HttpError 422 where that was another request; 503 where its record expired at this very moment
 */
export async function answerOfWinner(exchange: ResourceExchange, winner: StoredResource): Promise<Reply> {
  const reply = await repeatAnswer(exchange, winner)
  if (reply === undefined) throw createUnavailableError()
  return reply
}

/**
 * Looks for the first answer once more when a request with a key is refused: the same request may have won meanwhile, and
 * its effect is the reason for the refusal.
 */
export function orFirstAnswer(decide: Step<ResourceExchange>): Step<ResourceExchange> {
  function lookAgain(exchange: ResourceExchange, error: unknown): MaybePromise<Reply | undefined> {
    const { keyed } = exchange
    // Of the server as well: where no name or no room is left, a repetition needs neither.
    const isRefusal = isHttpError(error) && error.code !== 'ERR_IDEMPOTENCY_KEY_REUSED' && error.status !== 503
    if (keyed === undefined || !isRefusal) throw error
    // Content that was refused while it was read, or for its digest, has no fingerprint, and cannot be read again.
    const { state } = keyed.fingerprint
    if (state === 'partial' || (state === 'unread' && exchange.bodyState !== 'unread')) throw error
    return answerOrRefuse(exchange, error)
  }

  async function answerOrRefuse(exchange: ResourceExchange, error: HttpError): Promise<Reply> {
    try {
      // It may have lost its rights by the effect of the one that won.
      if (error.status === 403 || error.status === 404) {
        exchange.isStateRead = false
        await requireAuthorization(exchange)
      }
    } catch (refusal) {
      // As in checkRepeated: the record is read, and not used.
      await readFirst(exchange)
      throw refusal
    }
    const reply = await answerAgain(exchange)
    if (reply === undefined) throw error
    return reply
  }

  return (exchange) =>
    orElse(
      () => decide(exchange),
      (error) => lookAgain(exchange, error),
    )
}
