import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** One response as it came over the wire. */
export interface RawResponse {
  readonly status: number
  /** The reason phrase. */
  readonly phrase: string
  /** Names in lower case and values, in order, repeated fields as often as they were sent. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
}

/** A connection that sends exactly the bytes it is given, and reads one response after the other. */
export interface RawClient {
  readonly socket: Socket
  send(text: string | Uint8Array): void
  /** Reads the next response; `method` tells whether content follows the header section. */
  read(method?: string): Promise<RawResponse>
  /** Everything that arrives until the connection closes. */
  readToEnd(): Promise<Buffer>
  /** Fulfilled when the connection is closed, by whomever. */
  readonly closed: Promise<void>
}

/** The values of a field in a response. */
export function valuesOf(response: RawResponse, name: string): string[] {
  return response.fields.filter(([key]) => key === name).map(([, value]) => value)
}

export async function openRawClient(port: number): Promise<RawClient> {
  const socket = connect({ port, host: '127.0.0.1' })
  let received: Buffer = Buffer.alloc(0)
  let ended = false
  let wake = (): void => {}
  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
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
  await once(socket, 'connect')

  async function waitFor<Value>(take: () => Value | undefined): Promise<Value> {
    for (;;) {
      const value = take()
      if (value !== undefined) return value
      if (ended) throw new Error(`The connection ended; left over: ${JSON.stringify(received.toString('latin1'))}`)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }

  function takeHead(): Omit<RawResponse, 'body'> | undefined {
    const end = received.indexOf('\r\n\r\n')
    if (end < 0) return undefined
    const [statusLine = '', ...lines] = received.toString('latin1', 0, end).split('\r\n')
    received = received.subarray(end + 4)
    const match = /^HTTP\/1\.1 (\d{3}) (.*)$/.exec(statusLine)
    if (match === null) throw new Error(`Not a status line: ${JSON.stringify(statusLine)}`)
    const fields = lines.map((line) => {
      const colon = line.indexOf(': ')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 2)] as const
    })
    return { status: Number(match[1]), phrase: match[2]!, fields }
  }

  return {
    socket,
    closed,
    send(text) {
      socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text)
    },
    async read(method = 'GET') {
      const head = await waitFor(takeHead)
      const { status } = head
      if (method === 'HEAD' || status === 204 || status === 304 || status < 200)
        return { ...head, body: Buffer.alloc(0) }
      const response = { ...head, body: Buffer.alloc(0) }
      const [length] = valuesOf(response, 'content-length')
      if (length === undefined) throw new Error('The response has no Content-Length.')
      const body = await waitFor(() =>
        received.length >= Number(length) ? received.subarray(0, Number(length)) : undefined,
      )
      received = received.subarray(Number(length))
      return { ...response, body }
    },
    async readToEnd() {
      await closed
      return received
    },
  }
}
