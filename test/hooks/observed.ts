import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, RequestListener } from 'node:http'
import type { Server } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Change, json } from '../../src/actions/hook-types.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { HttpError } from '../../src/core/errors.ts'
import type { RequestView } from '../../src/core/request-view.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { createResourceService, type ResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { contexts } from '../support/hosts.ts'

/** The number that a request has in X-Number, for all that runs in its asynchronous context. */
const numbers = new AsyncLocalStorage<unknown>()

/** Gives each request of a server a context of its own, as a middleware for telemetry does. */
export function numberRequests(server: Server): void {
  for (const listener of server.listeners('request') as RequestListener[]) {
    server.off('request', listener)
    server.on('request', (req: IncomingMessage, res) => numbers.run(req.headers['x-number'], () => listener(req, res)))
  }
}

const FIELDS = ['content-type', 'cookie', 'if-match', 'idempotency-key', 'x-twice', 'x-user', 'x-verdict', 'x-number']

/** All that a hook may read of a request. */
function describeRequest(request: RequestView, readContext: (context: never) => unknown): object {
  const { method, path, mount, query, params, headers, principal, clientAddress, signal, req } = request
  const { originalUrl } = req as IncomingMessage & { originalUrl?: string }
  const fields = Object.fromEntries(FIELDS.flatMap((name) => (name in headers ? [[name, headers[name]]] : [])))
  return {
    ...{ method, path, mount, query: query.toString(), params: { ...params }, fields, principal, clientAddress },
    target: originalUrl ?? req.url,
    isAborted: signal.aborted,
    hasHostContext: readContext(request.hostContext as never) === req,
    hasOwnContext: numbers.getStore() === headers['x-number'],
  }
}

export type Seen = Readonly<
  Record<'authorize' | 'scope' | 'beforeWrite' | 'outbox' | 'afterCommit' | 'onError', object[]>
>

export interface Observed {
  readonly service: ResourceService
  /** What the hooks have seen, in the order of their calls. */
  readonly seen: Seen
}

/** A service with every hook. X-Verdict, and the text of an item, say what they answer. */
export function createObserved(host: string): Observed {
  const seen: Seen = { authorize: [], scope: [], beforeWrite: [], outbox: [], afterCommit: [], onError: [] }
  const readContext = contexts[host] ?? ((context: unknown) => context)
  const see = (hook: keyof Seen, request: RequestView, more: object = {}): void => {
    seen[hook].push({ ...describeRequest(request, readContext), ...more })
  }
  const seeChange = (hook: 'outbox' | 'afterCommit', change: Change): void => {
    const { kind, path, params, id, before, after, principal, request } = change
    const own = { kind, path, params: { ...params }, id, before: before?.value, after: after?.value, principal }
    see(hook, request!, { change: { ...own, isTagged: after?.tag !== undefined } })
  }
  const textOf = (value: unknown): unknown => (value as { text?: unknown } | undefined)?.text

  const hooks: Pick<CollectionOptions, 'authorize' | 'beforeWrite' | 'outbox' | 'afterCommit'> = {
    authorize(principal, request, current) {
      see('authorize', request, { isPrincipal: principal === request.principal, current: current?.value })
      const verdict = request.headers['x-verdict']
      if (verdict === 'fail') throw new Error('authorize fails.')
      if (verdict === 'throw') throw new HttpError(403, 'ERR_FORBIDDEN', { detail: 'Not on a Sunday.' })
      return verdict === 'hide' ? nextTurn('not-found' as const) : verdict !== 'refuse'
    },
    async beforeWrite(value, { request, kind, current, params }) {
      await nextTurn()
      see('beforeWrite', request, { value, kind, current: current?.value, own: { ...params } })
      if (textOf(value) === 'failing') throw new Error('beforeWrite fails.')
      if (textOf(value) === 'refused') throw new HttpError(422, 'ERR_INVALID_CONTENT', { detail: 'Refused.' })
      return { ...(value as object), stamp: kind }
    },
    outbox(change) {
      seeChange('outbox', change)
      if (textOf(change.after?.value) === 'unsent') throw new Error('outbox fails.')
      const path = textOf(change.after?.value) === 'taken' ? '/log/taken' : `/log/${change.eventId}`
      return [{ path, content: json(change), expect: 'absent' }]
    },
    async afterCommit(change) {
      await nextTurn()
      seeChange('afterCommit', change)
      if (textOf(change.after?.value) === 'unheard') throw new Error('afterCommit fails.')
    },
  }
  // A clock that stands: on a busy machine a write would be so late that it asks about the parent a second time.
  const began = Date.now()
  const now = () => began
  const store = memoryStore({ now })
  void store.write('/log/taken', json({}), { expect: 'any' })
  const service = createResourceService(store, {
    resources: {
      '/tasks': collection({
        ...hooks,
        query: { text: 'string' },
        scope(request) {
          see('scope', request)
          if (request.headers['x-verdict'] === 'no-scope')
            throw new HttpError(403, 'ERR_FORBIDDEN', { detail: 'No scope.' })
          return nextTurn({ owner: request.principal?.id as string })
        },
        count: true,
        clientIds: true,
        deletion: 'soft',
        idempotency: 'optional',
        files: { photo: { replaceable: true } },
      }),
      '/tasks/{task}/lines': collection({ ...hooks, parent: true, deleteResponse: 'representation' }),
      '/docs/{path...}': document({ ...hooks, types: ['application/json'] }),
    },
    auth: { schemes: [basic({ realm: 'hooks', accounts: { ada: 'lovelace', eve: 'eve' } })], requireAuth: 'writes' },
    onError: (error) => void seen.onError.push({ message: (error as Error).message, number: numbers.getStore() }),
    methodOverride: true,
    https: 'optional',
    fallthrough: false,
    now,
  })
  return { service, seen }
}
