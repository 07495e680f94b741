import type { Condition } from '../../stores/lists.ts'
import { claimEqual } from '../claims.ts'
import { createIndex, fill, indexed, walkNames } from '../query-samples.ts'
import { create, pause, put, times } from '../samples.ts'
import type { Bench, Case } from '../types.ts'

const NEEDS = ['queries', 'contents'] as const
const INDEX = createIndex('walks', ['a', 'b'])
const OPEN: Condition = { property: 'b', operator: 'in', values: ['open'] }

/** Fails unless a walk has seen the members once that have kept their place, in order. Others may move past it. */
function claimWalk(names: readonly string[], lasting: readonly number[], placeOf: (name: number) => number): void {
  const seen = names.map(Number).filter((name) => lasting.includes(name))
  const expected = lasting.toSorted((x, y) => placeOf(x) - placeOf(y) || x - y)
  claimEqual(seen, expected, 'A walk sees every member that matches throughout exactly once, in order.')
}

/** Writes members that change meanwhile: they come, match, match no more, move and go. */
async function stir({ store, path }: Bench, round: number): Promise<void> {
  for (let i = 0; i < 6; i++) {
    const name = 1000 + ((round * 5 + i * 3) % 24)
    const seed = round * 6 + i
    if (seed % 4 === 0) await store.remove(path(name), { expect: 'any', mode: 'erase' })
    else await put(store, path(name), indexed(INDEX, { a: (seed * 11) % 60, b: seed % 3 === 0 ? 'done' : 'open' }))
  }
}

/** Orders in which members are walked through, and the place of a member whose value of `a` is given. */
const WALKS: readonly (readonly [readonly string[], (a: number) => number])[] = [
  [['a'], (a) => a],
  [['-a'], (a) => -a],
  [['b', '-a'], (a) => -a],
  [[], () => 0],
]

export const queryWalks: readonly Case[] = [
  {
    title: 'sees every member that matches throughout exactly once, in order, whatever is written between two pages',
    needs: NEEDS,
    async run(bench) {
      const { store, collection } = bench
      const lasting = Array.from({ length: 24 }, (_, i) => i + 1)
      const rankOf = (name: number) => ((name * 7) % 12) * 5
      await fill(
        store,
        collection,
        INDEX,
        lasting.map((name) => ({ a: rankOf(name), b: 'open' })),
      )
      for (const [order, placeOf] of WALKS) {
        for (const limit of [1, 4]) {
          let round = 0
          const question = { where: [OPEN], order, limit }
          const names = await walkNames(store, collection, INDEX, question, () => stir(bench, round++))
          claimWalk(names, lasting, (name) => placeOf(rankOf(name)))
        }
      }
    },
  },
  {
    title: 'sees every member that matches throughout exactly once while many writers are at work',
    needs: NEEDS,
    async run(bench) {
      const { store, collection } = bench
      const lasting = Array.from({ length: 40 }, (_, i) => i + 1)
      const rankOf = (name: number) => (name * 3) % 60
      await fill(
        store,
        collection,
        INDEX,
        lasting.map((name) => ({ a: rankOf(name), b: 'open' })),
      )
      let isOver = false
      const writers = times(3, async (writer) => {
        for (let i = 0; !isOver; i++) {
          await stir(bench, i * 3 + writer)
          if (i % 3 === 0) await create(store, collection, indexed(INDEX, { a: i % 60, b: 'open' }))
          await pause()
        }
      })
      try {
        for (const [order, placeOf] of WALKS) {
          const names = await walkNames(store, collection, INDEX, { where: [OPEN], order, limit: 7 }, pause)
          claimWalk(names, lasting, (name) => placeOf(rankOf(name)))
        }
      } finally {
        isOver = true
        await writers
      }
    },
  },
]
