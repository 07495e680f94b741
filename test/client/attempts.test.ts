import { getEventListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  createResourceClient,
  expectSuccess,
  type Fetch,
  type ResourceClient,
  type ResourceClientOptions,
} from '../../src/client.ts'

afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** A client whose requests are answered in turn; an error is a connection that broke. */
function answerInTurn(answers: readonly (Response | Error)[], options: ResourceClientOptions = {}) {
  const requests: string[] = []
  const fetch = async (_: string, { method }: { method: string }) => {
    const answer = answers[requests.push(method) - 1]!
    if (answer instanceof Error) throw answer
    return answer
  }
  const client: ResourceClient = createResourceClient('https://example.org', { fetch: fetch as never, ...options })
  return { requests, client }
}

const json = (value: unknown, tag: string) => Response.json(value, { headers: { ETag: tag } })
const broken = new Error('The connection broke.')
const known = {
  url: 'https://example.org/a',
  entityTag: '"1"',
  lastModified: undefined,
  value: { n: 1 },
  text: '{"n":1}',
}

describe('the attempts of a request', () => {
  it('are not repeated after 500, which the same request may meet again', async () => {
    const { client, requests } = answerInTurn([new Response('', { status: 500 }), json({}, '"1"')])
    await expect(client.read('/a')).rejects.toMatchObject({ status: 500 })
    expect(requests).toEqual(['GET'])
  })

  it('are not repeated where Retry-After is an hour', async () => {
    const busy = new Response('', { status: 503, headers: { 'Retry-After': '3600' } })
    const { client, requests } = answerInTurn([busy, json({}, '"1"')])
    await expect(client.read('/a')).rejects.toMatchObject({ status: 503 })
    expect(requests).toEqual(['GET'])
  })

  it('pause longer after each failure, for ten seconds at most, and for as long as Retry-After says (RFC 9110 §10.2.3)', async () => {
    // The first date is asked for 92.6 s later: a date has whole seconds.
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], now: 1_000_000_000_400 })
    vi.spyOn(Math, 'random').mockReturnValue(1)
    const startTimer = vi.spyOn(globalThis, 'setTimeout')
    const busy = (retryAfter: string) => () => new Response('', { status: 503, headers: { 'Retry-After': retryAfter } })
    const afterDate = (time: number) => () => busy(new Date(Date.now() + time).toUTCString())()
    const answers = [...Array.from({ length: 7 }, () => () => broken), busy('60'), afterDate(5000), afterDate(-5000)]
    const fetch = async () => {
      const answer = answers.shift()?.() ?? json({}, '"1"')
      if (answer instanceof Error) throw answer
      return answer
    }
    const reading = createResourceClient('https://example.org', { fetch, timeout: 7, retries: 10 }).read('/a')
    await vi.runAllTimersAsync()
    expectSuccess(await reading)
    const pauses = startTimer.mock.calls.map(([, time]) => time!).filter((time) => time !== 7)
    const growing = [200, 400, 800, 1600, 3200, 6400, 10_000]
    expect(pauses.map(Math.round)).toEqual([...growing, 70_000, 15_000, 10_000])
  })

  it('at the end of a wait come when a 304 says, and not when the content did that it confirms (RFC 9111 §3.2)', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], now: 1_000_000_000_000 })
    const startTimer = vi.spyOn(globalThis, 'setTimeout')
    const states = ['pending', undefined, undefined, 'ready']
    const fetch = async () => {
      const state = states.shift()
      const headers = { ETag: '"1"', 'Retry-After': new Date(Date.now() + 5000).toUTCString() }
      return state === undefined ? new Response(null, { status: 304, headers }) : Response.json({ state }, { headers })
    }
    const client = createResourceClient('https://example.org', { fetch, timeout: 7 })
    const waiting = client.wait({ url: 'https://example.org/jobs/1', retryAfter: undefined })
    await vi.runAllTimersAsync()
    expect(await waiting).toMatchObject({ ok: true, document: { value: { state: 'ready' } } })
    expect(startTimer.mock.calls.map(([, time]) => time).filter((time) => time !== 7)).toEqual([5000, 5000, 5000])
  })

  it('have no limit of time where it is infinite', async () => {
    const fetch = async () => sleep(20, json({}, '"1"'))
    const read = createResourceClient('https://example.org', { fetch, timeout: Infinity, retries: 0 }).read('/a')
    expect(await read).toMatchObject({ status: 200 })
  })

  it('have no limit of time for an upload but one of its own', async () => {
    const fetch = async () => sleep(20, new Response(null, { status: 204 }))
    const { upload } = createResourceClient('https://example.org', { fetch, timeout: 1, retries: 0 })
    expect(await upload('/a', 'any', 'text')).toMatchObject({ status: 204 })
    await expect(upload('/a', 'any', 'text', { timeout: 1 })).rejects.toThrow('No response within 1 ms.')
  })

  it('do not wait for a token once the signal is aborted', async () => {
    const { client, requests } = answerInTurn([], { token: () => new Promise(() => {}) })
    await expect(client.read('/a', { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
    expect(requests).toEqual([])
  })

  it('do not wait for the function of an edit once the signal is aborted', async () => {
    const { client } = answerInTurn([json({}, '"1"')])
    const controller = new AbortController()
    const change = () => {
      controller.abort()
      return new Promise<never>(() => {})
    }
    const editing = client.edit('/a', change, { signal: controller.signal })
    await expect(editing).rejects.toMatchObject({ name: 'AbortError' })
  })

  it('have no token where its function gives null, as localStorage does', async () => {
    const fetch = vi.fn<Fetch>(async () => json({}, '"1"'))
    await createResourceClient('https://example.org', { fetch, token: () => null }).read('/a')
    expect(fetch.mock.lastCall?.[1].headers).not.toHaveProperty('Authorization')
  })

  it('have the token that is empty, so that the server refuses it, and not none', async () => {
    const fetch = vi.fn<Fetch>(async () => json({}, '"1"'))
    await createResourceClient('https://example.org', { fetch, token: '' }).read('/a')
    expect(fetch.mock.lastCall?.[1].headers).toHaveProperty('Authorization', 'Bearer ')
  })

  it('are refused with a TypeError where the function for their header gives Headers, of which a copy is empty', async () => {
    const headers = () => new Headers({ 'X-Api-Key': 'key' }) as never
    const { client, requests } = answerInTurn([], { headers })
    await expect(client.read('/a')).rejects.toThrow(new TypeError('createResourceClient takes as headers: object.'))
    expect(requests).toEqual([])
  })

  it('leave no listener on a signal that outlives them', async () => {
    const { signal } = new AbortController()
    const busy = new Response('', { status: 503 })
    const { client } = answerInTurn([json({}, '"1"'), busy, broken, json({}, '"1"')])
    await client.read('/a', { signal })
    await client.read('/a', { signal })
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('leave no listener behind a download that is given up', async () => {
    const { signal } = new AbortController()
    const content = new Response(new Uint8Array(10), { headers: { 'Content-Length': '10', ETag: '"1"' } })
    const { file } = expectSuccess(await answerInTurn([content]).client.download('/a', { signal }))
    for await (const _ of file) break
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('are repeated for a creation in a collection that keeps keys, and not in one whose path begins with it', async () => {
    for (const [path, count] of [
      ['/a', 2],
      ['/ab', 1],
      ['/a/1/b', 1],
    ] as const) {
      const { client, requests } = answerInTurn([broken, broken], { keyed: ['/a'], retries: 1 })
      await expect(client.create(path, {})).rejects.toThrow('The connection broke.')
      expect([path, requests.length]).toEqual([path, count])
    }
  })

  it('leave no timer behind a piece of a download: the next one has its own time', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const pieces = [new Uint8Array(5), new Uint8Array(5)]
    const body = new ReadableStream({ pull: (controller) => controller.enqueue(pieces.shift()) }, { highWaterMark: 0 })
    const content = new Response(body, { headers: { 'Content-Length': '10', ETag: '"1"' } })
    const { file } = expectSuccess(await answerInTurn([content]).client.download('/a'))
    for await (const piece of file) {
      expect([piece.length, vi.getTimerCount()]).toEqual([5, 0])
      if (pieces.length === 0) break
    }
    expect(vi.getTimerCount()).toBe(0)
  })

  it('leave no timer where their signal ends the pause between them', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const busy = new Response('', { status: 503, headers: { 'Retry-After': '30' } })
    const controller = new AbortController()
    const reading = answerInTurn([busy]).client.read('/a', { signal: controller.signal })
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    expect(vi.getTimerCount()).toBe(1)
    controller.abort()
    await expect(reading).rejects.toMatchObject({ name: 'AbortError' })
    expect(vi.getTimerCount()).toBe(0)
  })

  it('leave no listener on a signal that was aborted before', async () => {
    const signal = AbortSignal.abort()
    const { client } = answerInTurn([])
    const operation = { url: 'https://example.org/operations/1', retryAfter: 1000 }
    await expect(client.wait(operation, { signal })).rejects.toBe(signal.reason)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('end at their timeout, and with their signal, where a fetch does not heed signals', async () => {
    const hang = () => new Promise<never>(() => {})
    const body = { getReader: () => ({ read: hang, cancel: async () => {} }) }
    const response = { status: 200, headers: new Headers(), body, text: hang }
    for (const fetch of [hang, async () => response]) {
      const client = createResourceClient('https://example.org', { fetch, timeout: 20, retries: 0 })
      await expect(client.read('/a')).rejects.toThrow('No response within 20 ms.')
      await expect(client.read('/a', { timeout: 60_000, signal: AbortSignal.timeout(20) })).rejects.toMatchObject({
        name: 'TimeoutError',
      })
    }
    const client = createResourceClient('https://example.org', { fetch: async () => response, timeout: 20 })
    const { file } = expectSuccess(await client.download('/a'))
    await expect(file.blob()).rejects.toThrow('The transfer broke.')
  })

  it('count as one edit where the answer was lost and the next was 429', async () => {
    const { client, requests } = answerInTurn([
      ...[json({ n: 1 }, '"1"'), broken, new Response('', { status: 429 }), new Response('', { status: 412 })],
      json({ n: 2 }, '"2"'),
    ])
    const edited = await client.edit('/a', (value) => ({ n: (value as { n: number }).n + 1 }))
    expect(expectSuccess(edited).document.value).toEqual({ n: 2 })
    expect(requests).toEqual(['GET', 'PATCH', 'PATCH', 'PATCH', 'GET'])
  })

  it('count as none where they were refused with 429: what another has made meanwhile is not the own edit', async () => {
    const { client, requests } = answerInTurn([
      ...[json({ n: 1 }, '"1"'), new Response('', { status: 429 }), new Response('', { status: 412 })],
      ...[json({ n: 2 }, '"2"'), json({ n: 3 }, '"3"'), json({ n: 3 }, '"3"')],
    ])
    const edited = await client.edit('/a', (value) => ({ n: (value as { n: number }).n + 1 }))
    expect(expectSuccess(edited).document.value).toEqual({ n: 3 })
    expect(requests).toEqual(['GET', 'PATCH', 'PATCH', 'GET', 'PATCH', 'GET'])
  })

  it('end with their signal while an upload whose answer was lost is compared with what is there', async () => {
    const controller = new AbortController()
    const hang = () => {
      controller.abort()
      return new Promise<never>(() => {})
    }
    const silent = new Response(new ReadableStream({ pull: hang }, { highWaterMark: 0 }))
    const { client } = answerInTurn([broken, new Response('', { status: 412 }), silent])
    const uploading = client.upload('/a', 'absent', 'text', { signal: controller.signal })
    await expect(uploading).rejects.toMatchObject({ name: 'AbortError' })
  })

  it('may have had an effect where one was sent and the next had no token', async () => {
    let tokens = 0
    const token = async () => {
      if (++tokens > 1) throw new Error('no token')
      return 'a'
    }
    const { client } = answerInTurn([broken], { token, retries: 1 })
    await expect(client.replace('/a', 'any', {})).rejects.toMatchObject({ status: 0, mayHaveTakenEffect: true })
  })

  it.each<[string, (client: ResourceClient) => Promise<unknown>]>([
    ['a replacement', (client) => client.replace(known, { n: 2 })],
    ['an edit', (client) => client.edit(known, { n: 2 })],
    ['a removal', (client) => client.remove(known)],
    ['an upload', (client) => client.upload(known, 'text')],
  ])('may have had an effect where the answer to %s was lost, and the state cannot be read', async (_, write) => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
    const { client } = answerInTurn([broken, new Response('', { status: 412 }), broken, broken], { retries: 1 })
    await expect(write(client)).rejects.toMatchObject({ status: 0, mayHaveTakenEffect: true })
  })

  it('may have had an effect where content that was lost is compared, and breaks as well', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
    const body = new ReadableStream({ pull: (controller) => controller.error(broken) })
    const { client } = answerInTurn([broken, new Response('', { status: 412 }), new Response(body)])
    const uploading = client.upload('/a', 'absent', 'text')
    await expect(uploading).rejects.toMatchObject({ message: /^The transfer broke/, mayHaveTakenEffect: true })
  })

  it('may have had an effect where one answer was lost, and the next is a refusal that is not foreseen', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
    const { client } = answerInTurn([broken, new Response('', { status: 405 })])
    await expect(client.replace('/a', 'any', {})).rejects.toMatchObject({ status: 405, mayHaveTakenEffect: true })
  })

  it('have had their effect where the answer was lost, and the state is what was sent, of a handle without text', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
    const { text: _, value: __, ...handle } = known
    const replace = (current: unknown) => {
      const { client } = answerInTurn([broken, new Response('', { status: 412 }), json(current, '"2"')])
      return client.replace(handle, { n: 2 })
    }
    expect(await replace({ id: 1, n: 2 })).toMatchObject({ ok: true, document: { entityTag: '"2"' } })
    expect(await replace({ n: 2, other: true })).toMatchObject({ ok: false, status: 412 })
  })

  it('are over for who waits for a piece of a download that is given up', async () => {
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(5)) })
    const headers = { ETag: '"1"', 'Content-Length': '10' }
    const { client, requests } = answerInTurn([new Response(body, { headers })])
    const { file } = expectSuccess(await client.download('/a'))
    const reading = file.blob()
    await new Promise(setImmediate)
    await file.cancel()
    expect([(await reading).size, requests]).toEqual([5, ['GET']])
  })

  it('had no effect where they only read', async () => {
    const { client } = answerInTurn([broken, broken], { retries: 1 })
    await expect(client.read('/a')).rejects.toMatchObject({ status: 0, mayHaveTakenEffect: false })
  })

  it('leave no listener on the signal of a download that was continued', async () => {
    const headers = { ETag: '"1"', 'Content-Length': '10' }
    const parts = [new Uint8Array(4), broken]
    const half = new ReadableStream({
      pull(controller) {
        const part = parts.shift()!
        if (part instanceof Error) controller.error(part)
        else controller.enqueue(part)
      },
    })
    const rest = { ETag: '"1"', 'Content-Range': 'bytes 4-9/10' }
    const answers = [new Response(half, { headers }), new Response('efghij', { status: 206, headers: rest })]
    const { signal } = new AbortController()
    const { client } = answerInTurn(answers)
    const { file } = expectSuccess(await client.download('/a', { signal }))
    expect((await file.blob()).size).toBe(10)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('had no effect where none was sent, for want of a token', async () => {
    const token = () => Promise.reject(new Error('no token'))
    const { client, requests } = answerInTurn([], { token, retries: 1 })
    await expect(client.replace('/a', 'any', {})).rejects.toMatchObject({ status: 0, mayHaveTakenEffect: false })
    expect(requests).toEqual([])
  })

  it('are not continued behind a content coding: ranges count coded bytes (RFC 9110 §14.1.2)', async () => {
    let pieces = 0
    const body = new ReadableStream({
      pull(controller) {
        if (pieces++ === 0) controller.enqueue(new Uint8Array(5))
        else controller.error(broken)
      },
    })
    const headers = { ETag: '"1"', 'Content-Encoding': 'gzip', 'Content-Length': '10' }
    const { client, requests } = answerInTurn([new Response(body, { headers }), json({}, '"2"')])
    const { file } = expectSuccess(await client.download('/a'))
    await expect(file.blob()).rejects.toThrow('The transfer broke.')
    expect(requests).toEqual(['GET'])
  })
})

describe('the wait for accepted work', () => {
  it('ends with its signal, also before it has asked for the first time', async () => {
    const { client, requests } = answerInTurn([])
    const operation = { url: 'https://example.org/a', retryAfter: 60_000 }
    const waiting = client.wait(operation, { signal: AbortSignal.timeout(1) })
    await expect(waiting).rejects.toMatchObject({ name: 'TimeoutError' })
    expect(requests).toEqual([])
  })

  it('looks again after a second where the server says no time', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const startTimer = vi.spyOn(globalThis, 'setTimeout')
    const { client } = answerInTurn([json({ state: 'pending' }, '"1"'), json({ state: 'done' }, '"2"')], { timeout: 7 })
    const waiting = client.wait({ url: 'https://example.org/a', retryAfter: undefined })
    await vi.runAllTimersAsync()
    expectSuccess(await waiting)
    expect(startTimer.mock.calls.map(([, time]) => time).filter((time) => time !== 7)).toEqual([1000])
  })
})
