import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { createActivity } from '../../src/core/activity.ts'
import type { Handler } from '../../src/core/handler.ts'
import { createHandler } from '../../src/core/node-handler.ts'
import { contentReply } from '../../src/core/reply.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { startHost } from '../support/hosts.ts'

const TEXT = ['Content-Type', 'text/plain']

async function open(handler: Handler): Promise<ClientHttp2Session> {
  const host = await startHost('http2', handler)
  closeAfterTest(() => host.close())
  const session = connect(`http://127.0.0.1:${host.port}`)
  session.on('error', () => {})
  closeAfterTest(() => session.destroy())
  return session
}

/** Starts a request whose answer is not read. */
function ask(session: ClientHttp2Session, path: string): ClientHttp2Stream {
  const stream = session.request({ ':path': path })
  stream.on('error', () => {})
  return stream
}

describe('streams of one session that are not read', () => {
  function createAnswers(idleTimeout = 30_000) {
    const taken: string[] = []
    const handler = createHandler({
      run(exchange) {
        const { url = '' } = exchange.req
        taken.push(url)
        exchange.idleTimeout = idleTimeout
        exchange.slowestReader = 10_000_000
        return contentReply(200, 'x'.repeat(url === '/small' ? 10 : 200_000), TEXT)
      },
      forwardErrors: false,
    })
    return { handler, taken }
  }

  it('hold 4 MiB at most: later ones wait before they are decided, until those end (issue 16)', async () => {
    const { handler, taken } = createAnswers()
    const session = await open(handler)
    await once(session, 'remoteSettings')
    session.settings({ initialWindowSize: 0 })
    await once(session, 'localSettings')
    const streams = Array.from({ length: 600 }, () => ask(session, '/'))
    await wait(500)
    expect(taken.length).toBe(Math.ceil((4 * 1024 * 1024) / 200_000))
    for (const stream of streams.slice(0, 10)) stream.close(8)
    await expect.poll(() => taken.length).toBe(Math.ceil((4 * 1024 * 1024) / 200_000) + 10)
    session.settings({ initialWindowSize: 65_535 })
    for (const stream of streams) stream.resume()
    await Promise.all(streams.slice(10).map((stream) => stream.closed || once(stream, 'close')))
    expect(taken).toHaveLength(600)
  })

  it('are ended when they make no progress, and those that wait go on (issue 16)', async () => {
    const { handler, taken } = createAnswers(200)
    const session = await open(handler)
    const streams = Array.from({ length: 60 }, () => ask(session, '/'))
    await expect.poll(() => taken.length).toBe(60)
    await expect.poll(() => streams.every(({ closed }) => closed)).toBe(true)
  })

  it('end when the client leaves, also behind a window of 0 (issue 17)', async () => {
    const closed: string[] = []
    const handler = createHandler({
      run(exchange) {
        const { method = '' } = exchange.req
        exchange.idleTimeout = 30_000
        exchange.slowestReader = 10_000_000
        exchange.res.once('close', () => closed.push(method))
        return contentReply(200, 'x'.repeat(2_000_000), TEXT)
      },
      forwardErrors: false,
    })
    const session = await open(handler)
    await once(session, 'remoteSettings')
    session.settings({ initialWindowSize: 0 })
    await once(session, 'localSettings')
    await once(ask(session, '/'), 'response')
    const head = session.request({ ':path': '/', ':method': 'HEAD' })
    head.resume()
    await once(head, 'response')
    session.destroy()
    await expect.poll(() => closed).toContain('GET')
  })

  it('hold no bytes of large text but those that wait to be sent: the text is that of the store', async () => {
    const text = 'x'.repeat(8_000_000)
    const session = await open(createHandler({ run: () => contentReply(200, text, TEXT), forwardErrors: false }))
    await once(session, 'remoteSettings')
    session.settings({ initialWindowSize: 0 })
    await once(session, 'localSettings')
    const made = vi.spyOn(Buffer, 'from')
    closeAfterTest(() => made.mockRestore())
    await Promise.all(Array.from({ length: 10 }, () => once(ask(session, '/'), 'response')))
    const bytes = made.mock.results.reduce((sum, { value }) => sum + (value as Buffer).length, 0)
    expect(bytes).toBeLessThan(text.length)
  })

  it('hold no small answer up (issue 16)', async () => {
    const { handler } = createAnswers()
    const session = await open(handler)
    const unread = ask(session, '/')
    for (let i = 0; i < 100; i++) {
      const stream = ask(session, '/small')
      stream.resume()
      await once(stream, 'end')
      expect(stream.rstCode).toBe(0)
    }
    expect(unread.closed).toBe(false)
    unread.close(8)
    await once(unread, 'close')
  })

  it('hold no small answer up by what their source holds: of one answer 1 MiB counts at most', async () => {
    const source = {
      size: 1_000_000,
      held: 64 * 1024 * 1024,
      async *open() {
        yield Buffer.alloc(1_000_000)
      },
    }
    const handler = createHandler({
      run: ({ req }) => {
        if (req.url === '/small') return contentReply(200, 'x', TEXT)
        return { status: 200, headers: [...TEXT, 'Content-Length', String(source.size)], body: source }
      },
      forwardErrors: false,
    })
    const session = await open(handler)
    const unread = ask(session, '/')
    await once(unread, 'response')
    const stream = ask(session, '/small')
    stream.resume()
    await once(stream, 'end', { signal: AbortSignal.timeout(15_000) })
    expect(unread.closed).toBe(false)
    unread.close(8)
    await once(unread, 'close')
  })

  it('do not wait without bound: the thousandth is refused, to be tried again (RFC 9113 §8.7)', async () => {
    const { handler } = createAnswers()
    const session = await open(handler)
    const streams = Array.from({ length: 1200 }, () => ask(session, '/'))
    await expect.poll(() => streams.at(-1)!.rstCode).toBe(7)
    expect(streams.filter(({ rstCode }) => rstCode === 7).length).toBe(1200 - 1000 - 21)
  })
})

describe('streams of one session', () => {
  it('hold one another up by what a source holds, up to 1 MiB each', async () => {
    let taken = 0
    const body = {
      size: 10,
      held: 64 * 1024 * 1024,
      async *open() {
        yield Buffer.alloc(10)
      },
    }
    const run = () => {
      taken++
      return { status: 200, headers: [...TEXT, 'Content-Length', '10'], body }
    }
    const session = await open(createHandler({ run, forwardErrors: false }))
    await once(session, 'remoteSettings')
    session.settings({ initialWindowSize: 0 })
    await once(session, 'localSettings')
    for (let i = 0; i < 20; i++) ask(session, '/')
    await wait(500)
    expect(taken).toBeGreaterThan(0)
    expect(taken).toBeLessThanOrEqual(4)
  })

  it('wait no longer once those before them are the host’s, however long these last', async () => {
    let atHost = 0
    const guard = createHandler({
      run: () => wait(50, undefined),
      role: 'guard',
      forwardErrors: false,
    })
    const lasting = Object.assign(
      (...[req, res]: Parameters<Handler>) =>
        guard(req, res, () => {
          atHost++
          ;(res as ServerResponse).write('x')
        }),
      guard,
    ) as Handler
    const session = await open(lasting)
    for (let i = 0; i < 90; i++) ask(session, '/')
    await expect.poll(() => atHost).toBe(90)
  })

  it('leave nothing under way that has not been taken when the session ends', async () => {
    const activity = createActivity(2 ** 30)
    let taken = 0
    const handler = createHandler({
      run() {
        taken++
        return contentReply(200, 'x'.repeat(200_000), TEXT)
      },
      activity,
      forwardErrors: false,
    })
    const session = await open(handler)
    await once(session, 'remoteSettings')
    session.settings({ initialWindowSize: 0 })
    await once(session, 'localSettings')
    for (let i = 0; i < 60; i++) ask(session, '/')
    await expect.poll(() => taken).toBe(21)
    session.destroy()
    await activity.drain()
  })
})
