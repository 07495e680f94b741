import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { readBytes, streamBytes } from '../../src/body-types/read-body.ts'
import { isHttpError, RequestAborted } from '../../src/core/errors.ts'
import { Exchange } from '../../src/core/exchange.ts'
import { findConsumedBody } from '../../src/core/request-content.ts'
import { type RunningHost, runListener } from '../support/hosts.ts'
import { gather, statusOf } from './feed.ts'

type Read = (exchange: Exchange, limit: number) => Promise<Uint8Array>

const readers: readonly (readonly [string, Read])[] = [
  ['readBytes', async (exchange, limit) => readBytes(exchange, limit, (_, bytes) => bytes)],
  ['streamBytes', (exchange, limit) => gather(streamBytes(exchange, limit))],
]

const running: RunningHost[] = []
afterEach(async () => {
  for (const host of running.splice(0)) await host.close()
})

/** What became of one request, as its reader saw it. */
type Outcome = string | number | 'aborted'

/** A server that reads every request with `read`, and tells how each went: its text, the status of the refusal. */
async function serve(
  read: Read,
  limit: number,
  prepare: (exchange: Exchange, res: ServerResponse) => unknown = () => {},
) {
  const outcomes: Outcome[] = []
  let settled = (): void => {}
  const host = await runListener(async (req: IncomingMessage, res: ServerResponse) => {
    const exchange = new Exchange(req, res)
    await prepare(exchange, res)
    try {
      outcomes.push(Buffer.from(await read(exchange, limit)).toString())
    } catch (error) {
      if (error instanceof RequestAborted) outcomes.push('aborted')
      else if (isHttpError(error)) outcomes.push(error.status)
      else outcomes.push(String(error))
    }
    settled()
    res.shouldKeepAlive = false
    res.end(JSON.stringify(outcomes.at(-1)))
  })
  running.push(host)
  return {
    ...host,
    outcomes,
    async next(): Promise<Outcome> {
      if (outcomes.length === 0) await new Promise<void>((resolve) => (settled = resolve))
      return outcomes.shift()!
    },
    async post(body: string, headers: Record<string, string> = {}): Promise<unknown> {
      return JSON.parse((await host.send({ method: 'POST', path: '/', headers, body })).body.toString())
    },
    async open(head: string) {
      const socket = connect({ port: host.port, host: '127.0.0.1' })
      socket.on('error', () => {})
      await once(socket, 'connect')
      socket.write(`POST / HTTP/1.1\r\nHost: x\r\n${head}`)
      return socket
    },
  }
}

const closed = (req: IncomingMessage) => new Promise((resolve) => req.on('close', resolve))

const chunked = { 'Transfer-Encoding': 'chunked' }

describe.each(readers)('%s', (_, read) => {
  it('takes content of exactly the limit and refuses one byte more with 413, declared or not (threat 58)', async () => {
    const server = await serve(read, 5)
    expect(await server.post('12345')).toBe('12345')
    expect(await server.post('12345', chunked)).toBe('12345')
    expect(await server.post('123456')).toBe(413)
    expect(await server.post('123456', chunked)).toBe(413)
    expect(await server.post('')).toBe('')
  })

  it('reads content that comes byte by byte, and content of many chunks', async () => {
    const server = await serve(read, Number.POSITIVE_INFINITY)
    const socket = await server.open('Content-Length: 5\r\n\r\n')
    for (const byte of 'abcde') {
      socket.write(byte)
      await new Promise(setImmediate)
    }
    expect(await server.next()).toBe('abcde')
    const long = 'x'.repeat(3_000_000)
    expect(await server.post(long, chunked)).toBe(long)
  })

  it('counts bytes, not Content-Length: a refused one is not read to its end', async () => {
    const server = await serve(read, 5)
    await server.open('Content-Length: 99999999\r\n\r\nabc')
    expect(await server.next()).toBe(413)
  })

  it('leaves no listener behind where content is refused: it would pause the request while the rest is dropped', async () => {
    const counts: unknown[] = []
    const server = await serve(async (exchange, limit) => {
      const before = countListeners(exchange)
      await statusOf(() => read(exchange, limit))
      counts.push(countListeners(exchange).map((after, i) => after - before[i]!))
      return Buffer.from('')
    }, 5)
    await server.post('abcdef', chunked)
    expect(counts).toEqual([[0, 0, 0]])
  })

  it.each([
    ['before any content', 'Content-Length: 5\r\n\r\n'],
    ['midway', 'Content-Length: 5\r\n\r\nab'],
    ['midway through chunks', 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'],
  ])('tells when the client goes away %s (row F12)', async (_, head) => {
    let arrived = (): void => {}
    const arrival = new Promise<void>((resolve) => (arrived = resolve))
    const server = await serve(read, 5, () => arrived())
    const socket = await server.open(head)
    await arrival
    socket.destroy()
    expect(await server.next()).toBe('aborted')
  })

  it('tells when the client has gone away before the content is read', async () => {
    const server = await serve(read, 5, ({ req }) => closed(req))
    const socket = await server.open('Content-Length: 5\r\n\r\n')
    socket.destroy()
    expect(await server.next()).toBe('aborted')
  })

  it('gives up a client that sends nothing for too long with 408', async () => {
    const server = await serve(read, 100, (exchange) => {
      exchange.idleTimeout = 80
    })
    const socket = await server.open('Content-Length: 50\r\n\r\nab')
    expect(await server.next()).toBe(408)
    socket.destroy()
  })

  it('owes the client a 100 Continue only until it reads', async () => {
    const sent: number[] = []
    const server = await serve(read, 5, (exchange) => {
      exchange.sendContinue = () => sent.push(1)
    })
    expect(await server.post('abc')).toBe('abc')
    expect(sent).toEqual([1])
    expect(await server.post('abcdef')).toBe(413)
    expect(sent).toEqual([1])
  })

  it('fails at once when the content has been read before', async () => {
    const server = await serve(read, 5, async ({ req }) => {
      for await (const _ of req);
    })
    expect(await server.post('abc')).toContain('was read before http-resource-service saw it')
  })

  it('fails at once when some of the content has been read before', async () => {
    const server = await serve(read, 1e6, async ({ req }) => {
      await once(req, 'data')
      req.pause()
    })
    expect(await server.post('x'.repeat(500_000))).toContain('was read before http-resource-service saw it')
  })
})

const countListeners = ({ req }: Exchange) => ['data', 'end', 'close'].map((name) => req.listenerCount(name))

describe('streamBytes', () => {
  it('reads no faster than its consumer (row F11)', async () => {
    let release = (): void => {}
    const released = new Promise<void>((resolve) => (release = resolve))
    let size = 0
    const server = await serve(async (exchange) => {
      for await (const chunk of streamBytes(exchange, Number.POSITIVE_INFINITY)) {
        if (size === 0) await released
        size += chunk.length
      }
      return Buffer.from(String(size))
    }, 0)
    const total = 64 * 1024 * 1024
    const socket = await server.open(`Content-Length: ${total}\r\n\r\n`)
    const block = Buffer.alloc(1024 * 1024)
    for (let sent = 0; sent < total; sent += block.length) socket.write(block)
    let left = 0
    // What the kernel and Node take in is little; the rest stays with the client.
    while (left !== socket.writableLength) {
      left = socket.writableLength
      for (let i = 0; i < 100; i++) await new Promise(setImmediate)
    }
    expect(left).toBeGreaterThan(total / 2)
    release()
    expect(await server.next()).toBe(String(total))
  })

  it('does not take a client for idle that a slow consumer holds back', async () => {
    const server = await serve(
      async (exchange) => {
        let size = 0
        for await (const chunk of streamBytes(exchange, Number.POSITIVE_INFINITY)) {
          if (size === 0) await new Promise((resolve) => setTimeout(resolve, 200))
          size += chunk.length
        }
        return Buffer.from(String(size))
      },
      0,
      (exchange) => {
        exchange.idleTimeout = 60
      },
    )
    expect(await server.post('x'.repeat(4_000_000))).toBe('4000000')
  })

  it('tells a slow consumer that the client went away meanwhile: never an early end', async () => {
    let reached = (): void => {}
    const waiting = new Promise<void>((resolve) => (reached = resolve))
    let release = (): void => {}
    const released = new Promise<void>((resolve) => (release = resolve))
    const server = await serve(async (exchange) => {
      for await (const _ of streamBytes(exchange, Number.POSITIVE_INFINITY)) {
        reached()
        await released
      }
      return Buffer.from('whole')
    }, 0)
    const socket = await server.open('Content-Length: 99999999\r\n\r\n')
    socket.write(Buffer.alloc(4_000_000))
    await waiting
    socket.destroy()
    await once(socket, 'close')
    release()
    expect(await server.next()).toBe('aborted')
  })

  it('leaves no listeners behind, whether it ends, fails, or is left', async () => {
    const counts: unknown[] = []
    const server = await serve(async (exchange, limit) => {
      const before = countListeners(exchange)
      try {
        for await (const chunk of streamBytes(exchange, limit)) if (chunk[0] === 0x21) break
      } catch {
        // counted all the same
      }
      counts.push(countListeners(exchange).map((after, i) => after - before[i]!))
      return Buffer.from('')
    }, 5)
    await server.post('abc', chunked)
    await server.post('abcdef', chunked)
    await server.post('!', chunked)
    expect(counts).toEqual([
      [0, 0, 0],
      [0, 0, 0],
      [0, 0, 0],
    ])
  })

  it('hears of a connection that breaks after content was refused: an error without a listener ends the process', async () => {
    const counts: number[] = []
    const server = await serve(async (exchange, limit) => {
      await statusOf(() => gather(streamBytes(exchange, limit)))
      counts.push(exchange.req.listenerCount('error'))
      return Buffer.from('')
    }, 5)
    await server.post('abcdef', chunked)
    expect(counts[0]).toBeGreaterThan(0)
  })
})

describe('findConsumedBody', () => {
  it('finds nothing while the content is still to come, whatever a parser has set already', async () => {
    const found: unknown[] = []
    const server = await serve(async (exchange) => {
      Object.assign(exchange.req, { body: {} })
      found.push(findConsumedBody(exchange))
      return Buffer.from('')
    }, 5)
    await server.post('abc')
    expect(found).toEqual([undefined])
  })

  it.each([{ a: 1 }, 'text', null, false, Buffer.from('x')])(
    'finds what a parser has made of it: %j',
    async (value) => {
      const found: unknown[] = []
      const server = await serve(
        async (exchange) => {
          found.push(findConsumedBody(exchange)?.value)
          return Buffer.from('')
        },
        5,
        async ({ req }) => {
          for await (const _ of req);
          Object.assign(req, { body: value })
        },
      )
      await server.post('abc')
      expect(found).toEqual([value])
    },
  )
})

it.each(readers)('%s looks at a request no more once its content has been read', async (_, read) => {
  let looks = 0
  const host = await runListener(async (req, res) => {
    const exchange = new Exchange(req, res)
    exchange.idleTimeout = 20
    await read(exchange, 100)
    const [isPaused, pause] = [req.isPaused.bind(req), req.pause.bind(req)]
    req.isPaused = () => {
      looks++
      return isPaused()
    }
    req.pause = () => {
      looks++
      return pause()
    }
    setTimeout(() => res.end('read'), 200)
  })
  running.push(host)
  expect((await host.send({ method: 'POST', path: '/', body: 'content' })).body.toString()).toBe('read')
  expect(looks).toBe(0)
})
