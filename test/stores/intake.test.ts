import { createHash } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { HttpError } from '../../src/core/errors.ts'
import { moveChunks } from '../../src/stores/sql/chunks.ts'
import { createIntake } from '../../src/stores/sql/create-store.ts'
import type { ChunkedContent, ChunkSink, ChunkSource, Taken } from '../../src/stores/sql/dialect.ts'
import type { Content, LargeBody } from '../../src/stores/types.ts'

const BATCH = 1000
const LIMIT = 100

/** Keeps chunks in memory, and what was given up. */
function createSink(changes: Partial<ChunkSink> = {}) {
  const appended: { id: unknown; index: number; bytes: Buffer }[] = []
  const abandoned: unknown[] = []
  let ids = 0
  const sink: ChunkSink = {
    begin: () => ++ids,
    append: (id, index, bytes) => void appended.push({ id, index, bytes: Buffer.from(bytes) }),
    abandon: (id) => void abandoned.push(id),
    keep: () => setTimeout(() => {}).unref(),
    open: (id) => ({ id }) as unknown as LargeBody,
    ...changes,
  }
  const intake = createIntake({ ...sink, batchSize: BATCH, beside: undefined }, LIMIT)
  return { intake, appended, abandoned }
}

const BYTES = Buffer.from(Array.from({ length: 5 * BATCH }, (_, i) => (i * 7 + (i >> 8)) % 251))

/** A source that gives pieces of one size in one buffer, which it uses again. */
async function* pieces(size: number, length: number): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.alloc(length)
  for (let from = 0; from < size; from += length) {
    yield buffer.subarray(0, BYTES.copy(buffer, 0, from, Math.min(size, from + length)))
  }
}

async function* broken(size: number, error: Error): AsyncGenerator<Uint8Array> {
  yield* pieces(size, 300)
  throw error
}

const contentOf = (body: Content['body']): Content => ({ contentType: 'text/plain', body })
const turns = async (count = 10): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate)
}

/** Takes content in for a write that succeeds. */
async function takeIn(
  intake: ReturnType<typeof createIntake>,
  contents: readonly Content[],
): Promise<readonly Taken[]> {
  let taken: readonly Taken[] = []
  await intake.takeAndCommit(contents, {}, (held) => {
    taken = held(contents)!
    return { outcome: 'created' }
  })
  return taken
}

describe('content that goes into chunks', () => {
  it.each([1, 99, 300, BATCH, BATCH + 1, 4321])(
    'is appended whole and in batches from pieces of %d',
    async (length) => {
      for (const size of [LIMIT, LIMIT + 1, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH, 4321]) {
        const { intake, appended } = createSink()
        const contents = [contentOf(pieces(size, length))]
        const [taken] = await takeIn(intake, contents)
        expect(taken!.size).toBe(size)
        const whole = taken!.id === undefined ? taken!.body : Buffer.concat(appended.map(({ bytes }) => bytes))
        expect(Buffer.compare(whole as Uint8Array, BYTES.subarray(0, size))).toBe(0)
        expect(taken!.id === undefined).toBe(size <= LIMIT)
        if (taken!.id === undefined) continue
        expect(appended.map(({ index }) => index)).toEqual(appended.map((_, i) => i * BATCH))
        expect(appended.slice(0, -1).every(({ bytes }) => bytes.length === BATCH)).toBe(true)
        const digest = createHash('sha256').update(BYTES.subarray(0, size)).digest()
        expect(Buffer.compare(taken!.sha256, digest)).toBe(0)
      }
    },
  )

  it.each([
    ['is given up before the call fails', new Error('The source broke.'), true],
    ['is not waited for where the database is away', new HttpError(503, 'ERR_UNAVAILABLE'), false],
  ])('%s', async (_, error, waits) => {
    let goOn = (): void => {}
    const gate = new Promise<void>((resolve) => {
      goOn = resolve
    })
    const abandon = vi.fn(() => gate.then(() => Promise.reject(new Error('The database is away.'))))
    const { intake } = createSink({ abandon })
    const ended = vi.fn()
    const taken = intake.stage(broken(2 * BATCH, error), undefined).catch((reason) => ended(reason))
    await vi.waitFor(() => expect(abandon).toHaveBeenCalledWith(1), 30_000)
    await turns()
    expect(ended.mock.calls).toEqual(waits ? [] : [[error]])
    goOn()
    await taken
    expect(ended.mock.calls).toEqual([[error]])
  })

  it('is kept from the sweep while further content of the request comes in, and no longer', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const kept: unknown[] = []
      const keep: ChunkSink['keep'] = (ids) => {
        kept.push([...ids])
        return setInterval(() => {}, 1000)
      }
      const { intake } = createSink({ keep })
      const { signal } = new AbortController()
      for (let i = 0; i < 3; i++) await intake.stage(pieces(BATCH, 300), signal)
      await expect(intake.stage(broken(BATCH, new Error('broken off')), signal)).rejects.toThrow('broken off')
      expect([kept, vi.getTimerCount()]).toEqual([[[1], [1, 2], [1, 2, 3]], 0])
    } finally {
      vi.useRealTimers()
    }
  })

  it('is not taken when the signal aborts with its last piece', async () => {
    for (const size of [LIMIT, BATCH]) {
      const { intake, abandoned } = createSink()
      const controller = new AbortController()
      async function* leaving(): AsyncGenerator<Uint8Array> {
        yield* pieces(size, size)
        controller.abort(new Error('The client has left.'))
      }
      await expect(intake.stage(leaving(), controller.signal)).rejects.toThrow('The client has left.')
      // Nothing has been appended yet.
      expect(abandoned).toEqual([])
    }
  })

  it('is gone once staged content is discarded', async () => {
    const { intake, appended } = createSink()
    let isGone = false
    const sink = createSink({
      async abandon() {
        await turns()
        isGone = true
      },
    })
    await (await intake.stage(pieces(LIMIT, LIMIT), undefined)).discard()
    expect(appended).toEqual([])
    await (await sink.intake.stage(pieces(BATCH, 300), undefined)).discard()
    expect(isGone).toBe(true)
  })
})

describe('the content of one call', () => {
  it('is read once, however often it is named and asked for', async () => {
    const { intake, appended } = createSink()
    const contents = [contentOf(pieces(BATCH, 300)), contentOf(pieces(BATCH, 300))]
    const twice = [...contents, contents[0]!]
    expect(intake.held(twice)).toBeUndefined()
    const found: (readonly Taken[])[] = []
    await intake.takeAndCommit(twice, {}, (held) => {
      found.push(held(twice)!, held(contents)!)
      return found.length === 2 ? [...contents, ...twice] : { outcome: 'created' }
    })
    const [first, second] = found[1]!
    expect(found).toEqual([
      [first, second, first],
      [first, second],
      [first, second, first],
      [first, second],
    ])
    expect(appended).toHaveLength(2)
  })

  it('is taken in for each path where bytes are named twice', async () => {
    const { intake } = createSink()
    const content = contentOf(BYTES)
    const contents = intake.contentsOf(content, [{ path: '/b', content }])
    let taken: readonly Taken[] = []
    await intake.takeAndCommit(contents, {}, (held) => {
      taken = held(contents)!
      return { outcome: 'created' }
    })
    expect(taken.map(({ id }) => id)).toEqual([1, 2])
  })

  it('is given up but for what was used, also what comes late', async () => {
    const { intake, abandoned } = createSink()
    const contents = [contentOf(pieces(BATCH, 300)), contentOf(pieces(BATCH, 300)), contentOf('small')]
    let taken: readonly Taken[] = []
    await intake.takeAndCommit(contents, {}, (held) => {
      taken = held(contents)!
      return { outcome: held([contents[1]!]) === undefined ? 'conflict' : 'created' }
    })
    let goOn = (): void => {}
    async function* late(): AsyncGenerator<Uint8Array> {
      yield* pieces(BATCH, 300)
      await new Promise<void>((resolve) => {
        goOn = resolve
      })
    }
    const rest = takeIn(intake, [contentOf(late()), contentOf(broken(LIMIT, new Error('It broke.')))])
    await expect(rest).rejects.toThrow('It broke.')
    await turns()
    expect(abandoned).toEqual([taken[0]!.id])
    goOn()
    await vi.waitFor(() => expect(abandoned).toHaveLength(2), 30_000)
    expect(abandoned).not.toContain(taken[1]!.id)
  })

  it('is given up by a write that found a conflict', async () => {
    const { intake, abandoned } = createSink()
    const contents = [contentOf(pieces(BATCH, 300))]
    let taken: readonly Taken[] = []
    await intake.takeAndCommit(contents, {}, (held) => {
      taken = held(contents)!
      return { outcome: 'conflict' }
    })
    await turns()
    expect(abandoned).toEqual([taken[0]!.id])
  })
})

describe('moveChunks', () => {
  const paths = ['/a', '/b', '/c']
  const put = vi.fn(async (body: unknown, _: AbortSignal | undefined) => ({ id: (body as { path: string }).path }))
  const beside = { put } as never

  function createSource(swap: ChunkSource['swap'], isCurrent: ChunkSource['isCurrent']) {
    const asked: string[] = []
    const source: ChunkSource = {
      findNext(after) {
        asked.push(after)
        const path = paths.find((one) => one > after)
        if (path === undefined || asked.length > 10) return undefined
        return { path, id: path, size: 1, body: { open: () => ({ path }) } } as unknown as ChunkedContent
      },
      swap,
      isCurrent,
    }
    return { source, asked }
  }

  it('goes on behind content that cannot move because it has been replaced', async () => {
    const { source, asked } = createSource(
      ({ path }) => {
        if (path === '/b') throw new Error('It is gone.')
        return path !== '/a'
      },
      () => false,
    )
    const { signal } = new AbortController()
    expect(await moveChunks('store', source, beside, { signal })).toBe(1)
    expect(put.mock.calls.map((call) => call[1])).toEqual([signal, signal, signal])
    expect(asked).toEqual(['', '/a', '/b', '/c'])
  })

  it('fails where the content is still to be moved', async () => {
    const { source, asked } = createSource(
      () => Promise.reject(new Error('The database is away.')),
      ({ path }) => path === '/a',
    )
    await expect(moveChunks('store', source, beside)).rejects.toThrow('The database is away.')
    expect(asked).toEqual([''])
  })
})
