import { createHash } from 'node:crypto'
import { PassThrough } from 'node:stream'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ContentStore } from '../../src/contents/types.ts'
import { HttpError } from '../../src/core/errors.ts'
import { createBesideContents } from '../../src/stores/sql/beside.ts'
import { createIntake } from '../../src/stores/sql/create-store.ts'
import type { ChunkSink, ContentLedger } from '../../src/stores/sql/dialect.ts'
import { readWhole } from '../../src/stores/streams.ts'

const GRACE = 60_000
const IDENTITY = '0123456789abcdef'

afterEach(() => {
  vi.useRealTimers()
})

const refuse = () => Promise.reject(new HttpError(503, 'ERR_UNAVAILABLE'))

/** Takes content in, of which more than ten bytes go into a content store. */
function createStage(ledger: Partial<ContentLedger>, contents: Partial<ContentStore>, grace = GRACE) {
  const sound = { readIdentity: () => IDENTITY, begin: () => 1, touch: () => undefined, abandon: () => undefined }
  const beside = createBesideContents(contents as ContentStore, { ...sound, ...ledger } as ContentLedger, grace)
  return createIntake({ ...({} as ChunkSink), batchSize: 65_536, beside }, 10).stage
}

describe('content that goes into a content store', () => {
  it.each<[string, Partial<ContentLedger>, Partial<ContentStore>]>([
    ['the identity of the database cannot be read', { readIdentity: refuse }, {}],
    ['the database refuses its row', { begin: refuse }, {}],
    ['the content store refuses it before it has read any of it', {}, { put: refuse }],
  ])('has its source closed when %s', async (_, ledger, contents) => {
    for (const signal of [undefined, new AbortController().signal]) {
      const source = new PassThrough()
      source.write(Buffer.alloc(100))
      await expect(createStage(ledger, contents)(source, signal)).rejects.toMatchObject({ status: 503 })
      await expect.poll(() => source.destroyed).toBe(true)
    }
  })
})

it.each([-1, 1])('content is refused whose size a content store reports otherwise, by %i', async (more) => {
  const contents: Partial<ContentStore> = { put: async (_, body) => ({ size: (await readAll(body)) + more }) }
  const source = new PassThrough()
  source.end(Buffer.alloc(100))
  await expect(createStage({}, contents)(source, undefined)).rejects.toThrow(`reports ${100 + more} bytes`)
})

describe('the sweep of a content store', () => {
  it('fails with the removal that failed, and removes the other contents and their rows', async () => {
    const forgotten: unknown[] = []
    const ledger: Partial<ContentLedger> = {
      claim: () => [1, 2, 3].map((id) => ({ id, key: `key ${id}` })),
      forget: (ids) => void forgotten.push(...ids),
    }
    const remove = (key: string) => (key === 'key 2' ? refuse() : Promise.resolve())
    const beside = createBesideContents({ remove } as unknown as ContentStore, ledger as ContentLedger, 60_000)
    await expect(beside.sweep()).rejects.toMatchObject({ status: 503 })
    expect(forgotten).toEqual([1, 3])
  })
})

/** A promise and the function that keeps it. */
function gate() {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

/** A source that gives its bytes in one buffer, which it uses again. */
async function* reusing(...pieces: readonly string[]): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.alloc(10)
  for (const piece of pieces) yield buffer.subarray(0, buffer.write(piece))
}

async function readAll(body: AsyncIterable<Uint8Array>): Promise<number> {
  let size = 0
  for await (const chunk of body) size += chunk.length
  return size
}

describe('the row of content that is put into a content store', () => {
  /** Puts content into a store that waits before it answers. */
  function startPut(ledger: Partial<ContentLedger>, grace?: number) {
    const { opened, open } = gate()
    async function put(_: string, body: AsyncIterable<Uint8Array>) {
      const size = await readAll(body)
      await opened
      return { size }
    }
    return { end: open, staged: createStage(ledger, { put }, grace)(reusing('0123456789', '0123456789'), undefined) }
  }

  it('is kept from the sweep while the content store works, also when that fails once, and no longer', async () => {
    vi.useFakeTimers()
    const touch = vi.fn(() => refuse())
    const { end, staged } = startPut({ touch })
    await vi.advanceTimersByTimeAsync(GRACE)
    // Twice at least before the grace period is over.
    expect(touch.mock.calls.length).toBeGreaterThanOrEqual(2)
    end()
    await staged
    touch.mockClear()
    await vi.advanceTimersByTimeAsync(10 * GRACE)
    expect(touch).not.toHaveBeenCalled()
  })

  it('does not keep the process alive or busy while the content store works, however long the grace period', async () => {
    const setTimer = vi.spyOn(globalThis, 'setInterval')
    const { end, staged } = startPut({}, Number.MAX_SAFE_INTEGER)
    await vi.waitFor(() => expect(setTimer).toHaveBeenCalled(), 30_000)
    expect(setTimer.mock.results.map(({ value }) => value.hasRef())).toEqual([false])
    // Beyond that a timer fires every millisecond.
    expect(setTimer.mock.calls[0]![1]).toBeLessThan(2 ** 31)
    end()
    await staged
    setTimer.mockRestore()
  })

  it.each([
    ['is given up before the call fails', new Error('The content store failed.'), true],
    ['is not waited for where the content store is away', new HttpError(503, 'ERR_UNAVAILABLE'), false],
  ])('%s', async (_, error, waits) => {
    const { opened, open } = gate()
    const abandon = vi.fn(() => opened.then(() => refuse()))
    const ended = vi.fn()
    const stage = createStage({ abandon }, { put: () => Promise.reject(error) })
    const staged = stage(reusing('0123456789', '0123456789'), undefined).catch((reason) => ended(reason))
    await vi.waitFor(() => expect(abandon).toHaveBeenCalledWith(1), 30_000)
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
    expect(ended.mock.calls).toEqual(waits ? [] : [[error]])
    open()
    await staged
    expect(ended.mock.calls).toEqual([[error]])
  })

  it('is given up where the signal aborts and the content store does not heed it', async () => {
    const controller = new AbortController()
    const abandon = vi.fn()
    const given: unknown[] = []
    const put: ContentStore['put'] = async (_, body, options) => {
      given.push(options?.signal)
      const size = await readAll(body)
      controller.abort(new Error('The client has left.'))
      return { size }
    }
    const staged = createStage({ abandon }, { put })(reusing('0123456789', '0123456789'), controller.signal)
    await expect(staged).rejects.toThrow('The client has left.')
    expect(abandon).toHaveBeenCalledWith(1)
    expect(given).toEqual([controller.signal])
  })
})

describe('a source that uses its buffer again', () => {
  it('is put as it was, from its first byte on', async () => {
    const chunks: string[] = []
    async function put(_: string, body: AsyncIterable<Uint8Array>) {
      for await (const chunk of body) chunks.push(String(chunk))
      return { size: chunks.join('').length }
    }
    await createStage({}, { put })(reusing('01234', '56789', 'abcde', 'fghij'), undefined)
    expect(chunks.join('')).toBe('0123456789abcdefghij')
  })

  it('is read whole', async () => {
    expect(String(await readWhole(reusing('01234', '56789', 'abcde')))).toBe('0123456789abcde')
  })
})

describe('a reader of content in a content store', () => {
  it('gets nothing beyond its range of a content store that gives more, and fails', async () => {
    async function* open() {
      for (const text of ['01234', '56789', 'abc']) yield Buffer.from(text)
    }
    const beside = createBesideContents({ open } as unknown as ContentStore, {} as ContentLedger, GRACE)
    const read: string[] = []
    async function readRange(): Promise<void> {
      for await (const chunk of beside.open('key').open(0, 6)) read.push(String(chunk))
    }
    await expect(readRange()).rejects.toMatchObject({ status: 503 })
    expect(read).toEqual(['01234'])
  })

  it('tells the content store when it aborts, and does not wait where that is silent', async () => {
    const signals: (AbortSignal | undefined)[] = []
    async function* silent(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('01234')
      await new Promise(() => {})
    }
    const open: ContentStore['open'] = (_key, _first, _last, options) => {
      signals.push(options?.signal)
      return silent()
    }
    const beside = createBesideContents({ open } as unknown as ContentStore, {} as ContentLedger, GRACE)
    const controller = new AbortController()
    const reader = beside.open('key').open(0, 9, { signal: controller.signal })[Symbol.asyncIterator]()
    await reader.next()
    const next = reader.next()
    controller.abort(new Error('The client has left.'))
    await expect(next).rejects.toThrow('The client has left.')
    expect(signals.map((signal) => signal?.aborted)).toEqual([true])
  })
})

describe('a step of the sweep of a content store', () => {
  it('removes the content before its row, and looks for content without a row once none is lost', async () => {
    const steps: string[] = []
    const lost = [{ id: 1, key: 'key 1' }]
    const contents: Partial<ContentStore> = {
      remove: async (key) => void steps.push(`remove ${key}`),
      async *list() {
        steps.push('list')
        yield* []
      },
    }
    const ledger: Partial<ContentLedger> = {
      claim: () => lost.splice(0),
      forget: (ids) => void steps.push(`forget ${ids}`),
      readIdentity: () => IDENTITY,
    }
    const beside = createBesideContents(contents as ContentStore, ledger as ContentLedger, GRACE)
    expect(await beside.sweep()).toBe('part')
    expect(steps.splice(0)).toEqual(['remove key 1', 'forget 1'])
    expect(await beside.sweep()).toBe('all')
    expect(steps).toEqual(['list'])
    await beside.close()
  })

  it('fails where the contents cannot be listed', async () => {
    const list = () => {
      throw new Error('The content store is away.')
    }
    const ledger: Partial<ContentLedger> = { claim: () => [], readIdentity: () => IDENTITY }
    const beside = createBesideContents({ list } as unknown as ContentStore, ledger as ContentLedger, GRACE)
    await expect(beside.sweep()).rejects.toThrow('The content store is away.')
  })
})

it('content in a content store has its digest, and its list ends when the store is closed', async () => {
  let isEnded = false
  const contents: Partial<ContentStore> = {
    put: async (_, body) => ({ size: await readAll(body) }),
    async *list() {
      try {
        for (let i = 0; ; i++) yield { key: String(i), age: 0, remove: async () => {} }
      } finally {
        isEnded = true
      }
    },
  }
  const ledger = { readIdentity: () => IDENTITY, begin: () => 1, claim: () => [] } as Partial<ContentLedger>
  const beside = createBesideContents(contents as ContentStore, ledger as ContentLedger, GRACE)
  const { sha256 } = await beside.put(reusing('01234', '56789'), undefined)
  expect(Buffer.compare(sha256!, createHash('sha256').update('0123456789').digest())).toBe(0)
  await beside.sweep()
  expect(isEnded).toBe(false)
  await beside.close()
  expect(isEnded).toBe(true)
})
