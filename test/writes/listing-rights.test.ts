import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Authorize } from '../../src/actions/hook-types.ts'
import { sealCursor, sealedSize } from '../../src/actions/sealed-cursor.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { HttpError } from '../../src/core/errors.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { startService, type Target } from './support.ts'

let target: Target
afterEach(() => target.close())

const schemes = [basic({ realm: 'r', verify: (user, password) => user === password })]
const as = (user: string) => ({ Authorization: `Basic ${Buffer.from(`${user}:${user}`).toString('base64')}` })
const auth: NonNullable<ServiceOptions['auth']> = { schemes, requireAuth: 'writes' }

/** Shows a resource to its owner; collections, which have no state, to everybody. */
const ownersOnly: Authorize = (principal, _, current) =>
  current === undefined || (current.value as { owner?: string } | undefined)?.owner === principal?.id || 'not-found'

const list = (path: string, user?: string, fields = {}): Promise<Answer> =>
  target.send('GET', path, { fields: { ...(user === undefined ? {} : as(user)), ...fields } })
const ids = async (path: string, user?: string): Promise<unknown[]> =>
  (await list(path, user)).json().map(({ id }: { id: unknown }) => id)

async function seed(store: ResourceStore, path: string, value: object): Promise<void> {
  const body = JSON.stringify({ id: Number(path.split('/').at(-1)) || path.split('/').at(-1), ...value })
  await store.write(path, { contentType: 'application/json', body }, { expect: 'any' })
}

/** Follows Link to the end. */
async function walk(
  path: string,
  user?: string,
): Promise<{ readonly pages: number[]; readonly ids: unknown[]; readonly cursors: string[] }> {
  const found = { pages: [] as number[], ids: [] as unknown[], cursors: [] as string[] }
  for (let at: string | undefined = path; at !== undefined; ) {
    const answer = await list(at, user)
    expect(answer.status).toBe(200)
    const page = answer.json() as { readonly id: unknown }[]
    found.pages.push(page.length)
    found.ids.push(...page.map(({ id }) => id))
    at = /^<([^>]*)>; rel="next"$/.exec(answer.field('link') ?? '')?.[1]
    if (at !== undefined)
      found.cursors.push(Buffer.from(new URL(at, 'http://x').searchParams.get('after')!, 'base64url').toString())
  }
  return found
}

describe('a listing and the definitions of its entries (issue 16, 9)', () => {
  it.each<[string, ServiceOptions['resources'], string[]]>([
    ['authorize: false', { '/acme/{doc}': document({ authorize: () => false }) }, ['anonymous', 'ann', 'bob']],
    [
      'authorize that hides',
      { '/acme/{doc}': document({ authorize: () => 'not-found' }) },
      ['anonymous', 'ann', 'bob'],
    ],
    [
      'authorize that throws',
      {
        '/acme/{doc}': document({
          authorize: () => {
            throw new HttpError(403, 'ERR_FORBIDDEN')
          },
        }),
      },
      ['anonymous', 'ann', 'bob'],
    ],
    [
      'authorize for one user',
      { '/acme/{doc}': document({ authorize: (principal) => principal?.id === 'bob' }) },
      ['anonymous', 'ann'],
    ],
    ['require', { '/acme/{doc}': document({ requireAuth: 'all' }) }, ['anonymous']],
    [
      'require by path',
      { '/acme/{doc}': document({ requireAuth: ({ path, params }) => path === '/acme/2' && params['doc'] === '2' }) },
      ['anonymous'],
    ],
    ['no GET', { '/acme/{doc}': document({ methods: ['PUT'] }) }, ['anonymous', 'ann', 'bob']],
  ])('leaves out what a more specific definition refuses: %s', async (_, stricter, refused) => {
    target = await startService({ auth, resources: { '/{tenant}': collection({ ids: 'string' }), ...stricter } })
    // Only one of the two is below the stricter definition: patterns of one shape cannot be both.
    for (const path of ['/acme/2', '/other/2']) await seed(target.store, path, {})
    for (const user of ['anonymous', 'ann', 'bob']) {
      const name = user === 'anonymous' ? undefined : user
      const one = await target.send('GET', '/acme/2', { fields: name === undefined ? {} : as(name) })
      const answer = await list('/acme', name)
      expect([user, one.status === 200]).toEqual([user, !refused.includes(user)])
      expect([user, answer.json().length]).toEqual([user, refused.includes(user) ? 0 : 1])
      expect(await ids('/other', name)).toEqual([2])
      expect(
        (await target.send('HEAD', '/acme', { fields: name === undefined ? {} : as(name) })).field('content-length'),
      ).toBe(String(answer.body.length))
    }
  })

  it.each([
    ['collection', { auth: { ...auth, authorize: ownersOnly }, resources: { '/notes': collection() } }],
    ['collection with its own hook', { auth, resources: { '/notes': collection({ authorize: ownersOnly }) } }],
    ['service without resources', { auth: { ...auth, authorize: ownersOnly } }],
  ] satisfies [string, ServiceOptions][])(
    'asks authorize about each entry of a %s, with its state',
    async (_, options) => {
      target = await startService(options)
      for (const [index, owner] of ['ann', 'bob', 'ann', 'bob', 'cid'].entries())
        await seed(target.store, `/notes/${index + 1}`, { owner })
      expect(await ids('/notes', 'ann')).toEqual([1, 3])
      expect(await ids('/notes', 'bob')).toEqual([2, 4])
      const none = await list('/notes')
      if (options.auth !== undefined && !('resources' in options)) expect(none.status).toBe(404)
      else expect(none.json()).toEqual([])
    },
  )

  it('shows the hook a GET of the entry', async () => {
    const authorize = vi.fn<Authorize>(() => true)
    target = await startService({ auth, resources: { '/a/{b}': collection({ authorize }) } })
    await seed(target.store, '/a/x/7', {})
    await list('/a/x?limit=5', 'ann')
    await target.send('HEAD', '/a/x', { fields: as('ann') })
    const seen = authorize.mock.calls.filter(([, , current]) => current !== undefined)
    expect(seen).toHaveLength(2)
    for (const [principal, request, current] of seen) {
      expect([principal?.id, request.method, request.path, { ...request.params }]).toEqual([
        'ann',
        'GET',
        '/a/x/7',
        { b: 'x', id: '7' },
      ])
      expect(current).toMatchObject({ path: '/a/x/7', value: { id: 7 } })
    }
  })

  it('is 500 where the hook fails, and shows nothing', async () => {
    const onError = vi.fn()
    const authorize: Authorize = (_, __, current) => {
      if (current === undefined) return true
      throw new TypeError('a fault')
    }
    target = await startService({ auth, onError, resources: { '/a': collection({ authorize }) } })
    await seed(target.store, '/a/1', {})
    expect((await list('/a', 'ann')).status).toBe(500)
    expect(onError).toHaveBeenCalledOnce()
  })

  it('lists files only where their item may be read', async () => {
    const jobs = collection({ files: { file: {} }, authorize: ownersOnly, deletion: 'soft' })
    target = await startService({ auth, resources: { '/{x}/{y}': collection({ ids: 'string' }), '/jobs': jobs } })
    // No name of an item of "/jobs", so that the other pattern lists it; below it are files by the definition of "/jobs".
    await seed(target.store, '/jobs/a', { owner: 'ann' })
    await seed(target.store, '/jobs/a/file', {})
    await seed(target.store, '/jobs/b/file', {})
    expect((await list('/jobs/a/file', 'bob')).status).toBe(404)
    expect((await list('/jobs/a/file', 'ann')).status).toBe(200)
    expect(await ids('/jobs/a', 'ann')).toEqual(['file'])
    expect(await ids('/jobs/a', 'bob')).toEqual([])
    expect([(await list('/jobs/b/file', 'ann')).status, await ids('/jobs/b', 'ann')]).toEqual([404, []])
    await target.store.remove('/jobs/a', { expect: 'any', mode: 'hide' })
    expect([(await list('/jobs/a/file', 'ann')).status, await ids('/jobs/a', 'ann')]).toEqual([410, []])
  })

  it('shows softly deleted entries only where their own definition does', async () => {
    const resources = {
      '/{tenant}': collection({ ids: 'string', deletion: 'soft', authorize: () => true }),
      '/acme/open': document({ deletion: 'soft' }),
      '/acme/hidden': document({ deletion: 'soft', authorize: () => true }),
      // Its own deletion was soft before.
      '/acme/hard': document({ authorize: () => true }),
    }
    target = await startService({ auth, resources })
    for (const name of ['7', 'open', 'hidden', 'hard']) {
      await seed(target.store, `/acme/${name}`, {})
      await target.store.remove(`/acme/${name}`, { expect: 'any', mode: 'hide' })
      const status = (await list(`/acme/${name}?deleted=true`, 'ann')).status
      expect([name, status]).toEqual([name, ['open', 'hard'].includes(name) ? 410 : 200])
    }
    expect(await ids('/acme?deleted=true', 'ann')).toEqual([7, 'hidden'])
    expect(await ids('/acme', 'ann')).toEqual([])
  })

  it('leaves out what was stored under an alias before it was one', async () => {
    const resources = {
      '/{tenant}': collection({ ids: 'string', types: ['application/json'] }),
      '/acme/app': singleton({ aliases: ['/acme/other'], authorize: ownersOnly }),
    }
    target = await startService({ auth, resources })
    await seed(target.store, '/acme/app', { owner: 'ann' })
    await seed(target.store, '/acme/other', { owner: 'bob' })
    expect([await ids('/acme', 'ann'), await ids('/acme', 'bob')]).toEqual([['app'], []])
  })

  it('is private for a principal who sees all of its entries, where others may see fewer (RFC 9111 §5.2.2.7)', async () => {
    const cacheControl = 'public, max-age=60'
    const resources = { '/notes': collection({ types: ['application/json'], cacheControl, authorize: ownersOnly }) }
    const store = memoryStore()
    await seed(store, '/notes/1', { owner: 'ann' })
    target = await startService({ auth, resources }, store)
    const answer = await list('/notes', 'ann')
    expect([answer.json().length, answer.field('cache-control')]).toEqual([1, 'private, max-age=60'])
  })
})

describe('a page of entries that are judged (issue 16, 9)', () => {
  const resources = { '/notes': collection({ authorize: ownersOnly }) }

  async function startNotes(owners: readonly string[], options: ServiceOptions = {}): Promise<void> {
    target = await startService({ auth, resources, ...options }, memoryStore())
    for (const [index, owner] of owners.entries()) await seed(target.store, `/notes/${index + 1}`, { owner })
  }
  const owners = (count: number, mine: (index: number) => boolean): string[] =>
    Array.from({ length: count }, (_, index) => (mine(index + 1) ? 'ann' : 'bob'))

  it.each([
    ['every third', 40, (n: number) => n % 3 === 0],
    ['the first', 40, (n: number) => n === 1],
    ['the last', 40, (n: number) => n === 40],
    ['none', 40, () => false],
    ['all', 12, () => true],
    ['a few far apart', 400, (n: number) => n % 97 === 0],
    ['runs', 60, (n: number) => n % 20 < 9],
  ] as const)('is as full as any and says nothing of the others: %s', async (_, count, mine) => {
    await startNotes(owners(count, mine))
    const expected = Array.from({ length: count }, (_, index) => index + 1).filter((n) => mine(n))
    for (const limit of [1, 2, 5, 500]) {
      const walked = await walk(`/notes?limit=${limit}`, 'ann')
      expect(walked.ids).toEqual(expected)
      // As if nothing else were there: full pages, and no empty one at the end.
      const pages = Array.from({ length: Math.max(1, Math.ceil(expected.length / limit)) }, (_, index) =>
        Math.min(limit, expected.length - index * limit),
      )
      expect(walked.pages).toEqual(pages)
      // A cursor names the last entry of its page.
      expect(walked.cursors).toHaveLength(pages.length - 1)
      for (const [index, cursor] of walked.cursors.entries())
        expect(cursor).toContain(String(expected[(index + 1) * limit - 1]))
    }
  })

  it('shows no refused entry, and each allowed one once, however the two alternate', async () => {
    await startNotes([])
    const count = 7
    for (let pattern = 0; pattern < 2 ** count; pattern++) {
      const isOwn = (n: number) => (pattern & (1 << (n - 1))) !== 0
      for (const [index, owner] of owners(count, isOwn).entries()) {
        await seed(target.store, `/notes/${index + 1}`, { owner })
      }
      const expected = Array.from({ length: count }, (_, index) => index + 1).filter(isOwn)
      for (const limit of [2, 3]) {
        const walked = await walk(`/notes?limit=${limit}`, 'ann')
        expect([pattern, limit, walked.ids]).toEqual([pattern, limit, expected])
      }
    }
  })

  it('has the same bytes and tag whether or not others have entries', async () => {
    await startNotes(owners(10, (n) => n <= 5))
    const before = await list('/notes', 'ann')
    await seed(target.store, '/notes/11', { owner: 'bob' })
    await target.store.remove('/notes/7', { expect: 'any', mode: 'erase' })
    const after = await list('/notes', 'ann')
    expect([after.text, after.field('etag')]).toEqual([before.text, before.field('etag')])
    const validator = { 'If-None-Match': before.field('etag')! }
    expect((await list('/notes', 'ann', validator)).status).toBe(304)
    expect((await list('/notes', 'bob', validator)).status).toBe(200)
  })

  it('judges an entry anew where it changes while the page is made', async () => {
    const owner = (n: number): string => (n === 1 ? 'bob' : 'ann')
    await startNotes(Array.from({ length: 5 }, (_, index) => owner(index + 1)))
    const inner = target.store
    await target.close()
    let lists = 0
    const store: ResourceStore = {
      ...inner,
      async list(path, options) {
        // The third list cuts the page behind its last entry, which was shown a moment before.
        if (++lists === 3) await seed(inner, '/notes/3', { owner: 'bob' })
        return inner.list(path, options)
      },
    }
    target = await startService({ auth, resources }, store)
    expect(await ids('/notes?limit=2', 'ann')).toEqual([2, 4])
  })

  it('is private, and varies by the credentials', async () => {
    await startNotes(
      owners(4, (n) => n < 3),
      { cacheControl: 'public, max-age=60' },
    )
    const mine = await list('/notes', 'ann')
    expect([mine.field('cache-control'), mine.field('vary')]).toEqual(['private, max-age=60', 'Authorization'])
    const same = await list('/notes', 'ann', { 'If-None-Match': mine.field('etag')! })
    expect([same.status, same.field('cache-control'), same.field('vary')]).toEqual([
      304,
      'private, max-age=60',
      'Authorization',
    ])
    const anonymous = await list('/notes')
    expect([anonymous.text, anonymous.field('cache-control'), anonymous.field('vary')]).toEqual([
      '[]',
      'private, max-age=60',
      'Authorization',
    ])
  })

  it('says the same of caches whether or not a refused entry is selected: a filter would tell what is in it', async () => {
    const notes = collection({ authorize: ownersOnly, query: { title: 'string' } })
    target = await startService({ auth, resources: { '/notes': notes }, cacheControl: 'public, max-age=60' })
    const created = await target.send('POST', '/notes', {
      fields: { ...as('bob'), 'Content-Type': 'application/json' },
      body: '{"owner":"bob","title":"secret"}',
    })
    expect(created.status).toBe(201)
    for (const filter of ['title=secret', 'title=other', 'title[gt]=s', 'title[gt]=t']) {
      for (const user of [undefined, 'ann']) {
        const { text, fields } = await list(`/notes?${filter}`, user)
        const shown = fields.filter(([name]) => !['date', 'etag'].includes(name))
        const other = await list('/notes?title=none', user)
        expect([text, shown]).toEqual([other.text, other.fields.filter(([name]) => !['date', 'etag'].includes(name))])
      }
    }
  })

  it('lets shared caches keep a page on which every caller sees the same, beside a singleton with an alias', async () => {
    const resources = { '/products': collection(), '/products/featured': singleton({ aliases: ['/products/top'] }) }
    target = await startService({ auth, resources, cacheControl: 'public, max-age=60' })
    await target.send('POST', '/products', {
      fields: { ...as('bob'), 'Content-Type': 'application/json' },
      body: '{"name":"a"}',
    })
    const { status, text, fields } = await list('/products')
    expect([status, text]).toEqual([200, '[{"id":1,"name":"a"}]'])
    expect(fields).toContainEqual(['cache-control', 'public, max-age=60'])
  })

  it('ends early behind 2000 refused entries, at a cursor that names none of them', async () => {
    await startNotes(owners(4100, (n) => n === 1 || n === 4100))
    const authorize = vi.fn<Authorize>(ownersOnly)
    const walked = await walk('/notes?limit=5', 'ann')
    expect(walked.ids).toEqual([1, 4100])
    expect(walked.pages.length).toBe(3)
    for (const cursor of walked.cursors) expect(cursor).toMatch(/^\0sealed:[\w-]{64,}$/)
    const [first] = walked.cursors
    const after = Buffer.from(first!).toString('base64url')
    // The same page has the same tag; a cursor of one collection opens no other, and a forged one opens none.
    expect((await list('/notes?limit=5', 'ann')).field('etag')).toBe(
      (await list('/notes?limit=5', 'ann')).field('etag'),
    )
    const forged = Buffer.from(`${first!.slice(0, -4)}AAAA`).toString('base64url')
    expect((await list(`/notes?after=${forged}`, 'ann')).status).toBe(400)
    expect((await list(`/notes?after=${Buffer.from('\0sealed:').toString('base64url')}`, 'ann')).status).toBe(400)
    // Another process with the same store opens it.
    const other = await startService(
      { auth, resources: { '/notes': collection({ authorize }), '/more': collection({ authorize }) } },
      target.store,
    )
    expect((await other.send('GET', `/notes?after=${after}`, { fields: as('ann') })).status).toBe(200)
    expect((await other.send('GET', `/more?after=${after}`, { fields: as('ann') })).status).toBe(400)
    // What one request costs.
    authorize.mockClear()
    await other.send('GET', '/notes?limit=5', { fields: as('ann') })
    expect(authorize.mock.calls.length).toBeLessThanOrEqual(2060)
    await other.close()
  })

  it('ends early behind 2000 refused entries also where any path may be a list', async () => {
    target = await startService({ auth: { ...auth, authorize: ownersOnly } }, memoryStore())
    for (let n = 1; n <= 2001; n++) await seed(target.store, `/notes/${n}`, { owner: n === 2001 ? 'ann' : 'bob' })
    expect(await walk('/notes', 'ann')).toMatchObject({ pages: [0, 1], ids: [2001] })
    expect((await list('/nothing', 'ann')).status).toBe(404)
  })

  it('ends behind all that was judged where one page of the store holds more', async () => {
    const notes = collection({ authorize: ownersOnly, pageSize: { max: 3000 } })
    await startNotes(
      owners(2010, (n) => n === 2010),
      { resources: { '/notes': notes } },
    )
    expect(await walk('/notes?limit=3000', 'ann')).toMatchObject({ pages: [0, 1], ids: [2010] })
  })

  it('is that of a path without a resource where there is one that its caller may not see', async () => {
    target = await startService({ auth: { ...auth, authorize: ownersOnly } }, memoryStore())
    for (const path of ['/free/1', '/taken/1', '/taken/2']) await seed(target.store, path, { owner: 'ann' })
    for (const path of ['/taken', '/taken/2']) await seed(target.store, path, { owner: 'bob' })
    for (const path of ['/free', '/taken']) expect(await ids(path, 'ann')).toEqual([1])
    expect((await list('/taken', 'bob')).json()).toMatchObject({ owner: 'bob' })
    expect((await list('/taken/2', 'ann')).status).toBe(404)
    expect((await target.send('DELETE', '/taken', { fields: as('ann') })).status).toBe(404)
  })

  it('names no refused entry where the store ends a page early, behind entries that it does not show', async () => {
    await startNotes(owners(12, (n) => n % 4 === 1))
    const inner = target.store
    await target.close()
    const store: ResourceStore = {
      ...inner,
      // As by a filter: it looks at four entries for a page, and the notes of bob do not match.
      async list(path, options) {
        const { items, next } = await inner.list(path, { ...options, limit: 4 })
        const matching = items.filter(({ body }) => String(body).includes('ann'))
        if (matching.length < options.limit) return { items: matching, next }
        const limit = items.indexOf(matching[options.limit - 1]!) + 1
        return { ...(await inner.list(path, { ...options, limit })), items: matching.slice(0, options.limit) }
      },
    }
    target = await startService({ auth, resources }, store)
    for (const [limit, last] of [
      [1, ['1', '5']],
      [2, ['5']],
    ] as const) {
      expect(await walk(`/notes?limit=${limit}`, 'ann')).toMatchObject({ ids: [1, 5, 9], cursors: last })
    }
  })

  it('goes on where an entry behind a full page was left unjudged', async () => {
    await startNotes(owners(19, (n) => n === 1 || n === 19))
    for (let n = 2; n <= 18; n++) await seed(target.store, `/notes/${n}`, { owner: 'bob', text: 'x'.repeat(1_000_000) })
    expect((await walk('/notes?limit=1', 'ann')).ids).toEqual([1, 19])
  })

  it('reads the key of its cursors anew after the store has failed', async () => {
    const inner = memoryStore()
    let isAway = true
    const store: ResourceStore = {
      ...inner,
      read(path, options) {
        if (isAway && path === 'secrets/cursors') throw new HttpError(503, 'ERR_UNAVAILABLE')
        return inner.read(path, options)
      },
    }
    target = await startService({ resources: { '/notes': collection() } }, store)
    const forged = `/notes?after=${Buffer.from('\0sealed:').toString('base64url')}`
    expect((await list(forged)).status).toBe(503)
    isAway = false
    expect((await list(forged)).status).toBe(400)
  })

  it('reads the key of its cursors anew where a read of it does not end', async () => {
    const inner = memoryStore()
    let isStuck = true
    const store: ResourceStore = {
      ...inner,
      read: (path, options) =>
        isStuck && path === 'secrets/cursors' ? new Promise<never>(() => {}) : inner.read(path, options),
    }
    target = await startService({ resources: { '/notes': collection() } }, store)
    const forged = `/notes?after=${Buffer.from('\0sealed:').toString('base64url')}`
    const url = `http://127.0.0.1:${target.port}${forged}`
    await expect(fetch(url, { signal: AbortSignal.timeout(100) })).rejects.toThrow()
    isStuck = false
    const before = performance.now()
    const now = vi.spyOn(performance, 'now').mockImplementation(() => before + 6000)
    try {
      expect((await list(forged)).status).toBe(400)
    } finally {
      now.mockRestore()
    }
  })

  it('ends early with a cursor that opens where the store keeps the rows of its table alone', async () => {
    const inner = memoryStore()
    const store: ResourceStore = {
      ...inner,
      write(path, content, options) {
        if (!path.startsWith('/notes/')) throw new HttpError(404, 'ERR_NOT_FOUND')
        return inner.write(path, content, options)
      },
    }
    const resources = { '/notes': collection({ authorize: ownersOnly }) }
    target = await startService({ auth, resources }, store)
    for (let n = 1; n <= 2100; n++) await seed(store, `/notes/${n}`, { owner: n === 2100 ? 'ann' : 'bob', text: '' })
    const { ids, pages } = await walk('/notes?limit=5', 'ann')
    expect([ids, pages.length]).toEqual([[2100], 2])
  })

  it('reads the key of its cursors once', async () => {
    const store = memoryStore()
    const reads = vi.spyOn(store, 'read')
    target = await startService({ resources: { '/notes': collection() } }, store)
    const forged = `/notes?after=${Buffer.from('\0sealed:').toString('base64url')}`
    for (let count = 0; count < 3; count++) expect((await list(forged)).status).toBe(400)
    expect(reads.mock.calls.filter(([path]) => path === 'secrets/cursors')).toHaveLength(1)
  })

  it('asks once about an entry, also where a page is read again to end elsewhere', async () => {
    const asked: unknown[] = []
    const authorize: Authorize = (_principal, _request, current) => {
      const { id } = (current?.value ?? {}) as { id?: number }
      if (id !== undefined) asked.push(id)
      return id === undefined || id > 4
    }
    await startNotes(Array(12).fill('ann'), { resources: { '/notes': collection({ authorize }) } })
    expect(await ids('/notes?limit=5')).toEqual([5, 6, 7, 8, 9])
    expect(asked).toEqual([...new Set(asked)])
  })

  it('lets others have their turn between many entries, and not between any two', async () => {
    let turn = 0
    let isOver = false
    const turns = new Set<number>()
    const authorize: Authorize = (_principal, _request, current) => {
      if (current !== undefined) turns.add(turn)
      return true
    }
    await startNotes(Array(400).fill('ann'), { resources: { '/notes': collection({ authorize }) } })
    const count = (): void => {
      turn++
      if (!isOver) setImmediate(count)
    }
    count()
    expect(await ids('/notes?limit=400')).toHaveLength(400)
    isOver = true
    expect(turns.size).toBeGreaterThan(3)
    expect(turns.size).toBeLessThan(50)
  })

  it('has no count where too much of it would have to be judged', async () => {
    const counted = { '/notes': collection({ authorize: ownersOnly, count: true }) }
    await startNotes(
      Array.from({ length: 80 }, () => 'ann'),
      { resources: counted },
    )
    const count = async () => (await list('/notes?limit=5&count=true', 'ann')).field('x-total-count')
    expect(await count()).toBe('80')
    for (let n = 1; n <= 17; n++) await seed(target.store, `/notes/${n}`, { owner: 'bob', text: 'x'.repeat(1_000_000) })
    expect(await count()).toBeUndefined()
    for (let n = 3; n <= 17; n++) await seed(target.store, `/notes/${n}`, { owner: 'bob' })
    expect(await count()).toBe('63')
    // The last page may end early as well.
    for (let n = 64; n < 80; n++) await seed(target.store, `/notes/${n}`, { owner: 'bob', text: 'x'.repeat(1_000_000) })
    expect(await count()).toBeUndefined()
  })

  it('has a count of 1000 entries that are judged, and none of more', async () => {
    const notes = Array.from({ length: 1000 }, (_, n) => (n % 2 === 0 ? 'ann' : 'bob'))
    await startNotes(notes, { resources: { '/notes': collection({ authorize: ownersOnly, count: true }) } })
    const count = async () => (await list('/notes?limit=5&count=true', 'ann')).field('x-total-count')
    expect(await count()).toBe('500')
    await seed(target.store, '/notes/1001', { owner: 'ann' })
    expect(await count()).toBeUndefined()
  })

  it('costs one reading of the store and no hook where no definition refuses anything', async () => {
    const store = memoryStore()
    const calls = vi.spyOn(store, 'list')
    target = await startService({ auth, resources: { '/notes': collection() } }, store)
    for (let n = 1; n <= 10; n++) await seed(store, `/notes/${n}`, {})
    expect((await list('/notes?limit=5')).json()).toHaveLength(5)
    expect(calls).toHaveBeenCalledOnce()
  })

  it('is as careful with caches as the strictest entry on it', async () => {
    target = await startService({
      cacheControl: 'public, max-age=600',
      resources: {
        '/{tenant}': collection({ ids: 'string' }),
        '/acme/private': document({ cacheControl: 'private, max-age=60' }),
        '/acme/secret': document({ cacheControl: 'no-store' }),
      },
    })
    const caching = async (path: string) => (await target.send('GET', path)).field('cache-control')
    await seed(target.store, '/acme/1', {})
    expect(await caching('/acme')).toBe('public, max-age=600')
    await seed(target.store, '/acme/private', {})
    expect(await caching('/acme')).toBe('private, max-age=60')
    await seed(target.store, '/acme/secret', {})
    expect(await caching('/acme')).toBe('no-store')
    expect(await caching('/other')).toBe('public, max-age=600')
  })

  it('is private for users where shared caches may keep the list for them, and not an entry (RFC 9111 §3.5)', async () => {
    target = await startService({
      auth,
      resources: {
        '/{tenant}': collection({ ids: 'string', cacheControl: 'public, max-age=600, must-revalidate' }),
        '/acme/plain': document({ cacheControl: 'max-age=60' }),
      },
    })
    await seed(target.store, '/acme/plain', {})
    expect((await list('/acme')).field('cache-control')).toBe('must-revalidate, max-age=60')
    expect((await list('/acme', 'ada')).field('cache-control')).toBe('private, must-revalidate, max-age=60')
  })
})

describe('a listing of entries that authorize judges', () => {
  it('fails where authorize cannot be asked: it is neither complete nor short of an entry', async () => {
    let isAway = false
    const authorize: Authorize = async (_, __, current) => {
      if (isAway && current !== undefined) throw new HttpError(503, 'ERR_UNAVAILABLE')
      return true
    }
    target = await startService({ resources: { '/notes': collection({ authorize }) } })
    await seed(target.store, '/notes/1', {})
    expect(await ids('/notes')).toEqual([1])
    isAway = true
    expect((await list('/notes')).status).toBe(503)
  })

  it('judges each by itself in a store whose versions are those of one item', async () => {
    const store = memoryStore()
    const one = '1'
    target = await startService(
      { auth, resources: { '/notes': collection({ authorize: ownersOnly }) } },
      {
        ...store,
        async list(...request) {
          const page = await store.list(...request)
          return { ...page, items: page.items.map((item) => ({ ...item, version: one })) }
        },
      },
    )
    await seed(target.store, '/notes/1', { owner: 'ann' })
    await seed(target.store, '/notes/2', { owner: 'bob' })
    expect([await ids('/notes', 'ann'), await ids('/notes', 'bob')]).toEqual([[1], [2]])
  })
})

it('a sealed cursor has a nonce of its list: one that seals twice gives the key of its authentication away (NIST SP 800-38D §8)', async () => {
  const route = { context: { store: memoryStore() } }
  const sealIn = async (storePath: string, cursor = 'a'): Promise<string> => {
    const sealed = await sealCursor({ storePath, route } as never, cursor)
    return Buffer.from(sealed.slice('\0sealed:'.length), 'base64url').toString('hex', 0, 12)
  }
  const [first, other, again] = [await sealIn('/a'), await sealIn('/b'), await sealIn('/a')]
  expect([first === other, first === again]).toEqual([false, true])
  // The same bytes, parted at another place.
  const [name, cursor] = ['b'.repeat(64), 'c'.repeat(64)]
  expect(await sealIn(`/a${name}`, cursor)).not.toBe(await sealIn('/a', name + cursor))
})

it.each([1, 64, 65, 128])('a sealed cursor of %i bytes has the size that its link has room for', async (size) => {
  const exchange = { storePath: '/a', route: { context: { store: memoryStore() } } } as never
  expect(await sealCursor(exchange, 'x'.repeat(size))).toHaveLength(sealedSize(size))
})

it('cursors keep one key where a store that was silent for long keeps none', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const answers: (() => void)[] = []
  const store: ResourceStore = {
    ...memoryStore(),
    read: () => new Promise((resolve) => answers.push(() => resolve(undefined))),
    write: () => Promise.reject(new HttpError(404, 'ERR_NOT_FOUND')),
  }
  const seal = () => sealCursor({ storePath: '/a', route: { context: { store } } } as never, 'a')
  const first = seal()
  vi.advanceTimersByTime(5000)
  const second = seal()
  for (const answer of answers) answer()
  const cursors = [await first, await second, await seal()]
  vi.useRealTimers()
  expect(new Set(cursors).size).toBe(1)
})
