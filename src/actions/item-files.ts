import type { JsonObject } from '../core/json.ts'
import type { StoredResource } from '../stores/types.ts'
import { checkReading } from './authorization.ts'
import { parseStored } from './hooks.ts'
import { unknownMembers } from './preferences.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'
import { addProperties, requireSameFacts, splitProperties, validateItem } from './server-properties.ts'
import type { Document } from './validation.ts'

/** A valid item that PUT brings, without what the server is to add. */
export interface ItemContent {
  readonly document: Document
  /** What it says of its files. */
  readonly given: JsonObject
}

/** Whether items of a route say something of files, by names that the definition knows. */
export function hasFileProperties({ idMember, fileNames }: Route): boolean {
  return idMember !== undefined && typeof fileNames !== 'string' && fileNames.length > 0
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
