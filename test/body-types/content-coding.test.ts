import { Transform } from 'node:stream'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { decodeStream } from '../../src/body-types/content-coding.ts'
import { HttpError } from '../../src/core/errors.ts'
import { type ContentCoding, checkContentCoding } from '../../src/core/request-content.ts'
import { MEASURED } from '../support/measured.ts'
import { startProcessorClock } from '../support/processor-time.ts'
import { gather, inBytes, splitAt, statusOf, stream, whole } from './feed.ts'

const ALL: readonly ContentCoding[] = ['gzip', 'deflate', 'br']
const CODERS = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync }
const TEXT = Buffer.from('To be, or not to be: that is the question. '.repeat(50))

function refusal(field: string | undefined, accepted: readonly ContentCoding[]): HttpError | undefined {
  try {
    checkContentCoding(field, accepted)
    return undefined
  } catch (error) {
    return error as HttpError
  }
}

describe('checkContentCoding', () => {
  it.each([
    [undefined, [], undefined],
    ['identity', [], undefined],
    ['Identity', [], undefined],
    ['gzip', ALL, 'gzip'],
    ['GZIP', ALL, 'gzip'],
    ['x-gzip', ['gzip'], 'gzip'],
    ['X-GZip', ['gzip'], 'gzip'],
    [' br ', ALL, 'br'],
    ['deflate', ALL, 'deflate'],
    [', gzip,', ALL, 'gzip'],
    ['identity,', [], undefined],
    ['', [], undefined],
    [' ,', [], undefined],
  ] as const)('finds the coding of %j (RFC 9110 §8.4.1, row H34)', (field, accepted, coding) => {
    expect(checkContentCoding(field, accepted)).toBe(coding)
  })

  it.each([
    ['gzip', [], 'identity'],
    ['foo', [], 'identity'],
    ['br', ['gzip'], 'gzip'],
    ['x-compress', ALL, 'gzip, deflate, br'],
    ['x-br', ALL, 'gzip, deflate, br'],
    ['gzip, gzip', ALL, 'gzip, deflate, br'],
    ['gzip, identity', ALL, 'gzip, deflate, br'],
    ['gzip;q=1', ALL, 'gzip, deflate, br'],
  ] as const)('refuses %j with 415 and names what is accepted (row H33, threat 69)', (field, accepted, hint) => {
    const error = refusal(field, accepted)
    expect(error).toBeInstanceOf(HttpError)
    expect(error).toMatchObject({ status: 415, code: 'ERR_UNSUPPORTED_CODING', headers: { 'Accept-Encoding': hint } })
  })
})

describe('decodeStream', () => {
  const decode = (
    bytes: Uint8Array,
    coding: ContentCoding,
    options: { limit?: number; ratio?: number } = {},
    feeding = whole,
  ) => gather(decodeStream(stream(feeding(bytes)), coding, options))

  describe.each(ALL)('%s', (coding) => {
    const coded = CODERS[coding](TEXT)

    it.each([
      ['whole', whole],
      ['byte by byte', inBytes],
      ['in two', splitAt(7)],
    ] as const)('decodes content that comes %s', async (_, feeding) => {
      expect(await decode(coded, coding, {}, feeding)).toEqual(TEXT)
    })

    it('takes content of exactly the limit and refuses one byte more with 413', async () => {
      expect(await decode(coded, coding, { limit: TEXT.length })).toEqual(TEXT)
      expect(await statusOf(() => decode(coded, coding, { limit: TEXT.length - 1 }))).toBe(413)
    })

    it('refuses content cut short at any byte with 400 (threat 69)', async () => {
      for (let at = 0; at < coded.length; at++) {
        expect(await statusOf(() => decode(coded.subarray(0, at), coding)), `cut at ${at}`).toBe(400)
      }
    })

    it.each([
      ['junk', Buffer.from('junk')],
      ['zeros', Buffer.alloc(4)],
      ['much junk', Buffer.alloc(100_000, 'x')],
    ])('refuses %s after the end with 400, in the same chunk or a later one (threat 69)', async (_, junk) => {
      const bytes = Buffer.concat([coded, junk])
      expect(await statusOf(() => decode(bytes, coding))).toBe(400)
      expect(await statusOf(() => decode(bytes, coding, {}, splitAt(coded.length)))).toBe(400)
    })

    it('refuses what is not coded at all with 400', async () => {
      expect(await statusOf(() => decode(Buffer.from('not coded at all'), coding))).toBe(400)
    })

    it('refuses content that grows too much with 413, soon (threat 69)', MEASURED, async () => {
      const bomb = CODERS[coding](Buffer.alloc(32 * 1024 * 1024))
      let read = 0
      const elapsed = startProcessorClock()
      const status = await statusOf(async () => {
        for await (const chunk of decodeStream(stream([bomb]), coding)) read += chunk.length
      })
      expect(status).toBe(413)
      expect(read).toBeLessThan(20 * 1024 * 1024)
      expect(elapsed()).toBeLessThan(2000)
    })

    it('lets short content compress as well as it likes', async () => {
      const plain = Buffer.alloc(64 * 1024)
      expect(await decode(CODERS[coding](plain), coding)).toEqual(plain)
    })

    it('lets no more than 64 KiB grow beyond 100 times what was sent, or another ratio', async () => {
      const plain = Buffer.alloc(256 * 1024)
      const sent = CODERS[coding](plain)
      const ratio = plain.length / sent.length
      expect(ratio).toBeGreaterThan(100)
      expect(await statusOf(() => decode(sent, coding))).toBe(413)
      expect(await decode(sent, coding, { ratio })).toEqual(plain)
      expect(await statusOf(() => decode(sent, coding, { ratio: ratio * 0.999 }))).toBe(413)
    })

    it('closes its source when the reader leaves, and stops reading it at the limit', async () => {
      const destroy = vi.spyOn(Transform.prototype, 'destroy')
      onTestFinished(() => destroy.mockRestore())
      let asked = 0
      let closed = 0
      async function* source() {
        try {
          for (;;) {
            asked++
            yield asked === 1 ? coded : Buffer.alloc(0)
          }
        } finally {
          closed++
        }
      }
      for await (const chunk of decodeStream(source(), coding)) {
        expect(chunk.length).toBeGreaterThan(0)
        break
      }
      expect({ asked, closed }).toEqual({ asked: 1, closed: 1 })
      // The memory of a decoder that is not destroyed is free when it is collected, and not before.
      expect(destroy).toHaveBeenCalledTimes(1)
      asked = 0
      expect(await statusOf(() => gather(decodeStream(source(), coding, { limit: 10 })))).toBe(413)
      expect({ asked, closed }).toEqual({ asked: 1, closed: 2 })
    })

    it('throws what its source throws', async () => {
      const failure = new Error('the connection broke')
      async function* source() {
        yield coded.subarray(0, 5)
        throw failure
      }
      await expect(gather(decodeStream(source(), coding))).rejects.toBe(failure)
    })
  })

  it('allows a ratio of exactly the limit and not more, beyond 64 KiB', async () => {
    const plain = Buffer.alloc(1024 * 1024)
    const coded = gzipSync(plain)
    const ratio = plain.length / coded.length
    expect(await decode(coded, 'gzip', { ratio: Math.ceil(ratio) })).toHaveLength(plain.length)
    expect(await statusOf(() => decode(coded, 'gzip', { ratio: Math.floor(ratio) }))).toBe(413)
  })

  it('decodes the members of a gzip file one after the other (RFC 1952 §2.2)', async () => {
    const bytes = Buffer.concat([gzipSync('one '), gzipSync('two')])
    expect(String(await decode(bytes, 'gzip'))).toBe('one two')
    expect(String(await decode(bytes, 'gzip', {}, inBytes))).toBe('one two')
  })
})

it.each(['gzip', 'deflate'] as const)('does not read on behind the end of %s', async (coding) => {
  let given = 0
  async function* source(): AsyncGenerator<Uint8Array> {
    yield CODERS[coding](TEXT)
    for (; given < 1000; given++) yield Buffer.alloc(1024)
  }
  expect(await statusOf(() => gather(decodeStream(source(), coding)))).toBe(400)
  expect(given).toBeLessThan(10)
})
