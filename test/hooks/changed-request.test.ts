import { afterEach, describe, expect, it } from 'vitest'
import { createResourceService, document, memoryStore, type ResourceStore } from '../../src/index.ts'
import { type RunningHost, startHost } from '../support/hosts.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** What a hook may do to the request that it is given. */
const CHANGES: Readonly<Record<string, (request: object) => void>> = {
  'freezes it': (request) => void Object.freeze(request),
  'takes its headers off': (request) => {
    Reflect.deleteProperty(request, 'headers')
    throw new Error('a failure of the hook')
  },
}

/** Answers in a later turn, so that the request does not fail inside the call of its host. */
function later(store: ResourceStore): ResourceStore {
  return { ...store, read: async (...args) => store.read(...args) }
}

const STORES = { 'at once': (store: ResourceStore) => store, later }

describe.each(['plain', 'http2', 'Express 5', 'Koa 3', 'Fastify', 'Hono'])(
  'a hook that changes its request on %s',
  (name) => {
    describe.each(Object.entries(CHANGES))('and %s', (_, change) => {
      it.each(Object.entries(STORES))('fails that request only, where the store answers %s', async (_, wrap) => {
        const store = memoryStore()
        await store.write('/a', { contentType: 'text/plain', body: 'a' }, { expect: 'any' })
        const failures: unknown[] = []
        const service = createResourceService(wrap(store), {
          resources: {
            '/{name}': document({
              authorize: (_principal, request) => {
                if (request.headers['x-change'] !== undefined) change(request)
                return true
              },
            }),
          },
          onError: (error) => failures.push(error),
        })
        const host: RunningHost = await startHost(name, service)
        closers.push(() => host.close())
        const answer = await Promise.race([
          host.send({ path: '/a', headers: { 'X-Change': '1' } }).then(
            ({ status }) => status,
            () => 'closed',
          ),
          new Promise((resolve) => setTimeout(resolve, 5000, 'nothing')),
        ])
        // Some hosts answer with an error of their own.
        expect(['closed', 200, 500]).toContain(answer)
        if (answer !== 200) expect(failures.length).toBeGreaterThan(0)
        expect((await host.send({ path: '/a' })).status).toBe(200)
      })
    })
  },
)
