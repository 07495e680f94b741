import type { StagedBody } from '../../stores/types.ts'
import { claim, claimEqual, claimFails, claimStored } from '../claims.ts'
import { binary, createBytes, created, put, stage, text } from '../samples.ts'
import type { Case } from '../types.ts'

export const staging: readonly Case[] = [
  {
    title: 'takes content in, tells its size, and shows it nowhere',
    async run({ store, collection }) {
      for (const size of [0, 10, 70_000, 1_500_000]) {
        const staged = await stage(store, createBytes(size, 1))
        claimEqual([staged.staged, staged.size], [true, size], 'What was staged tells another size.')
        claimEqual((await store.list(collection, { limit: 5 })).items.length, 0, 'Staged content shows in a listing.')
        await staged.discard()
      }
    },
  },
  {
    title: 'writes staged content at a path, for a new member, and at related paths',
    needs: ['related'],
    async run({ store, collection, path }) {
      for (const size of [0, 10, 70_000, 1_500_000]) {
        const bytes = createBytes(size, size)
        const { outcome } = await store.write(path(1), binary(await stage(store, bytes)), { expect: 'any' })
        claim(outcome !== 'conflict', 'The write was refused.')
        await claimStored(store, path(1), binary(bytes), 'Staged content came back changed.')
        const staged = await stage(store, bytes)
        const result = await store.create(collection, text('item'), {
          related: (name) => [{ path: `${path(name)}0`, content: binary(staged) }],
        })
        await claimStored(store, `${created(result).path}0`, binary(bytes), 'Staged content came back changed.')
      }
    },
  },
  {
    title: 'keeps staged content after a conflict, for another try',
    async run({ store, path }) {
      for (const size of [10, 900_000]) {
        const bytes = createBytes(size, 3)
        const staged = await stage(store, bytes)
        const before = await put(store, path(1), text('before'))
        const refused = await store.write(path(1), binary(staged), { expect: { version: 'nonesuch' } })
        claimEqual(refused.outcome, 'conflict', 'The write should have been refused.')
        const done = await store.write(path(1), binary(staged), { expect: { version: before.version } })
        claimEqual(done.outcome, 'replaced', 'The version was the current one, so the write had to happen.')
        await claimStored(store, path(1), binary(bytes), 'Staged content came back changed.')
      }
    },
  },
  {
    title: 'keeps what was written although its staged content is given up afterwards',
    async run({ store, path }) {
      for (const size of [10, 900_000]) {
        const bytes = createBytes(size, 4)
        const staged = await stage(store, bytes)
        await store.write(path(1), binary(staged), { expect: 'any' })
        await staged.discard()
        await staged.discard()
        await claimStored(store, path(1), binary(bytes), 'Giving up staged content took a resource along.')
      }
    },
  },
  {
    title: 'refuses staged content of somebody else',
    async run({ store, path }) {
      const foreign: StagedBody = { staged: true, size: 3, discard() {} }
      const write = async () => store.write(path(1), binary(foreign), { expect: 'any' })
      await claimFails(write, 'Content was written that the store has never seen.')
      claimEqual(await store.read(path(1)), undefined, 'A write that failed has left something.')
    },
  },
]
