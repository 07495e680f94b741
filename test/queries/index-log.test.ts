import { expect, it } from 'vitest'
import { json } from '../../src/actions/hook-types.ts'
import type { LogEntry } from '../../src/core/operator-log.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { serve } from '../service/serve.ts'

it('a store in memory indexes what is there in steps of many items, and logs each step', async () => {
  const store = memoryStore()
  for (let id = 1; id <= 1000; id++) await store.write(`/tasks/${id}`, json({ id, done: true }), { expect: 'any' })
  const entries: LogEntry[] = []
  const resources = { '/tasks': collection({ query: { done: 'boolean' } }) }
  const { send } = await serve(store, { resources, log: (entry) => entries.push(entry) })
  await expect.poll(async () => (await send('GET', '/tasks?done=true')).status, { timeout: 20_000 }).toBe(200)
  expect(entries.at(-1)?.message).toBe('The items of /tasks are indexed (1000).')
  expect(entries.length).toBeLessThan(200)
})

it('items are indexed by one definition in several collections, each of which the log names', async () => {
  const store = memoryStore()
  for (const [list, id] of [
    ['a', 1],
    ['b', 1],
    ['b', 2],
  ] as const) {
    await store.write(`/${list}/tasks/${id}`, json({ id, done: true }), { expect: 'any' })
  }
  const messages: string[] = []
  const resources = { '/{list}/tasks': collection({ query: { done: 'boolean' } }) }
  const { send } = await serve(store, { resources, log: ({ message }) => void messages.push(message) })
  for (const list of ['a', 'b']) {
    await expect.poll(async () => (await send('GET', `/${list}/tasks?done=true`)).status, { timeout: 20_000 }).toBe(200)
  }
  for (const message of ['The items of /a/tasks are indexed (1).', 'The items of /b/tasks are indexed (2).']) {
    expect(messages).toContain(message)
  }
})
