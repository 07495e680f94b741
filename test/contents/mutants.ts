import { type ContentStore, createGoneError } from '../../src/contents/types.ts'

/** A right content store in memory. */
export function memoryContents(kept: Map<string, Uint8Array> = new Map()): ContentStore {
  return {
    async put(key, body, { signal } = {}) {
      const chunks: Buffer[] = []
      signal?.throwIfAborted()
      for await (const chunk of body) chunks.push(Buffer.from(chunk))
      signal?.throwIfAborted()
      const bytes = Buffer.concat(chunks)
      kept.set(key, bytes)
      return { size: bytes.length }
    },
    async *open(key, first, last) {
      const bytes = kept.get(key)
      if (bytes === undefined) throw createGoneError()
      for (let at = first; at <= last; at += 50_000) yield bytes.subarray(at, Math.min(at + 50_000, last + 1))
    },
    remove: (key) => void kept.delete(key),
    async *list() {
      for (const key of [...kept.keys()]) yield { key, age: 5, remove: () => void kept.delete(key) }
    },
  }
}

function mutate(change: (sound: ContentStore, kept: Map<string, Uint8Array>) => Partial<ContentStore>) {
  return (): ContentStore => {
    const kept = new Map<string, Uint8Array>()
    const sound = memoryContents(kept)
    return { ...sound, ...change(sound, kept) }
  }
}

type ReadShort = (bytes: Uint8Array, first: number, last: number, buffer?: Uint8Array) => Uint8Array

const SHARED = Buffer.alloc(65_536)

/** The bytes in a buffer: all of the reader's, the right part of one of its own. */
function fill(bytes: Uint8Array, buffer: Uint8Array = Buffer.alloc(bytes.length)): Uint8Array {
  buffer.set(bytes)
  return buffer === SHARED ? buffer.subarray(0, bytes.length) : buffer
}

/** Broken content stores, and a case that must find each of them out. */
export const MUTANTS: readonly (readonly [name: string, create: () => ContentStore, title: string])[] = [
  [
    'leaves the last byte of a range out',
    mutate((sound) => ({ open: (key, first, last) => sound.open(key, first, last - 1) })),
    'opens every range, the first and the last byte included',
  ],
  ...(
    [
      ['leaves the last byte of a short range out', (bytes, first, last) => bytes.subarray(first, last)],
      ['gives the whole buffer', (bytes, first, last, buffer) => fill(bytes.subarray(first, last + 1), buffer)],
      ['uses a buffer of its own twice', (bytes, first, last) => fill(bytes.subarray(first, last + 1), SHARED)],
      ['goes on reading what was removed', (bytes, first, last) => bytes.subarray(first, last + 1), true],
    ] as const satisfies readonly (readonly [name: string, read: ReadShort, isKept?: true])[]
  ).map(
    ([name, read, isKept]: readonly [string, ReadShort, true?]) =>
      [
        name,
        mutate((sound, kept) => {
          const removed = new Map<string, Uint8Array>()
          return {
            remove(key) {
              if (isKept === true && kept.has(key)) removed.set(key, kept.get(key)!)
              return sound.remove(key)
            },
            read(key, first, last, { buffer } = {}) {
              const bytes = kept.get(key) ?? removed.get(key)
              if (bytes === undefined) throw createGoneError()
              return read(bytes, first, last, buffer)
            },
          }
        }),
        'reads short ranges at once, into a buffer of the reader or of its own',
      ] as const,
  ),
  [
    'loses the last byte of large content, and does not say so',
    mutate((sound, kept) => ({
      async put(key, body, options) {
        const put = await sound.put(key, body, options)
        if (put.size > 1_000_000) kept.set(key, kept.get(key)!.subarray(0, -1))
        return put
      },
    })),
    'returns the bytes that were put, and tells their number',
  ],
  [
    'tells a size of its own',
    mutate((sound) => ({ put: async (...values) => ({ size: (await sound.put(...values)).size + 1 }) })),
    'returns the bytes that were put, and tells their number',
  ],
  [
    'keeps the buffers of the source',
    mutate((_, kept) => ({
      async put(key, body) {
        const chunks: Uint8Array[] = []
        for await (const chunk of body) chunks.push(chunk)
        const bytes = Buffer.concat(chunks)
        kept.set(key, bytes)
        return { size: bytes.length }
      },
    })),
    'has taken a chunk when it asks for the next one, so that the source may use its buffer again',
  ],
  [
    'shows the beginning of content that is still coming',
    mutate((_, kept) => ({
      async put(key, body) {
        for await (const chunk of body) kept.set(key, Buffer.concat([kept.get(key) ?? Buffer.alloc(0), chunk]))
        return { size: kept.get(key)!.length }
      },
    })),
    'shows nothing under a key before all of its content is kept',
  ],
  [
    'keeps what has come of a stream that broke off',
    mutate((sound, kept) => ({
      async put(key, body, options) {
        try {
          return await sound.put(key, body, options)
        } catch (error) {
          kept.set(key, Buffer.alloc(1))
          throw error
        }
      },
    })),
    'leaves nothing of a stream that breaks off, and passes its error on',
  ],
  [
    'fails with an error of its own',
    mutate((sound) => ({
      async put(key, body, options) {
        try {
          return await sound.put(key, body, options)
        } catch {
          throw new Error('It did not work.')
        }
      },
    })),
    'leaves nothing of a stream that breaks off, and passes its error on',
  ],
  [
    'takes content under a signal that has aborted before',
    mutate((sound) => ({
      put: (key, body, options) => sound.put(key, body, options?.signal?.aborted === true ? {} : options),
    })),
    'ends with the reason of the signal, and leaves nothing',
  ],
  [
    'keeps what has come of large content that broke off',
    mutate((sound, kept) => ({
      async put(key, body, options) {
        let size = 0
        async function* count(): AsyncGenerator<Uint8Array> {
          for await (const chunk of body) {
            size += chunk.length
            yield chunk
          }
        }
        try {
          return await sound.put(key, count(), options)
        } catch (error) {
          if (size > 1_000_000) kept.set(key, Buffer.alloc(1))
          throw error
        }
      },
    })),
    'leaves nothing of a stream that breaks off, and passes its error on',
  ],
  [
    'is deaf to signals',
    mutate((sound) => ({ put: (key, body) => sound.put(key, body) })),
    'ends with the reason of the signal, and leaves nothing',
  ],
  [
    'fails to remove what is gone already',
    mutate((_, kept) => ({
      remove(key) {
        if (!kept.delete(key)) throw new Error('There is no such key.')
      },
    })),
    'removes content, and succeeds when there is none',
  ],
  [
    'lists its first page only',
    mutate((sound) => ({
      async *list() {
        let count = 0
        for await (const one of sound.list()) if (count++ < 30) yield one
      },
    })),
    'lists every key once, with its age',
  ],
  [
    'gives dates for ages',
    mutate((sound) => ({
      async *list() {
        for await (const one of sound.list()) yield { ...one, age: Date.now() }
      },
    })),
    'lists every key once, with its age',
  ],
  [
    'fails to remove a listed key that is gone',
    mutate((sound, kept) => ({
      async *list() {
        for await (const one of sound.list()) {
          const remove = (): void => {
            if (!kept.delete(one.key)) throw new Error('There is no such key.')
          }
          yield { ...one, remove }
        }
      },
    })),
    'removes what a listing has found, and nothing else',
  ],
  [
    'removes all when a listed key is removed',
    mutate((sound, kept) => ({
      async *list() {
        for await (const one of sound.list()) yield { ...one, remove: () => kept.clear() }
      },
    })),
    'removes what a listing has found, and nothing else',
  ],
  [
    'gives empty content for a key that was never used',
    mutate((sound, kept) => ({
      async *open(key, first, last) {
        if (kept.has(key)) yield* sound.open(key, first, last)
      },
    })),
    'fails to open content that was never put',
  ],
  [
    'fills up with zeros when content is removed under a reader',
    mutate((_, kept) => ({
      async *open(key, first, last) {
        if (!kept.has(key)) throw createGoneError()
        for (let at = first; at <= last; at += 50_000) {
          const end = Math.min(at + 50_000, last + 1)
          yield kept.get(key)?.subarray(at, end) ?? Buffer.alloc(end - at)
        }
      },
    })),
    'gives a reader the right bytes or an error when content is removed under it',
  ],
]
