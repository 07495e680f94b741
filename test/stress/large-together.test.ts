import { setTimeout as wait } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { LargeBody, ResourceStore, StoredResource } from '../../src/stores/types.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { MERGE_PATCH, startService } from '../writes/support.ts'

const MIB = 1024 * 1024

/** Holds up what is under way until the test lets it go. */
function createGate() {
  let open!: () => void
  const opened = new Promise<void>((resolve) => (open = resolve))
  const gate = { now: 0, open, pass }
  async function pass<Result>(task: () => Result | Promise<Result>): Promise<Result> {
    gate.now++
    await opened
    return task()
  }
  return gate
}

/** Whether so many are under way, and no more come. */
async function expectHeld(gate: { readonly now: number }, most: number): Promise<void> {
  await vi.waitFor(() => expect(gate.now).toBe(most), { timeout: 10_000 })
  await wait(500)
  expect(gate.now).toBe(most)
}

it('patches of many large documents are carried out few at a time: 128 MiB hold four times what they have', async () => {
  const inner = memoryStore()
  const gate = createGate()
  const store: ResourceStore = { ...inner, write: (...given) => gate.pass(async () => inner.write(...given)) }
  for (let n = 0; n < 20; n++) {
    const body = JSON.stringify({ text: 'x'.repeat(2 * MIB) })
    await inner.write(`/docs/${n}`, { contentType: 'application/json', body }, { expect: 'absent' })
  }
  const target = await startService({ resources: { '/docs': collection({ ids: 'string' }) } }, store)
  closeAfterTest(() => target.close())
  const fields = { ...MERGE_PATCH, Prefer: 'return=minimal' }
  const patch = (_: unknown, n: number) => target.send('PATCH', `/docs/${n}`, { fields, body: '{"a":1}' })
  const answers = Promise.all(Array.from({ length: 20 }, patch))
  await expectHeld(gate, 15)
  gate.open()
  expect(new Set((await answers).map(({ status }) => status))).toEqual(new Set([204]))
})

it('large content is read for representations up to 128 MiB at a time', async () => {
  const gate = createGate()
  const size = 40 * MIB
  const bytes = Buffer.alloc(size)
  const body: LargeBody = {
    async *open() {
      yield await gate.pass(() => bytes)
    },
  }
  const inner = memoryStore()
  const small = await inner.write('/docs/a', { contentType: 'text/plain', body: 'a' }, { expect: 'absent' })
  const resource = { ...(small as { resource: StoredResource }).resource, body, size }
  const store: ResourceStore = { ...inner, read: () => resource }
  const docs = document({
    types: ['text/plain'],
    representations: [{ type: 'text/html', render: (content) => String(content.length) }],
  })
  const target = await startService({ resources: { '/docs/{name}': docs } }, store)
  closeAfterTest(() => target.close())
  const get = () => target.send('GET', '/docs/a', { fields: { Accept: 'text/html' } })
  const answers = Promise.all(Array.from({ length: 7 }, get))
  await expectHeld(gate, 3)
  gate.open()
  for (const { status, text } of await answers) expect([status, text]).toEqual([200, String(size)])
})
