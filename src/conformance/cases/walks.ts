import type { StoredResource } from '../../stores/types.ts'
import { claim, claimEqual } from '../claims.ts'
import { create, nameOf, pause, put, remove, times } from '../samples.ts'
import type { Bench, Case } from '../types.ts'

/** Walks through all pages; `between` runs after every page. */
async function walk(
  { store, collection }: Bench,
  limit: number,
  between: (page: number) => unknown,
): Promise<StoredResource[]> {
  const items: StoredResource[] = []
  for (let after: string | undefined, pages = 0; ; pages++) {
    claim(pages < 1000, 'The walk through the pages never ends.')
    const page = await store.list(collection, { limit, after })
    items.push(...page.items)
    if (page.next === undefined) return items
    after = page.next
    await between(pages)
  }
}

/** Fails unless a walk has seen certain members once, and no member twice. */
function claimSeenOnce(items: readonly StoredResource[], names: readonly number[]): void {
  const seen = new Map<number, number>()
  for (const item of items) seen.set(Number(nameOf(item)), (seen.get(Number(nameOf(item))) ?? 0) + 1)
  for (const [name, count] of seen) claim(count === 1, `The walk has seen member ${name} ${count} times.`)
  for (const name of names) claim(seen.has(name), `Member ${name} was there all the time, and the walk has missed it.`)
}

const range = (from: number, to: number, step = 1): number[] =>
  Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step)

export const walks: readonly Case[] = [
  {
    title: 'sees every member once while members before the cursor are removed',
    async run(bench) {
      const { store, path, content } = bench
      for (const name of range(1, 30)) await put(store, path(name), content(name, path(name)))
      const items = await walk(bench, 4, (page) => remove(store, path(page + 1)))
      claimSeenOnce(items, range(8, 30))
    },
  },
  {
    title: 'sees every member once while members are added before and after the cursor',
    async run(bench) {
      const { store, path, content } = bench
      for (const name of range(100, 300, 10)) await put(store, path(name), content(name % 100, path(name)))
      const items = await walk(bench, 3, async (page) => {
        for (const name of [page + 1, 105 + page * 30]) await put(store, path(name), content(1, path(name)))
      })
      claimSeenOnce(items, range(100, 300, 10))
    },
  },
  {
    title: 'sees every member once while all of them are changed',
    async run(bench) {
      const { store, path, content } = bench
      for (const name of range(1, 25)) await put(store, path(name), content(name, path(name)))
      const items = await walk(bench, 4, async (page) => {
        for (const name of range(1, 25)) await put(store, path(name), content(page, path(name)))
      })
      claimSeenOnce(items, range(1, 25))
      claimEqual(items.length, 25, 'The walk has seen something that was never there.')
    },
  },
  {
    title: 'sees every member once while members are removed and made again under the same name',
    async run(bench) {
      const { store, path, content } = bench
      for (const name of range(1, 24)) await put(store, path(name), content(name, path(name)))
      const items = await walk(bench, 5, async () => {
        for (const name of range(2, 24, 2)) {
          await remove(store, path(name))
          await put(store, path(name), content(50, path(name)))
        }
      })
      claimSeenOnce(items, range(1, 24, 2))
    },
  },
  {
    title: 'sees every lasting member once, in order, while many writers are at work',
    async run(bench) {
      const { store, collection, path, content } = bench
      const lasting = range(10, 400, 10)
      for (const name of lasting) await put(store, path(name), content(name % 100, path(name)))
      let isOver = false
      const writers = times(4, async (writer) => {
        for (let i = 0; !isOver; i++) {
          const name = ((writer * 97 + i * 31) % 40) * 10 + 1 + writer
          await put(store, path(name), content(i % 100, path(name)))
          if (i % 3 === 0) await remove(store, path(name))
          if (i % 7 === 0) await create(store, collection, (name) => content(1, path(name)))
          // A store that answers at once must not keep the walker from its turn.
          if (i % 5 === 0) await pause()
        }
      })
      try {
        for (const limit of [3, 7]) {
          const items = await walk(bench, limit, pause)
          claimSeenOnce(items, lasting)
          const names = items.map((item) => Number(nameOf(item)))
          claimEqual(
            names,
            [...names].sort((a, b) => a - b),
            'The walk is not in the order of the names.',
          )
        }
      } finally {
        isOver = true
        await writers
      }
    },
  },
]
