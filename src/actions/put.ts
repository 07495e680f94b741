import { HttpError, isHttpError } from '../core/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue, readMember } from '../core/json.ts'
import { andThen, type MaybePromise, orElse } from '../core/maybe-promise.ts'
import { emptyReply, type Reply } from '../core/reply.ts'
import { declaredLength } from '../core/request-content.ts'
import { formatEntityTag } from '../protocol/preconditions.ts'
import { formatPath } from '../protocol/request-line.ts'
import { isStaged, nameOf } from '../stores/rules.ts'
import type { Content, StoredResource, WriteResult } from '../stores/types.ts'
import { recheckAbsence } from './authorization.ts'
import { beginRequestedChange } from './changes.ts'
import { commit, commitWithoutTurn, WriteUntilLeft, writeChange } from './commit.ts'
import { contentOf, discardContent, hasSchema, type Proposal, readJson, readRawContent } from './content.ts'
import { indexContent } from './indexing.ts'
import { completeItem, keptNamesOf, validateItemContent } from './item-files.ts'
import { requireRoomAfter, USUAL_NAME } from './listing.ts'
import { addStateFields, writtenReply } from './representation.ts'
import { appliedPreferences, type ResourceExchange, unknownMembers } from './resource-exchange.ts'
import { textOf } from './resource-view.ts'
import type { Action } from './route.ts'
import { scopeNamesOf, splitScope } from './scope.ts'
import { addProperties, propertiesOfServer, validateItem } from './server-properties.ts'
import { checkConditions, expectationOf, requirePresent } from './state.ts'
import { requireParent } from './target-steps.ts'
import { type Document, idOf, insertId, validateDocument } from './validation.ts'
import { checkConflict, kindOf, readSeenState, type SeenState, stamp } from './write-hooks.ts'

type Written = Exclude<WriteResult, { outcome: 'conflict' }>

/** Loads the target of a PUT that may create an item, whose name is the cursor of the page after it. */
export function wherePageFollows(load: Action['load']): Action['load'] {
  return (exchange) => {
    // Where maxTargetLength is small, usual names are not to blame.
    if (Buffer.byteLength(nameOf(exchange.path)) > USUAL_NAME) requireRoomAfter(exchange)
    return load(exchange)
  }
}

/** Bytes of content that arrive no later than the answer of a store about the state would. */
const MOST_FORESEEN = 16 * 1024

/** Reads the state for a PUT, unless its If-Match is left to the write. */
export function unlessForeseen(load: Action['load']): Action['load'] {
  return (exchange) => (foreseeVersion(exchange) ? undefined : load(exchange))
}

/**
 * Leaves If-Match of a PUT to the write, which replaces the version of the tag or nothing: one call of the store instead of
 * two. Only for small content of a client that does not wait for 100, and where no hook has to see the state before.
 * A request that is traced reads the state: its trace names what was decided by it.
 * @returns whether the state need not be read now
 */
function foreseeVersion(exchange: ResourceExchange): boolean {
  const { conditions, route } = exchange
  const tag = conditions?.ifMatch
  // A condition that was judged once is judged anew by what is stored.
  if (tag === undefined || !route.isComparedByWrite || exchange.isStateRead || exchange.isConditional) return false
  if (conditions!.ifNoneMatch !== undefined || exchange.field('expect') !== undefined) return false
  if (exchange.trace !== undefined || (declaredLength(exchange) ?? Number.POSITIVE_INFINITY) > MOST_FORESEEN)
    return false
  const version = tag.slice(1, -1)
  if (version === '' || formatEntityTag(version) !== tag) return false
  exchange.foreseenVersion = version
  return true
}

/** PUT: stores the enclosed representation at the target (RFC 9110 §9.3.4). */
export function put(exchange: ResourceExchange): MaybePromise<Reply> {
  return exchange.foreseenVersion === undefined ? putContent(exchange) : putForeseen(exchange)
}

/**
 * Performs a write that decides on its condition. Another fault of the request is answered only where the current state meets
 * the condition: the state comes before the content in the order of decisions (RFC 9110 §13.2.1).
 * @throws HttpError 412, 404, 410 instead of a fault of the content
 */
function putForeseen(exchange: ResourceExchange): MaybePromise<Reply> {
  return orElse(
    () => putContent(exchange),
    (error) => {
      const isJudged = exchange.foreseenVersion === undefined
      if (isJudged || !isHttpError(error) || error.status >= 500) throw error
      return andThen(exchange.action.load(exchange), () => {
        checkConditions(exchange)
        throw error
      })
    },
  )
}

function putContent(exchange: ResourceExchange): MaybePromise<Reply> {
  if (exchange.route.isJson || hasSchema(exchange)) return readJson(exchange, putDocument)
  return readRawContent(exchange).then((proposal) => storeProposal(exchange, proposal))
}

function putDocument(exchange: ResourceExchange, document: Document): MaybePromise<Reply> {
  const { route } = exchange
  if (route.indexing !== undefined || route.describesFiles || route.beforeWrite !== undefined) {
    return putProperties(exchange, document)
  }
  const valid = validateDocument(document, route, unknownMembers(exchange))
  return andThen(valid, (valid) => storeProposal(exchange, proposeDocument(exchange, valid)))
}

/** PUT of an item some of whose properties are the server's. */
function putProperties(exchange: ResourceExchange, document: Document): MaybePromise<Reply> {
  const { route } = exchange
  const { document: own, owned } = splitScope(exchange, document)
  if (route.describesFiles || route.beforeWrite !== undefined) return putItem(exchange, own, owned)
  const valid = validateItem(own, route, unknownMembers(exchange), scopeNamesOf(route))
  return andThen(valid, (valid) => storeProposal(exchange, proposeDocument(exchange, addProperties(valid, owned))))
}

/** PUT of content that depends on the state it replaces: the server says what is known of files, or a hook changes it. */
async function putItem(exchange: ResourceExchange, document: Document, owned: JsonObject): Promise<Reply> {
  const item = await validateItemContent(exchange, document)
  let proposal!: Proposal
  const result = await commit(exchange, async (): Promise<WriteResult> => {
    const seen = await readSeenState(exchange)
    if (seen === undefined) return { outcome: 'conflict', current: exchange.state }
    const complete = await completeItem(exchange, item, seen.resource)
    const stamped = await stampReplacement(exchange, complete, seen)
    proposal = proposeDocument(exchange, addProperties(stamped, owned))
    return checkAndWrite(exchange, proposal.content, seen)
  })
  return createReply(exchange, result, proposal)
}

function stampReplacement(exchange: ResourceExchange, document: Document, seen: SeenState): MaybePromise<Document> {
  const { route } = exchange
  if (route.beforeWrite === undefined) return document
  requireTargetId(exchange, document.value)
  const properties = propertiesOfServer(route, keptNamesOf(route))
  return stamp(exchange, document, { kind: kindOf(seen), current: seen.resource, properties })
}

function storeProposal(exchange: ResourceExchange, proposal: Proposal): MaybePromise<Reply> {
  return andThen(commitContent(exchange, proposal.content), (result) => createReply(exchange, result, proposal))
}

/** Writes content at its turn; a stream at once, because its client may send slowly and must not make others wait. */
function commitContent(exchange: ResourceExchange, content: Content): MaybePromise<Written> {
  const { body } = content
  if (isStaged(body)) return commitOrDiscard(exchange, content)
  const write = (): MaybePromise<WriteResult> => replaceState(exchange, content)
  const isSmall = typeof body === 'string' || body instanceof Uint8Array
  return isSmall ? commit(exchange, write) : commitWithoutTurn(exchange, write)
}

/** Writes staged content, or gives it up. */
async function commitOrDiscard(exchange: ResourceExchange, content: Content): Promise<Written> {
  try {
    return await commit(exchange, () => replaceState(exchange, content))
  } catch (error) {
    await discardContent(content)
    throw error
  }
}

/** A member of a collection says its id: the one in its path. */
function proposeDocument(exchange: ResourceExchange, { value, text, isVerbatim }: Document): Proposal {
  const { route, storePath } = exchange
  const id = requireTargetId(exchange, value)
  const content = contentOf(exchange, id === undefined ? text : insertId(text, value as JsonObject, id))
  const isSent = isVerbatim && id === undefined
  if (route.indexing === undefined) return { content, isVerbatim: isSent }
  const complete = id === undefined ? value : { id, ...(value as JsonObject) }
  return { content: indexContent(route, storePath, content, complete), isVerbatim: isSent }
}

/**
 * @returns the id that the content leaves out; `undefined` where it has it, or needs none
 * @throws HttpError 409 for another id than that of the target
 */
function requireTargetId({ route, storePath }: ResourceExchange, value: JsonValue): string | number | undefined {
  if (route.idMember === undefined || !isJsonObject(value)) return undefined
  const id = idOf(nameOf(storePath), route.idMember)
  const given = readMember(value, 'id')
  if (given === undefined) return id
  if (given === id) return undefined
  throw new HttpError(409, 'ERR_CONFLICT', {
    detail: 'The id in the content is not the id in the target.',
    errors: [{ pointer: '/id', detail: `The id of this resource is ${JSON.stringify(id)}.` }],
  })
}

/** Replaces the state, after the hooks that want to see it before. */
function replaceState(exchange: ResourceExchange, content: Content): MaybePromise<WriteResult> {
  const { observesChanges, conflict, deletion } = exchange.route
  if (!observesChanges && conflict === undefined) {
    return deletion === 'soft' ? checkAndWrite(exchange, content, undefined) : replace(exchange, content, undefined)
  }
  return andThen(readSeenState(exchange), (seen) =>
    seen === undefined ? { outcome: 'conflict', current: exchange.state } : checkAndWrite(exchange, content, seen),
  )
}

/** @param seen the one state that may be replaced; `undefined`: what the conditions and `authorize` leave */
function checkAndWrite(
  exchange: ResourceExchange,
  content: Content,
  seen: SeenState | undefined,
): MaybePromise<WriteResult> {
  const { conflict, deletion } = exchange.route
  const shown = seen?.resource?.hidden === true ? undefined : seen?.resource
  const checked = conflict && checkConflict(exchange, exchange.storePath, content, shown)
  return andThen(checked, () =>
    deletion === 'soft'
      ? andThen(recheckAbsence(exchange), () => replace(exchange, content, seen))
      : replace(exchange, content, seen),
  )
}

function replace(exchange: ResourceExchange, content: Content, seen: SeenState | undefined): MaybePromise<WriteResult> {
  const { route, storePath } = exchange
  const replaced = seen === undefined ? (exchange.current ?? exchange.hidden) : seen.resource
  // It may have been removed while the content arrived.
  if (!route.createsByPut && exchange.foreseenVersion === undefined && replaced === undefined) requirePresent(exchange)
  const write = (requires: string | undefined): MaybePromise<WriteResult> => {
    const change = seen && beginRequestedChange(exchange, kindOf(seen), seen.resource)
    const options = new WriteUntilLeft(exchange, seen?.expect ?? expectationOf(exchange), requires)
    return writeChange(route.context.store, storePath, content, options, change)
  }
  return andThen(requireParent(exchange), write)
}

/** Whether the content is stored as it was sent: a store of rows may keep the same values in other bytes. */
function isStoredAsSent({ content: { body }, isVerbatim }: Proposal, resource: StoredResource): boolean {
  if (typeof body === 'string') return isVerbatim && body === (textOf(resource) ?? body)
  return isVerbatim && (!(body instanceof Uint8Array) || body.length === resource.size)
}

function createReply(exchange: ResourceExchange, result: Written, proposal: Proposal): Reply {
  const { route } = exchange
  const isVerbatim = isStoredAsSent(proposal, result.resource)
  const isCreated = result.outcome === 'created'
  const usual = isCreated || route.putResponse === 'none' ? 'minimal' : 'representation'
  const wanted = exchange.preferences.return ?? usual
  const fields = appliedPreferences(exchange)
  if (isCreated) fields.push('Location', exchange.mount + formatPath(exchange.path))
  if (wanted === 'minimal') {
    if (isVerbatim && exchange.mayTellTag) addStateFields(fields, result.resource, route)
    fields.push('Cache-Control', exchange.cacheControl)
    return isCreated ? emptyReply(201, fields) : { status: 204, headers: fields }
  }
  fields.push('Content-Location', exchange.mount + formatPath(exchange.path))
  const validators = isVerbatim ? 'with-validators' : 'without'
  return writtenReply(exchange, result.resource, isCreated ? 201 : 200, fields, validators)
}
