import { relatedPaths, removalOf } from '../actions/delete.ts'
import { fetchJson, parseStored } from '../actions/hooks.ts'
import { indexOwnContent } from '../actions/indexing.ts'
import type { Route, RouteContext } from '../actions/route.ts'
import { idOf } from '../actions/validation.ts'
import { createProblem, HttpError, isHttpError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import { PATIENT_ATTEMPTS, pause } from '../core/turns.ts'
import { memberPath, splitPath } from '../stores/paths.ts'
import { isLargeBody, isResource, type StoredResource } from '../stores/types.ts'
import type { Process } from './resource-definitions.ts'
import type { ClaimedWork, WorkRecord } from './work-queue.ts'
import type { WorkHandler } from './work-runner.ts'

/** What the operations need to know of a route, by its pattern. */
export type FindWorkRoute = (
  pattern: string,
) => { readonly route: Route; readonly process: Process | undefined } | undefined

/** Makes what does a piece of accepted work: a removal, or the work on a new item. */
export function createWorkHandler(context: Omit<RouteContext, 'work'>, findRoute: FindWorkRoute): WorkHandler {
  const { store, turns } = context

  async function readValue(state: StoredResource): Promise<JsonObject> {
    return parseStored(await fetchJson(state, context.limits.bodySize, undefined)) as JsonObject
  }

  /** Changes a JSON resource; `change` sees its current value and returns the next, or nothing to leave it. */
  async function update(path: string, change: (value: JsonObject) => JsonObject | undefined): Promise<void> {
    await turns.take(path, () => swap(path, change), 'go-on')
  }

  async function swap(path: string, change: (value: JsonObject) => JsonObject | undefined): Promise<void> {
    for (let attempts = 1; ; attempts++) {
      const state = await store.read(path)
      if (!isResource(state)) return // removed meanwhile
      const next = change(await readValue(state))
      if (next === undefined) return
      const plain = { contentType: state.contentType, body: JSON.stringify(next) }
      const content = indexOwnContent(context.findRoute(path), path, plain, next)
      const result = await store.write(path, content, { expect: { version: state.version } })
      if (result.outcome !== 'conflict') return
      if (attempts >= PATIENT_ATTEMPTS) await pause(attempts)
    }
  }

  /** Moves a member on from `pending`, once: a call that finds another state has come too late. */
  function settle(path: string, members: JsonObject): Promise<void> {
    return update(path, (value) => (value['state'] === 'pending' ? { ...value, ...members } : undefined))
  }

  function formatNow(): string {
    return new Date(context.now()).toISOString()
  }

  /** Another release of the service may know what this one does not: it is tried again, not passed over. */
  function requireKnown({ pattern }: WorkRecord): NonNullable<ReturnType<FindWorkRoute>> {
    const known = findRoute(pattern)
    if (known === undefined) throw new Error(`No resource definition for accepted work at ${pattern}.`)
    return known
  }

  async function remove({ record }: ClaimedWork): Promise<void> {
    const { path, version, monitor } = record
    const { route } = requireKnown(record)
    const state = await store.read(path)
    if (isResource(state)) {
      const result = await store.remove(path, {
        expect: version === undefined ? 'any' : { version },
        related: await relatedPaths(route, path),
        ...removalOf(route),
      })
      if (result.outcome === 'conflict' && isResource(result.current)) {
        throw new HttpError(409, 'ERR_CONFLICT', { detail: 'The resource was changed after its removal was accepted.' })
      }
    }
    const id = idOf(splitPath(path).name, 'integer')
    await settle(monitor!, { state: 'done', ended: formatNow(), result: { deleted: true, id } })
  }

  async function process({ record }: ClaimedWork, signal: AbortSignal): Promise<void> {
    const known = requireKnown(record)
    const state = await store.read(record.path)
    if (!isResource(state)) return
    const value = await readValue(state)
    if (value['state'] !== 'pending') return
    const members = await known.process?.({
      path: record.path,
      id: idOf(splitPath(record.path).name, 'integer'),
      value,
      file: (name) => readFile(memberPath(record.path, name)),
      attempt: record.attempts,
      signal,
    })
    await settle(record.path, { ...members, state: 'ready' })
  }

  async function readFile(path: string) {
    const state = await store.read(path)
    return isResource(state) ? viewFile(state) : undefined
  }

  return {
    perform: (work, signal) => (work.record.kind === 'remove' ? remove(work) : process(work, signal)),
    async fail({ record }, error) {
      const known = isHttpError(error) ? error : new HttpError(500, 'ERR_INTERNAL', { cause: error })
      const problem = createProblem(known) as unknown as JsonObject
      const { monitor } = record
      if (monitor === undefined) await settle(record.path, { state: 'failed', problem })
      else await settle(monitor, { state: 'failed', ended: formatNow(), problem })
    },
  }
}

function viewFile({ contentType, size, body }: StoredResource) {
  return {
    contentType,
    size,
    async *open(): AsyncGenerator<Uint8Array> {
      if (isLargeBody(body)) yield* body.open(0, size - 1)
      else yield typeof body === 'string' ? Buffer.from(body) : body
    },
  }
}
