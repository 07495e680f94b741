import { describe, expect, it } from 'vitest'
import type { ContentStore, ListedContent } from '../../src/contents/types.ts'
import { createOrphanSearch } from '../../src/stores/sql/orphans.ts'

const GRACE = 3_600_000
const IDENTITY = '0123456789abcdef'

describe('createOrphanSearch', () => {
  it('looks through the contents anew once their list has failed, and not only after the grace period', async () => {
    const removed: string[] = []
    const orphan: ListedContent = {
      key: `${IDENTITY}1`,
      age: 2 * GRACE,
      remove: async () => void removed.push('orphan'),
    }
    let passes = 0
    async function* list(): AsyncGenerator<ListedContent> {
      if (++passes === 1) throw new Error('The content store is away.')
      yield orphan
    }
    const search = createOrphanSearch({ list } as unknown as ContentStore, {
      grace: GRACE,
      readIdentity: () => IDENTITY,
      findKnown: () => new Set(),
    })
    await expect(search.step()).rejects.toThrow('The content store is away.')
    await search.step()
    expect(removed).toEqual(['orphan'])
    await search.step()
    expect(passes).toBe(2)
  })
})
