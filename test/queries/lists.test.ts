import { describe, expect, it } from 'vitest'
import { idsOf, linkOf, serveTasks } from './tasks.ts'

describe('lists of a collection with query', () => {
  it.each([
    ['', [1, 2, 3, 4, 5]],
    ['?status=open', [1, 3]],
    ['?status=open&status=late', [1, 2, 3]],
    ['?status[ne]=open', [2, 4, 5]],
    ['?status%5Bne%5D=open&status[ne]=late', [4, 5]],
    ['?status[prefix]=o', [1, 3]],
    ['?status=%C3%B6pen', [5]],
    ['?status[gt]=open', [5]],
    ['?priority[gte]=2&priority[lt]=3', [3, 4]],
    ['?priority=25e-1', [4]],
    ['?done=true', [2, 5]],
    ['?done[ne]=true', [1, 3, 4]],
    ['?done[exists]=false', [4]],
    ['?priority[exists]=true', [1, 2, 3, 4]],
    ['?dueAt=2026-01-01T22:00:00Z', [1]],
    ['?dueAt[gt]=2026-01-02T01:00:00%2B02:00', [3]],
    ['?dueAt[gte]=2026-01-01T22:00:00.000Z&dueAt[lt]=2026-01-01T23:00:00.50Z', [1, 2]],
    ['?city[prefix]=O&sort=-city', [1, 3]],
    ['?sort=priority', [5, 2, 3, 4, 1]],
    ['?sort=-priority', [1, 4, 3, 2, 5]],
    ['?sort=done,-priority', [4, 1, 3, 2, 5]],
    ['?sort=dueAt&limit=3', [4, 5, 1]],
  ])('answers %s', async (query, ids) => {
    const { send } = await serveTasks()
    const answer = await send('GET', `/tasks${query}`)
    expect(answer.status, answer.text).toBe(200)
    expect(idsOf(answer.text)).toEqual(ids)
    expect(answer.field('X-Total-Count')).toBeUndefined()
  })

  it('counts all items on the last page too', async () => {
    const { send } = await serveTasks()
    const first = await send('GET', '/tasks?limit=3&count=true')
    const last = await send('GET', linkOf(first.field('Link'), 'next')!)
    expect([idsOf(last.text), first.field('X-Total-Count'), last.field('X-Total-Count')]).toEqual([[4, 5], '5', '5'])
  })

  it('counts what matches, on whichever page', async () => {
    const { send } = await serveTasks()
    const first = await send('GET', '/tasks?status=open&limit=1&count=true')
    expect([idsOf(first.text), first.field('X-Total-Count')]).toEqual([[1], '2'])
    const second = await send('HEAD', linkOf(first.field('Link'), 'next')!)
    expect([second.field('X-Total-Count'), second.field('Link')]).toEqual([
      '2',
      '</tasks?status=open&limit=1&count=true>; rel="first"',
    ])
  })

  it.each(['', 'sort=-priority', 'status=open'])(
    'continues %s with and without count from the same cursor',
    async (query) => {
      for (const authorize of [undefined, () => true]) {
        const { send } = await serveTasks(authorize === undefined ? {} : { authorize })
        const total = String(idsOf((await send('GET', `/tasks?${query}`)).text).length)
        for (const counts of [
          [false, true],
          [true, false],
        ] as const) {
          const targets = counts.map((isCounted) => `/tasks?${query}${isCounted ? '&count=true' : ''}&limit=1`)
          const first = await send('GET', targets[0]!)
          const after = new URL(linkOf(first.field('Link'), 'next')!, 'http://a.test').searchParams.get('after')
          const [bare, counted] = await Promise.all(targets.map((target) => send('GET', `${target}&after=${after}`)))
          expect([bare!.status, counted!.status], counted!.text).toEqual([200, 200])
          expect(counted!.text).toBe(bare!.text)
          expect(idsOf(bare!.text)).not.toEqual(idsOf(first.text))
          const fields = [bare!, counted!].map((answer) => answer.field('X-Total-Count'))
          expect(fields).toEqual(counts.map((isCounted) => (isCounted ? total : undefined)))
        }
      }
    },
  )

  it('leads through the pages, each item once, in both directions of an order', async () => {
    const { send } = await serveTasks()
    for (const query of ['sort=-priority', 'sort=done,-dueAt', 'status[ne]=closed&sort=city', '']) {
      const all = idsOf((await send('GET', `/tasks?${query}`)).text)
      const seen: number[] = []
      for (let target: string | undefined = `/tasks?${query}&limit=2`; target !== undefined; ) {
        const page = await send('GET', target)
        expect(page.status, page.text).toBe(200)
        seen.push(...idsOf(page.text))
        target = linkOf(page.field('Link'), 'next')
        if (target === undefined)
          expect(idsOf((await send('GET', linkOf(page.field('Link'), 'first')!)).text)).toEqual(seen.slice(0, 2))
      }
      expect(seen).toEqual(all)
    }
  })

  it('has an entity tag of its own for each query, and 304 for the same', async () => {
    const { send } = await serveTasks()
    const queries = ['', '?status=nothing', '?status=nowhere', '?city=nowhere', '?done[exists]=false&status=x']
    const tags = new Set<string>()
    for (const query of queries) {
      const tag = (await send('GET', `/tasks${query}`)).field('ETag')!
      tags.add(tag)
      for (const method of ['GET', 'HEAD']) {
        expect((await send(method, `/tasks${query}`, [`If-None-Match: ${tag}`])).status).toBe(304)
      }
    }
    expect(tags.size).toBe(queries.length)
    const [plain, counted] = [
      await send('GET', '/tasks?status=open'),
      await send('GET', '/tasks?status=open&count=true'),
    ]
    expect(plain.field('ETag')).not.toBe(counted.field('ETag'))
  })

  it('follows changes of an item', async () => {
    const { send } = await serveTasks()
    const patch = 'Content-Type: application/merge-patch+json'
    await send('PATCH', '/tasks/1', [patch], '{"status":"closed"}')
    await send('PUT', '/tasks/2', ['Content-Type: application/json'], '{"status":"open"}')
    await send('DELETE', '/tasks/3')
    const answer = await send('GET', '/tasks?status=open&count=true')
    expect([idsOf(answer.text), answer.field('X-Total-Count')]).toEqual([[2], '1'])
  })
})
