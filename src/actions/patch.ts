import { requireFewMembers } from '../body-types/json.ts'
import type { BodyLimits } from '../body-types/limits.ts'
import { HttpError } from '../core/errors.ts'
import { equalJson, hasMoreEntries, isJsonObject, type JsonValue, keepsNumbers, readMember } from '../core/json.ts'
import { andThen, atOnce, type MaybePromise } from '../core/maybe-promise.ts'
import { emptyReply, type Reply } from '../core/reply.ts'
import { type ParsedPatch, selectPatchFormat } from '../patch-formats/patch-format.ts'
import { isJsonContentType } from '../protocol/media-type.ts'
import { formatPath } from '../protocol/request-line.ts'
import { splitPath } from '../stores/rules.ts'
import type { Content, NewState, RelatedWrite, StoredResource, WriteResult } from '../stores/types.ts'
import { beginRequestedChange, readForHooks } from './changes.ts'
import { commit, WriteUntilLeft, writeChange } from './commit.ts'
import { readJson } from './content.ts'
import { filePropertiesOf } from './delete.ts'
import { indexContent } from './indexing.ts'
import { answerOfWinner, recordAnswer } from './keyed-request.ts'
import { addStateFields, writtenReply } from './representation.ts'
import { appliedPreferences, type ResourceExchange, unknownMembers } from './resource-exchange.ts'
import { fetchJson, recallDocument, rememberDocument, textOf } from './resource-view.ts'
import { requireScope, scopeNamesOf } from './scope.ts'
import { propertiesOfServer, requireSameFacts, splitProperties, validateItem, WORK } from './server-properties.ts'
import { loadPresent, requirePresent } from './state.ts'
import { parentOf, requireParent } from './target-steps.ts'
import { type Document, idOf, invalid, requireKeptNumbers } from './validation.ts'
import { checkConflict, foresee, stamp } from './write-hooks.ts'

/** `unchanged`: the patch asks for what is there already, and nothing was written. */
type Patched =
  | { readonly outcome: 'unchanged'; readonly resource: StoredResource }
  /** The key of the request has been used: the answer of before. Or the answer that has been recorded. */
  | { readonly outcome: 'answered'; readonly reply: Reply }
  | WriteResult

/** Reads the state of a target that must exist and be JSON: no condition makes anything else one that can be patched. */
export function loadDocument(exchange: ResourceExchange): MaybePromise<void> {
  return andThen(loadPresent(exchange), () => requireDocument(exchange.current!))
}

/** PATCH: applies a patch document to the current state, all of it or nothing (RFC 5789 §2). */
export function patch(exchange: ResourceExchange): MaybePromise<Reply> {
  const format = selectPatchFormat(exchange.field('content-type'), exchange.route.patchFormats)
  return readJson(exchange, (exchange, document) => {
    requireKeptNumbers(document)
    const parsed = atOnce(format.parse(document.value))
    const committed = commit(exchange, () => patchCurrent(exchange, parsed))
    return andThen(committed, (result) =>
      result.outcome === 'answered' ? result.reply : createReply(exchange, result),
    )
  })
}

/** @throws HttpError 415: only JSON can be patched by the formats we know (RFC 5789 §2.2) */
function requireDocument(resource: StoredResource): void {
  if (isJsonContentType(resource.contentType) && resource.contentEncoding === undefined) return
  throw new HttpError(415, 'ERR_UNSUPPORTED_MEDIA_TYPE', {
    detail: `A resource of type ${resource.contentType} cannot be patched; replace it with PUT.`,
  })
}

/** Bytes in memory for each byte of the document: its text, its values, and what the patch makes of both. */
const COPIES = 4

function patchCurrent(exchange: ResourceExchange, parsed: ParsedPatch): MaybePromise<Patched> {
  requirePresent(exchange)
  const resource = exchange.current!
  requireDocument(resource)
  const { largeContent, limits } = exchange.route.context
  // One that is larger is refused before it is read.
  const bytes = COPIES * Math.min(resource.size, limits.bodySize)
  return largeContent.hold(bytes, () => patchResource(exchange, resource, parsed), exchange)
}

function patchResource(
  exchange: ResourceExchange,
  resource: StoredResource,
  parsed: ParsedPatch,
): MaybePromise<Patched> {
  // Before the patch is applied: what comes of it tells of the item.
  return andThen(requireParent(exchange), () =>
    andThen(currentDocument(exchange, resource), (document) =>
      andThen(readForHooks(exchange, resource), (resource) =>
        write(exchange, resource, document, atOnce(parsed.apply(document))),
      ),
    ),
  )
}

/** Writes a patched document, if it still is what the definition takes, over the state that was patched. */
function write(
  exchange: ResourceExchange,
  resource: StoredResource,
  document: JsonValue,
  patched: JsonValue,
): MaybePromise<Patched> {
  const { route } = exchange
  if (patched === document) return recordUnchanged(exchange, resource)
  requireSameId(exchange, document, patched)
  if (route.showsWork) requireSameState(document, patched)
  requireScope(exchange, patched, 'present')
  const text = JSON.stringify(patched)
  return andThen(filePropertiesOf(route, exchange.storePath, exchange), (files) => {
    requireSameFacts(splitProperties(patched, files).owned, splitProperties(document, files).owned, files)
    const names = [...files, ...scopeNamesOf(route)]
    const sent = { value: patched, text, isVerbatim: true }
    const validated = validateItem(sent, route, unknownMembers(exchange), names)
    if (route.beforeWrite === undefined) return andThen(validated, (valid) => writeValid(exchange, resource, valid))
    const about = { kind: 'patched', current: resource, properties: propertiesOfServer(route, names) } as const
    const stamped = andThen(validated, (valid) => stamp(exchange, valid, about))
    return andThen(stamped, (stamped) =>
      // The hook has taken back what the patch changes.
      equalJson(stamped.value, document)
        ? recordUnchanged(exchange, resource)
        : writeValid(exchange, resource, stamped),
    )
  })
}

function writeValid(exchange: ResourceExchange, resource: StoredResource, document: Document): MaybePromise<Patched> {
  const { value, text } = document
  const { route, storePath } = exchange
  const { limits } = route.context
  const most = Math.min(limits.bodySize, route.maxSize)
  if (Buffer.byteLength(text) > most) throw tooLarge('The patched document would be too large.')
  requireFewMembers(text, limits)
  const { contentType, contentLanguage, filename } = resource
  const content = indexContent(route, storePath, { contentType, contentLanguage, filename, body: text }, value)
  return andThen(checkConflict(exchange, storePath, content, resource), () =>
    andThen(writeOnce(exchange, resource, content), (result) => {
      if ('resource' in result) rememberDocument(result.resource, value)
      return result
    }),
  )
}

/** Writes over the state that was patched; with a key, the record of the answer as well. */
function writeOnce(exchange: ResourceExchange, resource: StoredResource, content: Content): MaybePromise<Patched> {
  const { storePath, keyed, route } = exchange
  const options = new WriteUntilLeft(exchange, { version: resource.version }, parentOf(exchange))
  const change = route.observesChanges ? beginRequestedChange(exchange, 'patched', resource) : undefined
  if (keyed === undefined) return writeChange(route.context.store, storePath, content, options, change)
  let reply: Reply | undefined
  const writes = (state: NewState): readonly RelatedWrite[] => {
    const next = foresee(storePath, content, state)
    const recorded = recordAnswer(exchange, createReply(exchange, { outcome: 'replaced', resource: next }))
    reply = recorded.reply
    return [recorded.write]
  }
  const written = writeChange(route.context.store, storePath, content, options, change, { writes, absent: keyed.path })
  return andThen(written, (result): MaybePromise<Patched> => {
    if (result.outcome !== 'conflict') return { outcome: 'answered', reply: reply! }
    if (result.related === undefined) return result
    return answerOfWinner(exchange, result.related).then((reply) => ({ outcome: 'answered', reply }))
  })
}

/** A patch that changes nothing now could change something when it is repeated: its answer is recorded as well. */
function recordUnchanged(exchange: ResourceExchange, resource: StoredResource): MaybePromise<Patched> {
  if (exchange.keyed === undefined) return { outcome: 'unchanged', resource }
  const { reply, write } = recordAnswer(exchange, createReply(exchange, { outcome: 'unchanged', resource }))
  const { store } = exchange.route.context
  const recorded = store.write(write.path, write.content, new WriteUntilLeft(exchange, 'absent', undefined))
  return andThen(recorded, (result): MaybePromise<Patched> => {
    if (result.outcome !== 'conflict') return { outcome: 'answered', reply }
    return answerOfWinner(exchange, result.current as StoredResource).then((reply) => ({ outcome: 'answered', reply }))
  })
}

/** The parsed content of a resource; shared, and therefore never changed. */
function currentDocument(exchange: ResourceExchange, resource: StoredResource): MaybePromise<JsonValue> {
  const { limits } = exchange.route.context
  return (
    recallDocument(resource) ??
    andThen(fetchJson(resource, limits.bodySize, exchange), (resource) => parseDocument(resource, limits))
  )
}

function parseDocument(resource: StoredResource, { bodySize, jsonMembers }: BodyLimits): JsonValue {
  const text = textOf(resource)
  if (text === undefined || resource.size > bodySize) throw tooLarge('The resource is too large to be patched.')
  if (hasMoreEntries(text, jsonMembers)) {
    throw tooLarge(`The resource has more than ${jsonMembers} members and array items, too many to be patched.`)
  }
  let value: JsonValue
  try {
    value = JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text)
  } catch {
    throw new HttpError(409, 'ERR_PATCH_CONFLICT', { detail: 'The current content of the resource is not JSON.' })
  }
  if (keepsNumbers({ value, text })) return value
  // Written again it would be another number, although the patch says nothing of it.
  throw new HttpError(409, 'ERR_PATCH_CONFLICT', {
    detail: 'The resource holds a number with more digits than a patch can keep; replace it with PUT.',
  })
}

function tooLarge(detail: string): HttpError {
  return new HttpError(413, 'ERR_TOO_LARGE', { detail })
}

/** @throws HttpError 422 when a patch changes the id of a member, or takes it away */
function requireSameId(exchange: ResourceExchange, before: JsonValue, after: JsonValue): void {
  const { idMember } = exchange.route
  if (idMember === undefined || !isJsonObject(after)) return
  const id = idOf(splitPath(exchange.storePath).name, idMember)
  const given = readMember(after, 'id')
  const isKept = given === id || (isJsonObject(before) && given === readMember(before, 'id'))
  if (!isKept) throw invalid([{ pointer: '/id', detail: 'The id of a resource does not change.' }])
}

/** @throws HttpError 422 when a patch changes what only the work on a member may say */
function requireSameState(before: JsonValue, after: JsonValue): void {
  if (!isJsonObject(before) || !isJsonObject(after)) return
  for (const name of WORK) {
    if (equalJson(readMember(before, name), readMember(after, name))) continue
    throw invalid([{ pointer: `/${name}`, detail: 'The server sets the state.' }])
  }
}

function createReply(
  exchange: ResourceExchange,
  result: Exclude<Patched, { outcome: 'conflict' | 'answered' }>,
): Reply {
  const wanted = exchange.preferences.return ?? (result.outcome === 'unchanged' ? 'minimal' : 'representation')
  const fields = appliedPreferences(exchange)
  if (wanted === 'minimal') {
    addStateFields(fields, result.resource, exchange.route)
    fields.push('Cache-Control', exchange.cacheControl)
    return emptyReply(204, fields)
  }
  fields.push('Content-Location', exchange.mount + formatPath(exchange.path))
  return writtenReply(exchange, result.resource, 200, fields)
}
