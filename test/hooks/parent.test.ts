import { afterEach, describe, expect, it } from 'vitest'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document, type ResourceDefinition, singleton } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { beforeWrites } from '../support/before-writes.ts'
import { jsonOf, MERGE_PATCH, multipartOf, startService, type Target, waitFor } from '../writes/support.ts'
import { STORES } from './stores.ts'

let target: Target | undefined
afterEach(() => target?.close())

const auth: NonNullable<ServiceOptions['auth']> = {
  schemes: [bearer((name) => ({ id: name }))],
  requireAuth: () => false,
}
const as = (user: string) => ({ Authorization: `Bearer ${user}` })

const resources = {
  '/tasks': collection({ files: { photo: {} } }),
  '/tasks/{task}/comments': collection({ parent: true, files: { photo: {} } }),
  '/tasks/{task}/tags': collection({ parent: true, ids: 'uuid' }),
  '/tasks/{task}/comments/{comment}/votes': collection({ parent: true, ids: 'uuid' }),
}

const photo = multipartOf([{ name: 'photo', filename: 'p', content: 'PNG' }])

/** A request of every method to what is below a path. */
async function askBelow(path: string, fields: Readonly<Record<string, string>> = {}): Promise<readonly Answer[]> {
  const send = (method: string, below: string, options: Parameters<Target['send']>[2] = {}) =>
    target!.send(method, path + below, { ...options, fields: { ...options.fields, ...fields } })
  return [
    await send('GET', '/comments'),
    await send('POST', '/comments', jsonOf({ n: 1 })),
    await send('POST', '/comments', photo),
    await send('PUT', '/comments/1', jsonOf({ n: 1 })),
    await send('GET', '/comments/1'),
    await send('GET', '/comments/1', { fields: { 'If-None-Match': '*' } }),
    await send('PATCH', '/comments/1', { fields: MERGE_PATCH, body: '{"n":2}' }),
    await send('DELETE', '/comments/1'),
    await send('GET', '/comments/1/photo'),
  ]
}

const STATUSES_404 = Array.from({ length: 9 }, () => 404)

const stores = Object.entries(STORES).filter(([, create]) => create().supports?.parents === true)

describe.each(stores)('a collection with parent: true on %s', (_, createStore) => {
  it('is 404 with all that is in it while the parent is not there', async () => {
    target = await startService({ resources }, createStore())
    expect((await askBelow('/tasks/1')).map(({ status }) => status)).toEqual(STATUSES_404)
    expect((await target.store.list('/tasks/1/comments', { limit: 9, hidden: true })).items).toEqual([])
    await target.send('PUT', '/tasks/1', jsonOf({}))
    expect((await askBelow('/tasks/1')).map(({ status }) => status)).toEqual([
      200, 201, 201, 204, 200, 304, 200, 204, 410,
    ])
    const vote = await target.send('POST', '/tasks/1/comments/2/votes', jsonOf({}))
    expect(vote.status).toBe(201)
    expect((await target.send('POST', '/tasks/1/comments/9/votes', jsonOf({}))).status).toBe(404)
  })

  it.each(['comments', 'tags'])('takes no new item where the parent is removed before the write: %s', async (name) => {
    const store = createStore()
    const racing = beforeWrites(store, () => store.remove('/tasks/1', { expect: 'any', mode: 'erase' }))
    await store.write('/tasks/1', { contentType: 'application/json', body: '{"id":1}' }, { expect: 'any' })
    target = await startService({ resources }, racing)
    expect((await target.send('POST', `/tasks/1/${name}`, jsonOf({}))).status).toBe(404)
    expect((await store.list(`/tasks/1/${name}`, { limit: 9 })).items).toEqual([])
  })

  it('is removed with the parent, and one that is created again does not bring it back', async () => {
    target = await startService({ resources }, createStore())
    await target.send('PUT', '/tasks/1', jsonOf({}))
    await target.send('PUT', '/tasks/1/comments/5', jsonOf({ n: 1 }))
    const vote = (await target.send('POST', '/tasks/1/comments/5/votes', jsonOf({}))).field('location')!
    await target.send('PUT', '/tasks/2', jsonOf({}))
    await target.send('PUT', '/tasks/2/comments/5', jsonOf({ n: 2 }))
    expect((await target.send('DELETE', '/tasks/1')).status).toBe(204)
    expect((await target.send('GET', '/tasks/1/comments/5')).status).toBe(404)
    expect((await target.send('GET', vote)).status).toBe(404)
    await target.send('PUT', '/tasks/1', jsonOf({}))
    expect((await target.send('GET', '/tasks/1/comments')).json()).toEqual([])
    expect((await target.send('GET', '/tasks/1/comments/5')).status).toBe(404)
    expect((await target.send('GET', vote)).status).toBe(404)
    expect((await target.send('GET', '/tasks/2/comments/5')).status).toBe(200)
  })

  it('is removed with a parent whose removal is observed', async () => {
    const observed = { ...resources, '/tasks': collection({ outbox: () => [] }) }
    target = await startService({ resources: observed }, createStore())
    await target.send('POST', '/tasks', jsonOf({}))
    expect((await target.send('POST', '/tasks/1/comments', jsonOf({}))).status).toBe(201)
    expect((await target.send('DELETE', '/tasks/1')).status).toBe(204)
    expect((await target.store.list('/tasks/1/comments', { limit: 9, hidden: true })).items).toEqual([])
  })

  it('is hidden with a parent that is softly deleted, and there again with it', async () => {
    const soft = { ...resources, '/tasks': collection({ deletion: 'soft' }) }
    target = await startService({ resources: soft }, createStore())
    await target.send('PUT', '/tasks/1', jsonOf({}))
    await target.send('PUT', '/tasks/1/comments/5', jsonOf({ n: 1 }))
    await target.send('DELETE', '/tasks/1')
    expect((await askBelow('/tasks/1')).map(({ status }) => status)).toEqual(STATUSES_404)
    await target.send('PUT', '/tasks/1', jsonOf({}))
    expect((await target.send('GET', '/tasks/1/comments')).json()).toEqual([{ id: 5, n: 1 }])
  })

  it('leaves nothing behind when children are written while the parent is removed', async () => {
    const store = createStore()
    const services = await Promise.all([1, 2].map(() => startService({ resources }, store)))
    try {
      for (let round = 0; round < 3; round++) {
        await services[0]!.send('PUT', '/tasks/1', jsonOf({}))
        await services[0]!.send('PUT', '/tasks/1/comments/1', jsonOf({}))
        const answers = await Promise.all([
          ...Array.from({ length: 12 }, (_, n) => {
            const { send } = services[n % 2]!
            if (n % 4 === 0) return send('POST', '/tasks/1/comments', jsonOf({ n }))
            if (n % 4 === 1) return send('PUT', `/tasks/1/comments/${n + 50}`, jsonOf({ n }))
            if (n % 4 === 2) return send('POST', '/tasks/1/comments', photo)
            return send('PATCH', '/tasks/1/comments/1', { fields: MERGE_PATCH, body: `{"n":${n}}` })
          }),
          services[1]!.send('DELETE', '/tasks/1'),
        ])
        for (const { status } of answers) expect([200, 201, 204, 404]).toContain(status)
        expect(answers.at(-1)!.status).toBe(204)
        await services[0]!.send('PUT', '/tasks/1', jsonOf({}))
        expect((await services[0]!.send('GET', '/tasks/1/comments')).json()).toEqual([])
        await services[0]!.send('DELETE', '/tasks/1')
      }
    } finally {
      for (const service of services) await service.close()
    }
  })

  it.each([
    ['', {}],
    [', also of items with an outbox', { outbox: () => [] }],
  ])('is 404 when the parent goes after it was looked at%s', async (_, hooks) => {
    const inner = createStore()
    let writes = 0
    const store: ResourceStore = {
      ...inner,
      async write(path, content, options) {
        writes++
        if (path.includes('/comments/'))
          await inner.remove('/tasks/1', { expect: 'any', mode: 'tombstone', below: true })
        return inner.write(path, content, options)
      },
      async create(path, content, options) {
        writes++
        await inner.remove('/tasks/1', { expect: 'any', mode: 'tombstone', below: true })
        return inner.create(path, content, options)
      },
    }
    const comments = collection({ parent: true, files: { photo: {} }, ...hooks })
    target = await startService({ resources: { ...resources, '/tasks/{task}/comments': comments } }, store)
    const parent = async () =>
      inner.write('/tasks/1', { contentType: 'application/json', body: '{}' }, { expect: 'any' })
    for (const [method, path, options] of [
      ['PUT', '/tasks/1/comments/5', jsonOf({})],
      ['POST', '/tasks/1/comments', jsonOf({})],
      ['POST', '/tasks/1/comments', photo],
    ] as const) {
      await parent()
      writes = 0
      // The first conflict is enough: the write is not tried again until the parent is looked at.
      expect([(await target.send(method, path, options)).status, writes]).toEqual([404, 1])
    }
    await parent()
    expect((await target.send('GET', '/tasks/1/comments')).json()).toEqual([])
  })

  it('is 404 when the parent is softly deleted before the write', async () => {
    const inner = createStore()
    let isDue = false
    const store: ResourceStore = {
      ...inner,
      async write(path, content, options) {
        if (isDue) await inner.remove('/tasks/1', { expect: 'any', mode: 'hide' })
        isDue = false
        return inner.write(path, content, options)
      },
    }
    target = await startService({ resources: { ...resources, '/tasks': collection({ deletion: 'soft' }) } }, store)
    for (const [method, options] of [
      ['PUT', jsonOf({ n: 2 })],
      ['PATCH', { fields: MERGE_PATCH, body: '{"n":2}' }],
    ] as const) {
      await target.send('PUT', '/tasks/1', jsonOf({}))
      await target.send('PUT', '/tasks/1/comments/5', jsonOf({ n: 1 }))
      isDue = true
      expect([method, (await target.send(method, '/tasks/1/comments/5', options)).status]).toEqual([method, 404])
      await target.send('PUT', '/tasks/1', jsonOf({}))
      expect((await target.send('GET', '/tasks/1/comments/5')).json()).toEqual({ id: 5, n: 1 })
    }
  })

  it('takes a patch whose parent was gone for no longer than one attempt', async () => {
    const inner = createStore()
    let isDue = false
    const store: ResourceStore = {
      ...inner,
      async write(path, content, options) {
        if (!isDue) return inner.write(path, content, options)
        isDue = false
        await inner.remove('/tasks/1', { expect: 'any', mode: 'hide' })
        const missed = await inner.write(path, content, options)
        await inner.write('/tasks/1', { contentType: 'application/json', body: '{"id":1}' }, { expect: 'any' })
        return missed
      },
    }
    target = await startService({ resources }, store)
    await target.send('PUT', '/tasks/1', jsonOf({}))
    await target.send('PUT', '/tasks/1/comments/5', jsonOf({ n: 1 }))
    const etag = (await target.send('GET', '/tasks/1/comments/5')).field('etag')!
    isDue = true
    const options = { fields: { ...MERGE_PATCH, 'If-Match': etag }, body: '{"n":2}' }
    expect((await target.send('PATCH', '/tasks/1/comments/5', options)).json()).toEqual({ id: 5, n: 2 })
  })

  it('is removed with a parent whose removal is queued', async () => {
    const queued = { ...resources, '/tasks': collection({ deletion: 'queued' }) }
    target = await startService({ resources: queued }, createStore())
    await target.send('PUT', '/tasks/1', jsonOf({}))
    await target.send('PUT', '/tasks/1/comments/5', jsonOf({ n: 1 }))
    expect((await target.send('DELETE', '/tasks/1')).status).toBe(202)
    await waitFor(
      () => target!.send('GET', '/tasks/1'),
      ({ status }) => status === 410,
    )
    await target.send('PUT', '/tasks/1', jsonOf({}))
    expect((await target.send('GET', '/tasks/1/comments')).json()).toEqual([])
  })
})

it('a queued removal says itself whether what is below goes with it, so that no polluted prototype does', async () => {
  for (const hooks of [{}, { afterCommit: () => {} }]) {
    const inner = memoryStore()
    const told: boolean[] = []
    const store: ResourceStore = {
      ...inner,
      remove(path, options) {
        if (path === '/tasks/1') told.push(Object.hasOwn(options, 'below'), Object.hasOwn(options, 'retention'))
        return inner.remove(path, options)
      },
    }
    target = await startService({ resources: { '/tasks': collection({ deletion: 'queued', ...hooks }) } }, store)
    await target.send('PUT', '/tasks/1', jsonOf({}))
    expect((await target.send('DELETE', '/tasks/1')).status).toBe(202)
    await waitFor(
      () => target!.send('GET', '/tasks/1'),
      ({ status }) => status === 410,
    )
    expect(told).toEqual([true, true])
    await target.close()
  }
})

describe('a collection with parent: true', () => {
  it('is for those who may read the parent, and does not exist for others, in the same bytes', async () => {
    const guarded = {
      ...resources,
      '/tasks': collection({
        authorize: (principal, _, current) =>
          current === undefined || (current.value as { owner?: string }).owner === principal?.id || false,
      }),
    }
    target = await startService({ resources: guarded, auth })
    await target.send('PUT', '/tasks/1', jsonOf({ owner: 'ada' }, as('ada')))
    await target.send('PUT', '/tasks/1/comments/5', jsonOf({ n: 1 }, as('ada')))
    expect((await askBelow('/tasks/1', as('eve'))).map(({ status }) => status)).toEqual(STATUSES_404)
    expect((await target.send('GET', '/tasks/1/comments', { fields: as('ada') })).status).toBe(200)
    const shown = ({ text, fields }: Answer) => [text, fields.filter(([name]) => name !== 'date')]
    const secret = await target.send('GET', '/tasks/1/comments/5', { fields: as('eve') })
    const nowhere = await target.send('GET', '/tasks/9/comments/5', { fields: as('eve') })
    expect(shown(secret)).toEqual(shown(nowhere))
  })

  it('is judged by all that it is below, and by what the parent requires', async () => {
    const guarded = {
      '/tasks': collection({ requireAuth: 'all' }),
      '/tasks/{task}/comments': collection({ parent: true, requireAuth: 'none' }),
      '/tasks/{task}/comments/{comment}/votes': collection({ parent: true, requireAuth: 'none' }),
    } as const
    target = await startService({ resources: guarded, auth })
    await target.send('PUT', '/tasks/1', jsonOf({}, as('ada')))
    await target.send('PUT', '/tasks/1/comments/5', jsonOf({}, as('ada')))
    for (const path of ['/tasks/1/comments', '/tasks/1/comments/5/votes']) {
      expect((await target.send('GET', path)).status).toBe(404)
      expect((await target.send('GET', path, { fields: as('ada') })).status).toBe(200)
    }
  })

  it('may be below documents and singletons', async () => {
    const others = {
      '/docs/{name}': document({ types: ['application/json'] }),
      '/docs/{doc}/notes': collection({ parent: true }),
      '/config': singleton(),
      '/config/entries': collection({ parent: true }),
    }
    target = await startService({ resources: others })
    for (const [parent, path] of [
      ['/docs/x', '/docs/x/notes'],
      ['/config', '/config/entries'],
    ] as const) {
      expect((await target.send('POST', path, jsonOf({}))).status).toBe(404)
      await target.send('PUT', parent, jsonOf({}))
      expect((await target.send('POST', path, jsonOf({}))).status).toBe(201)
    }
    await target.send('DELETE', '/docs/x')
    await target.send('PUT', '/docs/x', jsonOf({}))
    expect((await target.send('GET', '/docs/x/notes')).json()).toEqual([])
  })

  it('is described: 404 (OpenAPI)', async () => {
    target = await startService({ resources, openapi: '/openapi.json' })
    const { paths } = (await target.send('GET', '/openapi.json')).json()
    const comments = paths['/tasks/{task}/comments']
    for (const method of ['get', 'post']) expect(comments[method].responses['404']).toBeDefined()
    expect(paths['/tasks'].get.responses['404']).toBeUndefined()
  })

  it.each<[string, Readonly<Record<string, ResourceDefinition>>, string]>([
    ['below no path', { '/tasks': collection({ parent: true }) }, '/tasks has parent: true, and it is below no path.'],
    [
      'below no definition',
      { '/lists': collection(), '/tasks/{task}/comments': collection({ parent: true }) },
      '/tasks/{task}/comments has parent: true, and no definition has a resource at /tasks/{task}.',
    ],
    [
      'below a collection itself',
      { '/tasks': collection(), '/tasks/comments': collection({ parent: true }) },
      '/tasks/comments has parent: true, and no definition has a resource at /tasks.',
    ],
  ])('is refused %s', (_, resources, message) => {
    expect(() => createResourceService(memoryStore(), { resources })).toThrow(message)
  })

  it('is 404 below an alias of a singleton, whose removal would not remove it', async () => {
    const resources = { '/users': singleton({ aliases: ['/me'] }), '/{who}/comments': collection({ parent: true }) }
    target = await startService({ resources })
    await target.send('PUT', '/users', jsonOf({}))
    expect((await target.send('POST', '/users/comments', jsonOf({}))).status).toBe(201)
    expect((await askBelow('/me')).map(({ status }) => status)).toEqual(STATUSES_404)
  })

  it('gives up where the store misses a parent that it shows', { timeout: 60_000 }, async () => {
    const store = memoryStore()
    const conflict = { outcome: 'conflict', current: undefined, missing: '/tasks/1' } as const
    const stubborn: ResourceStore = {
      ...store,
      create: (path, content, options) =>
        options?.requires === undefined ? store.create(path, content, options) : conflict,
    }
    target = await startService({ resources }, stubborn)
    await target.send('PUT', '/tasks/1', jsonOf({}))
    expect((await target.send('POST', '/tasks/1/comments', jsonOf({}))).status).toBe(503)
  })

  it('is refused with a store that does not support it', () => {
    const store: ResourceStore = { ...memoryStore(), supports: { relatedExpect: true } }
    expect(() => createResourceService(store, { resources })).toThrow(
      '/tasks/{task}/comments has parent: true, which needs a store that supports parents (writes that require another path)',
    )
  })
})
