import { isResource } from '../../stores/rules.ts'
import type { RemoveResult, WriteResult } from '../../stores/types.ts'
import { amid, claimGivenUp, created, nameOf, pause, put, race, readResource, remove } from '../calls.ts'
import {
  claim,
  claimContent,
  claimEqual,
  claimFails,
  claimOneWinner,
  claimResource,
  claimStored,
  readContent,
} from '../claims.ts'
import { binary, brokenStream, createBytes, stream, text } from '../samples.ts'
import { type Case, it } from '../types.ts'

export const related: readonly Case[] = [
  it('writes related paths with the write, whatever their state', {
    needs: ['paths', 'tombstones', 'hiding'],
  }, async ({ store, path, collection }) => {
    const bytes = createBytes(400_000, 1)
    for (const name of [2, 3, 4]) await put(store, path(name), text('old'))
    const { version } = await readResource(store, path(2))
    await remove(store, path(3), 'tombstone')
    await remove(store, path(4), 'hide')
    const others = [path(2), path(3), path(4)]
    const file = { path: `${path(1)}/file`, content: binary(stream(bytes, 65_536)) }
    // Read repeatedly: a store may keep what is asked for a second time, and that nothing is there.
    for (let i = 0; i < 3; i++) {
      await store.list(collection, { limit: 10 })
      for (const other of [...others, file.path]) await store.read(other)
    }
    const related = [...others.map((path) => ({ path, content: text(path) })), file]
    const result = await store.write(path(1), text('own'), { expect: 'absent', related })
    claimEqual(result.outcome, 'created', 'The write was refused.')
    await claimStored(store, path(1), text('own'), 'The path itself has other content.')
    for (const other of others) await claimStored(store, other, text(other), 'A related path has other content.')
    await claimStored(store, file.path, binary(bytes), 'A related path has other content.')
    const anew = await readResource(store, path(2))
    claim(anew.version !== version, 'A related path that was written has the version of the state before.')
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
  it('lets exactly one of many steps with related paths win that expect the same version', async (bench) => {
    const { store, path, modes, reopen } = bench
    const stores = [store, await reopen()]
    for (let round = 0; round < 4; round++) {
      const expect = { version: (await put(store, path(1), text('before'))).version }
      const results = await race<WriteResult | RemoveResult>(stores, 12, (own, i) => {
        if (i % 3 === round) return own.remove(path(1), { expect, mode: modes[0]!, related: [path(2)] })
        return own.write(path(1), text(`${i}`), { expect, related: [{ path: path(2), content: text(`${i}`) }] })
      })
      const sentence = 'Of the steps that expected the same version, exactly one may win.'
      const winner = claimOneWinner(results, sentence)
      const isGone = results[winner]!.outcome === 'removed'
      for (const name of [1, 2]) {
        const state = await store.read(path(name))
        if (isGone) claim(!isResource(state), 'A step that lost has written something.')
        else await claimContent(state, text(`${winner}`), 'The winner was overwritten.')
      }
    }
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
  it('ends a write at once when the signal aborts while the source of a related path is silent', async (bench) => {
    const { store, path, collection } = bench
    const relate = (body: AsyncIterable<Uint8Array>) => [{ path: path(2), content: binary(body) }]
    await claimGivenUp((body, signal) =>
      store.write(path(1), text('own'), { expect: 'any', related: relate(body), signal }),
    )
    await claimGivenUp((body, signal) => store.create(collection, text('own'), { related: () => relate(body), signal }))
    claimEqual(await store.read(path(1)), undefined, 'An aborted write has left something.')
    claimEqual((await store.list(collection, { limit: 5 })).items, [], 'An aborted call has left something.')
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
      // Read repeatedly: a store may keep what is asked for a second time.
      const listFiles = async () => (await store.list(path(name), { limit: 5 })).items.length
      for (let i = 0; i < 3; i++) claimEqual(await listFiles(), 1, 'The file is a member like any other.')
      const refused = await store.remove(path(name), { expect: { version: 'nonesuch' }, ...removal })
      claimEqual(refused.outcome, 'conflict', 'The removal should have been refused.')
      claim(isResource(await store.read(file)), 'A refused removal has removed a related path.')
      const done = await store.remove(path(name), { expect: { version }, ...removal })
      claimEqual(done.outcome, 'removed', 'The version was the current one, so the removal had to happen.')
      claim(!isResource(await store.read(file)), `A related path was not removed (${mode}).`)
      claimEqual(await listFiles(), 0, `A related path that was removed is still listed (${mode}).`)
      const kept = await store.read(file, { hidden: true })
      claimEqual(isResource(kept), mode === 'hide', `A related path was removed in another mode (${mode}).`)
      claim(!isResource(kept) || kept.version !== shown.version, 'A hidden related path has the version from before.')
      claimEqual(await store.read(`${path(name)}/none`), undefined, 'A related path that was not there left a trace.')
      const anew = await put(store, file, text('file'))
      claim(anew.version !== shown.version, `A related path that was removed has its version again (${mode}).`)
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
