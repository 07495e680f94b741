import { claim, claimEqual, claimResource } from '../claims.ts'
import { create, put, remove, written } from '../samples.ts'
import type { Case } from '../types.ts'

export const versions: readonly Case[] = [
  {
    title: 'names every state with a version of 1 to 200 characters',
    async run({ store, path, content }) {
      for (const seed of [1, 2, 3]) {
        const { version } = await put(store, path(1), content(seed, path(1)))
        claim(typeof version === 'string', 'A version is text.')
        const isFit = version.length >= 1 && version.length <= 200
        claim(isFit, `The version ${JSON.stringify(version)} is too short or long.`)
      }
    },
  },
  {
    title: 'gives a new version to every write, also to one that changes nothing',
    async run({ store, path, content }) {
      const seen = new Set<string>()
      for (let i = 0; i < 50; i++) seen.add((await put(store, path(1), content(i % 2, path(1)))).version)
      claimEqual(seen.size, 50, 'A version was used for two states.')
    },
  },
  {
    title: 'never uses a version again after removal and re-creation with the same bytes',
    async run({ modes, store, path, content }) {
      const seen = new Set<string>()
      for (const mode of modes) {
        for (let i = 0; i < 5; i++) {
          const { version } = await put(store, path(1), content(1, path(1)))
          seen.add(version)
          await store.remove(path(1), { expect: { version }, mode })
          const stale = await store.write(path(1), content(2, path(1)), { expect: { version } })
          claimEqual(stale.outcome, 'conflict', 'A version of before the removal was still good for a write.')
        }
      }
      claimEqual(seen.size, 5 * modes.length, 'A version was used again after the resource had been removed.')
    },
  },
  {
    title: 'refuses a version of an earlier life of the resource',
    async run({ store, path, content }) {
      const first = await put(store, path(1), content(1, path(1)))
      await remove(store, path(1))
      const result = await store.write(path(1), content(1, path(1)), { expect: 'absent' })
      const second = written(result, 'The resource was gone, so the write had to happen.')
      const stale = await store.write(path(1), content(2, path(1)), { expect: { version: first.version } })
      claimEqual(stale.outcome, 'conflict', 'Removal and re-creation were not noticed (ABA).')
      const state = claimResource(await store.read(path(1)), 'The resource is gone.')
      claimEqual(state.version, second.version, 'A refused write changed the state.')
    },
  },
  {
    title: 'gives created members versions of their own',
    async run({ store, collection, content }) {
      const member = await create(store, collection, (name) => content(1, `${collection}/${name}`))
      const expect = { version: member.version }
      const result = await store.write(member.path, content(2, member.path), { expect })
      claimEqual(result.outcome, 'replaced', 'The version of a created member is not good for a write.')
    },
  },
]
