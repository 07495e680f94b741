import { createServer } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { mount } from '../../src/adapters/node.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { listenForTest } from '../support/listen.ts'
import { jsonOf, send, startService, type Target, waitFor } from './support.ts'

let target: Target | undefined
afterEach(() => target?.close())

const schemes = [bearer((name) => ({ id: name, claims: { role: name === 'root' ? 'admin' : 'user' } }))]
const as = (user: string): Readonly<Record<string, string>> => (user === '' ? {} : { Authorization: `Bearer ${user}` })

/** A service whose removals wait until they are run. */
function start(
  operations: ServiceOptions['operations'] = {},
  more: Partial<ServiceOptions> = {},
  store?: ResourceStore,
): Promise<Target> {
  const options: ServiceOptions = {
    resources: {
      '/notes': collection({ deletion: 'queued' }),
      '/{tenant}': collection(),
    },
    auth: { schemes, requireAuth: () => false },
    operations: { queue: { enqueue: () => {} }, pollInterval: 10, ...operations },
    ...more,
  }
  return startService(options, store)
}

/** Asks for a removal as a user; '' sends no credentials. */
async function removeAs(user: string): Promise<string> {
  const item = (await target!.send('POST', '/notes', jsonOf({}))).field('location')!
  return (await target!.send('DELETE', item, { fields: as(user) })).field('location')!
}

const statusOf = async (method: string, path: string, user: string): Promise<number> =>
  (await target!.send(method, path, { fields: as(user) })).status
const shown = ({ status, text, fields }: Answer) => ({
  status,
  text,
  fields: fields.filter(([name]) => name !== 'date'),
})
const idOf = (monitor: string): string => monitor.slice('/operations/'.length)

describe('the monitor of accepted work', () => {
  it('is for the principal who caused it, and does not exist for others', async () => {
    target = await start()
    const monitor = await removeAs('ada')
    expect((await target.send('GET', monitor, { fields: as('ada') })).json()).toMatchObject({ state: 'pending' })
    const missing = '/operations/00000000-0000-4000-8000-000000000000'
    for (const user of ['', 'eve', 'root']) {
      for (const method of ['GET', 'HEAD', 'DELETE']) {
        const hidden = await target.send(method, monitor, { fields: as(user) })
        expect([user, method, hidden.status]).toEqual([user, method, 404])
        expect(shown(hidden)).toEqual(shown(await target.send(method, missing, { fields: as(user) })))
      }
    }
    expect(await statusOf('DELETE', monitor, 'ada')).toBe(204)
  })

  it('has the principal without its claims, as has the record of the work, which is kept in the store', async () => {
    const store = memoryStore()
    const jobs = collection({ create: 'accepted', process: () => ({}) })
    const resources = { '/notes': collection({ deletion: 'queued' }), '/jobs': jobs }
    target = await start({}, { resources }, store)
    const monitor = await removeAs('ada')
    await target.send('POST', '/jobs', jsonOf({}, as('ada')))
    const records = (await store.list('work', { limit: 10 })).items.map(({ body }) => JSON.parse(String(body)))
    const shown = (await target.send('GET', monitor, { fields: as('ada') })).json()
    expect(records).toHaveLength(2)
    for (const { principal } of [...records, shown]) expect(principal).toEqual({ scheme: 'bearer', id: 'ada' })
  })

  it('is not taken for an item of a tenant, whose scope may have a property of the same name', async () => {
    const scope = { properties: ['state'], values: () => ({ state: 'Bavaria' }) }
    const resources = { '/{tenant}': collection({ ids: 'uuid', deletion: 'queued', scope }) }
    target = await startService({ resources })
    const item = (await target.send('POST', '/acme', jsonOf({}))).field('location')!
    const monitor = (await target.send('DELETE', item)).field('location')!
    await waitFor(
      () => target!.send('GET', monitor),
      (answer) => answer.json().state === 'done',
    )
  })

  it('does not exist for the same name of another scheme', async () => {
    target = await start({}, { auth: { schemes: [...schemes, basic({ accounts: { ada: 'b' } })] } })
    const token = as('ada')
    const password = { Authorization: `Basic ${Buffer.from('ada:b').toString('base64')}` }
    for (const [owner, other] of [
      [token, password],
      [password, token],
    ] as const) {
      const item = (await target.send('POST', '/notes', jsonOf({}, owner))).field('location')!
      const monitor = (await target.send('DELETE', item, { fields: owner })).field('location')!
      const statuses = [owner, other].map(async (fields) => (await target!.send('GET', monitor, { fields })).status)
      expect(await Promise.all(statuses)).toEqual([200, 404])
    }
  })

  it('is for admins as well, where the service says who they are', async () => {
    const asked: unknown[] = []
    target = await start({
      isAdmin: async (principal, request) => {
        asked.push([principal.id, request.method, request.path])
        return principal.claims?.['role'] === 'admin'
      },
    })
    const monitor = await removeAs('ada')
    expect([await statusOf('GET', monitor, 'eve'), await statusOf('GET', monitor, '')]).toEqual([404, 404])
    expect([await statusOf('GET', monitor, 'ada'), await statusOf('GET', monitor, 'root')]).toEqual([200, 200])
    expect(asked).toEqual([
      ['eve', 'GET', monitor],
      ['root', 'GET', monitor],
    ])
    expect(await statusOf('DELETE', monitor, 'root')).toBe(204)
  })

  it('is for every client that has its id where it was caused without credentials', async () => {
    target = await start()
    const monitor = await removeAs('')
    expect([await statusOf('GET', monitor, ''), await statusOf('GET', monitor, 'eve')]).toEqual([200, 200])
  })

  it('is not judged by authorize, which knows resources only', async () => {
    target = await start(
      {},
      {
        auth: {
          schemes,
          requireAuth: () => false,
          authorize: (_, __, current) =>
            current?.value === undefined || Object.hasOwn(current.value as object, 'title'),
        },
      },
    )
    await target.send('POST', '/notes', jsonOf({ title: 'T' }))
    const monitor = (await target.send('DELETE', '/notes/1', { fields: as('ada') })).field('location')!
    expect([await statusOf('GET', monitor, 'ada'), await statusOf('GET', monitor, 'eve')]).toEqual([200, 404])
  })

  it('is listed by no pattern, and no pattern makes resources beside it', async () => {
    target = await start()
    await removeAs('')
    expect(await statusOf('GET', '/tenant', '')).toBe(200)
    for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE']) {
      expect([method, await statusOf(method, '/operations', '')]).toEqual([method, 404])
    }
    expect((await target.store.list('', { limit: 10 })).items).toEqual([])
    expect((await target.store.list('/operations', { limit: 10 })).items).toEqual([])
  })

  it('is found where release 0.1.0 kept it, unlike other content there', async () => {
    target = await start()
    await target.send('POST', '/notes', jsonOf({}))
    const id = 'b2ff6f2c-0df5-4f2c-9b3e-0a4a3e5f9a11'
    const { version } = (await target.store.read('/notes/1')) as { version: string }
    const json = (value: unknown) => ({ contentType: 'application/json', body: JSON.stringify(value) })
    const accepted = '2026-01-01T00:00:00.000Z'
    const monitor = { id, kind: 'removal', target: '/notes/1', state: 'pending', accepted }
    const work = { kind: 'remove', pattern: '/notes/{id}', path: '/notes/1', version, monitor: `/operations/${id}` }
    await target.store.write(`/operations/${id}`, json(monitor), {
      expect: 'absent',
      related: [{ path: `work/${id}`, content: json({ ...work, attempts: 0, notBefore: 0 }) }],
    })
    await target.store.write('/operations/1', json({ id: 1, secret: true }), { expect: 'absent' })
    expect(await statusOf('GET', '/operations/1', '')).toBe(404)
    expect((await target.send('GET', `/operations/${id}`)).json()).toMatchObject({ state: 'pending' })
    expect(await target.service.runOperation(id)).toBe(true)
    expect((await target.send('GET', `/operations/${id}`)).json()).toMatchObject({ state: 'done' })
    expect(await statusOf('GET', '/notes/1', '')).toBe(410)
    expect(await statusOf('DELETE', `/operations/${id}`, '')).toBe(204)
    expect(await statusOf('GET', `/operations/${id}`, '')).toBe(404)
  })
})

it('a monitor of a service below a mount names its target as clients know it', async () => {
  const service = createResourceService(memoryStore(), { resources: { '/a': collection({ deletion: 'queued' }) } })
  const port = await listenForTest(createServer(mount('/api', service)))
  await send(port, 'POST', '/api/a', jsonOf({}))
  const monitor = (await send(port, 'DELETE', '/api/a/1')).field('location')!
  expect((await send(port, 'GET', monitor)).json().target).toBe('/api/a/1')
  await service.close()
})

describe('a monitor whose work has ended', () => {
  it('is removed by DELETE where the work has failed', async () => {
    target = await start({ maxAttempts: 1 })
    const monitor = await removeAs('')
    await target.send('PUT', '/notes/1', jsonOf({ changed: true }))
    expect(await target.service.runOperation(idOf(monitor))).toBe(true)
    expect((await target.send('GET', monitor)).json()).toMatchObject({ state: 'failed' })
    expect((await target.send('DELETE', monitor)).status).toBe(204)
    expect((await target.send('GET', monitor)).status).toBe(404)
  })

  it('is removed with its records after the retention, done or failed', async () => {
    let now = Date.now()
    target = await start({ retention: 1000, maxAttempts: 1 }, { now: () => now })
    const done = await removeAs('')
    const failed = await removeAs('')
    const pending = await removeAs('')
    // This item has changed since: its removal fails.
    await target.send('PUT', '/notes/2', jsonOf({ changed: true }))
    for (const monitor of [done, failed]) expect(await target.service.runOperation(idOf(monitor))).toBe(true)
    const stateOf = async (path: string): Promise<string> => (await target!.send('GET', path)).json().state
    expect([await stateOf(done), await stateOf(failed), await stateOf(pending)]).toEqual(['done', 'failed', 'pending'])
    now += 2000
    for (const monitor of [done, failed]) {
      await waitFor(
        () => target!.send('GET', monitor),
        ({ status }) => status === 404,
      )
    }
    expect(await stateOf(pending)).toBe('pending')
    const names = async (collection: string) =>
      (await target!.store.list(collection, { limit: 10 })).items.map((item) => item.path)
    expect(await names('monitors')).toEqual([`monitors/${idOf(pending)}`])
    expect(await names('work')).toEqual([`work/${idOf(pending)}`])
  })

  it('of release 0.1.0 is removed by the date of its last change', async () => {
    let now = Date.now()
    target = await start({ retention: 1000 }, { now: () => now })
    const id = 'b2ff6f2c-0df5-4f2c-9b3e-0a4a3e5f9a11'
    const body = JSON.stringify({
      ...{ id, kind: 'removal', target: '/notes/1', state: 'done' },
      accepted: '2020-01-01T00:00:00.000Z',
    })
    await target.store.write(`/operations/${id}`, { contentType: 'application/json', body }, { expect: 'any' })
    const other = { contentType: 'application/json', body: '{"state":"done"}' }
    await target.store.write('/operations/other', other, { expect: 'any' })
    expect(await statusOf('GET', `/operations/${id}`, '')).toBe(200)
    now += 5000
    await waitFor(
      () => target!.send('GET', `/operations/${id}`),
      ({ status }) => status === 404,
    )
    expect(await target.store.read('/operations/other')).toMatchObject({ size: 16 })
  })

  it.each([0, -1, Number.NaN, '1h'])('is kept for a duration: %s is refused', (retention) => {
    expect(() => start({ retention: retention as number })).toThrow(
      'operations takes as retention: milliseconds, 1 or more, or Infinity; it is ',
    )
  })
})
