import { describe, expect, it } from 'vitest'
import { bodyParse } from '../../src/handlers/body-parse.ts'
import { conditional } from '../../src/handlers/conditional.ts'
import { range } from '../../src/handlers/range.ts'
import { formatEntityTag } from '../../src/protocol/preconditions.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { openFrameClient } from './http2-frames.ts'
import { HTTP1, HTTP2, type Listener, openOn, serveOn, type Transport } from './transports.ts'

type Line = readonly [name: string, value: string]
interface Answer {
  readonly status: number
  readonly body: Buffer
}
type Ask = (method: string, path: string, lines?: readonly Line[], body?: string) => Promise<Answer>

/** Serves a listener, and sends requests to it line by line. */
async function start(transport: Transport, listener: Listener): Promise<Ask> {
  const { port } = await serveOn(
    transport,
    () => undefined,
    () => listener,
  )
  if (HTTP2.includes(transport)) {
    const client = await openFrameClient(port, transport.name.endsWith('TLS'))
    closeAfterTest(() => client.leave())
    return (method, path, lines = [], body) => client.ask(method, path, lines, body)
  }
  const client = await openOn(transport, port)
  return (method, path, lines = [], body) => {
    const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
    const fields = ['Host: a.test', ...lines.map(([name, value]) => `${name}: ${value}`), ...length]
    client.send(`${method} ${path} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n${body ?? ''}`)
    return client.read(method)
  }
}

const toUpper = {
  type: 'text/csv',
  render: (content: Uint8Array) => Buffer.from(content).toString().toUpperCase(),
}
const text: Line = ['content-type', 'text/plain']

/** `$E` stands for the current tag. */
const CASES: readonly { method: string; lines: readonly string[]; status: number; body?: string }[] = [
  { method: 'PUT', lines: ['if-none-match: "x"', 'if-none-match: $E'], status: 412 },
  { method: 'PUT', lines: ['if-none-match: $E', 'if-none-match: "x"'], status: 412 },
  { method: 'PUT', lines: ['if-none-match: "x"', 'if-none-match: "y"'], status: 204 },
  { method: 'GET', lines: ['if-none-match: "x"', 'if-none-match: $E'], status: 304 },
  { method: 'GET', lines: ['if-none-match: "x"', 'if-none-match: W/$E'], status: 304 },
  { method: 'PUT', lines: ['if-match: "x"', 'if-match: $E'], status: 204 },
  { method: 'PUT', lines: ['if-match: "x"', 'if-match: "y"'], status: 412 },
  { method: 'DELETE', lines: ['if-match: "x"', 'if-match: "y"'], status: 412 },
  // Two lines of a value that is not a list are malformed, and never the first of them.
  { method: 'PUT', lines: ['if-match: $E', 'if-match: *'], status: 400 },
  { method: 'GET', lines: ['range: bytes=0-0', 'range: bytes=2-2'], status: 200, body: 'one' },
  { method: 'GET', lines: ['range: bytes=0-0', 'range: 2-2'], status: 206 },
  { method: 'GET', lines: ['range: bytes=0-0', 'if-range: $E', 'if-range: "x"'], status: 200, body: 'one' },
  { method: 'GET', lines: ['range: bytes=0-0', 'if-range: "x"', 'if-range: $E'], status: 200, body: 'one' },
  { method: 'PUT', lines: ['content-encoding: identity', 'content-encoding: gzip'], status: 415 },
  { method: 'PUT', lines: ['content-encoding: identity', 'content-encoding: br'], status: 415 },
  { method: 'GET', lines: ['accept: image/png', 'accept: text/plain'], status: 200, body: 'one' },
  { method: 'GET', lines: ['accept: text/plain;q=0.1', 'accept: text/csv'], status: 200, body: 'ONE' },
  { method: 'GET', lines: ['accept: image/png', 'accept: image/gif'], status: 406 },
  { method: 'PUT', lines: ['prefer: respond-async', 'prefer: return=representation'], status: 200, body: 'two' },
  // Preferences that contradict each other are none (RFC 7240 §2).
  { method: 'PUT', lines: ['prefer: return=representation', 'prefer: return=minimal'], status: 204 },
  { method: 'PUT', lines: ['content-type: text/html'], status: 400 },
  { method: 'PUT', lines: ['content-range: bytes 0-1/3', 'content-range: bytes 0-1/3'], status: 400 },
  { method: 'GET', lines: ['origin: https://a.example', 'origin: https://b.example'], status: 400 },
  { method: 'GET', lines: ['authorization: Basic YTpi', 'authorization: Basic YTpj'], status: 400 },
]

// Node's HTTP/2 keeps the first line of many fields (RFC 9110 §5.3: lines of one name are one list, in their order).
describe.each([...HTTP1, ...HTTP2])('fields in several lines on $name', (transport) => {
  it.each(CASES)('$method with $lines is $status (RFC 9110 §5.3)', async ({ method, lines, status, body }) => {
    const store = memoryStore()
    const service = createResourceService(store, {
      resources: { '/{name}': document({ types: ['text/plain'], representations: [toUpper] }) },
      contentCodings: ['gzip'],
      https: 'optional',
    })
    const ask = await start(transport, service as Listener)
    expect((await ask('PUT', '/a', [text], 'one')).status).toBe(201)
    const state = await store.read('/a')
    const tag = formatEntityTag((state as { readonly version: string }).version)
    const sent = lines.map((line): Line => line.replace('$E', tag).split(': ') as unknown as Line)
    const isWrite = method === 'PUT'
    const answer = await ask(method, '/a', isWrite ? [text, ...sent] : sent, isWrite ? 'two' : undefined)
    expect(answer.status).toBe(status)
    if (body !== undefined) expect(answer.body.toString()).toBe(body)
    if (status >= 300) expect((await ask('GET', '/a')).body.toString()).toBe('one')
  })

  it('name all languages of content (RFC 9110 §8.5)', async () => {
    const store = memoryStore()
    const service = createResourceService(store, {
      resources: { '/{name}': document({ types: ['text/plain'], storedHeaders: ['Content-Language'] }) },
    })
    const ask = await start(transport, service as Listener)
    const languages: Line[] = [
      ['content-language', 'de'],
      ['content-language', 'en'],
    ]
    expect((await ask('PUT', '/a', [text, ...languages], 'one')).status).toBe(201)
    expect(await store.read('/a')).toMatchObject({ contentLanguage: 'de, en' })
  })

  it('are one list for a middleware, too: 304, a part, and content in a coding', async () => {
    const state = { entityTag: '"1"', contentType: 'text/plain', content: Buffer.from('one') }
    const pieces: Readonly<Record<string, Listener>> = {
      '/conditional': conditional(() => state) as Listener,
      '/range': range(() => state) as Listener,
      '/parse': bodyParse({ accept: ['text'] }) as Listener,
    }
    const ask = await start(transport, (req, res) => {
      const piece = pieces[req.url!] as unknown as (req: unknown, res: unknown, next: () => void) => void
      piece(req, res, () => res.end((req as { body?: string }).body ?? 'the route'))
    })
    const tags: Line[] = [
      ['if-none-match', '"x"'],
      ['if-none-match', '"1"'],
    ]
    expect((await ask('GET', '/conditional', tags)).status).toBe(304)
    expect((await ask('GET', '/range', tags)).status).toBe(304)
    const parts: Line[] = [
      ['range', 'bytes=0-0'],
      ['range', '2-2'],
    ]
    expect((await ask('GET', '/range', parts)).status).toBe(206)
    const coded: Line[] = [text, ['content-encoding', 'identity'], ['content-encoding', 'gzip']]
    expect((await ask('POST', '/parse', coded, 'x')).status).toBe(415)
  })

  it('say the type of empty content: no JSON, and text of no length (RFC 9110 §8.3)', async () => {
    const parse = bodyParse() as unknown as (req: unknown, res: unknown, next: () => void) => void
    const ask = await start(transport, (req, res) => {
      parse(req, res, () => res.end(JSON.stringify((req as { body?: unknown }).body ?? 'none')))
    })
    for (const body of [undefined, '']) {
      expect((await ask('POST', '/', [['content-type', 'application/json']], body)).status).toBe(400)
      expect((await ask('POST', '/', [text], body)).body.toString()).toBe('""')
      expect((await ask('POST', '/', [], body)).body.toString()).toBe('"none"')
    }
  })
})
