import { setTimeout as sleep } from 'node:timers/promises'
import type { Condition } from '../../stores/lists.ts'
import { claimEqual } from '../claims.ts'
import {
  ask,
  claimFound,
  createIndex,
  createMembers,
  fill,
  indexed,
  namesWith,
  plain,
  slowDown,
  tryAsk,
} from '../query-samples.ts'
import { put, times } from '../samples.ts'
import type { Case } from '../types.ts'

const NEEDS = ['queries', 'contents', 'durable'] as const
const PROPERTIES = ['a', 'b']

const is = (property: string, value: string | number): Condition => ({ property, operator: 'in', values: [value] })

export const sharedIndexing: readonly Case[] = [
  {
    title: 'finds in every process what another one has written, with its values or without',
    needs: NEEDS,
    async run({ store, collection, path, reopen }) {
      const index = createIndex('first', PROPERTIES)
      const other = await reopen()
      await fill(store, collection, index, createMembers(10))
      const claimBoth = async (value: number, expected: readonly number[], sentence: string) => {
        for (const one of [store, other, store])
          await claimFound(one, collection, index, { where: [is('a', value)] }, expected, sentence)
      }
      await claimBoth(2, [3, 8], 'A query finds what another process has written.')
      await put(other, path(3), indexed(index, { a: 4 }))
      await claimBoth(2, [8], 'A query finds what another process has written.')
      await put(other, path(4), plain({ a: 2 }))
      await claimBoth(2, [4, 8], 'A query finds what another process has written without values.')
      await put(await reopen(), path(8), plain({ a: 60 }))
      await claimBoth(2, [4], 'A query finds what another process has written without values.')
      await store.remove(path(4), { expect: 'any', mode: 'erase' })
      await claimBoth(2, [], 'A query finds nothing that another process has removed.')
    },
  },
  {
    title: 'goes on with the indexing of members after a sudden end, and among several processes',
    needs: NEEDS,
    async run({ store, collection, path, crash, reopen }) {
      await fill(store, collection, undefined, createMembers(60))
      const quick = createIndex('first', PROPERTIES)
      await tryAsk(store, collection, slowDown(quick, 5), {})
      await put(store, path(3), plain({ a: 77 }))
      await sleep(40)
      const stores = [await crash(), await reopen()]
      const pages = await times(4, (i) => ask(stores[i % 2]!, collection, slowDown(quick, i), { count: true }))
      for (const { total } of pages) claimEqual(total, 60, 'A query was answered before all members were indexed.')
      for (const one of stores) {
        const sentence = 'After a sudden end in its midst, indexing leaves out no member.'
        await claimFound(one, collection, quick, { where: [is('a', 2)] }, namesWith(60, 2).slice(1), sentence)
        await claimFound(one, collection, quick, { where: [is('a', 77)] }, [3], sentence)
      }
    },
  },
]
