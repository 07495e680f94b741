import { claim, claimBytes, claimEqual, claimFails } from '../claims.ts'
import { createBytes, stream } from '../samples.ts'
import { type ContentsCase, listAll, readAll } from './keeping.ts'

const HOUR = 60 * 60 * 1000

export const removing: readonly ContentsCase[] = [
  {
    title: 'leaves nothing of a stream that breaks off, and passes its error on',
    async run({ contents, createKey, largest }) {
      for (const length of [0, 100_000, largest]) {
        const key = createKey()
        const broken = new Error('The source has failed.')
        async function* breaking(): AsyncGenerator<Uint8Array> {
          if (length > 0) yield* stream(createBytes(length, 1), 60_000)
          throw broken
        }
        const error = await claimFails(() => contents.put(key, breaking()), 'Half of a content was kept.')
        claim(error === broken, 'The error of the source was not passed on.')
        await claimFails(() => readAll(contents, key, 0, 0), 'Half of a content can be read.')
        claimEqual(await listAll(contents), [], 'Something of it stays.')
      }
    },
  },
  {
    title: 'ends with the reason of the signal, and leaves nothing',
    async run({ contents, createKey, largest }) {
      for (const length of [0, 100_000, largest - 1]) {
        const [key, controller, reason] = [createKey(), new AbortController(), new Error('The client has left.')]
        const { signal } = controller
        async function* leaving(): AsyncGenerator<Uint8Array> {
          if (length > 0) yield* stream(createBytes(length, 2), 60_000)
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
    },
  },
  {
    title: 'removes content, and succeeds when there is none',
    async run({ contents, createKey }) {
      const [key, other] = [createKey(), createKey()]
      await contents.put(key, stream(createBytes(100_000, 4), 60_000))
      await contents.put(other, stream(createBytes(100_000, 5), 60_000))
      await contents.remove(key)
      await contents.remove(key)
      await contents.remove(createKey())
      await claimFails(() => readAll(contents, key, 0, 9), 'Content was read that had been removed.')
      claimEqual((await listAll(contents)).map((one) => one.key).join(), other, 'Other keys are listed than are kept.')
    },
  },
  {
    title: 'lists every key once, with its age',
    async run({ contents, createKey }) {
      claimEqual(await listAll(contents), [], 'An empty content store lists something.')
      const keys = Array.from({ length: 40 }, createKey)
      for (const key of keys) await contents.put(key, stream(createBytes(100, 6), 60_000))
      const listed = await listAll(contents)
      claimEqual(listed.map(({ key }) => key).sort(), keys.sort(), 'Other keys are listed than are kept.')
      const wrong = listed.find(({ age }) => !(age > -HOUR && age < HOUR))
      claim(wrong === undefined, `Content was put just now, and its age is given as ${wrong?.age} milliseconds.`)
    },
  },
  {
    title: 'removes what a listing has found, and nothing else',
    async run({ contents, createKey }) {
      const keys = [createKey(), createKey(), createKey()]
      for (const key of keys) await contents.put(key, stream(createBytes(100_000, 7), 60_000))
      const found = (await listAll(contents)).find(({ key }) => key === keys[1])
      claim(found !== undefined, 'A key is missing in the listing.')
      await found.remove()
      await found.remove()
      await claimFails(() => readAll(contents, keys[1]!, 0, 9), 'Content was read that had been removed.')
      const left = (await listAll(contents)).map(({ key }) => key)
      claimEqual(left.sort(), [keys[0]!, keys[2]!].sort(), 'Other keys are listed than are kept.')
    },
  },
  {
    title: 'gives a reader the right bytes or an error when content is removed under it',
    async run({ contents, createKey, largest }) {
      const [key, bytes] = [createKey(), createBytes(largest, 8)]
      await contents.put(key, stream(bytes, 60_000))
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
    },
  },
]
