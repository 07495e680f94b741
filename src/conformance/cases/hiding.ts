import { isResource } from '../../stores/types.ts'
import { claim, claimContent, claimEqual, claimResource } from '../claims.ts'
import { binary, createBytes, pathsOf, put, readResource, remove, stream } from '../samples.ts'
import type { Case } from '../types.ts'

export const hiding: readonly Case[] = [
  {
    title: 'shows a hidden resource, with its content, only to reads that ask for it',
    async run({ store, path, content }) {
      const { version } = await put(store, path(1), content(1, path(1)))
      await remove(store, path(1), 'hide')
      const shown = await store.read(path(1))
      claim(shown !== undefined && !isResource(shown), 'A hidden resource looks like a tombstone to other reads.')
      claimEqual(shown.path, path(1), 'A tombstone carries its path.')
      const hidden = claimResource(await store.read(path(1), { hidden: true }), 'The hidden resource was not found.')
      claimEqual(hidden.hidden, true, 'A hidden resource is marked.')
      await claimContent(hidden, content(1, path(1)), 'The hidden resource has lost its content.')
      claim(hidden.version !== version, 'The hidden state has the version of the state before.')
    },
  },
  {
    title: 'treats a hidden resource as absent',
    async run({ store, path, content }) {
      await put(store, path(1), content(1, path(1)))
      await remove(store, path(1), 'hide')
      const hidden = claimResource(await store.read(path(1), { hidden: true }), 'The hidden resource was not found.')
      const attempts = [
        await store.write(path(1), content(2, path(1)), { expect: 'present' }),
        await store.write(path(1), content(2, path(1)), { expect: { version: hidden.version } }),
        await store.remove(path(1), { expect: 'present', mode: 'erase' }),
      ]
      for (const { outcome } of attempts) claimEqual(outcome, 'conflict', 'A hidden resource counts as absent.')
      const again = await remove(store, path(1))
      claimEqual(again.outcome, 'absent', 'A hidden resource counts as absent, so there is nothing to remove.')
      const still = claimResource(await store.read(path(1), { hidden: true }), 'The hidden resource is gone.')
      claimEqual(still.version, hidden.version, 'A refused call changed the hidden resource.')
    },
  },
  {
    title: 'makes the path visible again with the next write',
    async run({ store, path, collection, content }) {
      await put(store, path(1), content(1, path(1)))
      await remove(store, path(1), 'hide')
      const result = await store.write(path(1), content(2, path(1)), { expect: 'absent' })
      claimEqual(result.outcome, 'created', 'A hidden resource counts as absent, so the write creates.')
      for (const hidden of [true, false]) {
        const state = claimResource(await store.read(path(1), { hidden }), 'The new resource was not found.')
        claim(state.hidden !== true, 'The new resource is still marked as hidden.')
        await claimContent(state, content(2, path(1)), 'The new resource has other content.')
        claimEqual((await store.list(collection, { limit: 5, hidden })).items.length, 1, 'It is listed once.')
      }
    },
  },
  {
    title: 'lists hidden resources, marked and in their place, only when asked',
    async run({ store, path, collection, content }) {
      for (let name = 1; name <= 12; name++) await put(store, path(name), content(name, path(name)))
      for (const name of [2, 3, 7, 12]) await remove(store, path(name), 'hide')
      const visible = await store.list(collection, { limit: 20 })
      const visiblePaths = [1, 4, 5, 6, 8, 9, 10, 11].map(path)
      claimEqual(pathsOf(visible.items), visiblePaths, 'Hidden resources are not listed unasked.')
      const found: string[] = []
      for (let after: string | undefined; ; ) {
        const page = await store.list(collection, { limit: 3, hidden: true, after })
        for (const item of page.items) found.push(item.hidden === true ? `${item.path} hidden` : item.path)
        if (page.next === undefined) break
        after = page.next
      }
      const expected = Array.from(
        { length: 12 },
        (_, i) => path(i + 1) + ([2, 3, 7, 12].includes(i + 1) ? ' hidden' : ''),
      )
      claimEqual(found, expected, 'A listing with hidden resources has all of them, marked, in order.')
    },
  },
  {
    title: 'keeps large content of a hidden resource',
    needs: ['contents'],
    async run({ store, path }) {
      const bytes = createBytes(700_000, 8)
      await put(store, path(1), binary(stream(bytes, 65_536)))
      await remove(store, path(1), 'hide')
      const state = await store.read(path(1), { hidden: true })
      await claimContent(state, binary(bytes), 'The hidden resource has lost its content.')
    },
  },
  {
    title: 'gives the hidden state a version of its own, and tells of it in no conflict',
    async run({ store, path, content }) {
      await put(store, path(1), content(1, path(1)))
      const { version } = await readResource(store, path(1))
      await remove(store, path(1), 'hide')
      const hidden = claimResource(await store.read(path(1), { hidden: true }), 'The hidden resource was not found.')
      claim(hidden.version !== version, 'The hidden state has the version of the visible one.')
      for (const expect of ['present', { version }, { version: hidden.version }] as const) {
        const write = await store.write(path(1), content(2, path(1)), { expect })
        claim(write.outcome === 'conflict', 'A hidden resource counts as absent, and was replaced.')
        claim(!isResource(write.current), 'A conflict tells of a state that is hidden.')
        const removal = await store.remove(path(1), { expect, mode: 'erase' })
        claim(removal.outcome === 'conflict', 'A hidden resource counts as absent, and was removed.')
        claim(!isResource(removal.current), 'A conflict tells of a state that is hidden.')
      }
    },
  },
]
