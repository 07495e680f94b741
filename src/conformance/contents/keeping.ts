import type { ContentStore, ListedContent } from '../../contents/types.ts'
import { claim, claimBytes, claimEqual, claimFails } from '../claims.ts'
import { createBytes, stream } from '../samples.ts'

/** What a case works with. */
export interface ContentsBench {
  readonly contents: ContentStore
  /** The size of the largest content, in bytes. */
  readonly largest: number
  /** A key that was never used. */
  readonly createKey: () => string
  /** The same place, opened once more. */
  readonly reopen: () => Promise<ContentStore>
}

/** One property that a content store has or has not. */
export interface ContentsCase {
  /** What the content store does, as a sentence without a subject. */
  readonly title: string
  readonly run: (bench: ContentsBench) => Promise<void>
}

export async function readAll(contents: ContentStore, key: string, first: number, last: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  // Copied, because the buffer may be used again for the next chunk.
  for await (const chunk of contents.open(key, first, last)) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}

export async function listAll(contents: ContentStore): Promise<readonly ListedContent[]> {
  const found: ListedContent[] = []
  for await (const one of contents.list()) found.push(one)
  return found
}

export const keeping: readonly ContentsCase[] = [
  {
    title: 'returns the bytes that were put, and tells their number',
    async run({ contents, createKey, largest }) {
      for (const size of [1, 70_000, 1_500_000, largest]) {
        const [key, bytes] = [createKey(), createBytes(size, size)]
        const put = await contents.put(key, stream(bytes, 60_000))
        claimEqual(put.size, size, 'It tells another size.')
        claimBytes(await readAll(contents, key, 0, size - 1), bytes, 'The content came back changed.')
      }
    },
  },
  {
    title: 'takes content in one chunk, and in chunks of a few bytes',
    async run({ contents, createKey }) {
      for (const [size, chunk] of [
        [1_500_000, 1_500_000],
        [3000, 7],
      ] as const) {
        const [key, bytes] = [createKey(), createBytes(size, 2)]
        await contents.put(key, stream(bytes, chunk))
        claimBytes(await readAll(contents, key, 0, size - 1), bytes, 'The content came back changed.')
      }
    },
  },
  {
    title: 'opens every range, the first and the last byte included',
    async run({ contents, createKey, largest }) {
      const [key, bytes] = [createKey(), createBytes(largest, 3)]
      await contents.put(key, stream(bytes, 60_000))
      const ranges = [
        [0, 0],
        [largest - 1, largest - 1],
        [1, 100_000],
        [65_535, 65_536],
        [largest - 200_000, largest - 1],
        [Math.floor(largest / 2), Math.floor(largest / 2) + 300_000],
      ] as const
      for (const [first, last] of ranges) {
        const found = await readAll(contents, key, first, last)
        claimBytes(found, bytes.subarray(first, last + 1), `Bytes ${first} to ${last} are others.`)
      }
    },
  },
  {
    title: 'reads short ranges at once, into a buffer of the reader or of its own',
    async run({ contents, createKey, largest }) {
      if (contents.read === undefined) return
      const [key, bytes] = [createKey(), createBytes(largest, 8)]
      await contents.put(key, stream(bytes, 60_000))
      const buffer = Buffer.alloc(65_536)
      const kept = await contents.read(key, 0, 99)
      for (const [first, last] of [
        [0, 0],
        [1000, 66_535],
        [largest - 300, largest - 1],
      ] as const) {
        const expected = bytes.subarray(first, last + 1)
        for (const options of [undefined, {}, { buffer: buffer.fill(1) }]) {
          const found = Buffer.from(await contents.read(key, first, last, options))
          claimBytes(found, expected, `Bytes ${first} to ${last} are others when they are read at once.`)
        }
      }
      claimBytes(Buffer.from(kept), bytes.subarray(0, 100), 'Bytes that were read without a buffer have changed since.')
      await contents.remove(key)
      await claimFails(async () => contents.read!(key, 0, 99), 'Content that was removed is still read at once.')
    },
  },
  {
    title: 'has taken a chunk when it asks for the next one, so that the source may use its buffer again',
    async run({ contents, createKey, largest }) {
      const [key, bytes] = [createKey(), createBytes(largest, 4)]
      async function* reusing(): AsyncGenerator<Uint8Array> {
        const buffer = Buffer.alloc(50_000)
        for (let at = 0; at < bytes.length; at += buffer.length) {
          const length = bytes.copy(buffer, 0, at, at + buffer.length)
          yield buffer.subarray(0, length)
          buffer.fill(0)
        }
      }
      await contents.put(key, reusing())
      claimBytes(await readAll(contents, key, 0, largest - 1), bytes, 'A buffer was kept, and has changed since.')
    },
  },
  {
    title: 'keeps many contents apart that are put and read at once',
    async run({ contents, createKey }) {
      const keys = Array.from({ length: 12 }, createKey)
      await Promise.all(keys.map((key, seed) => contents.put(key, stream(createBytes(150_000, seed), 20_000))))
      await Promise.all(
        [...keys, ...keys].map(async (key, index) => {
          const bytes = createBytes(150_000, index % keys.length)
          claimBytes(await readAll(contents, key, 0, 149_999), bytes, 'The content is that of another key.')
        }),
      )
    },
  },
  {
    title: 'shows nothing under a key before all of its content is kept',
    async run({ contents, createKey }) {
      const [key, bytes] = [createKey(), createBytes(300_000, 5)]
      async function* looking(): AsyncGenerator<Uint8Array> {
        yield bytes.subarray(0, 200_000)
        await claimFails(() => readAll(contents, key, 0, 99), 'Content was read that had not all been put.')
        yield bytes.subarray(200_000)
      }
      await contents.put(key, looking())
      claimBytes(await readAll(contents, key, 0, 299_999), bytes, 'The content came back changed.')
    },
  },
  {
    title: 'shows content to every process as soon as it is kept',
    async run({ contents, createKey, reopen }) {
      const [key, bytes] = [createKey(), createBytes(100_000, 6)]
      await contents.put(key, stream(bytes, 60_000))
      const other = await reopen()
      claimBytes(await readAll(other, key, 0, 99_999), bytes, 'Another process reads other content.')
      claimEqual((await listAll(other)).map((one) => one.key).join(), key, 'Another process lists other keys.')
    },
  },
  {
    title: 'fails to open content that was never put',
    async run({ contents, createKey }) {
      await claimFails(() => readAll(contents, createKey(), 0, 9), 'A key that was never used has content.')
    },
  },
  {
    title: 'ends a read when the reader leaves, and closes what it has opened',
    async run({ contents, createKey }) {
      const [key, bytes] = [createKey(), createBytes(1_000_000, 7)]
      await contents.put(key, stream(bytes, 60_000))
      for (let count = 0; count < 20; count++) {
        for await (const chunk of contents.open(key, 0, 999_999)) {
          claim(chunk.length > 0, 'A chunk is empty.')
          break
        }
      }
      claimBytes(await readAll(contents, key, 0, 999_999), bytes, 'The content came back changed.')
    },
  },
]
