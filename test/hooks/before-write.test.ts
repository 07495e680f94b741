import { createHash } from 'node:crypto'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import type { WriteContext } from '../../src/actions/hook-types.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { HttpError } from '../../src/core/errors.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { JSON_TYPE, jsonOf, MERGE_PATCH, multipartOf, startService, type Target } from '../writes/support.ts'

let target: Target | undefined
afterEach(() => target?.close())

const Task = z.object({
  title: z.string(),
  count: z.number().max(10).optional(),
  createdAt: z.string().optional(),
  changes: z.number().optional(),
})
type Task = z.infer<typeof Task>

const START = Date.UTC(2026, 0, 1)
const now = () => START

/** Sets who made it first, and counts the changes. */
const track = (value: Task, { current, now }: WriteContext<Task>): Task => ({
  ...value,
  createdAt: current?.value?.createdAt ?? now.toISOString(),
  changes: (current?.value?.changes ?? 0) + 1,
})

const idempotent = (key: string): Readonly<Record<string, string>> => ({
  ...JSON_TYPE,
  'Idempotency-Key': `"${key.padEnd(16, '-')}"`,
})

describe('beforeWrite', () => {
  it('changes what POST, PUT and PATCH store, and overwrites what the client sent', async () => {
    const tasks = collection({ schema: Task, beforeWrite: track })
    target = await startService({ resources: { '/tasks': tasks }, now })
    const createdAt = '2026-01-01T00:00:00.000Z'
    const sent = { title: 'a', createdAt: '1999-01-01T00:00:00Z', changes: 99 }
    const created = await target.send('POST', '/tasks', jsonOf(sent))
    expect([created.status, created.json()]).toEqual([201, { id: 1, title: 'a', createdAt, changes: 1 }])
    expect((await target.send('PUT', '/tasks/1', jsonOf({ ...sent, id: 1 }))).status).toBe(204)
    const patched = await target.send('PATCH', '/tasks/1', { fields: MERGE_PATCH, body: '{"title":"b","changes":0}' })
    expect([patched.status, patched.json()]).toEqual([200, { id: 1, title: 'b', createdAt, changes: 3 }])
    expect((await target.send('GET', '/tasks/1')).json()).toEqual(patched.json())
  })

  it('shows what it keeps of the current state only where the right to read is given', async () => {
    const authorize = (_principal: unknown, { method }: { method: string }) => method !== 'GET'
    const keep = (value: JsonObject, { current }: WriteContext) => ({ ...(current?.value as JsonObject), ...value })
    const definitions = { beforeWrite: keep, authorize }
    const resources = { '/notes': collection(definitions), '/own': singleton(definitions) }
    target = await startService({ resources })
    const put = async (path: string, value: JsonObject, fields = {}) =>
      (await target!.send('PUT', path, { ...jsonOf(value), fields: { ...JSON_TYPE, ...fields } })).status
    await target.send('POST', '/notes', jsonOf({ secret: 's' }))
    expect(await put('/notes/1', { title: 't' }, { Prefer: 'return=representation' })).toBe(403)
    expect(await put('/notes/1', { title: 't' })).toBe(204)
    expect(await put('/own', { secret: 's' }, { Prefer: 'return=minimal' })).toBe(201)
    expect(await put('/own', { title: 't' })).toBe(403)
    expect(await put('/own', { title: 't' }, { Prefer: 'return=minimal' })).toBe(204)
  })

  it('tells by no validator whether it has kept something of a state that the client may not read', async () => {
    const authorize = ({ id }: { id?: string } = {}, { method }: { method: string }) => id === 'ada' || method !== 'GET'
    const keepOwner = (value: JsonObject, { current }: WriteContext) => ({
      ...value,
      owner: (current?.value as JsonObject | undefined)?.['owner'] ?? value['owner'] ?? 'nobody',
    })
    const verifier = (token: string) => ({ id: token })
    const auth = { schemes: [bearer(verifier)] }
    target = await startService({ resources: { '/notes': collection({ beforeWrite: keepOwner, authorize }) }, auth })
    const put = async (user: string, owner: string, fields = {}) => {
      const sent = jsonOf({ id: 1, owner })
      const own = { ...JSON_TYPE, Authorization: `Bearer ${user}`, ...fields }
      const answer = await target!.send('PUT', '/notes/1', { ...sent, fields: own })
      return [answer.status, answer.field('etag') !== undefined, answer.field('last-modified') !== undefined]
    }
    expect(await put('ada', 'secret')).toEqual([201, false, false])
    for (const guess of ['wrong', 'secret']) expect(await put('eve', guess)).toEqual([204, false, false])
    // Those who may read are asked for as such by a condition.
    expect(await put('ada', 'secret', { 'If-Match': '*' })).toEqual([204, true, true])
    expect(await put('ada', 'wrong', { 'If-Match': '*' })).toEqual([204, false, false])
  })

  it('is bounded by the limits of the service, as what was sent is', async () => {
    const tasks = collection({ beforeWrite: (value) => ({ ...value, stamped: true }) })
    target = await startService({ resources: { '/tasks': tasks }, limits: { depth: 200, jsonMembers: 300 } })
    const nest = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
    const post = async (body: string) => (await target!.send('POST', '/tasks', { fields: JSON_TYPE, body })).status
    expect([await post(nest(150)), await post(nest(201))]).toEqual([201, 400])
    const list = (count: number) => JSON.stringify({ a: new Array(count).fill(0) })
    expect([await post(list(298)), await post(list(299))]).toEqual([201, 413])
  })

  it('sees forms, multipart, singletons and documents of JSON', async () => {
    const seen: unknown[] = []
    const beforeWrite = (value: unknown, context: WriteContext<never>) => {
      seen.push([context.kind, context.params, value])
      return { ...(value as object), stamped: true }
    }
    const resources = {
      '/forms': collection({ files: { photo: {} }, beforeWrite }),
      '/one': singleton({ beforeWrite }),
      '/docs/{name}': document({ types: ['application/json'], beforeWrite }),
    }
    target = await startService({ resources })
    const form = { fields: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: 'a=1' }
    const multipart = multipartOf([
      { name: 'a', content: '2' },
      { name: 'photo', filename: 'p.png', type: 'image/png', content: 'PNG' },
    ])
    const facts = { name: 'p.png', type: 'image/png', size: 3 }
    expect((await target.send('POST', '/forms', form)).json()).toEqual({ id: 1, a: '1', stamped: true })
    const withFile = await target.send('POST', '/forms', multipart)
    expect(withFile.json()).toEqual({ id: 2, a: '2', stamped: true, photo: facts })
    expect((await target.send('PUT', '/forms/2', jsonOf({ a: '3' }))).status).toBe(204)
    expect((await target.send('GET', '/forms/2')).json()).toEqual({ id: 2, a: '3', stamped: true, photo: facts })
    expect((await target.send('PUT', '/one', jsonOf({ a: 4 }))).status).toBe(201)
    expect((await target.send('PUT', '/docs/x', jsonOf({ a: 5 }))).status).toBe(201)
    expect((await target.send('GET', '/docs/x')).json()).toEqual({ a: 5, stamped: true })
    expect(seen).toEqual([
      ['created', {}, { a: '1' }],
      ['created', {}, { a: '2' }],
      ['replaced', { id: '2' }, { a: '3' }],
      ['created', {}, { a: 4 }],
      ['created', { name: 'x' }, { a: 5 }],
    ])
  })

  it('knows the current state, the principal and the request', async () => {
    const seen: WriteContext<Task>[] = []
    const beforeWrite = (value: Task, context: WriteContext<Task>) => {
      seen.push(context)
      return value
    }
    target = await startService({
      auth: { schemes: [bearer((name) => ({ id: name }))] },
      resources: { '/tasks': collection({ schema: Task, beforeWrite }) },
      now,
    })
    const ada = { Authorization: 'Bearer ada' }
    const tag = (await target.send('POST', '/tasks', jsonOf({ title: 'a' }, ada))).field('etag')
    await target.send('PUT', '/tasks/1?x=1', jsonOf({ title: 'b' }, ada))
    expect(seen.map(({ kind, current, now }) => [kind, current?.tag, current?.value, now])).toEqual([
      ['created', undefined, undefined, new Date(START)],
      ['replaced', tag, { id: 1, title: 'a' }, new Date(START)],
    ])
    expect(
      seen.map(({ principal, request, params }) => [principal?.id, request.query.get('x'), { ...params }]),
    ).toEqual([
      ['ada', null, {}],
      ['ada', '1', { id: '1' }],
    ])
  })

  it('is not called for a repetition under an Idempotency-Key, however long the store takes', async () => {
    const beforeWrite = vi.fn((value: Task) => value)
    const inner = memoryStore()
    const store: ResourceStore = { ...inner, read: async (...values) => inner.read(...values) }
    const tasks = collection({ schema: Task, idempotency: 'required', beforeWrite })
    target = await startService({ resources: { '/tasks': tasks } }, store)
    const post = (key: string) => target!.send('POST', '/tasks', { fields: idempotent(key), body: '{"title":"a"}' })
    const ids = []
    for (const key of ['a', 'b', 'b', 'a', 'c']) ids.push((await post(key)).json().id)
    expect([ids, beforeWrite.mock.calls.length]).toEqual([[1, 2, 2, 1, 3], 3])
  })

  it('runs again, from what was sent, when another request was faster', async () => {
    const inner = memoryStore()
    let rivals = 2
    const store: ResourceStore = {
      ...inner,
      async write(path, content, options) {
        if (rivals > 0 && typeof options.expect === 'object') {
          rivals--
          const body = JSON.stringify({ id: 1, title: 'rival', changes: 5 + rivals })
          await inner.write(path, { contentType: 'application/json', body }, { expect: 'any' })
        }
        return inner.write(path, content, options)
      },
    }
    const values: unknown[] = []
    const beforeWrite = (value: Task, context: WriteContext<Task>) => {
      values.push({ ...value })
      // In place, as careless hooks do.
      return Object.assign(value, { changes: (context.current?.value?.changes ?? 0) + 1 })
    }
    target = await startService({ resources: { '/tasks': collection({ schema: Task, beforeWrite }) } }, store)
    await target.send('POST', '/tasks', jsonOf({ title: 'a' }))
    values.length = 0
    expect((await target.send('PUT', '/tasks/1', jsonOf({ title: 'b' }))).status).toBe(204)
    expect(values).toEqual([{ title: 'b' }, { title: 'b' }, { title: 'b' }])
    expect((await target.send('GET', '/tasks/1')).json()).toEqual({ id: 1, title: 'b', changes: 6 })
    rivals = 1
    await target.send('PATCH', '/tasks/1', { fields: MERGE_PATCH, body: '{"title":"c"}' })
    expect((await target.send('GET', '/tasks/1')).json()).toEqual({ id: 1, title: 'c', changes: 6 })
  })

  it('gives a result that is validated again: 422', async () => {
    const beforeWrite = (value: Task) => ({ ...value, count: (value.count ?? 0) * 10 })
    target = await startService({ resources: { '/tasks': collection({ schema: Task, beforeWrite }) } })
    expect((await target.send('POST', '/tasks', jsonOf({ title: 'a', count: 1 }))).status).toBe(201)
    const refused = [
      await target.send('POST', '/tasks', jsonOf({ title: 'a', count: 2 })),
      await target.send('PUT', '/tasks/1', jsonOf({ title: 'a', count: 2 })),
      await target.send('PATCH', '/tasks/1', { fields: MERGE_PATCH, body: '{"count":2}' }),
    ]
    expect(refused.map(({ status }) => status)).toEqual([422, 422, 422])
    for (const answer of refused) expect(answer.json().errors[0].pointer).toBe('/count')
  })

  it('may refuse a write, and nothing is stored', async () => {
    const beforeWrite = (value: { title?: string }) => {
      if (value.title === 'taboo') throw new HttpError(403, 'ERR_FORBIDDEN', { detail: 'Not this title.' })
      return value
    }
    target = await startService({ resources: { '/tasks': collection({ files: { a: {} }, beforeWrite }) } })
    const form = multipartOf([
      { name: 'title', content: 'taboo' },
      { name: 'a', filename: 'a', content: Buffer.alloc(200_000) },
    ])
    expect((await target.send('POST', '/tasks', form)).status).toBe(403)
    expect((await target.send('POST', '/tasks', jsonOf({ title: 'taboo' }))).status).toBe(403)
    expect((await target.send('PUT', '/tasks/7', jsonOf({ title: 'taboo' }))).status).toBe(403)
    expect((await target.send('GET', '/tasks')).json()).toEqual([])
  })

  const Either = z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('a'), rate: z.number() }),
    z.object({ kind: z.literal('b') }),
  ])

  it('fails loudly where the schema would drop what it adds, or where it returns nothing', async () => {
    const errors: string[] = []
    const onError = (error: unknown): void => void errors.push((error as Error).message)
    const resources = {
      '/a': collection({ schema: Task, beforeWrite: (value) => ({ ...value, owner: 'ada' }) }),
      '/b': collection({ beforeWrite: () => undefined as never }),
      '/c': collection({ schema: Either, beforeWrite: (value) => ({ ...value, kind: 'b' }) as never }),
    }
    target = await startService({ resources, onError })
    expect((await target.send('POST', '/a', jsonOf({ title: 'a' }))).status).toBe(500)
    expect((await target.send('POST', '/b', jsonOf({ title: 'a' }))).status).toBe(500)
    expect((await target.send('POST', '/c', jsonOf({ kind: 'a', rate: 1 }))).status).toBe(500)
    expect(errors).toEqual([
      'beforeWrite of /a adds "owner", which the schema leaves out. Add it to the schema as optional: clients need not send it.',
      'beforeWrite of /b must return the value to store.',
      'beforeWrite of /c adds "rate", which the schema leaves out. Add it to the schema as optional: clients need not send it.',
    ])
  })

  it.each<[string, () => unknown, string]>([
    ['a Map', () => new Map([['title', 'a']]), 'a Map'],
    ['a promise that was not awaited', () => ({ rate: Promise.resolve(1) }), 'a promise'],
    ['one that is rejected', () => ({ rates: [Promise.reject(new Error('no rate'))] }), 'a promise'],
    ['a Set within', () => ({ tags: { all: new Set(['x']) } }), 'a Set'],
  ])('fails where JSON has no properties of what it, or the schema, gives: %s', async (_, make, kind) => {
    const errors: string[] = []
    const onError = (error: unknown): void => void errors.push((error as Error).message)
    const validate = () => ({ value: make() })
    const resources = {
      '/a': collection({ beforeWrite: make as never }),
      '/b': collection({ schema: { '~standard': { version: 1, vendor: 'test', validate } } }),
    }
    target = await startService({ resources, onError })
    for (const path of ['/a', '/b']) expect((await target.send('POST', path, jsonOf({ title: 'a' }))).status).toBe(500)
    expect(errors).toEqual([
      expect.stringContaining(`beforeWrite of /a gave ${kind}`),
      expect.stringContaining(`The schema gave ${kind}`),
    ])
    for (const path of ['/a', '/b']) expect((await target.send('GET', path)).json()).toEqual([])
  })

  it('has no part in the properties of the server', async () => {
    const beforeWrite = (value: object) => ({ ...value, id: 99, state: 'ready', photo: 'none', done: true })
    target = await startService({
      resources: {
        '/a': collection({ files: { photo: {} }, beforeWrite }),
        '/b': collection({ create: 'accepted', memberMethods: ['GET', 'PATCH'], beforeWrite }),
      },
    })
    const created = await target.send('POST', '/a', jsonOf({}))
    // Without work on it, the state is a property like any other.
    expect(created.json()).toEqual({ id: 1, state: 'ready', done: true })
    expect((await target.send('POST', '/b', jsonOf({}))).status).toBe(202)
    const accepted = (await target.send('GET', '/b/1')).json()
    expect([accepted.id, accepted.photo, accepted.done]).toEqual([1, 'none', true])
  })

  it('stores what it leaves alone byte for byte, with validators of PUT (RFC 9110 §9.3.4)', async () => {
    const docs = document({ types: ['application/json'], beforeWrite: (value) => value })
    const stamped = document({ types: ['application/json'], beforeWrite: (value) => ({ ...(value as object), a: 1 }) })
    target = await startService({ resources: { '/docs/{name}': docs, '/stamped/{name}': stamped } })
    const text = '{ "n": 12345678901234567890 }'
    const same = await target.send('PUT', '/docs/x', { fields: JSON_TYPE, body: text })
    expect([same.status, same.field('etag') !== undefined]).toEqual([201, true])
    expect((await target.send('GET', '/docs/x')).text).toBe(text)
    // Written anew it would be another number.
    expect((await target.send('PUT', '/stamped/x', { fields: JSON_TYPE, body: text })).status).toBe(422)
    for (const prefer of ['return=minimal', 'return=representation']) {
      const changed = await target.send('PUT', '/stamped/x', jsonOf({ b: 2 }, { Prefer: prefer }))
      expect([changed.field('etag'), changed.field('last-modified')]).toEqual([undefined, undefined])
    }
  })

  it('gives POST validators only with the representation as it is stored (RFC 9110 §9.3.3)', async () => {
    target = await startService({ resources: { '/tasks': collection({ schema: Task, beforeWrite: track }) } })
    const shown = await target.send('POST', '/tasks', jsonOf({ title: 'a' }))
    expect(shown.field('etag')).toBe((await target.send('GET', '/tasks/1')).field('etag'))
    const minimal = await target.send('POST', '/tasks', jsonOf({ title: 'a' }, { Prefer: 'return=minimal' }))
    expect([minimal.field('etag'), minimal.field('last-modified')]).toEqual([undefined, undefined])
  })

  it('changes nothing about digests: those sent are of what was sent, those wanted of what is stored (RFC 9530)', async () => {
    target = await startService({ resources: { '/tasks': collection({ schema: Task, beforeWrite: track }) } })
    const digestOf = (content: string | Buffer) => `sha-256=:${createHash('sha256').update(content).digest('base64')}:`
    const body = '{"title":"a"}'
    const fields = { ...JSON_TYPE, 'Repr-Digest': digestOf(body), 'Want-Repr-Digest': 'sha-256=1' }
    const created = await target.send('POST', '/tasks', { fields, body })
    expect(created.status).toBe(201)
    expect(created.text).not.toBe(body)
    expect(created.field('repr-digest')).toBe(digestOf(created.body))
    const read = await target.send('GET', '/tasks/1', { fields: { 'Want-Repr-Digest': 'sha-256=1' } })
    expect(read.field('repr-digest')).toBe(digestOf(created.body))
  })

  it('runs once for a key, whose fingerprint is of what was sent', async () => {
    let calls = 0
    const beforeWrite = (value: Task) => ({ ...value, changes: ++calls })
    const tasks = collection({ schema: Task, idempotency: 'optional', beforeWrite })
    target = await startService({ resources: { '/tasks': tasks } })
    const request = { fields: idempotent('one'), body: '{"title":"a"}' }
    const first = await target.send('POST', '/tasks', request)
    const again = await target.send('POST', '/tasks', request)
    expect([first.status, again.status, again.text, again.field('idempotency-replayed')]).toEqual([
      ...[201, 201, first.text, '?1'],
    ])
    expect(calls).toBe(1)
    const other = await target.send('POST', '/tasks', { fields: idempotent('one'), body: '{"title":"b"}' })
    expect(other.status).toBe(422)
    const patch = { fields: { ...idempotent('two'), ...MERGE_PATCH }, body: '{"title":"b"}' }
    const patched = await target.send('PATCH', '/tasks/1', patch)
    expect((await target.send('PATCH', '/tasks/1', patch)).text).toBe(patched.text)
    expect([patched.json().changes, calls]).toEqual([2, 2])
  })

  it('does not run for a patch that changes nothing, and one that it takes back writes nothing', async () => {
    let calls = 0
    const beforeWrite = (value: Task, { current }: WriteContext<Task>) => {
      calls++
      return { ...value, createdAt: current?.value?.createdAt ?? 'then' }
    }
    target = await startService({ resources: { '/tasks': collection({ schema: Task, beforeWrite }) } })
    const tag = (await target.send('POST', '/tasks', jsonOf({ title: 'a' }))).field('etag')
    const same = await target.send('PATCH', '/tasks/1', { fields: MERGE_PATCH, body: '{"title":"a"}' })
    expect([same.status, same.field('etag'), calls]).toEqual([204, tag, 1])
    const takenBack = await target.send('PATCH', '/tasks/1', { fields: MERGE_PATCH, body: '{"createdAt":"now"}' })
    expect([takenBack.status, takenBack.field('etag'), calls]).toEqual([204, tag, 2])
  })

  it('sees the state that PUT restores', async () => {
    const kinds: unknown[] = []
    const beforeWrite = (value: object, { kind, current }: WriteContext<{ title?: string }>) => {
      kinds.push([kind, current?.value?.title])
      return value
    }
    target = await startService({ resources: { '/tasks': collection({ deletion: 'soft', beforeWrite }) } })
    await target.send('POST', '/tasks', jsonOf({ title: 'a' }))
    await target.send('DELETE', '/tasks/1')
    expect((await target.send('PUT', '/tasks/1', jsonOf({ title: 'b' }))).status).toBe(201)
    expect(kinds).toEqual([
      ['created', undefined],
      ['restored', 'a'],
    ])
  })

  it('sees the whole value of a large document', async () => {
    const seen: unknown[] = []
    const beforeWrite = (value: JsonObject, { current }: WriteContext<JsonObject>) => {
      seen.push(String(current?.value?.['text'] ?? '').length)
      return value
    }
    target = await startService({ resources: { '/tasks': collection({ beforeWrite }) } })
    const text = 'x'.repeat(200_000)
    await target.send('POST', '/tasks', jsonOf({ text }))
    await target.send('PUT', '/tasks/1', jsonOf({ text: 'b' }))
    await target.send('PUT', '/tasks/1', jsonOf({ text }))
    await target.send('PATCH', '/tasks/1', { fields: MERGE_PATCH, body: '{"a":1}' })
    expect(seen).toEqual([0, 200_000, 1, 200_000])
  })

  it('is refused for content that is not JSON alone, and unless it is a function', () => {
    expect(() => document({ beforeWrite: (value) => value })).toThrow('its types must be JSON types alone')
    expect(() => collection({ types: ['text/*'], beforeWrite: (value) => value })).toThrow('JSON types alone')
    expect(() => singleton({ beforeWrite: true as never })).toThrow('singleton takes as beforeWrite: a function')
  })
})

describe('the current state of beforeWrite', () => {
  it('has a value, or refuses the write that asks for it: 409', async () => {
    const docs = document({
      types: ['application/json'],
      beforeWrite: (value, { current }) => ({ ...(value as JsonObject), was: current?.value ?? null }),
    })
    target = await startService({ resources: { '/docs/{name}': docs } })
    await target.store.write('/docs/x', { contentType: 'text/plain', body: 'text' }, { expect: 'any' })
    expect((await target.send('PUT', '/docs/x', jsonOf({}))).status).toBe(409)
    await target.send('DELETE', '/docs/x')
    expect((await target.send('PUT', '/docs/x', jsonOf({}))).status).toBe(201)
  })
})
