import { randomUUID } from 'node:crypto'
import { relatedPaths, removalOf } from '../actions/delete.ts'
import { fetchJson, parseStored } from '../actions/hooks.ts'
import { cacheControlFor } from '../actions/representation.ts'
import type { ResourceExchange } from '../actions/resource-exchange.ts'
import type { AcceptedWork, Route, RouteContext } from '../actions/route.ts'
import { idOf } from '../actions/validation.ts'
import { createProblem, HttpError, isHttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/handler.ts'
import type { JsonObject } from '../core/json.ts'
import { emptyReply, type Reply } from '../core/reply.ts'
import { formatPath } from '../protocol/request-target.ts'
import { memberPath, splitPath } from '../stores/paths.ts'
import { isLargeBody, isResource, type StoredResource } from '../stores/types.ts'
import type { Process } from './resource-definitions.ts'
import { type ClaimedWork, createWorkQueue, type WorkRecord } from './work-queue.ts'
import { createWorkRunner, type WorkHandler } from './work-runner.ts'
import { createExternalScheduler, createLocalScheduler } from './work-scheduler.ts'

/** How accepted work is done; see {@link ServiceOptions.operations}. */
export interface OperationsOptions {
  /** Path of the monitors. Default `/operations`. */
  readonly path?: string
  /** How many pieces of work a process does at a time. Default 4. */
  readonly concurrency?: number
  /** How often work is tried before it has failed; the pauses between double from half a second to a minute. Default 5. */
  readonly maxAttempts?: number
  /** Milliseconds between looks for work left behind by a crash. Default 5000. */
  readonly pollInterval?: number
  /**
   * A queue of your own (BullMQ, pg-boss, SQS) in place of the built-in one: it is told the id of each piece of work that
   * has been recorded, and how many milliseconds to wait, and calls `service.runOperation(id)` where and when the work
   * shall be done. It may be told of an id more than once; a second run of work that is done does nothing.
   */
  readonly queue?: {
    readonly enqueue: (id: string, options: { readonly delay: number }) => MaybePromise<unknown>
  }
}

export interface Operations {
  readonly work: AcceptedWork
  readonly path: string
  /** DELETE of a monitor: cancels what has not been started. */
  readonly cancel: (exchange: ResourceExchange) => MaybePromise<Reply>
  start(): void
  run(id: string): Promise<boolean>
  close(): Promise<void>
}

/** What the operations need to know of a route, by its pattern. */
export type FindWorkRoute = (
  pattern: string,
) => { readonly route: Route; readonly process: Process | undefined } | undefined

export function createOperations(
  context: Omit<RouteContext, 'work'>,
  options: Readonly<OperationsOptions>,
  findRoute: FindWorkRoute,
): Operations {
  const { store, now } = context
  const { path: base = '/operations', queue: external } = options
  const queue = createWorkQueue(store, now)
  const { concurrency = 4, maxAttempts = 5, pollInterval = 5000 } = options
  const runner = createWorkRunner({
    queue,
    handler: createWorkHandler(context, findRoute),
    announce: (id, pause) => scheduler.announce(id, pause),
    maxAttempts,
  })
  const scheduler =
    external === undefined
      ? createLocalScheduler({ queue, run: runner.run, concurrency, pollInterval })
      : createExternalScheduler(external, { queue, pollInterval })

  async function withdraw(monitor: string): Promise<void> {
    if (await queue.withdraw(splitPath(monitor).name, monitor)) return
    throw new HttpError(409, 'ERR_CONFLICT', { detail: 'The work has been started and cannot be called back.' })
  }

  return {
    path: base,
    run: runner.run,
    start: scheduler.start,

    close() {
      scheduler.close()
      return runner.close()
    },

    work: {
      removeLater(exchange, resource) {
        const { route } = exchange
        const id = randomUUID()
        const monitor = memberPath(base, id)
        const { path } = resource
        // The work on a new member changes its state, and must not stand in the way of its removal.
        const version = route.showsWork && !exchange.isConditional ? undefined : resource.version
        const record = queue.record(id, { kind: 'remove', pattern: route.pattern, path, version, monitor })
        const target = exchange.mount + formatPath(exchange.path)
        const body = { id, kind: 'removal', target, state: 'pending', accepted: new Date(now()) }
        const content = { contentType: 'application/json', body: JSON.stringify(body) }
        const written = store.write(monitor, content, { expect: 'absent', related: [record] })
        return andThen(written, () => {
          scheduler.announce(id, 0)
          return monitor
        })
      },

      prepareProcessing(route, path) {
        const id = randomUUID()
        const record = queue.record(id, { kind: 'process', pattern: route.pattern, path })
        return { record, start: () => scheduler.announce(id, 0) }
      },
    },

    cancel(exchange) {
      const { storePath, current } = exchange
      const monitor = parseStored(current!) as JsonObject
      const removed =
        monitor['state'] === 'pending'
          ? withdraw(storePath)
          : andThen(store.remove(storePath, { expect: 'any', mode: 'erase' }), () => undefined)
      return andThen(removed, () => emptyReply(204, ['Cache-Control', cacheControlFor(exchange)]))
    },
  }
}

function createWorkHandler(context: Omit<RouteContext, 'work'>, findRoute: FindWorkRoute): WorkHandler {
  const { store } = context

  async function readValue(state: StoredResource): Promise<JsonObject> {
    return parseStored(await fetchJson(state, context.limits.parsedSize)) as JsonObject
  }

  /** Changes a JSON resource; `change` sees its current value and returns the next, or nothing to leave it. */
  async function update(path: string, change: (value: JsonObject) => JsonObject | undefined): Promise<void> {
    for (;;) {
      const state = await store.read(path)
      if (!isResource(state)) return // removed meanwhile: nobody asks any more
      const next = change(await readValue(state))
      if (next === undefined) return
      const content = { contentType: state.contentType, body: JSON.stringify(next) }
      const result = await store.write(path, content, { expect: { version: state.version } })
      if (result.outcome !== 'conflict') return
    }
  }

  /** Moves a member on from `pending`, once: whoever finds it elsewhere has come too late. */
  function settle(path: string, members: JsonObject): Promise<void> {
    return update(path, (value) => (value['state'] === 'pending' ? { ...value, ...members } : undefined))
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
    await settle(monitor!, { state: 'done', result: { deleted: true, id } })
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
      await settle(record.monitor ?? record.path, { state: 'failed', problem })
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
