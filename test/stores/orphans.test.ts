import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ContentStore, ListedContent } from '../../src/contents/types.ts'
import { createOrphanSearch } from '../../src/stores/sql/beside.ts'

const GRACE = 3_600_000
const IDENTITY = '0123456789abcdef'

afterEach(() => {
  vi.useRealTimers()
})

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
    const ledger = { readIdentity: () => IDENTITY, findKnown: () => new Set<string>() }
    const search = createOrphanSearch({ list } as unknown as ContentStore, ledger, GRACE)
    await expect(search.step()).rejects.toThrow('The content store is away.')
    await search.step()
    expect(removed).toEqual(['orphan'])
    await search.step()
    expect(passes).toBe(2)
  })

  it('removes what is older than the grace period, of this database, and without a row; nothing else', async () => {
    const { removed, content, search } = createSearch([
      ['young', GRACE],
      ['old', GRACE + 1],
      ['known', 2 * GRACE],
    ])
    content.push(toContent('fedcba98765432100', 2 * GRACE, removed))
    await search.step()
    expect(removed).toEqual([`${IDENTITY}old`])
  })

  it('looks through the contents again after the grace period, and not before', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const { removed, content, search } = createSearch([['first', 2 * GRACE]])
    await search.step()
    content.push(toContent(`${IDENTITY}second`, 2 * GRACE, removed))
    vi.advanceTimersByTime(GRACE - 1)
    await search.step()
    expect(removed).toEqual([`${IDENTITY}first`])
    vi.advanceTimersByTime(1)
    await search.step()
    expect(removed).toContain(`${IDENTITY}second`)
  })

  it('goes on in the next step where a step has ended, after a thousand keys', async () => {
    const all = Array.from({ length: 2500 }, (_, i): [string, number] => [String(i), 2 * GRACE])
    const { removed, search } = createSearch(all)
    const counts: number[] = []
    for (let step = 0; step < 5; step++) {
      await search.step()
      counts.push(removed.length)
    }
    expect(counts).toEqual([1000, 2000, 2500, 2500, 2500])
    expect(new Set(removed).size).toBe(2500)
  })

  it('removes both that are under one key: an object, and an upload that was not completed', async () => {
    const all = Array.from({ length: 1000 }, (_, i): [string, number] => [String(i), 2 * GRACE])
    const { removed, search } = createSearch([...all, ['7', 2 * GRACE]])
    for (const _ of ['objects', 'uploads']) await search.step()
    expect(removed.filter((key) => key === `${IDENTITY}7`)).toHaveLength(2)
  })

  it('passes over what could not be removed until it has looked at all, so that it keeps no other content waiting', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const { content, removed, search } = createSearch(Array.from({ length: 1200 }, (_, i) => [String(i), 2 * GRACE]))
    const attempts = { first: 0, second: 0 }
    const refuse = (name: keyof typeof attempts) => async () => {
      attempts[name]++
      throw new Error('The object is locked.')
    }
    content[0] = { ...content[0]!, remove: refuse('first') }
    content[1] = { ...content[1]!, remove: refuse('second') }
    for (let step = 0; step < 2; step++) await expect(search.step()).rejects.toThrow('The object is locked.')
    await search.step()
    expect(removed).toHaveLength(998)
    await search.step()
    expect(removed).toHaveLength(1198)
    expect(attempts).toEqual({ first: 1, second: 1 })
    vi.advanceTimersByTime(GRACE)
    await expect(search.step()).rejects.toThrow('The object is locked.')
    expect(attempts).toEqual({ first: 2, second: 1 })
  })

  it('ends its list when it is closed, and when a removal fails, which it passes on', async () => {
    const all = Array.from({ length: 1500 }, (_, i): [string, number] => [String(i), 2 * GRACE])
    for (const fails of [false, true]) {
      const { content, ends, search } = createSearch(all)
      if (fails) content[900] = { ...content[900]!, remove: () => Promise.reject(new Error('The removal failed.')) }
      if (fails) await expect(search.step()).rejects.toThrow('The removal failed.')
      else await search.step()
      expect(ends()).toBe(fails ? 1 : 0)
      await search.close()
      expect(ends()).toBe(1)
    }
  })
})

function toContent(key: string, age: number, removed: string[]): ListedContent {
  return {
    key,
    age,
    async remove() {
      // Not at once, as no content store does.
      await new Promise(setImmediate)
      removed.push(key)
    },
  }
}

/** Searches through keys of this database; the database knows the one that ends with "known". */
function createSearch(names: readonly (readonly [name: string, age: number])[]) {
  const removed: string[] = []
  const content = names.map(([name, age]) => toContent(IDENTITY + name, age, removed))
  let ends = 0
  async function* list(): AsyncGenerator<ListedContent> {
    try {
      yield* content
    } finally {
      ends++
    }
  }
  const findKnown = (keys: readonly string[]) => new Set(keys.filter((key) => key.endsWith('known')))
  const ledger = { readIdentity: () => IDENTITY, findKnown }
  const search = createOrphanSearch({ list } as unknown as ContentStore, ledger, GRACE)
  return { removed, content, search, ends: () => ends }
}
