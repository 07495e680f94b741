import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2'
import { Answer } from '../support/answer.ts'
import type { WireClient } from './raw-client.ts'

/** One request of the text that a client of HTTP/1.1 would send. */
interface ParsedRequest {
  readonly method: string
  readonly path: string
  readonly fields: Record<string, string[]>
  readonly body: string
  /** Bytes of content that are announced and not in the text. */
  readonly missing: number
}

/** A request that was sent, and what has come back. */
interface Sent {
  readonly stream: ClientHttp2Stream
  head: { readonly status: number; readonly fields: (readonly [string, string])[] } | undefined
  readonly chunks: Buffer[]
  /** Fulfilled at the end of the answer, or when the stream breaks off. */
  readonly closed: Promise<void>
}

/** Fields of one connection of HTTP/1.1, which HTTP/2 does not have (RFC 9113 §8.2.2). */
const OF_CONNECTION = ['connection', 'transfer-encoding', 'host']

/**
 * A client of HTTP/2 that is given requests as HTTP/1.1 has them, and sends them as a gateway would: one test drives both.
 * Requests that are sent at once are streams at once; their answers are read in the order of the requests.
 */
export async function openHttp2Client(port: number, isSecure: boolean): Promise<WireClient> {
  const session: ClientHttp2Session = connect(`http${isSecure ? 's' : ''}://localhost:${port}`, {
    rejectUnauthorized: false,
    // The client's own limit: an answer that it does not read counts.
    maxSessionMemory: 1000,
  })
  session.on('error', () => {})
  await once(session, 'connect')
  const sent: Sent[] = []
  let unread = 0
  let isPaused = false
  let filling: { readonly stream: ClientHttp2Stream; missing: number } | undefined

  function start({ method, path, fields, body, missing }: ParsedRequest): void {
    const isEmpty = body === '' && missing === 0
    const stream = session.request({ ':method': method, ':path': path, ...fields }, { endStream: isEmpty })
    const record: Sent = {
      stream,
      head: undefined,
      chunks: [],
      closed: new Promise((resolve) => stream.once('close', resolve)),
    }
    stream.on('error', () => {})
    stream.once('response', (headers: IncomingHttpHeaders, _flags: unknown, raw: string[]) => {
      const names = raw.filter((_, i) => i % 2 === 0)
      const fields = names.map((name, i) => [name, raw[2 * i + 1]!] as const)
      record.head = { status: Number(headers[':status']), fields: fields.filter(([name]) => !name.startsWith(':')) }
    })
    if (missing > 0) {
      stream.write(Buffer.from(body, 'latin1'))
      filling = { stream, missing }
    } else if (!isEmpty) stream.end(Buffer.from(body, 'latin1'))
    sent.push(record)
  }

  function flow(record: Sent): void {
    if (isPaused || record.stream.listenerCount('data') > 0) return
    record.stream.on('data', (chunk: Buffer) => record.chunks.push(chunk))
  }

  const last = (): Sent => sent.at(-1)!

  return {
    isHttp2: true,
    send(text) {
      if (filling !== undefined) {
        filling.stream.write(text)
        filling.missing -= text.length
        if (filling.missing <= 0) filling.stream.end()
        if (filling.missing <= 0) filling = undefined
      } else for (const request of parseRequests(String(text))) start(request)
    },
    async read() {
      const record = sent[unread++]!
      flow(record)
      await Promise.race([record.closed, record.stream.readableEnded ? undefined : once(record.stream, 'end')])
      if (record.head === undefined) throw new Error('The stream ended without an answer.')
      return new Answer({ ...record.head, phrase: '', body: Buffer.concat(record.chunks) })
    },
    async readBroken() {
      const record = sent[unread++]!
      flow(record)
      await record.closed
      if (record.stream.rstCode === constants.NGHTTP2_NO_ERROR) throw new Error('The answer looks whole.')
      return { status: record.head?.status, body: Buffer.concat(record.chunks) }
    },
    // A stream is one response, and read() has it to its end.
    rest: async () => Buffer.alloc(0),
    pause() {
      isPaused = true
      for (const { stream } of sent) stream.pause()
    },
    resume() {
      isPaused = false
      for (const record of sent) {
        flow(record)
        record.stream.resume()
      }
    },
    async firstBytes() {
      await once(last().stream, 'data')
    },
    get incoming() {
      return last().stream
    },
    leave: () => session.destroy(),
    reset() {
      for (const { stream } of sent) stream.close(constants.NGHTTP2_CANCEL)
      session.destroy()
    },
    get closed() {
      return sent.length === 0 ? Promise.resolve() : last().closed
    },
  }
}

function* parseRequests(text: string): Iterable<ParsedRequest> {
  let rest = text
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n')
    const [line = '', ...lines] = rest.slice(0, end).split('\r\n')
    const [method = '', path = ''] = line.split(' ')
    const fields: Record<string, string[]> = {}
    for (const field of lines) {
      const [name = '', value = ''] = field.split(/: (.*)/s)
      const key = name.toLowerCase()
      if (!OF_CONNECTION.includes(key)) (fields[key] ??= []).push(value)
    }
    const content = rest.slice(end + 4)
    const isChunked = lines.includes('Transfer-Encoding: chunked')
    const length = Number(fields['content-length']?.[0] ?? 0)
    const taken = isChunked ? content.indexOf('0\r\n\r\n') + 5 : Math.min(length, content.length)
    const body = isChunked ? content.slice(content.indexOf('\r\n') + 2, taken - 7) : content.slice(0, taken)
    yield { method, path, fields, body, missing: isChunked ? 0 : length - taken }
    rest = content.slice(taken)
  }
}
