import { describe, expect, it } from 'vitest'
import type { ContentStore } from '../../src/contents/types.ts'
import { testContents } from '../../src/testing.ts'
import { MUTANTS, memoryContents } from './mutants.ts'

/** Runs the kit without a test runner. */
async function runKit(create: () => ContentStore, only?: string) {
  const cases: { title: string; run: () => Promise<void> }[] = []
  testContents('the content store', () => ({ contents: create() }), {
    describe: (_, define) => define(),
    it: (title, run) => cases.push({ title, run }),
    largest: 2_000_000,
  })
  const failures = new Map<string, unknown>()
  for (const { title, run } of cases) {
    if (only !== undefined && title !== only) continue
    await run().catch((error: unknown) => failures.set(title, error))
  }
  return { titles: cases.map(({ title }) => title), failures }
}

describe('testContents', () => {
  it('finds no fault with a content store that keeps the contract', async () => {
    const { titles, failures } = await runKit(() => memoryContents())
    expect(failures).toEqual(new Map())
    expect(new Set(titles).size).toBe(titles.length)
  })

  for (const [name, create, title] of MUTANTS) {
    it(`fails a content store that ${name}: "${title}"`, async () => {
      const { failures } = await runKit(create, title)
      expect([...failures.keys()]).toEqual([title])
      expect(failures.get(title)).toMatchObject({ message: expect.stringMatching(/^[A-Z].*[.]$/s) })
    })
  }

  it('has a mutant for every case that a store can fail alone', async () => {
    const { titles } = await runKit(() => memoryContents(), 'none')
    const found = new Set(MUTANTS.map(([, , title]) => title))
    expect(titles.filter((title) => !found.has(title))).toEqual([
      'keeps many contents apart that are put and read at once',
      'shows content to every process as soon as it is kept',
      'ends a read when the reader leaves, and closes what it has opened',
    ])
  })

  it('closes what belongs to a content store after every case', async () => {
    let [made, closed] = [0, 0]
    const runs: (() => Promise<void>)[] = []
    const create = () => ({ contents: memoryContents(), close: () => void closed++, made: made++ })
    testContents('x', create, { describe: (_, define) => define(), it: (_, run) => runs.push(run), largest: 2_000_000 })
    for (const run of runs) await run()
    expect([made, closed]).toEqual([runs.length, runs.length])
  })

  it('refuses an option that it does not have', () => {
    const options = { describe: () => {}, it: () => {}, large: 5 } as object
    expect(() => testContents('x', () => ({ contents: memoryContents() }), options)).toThrow(/has no option "large"/)
  })
})
