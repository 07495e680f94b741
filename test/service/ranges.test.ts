import { describe, expect, it } from 'vitest'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { LargeBody, ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { ALPHABET, createFixtureStore, DATE, EARLIER, GZIPPED, LATER, TAG } from '../support/fixture-store.ts'
import { hosts, startHost } from '../support/hosts.ts'
import { serve, serveFixtures } from './serve.ts'

const A = '/docs/a.bin'

/** The parts of a multipart/byteranges answer. */
function partsOf(answer: Answer): { readonly head: Readonly<Record<string, string>>; readonly text: string }[] {
  const boundary = /^multipart\/byteranges; boundary=([\w-]+)$/.exec(answer.field('Content-Type') ?? '')?.[1]
  const pieces = answer.text.split(`--${boundary}`)
  expect(pieces.at(0)).toBe('\r\n')
  expect(pieces.at(-1)).toBe('--\r\n')
  return pieces.slice(1, -1).map((piece) => {
    const [head = '', text = ''] = piece.split('\r\n\r\n')
    const lines = head.trim().split('\r\n')
    expect(text.endsWith('\r\n')).toBe(true)
    return {
      head: Object.fromEntries(lines.map((line) => line.split(': ') as [string, string])),
      text: text.slice(0, -2),
    }
  })
}

describe('a single range (RFC 9110 §14.1.2)', () => {
  it.each([
    ['bytes=0-4', 0, 4],
    ['bytes=20-', 20, 25],
    ['bytes=-3', 23, 25],
    ['bytes=0-', 0, 25],
    ['bytes=0-25', 0, 25],
    ['bytes=0-26', 0, 25],
    ['bytes=0-999', 0, 25],
    ['bytes=10-99999999999999999999', 10, 25],
    ['bytes=-26', 0, 25],
    ['bytes=-27', 0, 25],
    ['bytes=-999', 0, 25],
    ['bytes=-99999999999999999999999999999999', 0, 25],
    ['bytes=0-0', 0, 0],
    ['bytes=25-25', 25, 25],
    ['bytes=25-', 25, 25],
    ['bytes=-1', 25, 25],
    ['bytes=00000000-4', 0, 4],
    ['Bytes=0-4', 0, 4],
    ['BYTES=0-4', 0, 4],
    ['bytes= 0-4', 0, 4],
    ['bytes=0-4,', 0, 4],
    ['bytes=,0-4', 0, 4],
    // One range that can be satisfied is not a multipart (row H156).
    ['bytes=0-1,99-100', 0, 1],
    ['bytes=99-,0-1', 0, 1],
    // Merged to one (row H157).
    ['bytes=0-5,3-9', 0, 9],
    ['bytes=0-4,5-9', 0, 9],
    ['bytes=5-9,0-4', 0, 9],
  ])('%s is bytes %i to %i (rows H139 to H143, H147, H155)', async (range, first, last) => {
    const { send } = await serveFixtures()
    for (const target of [A, '/docs/stream.bin']) {
      const answer = await send('GET', target, [`Range: ${range}`])
      expect(answer.status).toBe(206)
      expect(answer.field('Content-Range')).toBe(`bytes ${first}-${last}/26`)
      expect(answer.text).toBe(ALPHABET.slice(first, last + 1))
      expect(answer.field('Content-Type')).toBe('application/octet-stream')
    }
  })

  it.each(['bytes=26-', 'bytes=26-26', 'bytes=99-', 'bytes=99-100', 'bytes=-0', 'bytes=99-100,101-', 'bytes=-0,26-'])(
    '%s cannot be satisfied: 416 with the length, and nothing of the item (rows H144, H165)',
    async (range) => {
      const { send } = await serveFixtures()
      const answer = await send('GET', A, [`Range: ${range}`])
      expect(answer.status).toBe(416)
      expect(answer.field('Content-Range')).toBe('bytes */26')
      expect(answer.field('Content-Type')).toBe('application/problem+json')
      expect(answer.field('ETag')).toBeUndefined()
      expect(answer.field('Accept-Ranges')).toBeUndefined()
    },
  )

  it.each([
    ...['bytes=5-2', 'bytes=a-b', 'bytes=0', 'bytes=', 'bytes', '', 'bytes=-', 'bytes=--1', 'bytes=1--2', 'bytes=,'],
    ...['items=0-4', 'bytes =0-4', ' bytes', 'bytes=0x0-1', 'bytes=0-1;x', 'bytes=+0-4', 'bytes=0-+4', 'bytes=1e0-4'],
    ...['bytes=0-1,5-2', 'bytes=0-1,a', 'bytes=0 -4', 'bytes:0-4', 'bytes=0-4 5-6', '0-4', 'bytes=0.0-4'],
  ])('"%s" is ignored: 200 (rows H145, H146)', async (range) => {
    const { send } = await serveFixtures()
    const answer = await send('GET', A, [`Range: ${range}`])
    expect(answer.status).toBe(200)
    expect(answer.text).toBe(ALPHABET)
  })

  it('is ignored on an empty representation (row H149)', async () => {
    const { send } = await serveFixtures()
    for (const range of ['bytes=0-4', 'bytes=0-', 'bytes=-1', 'bytes=0-0,1-1']) {
      const answer = await send('GET', '/docs/z.bin', [`Range: ${range}`])
      expect([answer.status, answer.field('Content-Length')]).toEqual([200, '0'])
    }
  })

  it('is ignored when it is sent twice (threat 3)', async () => {
    const { send } = await serveFixtures()
    expect((await send('GET', A, ['Range: bytes=0-1', 'Range: bytes=4-5'])).status).toBe(200)
  })
})

describe('several ranges (RFC 9110 §15.3.7.2)', () => {
  it.each([
    ['bytes=0-1,10-11', ['0-1', '10-11']],
    ['bytes=0-1, 10-11', ['0-1', '10-11']],
    ['bytes=0-1 ,\t10-11', ['0-1', '10-11']],
    ['bytes=10-11,0-1', ['10-11', '0-1']],
    ['bytes=0-0,-1', ['0-0', '25-25']],
    ['bytes=0-1,5-', ['0-1', '5-25']],
    ['bytes=20-,0-1,3-4', ['20-25', '0-1', '3-4']],
    ['bytes=0-1,99-,4-5', ['0-1', '4-5']],
    ['bytes=0-3,2-5,10-11', ['0-5', '10-11']],
  ])('%s has parts %j (rows H153, H154, H157)', async (range, expected) => {
    const { send } = await serveFixtures()
    for (const target of [A, '/docs/stream.bin']) {
      const answer = await send('GET', target, [`Range: ${range}`])
      expect(answer.status).toBe(206)
      expect(answer.field('Content-Range')).toBeUndefined()
      const parts = partsOf(answer)
      expect(parts.map(({ head }) => head['Content-Range'])).toEqual(expected.map((part) => `bytes ${part}/26`))
      for (const [index, { head, text }] of parts.entries()) {
        const [first, last] = expected[index]!.split('-').map(Number)
        expect(head['Content-Type']).toBe('application/octet-stream')
        expect(text).toBe(ALPHABET.slice(first, last! + 1))
      }
    }
  })

  it.each([
    ['1000 times the whole', `bytes=${Array(1000).fill('0-').join()}`],
    ['1500 times one byte', `bytes=${Array(1500).fill('5-5').join()}`],
    ['101 of them', `bytes=${Array(101).fill('0-0').join()}`],
    ['more than there is', 'bytes=0-,1-,2-,3-,4-'],
    ['three overlaps', 'bytes=0-2,1-3,2-4,3-5'],
  ])('are ignored where they are an abuse: %s (row H158, threat 52)', async (_, range) => {
    const { send } = await serveFixtures()
    const answer = await send('GET', A, [`Range: ${range}`])
    expect(answer.status).toBe(200)
    expect(answer.text).toBe(ALPHABET)
  })
})

/** The table of Go's net/http for a file of eleven bytes, as facts: what is asked, what is answered. */
describe('the ranges that the tests of net/http ask for', () => {
  it.each([
    ['', 200, []],
    ['bytes=0-4', 206, ['0-4']],
    ['bytes=2-', 206, ['2-10']],
    ['bytes=-5', 206, ['6-10']],
    ['bytes=3-7', 206, ['3-7']],
    ['bytes=0-0,-2', 206, ['0-0', '9-10']],
    ['bytes=0-1,5-8', 206, ['0-1', '5-8']],
    ['bytes=0-1,5-', 206, ['0-1', '5-10']],
    ['bytes=5-1000', 206, ['5-10']],
    ['bytes=0-,1-,2-,3-,4-', 200, []],
    ['bytes=0-9', 206, ['0-9']],
    ['bytes=0-10', 206, ['0-10']],
    ['bytes=0-11', 206, ['0-10']],
    ['bytes=10-11', 206, ['10-10']],
    ['bytes=10-', 206, ['10-10']],
    ['bytes=11-', 416, []],
    ['bytes=11-12', 416, []],
    ['bytes=12-12', 416, []],
    ['bytes=11-100', 416, []],
    ['bytes=100-', 416, []],
    ['bytes=100-1000', 416, []],
  ])('%s is %i', async (range, status, parts) => {
    const { send } = await serve(memoryStore(), {})
    await send('PUT', '/file', ['Content-Type: text/plain'], '0123456789\n')
    const answer = await send('GET', '/file', range === '' ? [] : [`Range: ${range}`])
    expect(answer.status).toBe(status)
    if (parts.length === 1) expect(answer.field('Content-Range')).toBe(`bytes ${parts[0]}/11`)
    if (parts.length > 1) {
      expect(partsOf(answer).map(({ head }) => head['Content-Range'])).toEqual(parts.map((part) => `bytes ${part}/11`))
    }
  })
})

describe('Range and the rest of the request', () => {
  it('tells that ranges can be had, and does not where they cannot (row H138)', async () => {
    const { send } = await serveFixtures()
    for (const method of ['GET', 'HEAD']) {
      expect((await send(method, A)).field('Accept-Ranges')).toBe('bytes')
      expect((await send(method, '/users')).field('Accept-Ranges')).toBeUndefined()
    }
    expect((await send('GET', A, ['Range: bytes=0-1'])).field('Accept-Ranges')).toBe('bytes')
    expect((await send('OPTIONS', A)).field('Accept-Ranges')).toBe('bytes')
    expect((await send('OPTIONS', '/users')).field('Accept-Ranges')).toBeUndefined()
    expect((await send('GET', '/users', ['Range: bytes=0-1'])).status).toBe(200)
  })

  it('is for GET only: HEAD tells of the whole (RFC 9110 §14.2, row H148)', async () => {
    const { send } = await serveFixtures()
    const head = await send('HEAD', A, ['Range: bytes=0-4'])
    expect([head.status, head.field('Content-Length'), head.field('Content-Range')]).toEqual([200, '26', undefined])
    expect((await send('HEAD', A, ['Range: bytes=99-'])).status).toBe(200)
  })

  it('does not make a PUT partial; Content-Range on one is refused (rows H67, H148)', async () => {
    const { send, store } = await serveFixtures()
    const text = 'Content-Type: text/plain'
    expect((await send('PUT', A, [text, 'Content-Range: bytes 0-1/26'], 'XY')).status).toBe(400)
    expect(store.writes).toEqual([])
    expect((await send('PUT', A, [text, 'Range: bytes=0-1'], 'XY')).status).toBe(204)
    expect((await send('GET', A)).text).toBe('XY')
  })

  it.each([
    ['404', '/docs/missing', [], 404],
    ['410', '/docs/gone', [], 410],
    ['304', A, [`If-None-Match: ${TAG}`], 304],
    ['412', A, ['If-Match: "x"'], 412],
    ['406', '/users/1', ['Accept: image/png'], 406],
  ])('leaves a %s as it is (row H150)', async (_, target, fields, status) => {
    const { send } = await serveFixtures()
    for (const range of ['bytes=0-1', 'bytes=99-'])
      expect((await send('GET', target, [...fields, `Range: ${range}`])).status).toBe(status)
  })

  it('has the fields of the 200, and no-transform in Cache-Control (RFC 9110 §15.3.7, RFC 9111 §5.2.2.6)', async () => {
    const { send } = await serveFixtures({ cors: { origins: ['https://app.example'] }, cacheControl: 'max-age=60' })
    const whole = await send('GET', A)
    const part = await send('GET', A, ['Range: bytes=0-4'])
    for (const name of ['ETag', 'Last-Modified', 'Vary', 'Content-Type', 'Accept-Ranges'])
      expect(part.field(name)).toBe(whole.field(name))
    // A compressor between would send the compressed fragment under the tag of the plain bytes.
    expect([whole.field('Cache-Control'), part.field('Cache-Control')]).toEqual([
      'max-age=60',
      'max-age=60, no-transform',
    ])
    const parts = await send('GET', A, ['Range: bytes=0-0,20-'])
    expect([parts.status, parts.field('Cache-Control')]).toEqual([206, 'max-age=60, no-transform'])
  })

  it.each([
    [undefined, 'no-cache, no-transform'],
    ['no-store', 'no-store, no-transform'],
    ['max-age=5, no-transform', 'max-age=5, no-transform'],
  ])('adds no-transform once to %s (issue 17, 20)', async (cacheControl, expected) => {
    const { send } = await serve(createFixtureStore(), {
      resources: { '/docs/{name}': document(cacheControl === undefined ? {} : { cacheControl }) },
    })
    expect((await send('GET', A, ['Range: bytes=0-4'])).field('Cache-Control')).toBe(expected)
  })

  it('adds no-transform to a part of a rendition (issue 17, 20)', async () => {
    const upper = { type: 'text/x-upper', render: (bytes: Uint8Array) => Buffer.from(bytes).toString().toUpperCase() }
    const { send } = await serve(createFixtureStore(), {
      resources: { '/docs/{name}': document({ representations: [upper] }) },
    })
    const part = await send('GET', A, ['Accept: text/x-upper', 'Range: bytes=0-4'])
    expect([part.status, part.text, part.field('Cache-Control')]).toEqual([206, 'ABCDE', 'no-cache, no-transform'])
  })

  it('addresses the coded bytes of a coded representation (RFC 9110 §8.4, row H159)', async () => {
    const { send } = await serveFixtures()
    const whole = await send('GET', '/docs/coded.gz')
    expect(whole.field('Content-Encoding')).toBe('gzip')
    expect(whole.body).toEqual(GZIPPED)
    const part = await send('GET', '/docs/coded.gz', ['Range: bytes=0-9'])
    expect(part.field('Content-Encoding')).toBe('gzip')
    expect(part.body).toEqual(GZIPPED.subarray(0, 10))
  })

  it('reads no more of a stored stream than it sends (threat 52)', async () => {
    const store = memoryStore()
    const { send } = await serve(store, {})
    await send('PUT', '/big', ['Content-Type: text/x'], Buffer.alloc(3_000_000, ALPHABET))
    const answer = await send('GET', '/big', ['Range: bytes=2999999-'])
    expect(answer.field('Content-Range')).toBe('bytes 2999999-2999999/3000000')
    expect(answer.text).toBe(ALPHABET[2999999 % 26])
  })
})

describe('If-Range (RFC 9110 §13.1.5)', () => {
  it.each([
    [A, TAG, 206],
    [A, `W/${TAG}`, 200],
    [A, '"stale"', 200],
    [A, `"x" ${TAG}`, 200],
    [A, `x${TAG}`, 200],
    [A, `${TAG}, ${TAG}`, 200],
    [A, `${TAG},`, 200],
    [A, 'e', 200],
    [A, '*', 200],
    [A, '', 200],
    [A, DATE, 206],
    [A, LATER, 200],
    [A, EARLIER, 200],
    [A, 'Tue, 07 Jul 2020 10:00:00 GMT', 200],
    [A, '2020-07-06T10:00:00Z', 200],
    ['/docs/w.bin', 'W/"w"', 200],
    ['/docs/w.bin', '"w"', 200],
    ['/docs/n.bin', '""', 200],
    ['/docs/n.bin', DATE, 200],
    ['/docs/d.bin', DATE, 206],
    // Two states in one second: the date does not tell which (row H45).
    ['/docs/twice.bin', DATE, 200],
    ['/docs/twice.bin', '"t"', 206],
    ['/docs/stream.bin', '"s"', 206],
  ])('%s with %s is %i (rows H160, H161, H164)', async (target, value, status) => {
    const { send } = await serveFixtures()
    const answer = await send('GET', target, ['Range: bytes=0-4', `If-Range: ${value}`])
    expect(answer.status).toBe(status)
    expect(answer.text).toBe(status === 206 ? 'abcde' : ALPHABET)
  })

  it('is ignored without Range (row H162)', async () => {
    const { send } = await serveFixtures()
    expect((await send('GET', A, [`If-Range: ${TAG}`])).status).toBe(200)
    expect((await send('GET', A, ['If-Range: "x"'])).status).toBe(200)
  })

  it('makes the range vanish where it fails: 200, not 416 (row H163)', async () => {
    const { send } = await serveFixtures()
    expect((await send('GET', A, ['Range: bytes=99-', 'If-Range: "stale"'])).status).toBe(200)
    expect((await send('GET', A, ['Range: bytes=99-', `If-Range: ${TAG}`])).status).toBe(416)
  })

  it('does not trust the date of a second in which the item changed twice (row H45)', async () => {
    let now = Date.parse(DATE)
    const { send } = await serve(memoryStore({ now: () => now }), { now: () => now })
    const text = ['Content-Type: text/plain']
    await send('PUT', '/a', text, 'one and more')
    now += 300
    await send('PUT', '/a', text, 'two and more')
    now += 60_000
    const fields = ['Range: bytes=0-2', `If-Range: ${DATE}`]
    expect((await send('GET', '/a')).field('Last-Modified')).toBe(DATE)
    expect((await send('GET', '/a', fields)).status).toBe(200)
    await send('PUT', '/a', text, 'three and more')
    const date = (await send('GET', '/a')).field('Last-Modified')
    expect((await send('GET', '/a', ['Range: bytes=0-2', `If-Range: ${date}`])).status).toBe(206)
  })
})

describe('content that a store reads at once', () => {
  const LETTERS = Buffer.from(ALPHABET)
  const readers: Readonly<Record<string, NonNullable<LargeBody['read']>>> = {
    now: (first, last) => LETTERS.subarray(first, last + 1),
    later: async (first, last) => LETTERS.subarray(first, last + 1),
    pieces: (first, last) => [LETTERS.subarray(first, first + 1), LETTERS.subarray(first + 1, last + 1)],
    piecesLater: async (first, last) => [LETTERS.subarray(first, last), LETTERS.subarray(last, last + 1)],
    short: (first) => LETTERS.subarray(first, first + 1),
    fewPieces: (first) => [LETTERS.subarray(first, first + 1), LETTERS.subarray(first + 1, first + 2)],
    noPieces: () => [],
    broken: () => Promise.reject(new Error('the disk is on fire')),
  }
  const store: ResourceStore = {
    ...memoryStore(),
    read: (path) => ({
      path,
      version: 'v1',
      contentType: 'text/plain',
      size: LETTERS.length,
      body: {
        read: readers[path.slice('/docs/'.length)]!,
        async *open() {
          yield LETTERS
        },
      },
    }),
  }

  it.each([
    ['now', 206, 'cdef'],
    ['later', 206, 'cdef'],
    ['pieces', 206, 'cdef'],
    ['piecesLater', 206, 'cdef'],
    ['short', 500, undefined],
    ['fewPieces', 500, undefined],
    ['noPieces', 500, undefined],
    ['broken', 500, undefined],
  ])('%s: a range of it is a %i, whole or not at all', async (name, status, text) => {
    const { send } = await serve(store, { resources: { '/docs/{name}': document() }, onError: () => {} })
    const answer = await send('GET', `/docs/${name}`, ['Range: bytes=2-5'])
    expect(answer.status).toBe(status)
    if (text !== undefined) expect(answer.text).toBe(text)
    expect((await send('GET', `/docs/${name}`)).text).toBe(ALPHABET)
  })

  it.each(Object.keys(hosts))('sends pieces on %s', async (name) => {
    const service = createResourceService(store, { resources: { '/docs/{name}': document() }, fallthrough: false })
    const host = await startHost(name, service, '/api')
    closeAfterTest(host.close)
    const answer = await host.send({ path: '/api/docs/pieces', headers: { range: 'bytes=2-5' } })
    expect([answer.status, answer.body.toString()]).toEqual([206, 'cdef'])
  })

  it('sends pieces to a client that sends content with its GET', async () => {
    const { send } = await serve(store, { resources: { '/docs/{name}': document() } })
    const answer = await send('GET', '/docs/pieces', ['Range: bytes=2-5'], 'unasked')
    expect([answer.status, answer.text]).toEqual([206, 'cdef'])
  })
})
