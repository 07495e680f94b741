import { connect } from 'node:net'

export interface WireResponse {
  readonly status: number
  /** Names in lower case and values, in order. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
}

export function valuesOf({ headers }: WireResponse, name: string): readonly string[] {
  return headers.filter(([key]) => key === name).map(([, value]) => value)
}

/** Milliseconds without a byte after which the server is taken to have said everything. */
const QUIET = 1500

/**
 * Sends parts of a request, each after a pause, and reads until the server closes the connection or falls silent.
 * @param methods of the requests, which say whether content follows the header section of a response
 */
export async function exchange(
  port: number,
  parts: readonly string[],
  methods: readonly string[],
): Promise<readonly WireResponse[]> {
  const socket = connect(port, '127.0.0.1')
  const arrived: Buffer[] = []
  socket.on('data', (chunk: Buffer) => arrived.push(chunk))
  // A server that refuses a request may reset the connection after its response.
  socket.on('error', () => {})
  socket.setTimeout(QUIET, () => socket.destroy())
  const closed = new Promise((resolve) => socket.on('close', resolve))
  for (const [index, part] of parts.entries()) {
    if (index > 0) await new Promise((resolve) => setTimeout(resolve, 300))
    socket.write(part, 'latin1')
  }
  await closed
  return parseResponses(Buffer.concat(arrived), methods)
}

function parseResponses(bytes: Buffer, methods: readonly string[]): readonly WireResponse[] {
  const responses: WireResponse[] = []
  let rest = bytes
  let finals = 0
  while (rest.length > 0) {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) throw new Error(`The response has no end of its header section: ${rest.toString('latin1')}`)
    const [statusLine = '', ...lines] = rest.toString('latin1', 0, end).split('\r\n')
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(statusLine)?.[1])
    const headers = lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
    })
    const response = { status, headers, body: Buffer.alloc(0) }
    const isEmpty = methods[finals] === 'HEAD' || status < 200 || status === 204 || status === 304
    const { body, after } = isEmpty ? { body: response.body, after: end + 4 } : takeBody(response, rest, end + 4)
    responses.push({ ...response, body })
    if (status >= 200) finals++
    rest = rest.subarray(after)
  }
  return responses
}

function takeBody(head: WireResponse, bytes: Buffer, start: number): { body: Buffer; after: number } {
  if (valuesOf(head, 'transfer-encoding')[0] === 'chunked') return takeChunks(bytes, start)
  const [length] = valuesOf(head, 'content-length')
  const after = length === undefined ? bytes.length : start + Number(length)
  return { body: bytes.subarray(start, after), after }
}

function takeChunks(bytes: Buffer, start: number): { body: Buffer; after: number } {
  const chunks: Buffer[] = []
  for (let at = start; ; ) {
    const end = bytes.indexOf('\r\n', at)
    const size = Number.parseInt(bytes.toString('latin1', at, end), 16)
    if (end < 0 || !(size >= 0)) throw new Error('The chunked content of the response is broken.')
    if (size === 0) return { body: Buffer.concat(chunks), after: end + 4 }
    chunks.push(bytes.subarray(end + 2, end + 2 + size))
    at = end + 2 + size + 2
  }
}
