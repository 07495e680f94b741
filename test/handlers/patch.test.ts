import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { HttpError } from '../../src/core/errors.ts'
import type { JsonValue } from '../../src/core/json.ts'
import { type PatchedTarget, patch } from '../../src/handlers/patch.ts'
import { jsonPatch } from '../../src/patch-formats/json-patch.ts'
import { mergePatch } from '../../src/patch-formats/merge-patch.ts'
import {
  createRecord,
  JSON_PATCH,
  MERGE_PATCH,
  origin,
  type PatchedRecord,
  pieceFor,
  send,
  start,
  type VersionedTarget,
} from './patched-record.ts'

describe('patch on node:http', () => {
  let record: PatchedRecord
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
    // As a reference it would be the root of another host.
    const other = await send({ name: 'Cy' }, {}, { path: '//a' })
    expect([other.status, other.headers.get('content-location')]).toEqual([200, null])
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

  const conditions: [string, Record<string, string>, number][] = [
    ['If-Match with the tag', { 'If-Match': '"0", "1"' }, 200],
    ['If-Match with another tag', { 'If-Match': '"0"' }, 412],
    ['If-Match with the tag as a weak one (RFC 9110 §13.1.1)', { 'If-Match': 'W/"1"' }, 412],
    ['If-Match: *', { 'If-Match': '*' }, 200],
    ['If-Match that is not a list of tags', { 'If-Match': '1' }, 400],
    ['If-None-Match: *', { 'If-None-Match': '*' }, 412],
    ['If-None-Match with another tag', { 'If-None-Match': '"0"' }, 200],
    ['If-Unmodified-Since, unchanged since', { 'If-Unmodified-Since': 'Thu, 02 Jan 2025 03:04:05 GMT' }, 200],
    [
      'If-Unmodified-Since, changed since (interface PATCH 4)',
      { 'If-Unmodified-Since': 'Thu, 02 Jan 2025 03:04:04 GMT' },
      412,
    ],
    ['If-Unmodified-Since that is not a date (threat 47)', { 'If-Unmodified-Since': 'foo 12' }, 200],
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
    await start(pieceFor(createRecord({}), { preconditions: 'required' }))
    expect((await send({ a: 1 }, headers)).status).toBe(status)
  })

  it('takes only the formats that are given', async () => {
    await start(pieceFor(createRecord({}), { patchFormats: [mergePatch()] }))
    const answer = await send([])
    expect([answer.status, answer.headers.get('accept-patch')]).toEqual([415, MERGE_PATCH])
  })

  it('takes a patch and makes a document as long as the limit, and none longer', async () => {
    const record = createRecord({})
    await start(pieceFor(record, { limits: { bodySize: 20 }, patchFormats: [jsonPatch(), mergePatch()] }))
    expect((await send({ a: 'x'.repeat(12) })).status).toBe(200) // 20 bytes each
    expect((await send({ a: 'x'.repeat(13) })).status).toBe(413)
    expect((await send({ b: 1 })).status).toBe(413)
    expect(record.writes).toBe(1)
    // Bytes count, not characters.
    const other = createRecord({ a: 'éééé' })
    await start(pieceFor(other, { limits: { bodySize: 20 } }))
    expect((await send({ b: 1 })).status).toBe(413)
    expect(other.writes).toBe(0)
  })

  it('makes a document of as many members as the limit, and of no more', async () => {
    const record = createRecord({ list: [1, 2, 3] })
    await start(pieceFor(record, { limits: { jsonMembers: 5 } }))
    expect((await send({ a: 1 })).status).toBe(200)
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

  it('sends only validators that it was given', async () => {
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

  it('gives up with 409 when every write meets a conflict, and pauses in between', async () => {
    const write = vi.fn(() => 'conflict' as const)
    await start(patch({ read: () => ({ document: {}, entityTag: '"1"' }), write }))
    const begin = performance.now()
    expect((await send({ a: 1 })).status).toBe(409)
    expect(write).toHaveBeenCalledTimes(100)
    // Two seconds, if chance is even.
    expect(performance.now() - begin).toBeGreaterThan(1000)
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

  it('is written once where it waited for another patch: to the document that that one left', async () => {
    const record = createRecord({})
    const seen: number[] = []
    let goOn: (() => void) | undefined
    async function write(patched: PatchedTarget<VersionedTarget>) {
      seen.push(patched.current.version)
      // Patches take turns once one of them has met another writer.
      if (seen.length === 1) return 'conflict' as const
      if (seen.length === 2) {
        await new Promise<void>((resolve) => {
          goOn = resolve
        })
      }
      return record.write(patched)
    }
    await start(patch<VersionedTarget>({ read: record.read, write }))
    const first = send({ a: 1 })
    await vi.waitFor(() => expect(goOn).toBeDefined(), 30_000)
    const second = send({ b: 2 })
    // It waits for its turn by then.
    await new Promise((resolve) => setTimeout(resolve, 100))
    goOn!()
    expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([200, 200])
    expect(seen).toEqual([1, 1, 2])
    expect(record.current?.document).toEqual({ a: 1, b: 2 })
  })

  it.each([[{ name: 'Ada' }], [[]], [{ document: undefined }]])(
    'writes nothing where "read" returns no target: %j',
    async (target) => {
      const write = vi.fn()
      await start(patch({ read: () => target as never, write, onError: () => {} }))
      expect((await send({ a: 1 })).status).toBe(500)
      expect(write).not.toHaveBeenCalled()
    },
  )

  it('is not acknowledged where "write" returns null, as a query does that finds no row', async () => {
    const onError = vi.fn()
    await start(patch({ read: () => ({ document: {} }), write: () => null as never, onError }))
    expect((await send({ a: 1 })).status).toBe(500)
    expect(onError).toHaveBeenCalledTimes(1)
  })

  it('stores nothing in the place of a row that "read" did not wait for', async () => {
    const write = vi.fn(() => undefined)
    const rejected: unknown[] = []
    const onRejection = (error: unknown): void => void rejected.push(error)
    process.on('unhandledRejection', onRejection)
    onTestFinished(() => void process.off('unhandledRejection', onRejection))
    const reject = () => Promise.reject(new Error('away'))
    for (const give of [async () => ({ a: 1 }), reject, () => new Map(), () => () => ({}), () => 7n]) {
      const document = () => give() as never
      for (const options of [
        { read: () => ({ document: document() }), write },
        { read: () => ({ document: {} }), write: () => ({ document: document() }) },
      ]) {
        await start(patch({ ...options, onError: () => {} }))
        expect((await send({ b: 2 })).status).toBe(500)
      }
    }
    for (const document of [null, 7, 'text', [1], Object.create({ class: 'a row' })]) {
      await start(patch({ read: () => ({ document }), write }))
      expect((await send({ b: 2 })).json()).toEqual({ b: 2 })
    }
    expect(write).toHaveBeenCalledTimes(5)
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(rejected).toEqual([])
  })

  it('answers 404 when the document disappears between two attempts', async () => {
    const found = [{ document: {} }]
    await start(patch({ read: () => found.pop(), write: () => 'conflict' as const }))
    expect((await send({ a: 1 })).status).toBe(404)
  })

  it('refuses what makes no sense', async () => {
    await start(() => {})
    const given = { read: () => undefined, write: () => undefined }
    expect(() => patch({ ...given, patchFormats: [] })).toThrow(TypeError)
    expect(() => patch({ ...given, reply: 'none' } as never)).toThrow(TypeError)
    expect(() => patch({ ...given, limits: { bodySize: -1 } })).toThrow(TypeError)
    expect(() => patch({ ...given, retries: 1 } as never)).toThrow(TypeError)
    expect(() => patch({ read: given.read } as never)).toThrow(TypeError)
    expect(() => patch(undefined as never)).toThrow(TypeError)
  })
})
