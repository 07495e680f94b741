import { describe, expect, it } from 'vitest'
import type { CollectionIndex } from '../../src/stores/lists.ts'
import { STORES } from '../hooks/stores.ts'

const INDEX: CollectionIndex = {
  version: 'v1',
  properties: ['n'],
  scope: [],
  valuesOf: ({ body }) => JSON.parse(String(body)),
}

describe.each(Object.entries(STORES))('an index of %s', (_, createStore) => {
  it('follows a member that is hidden, written again and hidden again', async () => {
    const store = createStore()
    const write = (n: number) => {
      const content = {
        contentType: 'application/json',
        body: JSON.stringify({ n }),
        indexed: { index: INDEX, values: { n } },
      }
      return store.write('/tasks/1', content, { expect: 'any' })
    }
    const hide = () => store.remove('/tasks/1', { expect: 'any', mode: 'hide' })
    const find = async (hidden: boolean) => {
      const where = [{ property: 'n', operator: 'gte', value: 0 }] as const
      const query = { index: INDEX, where, orderBy: [], count: true }
      const { items, total } = await store.list('/tasks', { limit: 9, hidden, query })
      return [items.map((item) => `${item.body}${item.hidden === true ? ' hidden' : ''}`), total]
    }
    await write(1)
    for (const n of [1, 2]) {
      expect((await hide()).outcome).toBe('removed')
      expect([await find(false), await find(true)]).toEqual([
        [[], 0],
        [[`{"n":${n}} hidden`], 1],
      ])
      await write(n + 1)
      const found = [[`{"n":${n + 1}}`], 1]
      expect([await find(false), await find(true)]).toEqual([found, found])
    }
    await store.close?.()
  })
})
