import busboy from 'busboy'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULT_LIMITS } from '../../src/body-types/limits.ts'
import { collectParts, parseMultipart } from '../../src/body-types/multipart.ts'
import { splitMultipart } from '../../src/body-types/multipart-parser.ts'
import { isHttpError } from '../../src/core/errors.ts'
import { cleanFilename } from '../../src/protocol/content-disposition.ts'
import { parseMediaType } from '../../src/protocol/media-type.ts'
import { inBytes, stream } from '../body-types/feed.ts'
import { BODIES } from '../body-types/multipart-bodies.ts'

const TYPE = parseMediaType('multipart/form-data; boundary=b0undary')!

interface Part {
  readonly name: string
  readonly filename: string | undefined
  readonly content: Buffer
}

/** Cuts bytes at random places. */
function cut(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = []
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes.length === 0 ? bytes.length : sizes[i % sizes.length]!
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  return chunks
}

/** Every part in order: name, file name, content. */
async function read(chunks: readonly Uint8Array[]): Promise<unknown[]> {
  const parts: unknown[] = []
  for await (const part of parseMultipart(stream(chunks), TYPE, DEFAULT_LIMITS)) {
    if (part.kind === 'field') parts.push([part.name, part.value])
    else {
      const content: Uint8Array[] = []
      for await (const chunk of part.content) content.push(chunk)
      parts.push([part.name, part.filename, Buffer.concat(content).toString('latin1')])
    }
  }
  return parts
}

/** Every part, or the status of the refusal; anything else that is thrown is thrown on. */
async function outcomeOf(chunks: readonly Uint8Array[]): Promise<unknown> {
  try {
    return await read(chunks)
  } catch (error) {
    if (isHttpError(error)) return error.status
    throw error
  }
}

/** The same of a form that is at hand as a whole. */
function outcomeOfWhole(bytes: Uint8Array): unknown {
  try {
    return splitMultipart(bytes, TYPE, DEFAULT_LIMITS).map((part) =>
      part.kind === 'field'
        ? [part.name, part.value]
        : [part.name, part.filename, Buffer.from(part.content).toString('latin1')],
    )
  } catch (error) {
    if (isHttpError(error)) return error.status
    throw error
  }
}

/** Every part as busboy reads it, another reader: first the fields, then the files. */
function readByBusboy(chunks: readonly Uint8Array[]): Promise<unknown[]> {
  const fields: unknown[] = []
  const files: unknown[] = []
  return new Promise((resolve, reject) => {
    const reader = busboy({
      headers: { 'content-type': 'multipart/form-data; boundary=b0undary' },
      limits: { fieldSize: Number.POSITIVE_INFINITY },
      defCharset: 'utf8',
    })
    reader.on('field', (name, value) => fields.push([name, value]))
    reader.on('file', (name, content) => {
      const file: Uint8Array[] = []
      content.on('data', (chunk: Uint8Array) => file.push(chunk))
      content.on('end', () => files.push([name, Buffer.concat(file).toString('latin1')]))
    })
    reader.on('error', reject)
    reader.on('close', () => resolve([...fields, ...files]))
    for (const chunk of chunks) reader.write(chunk)
    reader.end()
  })
}

/** As browsers write it (HTML Standard, multipart/form-data encoding algorithm). */
function format(parts: readonly Part[]): Buffer {
  const quote = (name: string) => name.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22')
  const chunks = parts.flatMap(({ name, filename, content }) => [
    Buffer.from(
      `--b0undary\r\nContent-Disposition: form-data; name="${quote(name)}"${
        filename === undefined ? '' : `; filename="${quote(filename)}"\r\nContent-Type: image/png`
      }\r\n\r\n`,
    ),
    content,
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...chunks, Buffer.from('--b0undary--\r\n')])
}

// Browsers escape neither "%" nor a backslash, so what they mean is anybody's guess; control characters are refused.
const name = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  .map((text) => text.replace(/[%\\\p{Cc}]/gu, '\r\n"; ') || 'x')
const tricky = fc.constantFrom(
  '\r',
  '\n',
  '\r\n',
  '--',
  '\r\n--',
  '\r\n--b0undar',
  '\r\n--b0undary',
  'y',
  '-',
  ' ',
  'X',
  'ü',
)
// RFC 2046 §5.1.1: no line of the content may begin with the boundary.
const isSafe = (content: string) => !`\r\n${content}`.includes('\r\n--b0undary')
const textContent = fc
  .array(fc.oneof({ weight: 3, arbitrary: tricky }, fc.string({ unit: 'grapheme' })))
  .map((tokens) => tokens.join(''))
  .filter(isSafe)
const byteContent = fc
  .array(
    fc.oneof(
      tricky.map((text) => Buffer.from(text)),
      fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    ),
  )
  .map((chunks) => Buffer.concat(chunks))
  .filter((bytes) => isSafe(bytes.toString('latin1')))
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ name, filename: fc.constant(undefined), content: textContent.map((text) => Buffer.from(text)) }),
  fc.record({ name, filename: fc.oneof(fc.constant(''), name), content: byteContent }),
)
const parts = fc.array(part, { maxLength: 6 })
const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 10 })

describe('parseMultipart', () => {
  it('reads back any list of parts, however it is cut (RFC 7578, rows F3 to F5)', async () => {
    await fc.assert(
      fc.asyncProperty(parts, sizes, async (parts, sizes) => {
        const expected = parts.map(({ name, filename, content }) =>
          filename === undefined
            ? [name, content.toString()]
            : [name, cleanFilename(filename) || undefined, content.toString('latin1')],
        )
        expect(await read(cut(format(parts), sizes))).toEqual(expected)
        expect(outcomeOfWhole(format(parts)), 'as a whole').toEqual(expected)
      }),
      { numRuns: 500 },
    )
  })

  it('reads what busboy reads, however it is cut (RFC 7578)', async () => {
    const plainName = fc.stringMatching(/^[a-z]{1,8}$/)
    const plain: fc.Arbitrary<Part> = fc.oneof(
      fc.record({
        name: plainName,
        filename: fc.constant(undefined),
        content: textContent.map((text) => Buffer.from(text)),
      }),
      fc.record({ name: plainName, filename: plainName, content: byteContent }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(plain, { minLength: 1, maxLength: 6 }), sizes, async (parts, sizes) => {
        const chunks = cut(format(parts), sizes)
        const given = (await read(chunks)) as (readonly string[])[]
        const fields = given.filter((part) => part.length === 2)
        const files = given.filter((part) => part.length === 3).map(([name, , content]) => [name, content])
        expect([...fields, ...files]).toEqual(await readByBusboy(chunks))
      }),
      { numRuns: 500 },
    )
  })

  it('throws nothing but HttpError for a body that was tampered with, and the same however it is cut', async () => {
    const body = fc.oneof(
      parts.map(format),
      fc.constantFrom(...BODIES.map(([, body]) => Buffer.from(body as string)).filter(({ length }) => length < 1000)),
    )
    const edit = fc.tuple(
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.nat({ max: 12 }),
      fc.oneof(
        tricky.map((text) => Buffer.from(text)),
        fc
          .constantFrom('"', ';', ':', '=', '\0', '\\', '--b0undary\r\n', 'filename*=', 'charset=x')
          .map((text) => Buffer.from(text)),
        fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)),
      ),
    )
    await fc.assert(
      fc.asyncProperty(body, fc.array(edit, { minLength: 1, maxLength: 4 }), sizes, async (body, edits, sizes) => {
        let bytes = body
        for (const [place, removed, inserted] of edits) {
          const at = Math.floor(place * bytes.length)
          bytes = Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at + removed)])
        }
        const outcome = await outcomeOf([bytes])
        if (typeof outcome === 'number') expect([400, 413, 415]).toContain(outcome)
        expect(await outcomeOf(cut(bytes, sizes))).toEqual(outcome)
        expect(await outcomeOf(inBytes(bytes))).toEqual(outcome)
        expect(outcomeOfWhole(bytes), 'as a whole').toEqual(outcome)
      }),
      { numRuns: 1500 },
    )
  })

  it('holds no bytes back: collected content is as long as what was sent', async () => {
    await fc.assert(
      fc.asyncProperty(byteContent, sizes, async (content, sizes) => {
        const body = format([{ name: 'f', filename: 'x', content }])
        const { files } = await collectParts(parseMultipart(stream(cut(body, sizes)), TYPE, DEFAULT_LIMITS), 1e6)
        expect(Buffer.compare(files[0]!.content, content)).toBe(0)
      }),
    )
  })
})
