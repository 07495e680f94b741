import { setTimeout as sleep } from 'node:timers/promises'
import { isResource } from '../../stores/types.ts'
import { claim, claimContent, claimEqual, claimResource, claimStored, claimTombstone } from '../claims.ts'
import { put, range, remove, waitFor } from '../samples.ts'
import type { Case } from '../types.ts'

/** Milliseconds: long enough that a store that forgets too early shows it. */
const RETENTION = 1200

export const removal: readonly Case[] = [
  {
    title: 'removes what is there, returns what it was, and shows it no more',
    async run({ store, path, collection, content, modes }) {
      for (const [name, mode] of modes.entries()) {
        const given = content(name, path(name))
        const { version } = await put(store, path(name), given)
        const result = await remove(store, path(name), mode)
        claimEqual(result.outcome, 'removed', `A resource was there to be removed (${mode}).`)
        const gone = result.outcome === 'removed' ? result.resource : undefined
        claimEqual(gone?.version, version, 'The removal does not return the state that it removed.')
        await claimContent(gone, given, 'The removal returns other content.')
        claim(!isResource(await store.read(path(name))), `A removed resource can still be read (${mode}).`)
      }
      claimEqual((await store.list(collection, { limit: 10 })).items.length, 0, 'A removed resource is still listed.')
    },
  },
  {
    title: 'finds nothing to remove where nothing is',
    async run({ store, path, content, modes }) {
      for (const mode of modes) {
        const result = await remove(store, path(9), mode)
        claimEqual(result, { outcome: 'absent', current: undefined }, 'Nothing was there to be removed.')
      }
      await put(store, path(1), content(1, path(1)))
      await remove(store, path(1))
      const again = await remove(store, path(1))
      claimEqual(again.outcome, 'absent', 'A resource was removed twice.')
      claimEqual(await store.read(path(1)), undefined, 'Erasing must leave nothing.')
    },
  },
  {
    title: 'expecting a version, removes that state and no other',
    async run({ store, path, content }) {
      const first = await put(store, path(1), content(1, path(1)))
      const second = await put(store, path(1), content(2, path(1)))
      const refused = await store.remove(path(1), { expect: { version: first.version }, mode: 'erase' })
      claimEqual(refused.outcome, 'conflict', 'A removal that expected a version of the past happened.')
      const shown = claimResource(
        refused.outcome === 'conflict' ? refused.current : undefined,
        'No state was returned.',
      )
      claimEqual(shown.version, second.version, 'A refused removal returns another state than the current one.')
      claim(isResource(await store.read(path(1))), 'A refused removal removed the resource.')
      const done = await store.remove(path(1), { expect: { version: second.version }, mode: 'erase' })
      claimEqual(done.outcome, 'removed', 'The version was the current one, so the removal had to happen.')
    },
  },
  {
    title: "expecting 'present' or a version, refuses where nothing is",
    async run({ store, path, modes }) {
      for (const [i, expect] of (['present', { version: 'nonesuch' }] as const).entries()) {
        const result = await store.remove(path(1), { expect, mode: modes[i % modes.length]! })
        claimEqual(result, { outcome: 'conflict', current: undefined }, 'The expected resource was not there.')
      }
      claimEqual(await store.read(path(1)), undefined, 'A refused removal left a tombstone.')
    },
  },
  {
    title: 'leaves a tombstone that says when, and that counts as absent',
    needs: ['tombstones'],
    async run({ store, path, content }) {
      const before = Date.now()
      await put(store, path(1), content(1, path(1)))
      await remove(store, path(1), 'tombstone')
      const state = await store.read(path(1))
      claim(state !== undefined && !isResource(state), 'The removal left no tombstone.')
      claimEqual(state.removed, true, 'A tombstone says that the resource was removed.')
      claimEqual(state.path, path(1), 'A tombstone carries its path.')
      claim(
        Number.isInteger(state.removedAt) && Math.abs(state.removedAt - before) < 600_000,
        `A tombstone says when the resource was removed, in milliseconds; ${state.removedAt} is not that time.`,
      )
      const again = await remove(store, path(1), 'tombstone')
      claimEqual(again, { outcome: 'absent', current: state }, 'A second removal tells of the tombstone.')
      const present = await store.write(path(1), content(2, path(1)), { expect: 'present' })
      claimEqual(present, { outcome: 'conflict', current: state }, 'A tombstone counts as absent.')
      const absent = await store.write(path(1), content(2, path(1)), { expect: 'absent' })
      claimEqual(absent.outcome, 'created', 'A tombstone counts as absent, so the write had to happen.')
      await claimStored(store, path(1), content(2, path(1)), 'The new resource has other content.')
    },
  },
  {
    title: 'remembers every tombstone, each with its own path, and not the last ones only',
    needs: ['tombstones'],
    async run({ store, path, content }) {
      const names = range(1, 30)
      for (const name of names) await put(store, path(name), content(name, path(name)))
      for (const name of names) await remove(store, path(name), 'tombstone')
      // Neither what is written nor what is erased elsewhere is about them.
      await put(store, path(100), content(1, path(100)))
      await remove(store, path(100))
      for (const name of names) claimTombstone(await store.read(path(name)), path(name), 'A tombstone was forgotten.')
    },
  },
  {
    title: 'keeps a tombstone for the whole of its retention, whatever becomes of others',
    needs: ['tombstones'],
    async run({ store, path, content, reopen }) {
      const other = await reopen()
      for (const name of [1, 2, 3, 4, 5]) await put(store, path(name), content(name, path(name)))
      const begin = performance.now()
      await store.remove(path(1), { expect: 'any', mode: 'tombstone', retention: RETENTION })
      await store.remove(path(2), { expect: 'any', mode: 'tombstone', retention: 60_000 })
      await remove(store, path(3), 'tombstone')
      await store.remove(path(4), { expect: 'any', mode: 'tombstone', retention: 20 })
      for (let round = 0; performance.now() - begin < RETENTION; round++) {
        await put(store, path(5), content(round, path(5)))
        for (const name of [1, 2, 3]) {
          for (const reader of [store, other]) {
            const state = await reader.read(path(name))
            const time = performance.now() - begin
            // The clock of a database may differ from this one by a little.
            if (name === 1 && time > 0.9 * RETENTION) continue
            const after = `after ${Math.round(time)} ms`
            claimTombstone(state, path(name), `A tombstone was forgotten ${after}, before its retention was over.`)
          }
        }
        await sleep(50)
      }
      const isGone = (state: unknown) => state === undefined
      const sentence = `The tombstone outlived its retention of ${RETENTION} ms.`
      await waitFor(async () => store.read(path(1)), isGone, sentence)
    },
  },
  {
    title: 'forgets a tombstone after its retention',
    needs: ['tombstones'],
    async run({ store, path, content }) {
      await put(store, path(1), content(1, path(1)))
      await put(store, path(2), content(2, path(2)))
      await store.remove(path(1), { expect: 'any', mode: 'tombstone', retention: 20 })
      await store.remove(path(2), { expect: 'any', mode: 'tombstone', retention: 60_000 })
      const isGone = (state: unknown) => state === undefined
      await waitFor(async () => store.read(path(1)), isGone, 'The tombstone outlived its retention of 20 ms.')
      claim((await store.read(path(2))) !== undefined, 'A tombstone was forgotten before its retention was over.')
      const result = await store.write(path(1), content(3, path(1)), { expect: 'absent' })
      claimEqual(result.outcome, 'created', 'A forgotten tombstone is in the way of a write.')
    },
  },
]
