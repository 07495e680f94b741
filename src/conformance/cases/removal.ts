import { setTimeout as sleep } from 'node:timers/promises'
import { isResource } from '../../stores/rules.ts'
import type { ResourceStore, StoredResource } from '../../stores/types.ts'
import { factsOf, pathsOf, put, readResource, remove, saidBy, waitUntilGone } from '../calls.ts'
import { claim, claimContent, claimEqual, claimResource, claimStored, claimTombstone } from '../claims.ts'
import { listAll } from '../lists.ts'
import { binary, createBytes, LONG_RETENTIONS, named, range, stream } from '../samples.ts'
import { type Case, it } from '../types.ts'

/** Milliseconds: long enough that a store that forgets too early shows it. */
const RETENTION = 1200

export const removal: readonly Case[] = [
  it('removes what is there, returns what it was, and shows it no more', async (bench) => {
    const { store, path, collection, content, modes } = bench
    const ways = named(modes.flatMap((mode) => (['any', 'present'] as const).map((expect) => ({ mode, expect }))))
    for (const [name, { mode, expect }] of ways) {
      const given = content(name, name)
      await put(store, path(name), given)
      const before = await readResource(store, path(name))
      const result = await store.remove(path(name), { mode, expect })
      claimEqual(result.outcome, 'removed', `A resource was there to be removed (${mode}, expecting '${expect}').`)
      const gone = result.outcome === 'removed' ? result.resource : undefined
      const removed = claimResource(gone, 'The removal returns nothing.')
      await claimContent(removed, given, 'The removal returns other content.')
      claimEqual(factsOf(removed), factsOf(before), 'The removal does not return the state that it removed.')
      claim(!isResource(await store.read(path(name))), `A removed resource can still be read (${mode}).`)
    }
    for (const hidden of [false, true]) {
      const left = ways.filter(([, { mode }]) => hidden && mode === 'hide').map(([name]) => path(name))
      const listed = pathsOf(await listAll(store, collection, 10, hidden))
      claimEqual(listed, left, 'A removed resource is still listed.')
    }
  }),
  it('finds nothing to remove where nothing is', async ({ store, path, keep, modes }) => {
    for (const mode of modes) {
      const result = await remove(store, path(9), mode)
      claimEqual(saidBy(result), { outcome: 'absent' }, 'Nothing was there to be removed.')
    }
    await keep(1)
    await remove(store, path(1))
    const again = await remove(store, path(1))
    claimEqual(again.outcome, 'absent', 'A resource was removed twice.')
    claimEqual(await store.read(path(1)), undefined, 'Erasing must leave nothing.')
  }),
  it('expecting a version, removes that state and no other', async ({ store, path, content, keep, modes }) => {
    const first = await keep(1)
    const second = await keep(1, 2)
    const stale = [first.version, ''].flatMap((version) => modes.map((mode) => ({ expect: { version }, mode })))
    for (const removal of stale) {
      const refused = await store.remove(path(1), removal)
      claimEqual(refused.outcome, 'conflict', 'A removal that expected a version of the past happened.')
      const current = refused.outcome === 'conflict' ? refused.current : undefined
      const shown = claimResource(current, 'No state was returned.')
      const sentence = 'A refused removal returns another state than the current one.'
      claimEqual(factsOf(shown), factsOf(second), sentence)
      await claimContent(shown, content(2, 1), sentence)
    }
    claim(isResource(await store.read(path(1))), 'A refused removal removed the resource.')
    const done = await store.remove(path(1), { expect: { version: second.version }, mode: 'erase' })
    claimEqual(done.outcome, 'removed', 'The version was the current one, so the removal had to happen.')
  }),
  it("expecting 'present' or a version, refuses where nothing is", async ({ store, path, modes }) => {
    for (const [i, expect] of (['present', { version: 'nonesuch' }] as const).entries()) {
      const result = await store.remove(path(1), { expect, mode: modes[i % modes.length]! })
      claimEqual(saidBy(result), { outcome: 'conflict' }, 'The expected resource was not there.')
    }
    claimEqual(await store.read(path(1)), undefined, 'A refused removal left a tombstone.')
  }),
  it('leaves a tombstone that says when, and that counts as absent', { needs: ['tombstones'] }, async (bench) => {
    const { store, path, content, keep } = bench
    await keep(1)
    await remove(store, path(1), 'tombstone')
    const state = await store.read(path(1))
    claimTombstone(state, path(1), 'The removal left no tombstone.')
    const asked = await store.read(path(1), { hidden: true })
    claimEqual(asked, state, 'A read that asks for hidden resources as well finds the same tombstone.')
    const again = await remove(store, path(1), 'tombstone')
    claimEqual(saidBy(again), { outcome: 'absent', current: state }, 'A second removal tells of the tombstone.')
    const present = await store.write(path(1), content(2, 1), { expect: 'present' })
    claimEqual(saidBy(present), { outcome: 'conflict', current: state }, 'A tombstone counts as absent.')
    const refused = await store.remove(path(1), { expect: 'present', mode: 'erase' })
    claimEqual(
      saidBy(refused),
      { outcome: 'conflict', current: state },
      'A removal that was refused tells of the tombstone.',
    )
    const absent = await store.write(path(1), content(2, 1), { expect: 'absent' })
    claimEqual(absent.outcome, 'created', 'A tombstone counts as absent, so the write had to happen.')
    await claimStored(store, path(1), content(2, 1), 'The new resource has other content.')
    await remove(store, path(1))
    claimEqual(await store.read(path(1)), undefined, 'Erasing must leave nothing, also of an earlier removal.')
  }),
  it('remembers every tombstone, each with its own path, and not the last ones only', {
    needs: ['tombstones'],
  }, async ({ store, path, keep }) => {
    const names = range(1, 30)
    for (const name of names) await keep(name)
    for (const name of names) await remove(store, path(name), 'tombstone')
    // Neither what is written nor what is erased elsewhere is about them.
    await keep(100, 1)
    await remove(store, path(100))
    for (const name of names) claimTombstone(await store.read(path(name)), path(name), 'A tombstone was forgotten.')
  }),
  it('keeps a tombstone for the whole of its retention, whatever becomes of others', {
    needs: ['tombstones'],
  }, async ({ store, path, keep, reopen }) => {
    const other = await reopen()
    for (const name of range(1, 8)) await keep(name)
    const begin = performance.now()
    await remove(store, path(1), 'tombstone', { retention: RETENTION })
    await remove(store, path(2), 'tombstone', { retention: 60_000 })
    await remove(store, path(3), 'tombstone')
    await remove(store, path(4), 'tombstone', { retention: 20 })
    for (const [index, retention] of LONG_RETENTIONS.entries()) {
      await remove(store, path(6 + index), 'tombstone', { retention })
    }
    for (let round = 0; performance.now() - begin < RETENTION; round++) {
      await keep(5, round)
      for (const name of [1, 2, 3, 6, 7, 8]) {
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
    const late = `The tombstone outlived its retention of ${RETENTION} ms.`
    for (const reader of [store, other]) await waitUntilGone(reader, path(1), late)
  }),
  it('forgets a tombstone after its retention', { needs: ['tombstones'] }, async ({ store, path, content, keep }) => {
    for (const name of [1, 2, 3, 4]) await keep(name)
    for (const name of [3, 4]) await remove(store, path(name), 'tombstone', { retention: 20 })
    const { version } = await keep(3)
    await keep(4)
    await remove(store, path(4), 'tombstone', { retention: 60_000 })
    await remove(store, path(1), 'tombstone', { retention: 20 })
    await remove(store, path(2), 'tombstone', { retention: 60_000 })
    await waitUntilGone(store, path(1), 'The tombstone outlived its retention of 20 ms.')
    for (const name of [2, 4])
      claim((await store.read(path(name))) !== undefined, 'A tombstone was forgotten before its retention was over.')
    const anew = claimResource(await store.read(path(3)), 'What was written at the path of a tombstone went with it.')
    claimEqual(anew.version, version, 'What was written at the path of a tombstone has changed with it.')
    const result = await store.write(path(1), content(3, 1), { expect: 'absent' })
    claimEqual(result.outcome, 'created', 'A forgotten tombstone is in the way of a write.')
  }),
]

async function readHidden(store: ResourceStore, path: string): Promise<StoredResource> {
  return claimResource(await store.read(path, { hidden: true }), 'The hidden resource was not found.')
}

export const hiding: readonly Case[] = [
  it('shows a hidden resource, with its content, only to reads that ask for it', async (bench) => {
    const { store, path, content, keep } = bench
    const { version } = await keep(1)
    await remove(store, path(1), 'hide')
    const shown = await store.read(path(1))
    claimTombstone(shown, path(1), 'A hidden resource looks like a tombstone to other reads.')
    const hidden = await readHidden(store, path(1))
    claimEqual(hidden.hidden, true, 'A hidden resource is marked.')
    await claimContent(hidden, content(1, 1), 'The hidden resource has lost its content.')
    claim(hidden.version !== version, 'The hidden state has the version of the state before.')
  }),
  it('treats a hidden resource as absent, whose state has a version of its own', async (bench) => {
    const { store, path, content, keep, modes } = bench
    await keep(1)
    const { version } = await readResource(store, path(1))
    await remove(store, path(1), 'hide')
    const hidden = await readHidden(store, path(1))
    claim(hidden.version !== version, 'The hidden state has the version of the visible one.')
    for (const expect of ['present', { version }, { version: hidden.version }] as const) {
      const write = await store.write(path(1), content(2, 1), { expect })
      claim(write.outcome === 'conflict', 'A hidden resource counts as absent, and was replaced.')
      claim(!isResource(write.current), 'A conflict tells of a state that is hidden.')
      const removal = await store.remove(path(1), { expect, mode: 'erase' })
      claim(removal.outcome === 'conflict', 'A hidden resource counts as absent, and was removed.')
      claim(!isResource(removal.current), 'A conflict tells of a state that is hidden.')
    }
    for (const mode of modes) {
      const again = await remove(store, path(1), mode)
      claim(again.outcome === 'absent', 'A hidden resource counts as absent, so there is nothing to remove.')
      claim(!isResource(again.current), 'A removal that found nothing to remove tells of a state that is hidden.')
    }
    const still = await readHidden(store, path(1))
    claimEqual(still.version, hidden.version, 'A refused call changed the hidden resource.')
  }),
  it('makes the path visible again with the next write', async ({ store, path, collection, content, keep }) => {
    await keep(1)
    await remove(store, path(1), 'hide')
    const result = await store.write(path(1), content(2, 1), { expect: 'absent' })
    claimEqual(result.outcome, 'created', 'A hidden resource counts as absent, so the write creates.')
    for (const hidden of [true, false]) {
      const state = claimResource(await store.read(path(1), { hidden }), 'The new resource was not found.')
      claim(state.hidden !== true, 'The new resource is still marked as hidden.')
      await claimContent(state, content(2, 1), 'The new resource has other content.')
      claimEqual((await store.list(collection, { limit: 5, hidden })).items.length, 1, 'It is listed once.')
    }
  }),
  it('lists hidden resources, marked and in their place, only when asked', async (bench) => {
    const { store, path, keep, collection } = bench
    for (const name of range(1, 12)) await keep(name)
    for (const name of [2, 3, 7, 12]) await remove(store, path(name), 'hide')
    const visiblePaths = [1, 4, 5, 6, 8, 9, 10, 11].map(path)
    for (const limit of [20, 11]) {
      const { items, next } = await store.list(collection, { limit })
      claimEqual(pathsOf(items), visiblePaths, 'Hidden resources are not listed unasked.')
      claimEqual(next, undefined, 'A page has a next one although every further resource is hidden.')
    }
    const expected = range(1, 12).map((name) => path(name) + ([2, 3, 7, 12].includes(name) ? ' hidden' : ''))
    for (const limit of [3, 20]) {
      const all = await listAll(store, collection, limit, true)
      const found = all.map((item) => (item.hidden === true ? `${item.path} hidden` : item.path))
      claimEqual(found, expected, 'A listing with hidden resources has all of them, marked, in order.')
    }
  }),
  it('keeps large content of a hidden resource, and what describes it', {
    needs: ['contents'],
  }, async ({ store, path }) => {
    const bytes = createBytes(700_000, 8)
    const fields = { contentEncoding: 'gzip', contentLanguage: 'de', filename: 'a b.bin' }
    await put(store, path(1), { ...binary(stream(bytes, 65_536)), ...fields })
    await remove(store, path(1), 'hide')
    const state = await readHidden(store, path(1))
    await claimContent(state, binary(bytes), 'The hidden resource has lost its content.')
    const { contentEncoding, contentLanguage, filename } = state
    const sentence = 'The hidden resource has lost what describes its content.'
    claimEqual({ contentEncoding, contentLanguage, filename }, fields, sentence)
  }),
]
