import { AsyncLocalStorage } from 'node:async_hooks'
import { createServer } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { beginChange } from '../../src/actions/changes.ts'
import { type Change, json, type Outbox } from '../../src/actions/hook-types.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { HttpError } from '../../src/core/errors.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { isResource } from '../../src/stores/rules.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { ask } from '../support/ask.ts'
import { beforeWrites } from '../support/before-writes.ts'
import { runServer } from '../support/hosts.ts'
import { JSON_TYPE, jsonOf, MERGE_PATCH, multipartOf, startService, type Target, waitFor } from '../writes/support.ts'
import { STORES } from './stores.ts'

let target: Target | undefined
afterEach(() => target?.close())

const audit: Outbox = (change) => [{ path: `/audit/${change.eventId}`, content: json(change) }]

/** What the outbox has written, in the order of the events. */
async function trail(store: ResourceStore): Promise<ReturnType<Change['toJSON']>[]> {
  const { items } = await store.list('/audit', { limit: 500 })
  const entries = items.map(({ body }) => JSON.parse(String(body)))
  return entries.sort((a, b) => (a.eventId < b.eventId ? -1 : 1))
}

const auth = { schemes: [bearer((name: string) => ({ id: name, claims: { secret: 's3' } }))] }
const ada = { Authorization: 'Bearer ada' }

describe.each(Object.entries(STORES))('outbox on %s', (_, createStore) => {
  it('writes in the same step as each change: created, replaced, patched, deleted, restored', async () => {
    const store = createStore()
    const now = () => Date.UTC(2026, 0, 1)
    const tasks = collection({ deletion: 'soft', outbox: audit })
    target = await startService({ resources: { '/tasks': tasks }, auth, now }, store)
    const tags: unknown[] = []
    const step = async (method: string, options = {}) => {
      const { status } = await target!.send(method, method === 'POST' ? '/tasks' : '/tasks/1', options)
      expect(status).toBeLessThan(300)
      tags.push((await target!.send('HEAD', '/tasks/1', { fields: ada })).field('etag'))
    }
    await step('POST', jsonOf({ n: 1 }, ada))
    await step('PUT', jsonOf({ n: 2 }, ada))
    await step('PATCH', { fields: { ...MERGE_PATCH, ...ada }, body: '{"n":3}' })
    await step('DELETE', { fields: ada })
    await step('PUT', jsonOf({ n: 4 }, ada))
    const entries = await trail(store)
    const value = (n: number) => ({ id: 1, n })
    expect(entries.map(({ kind, before, after }) => [kind, before, after])).toEqual([
      ['created', undefined, expect.objectContaining({ tag: tags[0], value: value(1) })],
      [
        'replaced',
        expect.objectContaining({ tag: tags[0], value: value(1) }),
        expect.objectContaining({ tag: tags[1] }),
      ],
      [
        'patched',
        expect.objectContaining({ tag: tags[1] }),
        expect.objectContaining({ tag: tags[2], value: value(3) }),
      ],
      ['deleted', expect.objectContaining({ tag: tags[2], value: value(3) }), undefined],
      [
        'restored',
        expect.objectContaining({ value: value(3) }),
        expect.objectContaining({ tag: tags[4], value: value(4) }),
      ],
    ])
    for (const entry of entries) {
      expect(entry).toMatchObject({ path: '/tasks/1', id: 1, params: { id: '1' }, at: '2026-01-01T00:00:00.000Z' })
      // Neither the request nor the claims of the token.
      expect(entry['principal']).toEqual({ scheme: 'bearer', id: 'ada' })
      expect(entry).not.toHaveProperty('request')
    }
  })

  it('is not taken for a store that is away where it refuses with 503: the work fails, and the log says nothing', async () => {
    const log = vi.fn()
    const outbox: Outbox = ({ kind, after }) => {
      if (kind === 'replaced' || kind === 'deleted' || (after!.value as { state?: string }).state === 'ready') {
        throw new HttpError(503, 'ERR_QUOTA')
      }
      return []
    }
    const resources = {
      '/notes': singleton({ outbox }),
      '/jobs': collection({ create: 'accepted', deletion: 'queued', outbox }),
    }
    target = await startService({ resources, log, operations: { maxAttempts: 1 } }, createStore())
    const statuses: number[] = []
    for (let i = 0; i < 2; i++) statuses.push((await target.send('PUT', '/notes', jsonOf({}))).status)
    expect(statuses).toEqual([201, 503])
    await target.send('POST', '/jobs', jsonOf({}))
    const failed = { state: 'failed', problem: { status: 503 } }
    const isOver = (answer: { json(): { state: string } }) => answer.json().state !== 'pending'
    const read = (path: string) => waitFor(() => target!.send('GET', path), isOver)
    expect((await read('/jobs/1')).json()).toMatchObject(failed)
    const monitor = (await target.send('DELETE', '/jobs/1')).field('location')!
    expect((await read(monitor)).json()).toMatchObject(failed)
    expect(log).not.toHaveBeenCalled()
  })

  it('writes with multipart creations, keyed requests, ids that are UUIDs, documents and singletons', async () => {
    const store = createStore()
    const resources = {
      '/uploads': collection({ files: { photo: {} }, ids: 'uuid', idempotency: 'optional', outbox: audit }),
      '/docs/{name}': document({ outbox: audit }),
      '/one': singleton({ outbox: audit }),
      '/raw': collection({ types: ['*/*'], outbox: audit }),
    }
    target = await startService({ resources }, store)
    const fields = { 'Idempotency-Key': '"a-key-of-16-characters"' }
    const form = multipartOf([{ name: 'photo', filename: 'p', content: Buffer.alloc(100_000) }], fields)
    const created = await target.send('POST', '/uploads', form)
    const again = await target.send('POST', '/uploads', form)
    expect([created.status, again.field('idempotency-replayed'), again.text]).toEqual([201, '?1', created.text])
    const { id } = created.json()
    const patch = { fields: { ...MERGE_PATCH, ...fields }, body: '{"n":1}' }
    await target.send('PATCH', `/uploads/${id}`, patch)
    expect((await target.send('PATCH', `/uploads/${id}`, patch)).field('idempotency-replayed')).toBe('?1')
    await target.send('PUT', '/docs/x', { fields: { 'Content-Type': 'text/plain' }, body: 'x'.repeat(200_000) })
    await target.send('PUT', '/one', jsonOf({ n: 2 }))
    await target.send('POST', '/raw', { fields: { 'Content-Type': 'image/png' }, body: 'PNG' })
    await target.send('DELETE', `/uploads/${id}`)
    expect((await trail(store)).map(({ kind, path, id, params }) => [kind, path, id, params])).toEqual([
      ['created', `/uploads/${id}`, id, { id }],
      ['patched', `/uploads/${id}`, id, { id }],
      ['created', '/docs/x', undefined, { name: 'x' }],
      ['created', '/one', undefined, {}],
      ['created', '/raw/1', 1, { id: '1' }],
      ['deleted', `/uploads/${id}`, id, { id }],
    ])
  })

  it('has one entry for each change, and each names the state before it, under many writers', async () => {
    const store = createStore()
    const services = await Promise.all(
      [1, 2].map(() => startService({ resources: { '/tasks': collection({ outbox: audit }) } }, store)),
    )
    try {
      await services[0]!.send('PUT', '/tasks/1', jsonOf({ n: 0 }))
      const patch = (n: number) => ({ fields: MERGE_PATCH, body: JSON.stringify({ [`n${n}`]: n }) })
      const answers = await Promise.all(
        Array.from({ length: 24 }, (_, n) =>
          n % 4 === 3
            ? services[n % 2]!.send('PUT', '/tasks/1', jsonOf({ n }))
            : services[n % 2]!.send('PATCH', '/tasks/1', patch(n)),
        ),
      )
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 204]))
      const entries = await trail(store)
      expect(entries).toHaveLength(25)
      // A chain: each state is the one before of exactly one change.
      const after = new Map(entries.map((entry) => [(entry['after'] as { version: string }).version, entry]))
      const before = entries.flatMap((entry) => (entry['before'] as { version: string } | undefined)?.version ?? [])
      expect(new Set(before).size).toBe(24)
      for (const version of before) expect(after.has(version)).toBe(true)
    } finally {
      for (const service of services) await service.close()
    }
  })

  it('refuses the change with 409 while a path that must be absent is there', async () => {
    const store = createStore()
    // A name is used once, whatever task has it.
    const outbox: Outbox = ({ before, after, kind }) => {
      const name = (state: typeof after) => (state?.value as { name?: string } | undefined)?.name
      if (kind === 'deleted') return [{ path: '/removed/once', content: json({}), expect: 'absent' }]
      return name(before) === name(after)
        ? []
        : [{ path: `/names/${name(after)}`, content: json({ by: 1 }), expect: 'absent' }]
    }
    const tasks = collection({ files: { photo: {} }, idempotency: 'optional', outbox })
    target = await startService({ resources: { '/tasks': tasks } }, store)
    expect((await target.send('POST', '/tasks', jsonOf({ name: 'a' }))).status).toBe(201)
    const photo = { name: 'photo', filename: 'p', content: Buffer.alloc(100_000) }
    const keyed = { 'Idempotency-Key': '"a-key-of-16-characters"' }
    const refused = [
      await target.send('POST', '/tasks', jsonOf({ name: 'a' })),
      await target.send('POST', '/tasks', jsonOf({ name: 'a' }, keyed)),
      await target.send('POST', '/tasks', multipartOf([{ name: 'name', content: 'a' }, photo])),
      await target.send('PUT', '/tasks/9', jsonOf({ name: 'a' })),
    ]
    expect(refused.map(({ status }) => status)).toEqual([409, 409, 409, 409])
    expect(refused[0]!.json().detail).toBe('Another resource is in the way of the change.')
    await target.send('POST', '/tasks', jsonOf({ name: 'b' }))
    const rename = { fields: MERGE_PATCH, body: '{"name":"b"}' }
    const first = (await target.send('GET', '/tasks')).json()[0].id
    expect((await target.send('PATCH', `/tasks/${first}`, rename)).status).toBe(409)
    const ids = (await target.send('GET', '/tasks')).json().map(({ id }: { id: number }) => id)
    expect(ids).toHaveLength(2)
    expect((await target.send('DELETE', `/tasks/${ids[0]}`)).status).toBe(204)
    expect((await target.send('DELETE', `/tasks/${ids[1]}`)).status).toBe(409)
    expect((await target.send('GET', `/tasks/${ids[1]}`)).status).toBe(200)
  })

  it('may give one path twice, also where it must be absent: the last write counts', async () => {
    const store = createStore()
    const outbox: Outbox = ({ id, kind }) =>
      [1, 2].map((n) => ({ path: `/seen/${id}-${kind}`, content: json({ n }), expect: 'absent' as const }))
    target = await startService({ resources: { '/tasks': collection({ outbox }) } }, store)
    expect((await target.send('POST', '/tasks', jsonOf({}))).status).toBe(201)
    expect((await target.send('PUT', '/tasks/1', jsonOf({}))).status).toBe(204)
    expect((await target.send('DELETE', '/tasks/1')).status).toBe(204)
    const { items } = await store.list('/seen', { limit: 10 })
    expect(items.map(({ path, body }) => [path, String(body)])).toEqual(
      ['created', 'deleted', 'replaced'].map((kind) => [`/seen/1-${kind}`, '{"n":2}']),
    )
  })

  it('may use one list, one object and one buffer again while the steps that it was called for are under way', async () => {
    const store = createStore()
    const writes = [1, 2].map(() => ({ path: '', content: { contentType: '', body: Buffer.alloc(40) } }))
    const outbox: Outbox = ({ eventId }) => {
      for (const [index, write] of writes.entries()) {
        write.path = `/seen/${index}-${eventId}`
        write.content.contentType = `text/x-${eventId}`
        write.content.body.fill(' ').write(eventId)
      }
      return writes
    }
    const resources = { '/tasks': collection({ outbox }), '/notes/{name}': document({ outbox }) }
    target = await startService({ resources }, store)
    const { send } = target
    const puts = Array.from({ length: 8 }, (_, n) => send('PUT', `/notes/${n}`, jsonOf({})))
    const posts = Array.from({ length: 8 }, () => send('POST', '/tasks', jsonOf({})))
    expect(new Set((await Promise.all([...puts, ...posts])).map(({ status }) => status))).toEqual(new Set([201]))
    const { items } = await store.list('/seen', { limit: 100 })
    expect(items).toHaveLength(32)
    for (const { path, contentType, body } of items) {
      const eventId = path.slice('/seen/0-'.length)
      expect([contentType, String(body).trim()]).toEqual([`text/x-${eventId}`, eventId])
    }
  })

  it('may give content of a class, which has its fields as getters', async () => {
    class Text {
      get contentType() {
        return 'text/plain'
      }
      get contentEncoding() {
        return 'gzip'
      }
      get contentLanguage() {
        return 'de'
      }
      get filename() {
        return 'a.txt'
      }
      get body() {
        return 'x'
      }
    }
    const store = createStore()
    const outbox: Outbox = () => [{ path: '/seen/1', content: new Text() }]
    target = await startService({ resources: { '/tasks': collection({ outbox }) } }, store)
    expect((await target.send('POST', '/tasks', jsonOf({}))).status).toBe(201)
    const fields = { contentType: 'text/plain', contentEncoding: 'gzip', contentLanguage: 'de', filename: 'a.txt' }
    expect(await store.read('/seen/1')).toMatchObject({ ...fields, size: 1 })
  })

  it('is asked anew after a lost race: what the faster one has written is not in the way', async () => {
    const store = createStore()
    const nameOf = (state: Change['after']) => (state?.value as { name?: string } | undefined)?.name
    const outbox: Outbox = ({ before, after }) => {
      if (after !== undefined && nameOf(after) === nameOf(before)) return []
      return [{ path: `/names/${nameOf(after) ?? before!.version}`, content: json({}), expect: 'absent' }]
    }
    const resources = { '/tasks': collection({ outbox }) }
    const faster = await startService({ resources }, store)
    let race: (() => unknown) | undefined
    const slower = beforeWrites(store, () => {
      const run = race
      race = undefined
      return run?.()
    })
    target = await startService({ resources }, slower)
    const send = async (method: string, options = {}) => {
      race = () => faster.send(method, '/tasks/1', options)
      return (await target!.send(method, '/tasks/1', options)).status
    }
    try {
      expect(await send('PUT', jsonOf({ name: 'a' }))).toBe(204)
      expect(await send('PUT', jsonOf({ name: 'b' }))).toBe(204)
      expect(await send('PATCH', { fields: MERGE_PATCH, body: '{"name":"c"}' })).toBe(204)
      expect(await send('DELETE')).toBe(410)
    } finally {
      await faster.close()
    }
  })

  it('stops the change when it throws, and nothing is written', async () => {
    const store = createStore()
    const errors: unknown[] = []
    const outbox: Outbox = ({ after, kind }) => {
      const value = after?.value as { how?: string } | undefined
      if (value?.how === 'refuse') throw new HttpError(422, 'ERR_INVALID_CONTENT', { detail: 'Not so.' })
      if (value?.how === 'fail' || kind === 'deleted') throw new Error('out of order')
      return []
    }
    const onError = (error: unknown): void => void errors.push((error as Error).message)
    target = await startService({ resources: { '/tasks': collection({ outbox }) }, onError }, store)
    expect((await target.send('POST', '/tasks', jsonOf({ how: 'refuse' }))).status).toBe(422)
    expect((await target.send('PUT', '/tasks/5', jsonOf({ how: 'fail' }))).status).toBe(500)
    expect((await target.send('PUT', '/tasks/5', jsonOf({}))).status).toBe(201)
    expect((await target.send('DELETE', '/tasks/5')).status).toBe(500)
    expect((await target.send('GET', '/tasks')).json()).toEqual([{ id: 5 }])
    expect(errors).toEqual(['out of order', 'out of order'])
  })

  it('runs in the asynchronous context of the request, wherever the store calls it', async () => {
    const context = new AsyncLocalStorage<string>()
    const seen: string[] = []
    const outbox: Outbox = (change) => {
      seen.push(`${change.kind} ${context.getStore()}`)
      return audit(change)
    }
    const service = createResourceService(createStore(), { resources: { '/tasks': collection({ outbox }) } })
    const host = await runServer(
      createServer((req, res) => context.run(String(req.headers['x-tenant']), () => service(req, res))),
    )
    try {
      const send = (method: string, target: string, tenant: number, body = '{}') =>
        ask(host.port, { method, target, fields: [`X-Tenant: t${tenant}`, 'Content-Type: application/json'], body })
      const tenants = Array.from({ length: 8 }, (_, tenant) => tenant)
      await Promise.all(tenants.map((tenant) => send('PUT', `/tasks/${tenant + 1}`, tenant)))
      await Promise.all(tenants.map((tenant) => send('DELETE', `/tasks/${tenant + 1}`, tenant)))
      await Promise.all(tenants.map((tenant) => send('POST', '/tasks', tenant)))
      const kinds = ['created', 'deleted', 'created']
      const all = kinds.flatMap((kind) => tenants.map((tenant) => `${kind} t${tenant}`))
      expect(seen.sort()).toEqual(all.sort())
    } finally {
      await host.close()
      await service.close()
    }
  })
})

describe('outbox', () => {
  it('sees accepted items, the work on them, and removals that are queued, with the principal and without its claims', async () => {
    const store = memoryStore()
    const jobs = collection({ create: 'accepted', deletion: 'queued', process: () => ({ result: 7 }), outbox: audit })
    target = await startService({ resources: { '/jobs': jobs }, auth }, store)
    await target.send('POST', '/jobs', jsonOf({ n: 1 }, ada))
    const read = () => target!.send('GET', '/jobs/1', { fields: ada })
    await waitFor(read, (answer) => answer.json().state === 'ready')
    expect((await target.send('DELETE', '/jobs/1', { fields: ada })).status).toBe(202)
    await waitFor(read, (answer) => answer.status === 410)
    const entries = await trail(store)
    const principal = { scheme: 'bearer', id: 'ada' }
    expect(entries).toMatchObject([
      { kind: 'created', principal, after: { value: { id: 1, n: 1, state: 'pending' } } },
      {
        kind: 'patched',
        principal,
        before: { value: { state: 'pending' } },
        after: { value: { state: 'ready', result: 7 } },
      },
      { kind: 'deleted', principal, before: { value: { state: 'ready' } } },
    ])
    expect(entries.map(({ params }) => params)).toEqual([{ id: '1' }, { id: '1' }, { id: '1' }])
  })

  it('sees work that fails', async () => {
    const store = memoryStore()
    const process = (): never => {
      throw new HttpError(422, 'ERR_INVALID_CONTENT', { detail: 'Never.' })
    }
    const jobs = collection({ create: 'accepted', process, outbox: audit })
    target = await startService({ resources: { '/jobs': jobs } }, store)
    await target.send('POST', '/jobs', jsonOf({}))
    await waitFor(
      () => target!.send('GET', '/jobs/1'),
      (answer) => answer.json().state === 'failed',
    )
    expect((await trail(store)).map(({ after }) => (after as { value: { state: string } }).value.state)).toEqual([
      ...['pending', 'failed'],
    ])
  })

  it('is not called for a patch that changes nothing, and not for a repetition', async () => {
    const store = memoryStore()
    target = await startService({ resources: { '/tasks': collection({ outbox: audit }) } }, store)
    await target.send('POST', '/tasks', jsonOf({ a: 1 }))
    await target.send('PATCH', '/tasks/1', { fields: MERGE_PATCH, body: '{"a":1}' })
    expect(await trail(store)).toHaveLength(1)
  })

  it('gives ids of events that are unique and ascend within a process', async () => {
    const store = memoryStore()
    target = await startService({ resources: { '/tasks': collection({ outbox: audit }) } }, store)
    for (let i = 0; i < 20; i++) await target.send('POST', '/tasks', jsonOf({}))
    const entries = await trail(store)
    expect(entries.map(({ id }) => id)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
    for (const { eventId } of entries) {
      expect(eventId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    }
  })

  it('gives ids that ascend beyond 4096 events of one millisecond', () => {
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 1000)
    const ids: string[] = []
    const context = { limits: { bodySize: 1 }, now: Date.now, isParent: () => false }
    const outbox: Outbox = ({ eventId }) => {
      ids.push(eventId)
      return []
    }
    const route = { ...{ outbox, context, pattern: '/tasks/{id}', kind: 'item' }, observesChanges: true } as never
    for (let i = 0; i < 5000; i++) {
      beginChange(route, 'created', undefined, { principal: undefined, request: undefined })!.writes!('/a/1', undefined)
    }
    vi.restoreAllMocks()
    expect(ids.findIndex((id, i) => i > 0 && id <= ids[i - 1]!)).toBe(-1)
  })

  it('writes nothing below a resource that is removed with what is below it', async () => {
    const errors: string[] = []
    let path = '/tasks/1/comments/1'
    const outbox: Outbox = ({ kind }) => (kind === 'deleted' ? [{ path, content: json({}) }] : [])
    const resources = { '/tasks': collection({ outbox }), '/tasks/{task}/comments': collection({ parent: true }) }
    const onError = (error: unknown): void => void errors.push((error as Error).message)
    target = await startService({ resources, onError })
    await target.send('POST', '/tasks', jsonOf({}))
    expect((await target.send('DELETE', '/tasks/1')).status).toBe(500)
    expect(errors).toEqual([
      expect.stringMatching(/^The outbox of \/tasks must not write below .*: \/tasks\/1\/comments\/1\.$/),
    ])
    path = '/tasks/10'
    expect((await target.send('DELETE', '/tasks/1')).status).toBe(204)
    expect(isResource(await target.store.read(path))).toBe(true)
  })

  it('writes below a resource that is hidden: what is below it stays', async () => {
    const path = '/tasks/1/comments/1'
    const outbox: Outbox = ({ kind }) => (kind === 'deleted' ? [{ path, content: json({}) }] : [])
    const tasks = collection({ deletion: 'soft', outbox })
    target = await startService({
      resources: { '/tasks': tasks, '/tasks/{task}/comments': collection({ parent: true }) },
    })
    await target.send('POST', '/tasks', jsonOf({}))
    expect((await target.send('DELETE', '/tasks/1')).status).toBe(204)
    expect(isResource(await target.store.read(path))).toBe(true)
  })

  it('fails for anything but a list of writes with absolute paths and small content', async () => {
    const errors: string[] = []
    let result: unknown
    const onError = (error: unknown): void => void errors.push((error as Error).message)
    target = await startService({ resources: { '/tasks': collection({ outbox: () => result as [] }) }, onError })
    const results: unknown[] = [
      undefined,
      Promise.resolve([]),
      [{ path: 'audit', content: json(1) }],
      [{ path: '/tasks/1', content: json(1) }],
      [{ path: '/a', content: { body: 'x' } }],
    ]
    for (result of results) expect((await target.send('PUT', '/tasks/1', jsonOf({}))).status).toBe(500)
    expect(errors).toEqual([
      'The outbox of /tasks must return a list of writes such as [{ path, content }].',
      'The outbox of /tasks must return a list of writes, not a promise: the commit does not wait for it.',
      'The outbox of /tasks must give each write an absolute path that is not the path of the change.',
      'The outbox of /tasks must give each write an absolute path that is not the path of the change.',
      'The outbox of /tasks must give each write content with a contentType and a body of text or bytes.',
    ])
    expect(await target.store.read('/tasks/1')).toBe(undefined)
  })

  const kept = { path: '/audit/1', content: json(1) }
  it.each<[string, readonly unknown[], string]>([
    ['that is null', [null], 'an absolute path'],
    ['with a misspelt name', [{ ...kept, expects: 'absent' }], 'gives a write "expects", which has no effect'],
    ['with a misspelt expect', [{ ...kept, expect: 'abesnt' }], "as expect one of 'any', 'absent'"],
    ['with a type that no field can have', [{ ...kept, content: { contentType: 'a\r\nb', body: '' } }], 'media type'],
    [
      'with languages that no field can have',
      [{ ...kept, content: { contentType: 'text/plain', contentLanguage: 'e\nn', body: '' } }],
      'language tags',
    ],
    [
      'with a number as filename',
      [{ ...kept, content: { contentType: 'text/plain', filename: 5, body: '' } }],
      'filename text',
    ],
  ])('fails for a write %s', async (_, writes, message) => {
    const errors: string[] = []
    const onError = (error: unknown): void => void errors.push((error as Error).message)
    const tasks = collection({ outbox: () => writes as [] })
    target = await startService({ resources: { '/tasks': tasks }, onError })
    expect((await target.send('POST', '/tasks', jsonOf({}))).status).toBe(500)
    expect(errors).toEqual([expect.stringContaining(message)])
    expect((await target.store.list('/tasks', { limit: 1 })).items).toEqual([])
  })

  it.each([
    ['a function', () => 1, 'json() takes a value that JSON has, not function.'],
    ['a promise', { user: Promise.resolve(1) }, 'The caller of json() gave a promise'],
    ['a Map', new Map([['a', 1]]), 'The caller of json() gave a Map, of which JSON has no properties.'],
  ])('gets no content from json() for %s', (_, value, message) => {
    expect(() => json(value)).toThrow(message)
    expect(json({ at: new Date(0) }).body).toBe('{"at":"1970-01-01T00:00:00.000Z"}')
  })

  it('is refused with a store that does not support it', () => {
    const { supports: _, ...store } = memoryStore()
    expect(() => createResourceService(store, { resources: { '/tasks': collection({ outbox: audit }) } })).toThrow(
      '/tasks has an outbox, which needs a store that supports relatedExpect (related writes that expect a path to be ' +
        'absent); the store of this service does not.',
    )
  })

  it('writes resources of the service, which are served like any other', async () => {
    const resources = { '/tasks': collection({ outbox: audit }), '/audit': collection({ ids: 'string' }) }
    target = await startService({ resources })
    await target.send('POST', '/tasks', { fields: JSON_TYPE, body: '{}' })
    const [entry] = (await target.send('GET', '/audit')).json()
    const read = await target.send('GET', `/audit/${entry.eventId}`)
    expect([read.status, read.json().path]).toEqual([200, '/tasks/1'])
    expect(isResource(await target.store.read(`/audit/${entry.eventId}`))).toBe(true)
  })
})

it('the outbox of a collection with ids of type uuid gets the state that is then stored', async () => {
  const store = memoryStore()
  const outbox: Outbox = ({ eventId, after }) => [
    { path: `/events/${eventId}`, content: json({ version: after?.version }) },
  ]
  const notes = collection({ ids: 'uuid', outbox })
  const target = await startService({ resources: { '/notes': notes } }, store)
  const { status, headers } = await fetch(`http://127.0.0.1:${target.port}/notes`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{}',
  })
  const [event] = (await store.list('/events', { limit: 2 })).items
  const state = (await store.read(headers.get('location')!)) as { version: string }
  expect([status, String(event?.body)]).toEqual([201, JSON.stringify({ version: state.version })])
  await target.close()
})
