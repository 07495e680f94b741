import { isResource } from '../../stores/types.ts'
import { claim, claimContent, claimEqual, claimFails, claimResource, claimStored, readContent } from '../claims.ts'
import {
  absent,
  amid,
  binary,
  brokenStream,
  createBytes,
  created,
  nameOf,
  pause,
  put,
  race,
  range,
  readResource,
  remove,
  stream,
  text,
} from '../samples.ts'
import { type Case, it } from '../types.ts'

export const related: readonly Case[] = [
  it('writes related paths with the write, whatever their state', {
    needs: ['paths', 'tombstones', 'hiding'],
  }, async ({ store, path, collection }) => {
    const bytes = createBytes(400_000, 1)
    for (const name of [2, 3, 4]) await put(store, path(name), text('old'))
    await remove(store, path(3), 'tombstone')
    await remove(store, path(4), 'hide')
    const others = [path(2), path(3), path(4)]
    // Read repeatedly: a store may keep what is asked for a second time.
    for (let i = 0; i < 3; i++) await store.list(collection, { limit: 10 })
    const file = { path: `${path(1)}/file`, content: binary(stream(bytes, 65_536)) }
    const related = [...others.map((path) => ({ path, content: text(path) })), file]
    const result = await store.write(path(1), text('own'), { expect: 'absent', related })
    claimEqual(result.outcome, 'created', 'The write was refused.')
    await claimStored(store, path(1), text('own'), 'The path itself has other content.')
    for (const other of others) await claimStored(store, other, text(other), 'A related path has other content.')
    await claimStored(store, file.path, binary(bytes), 'A related path has other content.')
    const { items } = await store.list(collection, { limit: 10 })
    claimEqual(items.length, 4, 'Related members are listed like any other.')
  }),
  it('writes nothing at all when the write meets a conflict', async ({ store, path }) => {
    const before = await put(store, path(2), text('old'))
    const related = [2, 3].map((name) => ({ path: path(name), content: text('new') }))
    for (const expect of ['present', { version: 'nonesuch' }] as const) {
      const result = await store.write(path(1), text('own'), { expect, related })
      claimEqual(result.outcome, 'conflict', 'The write should have been refused.')
    }
    const other = claimResource(await store.read(path(2)), 'A related path was removed by a refused write.')
    claimEqual(other.version, before.version, 'A refused write has changed a related path.')
    claimEqual(await store.read(path(3)), undefined, 'A refused write has made a related path.')
  }),
  it('writes nothing at all when the content of a related path breaks off', async ({ store, path, collection }) => {
    const broken = () => binary(brokenStream(createBytes(200_000, 1), new Error('gone')))
    const related = [{ path: path(2), content: broken() }]
    const write = async () => store.write(path(1), text('own'), { expect: 'any', related })
    await claimFails(write, 'A write succeeded although the content of a related path had broken off.')
    const relatedTo = (name: string) => [{ path: `${path(name)}0`, content: broken() }]
    const own = binary(stream(createBytes(200_000, 2), 60_000))
    const creation = async () => store.create(collection, own, { related: relatedTo })
    await claimFails(creation, 'A creation succeeded although the content of a related path had broken off.')
    claimEqual(await store.read(path(1)), undefined, 'A write that failed has left something.')
    claimEqual((await store.list(collection, { limit: 5 })).items.length, 0, 'A call that failed has left something.')
  }),
  it('writes related paths with a creation, once the name is known', { needs: ['paths'] }, async (bench) => {
    const { store, collection, path } = bench
    let given = ''
    const related = (name: string) => {
      given = name
      return [{ path: `${path(name)}/file`, content: text(`file of ${name}`) }]
    }
    const member = created(await store.create(collection, (name) => text(`member ${name}`), { related }))
    claimEqual(nameOf(member), given, 'The name that was given is not the name of the member.')
    await claimStored(store, member.path, text(`member ${given}`), 'The member has other content.')
    await claimStored(store, `${member.path}/file`, text(`file of ${given}`), 'The related path has other content.')
  }),
  it('never assigns a name that a related write has taken', { needs: ['paths'] }, async (bench) => {
    const { store, collection, modes } = bench
    for (const expect of store.supports?.relatedExpect ? (['any', 'absent'] as const) : (['any'] as const)) {
      for (const mode of [undefined, ...modes]) {
        const others = `/${expect}-${mode}`
        const related = (name: string) => [{ path: `${others}/${name}`, content: text('related'), expect }]
        const id = Number(nameOf(created(await store.create(collection, text('own'), { related }))))
        const taken = `${others}/${id}`
        if (mode !== undefined) await remove(store, taken, mode)
        for (let i = 0; i < id; i++) {
          const { path } = created(await store.create(others, text('new')))
          claim(path !== taken, `The name of ${taken} was assigned although a related write had taken it.`)
        }
        if (mode === undefined) await claimStored(store, taken, text('related'), 'A creation overwrote a related path.')
      }
    }
  }),
  it('removes related paths with the removal, in the same mode, and only with it', {
    needs: ['paths'],
  }, async ({ modes, store, path }) => {
    for (const [name, mode] of modes.entries()) {
      const file = `${path(name)}/file`
      const { version } = await put(store, path(name), text('own'))
      const shown = await put(store, file, text('file'))
      const removal = { mode, related: [file, `${path(name)}/none`] }
      const refused = await store.remove(path(name), { expect: { version: 'nonesuch' }, ...removal })
      claimEqual(refused.outcome, 'conflict', 'The removal should have been refused.')
      claim(isResource(await store.read(file)), 'A refused removal has removed a related path.')
      const done = await store.remove(path(name), { expect: { version }, ...removal })
      claimEqual(done.outcome, 'removed', 'The version was the current one, so the removal had to happen.')
      claim(!isResource(await store.read(file)), `A related path was not removed (${mode}).`)
      const kept = await store.read(file, { hidden: true })
      claimEqual(isResource(kept), mode === 'hide', `A related path was removed in another mode (${mode}).`)
      claim(!isResource(kept) || kept.version !== shown.version, 'A hidden related path has the version from before.')
      claimEqual(await store.read(`${path(name)}/none`), undefined, 'A related path that was not there left a trace.')
    }
  }),
  it('removes related paths that are hidden, too', { needs: ['paths', 'hiding'] }, async ({ modes, store, path }) => {
    for (const [name, mode] of modes.entries()) {
      const { version } = await put(store, path(name), text('own'))
      const hidden = `${path(name)}/hidden`
      await put(store, hidden, text('hidden'))
      await remove(store, hidden, 'hide')
      await store.remove(path(name), { expect: { version }, mode, related: [hidden] })
      const isLeft = isResource(await store.read(hidden, { hidden: true }))
      claimEqual(isLeft, mode === 'hide', `A related path that was hidden was not removed (${mode}).`)
    }
  }),
  it('shows a write and its related paths together, never one without the other', async ({ store, path, reopen }) => {
    const other = await reopen()
    const write = (count: number) => {
      const content = text(String(count))
      return store.write(path(1), content, { expect: 'any', related: [{ path: path(2), content }] })
    }
    await write(0)
    const countAt = async (name: number) => Number(String(await readContent(await readResource(other, path(name)))))
    async function readBoth(earlier: number, later: number): Promise<void> {
      const [first, second] = [await countAt(earlier), await countAt(later)]
      claim(second >= first, `A reader saw write ${first} at one path and then only write ${second} at the other.`)
    }
    async function readBothWays(): Promise<void> {
      await readBoth(1, 2)
      await readBoth(2, 1)
      await pause()
    }
    await amid(1, readBothWays, async () => {
      for (let count = 1; count <= 60; count++) {
        await write(count)
        await pause()
      }
    })
  }),
  it('keeps of related content what describes it', { needs: ['paths'] }, async ({ store, collection, path }) => {
    const fields = { contentType: 'text/css', contentEncoding: 'gzip', contentLanguage: 'de', filename: 'a b.css' }
    const describe = (name: string) => [{ path: `/others/${name}`, content: { ...fields, body: `of ${name}` } }]
    await store.write(path(1), text('own'), { expect: 'any', related: describe('x') })
    await store.create(collection, text('own'), { related: () => describe('y') })
    for (const name of ['x', 'y']) {
      const state = claimResource(await store.read(`/others/${name}`), 'A related path was not written.')
      const { contentType, contentEncoding, contentLanguage, filename } = state
      const sentence = 'Related content has lost what describes it.'
      claimEqual({ contentType, contentEncoding, contentLanguage, filename }, fields, sentence)
      await claimContent(state, { ...fields, body: `of ${name}` }, 'Related content was changed.')
    }
  }),
]

export const writtenRemovals: readonly Case[] = [
  it('writes what a removal brings with it, whatever its mode', async ({ store, path, modes }) => {
    for (const mode of modes) {
      await put(store, path(1), text('one'))
      await put(store, path('log'), text('old'))
      const log = { path: path('log'), content: text(mode) }
      const large = { path: path('large'), content: text(stream(Buffer.alloc(100_000, 'x'), 60_000)) }
      const relatedWrites = [absent(path(`record-${mode}`)), log, large]
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
