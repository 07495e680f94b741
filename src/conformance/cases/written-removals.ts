import { isResource } from '../../stores/rules.ts'
import { put, race } from '../calls.ts'
import { claim, claimContent, claimEqual, claimFails, claimStored } from '../claims.ts'
import { absent, binary, brokenStream, createBytes, range, stream, text } from '../samples.ts'
import { type Case, it } from '../types.ts'

export const writtenRemovals: readonly Case[] = [
  it('writes what a removal brings with it, whatever its mode', async ({ store, path, modes }) => {
    for (const mode of modes) {
      await put(store, path(1), text('one'))
      await put(store, path('log'), text('old'))
      const log = { path: path('log'), content: text(mode) }
      const large = { path: path('large'), content: text(stream(Buffer.alloc(100_000, 'x'), 60_000)) }
      const relatedWrites = [absent(path(`record-${mode}`)), log, large]
      // Read repeatedly: a store may keep what is asked for a second time, and that nothing is there.
      for (let i = 0; i < 3; i++) for (const write of relatedWrites) await store.read(write.path)
      const result = await store.remove(path(1), { expect: 'any', mode, relatedWrites })
      claim(result.outcome === 'removed', 'A removal without a condition was refused.')
      claim(!isResource(await store.read(path(1))), 'A removal that writes has left its path.')
      await claimStored(store, path(`record-${mode}`), text('record'), 'A removal has not written a new path.')
      await claimStored(store, path('log'), text(mode), 'A removal has not replaced a path.')
      const sentence = 'A removal has not written the stream that it brought.'
      await claimStored(store, path('large'), text('x'.repeat(100_000)), sentence)
    }
  }),
  it('writes nothing when the removal meets a conflict, or there is nothing to remove', async (bench) => {
    const { store, path, modes } = bench
    const mode = modes[0]!
    await put(store, path(1), text('one'))
    const relatedWrites = [absent(path('record')), { path: path('log'), content: text('log') }]
    const refused = await store.remove(path(1), { expect: { version: 'nonesuch' }, mode, relatedWrites })
    claimEqual(refused.outcome, 'conflict', 'The version was none of this path, and the removal went on.')
    const nothing = await store.remove(path(2), { expect: 'any', mode, relatedWrites })
    claimEqual(nothing.outcome, 'absent', 'Nothing was there, and the removal says otherwise.')
    claimEqual(await store.read(path('record')), undefined, 'A removal that did not happen has written a path.')
    claimEqual(await store.read(path('log')), undefined, 'A removal that did not happen has written a path.')
  }),
  it('removes nothing when the content of what the removal writes breaks off, and passes the error on', async (bench) => {
    const { store, path, modes } = bench
    const own = text('one')
    await put(store, path(1), own)
    for (const mode of modes) {
      const error = new Error('The source broke off.')
      const large = { path: path('large'), content: binary(brokenStream(createBytes(200_000, 1), error)) }
      const relatedWrites = [{ path: path('log'), content: text('log') }, large]
      const removal = async () => store.remove(path(1), { expect: 'any', mode, relatedWrites })
      const thrown = await claimFails(removal, 'A removal succeeded although what it writes had broken off.')
      claim(thrown === error, 'The error of the source came out as another one.')
      await claimStored(store, path(1), own, 'A removal that failed has removed its path.')
      for (const name of ['log', 'large'])
        claimEqual(await store.read(path(name)), undefined, 'A removal that failed has written a path.')
    }
  }),
  it('removes nothing while a path that the removal writes must be absent and is not', async (bench) => {
    const { store, path, modes } = bench
    const { version } = await put(store, path(1), text('one'))
    await put(store, path('record'), text('winner'))
    const relatedWrites = [{ path: path('log'), content: text('log') }, absent(path('record'), 'loser')]
    for (const expect of ['any', 'present', { version }, { version: 'nonesuch' }] as const) {
      await put(store, path('other'), text('other'))
      const result = await store.remove(path(1), { expect, mode: modes[0]!, related: [path('other')], relatedWrites })
      claim(result.outcome === 'conflict', 'A removal went on although a path was not absent.')
      claimEqual(result.related?.path, path('record'), 'The conflict does not name the path that was not absent.')
      await claimContent(result.related, text('winner'), 'The conflict gives another state of the path.')
      claim(isResource(result.current), 'The conflict does not give the state of the path itself.')
    }
    claim(isResource(await store.read(path(1))), 'A refused removal has removed its path.')
    claim(isResource(await store.read(path('other'))), 'A refused removal has removed a related path.')
    claimEqual(await store.read(path('log')), undefined, 'A refused removal has written a path.')
  }),
  it('removes what is below a path and writes other paths in one step, or does neither', {
    needs: ['parents'],
  }, async ({ store, path, modes }) => {
    for (const mode of modes.filter((mode) => mode !== 'hide')) {
      const { version } = await put(store, path(7), text('parent'))
      await put(store, path('7/parts/1'), text('child'))
      await put(store, path(`record-${mode}`), text('winner'))
      const remove = (name: string) => {
        const relatedWrites = [absent(path(name)), { path: path('log'), content: text(mode) }]
        return store.remove(path(7), { expect: { version }, mode, below: true, relatedWrites })
      }
      claimEqual((await remove(`record-${mode}`)).outcome, 'conflict', 'A removal went on although a path was there.')
      const lost = 'A removal that was refused for what it writes has removed what is below its path.'
      await claimStored(store, path('7/parts/1'), text('child'), lost)
      claimEqual((await remove(`other-${mode}`)).outcome, 'removed', 'A removal was refused without a reason.')
      const unwritten = 'A removal of all that is below a path has not written what it brings.'
      await claimStored(store, path('log'), text(mode), unwritten)
      const below = await store.read(path('7/parts/1'), { hidden: true })
      claimEqual(below, undefined, 'A removal that writes has left what is below its path.')
    }
  }),
  it('lets exactly one of many removals win that write the same path, which must be absent', async (bench) => {
    const { store, path, modes, reopen } = bench
    const stores = [store, await reopen()]
    const names = range(0, 11)
    for (const name of names) await put(store, path(name), text('one'))
    const mode = modes[0]!
    const results = await race(stores, names.length, (own, i) =>
      own.remove(path(i), { expect: 'any', mode, relatedWrites: [absent('/records/1', `${i}`)] }),
    )
    const winners = results.flatMap(({ outcome }, i) => (outcome === 'removed' ? [i] : []))
    claimEqual(winners.length, 1, 'Of removals that expected the same path to be absent, exactly one may happen.')
    await claimStored(store, '/records/1', text(`${winners[0]}`), 'The path is not that of the winner.')
    for (const name of names) {
      const isThere = isResource(await store.read(path(name)))
      claimEqual(isThere, name !== winners[0], 'A removal that lost has removed its path, or the winner has not.')
    }
  }),
]
