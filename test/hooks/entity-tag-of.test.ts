import { afterEach, describe, expect, it } from 'vitest'
import { json } from '../../src/actions/hook-types.ts'
import { entityTagOf } from '../../src/actions/representation.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { jsonOf, startService, type Target } from '../writes/support.ts'
import { STORES } from './stores.ts'

let target: Target | undefined
afterEach(() => target?.close())

describe.each(Object.entries(STORES))('entityTagOf on %s', (_, createStore) => {
  it('is the tag that the service sends with a state', async () => {
    const store = createStore()
    target = await startService({ resources: { '/tasks': collection(), '/docs/{name}': document() } }, store)
    const written = await store.write('/tasks/1', json({ id: 1 }), { expect: 'any' })
    if (written.outcome === 'conflict') throw new Error('The path was free.')
    await target.send('PUT', '/docs/x', { body: 'x'.repeat(100_000) })
    const tagOf = async (path: string) => (await target!.send('GET', path)).field('etag')
    expect(entityTagOf(written.resource)).toBe(await tagOf('/tasks/1'))
    expect(entityTagOf(await store.read('/docs/x'))).toBe(await tagOf('/docs/x'))
    const page = await store.list('/tasks', { limit: 1 })
    const fields = { 'If-Match': entityTagOf(page.items[0])! }
    expect((await target.send('PUT', '/tasks/1', jsonOf({}, fields))).status).toBe(204)
    expect((await target.send('PUT', '/tasks/1', jsonOf({}, fields))).status).toBe(412)
  })
})

describe('entityTagOf', () => {
  it('is undefined where there is no resource, or none has a tag', async () => {
    const inner = memoryStore()
    await inner.write('/a', json(1), { expect: 'any' })
    await inner.remove('/a', { expect: 'any', mode: 'tombstone' })
    expect([entityTagOf(await inner.read('/a')), entityTagOf(await inner.read('/b'))]).toEqual([undefined, undefined])
    expect(entityTagOf({ version: '1', entityTag: '' })).toBe(undefined)
  })

  it('is the tag that the store gives, and a tag that is none is the failure of the store', async () => {
    expect(entityTagOf({ version: '1', entityTag: 'W/"7"' })).toBe('W/"7"')
    expect(entityTagOf({ version: 'a "b"' })).toBe('"a%20%22b%22"')
    expect(() => entityTagOf(Promise.resolve({ version: '1' }) as never)).toThrow('a promise, which has to be awaited')
    expect(() => entityTagOf({ version: '1', entityTag: '7' })).toThrow('An entity tag has double quotes around it')
    const inner = memoryStore()
    const store: ResourceStore = {
      ...inner,
      read: async (path, options) => {
        const state = await inner.read(path, options)
        return state && 'version' in state ? { ...state, entityTag: 'W/"7"' } : state
      },
    }
    target = await startService({ resources: { '/tasks': collection() } }, store)
    await inner.write('/tasks/1', json({ id: 1 }), { expect: 'any' })
    expect((await target.send('GET', '/tasks/1')).field('etag')).toBe('W/"7"')
  })
})
