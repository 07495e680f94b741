import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import {
  ADMIN,
  jsonOf,
  MERGE_PATCH,
  sendBytes,
  signToken,
  startDemo,
  startService,
  type Target,
  USER,
} from './support.ts'

let demo: Target
beforeAll(async () => {
  demo = await startDemo()
})
afterAll(() => demo.close())

async function create(collection = '/users', value: object = USER): Promise<string> {
  return (await demo.send('POST', collection, jsonOf(value))).field('location')!
}

describe('DELETE', () => {
  it('answers 204, then 410; before there was anything, 404 (interface DELETE 2 to 4, rows H52, H69, H175)', async () => {
    const missing = await demo.send('DELETE', '/users/88888', { fields: ADMIN })
    expect(missing.status).toBe(404)
    const path = await create()
    const removed = await demo.send('DELETE', path, { fields: ADMIN })
    expect([removed.status, removed.text, removed.field('content-length')]).toEqual([204, '', undefined])
    for (const method of ['GET', 'HEAD', 'DELETE']) {
      expect([method, (await demo.send(method, path, { fields: ADMIN })).status]).toEqual([method, 410])
    }
    expect((await demo.send('PATCH', path, jsonOf({}, MERGE_PATCH))).status).toBe(410)
    expect((await demo.send('GET', path)).status).toBe(410)
  })

  it('is undone by a PUT, with a tag of its own (threat 45)', async () => {
    await demo.send('PUT', '/docs/again', { body: 'x' })
    const tag = (await demo.send('GET', '/docs/again')).field('etag')!
    await demo.send('DELETE', '/docs/again', { fields: ADMIN })
    const created = await demo.send('PUT', '/docs/again', { body: 'x' })
    expect([created.status, created.field('etag') === tag]).toEqual([201, false])
    expect((await demo.send('PUT', '/docs/again', { fields: { 'If-Match': tag }, body: 'y' })).status).toBe(412)
  })

  it('needs credentials, and tells strangers nothing (threats 33, 49, rows H82, H88)', async () => {
    const path = await create()
    const gone = await create()
    await demo.send('DELETE', gone, { fields: ADMIN })
    const answers = await Promise.all([path, gone, '/users/77777'].map((path) => demo.send('DELETE', path)))
    for (const answer of answers) {
      expect([answer.status, answer.field('etag')]).toEqual([401, undefined])
      expect(answer.fields.filter(([name]) => name === 'www-authenticate')).toHaveLength(3)
    }
    expect((await demo.send('GET', path)).status).toBe(200)
    expect((await demo.send('DELETE', path, { fields: { Authorization: 'Bearer x' } })).status).toBe(401)
    expect((await demo.send('DELETE', path, { fields: { Authorization: `Bearer ${signToken({})}` } })).status).toBe(204)
  })

  it('ignores content (row H70, threat 2)', async () => {
    const path = await create()
    const answer = await demo.send('DELETE', path, jsonOf({ id: 1, all: true }, ADMIN))
    expect(answer.status).toBe(204)
    const [next, after] = [await create(), await create()]
    const credentials = ADMIN['Authorization']
    const pipelined = await sendBytes(
      demo.port,
      `DELETE ${next} HTTP/1.1\r\nHost: a\r\nAuthorization: ${credentials}\r\nContent-Length: 3\r\n\r\nabc`,
      `DELETE ${after} HTTP/1.1\r\nHost: a\r\nAuthorization: ${credentials}\r\nConnection: close\r\n\r\n`,
    )
    expect([pipelined.status, pipelined.text.startsWith('HTTP/1.1 204')]).toEqual([204, true])
  })

  it('happens only under its conditions (rows H109, H122)', async () => {
    const path = await create()
    const tag = (await demo.send('GET', path)).field('etag')!
    const cases: readonly (readonly [string, string, number])[] = [
      ['If-Match', '"x"', 412],
      ['If-Match', `W/${tag}`, 412],
      ['If-None-Match', tag, 412],
      ['If-None-Match', '*', 412],
      ['If-Unmodified-Since', 'Sun, 06 Nov 1994 08:49:37 GMT', 412],
      ['If-Match', 'abc', 400],
      ['If-Match', tag, 204],
    ]
    for (const [name, value, status] of cases) {
      const answer = await demo.send('DELETE', path, { fields: { ...ADMIN, [name]: value } })
      expect([name, value, answer.status]).toEqual([name, value, status])
      if (status !== 204) expect((await demo.send('GET', path)).field('etag')).toBe(tag)
    }
    expect((await demo.send('DELETE', '/users/66666', { fields: { ...ADMIN, 'If-Match': '*' } })).status).toBe(404)
  })

  it('confirms where it is asked to: 200 with deleted and id (interface DELETE 2, rows H69, R5)', async () => {
    const path = await create()
    const answer = await demo.send('DELETE', path, { fields: { ...ADMIN, Prefer: 'return=representation' } })
    expect([answer.status, answer.json()]).toEqual([200, { deleted: true, id: Number(path.slice(7)) }])
    expect(answer.field('preference-applied')).toBe('return=representation')
    await demo.send('PUT', '/docs/named', { body: 'x' })
    const named = await demo.send('DELETE', '/docs/named', { fields: { ...ADMIN, Prefer: 'return=representation' } })
    expect(named.json()).toEqual({ deleted: true, id: 'named' })
  })

  it('answers as its definition says: 204, the confirmation, or what was removed (row H69)', async () => {
    const target = await startService({
      resources: {
        '/a': collection({ deleteResponse: 'confirmation' }),
        '/b': collection({ deleteResponse: 'representation' }),
        '/c/{name}': document({ deleteResponse: 'representation' }),
      },
    })
    await target.send('POST', '/a', jsonOf({ x: 1 }))
    await target.send('POST', '/b', jsonOf({ x: 1 }))
    await target.send('PUT', '/c/x', { fields: { 'Content-Type': 'text/plain' }, body: 'text' })
    expect((await target.send('DELETE', '/a/1')).json()).toEqual({ deleted: true, id: 1 })
    const representation = await target.send('DELETE', '/b/1')
    expect([representation.status, representation.json()]).toEqual([200, { id: 1, x: 1 }])
    expect(representation.field('etag')).toBeUndefined()
    const text = await target.send('DELETE', '/c/x')
    expect([text.status, text.text, text.field('content-type')]).toEqual([200, 'text', 'text/plain'])
    await target.send('POST', '/a', jsonOf({ x: 1 }))
    expect((await target.send('DELETE', '/a/2', { fields: { Prefer: 'return=minimal' } })).status).toBe(204)
    await target.close()
  })

  it('reads the content of the target only where a hook may see it, as a PUT that creates nothing does', async () => {
    const store = memoryStore()
    const reads: (string | boolean | undefined)[] = []
    const seen: unknown[] = []
    const target = await startService(
      {
        resources: {
          '/a': collection({ deleteResponse: 'representation', clientIds: false }),
          '/b': collection({ afterCommit: ({ before }) => void seen.push(before?.value), methods: ['GET', 'POST'] }),
        },
      },
      {
        ...store,
        read(path, options) {
          reads.push(path, options?.metadataOnly)
          const state = store.read(path, options)
          // A store may leave out content that is not needed.
          return options?.metadataOnly === true && state !== undefined && 'body' in state
            ? { ...state, body: '' }
            : state
        },
      },
    )
    for (const path of ['/a', '/b']) await target.send('POST', path, jsonOf({ x: 1 }))
    reads.length = seen.length = 0
    expect((await target.send('PUT', '/a/1', jsonOf({ x: 2 }))).status).toBe(204)
    const removed = await target.send('DELETE', '/a/1', { fields: { 'If-Match': '*' } })
    expect([removed.status, removed.json()]).toEqual([200, { x: 2, id: 1 }])
    expect(reads.splice(0)).toEqual(['/a/1', true, '/a/1', true])
    expect((await target.send('DELETE', '/b/1')).status).toBe(204)
    await vi.waitFor(() => expect(seen).toEqual([{ id: 1, x: 1 }]))
    expect(reads).toEqual(['/b/1', false])
    await target.close()
  })

  it('writes nothing that a polluted prototype has: the rights of the client are not those to write it (threat 150)', async () => {
    const target = await startService({
      resources: { '/a': collection(), '/b': collection({ authorize: () => false }) },
    })
    const polluted = Object.prototype as { relatedWrites?: unknown }
    await target.send('PUT', '/a/1', jsonOf({}))
    polluted.relatedWrites = [{ path: '/b/1', content: { contentType: 'application/json', body: '{}' }, expect: 'any' }]
    try {
      expect((await target.send('DELETE', '/a/1')).status).toBe(204)
    } finally {
      delete polluted.relatedWrites
    }
    expect(await target.store.read('/b/1')).toBe(undefined)
    await target.close()
  })

  it('leaves no trace where nothing is remembered, and forgets in time elsewhere (row H175, threat 142)', async () => {
    let now = Date.now()
    const target = await startService(
      {
        resources: { '/a/{n}': document({ retention: 0 }), '/b/{n}': document({ retention: 60_000 }) },
        now: () => now,
      },
      memoryStore({ now: () => now }),
    )
    for (const path of ['/a/x', '/b/x']) {
      await target.send('PUT', path, { body: 'x' })
      expect((await target.send('DELETE', path)).status).toBe(204)
    }
    expect((await target.send('GET', '/a/x')).status).toBe(404)
    expect((await target.send('GET', '/b/x')).status).toBe(410)
    now += 60_000
    expect((await target.send('GET', '/b/x')).status).toBe(404)
    await target.close()
  })

  it('looks for files in ten pages of what is below the target, and in no more', async () => {
    const store = memoryStore()
    const asked: (string | undefined)[] = []
    const list: ResourceStore['list'] = (_collection, { after }) => {
      asked.push(after)
      return { items: [], next: `n${asked.length}` }
    }
    const target = await startService({}, { ...store, list })
    await target.send('PUT', '/x', { body: 'x' })
    expect((await target.send('DELETE', '/x')).status).toBe(204)
    expect(asked).toEqual([undefined, ...Array.from({ length: 9 }, (_, index) => `n${index + 1}`)])
    await target.close()
  })

  it('never answers 205 (row H170)', async () => {
    const target = await startService()
    await target.send('PUT', '/a', { body: 'x' })
    expect((await target.send('DELETE', '/a')).status).toBe(204)
    await target.close()
  })
})

describe('DELETE of an article', () => {
  it('hides it: 410 for all, readable with ?deleted=true for admins, restored by PUT (DESIGN §3, §6)', async () => {
    const path = await create('/articles', { title: 'T' })
    const text = (await demo.send('GET', path)).text
    expect((await demo.send('DELETE', path, { fields: ADMIN })).status).toBe(204)
    expect((await demo.send('GET', path)).status).toBe(410)
    expect((await demo.send('GET', `${path}?deleted=1`)).status).toBe(410)
    expect((await demo.send('GET', `${path}?deleted=true`)).status).toBe(401)
    const stranger = { Authorization: `Bearer ${signToken({})}` }
    expect((await demo.send('GET', `${path}?deleted=true`, { fields: stranger })).status).toBe(403)
    const hidden = await demo.send('GET', `${path}?deleted=true`, { fields: ADMIN })
    expect([hidden.status, hidden.text]).toEqual([200, text])
    expect((await demo.send('GET', '/articles')).text).not.toContain(text)
    expect((await demo.send('GET', '/articles?deleted=true', { fields: ADMIN })).text).toContain(text)

    expect((await demo.send('DELETE', path, { fields: ADMIN })).status).toBe(410)
    expect((await demo.send('PATCH', path, jsonOf({ title: 'U' }, MERGE_PATCH))).status).toBe(410)
    const match = jsonOf({ title: 'U' }, { 'If-Match': hidden.field('etag')! })
    expect((await demo.send('PUT', path, match)).status).toBe(412)
    const restored = await demo.send('PUT', path, jsonOf({ title: 'U' }))
    expect([restored.status, restored.field('location')]).toEqual([201, path])
    expect((await demo.send('GET', path)).json().title).toBe('U')
  })

  it('does not assign the id of a hidden item to another one', async () => {
    const path = await create('/articles', { title: 'T' })
    await demo.send('DELETE', path, { fields: ADMIN })
    expect(Number((await create('/articles', { title: 'V' })).slice(10))).toBeGreaterThan(Number(path.slice(10)))
  })

  it('is hidden and not lost when it is removed later as well (RFC 7240 §4.1)', async () => {
    const path = await create('/articles', { title: 'T' })
    const answer = await demo.send('DELETE', path, { fields: { ...ADMIN, Prefer: 'respond-async' } })
    expect([answer.status, answer.field('preference-applied')]).toEqual([202, 'respond-async'])
    const monitor = answer.field('location')!
    for (;;) {
      const { state } = (await demo.send('GET', monitor, { fields: ADMIN })).json()
      if (state === 'done') break
      expect(['pending', 'running']).toContain(state)
    }
    expect((await demo.send('GET', path)).status).toBe(410)
    expect((await demo.send('GET', `${path}?deleted=true`, { fields: ADMIN })).status).toBe(200)
  })
})
