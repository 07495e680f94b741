import { createHash } from 'node:crypto'
import { isLargeBody, type StoredResource } from '../../stores/types.ts'
import { claim, claimContent, claimResource } from '../claims.ts'
import { binary, create, createBytes, MEBIBYTE, put, remove, stage, stream, text } from '../samples.ts'
import type { Case } from '../types.ts'

/** Lengths around the limits of values, chunks and batches. */
const SIZES = [65_536, 65_537, 131_072, 262_145, 524_288, 524_289, MEBIBYTE, MEBIBYTE + 1, 3 * MEBIBYTE + 7]

/** Fails unless large content has its digest. */
function claimDigest(state: StoredResource | undefined, bytes: Uint8Array, sentence: string): void {
  const { body, sha256 } = claimResource(state, sentence)
  if (!isLargeBody(body) && sha256 === undefined) return
  const expected = createHash('sha256').update(bytes).digest()
  claim(sha256 !== undefined && expected.equals(sha256), `${sentence} It lacks the SHA-256 digest of its content.`)
}

export const digests: readonly Case[] = [
  {
    title: 'has the SHA-256 digest of content that can be read only in pieces, in all that it returns',
    async run({ store, path, collection, reopen }) {
      for (const [name, size] of SIZES.entries()) {
        const bytes = createBytes(size, name)
        claimDigest(await put(store, path(name), binary(stream(bytes, 60_000, 7))), bytes, 'A write was done.')
        for (const opened of [store, await reopen()]) {
          const state = claimResource(await opened.read(path(name)), 'A resource that was written is not there.')
          claimDigest(state, bytes, `Content of ${size} bytes was read.`)
          await claimContent(state, binary(bytes), 'Content came back changed.')
          const { items } = await opened.list(collection, { limit: 1 + name })
          claimDigest(items[name], bytes, `Content of ${size} bytes was listed.`)
        }
      }
    },
  },
  {
    title: 'has the digest of the content of now, whatever the path held before',
    async run({ store, path, modes }) {
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
    },
  },
  {
    title: 'has the digest of staged content, of new members and of related paths',
    needs: ['related', 'stage'],
    async run({ store, path, collection }) {
      const bytes = createBytes(1_500_000, 4)
      claimDigest(await put(store, path(1), binary(await stage(store, bytes))), bytes, 'Staged content was written.')
      claimDigest(await create(store, collection, binary(stream(bytes, 60_000))), bytes, 'A member was made.')
      const content = binary(await stage(store, bytes))
      await store.write(path(5), text('item'), { expect: 'any', related: [{ path: `${path(5)}/file`, content }] })
      const related = claimResource(await store.read(`${path(5)}/file`), 'A related path was not written.')
      claimDigest(related, bytes, 'A related path was written.')
    },
  },
]
