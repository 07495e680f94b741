import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createRequire } from 'node:module'
import { type AddressInfo, connect } from 'node:net'
// @ts-expect-error a plain script, as its readers have it
import { createDemo, seed } from '../../examples/demo/service.js'
import { attach } from '../../src/adapters/node.ts'
import { createResourceService, type ResourceService } from '../../src/service/create-resource-service.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type SqliteHandle, sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { Answer } from '../support/answer.ts'
import { lintResponse } from '../support/lint-response.ts'

export interface SendOptions {
  /** Fields as they are sent; a name may repeat. */
  readonly fields?: readonly (readonly [string, string])[] | Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Sends the content in chunks, without its length. */
  readonly chunked?: boolean
}

export interface Target {
  readonly port: number
  readonly store: ResourceStore
  readonly service: ResourceService
  readonly server: Server
  send(method: string, path: string, options?: SendOptions): Promise<Answer>
  close(): Promise<void>
}

const SECRET = 'a secret that only these tests know, 32 bytes'

/** A token of the demo service. */
export function signToken(claims: Readonly<Record<string, unknown>> = { role: 'admin' }): string {
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const exp = Math.floor(Date.now() / 1000) + 3600
  const input = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ iss: 'demo', aud: 'demo', sub: 'test', exp, ...claims })}`
  return `${input}.${createHmac('sha256', SECRET).update(input).digest('base64url')}`
}

export const ADMIN: Readonly<Record<string, string>> = { Authorization: `Bearer ${signToken()}` }

/** All of these tests hold for every store: `STORE=sqlite npx vitest run test/writes`. */
function createStore(): ResourceStore {
  if (process.env['STORE'] !== 'sqlite') return memoryStore()
  const Database = createRequire(import.meta.url)('libsql') as new (file: string) => SqliteHandle
  return sqliteStore(new Database(':memory:'))
}

/** The demo service on a server of its own. */
export async function startDemo(store: ResourceStore = createStore()): Promise<Target> {
  await seed(store)
  const settings = { secret: SECRET, user: 'demo', password: 'demo', origins: ['http://localhost:3000'] }
  return serve(store, createDemo(store, settings))
}

/** A service with definitions of the test's own. */
export function startService(options: ServiceOptions = {}, store: ResourceStore = createStore()): Promise<Target> {
  return serve(store, createResourceService(store, options))
}

async function serve(store: ResourceStore, service: ResourceService): Promise<Target> {
  const server = createServer()
  attach(server, service)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    store,
    service,
    server,
    send: (method, path, options) => send(port, method, path, options),
    async close() {
      server.closeAllConnections()
      server.close()
      await service.close()
    },
  }
}

/** Bytes of a request on a connection of its own; everything that comes back until the connection closes. */
export async function sendBytes(port: number, ...pieces: readonly (string | Uint8Array)[]): Promise<Answer> {
  const method = String(pieces[0]).split(' ')[0]!
  const socket = connect({ port, host: '127.0.0.1' })
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', () => {}) // a server that closes early may reset what is still being sent
  for (const piece of pieces) socket.write(typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)
  await new Promise((resolve) => socket.once('close', resolve))
  const answer = parseAnswer(Buffer.concat(chunks))
  // What is wrong with any answer whatever is wrong with this one; a refusal by Node itself is not from the service.
  const faults = answer.field('x-content-type-options') === undefined ? [] : lintResponse(method, answer)
  if (faults.length > 0) throw new Error(faults.join('\n'))
  return answer
}

/** One request on a connection of its own. */
export function send(port: number, method: string, path: string, options: SendOptions = {}): Promise<Answer> {
  const { fields = {}, chunked } = options
  const body = typeof options.body === 'string' ? Buffer.from(options.body) : options.body
  const given = Array.isArray(fields) ? fields : Object.entries(fields)
  const length = body === undefined || chunked ? [] : [['Content-Length', String(body.length)]]
  const coding = chunked ? [['Transfer-Encoding', 'chunked']] : []
  const all = [['Host', 'localhost'], ['Connection', 'close'], ...given, ...length, ...coding]
  const head = `${method} ${path} HTTP/1.1\r\n${all.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
  if (body === undefined) return sendBytes(port, head)
  if (!chunked) return sendBytes(port, head, body)
  const chunk = body.length === 0 ? '' : `${body.length.toString(16)}\r\n`
  return sendBytes(port, head, chunk, body, chunk === '' ? '' : '\r\n', '0\r\n\r\n')
}

function parseAnswer(received: Buffer): Answer {
  let head = ''
  let rest = received
  // Interim responses come before the final one.
  do {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) throw new Error(`No response: ${JSON.stringify(rest.toString('latin1', 0, 200))}`)
    head = rest.toString('latin1', 0, end)
    rest = rest.subarray(end + 4)
  } while (/^HTTP\/1\.1 1\d\d /.test(head))
  const [statusLine = '', ...lines] = head.split('\r\n')
  const fields = lines.map((line) => {
    const colon = line.indexOf(': ')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 2)] as const
  })
  const isChunked = fields.some(([name, value]) => name === 'transfer-encoding' && value === 'chunked')
  const [, status, ...phrase] = statusLine.split(' ')
  return new Answer({
    status: Number(status),
    phrase: phrase.join(' '),
    fields,
    body: isChunked ? joinChunks(rest) : rest,
  })
}

function joinChunks(rest: Buffer): Buffer {
  const chunks: Buffer[] = []
  for (;;) {
    const end = rest.indexOf('\r\n')
    const size = Number.parseInt(rest.toString('latin1', 0, end), 16)
    if (!(size > 0)) return Buffer.concat(chunks)
    chunks.push(rest.subarray(end + 2, end + 2 + size))
    rest = rest.subarray(end + 4 + size)
  }
}

export const JSON_TYPE = { 'Content-Type': 'application/json' } as const
export const MERGE_PATCH = { 'Content-Type': 'application/merge-patch+json' } as const
export const JSON_PATCH = { 'Content-Type': 'application/json-patch+json' } as const
export const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' } as const

export const USER = { name: 'Ann', email: 'ann@example.com' } as const

/** A JSON request. */
export function jsonOf(value: unknown, fields: Readonly<Record<string, string>> = {}): SendOptions {
  return { fields: { ...JSON_TYPE, ...fields }, body: JSON.stringify(value) }
}

const BOUNDARY = 'a-boundary-of-these-tests'

export interface Part {
  readonly name: string
  readonly filename?: string
  readonly type?: string
  readonly content: string | Uint8Array
}

/** A multipart/form-data request. */
export function multipartOf(parts: readonly Part[], fields: Readonly<Record<string, string>> = {}): SendOptions {
  const pieces: Uint8Array[] = []
  for (const { name, filename, type, content } of parts) {
    const file = filename === undefined ? '' : `; filename="${filename}"`
    const typed = type === undefined ? '' : `Content-Type: ${type}\r\n`
    pieces.push(
      Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n${typed}\r\n`),
      Buffer.from(content),
      Buffer.from('\r\n'),
    )
  }
  pieces.push(Buffer.from(`--${BOUNDARY}--\r\n`))
  return {
    fields: { 'Content-Type': `multipart/form-data; boundary=${BOUNDARY}`, ...fields },
    body: Buffer.concat(pieces),
  }
}

/** The parts of an upload to the demo. */
export function uploadOf(content: string | Uint8Array = 'bytes', filename = 'a.txt', type = 'text/plain'): SendOptions {
  return multipartOf([
    { name: 'title', content: 'T' },
    { name: 'file', filename, type, content },
  ])
}

/** Asks repeatedly until an answer is the one that is waited for. */
export async function waitFor(ask: () => Promise<Answer>, isThere: (answer: Answer) => boolean): Promise<Answer> {
  for (const end = Date.now() + 30_000; ; ) {
    const answer = await ask()
    if (isThere(answer)) return answer
    if (Date.now() > end) throw new Error(`Still ${answer.status} ${answer.text}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
