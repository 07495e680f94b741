import type { StoredResource } from '../../stores/types.ts'
import { amid, create, nameOf, pause, put, remove } from '../calls.ts'
import { claim, claimEqual } from '../claims.ts'
import { createIndex, indexed, is, listUnder, walk } from '../lists.ts'
import { range } from '../samples.ts'
import { type Bench, type Case, it } from '../types.ts'

async function putMembers({ keep }: Bench, names: readonly number[], seed?: number): Promise<void> {
  for (const name of names) await keep(name, seed ?? name % 100)
}

/** The members that a walk through all pages sees; `between` runs after each page but the last. */
async function walkThrough(
  { store, collection }: Bench,
  limit: number,
  between: (page: number) => unknown,
): Promise<StoredResource[]> {
  const seen: StoredResource[] = []
  for await (const { items } of walk((after) => store.list(collection, { limit, after }), between)) seen.push(...items)
  return seen
}

/** Fails unless a walk has seen certain members once, and no member twice. */
function claimSeenOnce(items: readonly StoredResource[], names: readonly number[]): void {
  const seen = new Map<number, number>()
  for (const item of items) seen.set(Number(nameOf(item)), (seen.get(Number(nameOf(item))) ?? 0) + 1)
  for (const [name, count] of seen) claim(count === 1, `The walk has seen member ${name} ${count} times.`)
  for (const name of names) claim(seen.has(name), `Member ${name} was there all the time, and the walk has missed it.`)
}

export const walks: readonly Case[] = [
  it('sees every member once while members before the cursor are removed', async (bench) => {
    const { store, path } = bench
    await putMembers(bench, range(1, 30))
    const items = await walkThrough(bench, 4, (page) => remove(store, path(page + 1)))
    claimSeenOnce(items, range(8, 30))
  }),
  it('sees every member once while members are added before and after the cursor', async (bench) => {
    await putMembers(bench, range(100, 300, 10))
    const items = await walkThrough(bench, 3, (page) => putMembers(bench, [page + 1, 105 + page * 30], 1))
    claimSeenOnce(items, range(100, 300, 10))
  }),
  it('sees every member once while all of them are changed', async (bench) => {
    await putMembers(bench, range(1, 25))
    const items = await walkThrough(bench, 4, (page) => putMembers(bench, range(1, 25), page))
    claimSeenOnce(items, range(1, 25))
    claimEqual(items.length, 25, 'The walk has seen something that was never there.')
  }),
  it('sees every member once while members are removed and made again under the same name', async (bench) => {
    const { store, path } = bench
    await putMembers(bench, range(1, 24))
    const items = await walkThrough(bench, 5, async () => {
      for (const name of range(2, 24, 2)) {
        await remove(store, path(name))
        await putMembers(bench, [name], 50)
      }
    })
    claimSeenOnce(items, range(1, 24, 2))
  }),
  it('sees every lasting member once, in order, while many writers are at work', async (bench) => {
    const { store, collection, path, content, keep } = bench
    const lasting = range(10, 400, 10)
    await putMembers(bench, lasting)
    const write = async (writer: number, step: number) => {
      const name = ((writer * 97 + step * 31) % 40) * 10 + 1 + writer
      await keep(name, step % 100)
      if (step % 3 === 0) await remove(store, path(name))
      // The walk of a store whose pages take longer than its writes has an end, too.
      if (step % 35 === 0 && step < 700) await create(store, collection, (name) => content(1, name))
      // A store that answers at once must not keep the walker from its turn.
      if (step % 5 === 0) await pause()
    }
    await amid(4, write, async () => {
      for (const limit of [3, 7]) {
        const items = await walkThrough(bench, limit, pause)
        claimSeenOnce(items, lasting)
        const names = items.map((item) => Number(nameOf(item)))
        const ordered = names.toSorted((a, b) => a - b)
        claimEqual(names, ordered, 'The walk is not in the order of the names.')
      }
    })
  }),
]

const INDEX = createIndex('walks', ['a', 'b'])
const OPEN = is('b', 'open')

/** Writes members that change meanwhile: they come, match, match no more, move and go. */
async function stir({ store, path }: Bench, round: number): Promise<void> {
  for (let i = 0; i < 6; i++) {
    const name = 1000 + ((round * 5 + i * 3) % 24)
    const seed = round * 6 + i
    if (seed % 4 === 0) await remove(store, path(name))
    else await put(store, path(name), indexed(INDEX, { a: (seed * 11) % 60, b: seed % 3 === 0 ? 'done' : 'open' }))
  }
}

/** Orders in which members are walked through, and the place of a member whose value of `a` is given. */
const ORDERS: readonly (readonly [readonly string[], (a: number) => number])[] = [
  [['a'], (a) => a],
  [['-a'], (a) => -a],
  [['b', '-a'], (a) => -a],
  [[], () => 0],
]

/**
 * Writes members that match and keep their place.
 * @param rankOf the value of `a` of a member
 * @returns what fails unless a walk in each order sees them once, in order; others may move past it meanwhile
 */
async function fillLasting({ store, collection }: Bench, count: number, rankOf: (name: number) => number) {
  const list = listUnder(store, collection, INDEX)
  const lasting = range(1, count)
  await list.fill(lasting.map((name) => ({ a: rankOf(name), b: 'open' })))
  return async (limits: readonly number[], between: (page: number) => unknown): Promise<void> => {
    for (const [order, placeOf] of ORDERS) {
      const place = (name: number) => placeOf(rankOf(name))
      const expected = lasting.toSorted((x, y) => place(x) - place(y) || x - y)
      for (const limit of limits) {
        const names = await list.walkNames({ where: [OPEN], order, limit }, between)
        const seen = names.map(Number).filter((name) => lasting.includes(name))
        claimEqual(seen, expected, 'A walk sees every member that matches throughout exactly once, in order.')
      }
    }
  }
}

export const queryWalks: readonly Case[] = [
  it('sees every member that matches throughout exactly once, in order, whatever is written between two pages', async (bench) => {
    const claimWalks = await fillLasting(bench, 24, (name) => ((name * 7) % 12) * 5)
    await claimWalks([1, 4], (page) => stir(bench, page))
  }),
  it('sees every member that matches throughout exactly once while many writers are at work', async (bench) => {
    const { store, collection } = bench
    const claimWalks = await fillLasting(bench, 40, (name) => (name * 3) % 60)
    const write = async (writer: number, step: number) => {
      await stir(bench, step * 3 + writer)
      if (step % 3 === 0) await create(store, collection, indexed(INDEX, { a: step % 60, b: 'open' }))
      await pause()
    }
    await amid(3, write, () => claimWalks([7], pause))
  }),
]
