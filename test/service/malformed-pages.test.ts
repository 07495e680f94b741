import { describe, expect, it } from 'vitest'
import { HttpError } from '../../src/core/errors.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ListOptions, Page, ResourceStore } from '../../src/stores/types.ts'
import { createMonitors } from '../../src/work/monitors.ts'
import { createWorkQueue } from '../../src/work/queue.ts'
import { serve } from './serve.ts'

/** Five notes; a caller sees the second and the third. */
const resources = {
  '/notes': collection({
    query: { n: 'number' },
    count: true,
    authorize: (_principal, _request, current) => {
      const n = (current?.value as { n: number } | undefined)?.n ?? 2
      return n === 2 || n === 3
    },
  }),
  '/all': collection({ query: { n: 'number' }, count: true }),
}

async function storeWith(list: (page: Page, options: ListOptions) => unknown): Promise<ResourceStore> {
  const store = memoryStore()
  for (let n = 1; n <= 5; n++) {
    for (const path of ['/notes', '/all']) {
      await store.create(path, { contentType: 'application/json', body: JSON.stringify({ id: n, n }) })
    }
  }
  let pages = 0
  return {
    ...store,
    list(path, options) {
      // A walk that does not end would hold the thread.
      if (++pages > 10_000) throw new HttpError(503, 'ERR_UNAVAILABLE')
      return list(store.list(path, { ...options, query: undefined }) as Page, options) as Page
    },
  }
}

/** A page as a store gives it that has an offset for a cursor, and does not know when to end. */
function countOn(page: Page, { after, limit }: ListOptions): Page {
  return { items: after === undefined ? page.items : [], next: String(Number(after ?? 0) + limit) }
}

describe('a store whose pages are not those of the contract', () => {
  const faults: readonly (readonly [string, (page: Page, options: ListOptions) => unknown, RegExp, number[]])[] = [
    ['more items than asked for', ({ items }) => ({ items: [...items, ...items] }), /gave \d+ items/, [500, 500, 500]],
    [
      'one item more than asked for',
      ({ items }, { limit }) => ({ items: [...items, ...items].slice(0, limit + 1) }),
      /gave \d+ items/,
      [500, 500, 500],
    ],
    ['the same cursor on each page', ({ items }) => ({ items, next: 'same' }), /cursor of a page/, [500, 500, 200]],
    ['null for a cursor', (page) => ({ ...page, next: null }), /next page null/, [500, 500, 500]],
    ['an empty cursor', (page) => ({ ...page, next: '' }), /next page empty text/, [500, 500, 500]],
    ['a Set of items', () => ({ items: new Set() }), /a Set, not a list/, [500, 500, 500]],
    ['a total of NaN', (page) => ({ ...page, total: Number.NaN }), /total of a list/, [200, 200, 500]],
  ]
  it.each(faults)('is answered 500, also where each item is judged: %s', async (_, fault, message, expected) => {
    const errors: unknown[] = []
    const { send } = await serve(await storeWith(fault), { resources, onError: (error) => errors.push(error) })
    // Pages that follow are asked for as long as too few items are shown.
    const targets = ['/notes?limit=4', '/notes?sort=-n&limit=4', '/all?sort=n&limit=4&count=true']
    const statuses = await Promise.all(targets.map(async (target) => (await send('GET', target)).status))
    expect(statuses).toEqual(expected)
    expect(errors.map(String)).toEqual(
      expected.filter((status) => status === 500).map(() => expect.stringMatching(message)),
    )
  })

  it('gives a page that ends early where empty pages follow without an end', async () => {
    const { send } = await serve(await storeWith(countOn), { resources, onError: () => {} })
    const page = await send('GET', '/notes?limit=4&count=true')
    expect([page.status, JSON.parse(page.text).map(({ id }: { id: number }) => id)]).toEqual([200, [2, 3]])
    expect(page.field('Link')).toContain('rel="next"')
    expect(page.field('X-Total-Count')).toBeUndefined()
  })

  it.each([
    [0, 4],
    [1, 4],
    [10, 6],
    [25, 10],
  ])('asks for few pages where each has %i of the 50 items that were asked for, all hidden', async (count, most) => {
    let calls = 0
    let hidden: Page['items'] = []
    const list = ({ items }: Page, { after, limit }: ListOptions): Page => {
      calls++
      if (items.length > 0) hidden = items.slice(0, 1)
      const at = Number(after ?? 0)
      const length = Math.min(count, limit)
      const page = Array.from({ length }, (_, i) => ({ ...hidden[0]!, path: `/notes/${at * 100 + i + 10}` }))
      return { items: page, next: String(at + 1) }
    }
    const { send } = await serve(await storeWith(list), { resources, onError: () => {} })
    const page = await send('GET', '/notes?limit=50')
    expect(page.status).toBe(200)
    expect(page.field('Link')).toContain('rel="next"')
    expect(calls).toBe(most)
  })

  it('has a next page behind a full one that empty pages follow without an end', async () => {
    const list = (page: Page, { after }: ListOptions): Page =>
      after === '1' ? { next: '9', ...page } : { items: [], next: String(Number(after ?? 0) + 1) }
    const { send } = await serve(await storeWith(list), { resources, onError: () => {} })
    const page = await send('GET', '/notes?limit=2')
    expect(JSON.parse(page.text).map(({ id }: { id: number }) => id)).toEqual([2, 3])
    expect(page.field('Link')).toContain('rel="next"')
  })

  it('judges an entry of the last page that is looked at for one answer, and asks for no page of none', async () => {
    const limits: number[] = []
    let items: Page['items'] = []
    const list = (page: Page, { after, limit }: ListOptions): Page => {
      limits.push(limit)
      const at = Number(after ?? 0)
      if (at === 0) items = page.items
      if (at < 3) return { items: [], next: String(at + 1) }
      const shown = items.slice(at - 3, at - 3 + limit)
      return { items: shown, next: String(at + shown.length) }
    }
    const { send } = await serve(await storeWith(list), { resources, onError: () => {} })
    const page = await send('GET', '/notes?limit=4')
    expect([page.status, page.text, page.field('Link')]).toEqual([200, '[]', expect.stringContaining('rel="next"')])
    expect(Math.min(...limits)).toBe(1)
  })

  it('does not tell how many items there are where the last page has more that is refused than is judged', async () => {
    const list = ({ items }: Page, { after, limit }: ListOptions): Page => {
      const large = Array.from({ length: 20 }, (_, i) => ({ ...items[0]!, path: `/notes/${i + 10}`, size: 1_000_000 }))
      const all = [...large, items[1]!]
      const end = Number(after ?? 0) + limit
      return { items: all.slice(end - limit, end), ...(end < all.length && { next: String(end) }) }
    }
    const store = await storeWith((page, options) => list(page.items.length > 0 ? page : first, options))
    const first = (await store.list('/notes', { limit: 5 })) as Page
    const { send } = await serve(store, { resources, onError: () => {} })
    const page = await send('GET', '/notes?limit=4&count=true')
    expect([page.status, page.field('X-Total-Count')]).toEqual([200, undefined])
  })

  it('does not tell how many items there are where that was not asked for', async () => {
    const store = await storeWith((page) => ({ ...page, total: 5 }))
    const { send } = await serve(store, { resources, onError: () => {} })
    for (const target of ['/notes', '/notes?limit=2', '/all']) {
      expect((await send('GET', target)).field('X-Total-Count')).toBeUndefined()
    }
  })
})

describe('a walk through pages without an end', () => {
  it('ends: accepted work that is due, and monitors that have expired, are found', async () => {
    const store = await storeWith(countOn)
    const queue = createWorkQueue(store, Date.now)
    const { path, content } = queue.record('a', { kind: 'process', pattern: '/all/{id}', path: '/all/1' })
    await store.write(path, content, { expect: 'absent' })
    expect(await queue.due(10)).toEqual({ ids: ['a'], wait: undefined })
    const monitors = createMonitors({ store, now: Date.now, path: '/operations', retention: 0, isAdmin: undefined })
    expect(await monitors.sweep()).toBeUndefined()
  })
})
