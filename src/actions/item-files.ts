import type { JsonObject, JsonValue } from '../core/json.ts'
import { atOnce, isPromise } from '../core/maybe-promise.ts'
import type { StoredResource } from '../stores/types.ts'
import { checkReading } from './authorization.ts'
import type { FileFacts, FileOptions } from './hook-types.ts'
import { parseStored } from './hooks.ts'
import { type ResourceExchange, unknownMembers } from './resource-exchange.ts'
import { addProperties, requireSameFacts, splitProperties, validateItem } from './server-properties.ts'
import type { Document } from './validation.ts'

/** A valid item that PUT brings, without what the server is to add. */
export interface ItemContent {
  readonly document: Document
  /** What it says of its files. */
  readonly given: JsonObject
}

/**
 * What an item says of a file.
 * @throws TypeError for a promise: it would be stored as an empty object
 */
export function summarizeFile(describe: FileOptions['describe'], facts: FileFacts): JsonValue | undefined {
  if (describe === undefined) return { ...facts }
  const summary = atOnce(describe(facts))
  if (!isPromise(summary)) return summary
  throw new TypeError('"describe" of a file must return its description, not a promise: the item does not wait for it.')
}

/** @throws HttpError 422 */
export async function validateItemContent(exchange: ResourceExchange, document: Document): Promise<ItemContent> {
  const names = fileNamesOf(exchange)
  const { owned } = splitProperties(document.value, names)
  return {
    document: await validateItem(document, exchange.route, unknownMembers(exchange), names),
    given: owned,
  }
}

/**
 * Adds to an item what the server says of the files that are there; they stay when the item is replaced.
 * @param before the state that is replaced
 * @param tells whether the answer shows what is stored
 * @throws HttpError 409 for an item that says something else of them; 403, 404 where the answer would tell of them and the
 *   client may not read
 */
export async function completeItem(
  exchange: ResourceExchange,
  { document, given }: ItemContent,
  before: StoredResource | undefined,
  tells: boolean,
): Promise<Document> {
  const value = before === undefined ? undefined : parseStored(before)
  const facts = splitProperties(value, fileNamesOf(exchange)).owned
  const isTold = tells || Object.keys(given).length > 0
  if (isTold && Object.keys(facts).length > 0) await checkReading(exchange)
  requireSameFacts(given, facts, Object.keys(given))
  const missing = splitProperties(facts, Object.keys(given)).rest as JsonObject
  return addProperties(document, missing)
}

/** Names of the properties that items of a route have by the definition for their files. */
export function fileNamesOf({ route }: ResourceExchange): readonly string[] {
  return typeof route.fileNames === 'string' ? [] : route.fileNames
}
