import { isLargeBody } from '../../stores/rules.ts'
import type { ResourceStore, StoredResource } from '../../stores/types.ts'
import { create, put, readResource, remove, times } from '../calls.ts'
import { claim, claimBytes, claimContent, claimEqual, claimResource, claimStored, readRange } from '../claims.ts'
import { binary, createBytes, MEBIBYTE, named, reuseBuffer, stream, text } from '../samples.ts'
import { type Case, it } from '../types.ts'

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

export const content: readonly Case[] = [
  it('keeps every byte of a stream, whatever its length', async ({ store, path }) => {
    for (const [name, size] of named([1, ...EDGES])) {
      const bytes = createBytes(size, name)
      await put(store, path(name), binary(stream(bytes, 65_536)))
      await claimStored(store, path(name), binary(bytes), `A stream of ${size} bytes came back changed.`)
    }
  }),
  it('keeps every byte of one large value', async ({ store, path }) => {
    const samples = [binary(createBytes(3 * MEBIBYTE + 5, 1)), text('äöü-'.repeat(300_000)), text('x'.repeat(70_000))]
    for (const [name, sample] of named(samples)) {
      await put(store, path(name), sample)
      await claimStored(store, path(name), sample, `Large value ${name} came back changed.`)
    }
  }),
  it('takes chunks of any size, empty ones too, and a stream without any', async ({ store, path }) => {
    const bytes = createBytes(300_001, 5)
    const streams = [
      stream(bytes, 300_001),
      stream(bytes, 1, 70_000, 3, 131_072),
      stream(bytes, 65_535, 2),
      withEmptyChunks(bytes),
    ]
    for (const [name, body] of named(streams)) {
      await put(store, path(name), binary(body))
      await claimStored(store, path(name), binary(bytes), `Stream ${name} came back changed.`)
    }
    await put(store, path(9), binary(stream(bytes.subarray(0, 400), 1)))
    await claimStored(store, path(9), binary(bytes.subarray(0, 400)), 'Chunks of one byte were mixed up.')
    await put(store, path(9), binary(stream(new Uint8Array(0))))
    await claimStored(store, path(9), binary(new Uint8Array(0)), 'A stream without chunks is empty content.')
  }),
  it('has taken a chunk when it asks for the next one, so that the source may use its buffer again', async (bench) => {
    const { store, path } = bench
    const bytes = createBytes(2 * MEBIBYTE + 77, 6)
    await put(store, path(1), binary(reuseBuffer(bytes, 10_000)))
    await claimStored(store, path(1), binary(bytes), 'The store keeps the buffer of the source.')
  }),
  it('has a copy of small content once the write is done, so that the caller may use its buffer again', async (bench) => {
    const { store, path, collection } = bench
    for (const [name, size] of named([10, 5000, 200_000])) {
      const buffers = [createBytes(size, 1), Buffer.alloc(size, 'a'), Buffer.alloc(size + 20, 'b').subarray(20)]
      for (const whole of buffers) {
        const expected = Buffer.from(whole)
        await put(store, path(name), binary(whole))
        const member = await create(store, collection, binary(whole))
        whole.fill(0)
        for (const { path: own } of [{ path: path(name) }, member])
          await claimStored(store, own, binary(expected), 'The store keeps the buffer of the caller.')
      }
    }
  }),
  it('leaves related writes that it was given as they are, and keeps no buffer of them', {
    needs: ['related'],
  }, async ({ store, path, collection }) => {
    for (const size of [10, 5000, 200_000]) {
      const bytes = createBytes(size, 1)
      const buffers = [4, 2, 3].map(() => Buffer.from(bytes))
      const related = [4, 2, 3].map((name, at) => ({ path: path(name), content: binary(buffers[at]!) }))
      const given = [...related]
      const steps: (() => unknown)[] = [
        () => store.write(path(1), text('own'), { expect: 'any', related }),
        () => store.create(collection, text('own'), { related: () => related }),
      ]
      if (store.supports?.relatedExpect === true)
        steps.push(() => store.remove(path(1), { expect: 'any', mode: 'erase', relatedWrites: related }))
      for (const step of steps) {
        for (const buffer of buffers) buffer.set(bytes)
        await step()
        claimEqual(related, given, 'The store has changed the list of related writes of the caller.')
        for (const buffer of buffers) buffer.fill(0)
        const sentence = 'The store keeps the buffer of a related write.'
        for (const name of [2, 3, 4]) await claimStored(store, path(name), binary(bytes), sentence)
      }
    }
  }),
  it('keeps streams apart that come in at the same time', async ({ store, path }) => {
    const bodies = Array.from({ length: 6 }, (_, seed) => createBytes(400_000 + seed * 1000, seed))
    const members = named(bodies)
    await Promise.all(members.map(([name, bytes]) => put(store, path(name), binary(stream(bytes, 20_000, 3)))))
    for (const [name, bytes] of members)
      await claimStored(store, path(name), binary(bytes), 'Streams that came in together were mixed up.')
  }),
  it('replaces small content by large and large by small, and tells the new size', async (bench) => {
    const { store, path, collection } = bench
    const large = createBytes(1_500_000, 2)
    for (const body of [createBytes(10, 1), large, new Uint8Array(0), large.subarray(1), createBytes(70_000, 3)]) {
      const written = await put(store, path(1), binary(body.length > 100_000 ? stream(body, 65_536) : body))
      claimEqual(written.size, body.length, 'The result of a write tells another size.')
      await claimContent(written, binary(body), 'The result of a write has other content than was given.')
      await claimStored(store, path(1), binary(body), 'The content is not that of the last write.')
      const { items } = await store.list(collection, { limit: 5 })
      await claimContent(items[0], binary(body), 'The listing has other content than was written last.')
    }
  }),
  it('keeps one value at several paths, for each of them', { needs: ['related'] }, async (bench) => {
    const { store, path, collection } = bench
    for (const body of ['x'.repeat(70_000), createBytes(300_000, 6)]) {
      const related = [2, 3].map((name) => ({ path: path(name), content: binary(body) }))
      await store.write(path(1), binary(body), { expect: 'any', related })
      await store.create(collection, binary(body), { related: () => related })
      const writes = store.supports?.relatedExpect === true ? { relatedWrites: related } : {}
      await remove(store, path(1), 'erase', writes)
      await put(store, path(2), text('other'))
      await claimStored(store, path(3), binary(body), 'A value went from one path with its removal from another.')
    }
  }),
  it('returns large content from a removal, readable for a while', async ({ store, path }) => {
    const bytes = createBytes(900_000, 4)
    const { version } = await put(store, path(1), text('before'))
    await put(store, path(1), binary(stream(bytes, 65_536)))
    const refused = await store.remove(path(1), { expect: { version }, mode: 'erase' })
    claimEqual(refused.outcome, 'conflict', 'A removal that expected a version of the past happened.')
    const result = await remove(store, path(1))
    claim(result.outcome === 'removed', 'A resource was there to be removed.')
    const { size } = claimResource(result.resource, 'The removal returns nothing.')
    claimEqual(size, bytes.length, 'The size is wrong.')
    await claimContent(result.resource, binary(bytes), 'The removal returns other content.')
  }),
]

async function putLarge(store: ResourceStore, path: string, bytes: Uint8Array): Promise<StoredResource> {
  await put(store, path, binary(stream(bytes, 65_536)))
  return await readResource(store, path)
}

/** Seconds that a task takes, the best of some tries: what else the machine does must not count. */
async function measure(task: () => Promise<unknown>): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < 5; i++) {
    const start = performance.now()
    await task()
    best = Math.min(best, performance.now() - start)
  }
  return best
}

export const ranges: readonly Case[] = [
  it('opens every range, the first and the last byte included', async ({ store, path }) => {
    const size = 1_400_007
    const bytes = createBytes(size, 1)
    const resource = await putLarge(store, path(1), bytes)
    const edges = [0, 1, 4095, 65_535, 65_536, 131_071, 262_144, 524_287, 524_288, 1_048_575, 1_048_576, size - 1]
    for (const first of edges) {
      for (const last of edges) {
        if (last < first) continue
        const found = await readRange(resource, first, last)
        claimBytes(found, bytes.subarray(first, last + 1), `The range ${first}-${last} has other bytes.`)
      }
    }
  }),
  it('opens single bytes and short ranges anywhere', async ({ store, path }) => {
    const bytes = createBytes(700_001, 2)
    const resource = await putLarge(store, path(1), bytes)
    for (let first = 0; first < bytes.length; first += 23_333) {
      for (const length of [1, 2, 3000]) {
        const last = Math.min(first + length, bytes.length) - 1
        const found = await readRange(resource, first, last)
        claimBytes(found, bytes.subarray(first, last + 1), `The range ${first}-${last} has other bytes.`)
      }
    }
  }),
  it('opens many ranges of one state at the same time', async ({ store, path }) => {
    const bytes = createBytes(1_300_000, 3)
    const resource = await putLarge(store, path(1), bytes)
    await times(12, async (index) => {
      const first = index * 100_000
      const found = await readRange(resource, first, first + 99_999)
      claimBytes(found, bytes.subarray(first, first + 100_000), 'Ranges that were read together were mixed up.')
    })
  }),
  it('lets a reader stop in the middle, and is not held up by it', async ({ store, path }) => {
    const bytes = createBytes(1_600_000, 4)
    const { body } = await putLarge(store, path(1), bytes)
    if (isLargeBody(body)) {
      for (let i = 0; i < 20; i++) for await (const chunk of body.open(i, bytes.length - 1)) if (chunk.length > 0) break
    }
    await put(store, path(1), text('next'))
    await remove(store, path(1))
    claimEqual(await store.read(path(1)), undefined, 'A reader that had stopped is in the way of a removal.')
  }),
  it('gives large content in pieces', async ({ store, path }) => {
    const bytes = createBytes(12 * MEBIBYTE, 5)
    const { body } = await putLarge(store, path(1), bytes)
    claim(isLargeBody(body), 'Content of 12 MiB that came as a stream is returned as one value.')
    let at = 0
    for await (const chunk of body.open(0, bytes.length - 1)) {
      claim(chunk.length <= 4 * MEBIBYTE, `A chunk has ${chunk.length} bytes: that is not a piece, but the whole.`)
      at += chunk.length
    }
    claimEqual(at, bytes.length, 'The pieces are not as long as the whole.')
  }),
  it('opens a range of very large content at the cost of the range', async ({ store, path }) => {
    const [small, large] = [createBytes(MEBIBYTE + 100_000, 6), createBytes(24 * MEBIBYTE, 7)]
    const durations: number[] = []
    for (const [name, bytes] of named([small, large])) {
      const resource = await putLarge(store, path(name), bytes)
      const first = bytes.length - 1000
      durations.push(
        await measure(async () => {
          for (let i = 0; i < 10; i++)
            claimEqual((await readRange(resource, first, first + 99)).length, 100, 'Too short.')
        }),
      )
    }
    const [brief, long] = durations as [number, number]
    claim(
      long < 5 || long < 8 * brief,
      `Ten ranges of 100 bytes took ${brief.toFixed(1)} ms from 1 MiB and ${long.toFixed(1)} ms from 24 MiB: ` +
        'the store reads bytes that were not asked for.',
    )
  }),
]
