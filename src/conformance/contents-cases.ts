import type { ContentStore, ListedContent } from '../contents/types.ts'
import { readWhole } from '../stores/streams.ts'
import { claim, claimBytes, claimEqual, claimFails } from './claims.ts'
import { brokenStream, createBytes, interrupt, reuseBuffer, stream } from './samples.ts'
import { type Case, it } from './types.ts'

/** What a case works with. */
export interface ContentsBench {
  readonly contents: ContentStore
  /** The size of the largest content, in bytes. */
  readonly largest: number
  /** A key that was never used. */
  readonly createKey: () => string
  /** Puts content of a length under such a key, in chunks of 60 000 bytes or of another length; `size` is the answer. */
  readonly keep: (length: number, chunk?: number) => Promise<{ key: string; bytes: Uint8Array; size: number }>
  /** The same place, opened once more. */
  readonly reopen: () => Promise<ContentStore>
}

export async function readAll(contents: ContentStore, key: string, first: number, last: number): Promise<Buffer> {
  return readWhole(contents.open(key, first, last))
}

async function listAll(contents: ContentStore): Promise<readonly ListedContent[]> {
  const found: ListedContent[] = []
  for await (const one of contents.list()) found.push(one)
  return found
}

async function listKeys(contents: ContentStore): Promise<readonly string[]> {
  return (await listAll(contents)).map(({ key }) => key).sort()
}

const HOUR = 60 * 60 * 1000

export const contentsCases: readonly Case<ContentsBench>[] = [
  it('returns the bytes that were put, and tells their number', async ({ contents, keep, largest }) => {
    for (const [length, chunk] of [[1], [70_000], [1_500_000], [largest], [1_500_000, 1_500_000], [3000, 7]] as const) {
      const { key, bytes, size } = await keep(length, chunk)
      claimEqual(size, length, 'It tells another size.')
      claimBytes(await readAll(contents, key, 0, size - 1), bytes, 'The content came back changed.')
    }
  }),
  it('opens every range, the first and the last byte included', async ({ contents, keep, largest }) => {
    const { key, bytes } = await keep(largest)
    const half = Math.floor(largest / 2)
    const claimRange = async (first: number, last: number) => {
      const found = await readAll(contents, key, first, last)
      claimBytes(found, bytes.subarray(first, last + 1), `Bytes ${first} to ${last} are others.`)
    }
    await claimRange(0, 0)
    await claimRange(largest - 1, largest - 1)
    await claimRange(1, 100_000)
    await claimRange(65_535, 65_536)
    await claimRange(largest - 200_000, largest - 1)
    await claimRange(half, half + 300_000)
  }),
  it('reads short ranges at once, into a buffer of the reader or of its own', async ({ contents, keep, largest }) => {
    if (contents.read === undefined) return
    const { key, bytes } = await keep(largest)
    const buffer = Buffer.alloc(65_536)
    const kept = await contents.read(key, 0, 99)
    const claimRange = async (first: number, last: number) => {
      const expected = bytes.subarray(first, last + 1)
      for (const options of [undefined, {}, { buffer: buffer.fill(1) }]) {
        const found = Buffer.from(await contents.read!(key, first, last, options))
        claimBytes(found, expected, `Bytes ${first} to ${last} are others when they are read at once.`)
      }
    }
    await claimRange(0, 0)
    await claimRange(1000, 66_535)
    await claimRange(largest - 300, largest - 1)
    claimBytes(Buffer.from(kept), bytes.subarray(0, 100), 'Bytes that were read without a buffer have changed since.')
    await contents.remove(key)
    await claimFails(async () => contents.read!(key, 0, 99), 'Content that was removed is still read at once.')
  }),
  it('has taken a chunk when it asks for the next one, so that the source may use its buffer again', async (bench) => {
    const { contents, createKey, largest } = bench
    const [key, bytes] = [createKey(), createBytes(largest, 4)]
    await contents.put(key, reuseBuffer(bytes, 50_000))
    claimBytes(await readAll(contents, key, 0, largest - 1), bytes, 'A buffer was kept, and has changed since.')
  }),
  it('keeps many contents apart that are put and read at once', async ({ contents, createKey }) => {
    const keys = Array.from({ length: 12 }, createKey)
    await Promise.all(keys.map((key, seed) => contents.put(key, stream(createBytes(150_000, seed), 20_000))))
    await Promise.all(
      [...keys, ...keys].map(async (key, index) => {
        const bytes = createBytes(150_000, index % keys.length)
        claimBytes(await readAll(contents, key, 0, 149_999), bytes, 'The content is that of another key.')
      }),
    )
  }),
  it('shows nothing under a key before all of its content is kept', async ({ contents, createKey }) => {
    const [key, bytes] = [createKey(), createBytes(300_000, 5)]
    const early = () => readAll(contents, key, 0, 99)
    const look = () => claimFails(early, 'Content was read that had not all been put.')
    await contents.put(key, interrupt(bytes, look))
    claimBytes(await readAll(contents, key, 0, 299_999), bytes, 'The content came back changed.')
  }),
  it('shows content to every process as soon as it is kept', async ({ keep, reopen }) => {
    const { key, bytes } = await keep(100_000)
    const other = await reopen()
    claimBytes(await readAll(other, key, 0, 99_999), bytes, 'Another process reads other content.')
    claimEqual(await listKeys(other), [key], 'Another process lists other keys.')
  }),
  it('fails to open content that was never put', async ({ contents, createKey }) => {
    await claimFails(() => readAll(contents, createKey(), 0, 9), 'A key that was never used has content.')
  }),
  it('ends a read when the reader leaves, and closes what it has opened', async ({ contents, keep }) => {
    const { key, bytes } = await keep(1_000_000)
    for (let count = 0; count < 20; count++) {
      for await (const chunk of contents.open(key, 0, 999_999)) {
        claim(chunk.length > 0, 'A chunk is empty.')
        break
      }
    }
    claimBytes(await readAll(contents, key, 0, 999_999), bytes, 'The content came back changed.')
  }),
  it('leaves nothing of a stream that breaks off, and passes its error on', async (bench) => {
    const { contents, createKey, largest } = bench
    for (const length of [0, 100_000, largest]) {
      const key = createKey()
      const broken = new Error('The source has failed.')
      const put = () => contents.put(key, brokenStream(createBytes(length, 1), broken))
      const error = await claimFails(put, 'Half of a content was kept.')
      claim(error === broken, 'The error of the source was not passed on.')
      await claimFails(() => readAll(contents, key, 0, 0), 'Half of a content can be read.')
      claimEqual(await listAll(contents), [], 'Something of it stays.')
    }
  }),
  it('ends with the reason of the signal, and leaves nothing', async ({ contents, createKey, largest }) => {
    for (const length of [0, 100_000, largest - 1]) {
      const [key, controller, reason] = [createKey(), new AbortController(), new Error('The client has left.')]
      const { signal } = controller
      async function* leaving(): AsyncGenerator<Uint8Array> {
        yield* stream(createBytes(length, 2), 60_000)
        controller.abort(reason)
        yield createBytes(1, 3)
      }
      if (length === 0) controller.abort(reason)
      const put = () => contents.put(key, leaving(), { signal })
      const error = await claimFails(put, 'Content was kept although the signal had aborted.')
      claim(error === reason, 'The reason of the signal was not passed on.')
      await claimFails(() => readAll(contents, key, 0, 0), 'Content can be read although the signal had aborted.')
      claimEqual(await listAll(contents), [], 'Something of it stays.')
    }
  }),
  it('removes content, and succeeds when there is none', async ({ contents, createKey, keep }) => {
    const [{ key }, other] = [await keep(100_000), await keep(100_000)]
    await contents.remove(key)
    await contents.remove(key)
    await contents.remove(createKey())
    await claimFails(() => readAll(contents, key, 0, 9), 'Content was read that had been removed.')
    claimEqual(await listKeys(contents), [other.key], 'Other keys are listed than are kept.')
  }),
  it('lists every key once, with its age', async ({ contents, keep }) => {
    claimEqual(await listAll(contents), [], 'An empty content store lists something.')
    const keys: string[] = []
    for (let i = 0; i < 40; i++) keys.push((await keep(100)).key)
    const listed = await listAll(contents)
    claimEqual(listed.map(({ key }) => key).sort(), keys.sort(), 'Other keys are listed than are kept.')
    const wrong = listed.find(({ age }) => !(age > -HOUR && age < HOUR))
    claim(wrong === undefined, `Content was put just now, and its age is given as ${wrong?.age} milliseconds.`)
  }),
  it('removes what a listing has found, and nothing else', async ({ contents, keep }) => {
    const [first, { key: own }, last] = [await keep(100_000), await keep(100_000), await keep(100_000)]
    const found = (await listAll(contents)).find(({ key }) => key === own)
    claim(found !== undefined, 'A key is missing in the listing.')
    await found.remove()
    await found.remove()
    await claimFails(() => readAll(contents, own, 0, 9), 'Content was read that had been removed.')
    claimEqual(await listKeys(contents), [first.key, last.key].sort(), 'Other keys are listed than are kept.')
  }),
  it('gives a reader the right bytes or an error when content is removed under it', async (bench) => {
    const { contents, keep, largest } = bench
    const { key, bytes } = await keep(largest)
    const chunks: Buffer[] = []
    try {
      for await (const chunk of contents.open(key, 0, largest - 1)) {
        if (chunks.length === 0) await contents.remove(key)
        chunks.push(Buffer.from(chunk))
      }
    } catch {
      // Broken off, which is as good as read to the end.
    }
    const read = Buffer.concat(chunks)
    claimBytes(read, bytes.subarray(0, read.length), 'The reader was given other bytes.')
  }),
]
