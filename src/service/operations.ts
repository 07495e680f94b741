import { randomUUID } from 'node:crypto'
import { relatedPaths } from '../actions/delete.ts'
import { parseStored } from '../actions/hooks.ts'
import type { ResourceExchange } from '../actions/resource-exchange.ts'
import type { AcceptedWork, Route, RouteContext } from '../actions/route.ts'
import { idOf } from '../actions/validation.ts'
import { createProblem, HttpError, isHttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/handler.ts'
import type { JsonObject } from '../core/json.ts'
import { emptyReply, type Reply } from '../core/reply.ts'
import { formatPath } from '../protocol/request-target.ts'
import { isLargeBody, isResource, memberPath, type StoredResource, splitPath } from '../stores/types.ts'
import type { Process } from './resource-definitions.ts'
import { type ClaimedWork, createWorkQueue } from './work-queue.ts'
import { createWorkRunner, type WorkHandler } from './work-runner.ts'

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
   * A queue of your own (BullMQ, pg-boss, SQS) in place of the built-in runner: it is told the id of each piece of work
   * that has been recorded, and calls `service.runOperation(id)` where and when the work shall be done.
   */
  readonly queue?: { readonly enqueue: (id: string) => MaybePromise<unknown> }
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
  const runner = createWorkRunner({
    queue,
    handler: createWorkHandler(context, findRoute),
    concurrency: options.concurrency ?? 4,
    maxAttempts: options.maxAttempts ?? 5,
    pollInterval: options.pollInterval ?? 5000,
  })
  const announce = (id: string): MaybePromise<unknown> =>
    external === undefined ? runner.notify(id) : external.enqueue(id)

  return {
    path: base,
    run: runner.run,
    close: runner.close,

    start() {
      if (external === undefined) runner.start()
    },

    work: {
      removeLater(exchange, resource) {
        const { route } = exchange
        const id = randomUUID()
        const monitor = memberPath(base, id)
        const { path, version } = resource
        const record = queue.record(id, { kind: 'remove', pattern: route.pattern, path, version, monitor })
        const target = exchange.mount + formatPath(exchange.path)
        const body = { id, kind: 'removal', target, state: 'pending', accepted: new Date(now()) }
        const content = { contentType: 'application/json', body: JSON.stringify(body) }
        const written = store.write(monitor, content, { expect: 'absent', related: [record] })
        return andThen(written, () => andThen(announce(id), () => monitor))
      },

      prepareProcessing(route, path) {
        const id = randomUUID()
        const record = queue.record(id, { kind: 'process', pattern: route.pattern, path })
        return { record, start: () => void announce(id) }
      },
    },

    cancel(exchange) {
      const { storePath, current } = exchange
      const monitor = parseStored(current!) as JsonObject
      const isOpen = monitor['state'] === 'pending'
      const withdrawn = isOpen ? queue.withdraw(splitPath(storePath).name) : true
      return andThen(withdrawn, (withdrawn) => {
        if (!withdrawn) {
          throw new HttpError(409, 'ERR_CONFLICT', { detail: 'The work has been started and cannot be called back.' })
        }
        const removed = store.remove(storePath, { expect: 'any', mode: 'tombstone' })
        return andThen(removed, () => emptyReply(204, ['Cache-Control', 'no-cache']))
      })
    },
  }
}

function createWorkHandler(context: Omit<RouteContext, 'work'>, findRoute: FindWorkRoute): WorkHandler {
  const { store } = context

  /** Changes a JSON resource; `change` sees its current value and returns the next, or nothing to leave it. */
  async function update(path: string, change: (value: JsonObject) => JsonObject | undefined): Promise<void> {
    for (;;) {
      const state = await store.read(path)
      if (!isResource(state)) return // removed meanwhile: nobody asks any more
      const next = change(parseStored(state) as JsonObject)
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

  async function remove({ record }: ClaimedWork): Promise<void> {
    const { path, version, monitor } = record
    const route = findRoute(record.pattern)?.route
    const state = await store.read(path)
    if (isResource(state)) {
      const result = await store.remove(path, {
        expect: { version: version! },
        mode: route?.retention === 0 ? 'erase' : 'tombstone',
        retention: route?.retention === 0 ? undefined : route?.retention,
        related: route === undefined ? [] : await relatedPaths(route, path),
      })
      if (result.outcome === 'conflict' && isResource(result.current)) {
        throw new HttpError(409, 'ERR_CONFLICT', { detail: 'The resource was changed after its removal was accepted.' })
      }
    }
    const id = idOf(splitPath(path).name, 'integer')
    await settle(monitor!, { state: 'done', result: { deleted: true, id } })
  }

  async function process({ record }: ClaimedWork, signal: AbortSignal): Promise<void> {
    const known = findRoute(record.pattern)
    // Another release of the service may know it: it is tried again, not passed over.
    if (known === undefined) throw new Error(`No resource definition for accepted work at ${record.pattern}.`)
    const state = await store.read(record.path)
    if (!isResource(state)) return
    const value = parseStored(state) as JsonObject
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
