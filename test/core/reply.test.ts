import { describe, expect, it } from 'vitest'
import { contentReply, emptyReply, encodeText, type Reply, rangeReply } from '../../src/core/reply.ts'
import { fieldOf } from '../support/reply-fields.ts'

async function read({ body }: Reply): Promise<string> {
  if (typeof body === 'string') return body
  if (body instanceof Uint8Array) return Buffer.from(body).toString()
  const chunks: Uint8Array[] = []
  for await (const chunk of body!.open()) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString()
}

describe('replies', () => {
  it('count bytes', () => {
    expect(fieldOf(contentReply(200, encodeText('ä'), []), 'content-length')).toBe('2')
    expect(fieldOf(contentReply(200, encodeText('a'), []), 'CONTENT-LENGTH')).toBe('1')
    expect([typeof encodeText('a'), typeof encodeText('ä')]).toEqual(['string', 'object'])
  })

  it.each([
    [204, undefined],
    [304, undefined],
    [200, '0'],
    [412, '0'],
  ])('with no content: %i has Content-Length %j (row H22)', (status, length) => {
    expect(fieldOf(emptyReply(status, []), 'content-length')).toBe(length)
  })
})

describe('rangeReply', () => {
  const fields = ['ETag', '"Content-Type"', 'Content-Type', 'text/plain', 'Vary', 'Accept']
  const source = {
    size: 10,
    open: () => source.openRange(0, 9),
    async *openRange(first: number, last: number) {
      for (let at = first; at <= last; at++) yield Buffer.from(String(at))
    },
  }

  it.each([
    ['a string', '0123456789'],
    ['bytes', Buffer.from('0123456789')],
    ['a source', source],
  ])('cuts one range out of %s, and repeats the fields (rows H139 and H151)', async (_what, body) => {
    const reply = rangeReply([{ first: 2, last: 4 }], fields, body, 10)
    expect([reply.status, await read(reply)]).toEqual([206, '234'])
    const caching = ['Cache-Control', 'no-transform']
    expect(reply.headers).toEqual([...fields, ...caching, 'Content-Range', 'bytes 2-4/10', 'Content-Length', '3'])
    const cached = rangeReply([{ first: 2, last: 4 }], ['Cache-Control', 'private', ...fields], body, 10)
    expect(cached.headers.slice(0, 3)).toEqual(['Cache-Control', 'private, no-transform', 'ETag'])
  })

  it.each([
    ['a string', '0123456789'],
    ['bytes', Buffer.from('0123456789')],
    ['a source', source],
  ])('sends several of %s as parts whose length is known (rows H153 and H154)', async (_what, body) => {
    const reply = rangeReply(
      [
        { first: 8, last: 9 },
        { first: 0, last: 0 },
      ],
      fields,
      body,
      10,
    )
    const type = fieldOf(reply, 'content-type')!
    const boundary = type.slice('multipart/byteranges; boundary='.length)
    const text = await read(reply)
    expect(text).toBe(
      [
        // zsync takes the first line of the content away without looking at it (RFC 9110 §14.6).
        '',
        `--${boundary}`,
        'Content-Type: text/plain',
        'Content-Range: bytes 8-9/10',
        '',
        '89',
        `--${boundary}`,
        'Content-Type: text/plain',
        'Content-Range: bytes 0-0/10',
        '',
        '0',
        `--${boundary}--`,
        '',
      ].join('\r\n'),
    )
    expect(fieldOf(reply, 'content-length')).toBe(String(text.length))
    expect([fieldOf(reply, 'content-range'), fieldOf(reply, 'etag')]).toEqual([undefined, '"Content-Type"'])
  })

  it('never uses one boundary twice', () => {
    const ranges = [
      { first: 0, last: 0 },
      { first: 5, last: 5 },
    ]
    const types = Array.from({ length: 20 }, () =>
      fieldOf(rangeReply(ranges, fields, '0123456789', 10), 'content-type'),
    )
    expect(new Set(types).size).toBe(20)
  })
})
