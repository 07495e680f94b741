import { afterEach, describe, expect, it, vi } from 'vitest'
import { createResourceService, document, memoryStore, type ResourceStore } from '../../src/index.ts'
import { type RunningHost, startHost } from '../support/hosts.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const close of closers.splice(0)) await close()
})

/** What a hook may do to the request that it is given. */
const CHANGES: Readonly<Record<string, (request: object) => void>> = {
  'freezes it': (request) => void Object.freeze(request),
  'takes its headers off': (request) => {
    Reflect.deleteProperty(request, 'headers')
    throw new Error('a failure of the hook')
  },
  'takes the request of Node off': (request) => void Reflect.deleteProperty(request, 'req'),
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

it('a hook that takes all off its request does not keep a service from closing', async () => {
  let goOn = (): void => undefined
  const wait = new Promise<void>((resolve) => (goOn = resolve))
  let called = (): void => undefined
  const calling = new Promise<void>((resolve) => (called = resolve))
  const service = createResourceService(memoryStore(), {
    resources: {
      '/{name}': document({
        authorize: async (_principal, request) => {
          // Not its count among the requests under way, which no view has.
          for (const name of ['req', 'res', 'headers', 'principal']) Reflect.deleteProperty(request, name)
          called()
          await wait
          return true
        },
      }),
    },
    onError: () => undefined,
  })
  const host = await startHost('plain', service)
  closers.push(() => host.close())
  const answer = host.send({ path: '/a' }).catch(() => undefined)
  await calling
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const closing = service.close()
  // The drain looks at the requests under way now and then.
  expect(() => vi.advanceTimersByTime(1000)).not.toThrow()
  vi.useRealTimers()
  goOn()
  await Promise.all([closing, answer])
})
