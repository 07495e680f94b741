import { isResource } from '../../stores/types.ts'
import { claim, claimContent, claimEqual, claimFails, claimResource, claimStored, readContent } from '../claims.ts'
import {
  binary,
  brokenStream,
  createBytes,
  created,
  nameOf,
  pause,
  put,
  readResource,
  remove,
  stream,
  text,
} from '../samples.ts'
import type { Case } from '../types.ts'

export const related: readonly Case[] = [
  {
    title: 'writes related paths with the write, whatever their state',
    needs: ['paths', 'tombstones', 'hiding'],
    async run({ store, path, collection }) {
      const bytes = createBytes(400_000, 1)
      for (const name of [2, 3, 4]) await put(store, path(name), text('old'))
      await remove(store, path(3), 'tombstone')
      await remove(store, path(4), 'hide')
      const others = [path(2), path(3), path(4), `${path(1)}/file`]
      const result = await store.write(path(1), text('own'), {
        expect: 'absent',
        related: others.map((path, i) => ({ path, content: i === 3 ? binary(stream(bytes, 65_536)) : text(path) })),
      })
      claimEqual(result.outcome, 'created', 'The write was refused.')
      await claimStored(store, path(1), text('own'), 'The path itself has other content.')
      for (const other of others.slice(0, 3)) {
        await claimStored(store, other, text(other), 'A related path has other content.')
      }
      await claimStored(store, `${path(1)}/file`, binary(bytes), 'A related path has other content.')
      const { items } = await store.list(collection, { limit: 10 })
      claimEqual(items.length, 4, 'Related members are listed like any other.')
    },
  },
  {
    title: 'writes nothing at all when the write meets a conflict',
    async run({ store, path }) {
      const before = await put(store, path(2), text('old'))
      const related = [2, 3].map((name) => ({ path: path(name), content: text('new') }))
      for (const expect of ['present', { version: 'nonesuch' }] as const) {
        const result = await store.write(path(1), text('own'), { expect, related })
        claimEqual(result.outcome, 'conflict', 'The write should have been refused.')
      }
      const other = claimResource(await store.read(path(2)), 'A related path was removed by a refused write.')
      claimEqual(other.version, before.version, 'A refused write has changed a related path.')
      claimEqual(await store.read(path(3)), undefined, 'A refused write has made a related path.')
    },
  },
  {
    title: 'writes nothing at all when the content of a related path breaks off',
    async run({ store, path, collection }) {
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
    },
  },
  {
    title: 'writes related paths with a creation, once the name is known',
    needs: ['paths'],
    async run({ store, collection, path }) {
      let name = ''
      const result = await store.create(collection, (name) => text(`member ${name}`), {
        related: (given) => {
          name = given
          return [{ path: `${path(given)}/file`, content: text(`file of ${given}`) }]
        },
      })
      const resource = created(result)
      claimEqual(nameOf(resource), name, 'The name that was given is not the name of the member.')
      await claimStored(store, resource.path, text(`member ${name}`), 'The member has other content.')
      const file = await store.read(`${resource.path}/file`)
      await claimContent(file, text(`file of ${name}`), 'The related path has other content.')
    },
  },
  {
    title: 'removes related paths with the removal, in the same mode, and only with it',
    needs: ['paths'],
    async run({ modes, store, path }) {
      for (const [name, mode] of modes.entries()) {
        const file = `${path(name)}/file`
        const { version } = await put(store, path(name), text('own'))
        await put(store, file, text('file'))
        const removal = { mode, related: [file, `${path(name)}/none`] }
        const refused = await store.remove(path(name), { expect: { version: 'nonesuch' }, ...removal })
        claimEqual(refused.outcome, 'conflict', 'The removal should have been refused.')
        claim(isResource(await store.read(file)), 'A refused removal has removed a related path.')
        const done = await store.remove(path(name), { expect: { version }, ...removal })
        claimEqual(done.outcome, 'removed', 'The version was the current one, so the removal had to happen.')
        claim(!isResource(await store.read(file)), `A related path was not removed (${mode}).`)
        const kept = await store.read(file, { hidden: true })
        claimEqual(isResource(kept), mode === 'hide', `A related path was removed in another mode (${mode}).`)
        claimEqual(await store.read(`${path(name)}/none`), undefined, 'A related path that was not there left a trace.')
      }
    },
  },
  {
    title: 'shows a write and its related paths together, never one without the other',
    async run({ store, path, reopen }) {
      const other = await reopen()
      const write = (count: number) => {
        const content = text(String(count))
        return store.write(path(1), content, { expect: 'any', related: [{ path: path(2), content }] })
      }
      await write(0)
      let isOver = false
      async function writeMany(): Promise<void> {
        for (let count = 1; count <= 60; count++) {
          await write(count)
          await pause()
        }
      }
      const countAt = async (name: number) => Number(String(await readContent(await readResource(other, path(name)))))
      async function readBoth(earlier: number, later: number): Promise<void> {
        const first = await countAt(earlier)
        const second = await countAt(later)
        claim(second >= first, `A reader saw write ${first} at one path and then only write ${second} at the other.`)
      }
      async function readMany(): Promise<void> {
        while (!isOver) {
          await readBoth(1, 2)
          await readBoth(2, 1)
          await pause()
        }
      }
      const writer = writeMany().finally(() => {
        isOver = true
      })
      await Promise.all([readMany(), writer])
    },
  },
  {
    title: 'keeps of related content what describes it',
    needs: ['paths'],
    async run({ store, collection, path }) {
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
    },
  },
]
