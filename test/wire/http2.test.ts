import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import {
  type ClientHttp2Stream,
  connect,
  constants,
  createSecureServer,
  createServer,
  type Http2Server,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { attach } from '../../src/adapters/node.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'

const tls = {
  key: readFileSync(new URL('../support/tls/key.pem', import.meta.url)),
  cert: readFileSync(new URL('../support/tls/cert.pem', import.meta.url)),
}
const MEGABYTE = 1024 * 1024
const { NGHTTP2_CANCEL, NGHTTP2_FLAG_END_STREAM, NGHTTP2_NO_ERROR } = constants

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

async function read(stream: ClientHttp2Stream): Promise<Answer> {
  const [headers] = (await once(stream, 'response')) as [Record<string, string>]
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  if (!stream.readableEnded) await once(stream, 'end')
  return { status: Number(headers[':status']), headers, body: Buffer.concat(chunks) }
}

describe.each<[string, () => Http2Server]>([
  ['cleartext', () => createServer()],
  ['TLS', () => createSecureServer(tls) as unknown as Http2Server],
])('the service on HTTP/2 over %s', (kind, create) => {
  async function open() {
    const store = memoryStore()
    const server = create()
    attach(server, createResourceService(store))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const scheme = kind === 'TLS' ? 'https' : 'http'
    const session = connect(`${scheme}://localhost:${(server.address() as AddressInfo).port}`, {
      rejectUnauthorized: false,
      // The client's own limit: an upload that it breaks off counts for ever.
      maxSessionMemory: 1000,
    })
    session.on('error', () => {})
    closers.push(() => {
      session.destroy()
      server.close()
    })
    const send = (method: string, path: string, fields: Record<string, string> = {}, body?: string | Uint8Array) => {
      const stream = session.request({ ':method': method, ':path': path, ...fields }, { endStream: body === undefined })
      if (body !== undefined) stream.end(body)
      return read(stream)
    }
    return { store, session, send }
  }

  it('answers every method (row K5)', async () => {
    const { send } = await open()
    const json = { 'content-type': 'application/json' }
    const merge = { 'content-type': 'application/merge-patch+json' }
    const statusOf = async (...request: Parameters<typeof send>) => (await send(...request)).status
    expect(await statusOf('PUT', '/a', json, '{"n":1}')).toBe(201)
    expect(await statusOf('PATCH', '/a', merge, '{"n":2}')).toBe(200)
    expect((await send('GET', '/a')).body.toString()).toBe('{"n":2}')
    expect((await send('GET', '/a', { range: 'bytes=1-3' })).body.toString()).toBe('"n"')
    expect(await statusOf('GET', '/a', { 'if-none-match': '*' })).toBe(304)
    expect((await send('HEAD', '/a')).headers['content-length']).toBe('7')
    expect((await send('POST', '/a', json, '{}')).headers['location']).toBe('/a/1')
    expect((await send('OPTIONS', '/a')).headers['allow']).toContain('PATCH')
    expect(await statusOf('OPTIONS', '*')).toBe(204)
    expect(await statusOf('PROPFIND', '/a')).toBe(501)
    expect(await statusOf('DELETE', '/a/1')).toBe(204)
    expect(await statusOf('GET', '/a/1')).toBe(410)
  })

  it('takes and gives large content, several at once', async () => {
    const { send } = await open()
    const contents = Array.from({ length: 6 }, (_, i) => Buffer.alloc(4 * MEGABYTE + i, `content ${i};`))
    const put = await Promise.all(contents.map((content, i) => send('PUT', `/docs/${i}`, {}, content)))
    expect(put.map(({ status }) => status)).toEqual(contents.map(() => 201))
    const got = await Promise.all(contents.map((_, i) => send('GET', `/docs/${i}`)))
    for (const [i, { body }] of got.entries()) expect(body.equals(contents[i]!)).toBe(true)
  })

  it.each(['bytes', 'text'])('sends a megabyte of %s on each of 200 streams at once', async (form) => {
    const { send } = await open()
    const isText = form === 'text'
    const content = isText ? JSON.stringify('x'.repeat(MEGABYTE)) : new Uint8Array(MEGABYTE)
    await send('PUT', '/large', isText ? { 'content-type': 'application/json' } : {}, content)
    const answers = await Promise.all(Array.from({ length: 200 }, () => send('GET', '/large')))
    expect(new Set(answers.map(({ status, body }) => `${status} ${body.length}`))).toEqual(
      new Set([`200 ${content.length}`]),
    )
  })

  it('ends an answer without content with its header section, so that a client that still sends sees the end', async () => {
    const { session, send } = await open()
    await send('PUT', '/a', {}, 'one')
    const stream = session.request({ ':method': 'PUT', ':path': '/a', 'if-match': '"x"', 'content-length': '100000' })
    stream.write(Buffer.alloc(1000))
    const [headers, flags] = (await once(stream, 'response')) as [Record<string, number>, number]
    expect([headers[':status'], flags & NGHTTP2_FLAG_END_STREAM]).toEqual([412, NGHTTP2_FLAG_END_STREAM])
    stream.close(NGHTTP2_CANCEL)
    stream.on('error', () => {})
  })

  it.each<[string, string, Record<string, string>, number]>([
    ['a condition that fails', '/a', { 'if-match': '"x"' }, 412],
    ['a target that is malformed', '/a%zz', {}, 400],
  ])('refuses %s before the content, asks to stop, and the session goes on (RFC 9113 §8.1)', async (...row) => {
    const [, path, fields, status] = row
    const { session, send } = await open()
    await send('PUT', '/a', {}, 'one')
    for (let i = 0; i < 2; i++) {
      const stream = session.request({ ':method': 'PUT', ':path': path, ...fields })
      stream.on('error', () => {})
      const closed = new Promise((resolve) => stream.once('close', resolve))
      stream.end(Buffer.alloc(8 * MEGABYTE))
      expect((await read(stream)).status).toBe(status)
      await closed
      expect(stream.rstCode).toBe(NGHTTP2_NO_ERROR)
    }
    expect((await send('GET', '/a')).body.toString()).toBe('one')
  })

  it('tells a client that waits to go on, or refuses it without (RFC 9110 §10.1.1, RFC 9113 §8.1)', async () => {
    const { session, send } = await open()
    await send('PUT', '/a', {}, 'one')
    for (const [expectation, condition, status, told] of [
      ['100-continue', '"x"', 412, false],
      ['100-continue', '*', 204, true],
      ['100-Continue', '"x"', 412, false],
      ['100-Continue', '*', 204, true],
      ['banana', '*', 417, false],
    ] as const) {
      const stream = session.request({ ':method': 'PUT', ':path': '/a', expect: expectation, 'if-match': condition })
      let isTold = false
      stream.on('error', () => {})
      stream.once('continue', () => {
        isTold = true
        stream.end('two')
      })
      expect((await read(stream)).status).toBe(status)
      expect(isTold).toBe(told)
      stream.close(NGHTTP2_CANCEL)
    }
    expect((await send('GET', '/a')).body.toString()).toBe('two')
  })

  it('stores nothing of content that breaks off (threat 11)', async () => {
    const { session, send, store } = await open()
    for (let i = 0; i < 20; i++) {
      const stream = session.request({ ':method': 'PUT', ':path': '/half' })
      stream.on('error', () => {})
      stream.write(Buffer.alloc(100_000))
      await new Promise((resolve) => session.ping(resolve))
      const closed = once(stream, 'close')
      stream.close(NGHTTP2_CANCEL)
      await closed
    }
    expect((await send('GET', '/half')).status).toBe(404)
    expect(await store.read('/half', {})).toBeUndefined()
  })

  it('goes on after 300 downloads that the client has broken off (threat 12, row K6)', async () => {
    const { session, send } = await open()
    await send('PUT', '/large', {}, new Uint8Array(4 * MEGABYTE))
    await Promise.all(
      Array.from({ length: 300 }, async () => {
        const stream = session.request({ ':path': '/large' })
        stream.on('error', () => {})
        await once(stream, 'data')
        const closed = once(stream, 'close')
        stream.close(NGHTTP2_CANCEL)
        await closed
      }),
    )
    expect((await send('GET', '/large')).body.length).toBe(4 * MEGABYTE)
  })
})
