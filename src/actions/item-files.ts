import { checkParsedJson, type JsonLimits } from '../body-types/json.ts'
import { HttpError } from '../core/errors.ts'
import { defineMember, isJsonObject, type JsonObject, type JsonValue, keepsNumbers } from '../core/json.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { emptyReply, type Reply } from '../core/reply.ts'
import { pause } from '../core/time.ts'
import { MAX_ATTEMPTS, PATIENT_ATTEMPTS } from '../core/turns.ts'
import { createUnavailableError } from '../core/unavailable.ts'
import { parseContentDisposition } from '../protocol/content-disposition.ts'
import { formatPath } from '../protocol/request-line.ts'
import { isResource, nameOf } from '../stores/rules.ts'
import type { RelatedWrite, StoredResource, StoredState } from '../stores/types.ts'
import { checkReading, requireAuthorization } from './authorization.ts'
import { beginChange } from './changes.ts'
import { commit, WriteUntilLeft, writeChange } from './commit.ts'
import { contentOf, discardContent, storedType, streamContent, type TakenContent, takeIn } from './content.ts'
import type { FileOptions } from './hook-types.ts'
import { indexContent } from './indexing.ts'
import { ReadUntilLeft, type ResourceExchange, unknownMembers } from './resource-exchange.ts'
import { fetchJson, parseStored, textOf } from './resource-view.ts'
import type { Route } from './route.ts'
import { scopeNamesOf } from './scope.ts'
import {
  addProperties,
  propertiesOfServer,
  requireSameFacts,
  splitProperties,
  summarizeFile,
  validateItem,
} from './server-properties.ts'
import { loadFileTarget, neededOf, readFile, requirePresent } from './state.ts'
import { requireParent } from './target-steps.ts'
import { type Document, WrittenDocument } from './validation.ts'
import { checkConflict, stamp } from './write-hooks.ts'

/** A valid item that PUT brings, without what the server is to add. */
interface ItemContent {
  readonly document: Document
  /** What it says of its files. */
  readonly given: JsonObject
}

/** @throws HttpError 422 */
export async function validateItemContent(exchange: ResourceExchange, document: Document): Promise<ItemContent> {
  const { route } = exchange
  const given = splitProperties(document.value, fileNamesOf(route)).owned
  return { document: await validateItem(document, route, unknownMembers(exchange), keptNamesOf(route)), given }
}

/**
 * Adds to an item what the server says of the files that are there; they stay when the item is replaced.
 * @param before the state that is replaced
 * @throws HttpError 409 for an item that says something else of them; 403, 404 for one that says anything of them where the
 *   client may not read
 */
export async function completeItem(
  exchange: ResourceExchange,
  { document, given }: ItemContent,
  before: StoredResource | undefined,
): Promise<Document> {
  const value = before === undefined ? undefined : parseStored(before)
  const facts = splitProperties(value, fileNamesOf(exchange.route)).owned
  // An answer that tells of them is for those alone who may read: see `revealsState`.
  if (Object.keys(given).length > 0) await checkReading(exchange)
  requireSameFacts(given, facts, Object.keys(given))
  const missing = splitProperties(facts, Object.keys(given)).rest as JsonObject
  return addProperties(document, missing)
}

/** Names of the properties that items of a route have by the definition for their files. */
function fileNamesOf({ fileNames }: Route): readonly string[] {
  return typeof fileNames === 'string' ? [] : fileNames
}

/** Names of the properties that the server keeps: those of files, and those of the scope. */
export function keptNamesOf(route: Route): readonly string[] {
  return [...fileNamesOf(route), ...scopeNamesOf(route)]
}

/** Reads the state of a file that must exist, as its item must. */
export function loadFile(exchange: ResourceExchange, attempts = 1): MaybePromise<void> {
  return andThen(readFile(exchange, neededOf(exchange)), () =>
    andThen(isItemAsJudged(exchange), (isAsJudged) => {
      if (isAsJudged) return requirePresent(exchange)
      if (attempts === MAX_ATTEMPTS) throw createUnavailableError()
      exchange.isItemRead = false
      const judge = () => andThen(requireAuthorization(exchange), () => loadFile(exchange, attempts + 1))
      return attempts < PATIENT_ATTEMPTS ? judge() : pause(attempts).then(judge)
    }),
  )
}

/** Whether the item of a file that was read is still the one by which the caller may read it: it may be of another owner. */
function isItemAsJudged(exchange: ResourceExchange): MaybePromise<boolean> {
  const { route, scope, item } = exchange
  if (route.authorize === undefined && scope === undefined) return true
  const { path, version } = item as StoredResource
  const now = route.context.store.read(path, new ReadUntilLeft(exchange, { hidden: true, metadataOnly: true }))
  return andThen(now, (now) => isResource(now) && now.version === version)
}

type Stored = { readonly outcome: 'created' | 'replaced' }
type Attempted = Stored | { readonly outcome: 'conflict'; readonly current: StoredState }

/**
 * PUT of a file of an item: the file, and what the item says of it, in one atomic step. The item is compared and replaced;
 * whatever changes the file changes the item, so that conditions on the file hold as well.
 */
export function createFileReplacement({ describe }: FileOptions): (exchange: ResourceExchange) => Promise<Reply> {
  return async function putFile(exchange) {
    const limit = exchange.action.content!.limit(exchange.contentType)
    const taken = await takeIn(exchange, streamContent(exchange, limit))
    try {
      const { outcome } = await commit(exchange, () => replaceFile(exchange, taken, describe))
      const fields = outcome === 'created' ? ['Location', exchange.mount + formatPath(exchange.path)] : []
      // The store tells no version of the file, which is written beside the item: no ETag.
      return emptyReply(outcome === 'created' ? 201 : 204, [...fields, 'Cache-Control', exchange.cacheControl])
    } catch (error) {
      await discardContent({ body: taken.body })
      throw error
    }
  }
}

async function replaceFile(
  exchange: ResourceExchange,
  { body, size }: TakenContent,
  describe: FileOptions['describe'],
): Promise<Attempted> {
  const { route, storePath, current } = exchange
  const { store, limits, findRoute } = route.context
  const requires = await requireParent(exchange)
  // A form may have made it larger than what is taken at once.
  const item = await fetchJson(exchange.item as StoredResource, Number.POSITIVE_INFINITY, exchange)
  const own = findRoute(item.path)!
  const name = nameOf(storePath)
  const disposition = parseContentDisposition(exchange.field('content-disposition') ?? '')
  const filename = disposition?.filename ?? current?.filename ?? name
  const type = storedType(exchange)
  const facts = { name: filename, type, size }
  const file: RelatedWrite = {
    path: storePath,
    content: { ...contentOf(exchange, body, type), filename },
  }
  const document = describeFile(item, name, summarizeFile(describe, facts), limits)
  const about = { kind: 'patched', current: item, properties: propertiesOfServer(own, keptNamesOf(own)) } as const
  const { value, text } = await stamp(exchange, document, about, own)
  const change = beginChange(own, 'patched', item, { principal: exchange.principal, request: exchange })
  const { contentLanguage } = item
  const plain = { contentType: item.contentType, contentLanguage, filename: item.filename, body: text }
  // What its item has from before is left alone; what is said of this file is new.
  const kept = splitProperties(parseStored(item), [name]).rest
  const content = indexContent(own, item.path, plain, value, kept)
  await checkConflict(exchange, item.path, content, item, own)
  const insist = new WriteUntilLeft(exchange, { version: item.version }, requires)
  const options = Object.assign(insist, { related: [file] })
  const written = await writeChange(store, item.path, content, options, change)
  if (written.outcome !== 'conflict') return { outcome: current === undefined ? 'created' : 'replaced' }
  if (written.missing !== undefined) return written
  exchange.isItemRead = false
  return andThen(loadFileTarget(exchange), () => ({ outcome: 'conflict', current: exchange.state }))
}

/** The item with what it says of a file. @throws HttpError 409 for an item that cannot be written anew as it is */
function describeFile(
  item: StoredResource,
  name: string,
  summary: JsonValue | undefined,
  limits: JsonLimits,
): Document {
  checkParsedJson(summary ?? null, limits)
  const value = parseStored(item)
  if (!isJsonObject(value) || !keepsNumbers({ value, text: textOf(item)! })) {
    throw new HttpError(409, 'ERR_CONFLICT', {
      detail:
        'The item is not a JSON object, or holds a number with more digits than can be kept when it is written again.',
    })
  }
  const { rest } = splitProperties(value, [name])
  const facts: Record<string, JsonValue> = {}
  if (summary !== undefined) defineMember(facts, name, summary)
  return addProperties(new WrittenDocument(rest), facts as JsonObject)
}
