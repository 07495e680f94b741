import { HttpError } from '../core/errors.ts'
import { andThen, isPromise, type MaybePromise } from '../core/handler.ts'
import { isJsonObject, type JsonObject, type JsonValue, readMember } from '../core/json.ts'
import { emptyReply, type Reply } from '../core/reply.ts'
import { formatPath } from '../protocol/request-target.ts'
import { nameOf } from '../stores/paths.ts'
import { type Content, type Expectation, isStaged, type WriteResult } from '../stores/types.ts'
import { checkAuthorization, recheckAbsence } from './authorization.ts'
import { commit, commitWithoutTurn } from './commit.ts'
import { checkConditions, expectationOf } from './conditions.ts'
import { discardContent, hasSchema, readJson } from './content.ts'
import { loadView, viewState } from './hooks.ts'
import { indexContent } from './indexing.ts'
import { completeItem, hasFileProperties, validateItemContent } from './item-files.ts'
import { appliedPreferences, preferredReturn, unknownMembers } from './preferences.ts'
import { contentOf, type Proposal, readRawContent } from './raw-content.ts'
import { addStateFields, cacheControlFor, writtenReply } from './representation.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { ConflictHook } from './route.ts'
import { readInScope, refuseTaken } from './scope.ts'
import { splitScope } from './scope-properties.ts'
import { addProperties } from './server-properties.ts'
import { setState } from './state.ts'
import { type Document, idOf, insertId, validateDocument } from './validation.ts'

type Written = Exclude<WriteResult, { outcome: 'conflict' }>

/** PUT: stores the enclosed representation at the target (interface, PUT 1). */
export function put(exchange: ResourceExchange): MaybePromise<Reply> {
  if (!exchange.route.isJson && !hasSchema(exchange))
    return readRawContent(exchange).then((proposal) => store(exchange, proposal))
  return readJson(exchange, putDocument)
}

function putDocument(exchange: ResourceExchange, document: Document): MaybePromise<Reply> {
  const { document: own, owned } = splitScope(exchange, document)
  if (hasFileProperties(exchange.route)) return putItem(exchange, own, owned)
  const valid = validateDocument(own, exchange.route, unknownMembers(exchange))
  return andThen(valid, (valid) => store(exchange, proposeDocument(exchange, addProperties(valid, owned))))
}

/** PUT of an item that may have files: the server says what is known of them. */
async function putItem(exchange: ResourceExchange, document: Document, owned: JsonObject): Promise<Reply> {
  const item = await validateItemContent(exchange, document)
  const tells = wantedReturn(exchange) === 'representation'
  let isVerbatim = false
  const result = await commit(
    exchange,
    async (exchange): Promise<WriteResult> => {
      const complete = await completeItem(exchange, item, tells)
      if (complete === undefined) return { outcome: 'conflict', current: exchange.state }
      const proposal = proposeDocument(exchange, addProperties(complete.document, owned))
      isVerbatim = proposal.isVerbatim
      return attempt(exchange, proposal.content, complete.expect)
    },
    undefined,
  )
  return createReply(exchange, result, isVerbatim)
}

function store(exchange: ResourceExchange, proposal: Proposal): MaybePromise<Reply> {
  const { content, isVerbatim } = proposal
  const result = isStaged(content.body) ? commitOrDiscard(exchange, content) : commitContent(exchange, content)
  if (isPromise(result)) return result.then((result) => createReply(exchange, result, isVerbatim))
  return createReply(exchange, result, isVerbatim)
}

/** Writes content at its turn; a stream at once, because its client may send slowly and must not make others wait. */
function commitContent(exchange: ResourceExchange, content: Content): MaybePromise<Written> {
  const isHere = typeof content.body === 'string' || content.body instanceof Uint8Array
  return isHere ? commit(exchange, write, content) : commitWithoutTurn(exchange, write, content)
}

/** Writes staged content, or gives it up. */
async function commitOrDiscard(exchange: ResourceExchange, content: Content): Promise<Written> {
  try {
    return await commit(exchange, write, content)
  } catch (error) {
    await discardContent(content)
    throw error
  }
}

/** A member of a collection says its id: the one in its path. */
function proposeDocument(exchange: ResourceExchange, { value, text, isVerbatim }: Document): Proposal {
  const { idMember } = exchange.route
  const propose = (text: string, value: JsonValue, isVerbatim: boolean): Proposal => ({
    content: indexContent(exchange.route, exchange.storePath, contentOf(exchange, text), value),
    isVerbatim,
  })
  if (idMember === undefined || !isJsonObject(value)) return propose(text, value, isVerbatim)
  const id = idOf(nameOf(exchange.storePath), idMember)
  const given = readMember(value, 'id')
  if (given === id) return propose(text, value, isVerbatim)
  if (given !== undefined) {
    throw new HttpError(409, 'ERR_CONFLICT', {
      detail: 'The id in the content is not the id in the target.',
      errors: [{ pointer: '/id', detail: `The id of this resource is ${JSON.stringify(id)}.` }],
    })
  }
  return propose(insertId(text, value, id), { id, ...value }, false)
}

function write(exchange: ResourceExchange, content: Content): MaybePromise<WriteResult> {
  return attempt(exchange, content)
}

/** @param only the one state that may be replaced; default: what the conditions and `authorize` leave */
function attempt(exchange: ResourceExchange, content: Content, only?: Expectation): MaybePromise<WriteResult> {
  const { route, storePath } = exchange
  const write = (expect: Expectation) =>
    route.context.store.write(storePath, content, { expect, signal: exchange.signal })
  if (route.conflict === undefined) {
    const rechecked = recheckAbsence(exchange)
    if (!isPromise(rechecked)) return write(only ?? expectationOf(exchange))
    return rechecked.then(() => write(only ?? expectationOf(exchange)))
  }
  return andThen(checkConflict(exchange, content, route.conflict), (expect) => write(only ?? expect))
}

/**
 * Asks the definition about a conflict (interface, PUT 4).
 * @returns the state that was seen: the write insists on it
 */
function checkConflict(
  exchange: ResourceExchange,
  content: Content,
  conflict: ConflictHook,
): MaybePromise<Expectation> {
  const { limits } = exchange.route.context
  // The state was read for its validators only, if at all: the hook sees its content.
  return andThen(readInScope(exchange, exchange.storePath, { signal: exchange.signal }), (state) => {
    refuseTaken(exchange)
    // It may be another state than the one that was judged.
    setState(exchange, state)
    return andThen(checkAuthorization(exchange), () => {
      checkConditions(exchange)
      const { current } = exchange
      const size = typeof content.body === 'string' ? Buffer.byteLength(content.body) : sizeOfBody(content)
      const draft = { ...content, path: exchange.storePath, version: '', size, body: smallBody(content) }
      const proposed = viewState(draft, limits.bodySize)
      const view = loadView(current, limits.bodySize, exchange.signal)
      const verdict = andThen(view, (view) => conflict(proposed, view, exchange))
      return andThen(verdict, (detail) => {
        if (detail !== undefined) throw new HttpError(409, 'ERR_CONFLICT', { detail })
        return current === undefined ? 'absent' : { version: current.version }
      })
    })
  })
}

function smallBody({ body }: Content): string | Uint8Array {
  return typeof body === 'string' || body instanceof Uint8Array ? body : ''
}

function sizeOfBody({ body }: Content): number {
  if (body instanceof Uint8Array) return body.length
  return typeof body === 'object' && 'staged' in body ? body.size : 0
}

/** What the answer to a replacement holds. */
function wantedReturn(exchange: ResourceExchange): 'minimal' | 'representation' {
  return preferredReturn(exchange) ?? (exchange.route.putResponse === 'none' ? 'minimal' : 'representation')
}

function createReply(exchange: ResourceExchange, result: Written, isVerbatim: boolean): MaybePromise<Reply> {
  const { route } = exchange
  const isCreated = result.outcome === 'created'
  const wanted = isCreated ? (preferredReturn(exchange) ?? 'minimal') : wantedReturn(exchange)
  const fields = appliedPreferences(exchange)
  if (isCreated) fields.push('Location', exchange.mount + formatPath(exchange.path))
  if (wanted === 'minimal') {
    if (isVerbatim) addStateFields(fields, result.resource, route)
    fields.push('Cache-Control', cacheControlFor(exchange))
    return emptyReply(isCreated ? 201 : 204, fields)
  }
  fields.push('Content-Location', exchange.mount + formatPath(exchange.path))
  return writtenReply(
    exchange,
    result.resource,
    isCreated ? 201 : 200,
    fields,
    isVerbatim ? 'with-validators' : 'without',
  )
}
