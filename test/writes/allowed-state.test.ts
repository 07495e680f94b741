import { AsyncLocalStorage } from 'node:async_hooks'
import { createServer } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { ask } from '../support/ask.ts'
import { runServer } from '../support/hosts.ts'
import { jsonOf, startService, type Target } from './support.ts'

let target: Target | undefined
afterEach(() => target?.close())

/** A store in which somebody else replaces `/notes/1` right before the next write or removal. */
function createRace(): { store: ResourceStore; interfere(): void } {
  const inner = memoryStore()
  let isDue = false
  const interfere = async (): Promise<void> => {
    if (!isDue) return
    isDue = false
    const body = '{"id":1,"owner":"ada"}'
    await inner.write('/notes/1', { contentType: 'application/json', body }, { expect: 'any' })
  }
  const store: ResourceStore = {
    ...inner,
    async write(...request) {
      await interfere()
      return inner.write(...request)
    },
    async remove(...request) {
      await interfere()
      return inner.remove(...request)
    },
  }
  return {
    store,
    interfere: () => {
      isDue = true
    },
  }
}

describe('authorisation by the state', () => {
  it.each(['PUT', 'DELETE', 'PATCH'])(
    'counts for the very state that %s replaces, If-Match: * or not',
    async (method) => {
      const { store, interfere } = createRace()
      target = await startService(
        {
          resources: {
            '/notes': collection<{ owner: string }>({
              authorize: (_, { headers }, current) =>
                current === undefined || current.value?.owner === headers['x-user'],
            }),
          },
        },
        store,
      )
      await target.send('POST', '/notes', jsonOf({ owner: 'eve' }))
      interfere()
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const body = method === 'DELETE' ? {} : { body: '{"owner":"eve","mine":true}' }
      const fields = { 'x-user': 'eve', 'If-Match': '*', 'Content-Type': type }
      expect((await target.send(method, '/notes/1', { fields, ...body })).status).toBe(403)
      expect((await target.send('GET', '/notes/1', { fields: { 'x-user': 'ada' } })).json()).toEqual({
        id: 1,
        owner: 'ada',
      })
    },
  )
})

describe('AsyncLocalStorage', () => {
  it('is that of the request in schemas, hooks and stores, also after the content was read', async () => {
    const context = new AsyncLocalStorage<string>()
    const inner = memoryStore()
    const seen: (string | undefined)[] = []
    const store: ResourceStore = {
      ...inner,
      write(...request) {
        seen.push(context.getStore())
        return inner.write(...request)
      },
      create(...request) {
        seen.push(context.getStore())
        return inner.create(...request)
      },
    }
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) => {
          seen.push(context.getStore())
          return { value: value as { a: number } }
        },
      },
    }
    const service = createResourceService(store, {
      resources: { '/items': collection({ schema }), '/raw/{name}': document(), '/one': singleton() },
    })
    const host = await runServer(
      createServer((req, res) => context.run(String(req.headers['x-tenant']), () => service(req, res))),
    )
    try {
      const send = (method: string, path: string, type: string, body: string) =>
        ask(host.port, { method, target: path, fields: ['X-Tenant: t1', `Content-Type: ${type}`], body })
      const multipart = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--\r\n'
      const answers = [
        await send('POST', '/items', 'application/json', '{"a":1}'),
        await send('POST', '/items', 'application/x-www-form-urlencoded', 'a=1'),
        await send('POST', '/items', 'multipart/form-data; boundary=b', multipart),
        await send('PUT', '/items/1', 'application/json', '{"a":2}'),
        await send('PATCH', '/items/1', 'application/merge-patch+json', '{"a":3}'),
        await send('PUT', '/raw/x', 'text/plain', 'text'),
        await send('PUT', '/one', 'application/json', '{}'),
      ]
      expect(answers.map((answer) => answer.status)).toEqual([201, 201, 201, 204, 200, 201, 201])
      expect(seen.length).toBeGreaterThan(10)
      expect(new Set(seen)).toEqual(new Set(['t1']))
    } finally {
      await host.close()
    }
  })
})

describe('numbers that a double cannot hold (threat 63)', () => {
  const big = '{"account":9007199254740993,"m":1}'

  it('are kept by POST and PUT, and never changed by a patch that says nothing of them', async () => {
    target = await startService({ resources: { '/users': collection(), '/docs/{name}': document() } })
    const created = await target.send('POST', '/users', { fields: { 'Content-Type': 'application/json' }, body: big })
    expect(created.text).toContain('9007199254740993')
    const patch = { fields: { 'Content-Type': 'application/merge-patch+json' }, body: '{"m":2}' }
    const refused = await target.send('PATCH', '/users/1', patch)
    expect([refused.status, refused.json().type]).toEqual([
      409,
      'urn:problem-type:http-resource-service:patch-conflict',
    ])
    expect((await target.send('GET', '/users/1')).text).toContain('9007199254740993')
    // A raw document may hold what no double is: written again it would be null.
    await target.send('PUT', '/docs/n', { fields: { 'Content-Type': 'application/json' }, body: '{"n":1e400}' })
    expect((await target.send('PATCH', '/docs/n', patch)).status).toBe(409)
  })

  it.each([
    ['{"n":9007199254740993}', 422],
    ['{"n":-12345678901234567890}', 422],
    ['{"n":9007199254740992}', 200],
    ['{"n":6.02214076e23}', 200],
    ['{"n":1e300}', 200],
    ['{"n":"9007199254740993"}', 200],
    ['{"9007199254740993":1e22}', 200],
  ])('a patch of %s is answered %i', async (body, status) => {
    target = await startService({ resources: { '/users': collection() } })
    await target.send('POST', '/users', jsonOf({ a: 1 }))
    const answer = await target.send('PATCH', '/users/1', {
      fields: { 'Content-Type': 'application/merge-patch+json' },
      body,
    })
    expect(answer.status).toBe(status)
  })
})

describe('a schema', () => {
  const isNamed = {
    '~standard': {
      version: 1 as const,
      vendor: 'test',
      validate: (value: unknown) =>
        typeof (value as { name?: unknown }).name === 'string'
          ? { value: value as { name: string } }
          : { issues: [{ message: 'no name', path: ['name'] }] },
    },
  }

  it('holds for JSON, also where other content is taken as it comes', async () => {
    target = await startService({
      resources: {
        '/docs/{name}': document({ schema: isNamed }),
        '/raw': collection({ types: ['*/*'], schema: isNamed }),
      },
    })
    const put = (body: string, type = 'application/json') =>
      target!.send('PUT', '/docs/a', { fields: { 'Content-Type': type }, body })
    expect((await put('{"name":5}')).status).toBe(422)
    expect((await put('{"name":5}', 'text/plain')).status).toBe(201)
    expect((await put('{ "name": "a" }')).status).toBe(204)
    expect((await target.send('GET', '/docs/a')).text).toBe('{ "name": "a" }')
    expect((await target.send('POST', '/raw', jsonOf({ name: 5 }))).status).toBe(422)
    const created = await target.send('POST', '/raw', jsonOf({ name: 'b' }))
    expect(created.status).toBe(201)
    expect((await target.send('GET', created.field('location')!)).text).toBe('{"name":"b"}')
  })

  it('that changes its input in place is believed all the same', async () => {
    const strict = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) => {
          const members = value as Record<string, unknown>
          delete members['isAdmin']
          members['level'] ??= 1
          return { value: members as { level: number } }
        },
      },
    }
    target = await startService({
      resources: { '/one': singleton({ schema: strict }), '/all': collection({ schema: strict }) },
    })
    await target.send('PUT', '/one', jsonOf({ name: 'a', isAdmin: true }))
    expect((await target.send('GET', '/one')).json()).toEqual({ name: 'a', level: 1 })
    await target.send('POST', '/all', jsonOf({ name: 'a', isAdmin: true }))
    expect((await target.send('GET', '/all/1')).json()).toEqual({ id: 1, name: 'a', level: 1 })
    const merge = { 'Content-Type': 'application/merge-patch+json' }
    await target.send('PATCH', '/all/1', { fields: merge, body: '{"isAdmin":true,"b":1}' })
    const patched = await target.send('PATCH', '/all/1', { fields: merge, body: '{"c":1}' })
    expect(patched.json()).toEqual({ id: 1, name: 'a', level: 1, b: 1, c: 1 })
    expect((await target.send('GET', '/all/1')).text).toBe(patched.text)
  })
})

describe('what PATCH says nothing of', () => {
  it('stays: language and file name', async () => {
    target = await startService({
      resources: { '/docs/{name}': document({ keeps: ['Content-Disposition', 'Content-Language'] }) },
    })
    const fields = {
      'Content-Type': 'application/json',
      'Content-Disposition': 'attachment; filename="f.json"',
      'Content-Language': 'de, en-GB',
    }
    await target.send('PUT', '/docs/f', { fields, body: '{"a":1}' })
    await target.send('PATCH', '/docs/f', {
      fields: { 'Content-Type': 'application/merge-patch+json' },
      body: '{"a":2}',
    })
    const answer = await target.send('GET', '/docs/f')
    expect([answer.text, answer.field('content-disposition'), answer.field('content-language')]).toEqual([
      '{"a":2}',
      'inline; filename="f.json"',
      'de, en-GB',
    ])
  })

  it.each([
    ['Content-Language', '<script>'],
    ['Content-Language', 'a'.repeat(5000)],
  ])('and is not stored where it could not be sent again: %s (threats 116, 117)', async (name, value) => {
    target = await startService({
      resources: { '/docs/{name}': document({ keeps: ['Content-Disposition', 'Content-Language'] }) },
    })
    const answer = await target.send('PUT', '/docs/f', {
      fields: { 'Content-Type': 'text/plain', [name]: value },
      body: 'x',
    })
    expect(answer.status).toBe(400)
    expect((await target.send('GET', '/docs/f')).status).toBe(404)
  })
})

describe('PATCH on what is no JSON', () => {
  it('is 415 before any condition is looked at (row H100)', async () => {
    target = await startService({ resources: { '/docs/{name}': document({ preconditions: 'required' }) } })
    await target.send('PUT', '/docs/t', { fields: { 'Content-Type': 'text/plain' }, body: 'text' })
    for (const more of [{}, { 'If-Match': '"x"' }] as Record<string, string>[]) {
      const fields = { 'Content-Type': 'application/merge-patch+json', ...more }
      expect((await target.send('PATCH', '/docs/t', { fields, body: '{}' })).status).toBe(415)
    }
  })
})

describe('a listing', () => {
  it('is JSON whatever its members began with, and however large they are (row U6)', async () => {
    target = await startService({ limits: { parsedSize: 1000 } })
    const put = (path: string, body: string | Uint8Array) =>
      target!.send('PUT', path, { fields: { 'Content-Type': 'application/json' }, body })
    expect((await put('/things/1', '\ufeff{"a":1}')).field('etag')).toBeUndefined() // not the bytes that were sent
    await put('/things/2', '{"a":2}')
    await put('/things/3', `{"id":1},{"forged":"${'x'.repeat(2000)}"}`)
    const list = await target.send('GET', '/things')
    expect(list.json()).toEqual([
      { a: 1 },
      { a: 2 },
      expect.objectContaining({ href: '/things/3', type: 'application/json' }),
    ])
    expect((await target.send('GET', '/things/1')).text).toBe('{"a":1}')
  })
})
