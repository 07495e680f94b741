import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectSecurely } from 'node:tls'

/** A client of HTTP/2 that sends fields line by line: Node's refuses to send some of them twice. */
export interface FrameClient {
  /** @param lines names in lower case and values, in the order in which they are sent */
  ask(
    method: string,
    path: string,
    lines: readonly (readonly [name: string, value: string])[],
    body?: string,
  ): Promise<{ readonly status: number; readonly body: Buffer }>
  /** Sends a request with the beginning of its content. @returns resets the stream with an error code (RFC 9113 §6.4) */
  begin(
    method: string,
    path: string,
    lines: readonly (readonly [name: string, value: string])[],
    part: string,
  ): (code: number) => void
  /** Gives the streams room for as much as has arrived since the last call, and reads on after a pause in milliseconds (RFC 9113 §5.2). */
  goOn(pause: number): void
  leave(): void
}

const DATA = 0
const HEADERS = 1
const RST_STREAM = 3
const SETTINGS = 4
const WINDOW_UPDATE = 8
const END_STREAM = 0x1
const ACK = 0x1
const END_HEADERS = 0x4
/** The server must not remember fields: then every answer can be read alone (RFC 7541 §4.2). */
const NO_TABLE = Buffer.from([0x00, 0x01, 0, 0, 0, 0])
/** The statuses of the static table, from index 8 (RFC 7541 §A). */
const STATUSES = [200, 204, 206, 304, 400, 404, 500]

export async function openFrameClient(port: number, isSecure: boolean): Promise<FrameClient> {
  const place = { port, host: '127.0.0.1' }
  const socket = isSecure
    ? connectSecurely({ ...place, rejectUnauthorized: false, ALPNProtocols: ['h2'] })
    : connect(place)
  await once(socket, isSecure ? 'secureConnect' : 'connect')
  const taken = new Map<number, number>()
  const answers = new Map<number, { status: number; chunks: Buffer[]; settle: (error?: Error) => void }>()
  let received = Buffer.alloc(0)
  let nextStream = 1

  function send(type: number, flags: number, stream: number, payload: Buffer): void {
    const head = Buffer.alloc(9)
    head.writeUIntBE(payload.length, 0, 3)
    head[3] = type
    head[4] = flags
    head.writeUInt32BE(stream, 5)
    socket.write(Buffer.concat([head, payload]))
  }

  function take(type: number, flags: number, stream: number, payload: Buffer): void {
    if (type === SETTINGS && (flags & ACK) === 0) send(SETTINGS, ACK, 0, Buffer.alloc(0))
    const answer = answers.get(stream)
    if (answer === undefined) return
    if (type === HEADERS) answer.status = readStatus(payload)
    if (type === DATA) {
      answer.chunks.push(payload)
      taken.set(stream, (taken.get(stream) ?? 0) + payload.length)
      if (payload.length > 0) sendNumber(WINDOW_UPDATE, 0, payload.length)
    }
    if (type === RST_STREAM) answer.settle(new Error('The stream was reset.'))
    else if ((type === HEADERS || type === DATA) && (flags & END_STREAM) !== 0) answer.settle()
  }

  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    for (;;) {
      const length = received.length < 9 ? Number.POSITIVE_INFINITY : received.readUIntBE(0, 3)
      if (received.length < 9 + length) return
      take(received[3]!, received[4]!, received.readUInt32BE(5), received.subarray(9, 9 + length))
      received = received.subarray(9 + length)
    }
  })
  socket.on('close', () => {
    for (const { settle } of answers.values()) settle(new Error('The connection was closed.'))
  })
  socket.on('error', () => {})

  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  send(SETTINGS, 0, 0, NO_TABLE)

  function sendNumber(type: number, stream: number, value: number): void {
    const payload = Buffer.alloc(4)
    payload.writeUInt32BE(value)
    send(type, 0, stream, payload)
  }

  function open(
    method: string,
    path: string,
    lines: readonly (readonly [name: string, value: string])[],
    flags: number,
  ): number {
    const stream = nextStream
    nextStream += 2
    const pseudo = {
      ':method': method,
      ':scheme': isSecure ? 'https' : 'http',
      ':authority': 'a.test',
      ':path': path,
    }
    const fields = [...Object.entries(pseudo), ...lines].map(([name, value]) => formatField(name, value))
    send(HEADERS, flags, stream, Buffer.concat(fields))
    return stream
  }

  return {
    async ask(method, path, lines, body) {
      const chunks: Buffer[] = []
      const answer = { status: 0, chunks, settle: (_?: Error): void => {} }
      const done = new Promise<void>((resolve, reject) => {
        answer.settle = (error) => (error === undefined ? resolve() : reject(error))
      })
      const stream = open(method, path, lines, body === undefined ? END_HEADERS | END_STREAM : END_HEADERS)
      answers.set(stream, answer)
      if (body !== undefined) send(DATA, END_STREAM, stream, Buffer.from(body))
      await done
      return { status: answer.status, body: Buffer.concat(chunks) }
    },
    begin(method, path, lines, part) {
      const stream = open(method, path, lines, END_HEADERS)
      send(DATA, 0, stream, Buffer.from(part))
      return (code) => sendNumber(RST_STREAM, stream, code)
    },
    goOn(pause) {
      for (const [stream, bytes] of taken) sendNumber(WINDOW_UPDATE, stream, bytes)
      taken.clear()
      socket.pause()
      setTimeout(() => socket.resume(), pause)
    },
    leave: () => void socket.destroy(),
  }
}

/** A literal field, neither indexed nor compressed (RFC 7541 §6.2.2). */
function formatField(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0x00]), formatText(name), formatText(value)])
}

function formatText(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1')
  if (bytes.length > 126) throw new Error('Longer text needs an integer of several bytes (RFC 7541 §5.1).')
  return Buffer.concat([Buffer.from([bytes.length]), bytes])
}

/** The first field of an answer: `:status` (RFC 9113 §8.3). */
function readStatus(block: Buffer): number {
  let at = 0
  // Changes of the table's size come first (RFC 7541 §6.3).
  while ((block[at]! & 0xe0) === 0x20) at++
  const first = block[at]!
  if (first >= 0x88 && first <= 0x8e) return STATUSES[first - 0x88]!
  const length = block[at + 1]!
  const value = block.subarray(at + 2, at + 2 + (length & 0x7f))
  return Number((length & 0x80) === 0 ? value.toString() : readHuffmanDigits(value))
}

/** Text of digits (RFC 7541 §B): "0" to "2" have five bits, "3" to "9" have six. */
function readHuffmanDigits(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  let text = ''
  for (let at = 0; text.length < 3; ) {
    const short = Number.parseInt(bits.slice(at, at + 5), 2)
    text += short < 3 ? short : Number.parseInt(bits.slice(at, at + 6), 2) - 0x19 + 3
    at += short < 3 ? 5 : 6
  }
  return text
}
