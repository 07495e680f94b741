import { describe, expect, it } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type Served, serve } from '../service/serve.ts'

const json = 'Content-Type: application/json'

const TASKS = [
  { status: 'open', priority: 3, done: false, dueAt: '2026-01-02T00:00:00+02:00', address: { city: 'Oslo' } },
  { status: 'late', priority: 1, done: true, dueAt: '2026-01-01T23:00:00Z' },
  { status: 'open', priority: 2, done: false, dueAt: '2026-01-01T23:00:00.5Z', address: { city: 'Orly' } },
  { status: 'closed', priority: 2.5 },
  { status: 'öpen', priority: null, done: true },
]

async function serveTasks(options: Parameters<typeof collection>[0] = {}): Promise<Served> {
  const served = await serve(memoryStore(), {
    resources: {
      '/tasks': collection({
        query: {
          status: 'string',
          priority: 'number',
          done: 'boolean',
          dueAt: 'date-time',
          city: { type: 'string', pointer: '/address/city' },
        },
        count: true,
        ...options,
      }),
    },
  })
  for (const task of TASKS) {
    expect((await served.send('POST', '/tasks', [json], JSON.stringify(task))).status).toBe(201)
  }
  return served
}

const idsOf = (text: string): readonly number[] => JSON.parse(text).map(({ id }: { id: number }) => id)

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

  it('counts what matches, on whichever page', async () => {
    const { send } = await serveTasks()
    const first = await send('GET', '/tasks?status=open&limit=1&count=true')
    expect([idsOf(first.text), first.field('X-Total-Count')]).toEqual([[1], '2'])
    const next = /<([^>]+)>; rel="next"/.exec(first.field('Link')!)![1]!
    const second = await send('HEAD', next)
    expect([second.field('X-Total-Count'), second.field('Link')]).toEqual([
      '2',
      '</tasks?status=open&limit=1&count=true>; rel="first"',
    ])
  })
})
