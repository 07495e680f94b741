import { once } from 'node:events'
import { createServer, request as httpRequest, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import express4 from 'express4'
import Koa from 'koa'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { HttpError } from '../../src/core/errors.ts'
import type { JsonValue } from '../../src/core/json.ts'
import type { Handler } from '../../src/core/node-handler.ts'
import { type PatchedTarget, type PatchOptions, type PatchTarget, patch } from '../../src/handlers/patch.ts'
import { jsonPatch } from '../../src/patch-formats/json-patch.ts'
import { mergePatch } from '../../src/patch-formats/merge-patch.ts'

const JSON_PATCH = 'application/json-patch+json'
const MERGE_PATCH = 'application/merge-patch+json'
const CHANGED = Date.UTC(2025, 0, 2, 3, 4, 5)

interface VersionedTarget extends PatchTarget {
  readonly version: number
}

/** A document with versions, written by compare-and-swap: what a user of the piece brings along. */
function createRecord(document: JsonValue) {
  let current: VersionedTarget | undefined = { document, version: 1, entityTag: '"1"', lastModified: CHANGED }
  return {
    get current() {
      return current
    },
    writes: 0,
    remove() {
      current = undefined
    },
    read: async (): Promise<VersionedTarget | undefined> => current,
    async write({ current: read, document, text }: PatchedTarget<VersionedTarget>) {
      this.writes++
      expect(JSON.parse(text)).toEqual(document)
      await new Promise(setImmediate)
      if (current?.version !== read.version) return 'conflict' as const
      const version = read.version + 1
      current = { document, version, entityTag: `"${version}"`, lastModified: CHANGED + version * 1000 }
      return current
    },
  }
}

type Record = ReturnType<typeof createRecord>

function pieceFor(record: Record, options: Partial<PatchOptions<VersionedTarget>> = {}): Handler {
  return patch<VersionedTarget>({ read: record.read, write: (patched) => record.write(patched), ...options })
}

let server: Server
let origin: string

async function start(listener: RequestListener): Promise<void> {
  server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function send(
  body: JsonValue | string,
  headers: globalThis.Record<string, string> = {},
  { path = '/doc', method = 'PATCH' } = {},
): Promise<{ status: number; headers: Headers; text: string; json: () => JsonValue }> {
  const content = typeof body === 'string' ? body : JSON.stringify(body)
  const type = Array.isArray(body) ? JSON_PATCH : MERGE_PATCH
  const response = await fetch(origin + path, { method, headers: { 'Content-Type': type, ...headers }, body: content })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) }
}

afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
})

describe('patch on node:http', () => {
  let record: Record
  beforeEach(async () => {
    record = createRecord({ name: 'Ada', list: [1] })
    await start(pieceFor(record))
  })

  it.each([
    ['JSON Patch', [{ op: 'replace', path: '/name', value: 'Bo' }]],
    ['a merge patch', { name: 'Bo' }],
  ] as [string, JsonValue][])(
    'applies %s and answers 200 with the document (interface PATCH 1, 2, 5)',
    async (_, body) => {
      const answer = await send(body)
      expect(answer.status).toBe(200)
      expect(answer.json()).toEqual({ name: 'Bo', list: [1] })
      expect(answer.headers.get('content-type')).toBe('application/json')
      expect(answer.headers.get('etag')).toBe('"2"')
      expect(answer.headers.get('last-modified')).toBe('Thu, 02 Jan 2025 03:04:07 GMT')
      expect(answer.headers.get('content-location')).toBe('/doc')
      expect(record.current).toMatchObject({ document: { name: 'Bo', list: [1] }, version: 2 })
    },
  )

  it('sends text that is not ASCII as UTF-8', async () => {
    const answer = await send({ name: 'Zoë 😀' })
    expect(answer.json()).toEqual({ name: 'Zoë 😀', list: [1] })
    expect(Number(answer.headers.get('content-length'))).toBe(Buffer.byteLength(answer.text))
  })

  it.each([
    ['[]', []],
    ['{}', {}],
    ['values that are there', { name: 'Ada' }],
  ] as [string, JsonValue][])(
    'answers 204 with the same tag to %s, and writes nothing (rows J22, M10)',
    async (_, body) => {
      const answer = await send(body)
      expect([answer.status, answer.text, answer.headers.get('etag')]).toEqual([204, '', '"1"'])
      expect(record.writes).toBe(0)
    },
  )

  it('answers what the client prefers (RFC 7240 §4.2)', async () => {
    const minimal = await send({ name: 'Bo' }, { Prefer: 'return=minimal' })
    expect([minimal.status, minimal.text, minimal.headers.get('etag')]).toEqual([204, '', '"2"'])
    expect(minimal.headers.get('preference-applied')).toBe('return=minimal')
    const whole = await send({}, { Prefer: 'return=representation' })
    expect([whole.status, whole.json()]).toEqual([200, { name: 'Bo', list: [1] }])
    expect(whole.headers.get('preference-applied')).toBe('return=representation')
  })

  it('names the query in Content-Location as well: it is part of the target (RFC 9110 §8.7)', async () => {
    const answer = await send({ name: 'Bo' }, {}, { path: '/a%20b?x=1' })
    expect(answer.headers.get('content-location')).toBe('/a%20b?x=1')
  })

  it.each(['application/json', 'text/plain', `${MERGE_PATCH}; charset=latin1`])(
    'answers 415 with Accept-Patch to %s (RFC 5789 §2.2, threat 93)',
    async (type) => {
      const answer = await send({ name: 'Bo' }, { 'Content-Type': type })
      expect(answer.status).toBe(415)
      expect(answer.headers.get('accept-patch')).toBe(`${JSON_PATCH}, ${MERGE_PATCH}`)
      expect(record.writes).toBe(0)
    },
  )

  it('answers 415 to a patch without Content-Type, 400 to one with two', async () => {
    for (const [types, status] of [
      [[], 415],
      [[MERGE_PATCH, MERGE_PATCH], 400],
    ] as const) {
      const headers = [...types.flatMap((type) => ['Content-Type', type]), 'Content-Length', '2', 'Host', 'localhost']
      const req = httpRequest(origin, { method: 'PATCH', headers }).end('{}')
      const [res] = await once(req, 'response')
      res.resume()
      expect(res.statusCode).toBe(status)
    }
  })

  it('answers 415 with Accept-Encoding to a coded patch (RFC 9110 §15.5.16)', async () => {
    const answer = await send({ name: 'Bo' }, { 'Content-Encoding': 'gzip' })
    expect([answer.status, answer.headers.get('accept-encoding')]).toEqual([415, 'identity'])
  })

  it('tells the formats on OPTIONS, and refuses other methods (RFC 5789 §3.1, RFC 9110 §15.5.6)', async () => {
    const options = await fetch(origin, { method: 'OPTIONS' })
    expect([options.status, options.headers.get('accept-patch')]).toEqual([204, `${JSON_PATCH}, ${MERGE_PATCH}`])
    const get = await fetch(origin)
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'OPTIONS, PATCH'])
  })

  it('answers 404 where there is no document, under a condition too', async () => {
    record.remove()
    expect((await send({ name: 'Bo' })).status).toBe(404)
    expect((await send({ name: 'Bo' }, { 'If-Match': '"1"' })).status).toBe(404)
  })

  const conditions: [string, globalThis.Record<string, string>, number][] = [
    ['If-Match with the tag', { 'If-Match': '"0", "1"' }, 200],
    ['If-Match with another tag', { 'If-Match': '"0"' }, 412],
    ['If-Match with the tag as a weak one (RFC 9110 §13.1.1)', { 'If-Match': 'W/"1"' }, 412],
    ['If-Match: *', { 'If-Match': '*' }, 200],
    ['If-Match that is no list of tags', { 'If-Match': '1' }, 400],
    ['If-None-Match: *', { 'If-None-Match': '*' }, 412],
    ['If-None-Match with another tag', { 'If-None-Match': '"0"' }, 200],
    ['If-Unmodified-Since, unchanged since', { 'If-Unmodified-Since': 'Thu, 02 Jan 2025 03:04:05 GMT' }, 200],
    [
      'If-Unmodified-Since, changed since (interface PATCH 4)',
      { 'If-Unmodified-Since': 'Thu, 02 Jan 2025 03:04:04 GMT' },
      412,
    ],
    ['If-Unmodified-Since that is no date (threat 47)', { 'If-Unmodified-Since': 'foo 12' }, 200],
  ]
  it.each(conditions)('evaluates %s', async (_, headers, status) => {
    const answer = await send({ name: 'Bo' }, headers)
    expect(answer.status).toBe(status)
    if (status === 412) expect(answer.text).toBe('')
    expect(record.writes).toBe(status === 200 ? 1 : 0)
  })

  it('judges a condition before it reads the patch (RFC 9110 §13.2.1)', async () => {
    expect((await send('no JSON', { 'If-Match': '"0"' })).status).toBe(412)
  })

  const refused: [string, string, string, number, object][] = [
    ['malformed JSON', MERGE_PATCH, '{"a":', 400, {}],
    ['an empty body', MERGE_PATCH, '', 400, {}],
    ['a member twice (threat 61)', MERGE_PATCH, '{"name":"a","name":"b"}', 400, {}],
    ['deep nesting of a merge patch (threat 60)', MERGE_PATCH, '{"a":'.repeat(100_000), 400, {}],
    ['deep nesting of a JSON Patch (threat 60)', JSON_PATCH, '['.repeat(100_000), 400, {}],
    ['a malformed patch', JSON_PATCH, '[{"op":"spam","path":"/a"}]', 400, { errors: [{ pointer: '/0/op' }] }],
    [
      'a patch that does not fit (row J23)',
      JSON_PATCH,
      '[{"op":"remove","path":"/name"},{"op":"remove","path":"/no"}]',
      409,
      { errors: [{ pointer: '/1/path' }], index: 1, path: '/no' },
    ],
    [
      'too many operations (row J24)',
      JSON_PATCH,
      JSON.stringify(Array(1001).fill({ op: 'remove', path: '/x' })),
      413,
      {},
    ],
  ]
  it.each(refused)(
    'refuses %s, and leaves the document as it is (interface PATCH 3)',
    async (_, type, body, status, problem) => {
      const answer = await send(body, { 'Content-Type': type })
      expect(answer.status).toBe(status)
      expect(answer.headers.get('content-type')).toBe('application/problem+json')
      expect(answer.json()).toMatchObject({ status, ...problem })
      expect(record.current).toMatchObject({ document: { name: 'Ada', list: [1] }, version: 1 })
    },
  )

  it('loses none of many patches at the same time (threat 44)', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => send([{ op: 'add', path: '/list/-', value: `new ${index}` }])),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
    const { list } = record.current!.document as { list: JsonValue[] }
    expect(new Set(list)).toEqual(new Set([1, ...Array.from({ length: 20 }, (_, index) => `new ${index}`)]))
    expect(record.current?.version).toBe(21)
  })

  it('lets one of many with the same If-Match win (threat 43)', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => send({ name: `${index}` }, { 'If-Match': '"1"' })),
    )
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses).toEqual([200, ...Array(19).fill(412)])
    expect(record.current?.version).toBe(2)
  })
})

describe('patch, options', () => {
  it('answers 204 where that is the usual reply', async () => {
    await start(pieceFor(createRecord({}), { reply: 'minimal' }))
    expect((await send({ a: 1 })).status).toBe(204)
  })

  it.each([
    ['no condition', {}, 428],
    ['a date that is none (threat 47)', { 'If-Unmodified-Since': 'foo 12' }, 428],
    ['a date', { 'If-Unmodified-Since': 'Thu, 02 Jan 2025 03:04:05 GMT' }, 200],
    ['a tag', { 'If-Match': '"1"' }, 200],
    ['a stale tag', { 'If-Match': '"0"' }, 412],
  ] as const)('requires a condition, given %s (RFC 6585 §3)', async (_, headers, status) => {
    await start(pieceFor(createRecord({}), { required: true }))
    expect((await send({ a: 1 }, headers)).status).toBe(status)
  })

  it('takes only the formats that are given', async () => {
    await start(pieceFor(createRecord({}), { formats: [mergePatch()] }))
    const answer = await send([])
    expect([answer.status, answer.headers.get('accept-patch')]).toEqual([415, MERGE_PATCH])
  })

  it('takes a patch and makes a document as long as the limit, and none longer', async () => {
    const record = createRecord({})
    await start(pieceFor(record, { limits: { parsedSize: 20 }, formats: [jsonPatch(), mergePatch()] }))
    expect((await send({ a: 'x'.repeat(12) })).status).toBe(200) // 20 bytes each
    expect((await send({ a: 'x'.repeat(13) })).status).toBe(413)
    expect((await send({ b: 1 })).status).toBe(413)
    expect(record.writes).toBe(1)
  })

  it('answers with what was stored, where that is something else', async () => {
    await start(
      patch({
        read: () => ({ document: { a: 1 } }),
        write: ({ document }) => ({ document: { ...(document as object), at: 'now' }, entityTag: 'W/"x"' }),
        contentType: 'application/vnd.example+json',
      }),
    )
    const answer = await send({ a: 2 })
    expect(answer.json()).toEqual({ a: 2, at: 'now' })
    expect(answer.headers.get('etag')).toBe('W/"x"')
    expect(answer.headers.get('content-type')).toBe('application/vnd.example+json')
  })

  it('sends no validators that nobody told', async () => {
    await start(patch({ read: () => ({ document: {}, entityTag: '"old"' }), write: () => undefined }))
    const answer = await send({ a: 1 })
    expect([answer.status, answer.headers.get('etag'), answer.headers.get('last-modified')]).toEqual([200, null, null])
  })

  it('answers an HttpError of write as it is', async () => {
    const write = () => {
      throw new HttpError(422, 'ERR_INVALID_CONTENT', { errors: [{ pointer: '/a', detail: 'Too small.' }] })
    }
    await start(patch({ read: () => ({ document: {} }), write }))
    const answer = await send({ a: 1 })
    expect([answer.status, answer.json()]).toMatchObject([422, { errors: [{ pointer: '/a' }] }])
  })

  it('tells onError of anything else, and the client nothing', async () => {
    const onError = vi.fn()
    const failure = new Error('the password is hunter2')
    await start(patch({ read: () => ({ document: {} }), write: () => Promise.reject(failure), onError }))
    const answer = await send({ a: 1 })
    expect(answer.status).toBe(500)
    expect(answer.text).not.toContain('hunter2')
    expect(onError).toHaveBeenCalledWith(failure, expect.anything())
  })

  it('gives up with 409 when every write meets a conflict', async () => {
    const write = vi.fn(() => 'conflict' as const)
    await start(patch({ read: () => ({ document: {}, entityTag: '"1"' }), write }))
    expect((await send({ a: 1 })).status).toBe(409)
    expect(write).toHaveBeenCalledTimes(100)
  })

  it('reads anew, and judges the condition anew, before every attempt', async () => {
    let version = 0
    const read = () => ({ document: { version }, version, entityTag: `"${version}"` })
    const write = vi.fn(({ current }: PatchedTarget<VersionedTarget>) => {
      if (current.version === 6) return undefined
      version++
      return 'conflict' as const
    })
    await start(patch({ read, write }))
    expect((await send({ a: 1 })).json()).toEqual({ version: 6, a: 1 })
    expect(write).toHaveBeenCalledTimes(7)
    version = 0
    expect((await send({ a: 1 }, { 'If-Match': '"0", "1", "2", "3", "4"' })).status).toBe(412)
    expect(write).toHaveBeenCalledTimes(12)
  })

  it('answers 404 when the document disappears between two attempts', async () => {
    const found = [{ document: {} }]
    await start(patch({ read: () => found.pop(), write: () => 'conflict' as const }))
    expect((await send({ a: 1 })).status).toBe(404)
  })

  it('refuses what makes no sense', async () => {
    await start(() => {})
    const given = { read: () => undefined, write: () => undefined }
    expect(() => patch({ ...given, formats: [] })).toThrow(TypeError)
    expect(() => patch({ ...given, reply: 'none' } as never)).toThrow(TypeError)
    expect(() => patch({ ...given, limits: { parsedSize: -1 } })).toThrow(TypeError)
    expect(() => patch({ ...given, retries: 1 } as never)).toThrow(TypeError)
    expect(() => patch({ read: given.read } as never)).toThrow(TypeError)
    expect(() => patch(undefined as never)).toThrow(TypeError)
  })
})

describe.each([
  ['Express 5', express],
  ['Express 4', express4],
] as const)('patch on %s', (_, framework) => {
  let record: Record
  let app: ReturnType<typeof express>
  beforeEach(() => {
    record = createRecord({ name: 'Ada' })
    app = framework()
  })

  it('answers below a mount point, and lets other methods go on', async () => {
    const router = framework.Router()
    router.use('/doc', pieceFor(record))
    router.get('/doc', (_req, res) => void res.json({ from: 'express' }))
    router.options('/doc', (_req, res) => void res.status(200).end())
    app.use('/api', router)
    await start(app)
    const path = '/api/doc'
    const answer = await send({ name: 'Bo' }, {}, { path })
    expect([answer.status, answer.headers.get('content-location')]).toEqual([200, path])
    expect(await (await fetch(origin + path)).json()).toEqual({ from: 'express' })
    const options = await fetch(origin + path, { method: 'OPTIONS' })
    expect(options.headers.get('accept-patch')).toBe(`${JSON_PATCH}, ${MERGE_PATCH}`)
  })

  const parsers: [string, express.RequestHandler][] = [
    ['json', framework.json({ type: [JSON_PATCH, MERGE_PATCH] })],
    ['text', framework.text({ type: '*/*' })],
    ['raw', framework.raw({ type: '*/*' })],
    ['json, which leaves patches unread', framework.json()],
  ]
  it.each(parsers)('takes the content from a parser before it: %s', async (_, parser) => {
    app.use(parser)
    app.patch('/doc', pieceFor(record))
    await start(app)
    expect((await send([{ op: 'add', path: '/x', value: 1 }])).json()).toEqual({ name: 'Ada', x: 1 })
    expect((await send({ x: null })).json()).toEqual({ name: 'Ada' })
    expect(await send([{ op: 'remove', path: '/x' }])).toMatchObject({ status: 409 })
  })

  it('holds content that another parser parsed to the same rules', async () => {
    app.use(framework.json({ type: [JSON_PATCH, MERGE_PATCH], limit: '10mb' }))
    app.patch('/doc', pieceFor(record))
    await start(app)
    const merge = await send('{"__proto__":{"isAdmin":true},"constructor":{"x":1}}')
    expect(merge.text).toBe('{"name":"Ada","__proto__":{"isAdmin":true},"constructor":{"x":1}}')
    expect(Reflect.get({}, 'isAdmin')).toBeUndefined()
    expect((await send(`{"a":${'['.repeat(3000)}${']'.repeat(3000)}}`)).status).toBe(400)
  })

  it('gives unexpected errors to the error handler', async () => {
    app.patch('/doc', patch({ read: () => Promise.reject(new Error('away')), write: () => undefined }))
    app.use(
      ((error, _req, res, _next) =>
        void res.status(500).send(`caught ${error.message}`)) as express.ErrorRequestHandler,
    )
    await start(app)
    expect((await send({ a: 1 })).text).toBe('caught away')
  })

  it('does not wait for content that is gone', async () => {
    app.use((req, _res, next) => void req.resume().on('end', next))
    app.patch('/doc', pieceFor(record))
    app.use(((error, _req, res, _next) => void res.status(500).send(error.name)) as express.ErrorRequestHandler)
    await start(app)
    expect(await send({ a: 1 })).toMatchObject({ status: 500, text: 'TypeError' })
  })
})

describe('patch on Koa', () => {
  it('answers through koaMiddleware, and lets other methods go on', async () => {
    const app = new Koa()
    app.use(koaMiddleware(pieceFor(createRecord({ name: 'Ada' }))))
    app.use((context) => {
      context.body = 'koa'
    })
    await start(app.callback())
    expect((await send({ name: 'Bo' })).json()).toEqual({ name: 'Bo' })
    expect(await (await fetch(origin)).text()).toBe('koa')
  })
})
