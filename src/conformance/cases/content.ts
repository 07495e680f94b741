import { claim, claimContent, claimEqual, claimResource, claimStored } from '../claims.ts'
import { binary, createBytes, MEBIBYTE, put, remove, reuseBuffer, stream, text, times } from '../samples.ts'
import type { Case } from '../types.ts'

const KIBIBYTE = 1024

/** Lengths around the powers of two, where blocks, chunks and pages end. */
const EDGES = [4, 16, 64, 256, 512, 1024].flatMap((size) => [-1, 0, 1].map((offset) => size * KIBIBYTE + offset))

async function* withEmptyChunks(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream(bytes, 7000)) {
    yield new Uint8Array(0)
    yield chunk
  }
  yield new Uint8Array(0)
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

export const content: readonly Case[] = [
  {
    title: 'keeps every byte of a stream, whatever its length',
    async run({ store, path }) {
      for (const [name, size] of [1, ...EDGES].entries()) {
        const bytes = createBytes(size, name)
        await put(store, path(name), binary(stream(bytes, 65_536)))
        await claimStored(store, path(name), binary(bytes), `A stream of ${size} bytes came back changed.`)
      }
    },
  },
  {
    title: 'keeps every byte of one large value',
    async run({ store, path }) {
      const samples = [binary(createBytes(3 * MEBIBYTE + 5, 1)), text('äöü-'.repeat(300_000)), text('x'.repeat(70_000))]
      for (const [name, sample] of samples.entries()) {
        await put(store, path(name), sample)
        await claimStored(store, path(name), sample, `Large value ${name} came back changed.`)
      }
    },
  },
  {
    title: 'takes chunks of any size, empty ones too, and a stream without any',
    async run({ store, path }) {
      const bytes = createBytes(300_001, 5)
      const streams = [
        stream(bytes, 300_001),
        stream(bytes, 1, 70_000, 3, 131_072),
        stream(bytes, 65_535, 2),
        withEmptyChunks(bytes),
      ]
      for (const [name, body] of streams.entries()) {
        await put(store, path(name), binary(body))
        await claimStored(store, path(name), binary(bytes), `Stream ${name} came back changed.`)
      }
      await put(store, path(9), binary(stream(bytes.subarray(0, 400), 1)))
      await claimStored(store, path(9), binary(bytes.subarray(0, 400)), 'Chunks of one byte were mixed up.')
      await put(store, path(9), binary(nothing()))
      await claimStored(store, path(9), binary(new Uint8Array(0)), 'A stream without chunks is empty content.')
    },
  },
  {
    title: 'has taken a chunk when it asks for the next one, so that the source may use its buffer again',
    async run({ store, path }) {
      const bytes = createBytes(2 * MEBIBYTE + 77, 6)
      await put(store, path(1), binary(reuseBuffer(bytes, 10_000)))
      await claimStored(store, path(1), binary(bytes), 'The store keeps the buffer of the source.')
    },
  },
  {
    title: 'has a copy of small content once the write is done, so that the caller may use its buffer again',
    async run({ store, path }) {
      for (const [name, size] of [10, 5000, 200_000].entries()) {
        const buffers = [createBytes(size, 1), Buffer.alloc(size, 'a'), Buffer.alloc(size + 20, 'b').subarray(20)]
        for (const whole of buffers) {
          const expected = Buffer.from(whole)
          await put(store, path(name), binary(whole))
          whole.fill(0)
          await claimStored(store, path(name), binary(expected), 'The store keeps the buffer of the caller.')
        }
      }
    },
  },
  {
    title: 'keeps streams apart that come in at the same time',
    async run({ store, path }) {
      const bodies = Array.from({ length: 6 }, (_, seed) => createBytes(400_000 + seed * 1000, seed))
      await times(bodies.length, (name) => put(store, path(name), binary(stream(bodies[name]!, 20_000, 3))))
      for (const [name, bytes] of bodies.entries()) {
        await claimStored(store, path(name), binary(bytes), 'Streams that came in together were mixed up.')
      }
    },
  },
  {
    title: 'replaces small content by large and large by small, and tells the new size',
    async run({ store, path, collection }) {
      const large = createBytes(1_500_000, 2)
      for (const body of [createBytes(10, 1), large, new Uint8Array(0), large.subarray(1), createBytes(70_000, 3)]) {
        const written = await put(store, path(1), binary(body.length > 100_000 ? stream(body, 65_536) : body))
        claimEqual(written.size, body.length, 'The result of a write tells another size.')
        await claimContent(written, binary(body), 'The result of a write has other content than was given.')
        await claimStored(store, path(1), binary(body), 'The content is not that of the last write.')
        const { items } = await store.list(collection, { limit: 5 })
        await claimContent(items[0], binary(body), 'The listing has other content than was written last.')
      }
    },
  },
  {
    title: 'returns large content from a removal, readable for a while',
    async run({ store, path }) {
      const bytes = createBytes(900_000, 4)
      await put(store, path(1), binary(stream(bytes, 65_536)))
      const result = await remove(store, path(1))
      claim(result.outcome === 'removed', 'A resource was there to be removed.')
      const { size } = claimResource(result.resource, 'The removal returns nothing.')
      claimEqual(size, bytes.length, 'The size is wrong.')
      await claimContent(result.resource, binary(bytes), 'The removal returns other content.')
    },
  },
]
