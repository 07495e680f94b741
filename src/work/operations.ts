import { randomUUID } from 'node:crypto'
import { ERASE } from '../actions/delete.ts'
import type { ResourceExchange } from '../actions/resource-exchange.ts'
import { fetchJson, parseStored } from '../actions/resource-view.ts'
import type { AcceptedWork, RouteContext } from '../actions/route.ts'
import { HttpError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import type { Log } from '../core/operator-log.ts'
import { COUNT, DURATION, FUNCTION, MILLISECONDS, PATH, shapedAs, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { emptyReply, type Reply } from '../core/reply.ts'
import { type Principal, type RequestView, withoutClaims } from '../core/request-view.ts'
import { formatPath } from '../protocol/request-line.ts'
import { memberPath, splitPath } from '../stores/rules.ts'
import { createWorkHandler, type FindWorkRoute } from './handler.ts'
import { createMonitors, type Monitors } from './monitors.ts'
import { createPoll } from './poll.ts'
import { createWorkQueue } from './queue.ts'
import { createWorkRunner } from './runner.ts'
import { createExternalScheduler, createLocalScheduler } from './scheduler.ts'

/** How accepted work is done; see {@link ServiceOptions.operations}. */
export interface OperationsOptions {
  /** Path of the monitors. Default `/operations`. */
  readonly path?: string
  /** How many pieces of work a process does at a time. Default 4. */
  readonly concurrency?: number
  /**
   * How often work is tried before it fails for good. The pauses double, from half a second to a minute. An attempt that the
   * store, or its content store, brings to nothing does not count, for about a day; one of a removal for about an hour. Default 5.
   */
  readonly maxAttempts?: number
  /** Milliseconds between two searches for work that a crash has left behind. Default 5000. */
  readonly pollInterval?: number
  /** Milliseconds for which a monitor is kept after its work has ended; `Infinity` keeps it for good. Default 24 hours. */
  readonly retention?: number
  /**
   * Whether a principal is an admin. A monitor is visible to the principal who caused it and to admins, and 404 for all
   * others. A monitor that was caused without credentials is visible to every client that has its id. `authorize` is not
   * asked about monitors. Default: no principal is an admin.
   */
  readonly isAdmin?: (principal: Principal, request: RequestView) => MaybePromise<boolean>
  /**
   * A queue of your own (BullMQ, pg-boss, SQS) in place of the built-in one: it gets the id of recorded work and the
   * milliseconds to wait. Then a worker calls `service.runOperation(id)`. The queue may get an id more than once; a
   * second run of work that is done does nothing.
   */
  readonly queue?: {
    readonly enqueue: (id: string, options: { readonly delay: number }) => MaybePromise<unknown>
  }
}

const HOUR = 3_600_000

const OPERATIONS_OPTIONS = {
  path: withDefault(PATH, '/operations'),
  concurrency: withDefault(COUNT, 4),
  maxAttempts: withDefault(COUNT, 5),
  pollInterval: withDefault(MILLISECONDS, 5000),
  retention: withDefault(DURATION, 24 * HOUR),
  isAdmin: FUNCTION,
  queue: shapedAs({ enqueue: 'function' }),
} satisfies OptionTable<OperationsOptions>

/** The same with every default filled in. */
export type OperationsSettings = OperationsOptions &
  Required<Pick<OperationsOptions, 'path' | 'concurrency' | 'maxAttempts' | 'pollInterval' | 'retention'>>

/** @throws TypeError for an option that does not exist or whose value has no effect */
export function readOperationsOptions(given: OperationsOptions | undefined): OperationsSettings {
  return resolveOptions('operations', given, OPERATIONS_OPTIONS)
}

export interface Operations {
  readonly work: AcceptedWork
  readonly path: string
  readonly monitors: Monitors
  /** DELETE of a monitor: cancels what has not been started. */
  readonly cancel: (exchange: ResourceExchange) => MaybePromise<Reply>
  start(): void
  run(id: string): Promise<boolean>
  close(): Promise<void>
}

export function createOperations(
  context: Omit<RouteContext, 'work'>,
  { operations: options, log }: { readonly operations: OperationsSettings; readonly log: Log },
  findRoute: FindWorkRoute,
): Operations {
  const { store, now } = context
  const { path: base, queue: external, retention, isAdmin, concurrency, maxAttempts, pollInterval } = options
  const queue = createWorkQueue(store, now)
  const monitors = createMonitors({ store, now, path: base, retention, isAdmin })
  // It walks through all monitors.
  const sweeper = createPoll(monitors.sweep, Math.min(HOUR, Math.max(pollInterval, retention / 4)), HOUR)
  const runner = createWorkRunner({
    queue,
    handler: createWorkHandler(context, findRoute),
    announce: (id, pause) => scheduler.announce(id, pause),
    maxAttempts,
  })
  const scheduler =
    external === undefined
      ? createLocalScheduler({ queue, run: runner.run, concurrency, pollInterval, log })
      : createExternalScheduler(external, { queue, pollInterval, log })

  return {
    path: base,
    monitors,
    run: runner.run,

    start() {
      scheduler.start()
      if (retention !== Number.POSITIVE_INFINITY) sweeper.start()
    },

    close() {
      sweeper.close()
      scheduler.close()
      return runner.close()
    },

    work: {
      removeLater(exchange, resource) {
        const { route } = exchange
        const id = randomUUID()
        const target = exchange.mount + formatPath(exchange.path)
        const monitor = monitors.create(id, target, exchange.principal)
        const { path } = resource
        const version = isOnlyChangedByWork(exchange) ? undefined : resource.version
        const record = queue.record(id, {
          kind: 'remove',
          pattern: route.pattern,
          path,
          version,
          monitor: monitor.path,
          principal: withoutClaims(exchange.principal),
        })
        const { signal } = exchange
        const written = store.write(monitor.path, monitor.content, { expect: 'absent', related: [record], signal })
        return andThen(written, () => {
          scheduler.announce(id, 0)
          return memberPath(base, id)
        })
      },

      prepareProcessing({ route, principal }, path) {
        const id = randomUUID()
        const work = { kind: 'process', pattern: route.pattern, path, principal: withoutClaims(principal) } as const
        const record = queue.record(id, work)
        return { record, start: () => scheduler.announce(id, 0) }
      },
    },

    async cancel(exchange) {
      const { current, signal } = exchange
      const { path } = current!
      const monitor = parseStored(await fetchJson(current!, context.limits.bodySize, exchange)) as JsonObject
      if (monitor['state'] !== 'pending') await store.remove(path, { ...ERASE, expect: 'any', signal })
      else if (!(await queue.withdraw(splitPath(path).name, path))) {
        throw new HttpError(409, 'ERR_CONFLICT', { detail: 'The work has been started and cannot be called back.' })
      }
      return emptyReply(204, ['Cache-Control', exchange.cacheControl])
    },
  }
}

/**
 * Whether nothing but the work on a new item changes it until it is removed: that must not stand in the way of a removal
 * that was asked for before. Whatever else may change it, the removal is of the state that was judged.
 */
function isOnlyChangedByWork(exchange: ResourceExchange): boolean {
  const { actions, authorize, showsWork, indexing } = exchange.route
  if (!showsWork || exchange.conditions !== undefined) return false
  const isJudged = authorize !== undefined || indexing?.scope !== undefined
  // Accepted items have no PUT.
  return !isJudged || actions.PATCH === undefined
}
