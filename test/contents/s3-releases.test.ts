import { getEventListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { readAll } from '../../src/conformance/contents-cases.ts'
import { createBytes, MEBIBYTE, stream } from '../../src/conformance/samples.ts'
import { beforeAbort } from '../../src/contents/s3/exchange.ts'
import { createKey, createPrefix, listKeys, openS3Contents } from '../support/contents.ts'
import { runS3 } from '../support/running-s3.ts'

vi.mock('node:timers/promises', async (load) => {
  const timers = await load<typeof import('node:timers/promises')>()
  return { ...timers, setTimeout: vi.fn(timers.setTimeout) }
})

const service = await runS3()

afterEach(() => {
  vi.restoreAllMocks()
})

/** Milliseconds that no other timer has. */
const TIMEOUT = 61_234
const open = () => openS3Contents(service.endpoint, { prefix: createPrefix(), timeout: TIMEOUT, redirect: true })

/** Refuses the first of some requests for a moment. */
function refuseFirst(method: string): void {
  let isFirst = true
  service.interfere = (req, res) => {
    if (!isFirst || req.method !== method) return undefined
    isFirst = false
    res.writeHead(503).end()
    return 'done'
  }
}

async function* broken(): AsyncGenerator<Uint8Array> {
  yield createBytes(9 * MEBIBYTE, 1)
  throw new Error('The source broke.')
}

describe('s3Contents, once a call is over', () => {
  it('has ended every timer: none keeps the process alive, or breaks a reader off later', async () => {
    const setTimer = vi.spyOn(globalThis, 'setTimeout')
    const clearTimer = vi.spyOn(globalThis, 'clearTimeout')
    const contents = open()
    const key = createKey()
    refuseFirst('PUT')
    await contents.put(key, stream(createBytes(500_000, 1), 100_000))
    expect(await readAll(contents, key, 0, 499_999)).toHaveLength(500_000)
    for await (const _ of contents.open(key, 0, 499_999)) break
    await contents.locate!(key, { method: 'GET', headers: {} })
    expect(await listKeys(contents)).toEqual([key])
    await contents.remove(key)
    await expect(readAll(contents, key, 0, 9)).rejects.toMatchObject({ status: 503 })
    await expect(contents.put(createKey(), broken())).rejects.toThrow('The source broke.')
    const timers = setTimer.mock.results.filter((_, i) => setTimer.mock.calls[i]![1] === TIMEOUT)
    expect(timers.length).toBeGreaterThan(8)
    const cleared = new Set(clearTimer.mock.calls.map(([timer]) => timer))
    expect(timers.filter(({ value }) => !cleared.has(value))).toEqual([])
  })

  it('has left no listener at the signal of the caller, who may use it for many calls', async () => {
    const contents = open()
    const { signal } = new AbortController()
    const key = createKey()
    refuseFirst('PUT')
    await contents.put(key, stream(createBytes(500_000, 1), 100_000), { signal })
    for await (const _ of contents.open(key, 0, 499_999, { signal }));
    for await (const _ of contents.open(key, 0, 499_999, { signal })) break
    await contents.locate!(key, { method: 'GET', headers: {}, signal })
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('has closed the connection of an answer that is more than was asked for', async () => {
    let isClosed = false
    service.interfere = (_, res) => {
      res.on('close', () => void (isClosed = true))
      res.writeHead(200).write('the beginning of it all')
      return 'done'
    }
    await expect(readAll(open(), createKey(), 1, 3)).rejects.toThrow('The S3 service answered 200')
    await expect.poll(() => isClosed).toBe(true)
  })

  it('has asked four times at most, with pauses between', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    vi.mocked(sleep).mockClear()
    let requests = 0
    service.interfere = (_, res) => {
      requests++
      res.writeHead(503).end()
      return 'done'
    }
    await expect(open().remove(createKey())).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '1' } })
    expect(requests).toBe(4)
    expect(vi.mocked(sleep).mock.calls.map(([delay]) => delay)).toEqual([100, 200, 400])
  })
})

describe('s3Contents with a service that refuses to list', () => {
  /** Answers lists of objects, or of uploads, with a status. */
  function refuseLists(name: 'list-type' | 'uploads', status: number): void {
    service.interfere = (req, res) => {
      if (!new URL(req.url!, 'http://service').searchParams.has(name)) return undefined
      res.writeHead(status).end('<Error><Code>AccessDenied</Code></Error>')
      return 'done'
    }
  }

  it.each(['list-type', 'uploads'] as const)('fails, and does not take what it has read for all: %s', async (name) => {
    refuseLists(name, 403)
    await expect(listKeys(open())).rejects.toThrow('The S3 service answered 403 (AccessDenied).')
  })

  it.each([400, 405, 501])('lists objects where it does not know uploads in parts: %d', async (status) => {
    const contents = open()
    const key = createKey()
    await contents.put(key, stream(createBytes(1000, 1), 500))
    refuseLists('uploads', status)
    expect(await listKeys(contents)).toEqual([key])
  })
})

describe('beforeAbort', () => {
  it('leaves no listener at the signal, whether the value came, failed or was not waited for', async () => {
    const { signal } = new AbortController()
    expect(await beforeAbort('value', signal)).toBe('value')
    await expect(beforeAbort(Promise.reject(new Error('none')), signal)).rejects.toThrow('none')
    expect(getEventListeners(signal, 'abort')).toEqual([])
    const controller = new AbortController()
    const waiting = expect(beforeAbort(new Promise(() => {}), controller.signal)).rejects.toThrow('left')
    controller.abort(new Error('left'))
    await waiting
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
  })
})
