import { describe, expect, it } from 'vitest'
import type { FormPart } from '../../src/body-types/form.ts'
import { type BodyLimits, DEFAULT_LIMITS } from '../../src/body-types/limits.ts'
import { collectParts, parseMultipart } from '../../src/body-types/multipart.ts'
import { splitMultipart } from '../../src/body-types/multipart-parser.ts'
import { readPartHead } from '../../src/body-types/part-head.ts'
import { isHttpError } from '../../src/core/errors.ts'
import { parseMediaType } from '../../src/protocol/media-type.ts'
import { MEASURED } from '../support/measured.ts'
import { startProcessorClock } from '../support/processor-time.ts'
import { type Feeding, gather, inBytes, splitAt, statusOf, stream, whole } from './feed.ts'
import { BODIES, BOUNDARY, type Expected, lines, part } from './multipart-bodies.ts'

const TYPE = parseMediaType(`multipart/form-data; boundary=${BOUNDARY}`)!

const parse = (source: AsyncIterable<Uint8Array>, limits: Partial<BodyLimits> = {}) =>
  parseMultipart(source, TYPE, { ...DEFAULT_LIMITS, ...limits })

const parseBody = (body: string | Uint8Array, limits?: Partial<BodyLimits>, feeding: Feeding = whole) =>
  parse(stream(feeding(Buffer.from(body))), limits)

async function formatPart(part: FormPart): Promise<string> {
  if (part.kind === 'field') return `${part.name}=${part.value}`
  const content = await gather(part.content)
  return [part.name, part.filename ?? '-', part.contentType, content.toString('latin1')].join('|')
}

/** All parts that come before the end or the refusal. */
async function readAll(body: string | Uint8Array, limits?: Partial<BodyLimits>, feeding?: Feeding): Promise<Expected> {
  const parts: string[] = []
  try {
    for await (const part of parseBody(body, limits, feeding)) parts.push(await formatPart(part))
    return { parts }
  } catch (error) {
    if (isHttpError(error)) return { parts, status: error.status }
    throw error
  }
}

/** The status of the refusal when the form is at hand as a whole. */
function refusalOfWhole(body: string | Uint8Array, limits?: Partial<BodyLimits>): number | undefined {
  try {
    splitMultipart(Buffer.from(body), TYPE, { ...DEFAULT_LIMITS, ...limits })
    return undefined
  } catch (error) {
    if (isHttpError(error)) return error.status
    throw error
  }
}

const refusal = async (body: string | Uint8Array, limits?: Partial<BodyLimits>) => {
  const outcome = await readAll(body, limits)
  expect(await readAll(body, limits, inBytes)).toEqual(outcome)
  expect(refusalOfWhole(body, limits), 'as a whole').toBe(outcome.status)
  return outcome.status
}

const field = (name: string, value: string) => [`Content-Disposition: form-data; name="${name}"`, '', value]
const file = (name: string, content: string) => [
  `Content-Disposition: form-data; name="${name}"; filename="x"`,
  '',
  content,
]
const form = (...parts: string[][]) => lines(...parts.flatMap((part) => ['--', ...part]), '----', '')

describe('parseMultipart', () => {
  it.each(BODIES.map((row) => [...row] as const))('%s', async (_, body, expected) => {
    const bytes = Buffer.from(body as string)
    const outcome: Expected = Array.isArray(expected)
      ? { parts: expected as string[] }
      : typeof expected === 'number'
        ? { parts: [], status: expected }
        : (expected as Expected)
    expect(await readAll(bytes)).toEqual(outcome)
    expect(await readAll(bytes, {}, inBytes), 'byte by byte').toEqual(outcome)
    expect(refusalOfWhole(bytes), 'as a whole').toBe(outcome.status)
    for (let at = 1; at < Math.min(bytes.length, 600); at++) {
      expect(await readAll(bytes, {}, splitAt(at)), `split at ${at}`).toEqual(outcome)
    }
  })

  it('tells parts apart whose header sections are of one length, each time that they come', async () => {
    const names = Array.from({ length: 40 }, (_, n) => `name${n + 10}`)
    const body = form(...names.map((name) => field(name, `of ${name}`)))
    const parts = names.map((name) => `${name}=of ${name}`)
    for (let round = 0; round < 3; round++) expect(await readAll(body)).toEqual({ parts })
    const upper = body.replaceAll('name=', 'NAME=')
    expect(await readAll(upper)).toEqual({ parts })
  })

  describe('the boundary', () => {
    const boundaryOf = (parameter: string, boundary: string) => {
      const type = parseMediaType(`multipart/form-data${parameter}`)!
      return statusOf(() =>
        gatherFields(`--${boundary}\r\nContent-Disposition: form-data; name=a\r\n\r\nv\r\n--${boundary}--`, type),
      )
    }
    const gatherFields = async (body: string, type = TYPE) => {
      expect(await collectParts(parseMultipart(stream([Buffer.from(body)]), type, DEFAULT_LIMITS), 0)).toEqual({
        fields: { a: 'v' },
        files: [],
      })
    }

    it.each([
      ['; boundary=x', 'x', undefined],
      [`; boundary=${'x'.repeat(70)}`, 'x'.repeat(70), undefined],
      [`; boundary=${'x'.repeat(71)}`, 'x'.repeat(71), 400],
      ['; boundary="a b"', 'a b', undefined],
      ['; boundary="gc0pJq0M:08jU534c0p"', 'gc0pJq0M:08jU534c0p', undefined],
      [`; boundary="'()+_,-./:=?"`, `'()+_,-./:=?`, undefined],
      ['; BOUNDARY=x', 'x', undefined],
      ['; charset=utf-8; boundary=x', 'x', undefined],
      ['; boundary="a "', 'a ', 400],
      ['; boundary=""', '', 400],
      ['; boundary="a\\"b"', 'a"b', 400],
      ['', '', 400],
    ])('from %j (RFC 2046 §5.1.1, rows F1, H31)', async (parameter, boundary, status) => {
      expect(await boundaryOf(parameter, boundary)).toBe(status)
    })

    it.each(['multipart/mixed; boundary=x', 'multipart/related; boundary=x', 'text/plain'])(
      'is asked of form-data only: %s is 415, at once',
      async (type) => {
        expect(await statusOf(() => parseMultipart(stream([]), parseMediaType(type)!, DEFAULT_LIMITS))).toBe(415)
      },
    )
  })

  describe('limits, in exact pairs (row F10)', () => {
    const fields = (count: number) => form(...Array.from({ length: count }, (_, i) => field(`n${i}`, 'v')))
    const files = (count: number) => form(...Array.from({ length: count }, (_, i) => file(`n${i}`, 'v')))
    const headers = (count: number) => [...Array.from({ length: count - 1 }, (_, i) => `X-${i}: y`), ...field('a', 'v')]

    it.each<[keyof BodyLimits, number, string, string, number]>([
      ['parts', 3, fields(3), fields(4), 413],
      ['parts', 0, form(), fields(1), 413],
      ['fields', 3, fields(3), fields(4), 413],
      ['fields', 0, files(1), fields(1), 413],
      ['files', 3, files(3), files(4), 413],
      ['files', 0, fields(1), files(1), 413],
      ['fieldSize', 5, form(field('a', '12345')), form(field('a', '123456')), 413],
      ['fieldSize', 0, form(field('a', '')), form(field('a', '1')), 413],
      ['fieldsSize', 5, form(field('a', '123'), field('b', '45')), form(field('a', '123'), field('b', '456')), 413],
      ['fieldsSize', 0, form(file('f', '123')), form(field('a', '1')), 413],
      ['fileSize', 5, form(file('f', '12345')), form(file('f', '123456')), 413],
      ['fileSize', 0, form(file('f', '')), form(file('f', '1')), 413],
      ['partHeaders', 3, form(headers(3)), form(headers(4)), 413],
      ['nameLength', 5, form(field('nnnnn', 'v')), form(field('nnnnnn', 'v')), 400],
    ])('%s: %i passes, one more is refused', async (name, limit, passing, failing, status) => {
      expect(await refusal(passing, { [name]: limit })).toBeUndefined()
      expect(await refusal(failing, { [name]: limit })).toBe(status)
    })

    it('holds the defaults: 100 fields, 10 files, 32 header fields, 64 KiB a field, names of 200 characters', async () => {
      expect(await refusal(fields(100))).toBeUndefined()
      expect(await refusal(fields(101))).toBe(413)
      expect(await refusal(files(10))).toBeUndefined()
      expect(await refusal(files(11))).toBe(413)
      expect(await refusal(form(headers(32)))).toBeUndefined()
      expect(await refusal(form(headers(33)))).toBe(413)
      expect(await refusal(form(field('a', 'x'.repeat(64 * 1024))))).toBeUndefined()
      expect(await refusal(form(field('a', 'x'.repeat(64 * 1024 + 1))))).toBe(413)
      expect(await refusal(form(field('n'.repeat(200), '')))).toBeUndefined()
      expect(await refusal(form(field('n'.repeat(201), '')))).toBe(400)
    })

    it('takes 64 KiB before the first part and after the last together, however they are cut (RFC 2046 §5.1.1)', async () => {
      const around = (before: number, after: number) =>
        `${'x'.repeat(before - 2)}\r\n${form(field('a', 'v'))}${'y'.repeat(after)}`
      for (const feeding of [whole, inBytes]) {
        for (const [before, after] of [
          [1000, 64 * 1024 - 1000],
          [64 * 1024, 0],
          [2, 64 * 1024 - 2],
        ] as const) {
          expect((await readAll(around(before, after), {}, feeding)).status, `${before}`).toBeUndefined()
          expect((await readAll(around(before, after + 2), {}, feeding)).status, `${before}`).toBeUndefined()
          expect((await readAll(around(before, after + 3), {}, feeding)).status, `${before}`).toBe(413)
          expect((await readAll(around(before + 3, after), {}, feeding)).status, `${before}`).toBe(413)
        }
      }
    })

    it('lets a file be of any size, in chunks of any size', async () => {
      const content = Buffer.alloc(3_000_001, 'abc\r\n--')
      const body = Buffer.concat([
        Buffer.from(part(file('f', '')[0]!, '').split('\r\n\r\n')[0]! + '\r\n\r\n'),
        content,
        Buffer.from(`\r\n--${BOUNDARY}--`),
      ])
      for (const size of [1000, 65_536, 65_537, 4_000_000]) {
        const chunks = Array.from({ length: Math.ceil(body.length / size) }, (_, i) =>
          body.subarray(i * size, (i + 1) * size),
        )
        const { files } = await collectParts(parse(stream(chunks)), Number.POSITIVE_INFINITY)
        expect(Buffer.compare(files[0]!.content, content), `${size}`).toBe(0)
      }
    })

    it('compares the head of a part with few of those before it, however many differ', MEASURED, () => {
      const heads = Array.from({ length: 30_000 }, (_, i) =>
        Buffer.from(lines('Content-Disposition: form-data; name="file"; filename="a"', `X: ${i}`, '', '')),
      )
      const elapsed = startProcessorClock()
      for (const head of heads) readPartHead(head, 0, 0)
      // All of them take 3 seconds and more.
      expect(elapsed()).toBeLessThan(1000)
    })

    it('remembers a head as it was, although its source uses the buffer again', () => {
      const data = Buffer.from(lines(...field('name-1', ''), ''))
      expect(readPartHead(data, 0, 0)?.head.name).toBe('name-1')
      data.write('2', data.indexOf('1'))
      expect(readPartHead(data, 0, 0)?.head.name).toBe('name-2')
    })

    it('refuses 100 000 parts soon, and holds none of them (threat 75)', MEASURED, async () => {
      const body = Buffer.from(lines('--', ...field('a', ''), '').repeat(100_000))
      const elapsed = startProcessorClock()
      expect(await statusOf(() => collectParts(parseBody(body), 0))).toBe(413)
      expect(elapsed()).toBeLessThan(1000)
    })
  })

  describe('reading', () => {
    const BODY = form(
      field('a', '1'),
      file('f', 'content of f'),
      field('b', '2'),
      file('g', 'content of g'),
      field('c', '3'),
    )

    it('skips content that is not read (row F11)', async () => {
      for (const feeding of [whole, inBytes]) {
        const names: string[] = []
        for await (const part of parseBody(BODY, {}, feeding)) names.push(part.name)
        expect(names).toEqual(['a', 'f', 'b', 'g', 'c'])
      }
    })

    it('skips the rest of content that is left early', async () => {
      for (const feeding of [whole, inBytes]) {
        const read: string[] = []
        for await (const part of parseBody(BODY, {}, feeding)) {
          if (part.kind === 'field') read.push(part.value)
          else {
            for await (const chunk of part.content) {
              read.push(String.fromCharCode(chunk[0]!))
              break
            }
          }
        }
        expect(read).toEqual(['1', 'c', '2', 'c', '3'])
      }
    })

    it('does not let skipped content look like an empty file', async () => {
      for (const feeding of [whole, inBytes]) {
        const files: FormPart[] = []
        for await (const part of parseBody(BODY, {}, feeding)) files.push(part)
        const skipped = files[1]!
        if (skipped.kind !== 'file') throw new Error('not a file')
        await expect(gather(skipped.content)).rejects.toThrow('is gone once the next part is asked for')
      }
    })

    it('keeps nothing of content that is skipped while the next part is waited for', async () => {
      const parts = parseBody(form(file('f', 'content of f'), field('a', '1')), {}, inBytes)[Symbol.asyncIterator]()
      const skipped = (await parts.next()).value as FormPart
      await parts.next()
      if (skipped.kind !== 'file') throw new Error('not a file')
      const next = skipped.content[Symbol.asyncIterator]().next()
      await expect(next).rejects.toThrow('is gone once the next part is asked for')
    })

    it('lets content be asked for more than once without beginning anew', async () => {
      for await (const part of parseBody(BODY, {}, inBytes)) {
        if (part.kind === 'field') continue
        const first = part.content[Symbol.asyncIterator]()
        const second = part.content[Symbol.asyncIterator]()
        const bytes = [await first.next(), await second.next()].map((result) => String(Buffer.from(result.value!)))
        expect(bytes).toEqual(['c', 'o'])
        await gather(part.content)
        expect((await gather(part.content)).length).toBe(0)
      }
    })

    it('asks its source for nothing before it is asked, and then for no more than is needed', async () => {
      let asked = 0
      const chunks = inBytes(Buffer.from(BODY))
      const iterator = parse({
        async *[Symbol.asyncIterator]() {
          for (const chunk of chunks) {
            asked++
            yield chunk
          }
        },
      })[Symbol.asyncIterator]()
      expect(asked).toBe(0)
      await iterator.next()
      const first = BODY.indexOf('\r\n--b0undary', 10) + '\r\n--b0undary\r\n'.length
      expect(asked).toBe(first)
      await iterator.next()
      expect(asked).toBe(BODY.indexOf('content of f'))
    })

    it('gives an error after the parts before it, and again whenever it is asked (threat 74)', async () => {
      for (const feeding of [whole, inBytes]) {
        const iterator = parseBody(`${form(field('a', '1')).slice(0, -4)}\r\nbad\r\n\r\n`, {}, feeding)[
          Symbol.asyncIterator
        ]()
        expect((await iterator.next()).value).toMatchObject({ name: 'a' })
        for (let i = 0; i < 3; i++) expect(await statusOf(() => iterator.next())).toBe(400)
      }
    })

    it('lets content that is cut short fail, never end (threat 70, row F9)', async () => {
      for (const feeding of [whole, inBytes]) {
        for await (const part of parseBody(BODY.slice(0, BODY.indexOf('t of f')), {}, feeding)) {
          if (part.kind !== 'file') continue
          let read = ''
          const status = await statusOf(async () => {
            for await (const chunk of part.content) read += Buffer.from(chunk).toString()
          })
          expect({ read, status }).toEqual({ read: 'conten', status: 400 })
          break
        }
      }
    })

    it.each(['break', 'throw'])('closes its source on %s, within a file or not (row F12)', async (way) => {
      for (const stop of ['a', 'f', 'b']) {
        let closed = 0
        const source = async function* () {
          try {
            for (const chunk of inBytes(Buffer.from(BODY))) yield chunk
          } finally {
            closed++
          }
        }
        const run = async () => {
          for await (const part of parse(source())) {
            if (part.name !== stop) continue
            if (way === 'throw') throw new RangeError('enough')
            break
          }
        }
        if (way === 'throw') await expect(run()).rejects.toThrow('enough')
        else await run()
        expect(closed, stop).toBe(1)
      }
    })

    it('ends after it was left, and content of its files fails', async () => {
      const parts = parseBody(BODY, {}, inBytes)
      const iterator = parts[Symbol.asyncIterator]()
      await iterator.next()
      const { value } = (await iterator.next()) as { value: FormPart }
      await iterator.return?.()
      expect(await iterator.next()).toEqual({ done: true, value: undefined })
      if (value.kind !== 'file') throw new Error('not a file')
      await expect(gather(value.content)).rejects.toThrow('not read any further')
    })

    it('closes its source when it refuses', async () => {
      let closed = 0
      const source = async function* () {
        try {
          yield Buffer.from('--b0undary x\r\n')
          yield Buffer.from('more')
        } finally {
          closed++
        }
      }
      expect(await statusOf(() => collectParts(parse(source()), 0))).toBe(400)
      expect(closed).toBe(1)
    })

    it('throws what its source throws, also into content', async () => {
      const failure = new Error('the connection broke')
      const source = async function* () {
        yield Buffer.from(BODY.slice(0, BODY.indexOf('t of f')))
        throw failure
      }
      const iterator = parse(source())[Symbol.asyncIterator]()
      await iterator.next()
      const { value } = (await iterator.next()) as { value: FormPart }
      if (value.kind !== 'file') throw new Error('not a file')
      await expect(gather(value.content)).rejects.toBe(failure)
      await expect(iterator.next()).rejects.toBe(failure)
    })

    it('survives readers that do not wait for each other', async () => {
      const iterator = parseBody(BODY, {}, inBytes)[Symbol.asyncIterator]()
      const parts = await Promise.all(Array.from({ length: 6 }, () => iterator.next()))
      expect(parts.map(({ value }) => (value as FormPart | undefined)?.name)).toEqual([
        'a',
        'f',
        'b',
        'g',
        'c',
        undefined,
      ])
    })

    it('does not wait for a source that never gives another chunk when it is left', async () => {
      const source: AsyncIterable<Uint8Array> = {
        [Symbol.asyncIterator]: () => ({
          next: () => new Promise(() => {}),
          return: () => new Promise(() => {}),
        }),
      }
      const iterator = parse(source)[Symbol.asyncIterator]()
      void iterator.next()
      expect(await iterator.return?.()).toEqual({ done: true, value: undefined })
    })

    it('takes chunks of plain bytes that are views into something larger', async () => {
      const bytes = new Uint8Array(Buffer.from(`..${BODY}..`)).subarray(2, 2 + Buffer.byteLength(BODY))
      const { fields, files } = await collectParts(parse(stream([bytes])), 1000)
      expect(fields).toEqual({ a: '1', b: '2', c: '3' })
      expect(files.map(({ content }) => Buffer.from(content).toString())).toEqual(['content of f', 'content of g'])
    })

    it('refuses a name that is not UTF-8, also after the name that a lenient decoder makes of it', async () => {
      const body = form(field('\ufffd', '1'))
      expect(await readAll(body)).toEqual({ parts: ['\ufffd=1'] })
      const bytes = Buffer.from(body)
      const at = bytes.indexOf('\ufffd')
      const malformed = Buffer.concat([bytes.subarray(0, at), Buffer.from([0xff]), bytes.subarray(at + 3)])
      expect(await refusal(malformed)).toBe(400)
    })

    it('names nothing of the content in its errors (threat 66)', async () => {
      for (const head of ['hunter2', 'Content-Disposition: hunter2', 'Content-Disposition: form-data; hunter2']) {
        await expect(collectParts(parseBody(part(head, 'hunter2')), 0)).rejects.not.toThrow(/hunter2/)
      }
    })
  })

  it('keeps memory constant for a file of any size (rows F11, threat 58)', MEASURED, async () => {
    const chunk = Buffer.alloc(64 * 1024, 'x')
    const source = async function* () {
      yield Buffer.from(`--${BOUNDARY}\r\n${file('f', '')[0]}\r\n\r\n`)
      for (let i = 0; i < 16 * 1024; i++) yield chunk
      yield Buffer.from(`\r\n--${BOUNDARY}--`)
    }
    const before = process.memoryUsage().rss
    let size = 0
    for await (const part of parse(source())) {
      if (part.kind === 'file') for await (const bytes of part.content) size += bytes.length
    }
    expect(size).toBe(1024 * 1024 * 1024)
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024)
  })
})

describe('collectParts', () => {
  it('collects fields by name and files in order (rows F5, U2)', async () => {
    const body = form(field('a', '1'), file('f', 'x'), field('a', '2'), file('f', 'yy'), field('__proto__', '3'))
    const { fields, files } = await collectParts(parseBody(body), 3)
    expect(Object.entries(fields)).toEqual([
      ['a', ['1', '2']],
      ['__proto__', '3'],
    ])
    expect(files.map(({ name, content }) => [name, String(content)])).toEqual([
      ['f', 'x'],
      ['f', 'yy'],
    ])
  })

  it('takes files of exactly the limit together and refuses one byte more with 413', async () => {
    const body = form(file('f', '123'), file('g', '45'))
    for (const feeding of [whole, inBytes]) {
      expect((await collectParts(parseBody(body, {}, feeding), 5)).files).toHaveLength(2)
      expect(await statusOf(() => collectParts(parseBody(body, {}, feeding), 4))).toBe(413)
    }
  })
})

it('tells header sections of one length apart that differ at their end only', async () => {
  const names = ['a', 'b', 'a'].map((end) => `${'n'.repeat(80)}${end}`)
  const head = (name: string): string => `Content-Disposition: form-data; name="f"; filename="${name}"`
  const body = lines(...names.flatMap((name) => ['--', head(name), '', 'x']), '----', '')
  const { files } = await collectParts(parseBody(body), 100)
  expect(files.map(({ filename }) => filename)).toEqual(names)
})

it('gives content that its reader may write into, also where it looks like the beginning of a delimiter', async () => {
  const head = 'Content-Disposition: form-data; name="f"; filename="x"'
  const start = Buffer.from(`--${BOUNDARY}\r\n${head}\r\n\r\n1\r\n--${BOUNDARY.slice(0, 3)}`)
  const rest = Buffer.from(`\r\n--${BOUNDARY}\r\n${head}\r\n\r\n3\r\n--${BOUNDARY}--\r\n`)
  const found: string[] = []
  for await (const part of parse(stream([start, Buffer.from('#2'), rest]))) {
    if (part.kind !== 'file') continue
    let text = ''
    for await (const chunk of part.content) {
      text += Buffer.from(chunk).toString('latin1')
      chunk.fill(0)
    }
    found.push(text)
  }
  expect(found).toEqual([`1\r\n--${BOUNDARY.slice(0, 3)}#2`, '3'])
})
