import { beginChange, type PendingChange } from '../actions/changes.ts'
import { NO_RELATED_WRITES, removeChange, writeChange } from '../actions/commit.ts'
import { relatedPaths, removalOf } from '../actions/delete.ts'
import type { Process } from '../actions/hook-types.ts'
import { indexOwnContent } from '../actions/indexing.ts'
import { fetchJson, parseStored } from '../actions/resource-view.ts'
import type { Route, RouteContext } from '../actions/route.ts'
import { splitProperties } from '../actions/server-properties.ts'
import { idOf, readGiven } from '../actions/validation.ts'
import { copyBytes } from '../core/byte-blocks.ts'
import { createProblem, HttpError, isHttpError } from '../core/errors.ts'
import { isJsonObject, type JsonObject } from '../core/json.ts'
import { describeValue } from '../core/option-values.ts'
import { pause } from '../core/time.ts'
import { PATIENT_ATTEMPTS } from '../core/turns.ts'
import { isLargeBody, isResource, memberPath, splitPath } from '../stores/rules.ts'
import type { StoredResource, StoredState } from '../stores/types.ts'
import type { ClaimedWork, WorkRecord } from './queue.ts'
import type { WorkHandler } from './runner.ts'
import { inTime, readNoting } from './store-calls.ts'

/** What the operations need to know of a route, by its pattern. */
export type FindWorkRoute = (
  pattern: string,
) => { readonly route: Route; readonly process: Process | undefined } | undefined

/** Begins a change of a state; `undefined` where no hook sees it. */
type BeginChange = (before: StoredResource) => PendingChange | undefined

/** Makes what does a piece of accepted work: a removal, or the work on a new item. */
export function createWorkHandler(context: Omit<RouteContext, 'work'>, findRoute: FindWorkRoute): WorkHandler {
  const { store, turns, loadIndexes } = context

  /** What a form gave, with an id and a state, may be larger than what is taken at once. */
  const fetchWhole = (state: StoredResource) => fetchJson(state, Number.POSITIVE_INFINITY, undefined)

  /**
   * Moves a JSON resource on from `pending`, once: it may be somewhere else already.
   * @param begin begins the change that hooks see; left out for monitors
   */
  async function settle(path: string, members: JsonObject, begin?: BeginChange): Promise<void> {
    await turns.take(path, () => swap(path, members, begin), 'go-on')
  }

  async function swap(path: string, members: JsonObject, begin: BeginChange | undefined): Promise<void> {
    for (let attempts = 1; ; attempts++) {
      const state = await store.read(path)
      if (!isResource(state)) return // removed meanwhile
      const before = await fetchWhole(state)
      const value = parseStored(before) as JsonObject
      if (value['state'] !== 'pending') return
      await loadIndexes()
      // A monitor has a path of the service's own, which patterns are not for.
      const own = begin && context.findRoute(path)
      // What its work cannot change: the id is that of its path, and it never leaves its scope.
      const kept = splitProperties(value, ['id', ...(own?.indexing?.scopeNames ?? [])]).owned
      const next = { ...value, ...members, ...kept }
      const { contentType, contentLanguage, filename } = state
      const plain = { contentType, contentLanguage, filename, body: JSON.stringify(next) }
      const content = indexOwnContent(own, path, plain, next)
      const options = { expect: { version: state.version }, related: NO_RELATED_WRITES }
      const result = await writeChange(store, path, content, options, begin?.(before))
      if (result.outcome !== 'conflict') return
      if (attempts >= PATIENT_ATTEMPTS) await pause(attempts)
    }
  }

  /** Begins the change of an item by the work on it. */
  function beginPatch(route: Route, { principal }: WorkRecord): BeginChange {
    return (before) => beginChange(route, 'patched', before, { principal, request: undefined })
  }

  function formatNow(): string {
    return new Date(context.now()).toISOString()
  }

  /** Another release of the service may know what this one does not: it is tried again, not passed over. */
  function requireKnown({ pattern }: WorkRecord) {
    const known = findRoute(pattern)
    if (known === undefined) throw new Error(`No resource definition for accepted work at ${pattern}.`)
    return known
  }

  async function remove({ record }: ClaimedWork): Promise<void> {
    const { route } = requireKnown(record)
    for (let attempts = 1; (await removeOnce(route, record)) === 'conflict'; attempts++) {
      if (attempts >= PATIENT_ATTEMPTS) await pause(attempts)
    }
    await settleRemoved(record)
  }

  async function settleRemoved({ path, monitor }: WorkRecord): Promise<void> {
    const id = idOf(splitPath(path).name, 'integer')
    await settle(monitor!, { state: 'done', ended: formatNow(), result: { deleted: true, id } })
  }

  async function removeOnce(route: Route, { path, version, principal }: WorkRecord): Promise<'removed' | 'conflict'> {
    const state = await store.read(path)
    if (!isResource(state)) return 'removed'
    const expect = version === undefined ? 'any' : { version }
    const related = await relatedPaths(route, path)
    const options = { expect, related, ...removalOf(route) } as const
    if (version !== undefined && state.version !== version) throw changedMeanwhile()
    await loadIndexes()
    const before = route.observesChanges ? await fetchJson(state, context.limits.bodySize, undefined) : state
    const change = beginChange(route, 'deleted', before, { principal, request: undefined })
    const removed = change === undefined ? store.remove(path, options) : removeChange(store, before, options, change)
    const result = await removed
    if (result.outcome !== 'conflict' || !isResource(result.current)) return 'removed'
    if (version !== undefined) throw changedMeanwhile()
    return 'conflict'
  }

  async function process({ record }: ClaimedWork, signal: AbortSignal): Promise<void> {
    const known = requireKnown(record)
    const value = await inTime(readPending(record.path))
    if (value === undefined) return
    // `process` would wait for an abort that has been: the service has closed while the store was asked.
    signal.throwIfAborted()
    const found = await known.process?.({
      path: record.path,
      id: idOf(splitPath(record.path).name, 'integer'),
      value,
      async file(name) {
        const state = await inTime(readState(memberPath(record.path, name), signal))
        if (!isResource(state)) return undefined
        const { contentType, size, body } = state
        return {
          contentType,
          size,
          async *open() {
            // Copies: what is read may be the memory of the store.
            if (!isLargeBody(body)) yield copyBytes(body)
            else for await (const piece of readNoting(body.open(0, size - 1, { signal }))) yield copyBytes(piece)
          },
        }
      },
      attempt: record.attempts + (record.spared ?? 0),
      signal,
    })
    const members = readGiven(found, `process of ${record.pattern}`) ?? {}
    if (!isJsonObject(members)) {
      throw new TypeError(
        `process of ${record.pattern} must return an object of properties of the item, or nothing, not ${describeValue(members)}.`,
      )
    }
    await inTime(settle(record.path, { ...members, state: 'ready' }, beginPatch(known.route, record)))
  }

  async function readState(path: string, signal: AbortSignal): Promise<StoredState> {
    return store.read(path, { signal })
  }

  /** The value of an item that is pending; `undefined` where it is not, or is gone. */
  async function readPending(path: string): Promise<JsonObject | undefined> {
    const state = await store.read(path)
    if (!isResource(state)) return undefined
    const value = parseStored(await fetchWhole(state)) as JsonObject
    return value['state'] === 'pending' ? value : undefined
  }

  return {
    perform: (work, signal) => (work.record.kind === 'remove' ? inTime(remove(work)) : process(work, signal)),
    async fail({ record }, error) {
      const known = isHttpError(error) ? error : new HttpError(500, 'ERR_INTERNAL', { cause: error })
      const problem = createProblem(known) as unknown as JsonObject
      const { monitor, path } = record
      if (monitor !== undefined) {
        // An attempt may have removed it before its process ended, or the answer of the store has got lost.
        if (!isResource(await store.read(path))) return settleRemoved(record)
        return settle(monitor, { state: 'failed', ended: formatNow(), problem })
      }
      const route = findRoute(record.pattern)?.route
      await settle(path, { state: 'failed', problem }, route && beginPatch(route, record))
    },
  }
}

function changedMeanwhile(): HttpError {
  return new HttpError(409, 'ERR_CONFLICT', { detail: 'The resource was changed after its removal was accepted.' })
}
