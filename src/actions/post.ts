import { randomUUID } from 'node:crypto'
import { HttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { contentReply, emptyReply, encodeText, type Reply } from '../core/reply.ts'
import { pause } from '../core/time.ts'
import { MAX_ATTEMPTS } from '../core/turns.ts'
import { createUnavailableError } from '../core/unavailable.ts'
import { formatPath } from '../protocol/request-line.ts'
import { isStaged, memberPath, nameOf, splitPath, UntilLeft } from '../stores/rules.ts'
import type {
  Content,
  CreateResult,
  NewState,
  StoredResource,
  WriteConflict,
  WriteOptions,
  WriteResult,
} from '../stores/types.ts'
import { beginRequestedChange, type PendingChange } from './changes.ts'
import { judgeConflict, WriteUntilLeft } from './commit.ts'
import { contentOf, discardContent, hasSchema, readJson, readRawContent } from './content.ts'
import { readForm } from './form-content.ts'
import { recordAnswer, repeatAnswer } from './keyed-request.ts'
import { fitsBelow, type NewMember, newMemberOf, rawMemberOf } from './new-member.ts'
import { writtenReply } from './representation.ts'
import { appliedPreferences, collectionPathOf, type ResourceExchange, unknownMembers } from './resource-exchange.ts'
import { checkParent, requireParent } from './target-steps.ts'
import { type Document, idOf, validateDocument } from './validation.ts'
import { foresee, withContent } from './write-hooks.ts'

/** A creation of a member. */
interface Creation {
  readonly exchange: ResourceExchange
  /** As it was sent: each attempt begins with it. */
  readonly member: NewMember
  readonly toReply: (exchange: ResourceExchange, resource: StoredResource) => Reply
  /** Called once it is stored, and not for a repetition. */
  readonly onCreated: (() => void) | undefined
}

/** POST to a collection: makes a new member of it (RFC 9110 §9.3.3). Never the same one twice. */
export function post(exchange: ResourceExchange): MaybePromise<Reply> {
  const { content: kind } = exchange.route.collection!
  if (!fitsBelow(exchange)) {
    throw new HttpError(414, 'ERR_TARGET_TOO_LONG', { detail: 'The path of a new item might be too long.' })
  }
  // Text becomes a resource of its own where the collection has no member for it.
  if (kind === 'raw' || (kind === 'any' && exchange.contentType === 'text/plain')) {
    const content = hasSchema(exchange)
      ? readJson(exchange, validContent)
      : readRawContent(exchange).then(({ content }) => content)
    return andThen(content, (content) =>
      storeMember({ exchange, member: rawMemberOf(exchange, content), toReply: createRawReply, onCreated: undefined }),
    )
  }
  if (!exchange.hasJson) return andThen(readForm(exchange), (member) => create(exchange, member))
  return readJson(exchange, (exchange, document) =>
    andThen(newMemberOf(exchange, document, []), (member) => create(exchange, member)),
  )
}

function validContent(exchange: ResourceExchange, document: Document): MaybePromise<Content> {
  const rules = { schema: exchange.route.schema, idMember: undefined }
  return andThen(validateDocument(document, rules, unknownMembers(exchange)), ({ text }) => contentOf(exchange, text))
}

function create(exchange: ResourceExchange, member: NewMember): MaybePromise<Reply> {
  const { route } = exchange
  if (route.collection!.create === 'created') {
    return storeMember({ exchange, member, toReply: createReply, onCreated: undefined })
  }
  let started: (() => void) | undefined
  const accepted: NewMember = {
    ...member,
    related: (name, state) => {
      // The work is recorded in the same atomic step as the member: no 202 without it, and it without no member.
      const work = route.context.work!.prepareProcessing(exchange, memberPath(collectionPathOf(exchange), name))
      started = work.start
      return [...member.related(name, state), work.record]
    },
  }
  return storeMember({ exchange, member: accepted, toReply: acceptedReply, onCreated: () => started?.() })
}

/** Stores a new member, and answers with it. */
function storeMember(creation: Creation): MaybePromise<Reply> {
  const isAnyStaged = creation.member.taken.some(({ body }) => isStaged(body))
  return isAnyStaged ? storeOrDiscard(creation) : tryToStore(creation, 1)
}

/** Gives up the content that came with a member where it is not stored: after a failure, and for a repetition. */
async function storeOrDiscard(creation: Creation): Promise<Reply> {
  let isStored = false
  const onCreated = (): void => {
    isStored = true
    creation.onCreated?.()
  }
  try {
    return await tryToStore({ ...creation, onCreated }, 1)
  } finally {
    if (!isStored) for (const content of creation.member.taken) await discardContent(content)
  }
}

function tryToStore(creation: Creation, attempts: number): MaybePromise<Reply> {
  const { member } = creation
  if (member.stamp === undefined) return storeStamped(creation, member, attempts)
  return andThen(member.stamp(), ({ content }) => storeStamped(creation, { ...member, content }, attempts))
}

function storeStamped(creation: Creation, stamped: NewMember, attempts: number): MaybePromise<Reply> {
  const { exchange, toReply, onCreated } = creation
  const change = exchange.route.observesChanges ? beginRequestedChange(exchange, 'created', undefined) : undefined
  const observed = change?.writes === undefined ? stamped : withOutbox(exchange, stamped, change.writes)
  let recorded: Reply | undefined
  const member =
    exchange.keyed === undefined ? observed : withRecord(creation, observed, (reply) => void (recorded = reply))
  const written = andThen(requireParent(exchange), (requires) => write(exchange, member, requires))
  return andThen(written, (result) => {
    if (result.outcome === 'conflict') {
      return lose(exchange, result, attempts).then((reply) => reply ?? tryToStore(creation, attempts + 1))
    }
    const { resource } = result
    const { path } = resource
    const after = change && withContent(resource, () => stamped.content(nameOf(path)))
    change?.commit(path, after)
    onCreated?.()
    return recorded ?? toReply(exchange, resource)
  })
}

function withOutbox(
  exchange: ResourceExchange,
  member: NewMember,
  outbox: NonNullable<PendingChange['writes']>,
): NewMember {
  return {
    ...member,
    related(name, state) {
      const path = memberPath(collectionPathOf(exchange), name)
      return [...member.related(name, state), ...outbox(path, foresee(path, member.content(name), state))]
    },
  }
}

/**
 * A member that is made once for a key: with the record of its answer in the same atomic step.
 * @param onRecorded called with the answer, which is made from the new state as far as that is known before it is written
 */
function withRecord({ exchange, toReply }: Creation, member: NewMember, onRecorded: (reply: Reply) => void): NewMember {
  return {
    ...member,
    related(name, state) {
      const content = member.content(name)
      const others = member.related(name, state)
      const path = memberPath(collectionPathOf(exchange), name)
      const { reply, write } = recordAnswer(exchange, toReply(exchange, foresee(path, content, state)))
      onRecorded(reply)
      // First, so that a repetition is recognized before anything else stands in its way.
      return [write, ...others]
    },
  }
}

/** The answer of the request that was faster; `undefined` where that has expired, or the parent is there again. */
async function lose(exchange: ResourceExchange, conflict: WriteConflict, attempts: number): Promise<Reply | undefined> {
  if (attempts === MAX_ATTEMPTS) throw createUnavailableError()
  if (conflict.missing !== undefined) {
    await pause(attempts)
    await checkParent(exchange)
    return undefined
  }
  judgeConflict(conflict, 'any', exchange.keyed?.path)
  return repeatAnswer(exchange, conflict.related!)
}

function write(
  exchange: ResourceExchange,
  { content, related }: NewMember,
  requires: string | undefined,
): MaybePromise<CreateResult | WriteResult> {
  const { context, collection, outbox } = exchange.route
  const { keyed } = exchange
  const path = collectionPathOf(exchange)
  if (collection!.ids !== 'uuid') {
    const options = Object.assign(new UntilLeft(exchange), { related, requires })
    return context.store.create(path, content, options)
  }
  const name = randomUUID()
  const own = content(name)
  const namesState = keyed !== undefined || outbox !== undefined
  const others = namesState
    ? { related: undefined, relatedTo: (state: NewState) => related(name, state) }
    : { related: related(name) }
  const options: WriteOptions = Object.assign(new WriteUntilLeft(exchange, 'absent', requires), others)
  const written = context.store.write(memberPath(path, name), own, options)
  return andThen(written, (result) => {
    const isOther = result.outcome === 'conflict' && (result.missing ?? result.related) !== undefined
    if (isOther || result.outcome === 'created') return result
    // 122 random bits: a second one of the same name is a fault, not a coincidence.
    throw new Error(`A random name was taken already: ${name}`)
  })
}

function locationOf(exchange: ResourceExchange, resource: StoredResource): string {
  return exchange.mount + formatPath(resource.path)
}

function acceptedReply(exchange: ResourceExchange, resource: StoredResource): Reply {
  const fields = ['Location', locationOf(exchange, resource), ...appliedPreferences(exchange, 'accepted')]
  return emptyReply(202, [...fields, 'Cache-Control', 'no-store'])
}

/** 201 with the stored representation. Cacheable only where the definition says for how long (RFC 9110 §9.3.3). */
function createReply(exchange: ResourceExchange, resource: StoredResource): Reply {
  const fields = appliedPreferences(exchange)
  const location = locationOf(exchange, resource)
  fields.push('Location', location)
  const postCacheControl = exchange.route.postCacheControl[exchange.sharing]
  if (exchange.preferences.return === 'minimal') return emptyReply(201, [...fields, 'Cache-Control', postCacheControl])
  fields.push('Content-Location', location)
  return writtenReply(exchange, resource, 201, fields, 'with-validators', postCacheControl)
}

/** 201 for content that is kept as it came: the answer says under which id. */
function createRawReply(exchange: ResourceExchange, resource: StoredResource): Reply {
  const cacheControl = exchange.route.postCacheControl[exchange.sharing]
  const isMinimal = exchange.preferences.return === 'minimal'
  const applied = appliedPreferences(exchange, isMinimal ? 'done' : 'id')
  const fields = ['Location', locationOf(exchange, resource), 'Cache-Control', cacheControl, ...applied]
  if (isMinimal) return emptyReply(201, fields)
  const id = idOf(splitPath(resource.path).name, exchange.route.collection!.ids === 'uuid' ? 'string' : 'integer')
  return contentReply(201, encodeText(JSON.stringify({ id })), [...fields, 'Content-Type', 'application/json'])
}
