import { afterEach, describe, expect, it } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { startService, type Target } from './support.ts'

let target: Target | undefined
afterEach(() => target?.close())

async function start(items: readonly string[], change?: (store: ResourceStore) => unknown): Promise<Target> {
  const store = memoryStore()
  for (const [index, body] of items.entries()) {
    await store.write(`/things/${index + 1}`, { contentType: 'application/json', body }, { expect: 'any' })
  }
  let isListed = false
  target = await startService(
    { resources: { '/things': collection() } },
    {
      ...store,
      list(...args) {
        isListed = true
        return store.list(...args)
      },
      read(...args) {
        // While the page is being sent: the items are read one by one.
        if (isListed) change?.(store)
        return store.read(...args)
      },
    },
  )
  return target
}

const json = (id: number, size: number): string => `{"id":${id},"text":"${'x'.repeat(size)}"}`

describe('a page that is too large for memory', () => {
  it.each([
    ['30 items of 4 MiB', 30, 4 * 1024 * 1024],
    ['70 items just below the limit of 8 MiB', 70, 8 * 1024 * 1024 - 100],
    ['100 items of 30 kB, read one by one', 100, 30_000],
    ['400 items of 1 kB', 400, 1000],
  ])('holds all of its items, with its length, and the same for HEAD: %s (issue 16)', async (_, count, size) => {
    const text = 'x'.repeat(size)
    const bodies = Array.from({ length: count }, (_, index) => `{"id":${index + 1},"text":"${text}"}`)
    const { port } = await start(bodies)
    const url = `http://127.0.0.1:${port}/things?limit=${count}`
    const expected = bodies.reduce((sum, body) => sum + body.length, count + 1)
    const head = await fetch(url, { method: 'HEAD' })
    const answer = await fetch(url)
    for (const { status, headers } of [head, answer])
      expect([status, headers.get('content-length')]).toEqual([200, String(expected)])
    expect(head.headers.get('etag')).toBe(answer.headers.get('etag'))
    let length = 0
    let first = ''
    let end = ''
    for await (const chunk of answer.body!) {
      length += chunk.length
      if (first === '') first = Buffer.from(chunk).toString('latin1', 0, 10)
      end = (end + Buffer.from(chunk.subarray(-20)).toString('latin1')).slice(-4)
    }
    expect([length, first, end]).toEqual([expected, '[{"id":1,"', 'x"}]'])
    const known = await fetch(url, { headers: { 'If-None-Match': answer.headers.get('etag')! } })
    expect(known.status).toBe(304)
  })

  it('is what its items say, in their order (issue 16)', async () => {
    const bodies = Array.from({ length: 60 }, (_, index) => json(index + 1, [10, 20_000, 70_000, 3000][index % 4]!))
    const { send } = await start([...bodies.slice(0, 59), '{"id":60,"text":"ä"}'])
    const answer = await send('GET', '/things?limit=100')
    expect(answer.json()).toEqual([...bodies.slice(0, 59), '{"id":60,"text":"ä"}'].map((body) => JSON.parse(body)))
  })

  it.each<[string, (store: ResourceStore) => unknown]>([
    [
      'changed',
      (store) =>
        store.write('/things/20', { contentType: 'application/json', body: json(99, 30_000) }, { expect: 'any' }),
    ],
    ['removed', (store) => store.remove('/things/20', { expect: 'any', mode: 'erase' })],
  ])('breaks off where an item was %s meanwhile, and never mixes states (issue 16)', async (_, change) => {
    let isDone = false
    const bodies = Array.from({ length: 20 }, (_, index) => json(index + 1, 30_000))
    const { port } = await start(bodies, (store) => {
      if (!isDone) change(store)
      isDone = true
    })
    const answer = await fetch(`http://127.0.0.1:${port}/things?limit=20`)
    await expect(answer.text()).rejects.toThrow()
  })
})

it('a large page shows removed items with their content, where they may be seen', async () => {
  const store = memoryStore()
  for (let id = 1; id <= 20; id++) {
    const path = `/things/${id}`
    await store.write(path, { contentType: 'application/json', body: json(id, 20_000) }, { expect: 'any' })
    if (id % 2 === 0) await store.remove(path, { expect: 'any', mode: 'hide' })
  }
  const things = collection({ deletion: 'soft', authorize: () => true })
  target = await startService({ resources: { '/things': things } }, store)
  const { status, text } = await target.send('GET', '/things?deleted=true')
  expect([status, JSON.parse(text).length]).toEqual([200, 20])
})
