import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type AfterCommit, type Change, type ChangeState, json } from '../../src/actions/hook-types.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import type { FailureEvent } from '../../src/core/diagnostics.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { ask } from '../support/ask.ts'
import { beforeWrites } from '../support/before-writes.ts'
import { runServer } from '../support/hosts.ts'
import { jsonOf, MERGE_PATCH, startService, type Target } from '../writes/support.ts'
import { STORES } from './stores.ts'

let target: Target | undefined
afterEach(() => target?.close())

/** Collects changes, and waits for a number of them. */
function collectChanges() {
  const changes: Change[] = []
  const afterCommit: AfterCommit = (change) => void changes.push(change)
  const waitForChanges = async (count: number): Promise<readonly Change[]> => {
    await vi.waitFor(() => expect(changes.length).toBeGreaterThanOrEqual(count), { timeout: 30_000 })
    // One too many would come now.
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(changes).toHaveLength(count)
    return changes
  }
  return { changes, afterCommit, waitForChanges }
}

const textOf = ({ value }: ChangeState): string => String((value as { text?: string } | undefined)?.text)

describe.each(Object.entries(STORES))('afterCommit on %s', (_, createStore) => {
  it('is called once for each change, after it can be read', async () => {
    const store = createStore()
    const { afterCommit, waitForChanges } = collectChanges()
    const read: unknown[] = []
    const tasks = collection({
      deletion: 'soft',
      idempotency: 'optional',
      async afterCommit(change) {
        const state = await store.read(change.path)
        read.push(state && 'version' in state ? state.version : undefined)
        await afterCommit(change)
      },
    })
    target = await startService({ resources: { '/tasks': tasks } }, store)
    const key = { 'Idempotency-Key': '"a-key-of-16-characters"' }
    await target.send('POST', '/tasks', jsonOf({ n: 1 }, key))
    await target.send('POST', '/tasks', jsonOf({ n: 1 }, key))
    await target.send('PUT', '/tasks/1', jsonOf({ n: 2 }))
    await target.send('PATCH', '/tasks/1', { fields: MERGE_PATCH, body: '{"n":3}' })
    await target.send('PATCH', '/tasks/1', { fields: MERGE_PATCH, body: '{"n":3}' })
    await target.send('PUT', '/tasks/1', jsonOf({ n: 9 }, { 'If-Match': '"other"' }))
    await target.send('DELETE', '/tasks/1')
    await target.send('PUT', '/tasks/1', jsonOf({ n: 4 }))
    const changes = await waitForChanges(5)
    expect(changes.map(({ kind }) => kind)).toEqual(['created', 'replaced', 'patched', 'deleted', 'restored'])
    expect(read).toEqual(changes.map(({ after }) => after?.version))
    const values = changes.map(({ before, after }) => [before?.value, after?.value])
    expect(values.map((pair) => pair.map((value) => (value as { n?: number } | undefined)?.n))).toEqual([
      [undefined, 1],
      [1, 2],
      [2, 3],
      [3, undefined],
      [3, 4],
    ])
  })
})

describe('afterCommit', () => {
  it('gives the change that the outbox was shown, with the request and the principal', async () => {
    const store = memoryStore()
    const { afterCommit, waitForChanges } = collectChanges()
    target = await startService(
      {
        auth: { schemes: [bearer((name) => ({ id: name, claims: { a: 1 } }))] },
        resources: {
          '/tasks': collection({
            outbox: (change) => [{ path: `/audit/${change.eventId}`, content: json(change) }],
            afterCommit,
          }),
        },
      },
      store,
    )
    await target.send('POST', '/tasks?x=1', jsonOf({}, { Authorization: 'Bearer ada' }))
    const [change] = await waitForChanges(1)
    expect((await store.list('/audit', { limit: 2 })).items.map(({ path }) => path)).toEqual([
      `/audit/${change!.eventId}`,
    ])
    expect([change!.principal, change!.request?.query.get('x')]).toEqual([
      { scheme: 'bearer', id: 'ada', claims: { a: 1 } },
      '1',
    ])
    expect(JSON.stringify(change)).not.toContain('claims')
  })

  it('is shown the state that was removed where another client had replaced the one that was read', async () => {
    const inner = memoryStore()
    let rivals = 1
    const { afterCommit, waitForChanges } = collectChanges()
    target = await startService(
      { resources: { '/notes/{name}': document({ afterCommit }) } },
      {
        ...inner,
        remove(path, options) {
          if (rivals-- > 0) inner.write(path, json({ n: 2 }), { expect: 'any' })
          return inner.remove(path, options)
        },
      },
    )
    inner.write('/notes/a', json({ n: 1 }), { expect: 'any' })
    expect((await target.send('DELETE', '/notes/a')).status).toBe(204)
    const [deleted] = await waitForChanges(1)
    expect([deleted!.kind, deleted!.before!.value]).toEqual(['deleted', { n: 2 }])
  })

  it('does not delay the response, and its failure changes none', async () => {
    const failures: FailureEvent[] = []
    const listen = (event: unknown): void => void failures.push(event as FailureEvent)
    subscribe('http-resource-service:failure', listen)
    const errors: unknown[] = []
    const onError = (error: unknown, { path }: { readonly path: string }): void =>
      void errors.push([(error as Error).message, path])
    let release: () => void = () => undefined
    const slow = new Promise<void>((resolve) => {
      release = resolve
    })
    const afterCommit: AfterCommit = async ({ path }) => {
      if (path === '/tasks/2') throw new Error('late')
      if (path === '/tasks/3') await slow
    }
    const early = (): never => {
      throw new Error('early')
    }
    const resources = { '/tasks': collection({ afterCommit }), '/docs/{name}': document({ afterCommit: early }) }
    target = await startService({ resources, onError })
    try {
      const answers = [
        await target.send('PUT', '/tasks/2', jsonOf({})),
        await target.send('PUT', '/tasks/3', jsonOf({})),
        await target.send('PUT', '/docs/a', { body: 'text' }),
      ]
      expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
      await vi.waitFor(() => expect(errors).toHaveLength(2), 30_000)
      expect(errors.sort()).toEqual([
        ['early', '/docs/a'],
        ['late', '/tasks/2'],
      ])
      expect(failures.map(({ stage }) => stage)).toEqual(['committed', 'committed'])
    } finally {
      unsubscribe('http-resource-service:failure', listen)
      release()
    }
  })

  it('knows the address of a client that has left meanwhile', async () => {
    const addresses: unknown[] = []
    const afterCommit: AfterCommit = async ({ request }) => {
      if (!request!.req.socket.destroyed) await once(request!.req.socket, 'close')
      addresses.push(request!.clientAddress)
    }
    target = await startService({ https: 'optional', resources: { '/tasks': collection({ afterCommit }) } })
    await target.send('POST', '/tasks', jsonOf({}, { Connection: 'close' }))
    await target.close()
    expect(addresses).toEqual(['127.0.0.1'])
  })

  it('is waited for by close(), with the changes that it causes', async () => {
    const done: string[] = []
    const afterCommit: AfterCommit = async ({ path }) => {
      await new Promise((resolve) => setTimeout(resolve, 100))
      if (path === '/tasks/1') await target!.send('PUT', '/tasks/2', jsonOf({}))
      done.push(path)
    }
    target = await startService({ resources: { '/tasks': collection({ afterCommit }) } })
    await target.send('PUT', '/tasks/1', jsonOf({}))
    await target.service.close()
    expect(done).toEqual(['/tasks/1', '/tasks/2'])
  })

  it('is waited for by close() where its request is under way at the time', async () => {
    const events: string[] = []
    let goOn: (() => void) | undefined
    const tasks = collection({
      async beforeWrite(value) {
        await new Promise<void>((resolve) => {
          goOn = resolve
        })
        return value
      },
      async afterCommit() {
        await new Promise((resolve) => setTimeout(resolve, 100))
        events.push('hook')
      },
    })
    target = await startService({ resources: { '/tasks': tasks } })
    const sent = target.send('PUT', '/tasks/1', jsonOf({}))
    await vi.waitFor(() => expect(goOn).toBeDefined(), 30_000)
    const closing = target.service.close().then(() => events.push('closed'))
    goOn!()
    expect((await sent).status).toBe(201)
    await closing
    expect(events).toEqual(['hook', 'closed'])
  })

  it('runs in the asynchronous context of the request', async () => {
    const context = new AsyncLocalStorage<string>()
    const seen: unknown[] = []
    const afterCommit: AfterCommit = ({ path }) => void seen.push([path, context.getStore()])
    const service = createResourceService(memoryStore(), { resources: { '/tasks': collection({ afterCommit }) } })
    const host = await runServer(
      createServer((req, res) => context.run(String(req.headers['x-tenant']), () => service(req, res))),
    )
    try {
      const names = [1, 2, 3, 4]
      const fields = (n: number) => [`X-Tenant: t${n}`, 'Content-Type: application/json']
      await Promise.all(
        names.map((n) => ask(host.port, { method: 'PUT', target: `/tasks/${n}`, fields: fields(n), body: '{}' })),
      )
      await service.close()
      expect(seen.sort()).toEqual(names.map((n) => [`/tasks/${n}`, `t${n}`]))
    } finally {
      await host.close()
    }
  })

  it('sees accepted work and removals that are queued; a failure there has no request', async () => {
    const { afterCommit, waitForChanges } = collectChanges()
    const log = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const failures: FailureEvent[] = []
    const listen = (event: unknown): void => void failures.push(event as FailureEvent)
    subscribe('http-resource-service:failure', listen)
    const jobs = collection({
      create: 'accepted',
      deletion: 'queued',
      process: () => ({ result: 1 }),
      afterCommit(change) {
        afterCommit(change)
        if (change.kind === 'deleted') throw new Error('no queue')
      },
    })
    target = await startService({ resources: { '/jobs': jobs } })
    try {
      await target.send('POST', '/jobs', jsonOf({}))
      await waitForChanges(2)
      await target.send('DELETE', '/jobs/1')
      const changes = await waitForChanges(3)
      expect(changes.map(({ kind, request }) => [kind, request?.method])).toEqual([
        ['created', 'POST'],
        ['patched', undefined],
        ['deleted', undefined],
      ])
      expect(failures.map(({ stage, error }) => [stage, (error as Error).message])).toEqual([
        ['background', 'no queue'],
      ])
      expect(String(log.mock.calls[0]?.[0])).toContain('afterCommit of accepted work failed: Error: no queue')
    } finally {
      unsubscribe('http-resource-service:failure', listen)
      log.mockRestore()
    }
  })
})

it.each(['memoryStore', 'sqliteStore'])('sees both values of a large item on %s', async (name) => {
  const { afterCommit, waitForChanges } = collectChanges()
  const resources = {
    '/tasks': collection({ afterCommit, files: { photo: { replaceable: true } } }),
    '/keyed': collection({ afterCommit, idempotency: 'required', ids: 'uuid' }),
    '/jobs': collection({ afterCommit, create: 'accepted' }),
    '/stamped': collection({ afterCommit, beforeWrite: () => ({ text: 'y'.repeat(200_001) }) }),
  }
  target = await startService({ resources }, STORES[name]!())
  const large = { text: 'x'.repeat(200_000) }
  await target.send('POST', '/tasks', jsonOf(large))
  await target.send('PATCH', '/tasks/1', { fields: MERGE_PATCH, body: '{"n":1}' })
  await target.send('PUT', '/tasks/1', jsonOf(large))
  await target.send('PUT', '/tasks/1/photo', { fields: { 'Content-Type': 'image/png' }, body: 'png' })
  await target.send('DELETE', '/tasks/1')
  await waitForChanges(5)
  await target.send('POST', '/keyed', jsonOf(large, { 'Idempotency-Key': 'a-key-of-16-characters' }))
  await target.send('POST', '/jobs', jsonOf(large))
  await waitForChanges(8)
  await target.send('POST', '/stamped', jsonOf(large))
  const changes = await waitForChanges(9)
  const lengths = changes.map(({ before, after }) => [before, after].map((state) => state && textOf(state).length))
  expect(lengths).toEqual([
    [undefined, 200_000],
    ...[1, 2, 3].map(() => [200_000, 200_000]),
    [200_000, undefined],
    [undefined, 200_000],
    [undefined, 200_000],
    [200_000, 200_000],
    [undefined, 200_001],
  ])
})

it('gets streamed content that is stored after another change, whole', async () => {
  const { afterCommit, waitForChanges } = collectChanges()
  const inner = memoryStore()
  let writes = 0
  const theirs = { contentType: 'text/plain', body: 'theirs' }
  const racing = beforeWrites(inner, () => ++writes === 1 && inner.write('/docs/a', theirs, { expect: 'any' }))
  target = await startService({ resources: { '/docs/{name}': document({ afterCommit }) } }, racing)
  const body = 'x'.repeat(200_000)
  const fields = { 'Content-Type': 'text/plain' }
  expect((await target.send('PUT', '/docs/a', { fields, body, chunked: true })).status).toBe(204)
  expect((await target.send('GET', '/docs/a')).text).toBe(body)
  expect((await waitForChanges(1)).map(({ kind, before }) => [kind, before?.size])).toEqual([['replaced', 6]])
})

it('leaves the retention of what is removed as the definition says', async () => {
  let time = Date.UTC(2026, 0, 1)
  const now = (): number => time
  const docs = document({ retention: 1000, afterCommit: () => {} })
  target = await startService({ resources: { '/docs/{name}': docs }, now }, memoryStore({ now }))
  await target.send('PUT', '/docs/a', jsonOf({}))
  await target.send('DELETE', '/docs/a')
  expect((await target.send('GET', '/docs/a')).status).toBe(410)
  time += 2000
  expect((await target.send('GET', '/docs/a')).status).toBe(404)
})

it('keeps no timer once the service is closed', async () => {
  let end: () => void = () => {}
  const called = new Promise<void>((resolve) => {
    end = resolve
  })
  let finish: () => void = () => {}
  const afterCommit: AfterCommit = () => {
    end()
    return new Promise<void>((resolve) => {
      finish = resolve
    })
  }
  target = await startService({ resources: { '/docs/{name}': document({ afterCommit }) } })
  await target.send('PUT', '/docs/a', jsonOf({}))
  await called
  const setTimer = vi.spyOn(globalThis, 'setTimeout')
  const clearTimer = vi.spyOn(globalThis, 'clearTimeout')
  try {
    const closed = target.service.close()
    // It waits for five seconds at most.
    await vi.waitFor(
      () => expect(setTimer.mock.calls.some(([, time]) => time! > 4000 && time! <= 5000)).toBe(true),
      30_000,
    )
    finish()
    await closed
    const cleared = new Set(clearTimer.mock.calls.map(([timer]) => timer))
    for (const [index, [, time]] of setTimer.mock.calls.entries()) {
      const timer = setTimer.mock.results[index]!.value as NodeJS.Timeout
      // Those that keep no process alive are of connections.
      if (time! > 4000 && time! <= 5000 && timer.hasRef()) expect(cleared).toContain(timer)
    }
  } finally {
    setTimer.mockRestore()
    clearTimer.mockRestore()
  }
})
