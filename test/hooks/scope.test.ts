import * as v from 'valibot'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { type Change, json } from '../../src/actions/hook-types.ts'
import { HttpError } from '../../src/core/errors.ts'
import type { JsonValue } from '../../src/core/json.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore, StoredResource } from '../../src/stores/types.ts'
import { beforeWrites } from '../support/before-writes.ts'
import { jsonOf, multipartOf, waitFor } from '../writes/support.ts'
import { as, list, patchOf, png, scope, shown, start } from './scoped.ts'
import { STORES } from './stores.ts'

/** A schema that removes unknown members from its input itself, as Ajv does with `removeAdditional`, and takes numbers only. */
const removingAllBut = (name: string) => ({
  '~standard': {
    version: 1,
    vendor: 'test',
    validate(value: Record<string, unknown>) {
      for (const other of Object.keys(value)) if (other !== name) delete value[other]
      return typeof value[name] === 'number' ? { value } : { issues: [{ message: 'a number', path: [name] }] }
    },
  },
})

describe.each(Object.entries(STORES))('a scope beside hooks on %s', (_, createStore) => {
  it('sets its properties after beforeWrite, which neither sets nor removes them', async () => {
    const target = await start(createStore(), {
      '/notes': collection({
        scope,
        query: { by: 'string' },
        beforeWrite: (value, { current }) => {
          const { owner, ...rest } = value as Record<string, never>
          return { ...rest, owner: 'eve', by: current === undefined ? 'new' : 'old' } as never
        },
      }),
    })
    const created = await target.send('POST', '/notes', jsonOf({ n: 1 }, as('ada')))
    expect(created.json()).toEqual({ id: 1, n: 1, by: 'new', owner: 'ada' })
    expect(await list(target, 'eve', '/notes')).toEqual([])
    expect(await list(target, 'ada', '/notes?by=new')).toHaveLength(1)
    expect((await target.send('PATCH', '/notes/1', patchOf('ada', { n: 2 }))).json()).toMatchObject({ owner: 'ada' })
    expect((await target.send('PUT', '/notes/1', jsonOf({ n: 3 }, as('ada')))).status).toBe(204)
    expect(await list(target, 'ada', '/notes?by=new')).toEqual([])
    expect(await list(target, 'ada', '/notes?by=old')).toEqual([{ id: 1, n: 3, by: 'old', owner: 'ada' }])
  })

  it('has beforeWrite, outbox and afterCommit called for what is in it only', async () => {
    const calls: string[] = []
    const changes: Change[] = []
    const target = await start(createStore(), {
      '/notes': collection({
        scope,
        deletion: 'soft',
        clientIds: true,
        beforeWrite: (value, { current }) => {
          calls.push(`write ${JSON.stringify(current?.value)}`)
          return value
        },
        outbox: (change) => {
          changes.push(change)
          return []
        },
        afterCommit: ({ kind }) => void calls.push(kind),
      }),
    })
    await target.send('POST', '/notes', jsonOf({ n: 1 }, as('ada')))
    calls.length = 0
    const never = async (method: string, options: object) =>
      expect((await target.send(method, '/notes/1', options)).status).toBe(404)
    for (let pass = 0; pass < 2; pass++) {
      await never('PUT', jsonOf({ n: 2 }, as('bob')))
      await never('PUT', jsonOf({ n: 2 }, { ...as('bob'), 'If-None-Match': '*' }))
      await never('PATCH', patchOf('bob', { n: 2 }))
      await never('DELETE', { fields: as('bob') })
      await target.send('DELETE', '/notes/1', { fields: as('ada') })
    }
    await target.service.close()
    expect(calls).toEqual(['deleted'])
    expect(changes.map(({ kind, before }) => [kind, before?.value])).toEqual([
      ['created', undefined],
      ['deleted', { id: 1, n: 1, owner: 'ada' }],
    ])
  })

  it('keeps its properties when a document that is not an object is sent: the item never leaves it', async () => {
    const target = await start(createStore(), { '/notes': collection({ scope, clientIds: true }) })
    await target.send('POST', '/notes', jsonOf({ n: 1 }, as('ada')))
    const answers = [
      await target.send('PUT', '/notes/1', jsonOf([1], as('ada'))),
      await target.send('PUT', '/notes/2', jsonOf('text', as('ada'))),
      await target.send('PATCH', '/notes/1', patchOf('ada', 5)),
    ]
    expect(answers.map(({ status }) => status)).toEqual([422, 422, 422])
    expect(await list(target, 'boss', '/notes')).toEqual([{ id: 1, n: 1, owner: 'ada' }])
  })

  it.each<[string, object]>([
    ['a schema', { schema: z.looseObject({ n: z.number() }) }],
    ['beforeWrite', { beforeWrite: (value: JsonValue) => value }],
  ])('rounds no number where %s does not see its properties: 422', async (_, options) => {
    const target = await start(createStore(), { '/notes': collection({ scope, clientIds: true, ...options }) })
    const fields = { 'Content-Type': 'application/json', ...as('ada') }
    for (const [n, created] of [
      ['12345678901234567890', 422],
      ['9007199254740992', 201],
    ] as const) {
      const request = { fields, body: `{"n":${n},"owner":"ada"}` }
      expect((await target.send('PUT', '/notes/1', request)).status).toBe(created)
      expect((await target.send('POST', '/notes', request)).status).toBe(created)
    }
  })

  it('indexes what the outbox writes, in a process that has not asked the scope yet', async () => {
    const store = createStore()
    const notes = collection({
      outbox: ({ id }) => [{ path: `/log/${id}0`, content: json({ id: Number(`${id}0`), owner: 'ada', n: id! }) }],
    })
    const log = collection({ scope, query: { n: 'number' } })
    const first = await start(store, { '/notes': notes, '/log': log })
    await first.send('POST', '/log', jsonOf({ n: 0 }, as('bob')))
    await first.send('POST', '/notes', jsonOf({}))
    const lines: unknown[] = []
    const second = await start(store, { '/notes': notes, '/log': log }, { log: (entry) => lines.push(entry) })
    await second.send('POST', '/notes', jsonOf({}))
    await second.send('POST', '/notes', jsonOf({}))
    expect(lines).toEqual([])
    expect(await list(first, 'ada', '/log?n[gte]=2&sort=-n')).toEqual([
      { id: 30, owner: 'ada', n: 3 },
      { id: 20, owner: 'ada', n: 2 },
    ])
    expect(await list(first, 'bob', '/log')).toHaveLength(1)
    expect((await first.send('GET', '/log/20', { fields: as('bob') })).status).toBe(404)
    expect((await first.send('GET', '/log/20', { fields: as('ada') })).status).toBe(200)
  })

  it('indexes what the outbox of an item writes for its file, in a process that has not asked the scope yet', async () => {
    const store = createStore()
    const tasks = collection({
      files: { photo: { replaceable: true } },
      outbox: ({ kind }) =>
        kind === 'patched' ? [{ path: '/log/10', content: json({ id: 10, owner: 'ada', n: 1 }) }] : [],
    })
    const resources = { '/tasks': tasks, '/log': collection({ scope, query: { n: 'number' } }) }
    const first = await start(store, resources)
    await first.send('POST', '/log', jsonOf({ n: 0 }, as('bob')))
    await first.send('POST', '/tasks', jsonOf({}))
    const second = await start(store, resources)
    expect((await second.send('PUT', '/tasks/1/photo', png('ada', 'PNG'))).status).toBe(201)
    const [{ indexed: bobs }, { indexed: adas }] = (await Promise.all([
      store.read('/log/1'),
      store.read('/log/10'),
    ])) as [StoredResource, StoredResource]
    expect(adas?.index.version).toBe(bobs?.index.version)
    expect(await list(first, 'ada', '/log')).toEqual([{ id: 10, owner: 'ada', n: 1 }])
  })

  it('keeps accepted work in it, done by a process that has not asked the scope yet', async () => {
    const store = createStore()
    const ids: string[] = []
    const jobs = (isWorking: boolean) =>
      collection({
        scope,
        query: { size: 'number' },
        create: 'accepted',
        process: async () => ({ size: isWorking ? 7 : 0 }),
      } as never)
    const operations = { queue: { enqueue: (id: string) => void ids.push(id) }, pollInterval: 60_000 }
    const first = await start(store, { '/jobs': jobs(false) }, { operations })
    expect((await first.send('POST', '/jobs', jsonOf({ n: 1 }, as('ada')))).status).toBe(202)
    const second = await start(store, { '/jobs': jobs(true) }, { operations })
    await second.service.runOperation(ids[0]!)
    expect(await list(first, 'ada', '/jobs?size=7')).toEqual([{ id: 1, n: 1, owner: 'ada', state: 'ready', size: 7 }])
    expect(await list(first, 'bob', '/jobs')).toEqual([])
    expect((await first.send('GET', '/jobs/1', { fields: as('bob') })).status).toBe(404)
  })

  it('is kept by accepted work that gives another value for its property', async () => {
    const jobs = collection({ scope, create: 'accepted', process: async () => ({ owner: 'bob', id: 9 }) } as never)
    const target = await start(createStore(), { '/jobs': jobs })
    await target.send('POST', '/jobs', jsonOf({ n: 1 }, as('ada')))
    const ended = await waitFor(
      () => target.send('GET', '/jobs/1', { fields: as('ada') }),
      ({ text }) => !text.includes('pending'),
    )
    expect(ended.json()).toMatchObject({ owner: 'ada' })
  })

  it.each(['PUT', 'PATCH', 'DELETE'] as const)('holds where an item changes hands before %s writes', async (method) => {
    let give: (() => unknown) | undefined
    const store = beforeWrites(createStore(), () => {
      const now = give
      give = undefined
      return now?.()
    })
    const target = await start(store, { '/notes': collection({ scope }) })
    // Another process: in this one the change would wait for its turn.
    const other = await start(store, { '/notes': collection({ scope }) })
    await target.send('POST', '/notes', jsonOf({ text: 'a' }, as('ada')))
    give = () => other.send('PUT', '/notes/1', jsonOf({ text: 'b', owner: 'bob' }, as('boss')))
    const request = method === 'PATCH' ? patchOf('ada', { text: 'c' }) : jsonOf({ text: 'c' }, as('ada'))
    const { status } = await target.send(method, '/notes/1', method === 'DELETE' ? { fields: as('ada') } : request)
    const after = await target.send('GET', '/notes/1', { fields: as('boss') })
    expect([status, after.json()]).toEqual([404, { id: 1, text: 'b', owner: 'bob' }])
  })

  it('is asked again for a repetition: the item may be of somebody else by now', async () => {
    const target = await start(createStore(), { '/notes': collection({ scope, idempotency: 'optional' }) })
    await target.send('POST', '/notes', jsonOf({ n: 1 }, as('ada')))
    const repeat = () => {
      const { fields, body } = patchOf('ada', { n: 2 })
      return target.send('PATCH', '/notes/1', { fields: { ...fields, 'Idempotency-Key': '"a-key-of-sixteen"' }, body })
    }
    expect([(await repeat()).status, (await repeat()).field('idempotency-replayed')]).toEqual([200, '?1'])
    expect((await target.send('PATCH', '/notes/1', patchOf('boss', { owner: 'bob' }))).status).toBe(200)
    const [moved, none] = [await repeat(), await target.send('PATCH', '/notes/9', patchOf('ada', { n: 2 }))]
    expect(shown(moved, '/notes/1')).toEqual(shown(none, '/notes/9'))
    expect(moved.status).toBe(404)
  })

  it('is held while it is written: what another process gives to somebody else meanwhile is not replaced', async () => {
    const inner = createStore()
    const resources = { '/notes': collection({ scope, query: {} }) }
    const other = await start(inner, resources)
    await other.send('POST', '/notes', jsonOf({ n: 1 }, as('ada')))
    let owner = 'bob'
    const give = async () => {
      if (owner !== '')
        expect((await other.send('PUT', '/notes/1', jsonOf({ n: 1, owner }, as('boss')))).status).toBe(204)
      owner = ''
    }
    const target = await start(beforeWrites(inner, give), resources)
    for (const more of [{}, { 'If-Match': '*' }]) {
      owner = 'bob'
      const answer = await target.send('PUT', '/notes/1', jsonOf({ n: 2 }, { ...as('ada'), ...more }))
      expect(answer.status).toBe(404)
      expect((await other.send('GET', '/notes/1', { fields: as('bob') })).json()).toMatchObject({ n: 1 })
      await other.send('PUT', '/notes/1', jsonOf({ n: 1, owner: 'ada' }, as('boss')))
    }
  })

  it('gives 422 for a value that cannot be indexed, which beforeWrite or the facts of a file make', async () => {
    const store = createStore()
    const notes = collection({
      scope,
      query: { by: 'string', name: { type: 'string', pointer: '/photo/name' } },
      files: { photo: { replaceable: true, describe: ({ size }) => ({ name: 'n'.repeat(size) }) } },
      beforeWrite: (value) => ({ ...(value as object), by: 'x'.repeat((value as { size: number }).size) }) as never,
    })
    const target = await start(store, { '/notes': notes })
    const refused = async (method: string, path: string, options: object, pointer: string) => {
      const { status, text } = await target.send(method, path, options)
      expect([status, text]).toEqual([422, expect.stringContaining(`"pointer":"${pointer}"`)])
    }
    await refused('POST', '/notes', jsonOf({ size: 257 }, as('ada')), '/by')
    const sent = await target.send('POST', '/notes', jsonOf({ size: 2, by: 'y'.repeat(300) }, as('ada')))
    expect([sent.status, sent.json()]).toEqual([201, { id: 1, size: 2, by: 'xx', owner: 'ada' }])
    await refused('PUT', '/notes/1', jsonOf({ size: 257 }, as('ada')), '/by')
    await refused('PATCH', '/notes/1', patchOf('ada', { size: 257 }), '/by')
    await refused('PUT', '/notes/1/photo', png('ada', 'x'.repeat(257)), '/photo/name')
    expect((await target.send('GET', '/notes/1/photo', { fields: as('ada') })).status).toBe(404)
    expect(await list(target, 'ada', '/notes?by=xx')).toEqual([{ id: 1, size: 2, by: 'xx', owner: 'ada' }])
  })

  it('takes its own values back from a form, which sends numbers and booleans as text', async () => {
    const ofTenant = ({ headers }: { headers: Readonly<Record<string, unknown>> }) => ({
      tenant: Number(headers['x-user']),
      isOpen: true,
    })
    const target = await start(createStore(), { '/notes': collection({ scope: ofTenant as never }) })
    const send = (body: string) =>
      target.send('POST', '/notes', {
        fields: { 'Content-Type': 'application/x-www-form-urlencoded', ...as('7') },
        body,
      })
    const created = await send('n=7&tenant=7&isOpen=true')
    expect([created.status, created.json()]).toEqual([201, { id: 1, n: '7', tenant: 7, isOpen: true }])
    const others = ['tenant=8', 'tenant=7&isOpen=false', 'tenant=7&tenant=7', 'tenant=x', 'isOpen=1']
    for (const other of others) expect([other, (await send(other)).status]).toEqual([other, 403])
  })

  it('keeps its properties in a form as text, of which the schema sees nothing', async () => {
    const named = { properties: ['owner'], values: scope as never }
    for (const schema of [v.strictObject({ n: v.number() }), removingAllBut('n')]) {
      const target = await start(createStore(), { '/notes': collection({ scope: named, schema: schema as never }) })
      for (const [id, user] of [
        [1, '7'],
        [2, 'boss'],
      ] as const) {
        const fields = { 'Content-Type': 'application/x-www-form-urlencoded', ...as(user) }
        const created = await target.send('POST', '/notes', { fields, body: 'n=7&owner=7' })
        expect([created.status, created.json()]).toEqual([201, { id, n: 7, owner: '7' }])
      }
      expect(await list(target, '7', '/notes')).toHaveLength(2)
    }
  })

  it('has no default of a schema for its properties', async () => {
    const schema = z.object({ n: z.number(), owner: z.string().default('eve') })
    for (const more of [{}, { beforeWrite: (value: { n: number; owner: string }) => value }]) {
      const named = { properties: ['owner'], values: scope as never }
      const notes = collection({ scope: named, schema, clientIds: true, ...more })
      const target = await start(createStore(), { '/notes': notes })
      await target.send('POST', '/notes', jsonOf({ n: 1 }, as('ada')))
      expect((await target.send('POST', '/notes', jsonOf({ n: 2 }, as('boss')))).json()).toEqual({ id: 2, n: 2 })
      expect((await target.send('PUT', '/notes/3', jsonOf({ n: 3 }, as('boss')))).status).toBe(201)
      expect((await target.send('PATCH', '/notes/3', patchOf('boss', { n: 4 }))).json()).toEqual({ id: 3, n: 4 })
      expect((await target.send('PUT', '/notes/1', jsonOf({ n: 5, owner: 'ada' }, as('boss')))).status).toBe(204)
      expect(await list(target, 'eve', '/notes')).toEqual([])
      expect(await list(target, 'ada', '/notes')).toEqual([{ id: 1, n: 5, owner: 'ada' }])
    }
  })

  it('takes no file whose name is that of one of its properties, and is an error where the definition has such a file', async () => {
    const errors: string[] = []
    const named = { properties: ['owner'], values: scope as never }
    const target = await start(
      createStore(),
      {
        '/any': collection({ scope: named, create: 'accepted', process: async () => ({}) } as never),
        '/own': collection({ scope, files: { owner: {} } }),
      },
      { onError: (error) => void errors.push((error as Error).message) },
    )
    const file = { name: 'owner', filename: 'a.png', type: 'image/png', content: 'x' }
    for (const user of ['ada', 'boss']) {
      const refused = await target.send('POST', '/any', multipartOf([file], as(user)))
      expect([refused.status, refused.json().errors]).toEqual([
        422,
        [{ pointer: '/owner', detail: 'No file is expected here.' }],
      ])
      const taken = await target.send('POST', '/any', multipartOf([{ ...file, name: 'photo' }], as(user)))
      expect(taken.status).toBe(202)
    }
    expect((await target.send('GET', '/own', { fields: as('ada') })).status).toBe(500)
    expect(errors).toEqual(['scope of /own gives owner, which says what is known of a file.'])
  })

  it('hides a file that PUT would replace, in the same bytes as one that never existed', async () => {
    const notes = collection({
      scope,
      query: { size: { type: 'number', pointer: '/photo/size' } },
      files: { photo: { replaceable: true } },
    })
    const target = await start(createStore(), { '/notes': notes })
    const form = multipartOf(
      [
        { name: 'n', content: 'x' },
        { name: 'photo', filename: 'a.png', type: 'image/png', content: 'old' },
      ],
      as('ada'),
    )
    expect((await target.send('POST', '/notes', form)).status).toBe(201)
    for (const more of [{}, { 'If-None-Match': '*' }, { 'If-Match': '*' }, { 'If-Match': '"x"' }]) {
      const [other, none] = [
        await target.send('PUT', '/notes/1/photo', png('bob', 'new!', more)),
        await target.send('PUT', '/notes/9/photo', png('bob', 'new!', more)),
      ]
      expect(other.status).toBe(404)
      expect(shown(other, '/notes/1/photo')).toEqual(shown(none, '/notes/9/photo'))
    }
    expect((await target.send('PUT', '/notes/1/photo', png('ada', 'new!'))).status).toBe(204)
    expect(await list(target, 'ada', '/notes?size=4')).toMatchObject([
      { id: 1, n: 'x', owner: 'ada', photo: { size: 4 } },
    ])
    expect(await list(target, 'ada', '/notes?size=3')).toEqual([])
    expect(await list(target, 'bob', '/notes')).toEqual([])
    expect((await target.send('PUT', '/notes/1', jsonOf({ n: 'y' }, as('ada')))).status).toBe(204)
    expect(await list(target, 'ada', '/notes?size=4')).toMatchObject([{ n: 'y', owner: 'ada' }])
  })
})

describe('the properties that a scope has had', () => {
  const byTeam: NonNullable<CollectionOptions['scope']> = ({ headers }) => {
    const owner = headers['x-user'] as string
    return owner === 'bob' ? { owner, team: 'red' } : { owner }
  }

  it('grow while an item of another caller is on its way, which is indexed by all of them', async () => {
    const inner = memoryStore()
    let meanwhile: (() => Promise<unknown>) | undefined
    const store: ResourceStore = {
      ...inner,
      async create(path, draft, options) {
        const first = meanwhile
        meanwhile = undefined
        await first?.()
        return inner.create(path, draft, options)
      },
    }
    const target = await start(store, { '/notes': collection({ scope: byTeam }) })
    const post = (user: string) => target.send('POST', '/notes', jsonOf({ n: 1 }, as(user)))
    await post('ada')
    meanwhile = async () => {
      expect((await post('bob')).status).toBe(201)
      await waitFor(
        () => target.send('GET', '/notes', { fields: as('bob') }),
        ({ status }) => status === 200,
      )
    }
    expect((await post('ada')).status).toBe(201)
    expect(await list(target, 'ada', '/notes')).toHaveLength(2)
    const [{ indexed: bobs }, { indexed: adas }] = (await Promise.all([
      store.read('/notes/2'),
      store.read('/notes/3'),
    ])) as [StoredResource, StoredResource]
    expect(adas?.index.version).toBe(bobs?.index.version)
  })

  it('are all kept when another process learns one more', async () => {
    const store = memoryStore()
    const statusOf = async (user: string) => {
      const target = await start(store, { '/notes': collection({ scope: byTeam }) })
      return (await target.send('POST', '/notes', jsonOf({ n: 1 }, as(user)))).status
    }
    expect([await statusOf('ada'), await statusOf('bob')]).toEqual([201, 201])
    expect(await store.read('scopes/%2Fnotes')).toMatchObject({ body: '{"properties":["owner","team"]}' })
  })

  it('are read anew after the store has failed', async () => {
    const inner = memoryStore()
    let isAway = true
    const store: ResourceStore = {
      ...inner,
      read: (path, options) =>
        isAway && path.startsWith('scopes/')
          ? Promise.reject(new HttpError(503, 'ERR_UNAVAILABLE'))
          : inner.read(path, options),
    }
    const target = await start(store, { '/tasks': collection({ scope }) })
    const statusOfList = async () => (await target.send('GET', '/tasks', { fields: as('ann') })).status
    expect(await statusOfList()).toBe(503)
    isAway = false
    expect(await statusOfList()).toBe(200)
  })

  it('are read anew where a read of them does not end: its connection may be lost', async () => {
    const inner = memoryStore()
    let isStuck = true
    const store: ResourceStore = {
      ...inner,
      read: (path, options) =>
        isStuck && path.startsWith('scopes/') ? new Promise<never>(() => {}) : inner.read(path, options),
    }
    const target = await start(store, { '/tasks': collection({ scope }) })
    const url = `http://127.0.0.1:${target.port}/tasks`
    const leave = () => fetch(url, { headers: as('ann'), signal: AbortSignal.timeout(100) })
    await expect(leave()).rejects.toThrow()
    isStuck = false
    const before = performance.now()
    const now = vi.spyOn(performance, 'now').mockImplementation(() => before + 6000)
    try {
      expect((await target.send('GET', '/tasks', { fields: as('ann') })).status).toBe(200)
    } finally {
      now.mockRestore()
    }
  })
})
