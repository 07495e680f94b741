import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isLargeBody } from '../../stores/rules.ts'
import type { StoredResource } from '../../stores/types.ts'
import { create, nameOf, put, readResource, remove, stage, written } from '../calls.ts'
import { claim, claimContent, claimEqual, claimResource } from '../claims.ts'
import { binary, createBytes, MEBIBYTE, named, stream, text } from '../samples.ts'
import { type Bench, type Case, it } from '../types.ts'

export const versions: readonly Case[] = [
  it('names every state with a version of 1 to 200 characters', async ({ keep }) => {
    for (const seed of [1, 2, 3]) {
      const { version } = await keep(1, seed)
      claim(typeof version === 'string', 'A version is text.')
      const isFit = version.length >= 1 && version.length <= 200
      claim(isFit, `The version ${JSON.stringify(version)} is too short or long.`)
    }
  }),
  it('gives a new version to every write, also to one that changes nothing', async ({ keep }) => {
    const seen = new Set<string>()
    for (let i = 0; i < 50; i++) seen.add((await keep(1, i % 2)).version)
    claimEqual(seen.size, 50, 'A version was used for two states.')
  }),
  it('never uses a version again after removal and re-creation with the same bytes', async (bench) => {
    const { modes, store, path, content, keep } = bench
    const seen = new Set<string>()
    for (const mode of modes) {
      for (let i = 0; i < 5; i++) {
        const { version } = await keep(1)
        seen.add(version)
        await store.remove(path(1), { expect: { version }, mode })
        const stale = await store.write(path(1), content(2, 1), { expect: { version } })
        claimEqual(stale.outcome, 'conflict', 'A version of before the removal was still good for a write.')
      }
    }
    claimEqual(seen.size, 5 * modes.length, 'A version was used again after the resource had been removed.')
  }),
  it('refuses a version of an earlier life of the resource', async ({ store, path, content, keep }) => {
    const first = await keep(1)
    await remove(store, path(1))
    const result = await store.write(path(1), content(1, 1), { expect: 'absent' })
    const second = written(result, 'The resource was gone, so the write had to happen.')
    const stale = await store.write(path(1), content(2, 1), { expect: { version: first.version } })
    claimEqual(stale.outcome, 'conflict', 'Removal and re-creation were not noticed (ABA).')
    const state = claimResource(await store.read(path(1)), 'The resource is gone.')
    claimEqual(state.version, second.version, 'A refused write changed the state.')
  }),
  it('gives created members versions of their own', async ({ store, collection, content }) => {
    const member = await create(store, collection, (name) => content(1, name))
    const expect = { version: member.version }
    const result = await store.write(member.path, content(2, nameOf(member)), { expect })
    claimEqual(result.outcome, 'replaced', 'The version of a created member is not good for a write.')
  }),
  it('gives no entity tags where it says that they are its versions', async (bench) => {
    const { store, collection, path, content, keep } = bench
    if (store.supports?.tagsAreVersions !== true) return
    const states = [await keep(1), await create(store, collection, (name) => content(1, name))]
    const { items } = await store.list(collection, { limit: 5 })
    const sentence = 'The tags are the versions, by what the store says, and a state has another tag.'
    for (const { entityTag } of [...states, await readResource(store, path(1)), ...items])
      claimEqual(entityTag, undefined, sentence)
  }),
]

function secondOf({ lastModified }: StoredResource): number {
  return Math.floor(lastModified! / 1000)
}

/** Two states of one path that began in the same second of the store's clock. */
async function putTwice(
  { path, keep }: Bench,
  between: (path: string) => unknown,
  write: Bench['keep'] = keep,
): Promise<readonly [StoredResource, StoredResource]> {
  for (let name = 1; name < 50; name++) {
    const first = await write(name, 1)
    await between(path(name))
    const second = await write(name, 2)
    if (secondOf(first) === secondOf(second)) return [first, second]
  }
  throw new Error('Two writes in a row never fell into the same second.')
}

export const dates: readonly Case[] = [
  it('tells when a state began, in milliseconds', async ({ store, path, keep }) => {
    const before = Date.now()
    const { lastModified } = await keep(1)
    claim(Number.isInteger(lastModified), `A date is a whole number of milliseconds; ${lastModified} is not.`)
    claim(Math.abs(lastModified! - before) < 600_000, `The state began now; ${lastModified} is not that time.`)
    const found = await readResource(store, path(1))
    claimEqual(found.lastModified, lastModified, 'The read tells another date than the write.')
  }),
  it('never lets the date of a resource go back', async ({ store, path, keep, modes }) => {
    let last = 0
    const claimLater = ({ lastModified }: StoredResource): void => {
      claim(lastModified! >= last, 'A later state has an earlier date.')
      last = lastModified!
    }
    for (let i = 0; i < 30; i++) claimLater(await keep(1, i))
    for (const mode of modes) {
      await remove(store, path(1), mode)
      const hidden = await store.read(path(1), { hidden: true })
      if (mode === 'hide') claimLater(claimResource(hidden, 'The hidden resource was not found.'))
      claimLater(await keep(1))
    }
  }),
  it('calls a date strong while the resource changed once in that second, and only then', async (bench) => {
    const [first, second] = await putTwice(bench, () => {})
    claimEqual(first.dateIsStrong, true, 'The date of a first state is strong.')
    claimEqual(second.dateIsStrong, false, 'Two states have this date, and yet it is called strong.')
    const found = await readResource(bench.store, second.path)
    claimEqual(found.dateIsStrong, false, 'The read calls strong what the write did not.')
    await sleep(1000 - (second.lastModified! % 1000) + 5)
    const third = await bench.keep(Number(nameOf(second)), 3)
    claimEqual(third.dateIsStrong, true, 'The only state of a second has a strong date.')
  }),
  it('does not call a date strong when the resource was removed and made again in that second', async (bench) => {
    for (const mode of bench.modes) {
      const [, second] = await putTwice(bench, (path) => remove(bench.store, path, mode))
      claimEqual(second.dateIsStrong, false, `Two states have this date, one of before the removal (${mode}).`)
    }
  }),
  it('does not call the date of a related path strong that changed twice in that second', {
    needs: ['related'],
  }, async (bench) => {
    const { store, path, content } = bench
    const relate = async (name: number, seed = name): Promise<StoredResource> => {
      const related = [{ path: path(name), content: content(seed, name) }]
      await store.write(path(99), content(seed, 99), { expect: 'any', related })
      return readResource(store, path(name))
    }
    const [, second] = await putTwice(bench, () => {}, relate)
    claimEqual(second.dateIsStrong, false, 'Two states of a related path have this date, and yet it is called strong.')
  }),
]

/** Lengths around the limits of values, chunks and batches. */
const SIZES = [65_536, 65_537, 131_072, 262_145, 524_288, 524_289, MEBIBYTE, MEBIBYTE + 1, 3 * MEBIBYTE + 7]

function claimDigest(state: StoredResource | undefined, bytes: Uint8Array, sentence: string): void {
  const { body, sha256 } = claimResource(state, sentence)
  if (!isLargeBody(body) && sha256 === undefined) return
  const expected = createHash('sha256').update(bytes).digest()
  claim(sha256 !== undefined && expected.equals(sha256), `${sentence} It lacks the SHA-256 digest of its content.`)
}

export const digests: readonly Case[] = [
  it('has the SHA-256 digest of content that can be read only in pieces, in all that it returns', async (bench) => {
    const { store, path, collection, reopen } = bench
    for (const [name, size] of named(SIZES)) {
      const bytes = createBytes(size, name)
      claimDigest(await put(store, path(name), binary(stream(bytes, 60_000, 7))), bytes, 'A write was done.')
      for (const opened of [store, await reopen()]) {
        const state = claimResource(await opened.read(path(name)), 'A resource that was written is not there.')
        claimDigest(state, bytes, `Content of ${size} bytes was read.`)
        await claimContent(state, binary(bytes), 'Content came back changed.')
        const { items } = await opened.list(collection, { limit: name })
        claimDigest(items.at(-1), bytes, `Content of ${size} bytes was listed.`)
      }
    }
  }),
  it('has the digest of the content of now, whatever the path held before', async ({ store, path, modes }) => {
    const large = createBytes(1_500_000, 1)
    const bodies = [large, createBytes(10, 2), createBytes(1_500_000, 3), large]
    for (const bytes of bodies) {
      await put(store, path(1), binary(stream(bytes, 65_536)))
      claimDigest(claimResource(await store.read(path(1)), 'It is gone.'), bytes, 'Content was replaced.')
    }
    for (const mode of modes) {
      await put(store, path(1), binary(stream(large, 65_536)))
      const removed = await remove(store, path(1), mode)
      claim(removed.outcome === 'removed', 'A resource was there to be removed.')
      claimDigest(removed.resource, large, 'Content was removed.')
      if (mode !== 'hide') continue
      claimDigest(claimResource(await store.read(path(1), { hidden: true }), 'It is gone.'), large, 'It was hidden.')
    }
    const small = await put(store, path(1), text('small'))
    claim(small.sha256 === undefined || small.sha256.length === 32, 'The digest of large content has stayed.')
  }),
  it('has the digest of staged content, of new members and of related paths', {
    needs: ['related', 'stage'],
  }, async ({ store, path, collection }) => {
    const bytes = createBytes(1_500_000, 4)
    claimDigest(await put(store, path(1), binary(await stage(store, bytes))), bytes, 'Staged content was written.')
    claimDigest(await create(store, collection, binary(stream(bytes, 60_000))), bytes, 'A member was made.')
    const content = binary(await stage(store, bytes))
    await store.write(path(5), text('item'), { expect: 'any', related: [{ path: `${path(5)}/file`, content }] })
    const related = claimResource(await store.read(`${path(5)}/file`), 'A related path was not written.')
    claimDigest(related, bytes, 'A related path was written.')
  }),
]
