import type { JsonObject } from '../core/json.ts'
import { type Expectation, isResource, type StoredResource, type StoredState } from '../stores/types.ts'
import { checkReading } from './authorization.ts'
import { fetchJson, parseStored } from './hooks.ts'
import { unknownMembers } from './preferences.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'
import { readInScope, refuseTaken } from './scope.ts'
import { addProperties, requireSameFacts, splitProperties, validateItem } from './server-properties.ts'
import { setState } from './state.ts'
import type { Document } from './validation.ts'

/** A valid item that PUT brings, without what the server is to add. */
export interface ItemContent {
  readonly document: Document
  /** What it says of its files. */
  readonly given: JsonObject
}

/** An item as it is to be stored, and the state that it may replace. */
export interface CompleteItem {
  readonly document: Document
  readonly expect: Exclude<Expectation, 'any' | 'present'>
}

/** Whether items of a route say something of files, by names that the definition knows. */
export function hasFileProperties({ idMember, fileNames }: Route): boolean {
  return idMember !== undefined && typeof fileNames !== 'string' && fileNames.length > 0
}

/** @throws HttpError 422 */
export async function validateItemContent(exchange: ResourceExchange, document: Document): Promise<ItemContent> {
  const names = namesOf(exchange)
  const { owned } = splitProperties(document.value, names)
  return {
    document: await validateItem(document, exchange.route, unknownMembers(exchange), names),
    given: owned,
  }
}

/**
 * Adds to an item what the server says of the files that are there; they stay when the item is replaced.
 * @param tells whether the answer shows what is stored
 * @returns `undefined` where the state is another one than was judged
 * @throws HttpError 409 for an item that says something else of them; 403, 404 where the answer would tell of them and the
 *   client may not read
 */
export async function completeItem(
  exchange: ResourceExchange,
  { document, given }: ItemContent,
  tells: boolean,
): Promise<CompleteItem | undefined> {
  const { limits } = exchange.route.context
  // Files of a softly deleted item come back with it.
  const state = await readInScope(exchange, exchange.storePath, { hidden: true, signal: exchange.signal })
  refuseTaken(exchange)
  if (isJudgedAnew(exchange, state)) return undefined
  const value = isResource(state) ? parseStored(await fetchJson(state, limits.bodySize, exchange.signal)) : undefined
  const facts = splitProperties(value, namesOf(exchange)).owned
  const isTold = tells || Object.keys(given).length > 0
  if (isTold && Object.keys(facts).length > 0) await checkReading(exchange)
  requireSameFacts(given, facts, Object.keys(given))
  const missing = splitProperties(facts, Object.keys(given)).rest as JsonObject
  const visible = visibleOf(state)
  return {
    document: addProperties(document, missing),
    expect: visible === undefined ? 'absent' : { version: visible.version },
  }
}

/** Takes a state as the current one. @returns whether another one was judged before */
function isJudgedAnew(exchange: ResourceExchange, state: StoredState): boolean {
  const visible = visibleOf(state)
  const isOther = exchange.isStateRead && exchange.current?.version !== visible?.version
  if (isOther || !exchange.isStateRead) setState(exchange, visible ?? tombstoneOf(exchange, state))
  return isOther
}

function visibleOf(state: StoredState): StoredResource | undefined {
  return isResource(state) && state.hidden !== true ? state : undefined
}

function tombstoneOf(exchange: ResourceExchange, state: StoredState): StoredState {
  if (!isResource(state)) return state
  return { removed: true, path: state.path, removedAt: state.lastModified ?? exchange.route.context.now() }
}

function namesOf({ route }: ResourceExchange): readonly string[] {
  return typeof route.fileNames === 'string' ? [] : route.fileNames
}
