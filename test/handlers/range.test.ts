import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { mkdtemp, open, rename, rm, truncate, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createBytes } from '../../src/conformance/samples.ts'
import type { RequestView } from '../../src/core/request-view.ts'
import { conditional } from '../../src/handlers/conditional.ts'
import { openFile, type RangeReader, type RangeSource, range } from '../../src/handlers/range.ts'
import type { Answer } from '../support/answer.ts'
import { openRawClient } from '../wire/raw-client.ts'
import { type Fields, HOSTS, listen, type Send, serve } from './serve.ts'

const TEXT = 'abcdefghijklmnopqrstuvwxyz'
const NOW = Date.UTC(2026, 5, 15, 12)
const CHANGED = Date.UTC(2026, 5, 15, 10)
const L = new Date(CHANGED).toUTCString()
const OLD = 'Mon, 01 Jan 1990 00:00:00 GMT'
const E = '"e"'
const TYPE = 'application/octet-stream'

/** Content that is read in parts, in chunks smaller than them. */
function reader(): RangeReader {
  return {
    size: TEXT.length,
    async *open(first, last) {
      for (let at = first; at <= last; at += 3) yield Buffer.from(TEXT.slice(at, Math.min(at + 3, last + 1)))
    },
  }
}

const A = { contentType: TYPE, entityTag: E, lastModified: CHANGED }
const SOURCES: Readonly<Record<string, () => RangeSource>> = {
  '/text': () => ({ ...A, content: TEXT }),
  '/bytes': () => ({ ...A, content: Buffer.from(TEXT) }),
  '/reader': () => ({ ...A, content: reader() }),
  '/weak': () => ({ ...A, entityTag: 'W/"w"', content: TEXT }),
  '/bare': () => ({ contentType: TYPE, content: TEXT }),
  '/empty': () => ({ ...A, content: '' }),
  // Refuses an end of -1, as back ends do.
  '/none': () => ({
    ...A,
    content: { size: 0, open: (start, end) => createReadStream('package.json', { start, end }) },
  }),
  '/umlaut': () => ({ ...A, content: 'äöü' }),
}

/** What is selected: the bytes of a plain answer, or a part each. */
type Expected = readonly [first: number, last: number][] | 'whole' | 416 | 304 | 412

const VECTORS: readonly (readonly [field: string | undefined, expected: Expected, more?: Fields])[] = [
  [undefined, 'whole'],
  ['bytes=0-4', [[0, 4]]],
  ['bytes=20-', [[20, 25]]],
  ['bytes=-3', [[23, 25]]],
  ['bytes=0-0', [[0, 0]]],
  ['bytes=25-25', [[25, 25]]],
  ['bytes=0-999', [[0, 25]]],
  ['bytes=10-99999999999999999999', [[10, 25]]],
  ['bytes=-27', [[0, 25]]],
  [
    'Bytes=0-1, 4-5',
    [
      [0, 1],
      [4, 5],
    ],
  ],
  [
    'bytes=10-11,0-1',
    [
      [10, 11],
      [0, 1],
    ],
  ],
  [
    'bytes=0-0,-1',
    [
      [0, 0],
      [25, 25],
    ],
  ],
  ['bytes=0-5,3-9', [[0, 9]]],
  ['bytes=0-1,2-3', [[0, 3]]],
  ['bytes=0-1,99-100', [[0, 1]]],
  ['bytes=26-', 416],
  ['bytes=99-', 416],
  ['bytes=-0', 416],
  ['bytes=99-,100-', 416],
  ['bytes=5-2', 'whole'],
  ['bytes=a-b', 'whole'],
  ['bytes=0', 'whole'],
  ['bytes=', 'whole'],
  ['bytes', 'whole'],
  ['bytes=0-1,x', 'whole'],
  ['items=0-4', 'whole'],
  ['bytes=0-,1-,2-,3-', 'whole'],
  ['bytes=0-4', [[0, 4]], { 'If-Range': E }],
  ['bytes=0-4', [[0, 4]], { 'If-Range': L }],
  ['bytes=0-4', 'whole', { 'If-Range': 'W/"e"' }],
  ['bytes=0-4', 'whole', { 'If-Range': '"stale"' }],
  ['bytes=99-', 'whole', { 'If-Range': '"stale"' }],
  ['bytes=0-4', 'whole', { 'If-Range': `"x" ${E}` }],
  ['bytes=0-4', 'whole', { 'If-Range': new Date(CHANGED + 86_400_000).toUTCString() }],
  ['bytes=0-4', 'whole', { 'If-Range': new Date(CHANGED).toISOString() }],
  [undefined, 'whole', { 'If-Range': E }],
  ['bytes=0-4', 304, { 'If-None-Match': E }],
  ['bytes=99-', 304, { 'If-Modified-Since': L }],
  ['bytes=0-4', 412, { 'If-Match': '"x"' }],
  ['bytes=99-', 412, { 'If-Unmodified-Since': OLD }],
  ['bytes=0-4', [[0, 4]], { 'If-Match': E, 'If-None-Match': '"x"' }],
]

function partsOf(answer: Answer): { type: string; range: string; text: string }[] {
  const boundary = /^multipart\/byteranges; boundary=([\w-]+)$/.exec(answer.field('content-type')!)![1]!
  const [preamble, ...parts] = answer.text.split(new RegExp(`(?:^|\r\n)--${boundary}`))
  expect([preamble, parts.pop()]).toEqual(['', '--\r\n'])
  return parts.map((part) => {
    const [, type, range, text] = /^\r\nContent-Type: ([^\r]*)\r\nContent-Range: ([^\r]*)\r\n\r\n(.*)$/s.exec(part)!
    return { type: type!, range: range!, text: text! }
  })
}

function check(answer: Answer, expected: Expected): void {
  if (typeof expected === 'number') {
    expect(answer.status).toBe(expected)
    if (expected !== 416) return
    expect(answer.field('content-range')).toBe('bytes */26')
    for (const name of ['etag', 'last-modified', 'accept-ranges']) expect(answer.field(name)).toBeUndefined()
    return
  }
  expect(answer.status).toBe(expected === 'whole' ? 200 : 206)
  expect(answer.field('content-length')).toBe(String(answer.body.length))
  expect([answer.field('etag'), answer.field('last-modified')]).toEqual([E, L])
  const caching = expected === 'whole' ? 'no-cache' : 'no-cache, no-transform'
  expect([answer.field('accept-ranges'), answer.field('cache-control')]).toEqual(['bytes', caching])
  const slices = expected === 'whole' ? [] : expected.map(([first, last]) => TEXT.slice(first, last + 1))
  const ranges = expected === 'whole' ? [] : expected.map(([first, last]) => `bytes ${first}-${last}/26`)
  if (slices.length < 2) {
    expect([answer.text, answer.field('content-type')]).toEqual([slices[0] ?? TEXT, TYPE])
    expect(answer.field('content-range')).toBe(ranges[0])
  } else {
    expect(answer.field('content-range')).toBeUndefined()
    expect(partsOf(answer)).toEqual(slices.map((text, i) => ({ type: TYPE, range: ranges[i], text })))
  }
}

describe.each(HOSTS)('range in %s', (_name, mount) => {
  const start = () => serve(mount([range(({ path }) => SOURCES[path]?.(), { now: () => NOW })], () => 'the route'))

  for (const [field, expected, more] of VECTORS) {
    it(`Range ${field} ${JSON.stringify(more ?? {})} selects ${expected} (RFC 9110 §14, rows H139 to H163)`, async () => {
      const send = await start()
      for (const path of ['/text', '/bytes', '/reader']) {
        check(await send('GET', path, { ...more, ...(field !== undefined && { Range: field }) }), expected)
      }
    })
  }

  it('answers HEAD as GET without Range, and reads nothing (rows H148 and H55)', async () => {
    let opened = 0
    const content: RangeReader = {
      ...reader(),
      open(first, last) {
        opened++
        return reader().open(first, last)
      },
    }
    const send = await serve(mount([range(() => ({ ...A, content }))]))
    const [get, head] = [await send('GET', '/'), await send('HEAD', '/', { Range: 'bytes=0-4' })]
    expect([head.status, head.text, opened]).toEqual([200, '', 1])
    for (const name of ['content-length', 'content-type', 'etag', 'last-modified', 'accept-ranges', 'cache-control']) {
      expect(head.field(name)).toBe(get.field(name))
    }
  })

  it('leaves other methods, and what is not there, to the route (rows H148 and H150)', async () => {
    const send = await start()
    expect((await send('PUT', '/text', { Range: 'bytes=0-4' })).text).toBe('the route')
    expect((await send('GET', '/nowhere', { Range: 'bytes=0-2' })).text).toBe('the route')
  })

  it('never lets a weak tag or an unknown version through If-Range (rows H160, threat 51)', async () => {
    const send = await start()
    const statusOf = async (path: string, value: string) =>
      (await send('GET', path, { Range: 'bytes=0-4', 'If-Range': value })).status
    expect(await statusOf('/weak', 'W/"w"')).toBe(200)
    expect(await statusOf('/weak', '"w"')).toBe(200)
    expect(await statusOf('/bare', '"e"')).toBe(200)
    expect(await statusOf('/bare', L)).toBe(200)
    expect((await send('GET', '/bare', { Range: 'bytes=0-4' })).status).toBe(206)
  })

  it('ignores Range for empty content (row H149), and counts bytes, not characters', async () => {
    const send = await start()
    for (const path of ['/empty', '/none']) {
      const empty = await send('GET', path, { Range: 'bytes=0-4' })
      expect([empty.status, empty.field('content-length')]).toEqual([200, '0'])
    }
    const part = await send('GET', '/umlaut', { Range: 'bytes=2-3' })
    expect([part.field('content-range'), part.text]).toEqual(['bytes 2-3/6', 'ö'])
  })

  it('takes the validators of conditional before it', async () => {
    const send = await serve(
      mount([
        conditional(() => ({ entityTag: E, lastModified: CHANGED }), { now: () => NOW }),
        range(() => ({ contentType: TYPE, content: TEXT }), { now: () => NOW }),
      ]),
    )
    for (const [field, expected, more] of VECTORS) {
      check(await send('GET', '/', { ...more, ...(field !== undefined && { Range: field }) }), expected)
    }
    expect((await send('GET', '/')).values('etag').length).toBe(1)
  })

  it('has validators of its own before those of conditional', async () => {
    const send = await serve(
      mount([
        conditional(() => ({ entityTag: '"other"' }), { now: () => NOW }),
        range(() => ({ contentType: TYPE, content: TEXT, entityTag: E }), { now: () => NOW }),
      ]),
    )
    expect((await send('GET', '/')).field('etag')).toBe(E)
  })

  it('has a date of its own before the tag of conditional', async () => {
    const send = await serve(
      mount([
        conditional(() => ({ entityTag: '"other"' }), { now: () => NOW }),
        range(() => ({ contentType: TYPE, content: TEXT, lastModified: CHANGED }), { now: () => NOW }),
      ]),
    )
    const statusOf = async (ifRange: string) =>
      (await send('GET', '/', { Range: 'bytes=0-4', 'If-Range': ifRange })).status
    expect([await statusOf('"other"'), await statusOf(L)]).toEqual([200, 206])
  })

  it('sends large content whole', async () => {
    const content = Buffer.alloc(5_000_000, 'x')
    const send = await serve(mount([range(() => ({ contentType: TYPE, content }))]))
    expect((await send('GET', '/')).body.equals(content)).toBe(true)
    const parts = await send('GET', '/', { Range: 'bytes=0-1999999,-1' })
    expect(partsOf(parts).map(({ text }) => text.length)).toEqual([2_000_000, 1])
  })
})

describe('range', () => {
  it('closes content once, whatever becomes of the request', async () => {
    let closed = 0
    let settle = (): void => {}
    const content: RangeReader = {
      ...reader(),
      close() {
        closed++
        settle()
      },
    }
    const send = await serve(range(() => ({ ...A, content })))
    const requests: [string, Fields, number][] = [
      ['GET', {}, 200],
      ['GET', { Range: 'bytes=0-1,4-5' }, 206],
      ['HEAD', {}, 200],
      ['GET', { 'If-None-Match': E }, 304],
      ['GET', { 'If-Match': '"x"' }, 412],
      ['GET', { Range: 'bytes=99-' }, 416],
    ]
    for (const [index, [method, fields, status]] of requests.entries()) {
      const done = new Promise<void>((resolve) => {
        settle = resolve
      })
      expect((await send(method, '/', fields)).status).toBe(status)
      await done
      expect(closed).toBe(index + 1)
    }
  })

  // A rejection without a handler ends the process, and this run.
  it.each([
    ['throws', () => assert.fail('closed twice')],
    ['rejects', () => Promise.reject(new Error('closed twice'))],
  ])('sends content whose close %s', async (_, close) => {
    const send = await serve(range(() => ({ ...A, content: { ...reader(), close } })))
    const { status, body } = await send('GET', '/')
    expect([status, String(body)]).toEqual([200, TEXT])
    await new Promise(setImmediate)
  })

  it('closes content of a client that goes away (threat 12), in the asynchronous context of the request', async () => {
    const context = new AsyncLocalStorage<string>()
    let settle = (_: unknown): void => {}
    const closed = new Promise<unknown>((resolve) => {
      settle = resolve
    })
    const content: RangeReader = {
      size: 2 ** 40,
      async *open() {
        for (;;) yield new Uint8Array(65_536)
      },
      close: () => settle(context.getStore()),
    }
    const handler = range(() => ({ ...A, content }))
    const client = await openRawClient(await listen((req, res) => context.run('request', () => handler(req, res))))
    client.send('GET / HTTP/1.1\r\nHost: a.test\r\n\r\n')
    await once(client.socket, 'data')
    client.socket.destroy()
    expect(await closed).toBe('request')
  })

  it('closes content of a client that goes away while the response waits behind another (threat 12)', async () => {
    let opened = 0
    let closed = 0
    let aborted = 0
    const piece = range(async ({ signal }) => {
      opened++
      signal.addEventListener('abort', () => aborted++)
      const close = () => {
        closed++
      }
      return { contentType: 'text/plain', content: { ...reader(), close } }
    })
    // The first request is never answered.
    const port = await listen((req, res) => void (req.url === '/' || piece(req, res)))
    const { socket, send } = await openRawClient(port)
    send(['/', '/1', '/2', '/3'].map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''))
    await vi.waitFor(() => expect(opened).toBe(3), 30_000)
    socket.destroy()
    await vi.waitFor(() => expect([closed, aborted]).toEqual([3, 3]), 30_000)
  })

  it('closes content of a client that went away before it was opened', async () => {
    let closed = 0
    let hasBegun = false
    const source = async ({ signal }: RequestView): Promise<RangeSource> => {
      const left = once(signal, 'abort')
      hasBegun = true
      await left
      // The response has closed by now.
      await new Promise((resolve) => setTimeout(resolve, 20))
      return { ...A, content: { ...reader(), close: () => void closed++ } }
    }
    const client = await openRawClient(await listen(range(source)))
    client.send('GET / HTTP/1.1\r\nHost: a.test\r\n\r\n')
    await vi.waitFor(() => expect(hasBegun).toBe(true), 30_000)
    client.socket.destroy()
    await vi.waitFor(() => expect(closed).toBe(1), 30_000)
  })

  it('says what the source or the host says about caching', async () => {
    const app = express()
    app.use('/host', (_req, res, next) => {
      res.set('Cache-Control', 'max-age=5')
      next()
    })
    app.use(
      '/source',
      range(() => ({ ...A, cacheControl: 'no-store', content: TEXT })),
    )
    app.use(range(() => ({ ...A, content: TEXT })))
    const send = await serve(app)
    for (const [path, caching] of [
      ['/', 'no-cache'],
      ['/host', 'max-age=5'],
      ['/source', 'no-store'],
    ] as const) {
      expect((await send('GET', path)).field('cache-control')).toBe(caching)
      expect((await send('GET', path, { 'If-None-Match': E })).field('cache-control')).toBe(caching)
      // A compressor behind the middleware would send the compressed part under the tag of the whole (RFC 9111 §5.2.2.6).
      const part = await send('GET', path, { Range: 'bytes=0-4' })
      expect([part.status, part.field('cache-control')]).toEqual([206, `${caching}, no-transform`])
    }
  })

  it('leaves validators that the host has set off a 416, which they do not describe (RFC 9110 §15.5.17)', async () => {
    const app = express()
    app.use((_req, res, next) => {
      res.set({ ETag: E, 'Last-Modified': L })
      next()
    })
    app.use(range(() => ({ contentType: TYPE, content: TEXT })))
    const send = await serve(app)
    check(await send('GET', '/', { Range: 'bytes=99-' }), 416)
    check(await send('GET', '/', { Range: 'bytes=0-4' }), [[0, 4]])
  })

  it('does not send parts twice as large as the content for a hostile set (row H158, threat 52)', async () => {
    const content = Buffer.alloc(10_000)
    const send = await serve(range(() => ({ ...A, content })))
    for (const set of [
      Array(1000).fill('0-'),
      Array(1500).fill('5-6'),
      Array(101)
        .fill(0)
        .map((_, i) => `${i * 9}-${i * 9}`),
    ]) {
      const answer = await send('GET', '/', { Range: `bytes=${set.join(',')}` })
      expect([answer.status, answer.body.length]).toEqual([200, 10_000])
    }
  })

  it('lets a source that fails before its first byte be answered 500, and a route answer instead', async () => {
    const content: RangeReader = {
      size: 5,
      open: () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error('gone')) }) }),
    }
    const app = express()
    app.use(range(() => ({ ...A, content })))
    app.use(
      ((error: Error, _req, res, _next) => void res.status(503).send(error.message)) as express.ErrorRequestHandler,
    )
    const answer = await (await serve(app))('GET', '/')
    expect([answer.status, answer.text]).toEqual([503, 'gone'])
  })

  it.each([undefined, {}, ['text/plain'], Symbol('text/plain')])(
    'answers 500 to content whose contentType is not text: %s',
    async (contentType) => {
      const app = express()
      app.get(
        '/',
        range(() => ({ contentType: contentType as never, content: TEXT })),
      )
      app.use(((error, _req, res, _next) => void res.status(500).send(error.message)) as express.ErrorRequestHandler)
      const { status, text } = await (await serve(app))('GET', '/')
      expect([status, text]).toEqual([500, expect.stringContaining('contentType is text that a field can hold')])
    },
  )

  it.each([Number.NaN, -1, 1.5, Number.POSITIVE_INFINITY, undefined, '10', 10n])(
    'answers 500 to content whose size is not a number of bytes: %s',
    async (size) => {
      const open = async function* () {}
      const app = express()
      app.use(range(() => ({ contentType: 'text/plain', content: { size: size as never, open } })))
      app.use(((error, _req, res, _next) => void res.status(500).send(error.message)) as express.ErrorRequestHandler)
      const send = await serve(app)
      for (const method of ['GET', 'HEAD']) expect((await send(method, '/')).status).toBe(500)
      expect((await send('GET', '/')).text).toMatch(/^The size of content is a number of bytes, not /)
    },
  )

  it('answers 500 to content that has a size and no open, to HEAD as to GET', async () => {
    const app = express()
    app.use(range(() => ({ contentType: 'text/plain', content: { size: 10 } as never })))
    app.use(((error, _req, res, _next) => void res.status(500).send(error.message)) as express.ErrorRequestHandler)
    const send = await serve(app)
    expect((await send('HEAD', '/')).status).toBe(500)
    for (const fields of [{}, { Range: 'bytes=0-1' }]) {
      const { status, text } = await send('GET', '/', fields)
      expect([status, text]).toEqual([500, 'The open of content is a function of two positions, not undefined.'])
    }
  })

  it.each([null, false, 'a film', { contentType: 'text/plain' }, { contentType: 'text/plain', content: null }])(
    'says what it takes where the function gives something else, as a query that finds no row: %s',
    async (source) => {
      const app = express()
      app.use(range(() => source as never))
      app.use(((error, _req, res, _next) => void res.status(500).send(error.message)) as express.ErrorRequestHandler)
      const { status, text } = await (await serve(app))('GET', '/')
      expect([status, text]).toEqual([
        500,
        expect.stringContaining('range takes { contentType, content }, or undefined'),
      ])
    },
  )

  it('refuses at construction what cannot work', () => {
    expect(() => range(undefined as never)).toThrow(TypeError)
    expect(() => range(() => undefined, { size: 1 } as never)).toThrow('no option "size"')
  })
})

describe('openFile', () => {
  let folder = ''
  let path = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'range-'))
    path = join(folder, 'film.bin')
    await writeFile(path, TEXT)
    await utimes(path, CHANGED / 1000, CHANGED / 1000)
  })
  afterAll(() => rm(folder, { recursive: true }))

  const start = (): Promise<Send> =>
    serve(range(({ path: name }) => openFile(join(folder, name), { contentType: TYPE, entityTag: E })))

  it('serves a file in every way that range knows', async () => {
    const send = await start()
    for (const [field, expected, more] of VECTORS) {
      check(await send('GET', '/film.bin', { ...more, ...(field !== undefined && { Range: field }) }), expected)
    }
  })

  it('goes on to the next handler where there is no regular file', async () => {
    const send = await start()
    const server = createServer().listen(join(folder, 'socket'))
    await once(server, 'listening')
    for (const name of ['/none', '/', '/film.bin/x', `/${'a'.repeat(300)}`, '/socket']) {
      expect((await send('GET', name)).status).toBe(404)
    }
    server.close()
  })

  it('has no file for a pipe, and does not wait for what writes to it', async () => {
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    const opening = openFile(pipe, { contentType: TYPE })
    let isOpened = false
    // Otherwise the process could not end: a thread would wait for it.
    const writing = setTimeout(async () => {
      isOpened = true
      await (await open(pipe, 'r+')).close()
    }, 10_000)
    expect([await opening, isOpened]).toEqual([undefined, false])
    clearTimeout(writing)
  })

  it('reads exactly the bytes asked for, in pieces, and serves an empty file', async () => {
    const bytes = createBytes(300_000, 1)
    await writeFile(join(folder, 'large'), bytes)
    const { content } = (await openFile(join(folder, 'large'), { contentType: TYPE }))!
    const { open, close } = content as RangeReader
    for (const [first, last] of [
      [1, 65_536],
      [7, 200_006],
    ] as const) {
      const pieces: Buffer[] = []
      for await (const piece of open(first, last)) pieces.push(Buffer.from(piece))
      expect(Buffer.concat(pieces).equals(bytes.subarray(first, last + 1))).toBe(true)
    }
    await close!()
    await writeFile(join(folder, 'empty'), '')
    const answer = await (await start())('GET', '/empty')
    expect([answer.status, answer.field('content-length')]).toEqual([200, '0'])
  })

  it('sends one version, although the file is replaced meanwhile (threat 56)', async () => {
    const large = join(folder, 'large.bin')
    await writeFile(large, Buffer.alloc(8_000_000, 'a'))
    const client = await openRawClient(await listen(range(() => openFile(large, { contentType: TYPE }))))
    client.socket.pause()
    client.send('GET / HTTP/1.1\r\nHost: a.test\r\n\r\n')
    await once(client.socket, 'readable')
    await writeFile(`${large}.new`, Buffer.alloc(8_000_000, 'b'))
    await rename(`${large}.new`, large)
    client.socket.resume()
    const { body } = await client.read()
    expect(body.equals(Buffer.alloc(8_000_000, 'a'))).toBe(true)
    client.socket.destroy()
  })

  it('leaves no descriptor open (invariant I5)', async () => {
    const send = await start()
    const before = await countDescriptors()
    for (let i = 0; i < 50; i++) {
      await send('GET', '/film.bin', { Range: 'bytes=0-1,5-6' })
      await send('GET', '/film.bin', { 'If-None-Match': E })
      await send('GET', '/')
    }
    await expect.poll(countDescriptors).toBeLessThanOrEqual(before)
    // At once, before a descriptor that was forgotten is collected.
    for (let i = 0; i < 20; i++) await openFile(folder, { contentType: TYPE })
    const failing = {
      get contentType(): string {
        throw new Error('no type')
      },
    }
    for (let i = 0; i < 20; i++) await expect(openFile(path, failing)).rejects.toThrow('no type')
    expect(await countDescriptors()).toBeLessThan(before + 10)
  })

  it('breaks the answer off where the file has been cut short meanwhile', async () => {
    const short = join(folder, 'short.bin')
    await writeFile(short, TEXT)
    const { content } = (await openFile(short, { contentType: TYPE })) as { content: RangeReader }
    await truncate(short, 10)
    const read: Uint8Array[] = []
    for await (const chunk of content.open(0, TEXT.length - 1)) read.push(Buffer.from(chunk))
    expect(Buffer.concat(read).toString()).toBe(TEXT.slice(0, 10))
    await content.close!()
  })

  it('takes an open file of the user’s own through a reader', async () => {
    const send = await serve(
      range(async () => {
        const file = await open(path)
        const { size } = await file.stat()
        const content: RangeReader = {
          size,
          open: (start, end) => file.createReadStream({ start, end, autoClose: false }),
          close: () => file.close(),
        }
        return { ...A, content }
      }),
    )
    check(await send('GET', '/', { Range: 'bytes=0-1,4-5' }), [
      [0, 1],
      [4, 5],
    ])
  })
})

/** Open files of this process; sockets come and go. */
async function countDescriptors(): Promise<number> {
  const { readdir, readlink } = await import('node:fs/promises')
  const links = await readdir('/proc/self/fd').catch(() => [])
  const targets = await Promise.all(links.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
  return targets.filter((target) => target.startsWith(tmpdir())).length
}
