import type { Expectation } from '../../stores/types.ts'
import { claim, claimContent, claimEqual, claimResource, claimStored } from '../claims.ts'
import { factsOf, put, readResource, written } from '../samples.ts'
import type { Bench, Case } from '../types.ts'

/** Fails unless a write is refused, tells the current state, and changes nothing. */
async function claimRefused({ store, content }: Bench, path: string, expect: Expectation, why: string): Promise<void> {
  const before = await store.read(path)
  const result = await store.write(path, content(77, path), { expect })
  claimEqual(result.outcome, 'conflict', why)
  const current = result.outcome === 'conflict' ? result.current : undefined
  const after = await store.read(path)
  if (before === undefined) {
    claimEqual(current, undefined, 'A refused write tells of a state although there is none.')
    claimEqual(after, undefined, 'A refused write has left something.')
    return
  }
  const { version } = claimResource(before, 'The resource was not found.')
  claimEqual(claimResource(after, 'A refused write removed it.').version, version, 'A refused write changed the state.')
  const shown = claimResource(current, 'A refused write does not return the current state.')
  claimEqual(shown.version, version, 'A refused write returns another state than the current one.')
}

export const writing: readonly Case[] = [
  {
    title: 'creates, then replaces, and says which',
    async run({ store, path, content }) {
      const first = await store.write(path(1), content(1, path(1)), { expect: 'any' })
      claimEqual(first.outcome, 'created', 'The first write of a path creates.')
      const second = await store.write(path(1), content(2, path(1)), { expect: 'any' })
      claimEqual(second.outcome, 'replaced', 'The second write of a path replaces.')
      await claimStored(store, path(1), content(2, path(1)), 'The second write was not kept.')
    },
  },
  {
    title: 'returns from a write the state that is read afterwards',
    async run({ store, path, content }) {
      for (const seed of [1, 2, 3]) {
        const given = content(seed, path(1))
        const result = written(await store.write(path(1), given, { expect: 'any' }), 'The write was refused.')
        const found = await readResource(store, path(1))
        claimEqual(factsOf(found), factsOf(result), 'The result of the write and the next read tell different facts.')
        await claimContent(result, given, 'The result of the write has other content than was given.')
      }
    },
  },
  {
    title: "expecting 'absent', creates once and refuses the second time",
    async run(bench) {
      const { store, path, content } = bench
      const result = await store.write(path(1), content(1, path(1)), { expect: 'absent' })
      claimEqual(result.outcome, 'created', 'Nothing was there, so the write had to happen.')
      await claimRefused(bench, path(1), 'absent', 'A resource was overwritten by a write that expected none.')
    },
  },
  {
    title: "expecting 'present', refuses to create and replaces what is there",
    async run(bench) {
      const { store, path, content } = bench
      await claimRefused(bench, path(1), 'present', 'A write that expected a resource created one.')
      await put(store, path(1), content(1, path(1)))
      const result = await store.write(path(1), content(2, path(1)), { expect: 'present' })
      claimEqual(result.outcome, 'replaced', 'A resource was there, so the write had to happen.')
    },
  },
  {
    title: 'expecting a version, replaces that state and no other',
    async run(bench) {
      const { store, path, content } = bench
      await claimRefused(bench, path(1), { version: 'nonesuch' }, 'A write that expected a version created a resource.')
      const first = await put(store, path(1), content(1, path(1)))
      const result = await store.write(path(1), content(2, path(1)), { expect: { version: first.version } })
      claimEqual(result.outcome, 'replaced', 'The version was the current one, so the write had to happen.')
      const stale = { version: first.version }
      await claimRefused(bench, path(1), stale, 'A write that expected a version of the past happened.')
      await claimRefused(bench, path(1), { version: '' }, 'A write that expected the empty version happened.')
      await claimStored(store, path(1), content(2, path(1)), 'The content is not that of the last write.')
    },
  },
  {
    title: 'leaves other paths alone',
    async run({ store, path, content }) {
      const versions = new Map<number, string>()
      for (const name of [1, 2, 3, 12])
        versions.set(name, (await put(store, path(name), content(name, path(name)))).version)
      await put(store, path(2), content(20, path(2)))
      for (const name of [1, 3, 12]) {
        const state = claimResource(await store.read(path(name)), 'A write removed another resource.')
        claimEqual(state.version, versions.get(name), 'A write changed another resource.')
      }
    },
  },
  {
    title: 'refuses to begin when the signal is aborted already',
    async run({ store, path, content }) {
      const signal = AbortSignal.abort(new Error('gone'))
      const write = async () => store.write(path(1), content(1, path(1)), { expect: 'any', signal })
      const isRefused = await write().then(
        () => false,
        () => true,
      )
      const isSound = !isRefused || (await store.read(path(1))) === undefined
      claim(isSound, 'A write that failed because its signal was aborted has happened all the same.')
    },
  },
  {
    title: 'expecting a version of another path, refuses',
    async run(bench) {
      const { store, path, content } = bench
      const own = await put(store, path(1), content(1, path(1)))
      const other = await put(store, path(2), content(2, path(2)))
      // Paths may count alike: then the versions prove nothing.
      if (own.version === other.version) return
      await claimRefused(bench, path(1), { version: other.version }, 'A version of another path was good for a write.')
      const removed = await store.remove(path(1), { expect: { version: other.version }, mode: 'erase' })
      claimEqual(removed.outcome, 'conflict', 'A version of another path was good for a removal.')
    },
  },
]
