import { describe, expect, it } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { serve } from './serve.ts'

const JSON_TYPE = ['Content-Type: application/json']

/** A store whose changes are not made, and whose results do not say so in a word of the contract. */
async function storeWith(outcome: unknown): Promise<ResourceStore> {
  const store = memoryStore()
  await store.create('/notes', { contentType: 'application/json', body: '{"id":1}' })
  const result = { ...store.read('/notes/1'), resource: store.read('/notes/1'), outcome } as never
  return { ...store, write: () => result, create: () => Promise.resolve(result), remove: () => result }
}

describe('a store that gives an outcome which is not one of the contract', () => {
  it.each([
    ['failed', '"failed"'],
    [undefined, 'undefined'],
    [{}, 'an object'],
  ])('is answered 500, and no change is acknowledged: %j', async (outcome, told) => {
    const errors: unknown[] = []
    const resources = { '/notes': collection({ deletion: 'hard' }) }
    const { send } = await serve(await storeWith(outcome), { resources, onError: (error) => errors.push(error) })
    const answers = [
      await send('PUT', '/notes/1', JSON_TYPE, '{"id":1,"text":"a"}'),
      await send('PATCH', '/notes/1', ['Content-Type: application/merge-patch+json'], '{"text":"a"}'),
      await send('POST', '/notes', JSON_TYPE, '{"text":"a"}'),
      await send('DELETE', '/notes/1'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([500, 500, 500, 500])
    expect(errors.map(String)).toEqual(
      ['write', 'write', 'create', 'remove'].map(
        (method) => `TypeError: The store gave as outcome of ${method}() ${told}.`,
      ),
    )
  })
})

describe('a store that gives no state, page or content of the contract', () => {
  it.each([
    [null, 'null'],
    [undefined, 'undefined'],
    [{ id: 1 }, 'an object'],
  ])('as content is answered 500, and the error says what it gave: %j', async (body, given) => {
    const errors: unknown[] = []
    const store = memoryStore()
    await store.create('/notes', { contentType: 'application/json', body: '{"id":1}' })
    const read = () => ({ ...store.read('/notes/1'), body }) as never
    const resources = { '/notes': collection() }
    const { send } = await serve({ ...store, read }, { resources, onError: (error) => errors.push(error) })
    expect((await send('GET', '/notes/1')).status).toBe(500)
    const text = `The store gave as body of /notes/1 ${given}, not text, bytes or { open }.`
    expect(errors.map(String)).toEqual([`TypeError: ${text}`])
  })

  it('is answered 500, and the error says what it gave', async () => {
    const errors: unknown[] = []
    const store = memoryStore()
    await store.create('/notes', { contentType: 'application/json', body: '{"id":1}' })
    for (const faulty of [{ read: () => null }, { list: () => null }, { list: () => undefined }]) {
      const resources = { '/notes': collection() }
      const { send } = await serve({ ...store, ...(faulty as object) }, { resources, onError: (e) => errors.push(e) })
      expect((await send('GET', 'read' in faulty ? '/notes/1' : '/notes')).status).toBe(500)
    }
    const noList = 'TypeError: The store gave as items of a page undefined, not a list.'
    expect(errors.map(String)).toEqual([
      'TypeError: The store gave null. read() gives undefined where nothing is.',
      ...[noList, noList],
    ])
  })
})
