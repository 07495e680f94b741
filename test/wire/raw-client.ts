import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { connect as connectSecurely } from 'node:tls'
import { Answer, type ReceivedResponse } from '../support/answer.ts'

/** A client of any version of HTTP, which is given requests as text of HTTP/1.1. */
export interface WireClient {
  readonly isHttp2: boolean
  /** Sends requests, or more of the content of the last. */
  send(text: string | Uint8Array): void
  /** Reads the next response; `method` tells whether content follows the header section. */
  read(method?: string): Promise<Answer>
  /** Reads what there is of the next response; rejects when it looks whole (RFC 9112 §8, RFC 9113 §8.1.1). */
  readBroken(): Promise<{ readonly status: number | undefined; readonly body: Buffer }>
  /** What follows the last response that was read, until the connection closes; nothing on HTTP/2. */
  rest(): Promise<Buffer>
  /** Stops to read. */
  pause(): void
  resume(): void
  /** Fulfilled when the first bytes of an answer are there. */
  firstBytes(): Promise<void>
  /** The stream that answers arrive on: the connection, or the last stream of HTTP/2. */
  readonly incoming: Readable
  /** Closes the connection. */
  leave(): void
  /** Breaks the connection off. */
  reset(): void
  /** Fulfilled when the connection, or the last stream of HTTP/2, is closed by either side. */
  readonly closed: Promise<void>
}

/** A connection that sends exactly the bytes it is given, and reads one response after the other. */
export interface RawClient extends WireClient {
  readonly socket: Socket
  /** Everything that arrives until the connection closes. */
  readToEnd(): Promise<Buffer>
}

export async function openRawClient(port: number, isSecure?: 'secure'): Promise<RawClient> {
  const place = { port, host: '127.0.0.1' }
  const socket = isSecure === undefined ? connect(place) : connectSecurely({ ...place, rejectUnauthorized: false })
  // Joined when they are looked at: joining at every arrival would take the square of the time.
  let arrived: Buffer[] = []
  let size = 0
  let ended = false
  let wake = (): void => {}
  socket.on('data', (chunk: Buffer) => {
    arrived.push(chunk)
    size += chunk.length
    wake()
  })
  const end = (): void => {
    ended = true
    wake()
  }
  socket.on('end', end).on('error', end)
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      end()
      resolve()
    })
  })
  await once(socket, isSecure === undefined ? 'connect' : 'secureConnect')

  function joined(): Buffer {
    if (arrived.length !== 1) arrived = [Buffer.concat(arrived)]
    return arrived[0]!
  }

  function drop(count: number): void {
    arrived = [joined().subarray(count)]
    size -= count
  }

  async function waitFor<Value>(take: () => Value | undefined): Promise<Value> {
    for (;;) {
      const value = take()
      if (value !== undefined) return value
      if (ended) throw new Error(`The connection ended; left over: ${JSON.stringify(joined().toString('latin1'))}`)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }

  function takeHead(): Omit<ReceivedResponse, 'body'> | undefined {
    const end = joined().indexOf('\r\n\r\n')
    if (end < 0) return undefined
    const [statusLine = '', ...lines] = joined().toString('latin1', 0, end).split('\r\n')
    drop(end + 4)
    const match = /^HTTP\/1\.1 (\d{3}) (.*)$/.exec(statusLine)
    if (match === null) throw new Error(`Not a status line: ${JSON.stringify(statusLine)}`)
    const fields = lines.map((line) => {
      const colon = line.indexOf(': ')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 2)] as const
    })
    return { status: Number(match[1]), phrase: match[2]!, fields }
  }

  async function readToEnd(): Promise<Buffer> {
    await closed
    return joined()
  }

  return {
    socket,
    closed,
    isHttp2: false,
    incoming: socket,
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    leave: () => void socket.destroy(),
    // A reset of TCP; TLS has none of its own.
    reset: () => void (isSecure === undefined ? socket.resetAndDestroy() : socket.destroy()),
    async firstBytes() {
      await once(socket, 'data')
    },
    async readBroken() {
      await closed
      const head = takeHead()
      const length = head?.fields.find(([name]) => name === 'content-length')?.[1]
      if (head !== undefined && size >= Number(length)) throw new Error('The answer looks whole.')
      return { status: head?.status, body: joined() }
    },
    send(text) {
      socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text)
    },
    async read(method = 'GET') {
      const head = await waitFor(takeHead)
      const { status } = head
      if (method === 'HEAD' || status === 204 || status === 304 || status < 200)
        return new Answer({ ...head, body: Buffer.alloc(0) })
      const length = head.fields.find(([name]) => name === 'content-length')?.[1]
      if (length === undefined) throw new Error('The response has no Content-Length.')
      const body = await waitFor(() => (size >= Number(length) ? joined().subarray(0, Number(length)) : undefined))
      drop(Number(length))
      return new Answer({ ...head, body })
    },
    rest: readToEnd,
    readToEnd,
  }
}
