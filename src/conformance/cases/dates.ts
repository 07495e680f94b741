import { setTimeout as sleep } from 'node:timers/promises'
import type { StoredResource } from '../../stores/types.ts'
import { claim, claimEqual } from '../claims.ts'
import { put, readResource, remove } from '../samples.ts'
import type { Bench, Case } from '../types.ts'

function secondOf({ lastModified }: StoredResource): number {
  return Math.floor(lastModified! / 1000)
}

/** Two states of one path that began in the same second of the store's clock. */
async function putTwice(
  { store, path, content }: Bench,
  between: (path: string) => unknown,
): Promise<readonly [StoredResource, StoredResource]> {
  for (let name = 1; name < 50; name++) {
    const first = await put(store, path(name), content(1, path(name)))
    await between(path(name))
    const second = await put(store, path(name), content(2, path(name)))
    if (secondOf(first) === secondOf(second)) return [first, second]
  }
  throw new Error('Two writes in a row never fell into the same second.')
}

export const dates: readonly Case[] = [
  {
    title: 'tells when a state began, in milliseconds',
    async run({ store, path, content }) {
      const before = Date.now()
      const { lastModified } = await put(store, path(1), content(1, path(1)))
      claim(Number.isInteger(lastModified), `A date is a whole number of milliseconds; ${lastModified} is not.`)
      claim(Math.abs(lastModified! - before) < 600_000, `The state began now; ${lastModified} is not that time.`)
      const found = await readResource(store, path(1))
      claimEqual(found.lastModified, lastModified, 'The read tells another date than the write.')
    },
  },
  {
    title: 'never lets the date of a resource go back',
    async run({ store, path, content }) {
      let last = 0
      for (let i = 0; i < 30; i++) {
        const { lastModified } = await put(store, path(1), content(i, path(1)))
        claim(lastModified! >= last, 'A later state has an earlier date.')
        last = lastModified!
      }
    },
  },
  {
    title: 'calls a date strong while the resource changed once in that second, and only then',
    async run(bench) {
      const [first, second] = await putTwice(bench, () => {})
      claimEqual(first.dateIsStrong, true, 'The date of a first state is strong.')
      claimEqual(second.dateIsStrong, false, 'Two states have this date, and yet it is called strong.')
      const found = await readResource(bench.store, second.path)
      claimEqual(found.dateIsStrong, false, 'The read calls strong what the write did not.')
      await sleep(1000 - (second.lastModified! % 1000) + 5)
      const third = await put(bench.store, second.path, bench.content(3, second.path))
      claimEqual(third.dateIsStrong, true, 'The only state of a second has a strong date.')
    },
  },
  {
    title: 'does not call a date strong when the resource was removed and made again in that second',
    async run(bench) {
      for (const mode of bench.modes) {
        const [, second] = await putTwice(bench, (path) => remove(bench.store, path, mode))
        claimEqual(second.dateIsStrong, false, `Two states have this date, one of before the removal (${mode}).`)
      }
    },
  },
]
