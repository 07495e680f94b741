import { isLargeBody, type ResourceStore, type StoredResource } from '../../stores/types.ts'
import { claim, claimBytes, claimEqual, readRange } from '../claims.ts'
import { binary, createBytes, MEBIBYTE, put, readResource, remove, stream, text, times } from '../samples.ts'
import type { Case } from '../types.ts'

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
  {
    title: 'opens every range, the first and the last byte included',
    async run({ store, path }) {
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
    },
  },
  {
    title: 'opens single bytes and short ranges anywhere',
    async run({ store, path }) {
      const bytes = createBytes(700_001, 2)
      const resource = await putLarge(store, path(1), bytes)
      for (let first = 0; first < bytes.length; first += 23_333) {
        for (const length of [1, 2, 3000]) {
          const last = Math.min(first + length, bytes.length) - 1
          const found = await readRange(resource, first, last)
          claimBytes(found, bytes.subarray(first, last + 1), `The range ${first}-${last} has other bytes.`)
        }
      }
    },
  },
  {
    title: 'opens many ranges of one state at the same time',
    async run({ store, path }) {
      const bytes = createBytes(1_300_000, 3)
      const resource = await putLarge(store, path(1), bytes)
      await times(12, async (index) => {
        const first = index * 100_000
        const found = await readRange(resource, first, first + 99_999)
        claimBytes(found, bytes.subarray(first, first + 100_000), 'Ranges that were read together were mixed up.')
      })
    },
  },
  {
    title: 'lets a reader stop in the middle, and is not held up by it',
    async run({ store, path }) {
      const bytes = createBytes(1_600_000, 4)
      const { body } = await putLarge(store, path(1), bytes)
      if (isLargeBody(body)) {
        for (let i = 0; i < 20; i++)
          for await (const chunk of body.open(i, bytes.length - 1)) if (chunk.length > 0) break
      }
      await put(store, path(1), text('next'))
      await remove(store, path(1))
      claimEqual(await store.read(path(1)), undefined, 'A reader that had stopped is in the way of a removal.')
    },
  },
  {
    title: 'gives large content in pieces',
    async run({ store, path }) {
      const bytes = createBytes(12 * MEBIBYTE, 5)
      const { body } = await putLarge(store, path(1), bytes)
      claim(isLargeBody(body), 'Content of 12 MiB that came as a stream is returned as one value.')
      let at = 0
      for await (const chunk of body.open(0, bytes.length - 1)) {
        claim(chunk.length <= 4 * MEBIBYTE, `A chunk has ${chunk.length} bytes: that is not a piece, but the whole.`)
        at += chunk.length
      }
      claimEqual(at, bytes.length, 'The pieces are not as long as the whole.')
    },
  },
  {
    title: 'opens a range of very large content at the cost of the range',
    async run({ store, path }) {
      const [small, large] = [createBytes(MEBIBYTE + 100_000, 6), createBytes(24 * MEBIBYTE, 7)]
      const durations: number[] = []
      for (const [name, bytes] of [small, large].entries()) {
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
    },
  },
]
