import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { gzipSync } from 'node:zlib'
import express, { type RequestHandler } from 'express'
import { describe, expect, it } from 'vitest'
import type { Handler } from '../../src/core/handler.ts'
import { findExchange } from '../../src/core/node-handler.ts'
import { bodyParse } from '../../src/handlers/body-parse.ts'
import { digestFields } from '../../src/handlers/digest-fields.ts'
import { patch } from '../../src/handlers/patch.ts'
import { range } from '../../src/handlers/range.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { digestOf } from '../support/digests.ts'
import { runServer } from '../support/hosts.ts'
import { multipartOf } from '../writes/support.ts'
import { type Fields, serve as listen } from './serve.ts'

const JSON_TYPE = { 'Content-Type': 'application/json' }

/** Routes of an application behind the middleware. */
async function serve(piece: Handler, ...behind: readonly (Handler | RequestHandler)[]) {
  const errors: unknown[] = []
  const reached: unknown[] = []
  const app = express()
  app.use(piece, ...(behind as RequestHandler[]), async (req, res) => {
    const { body } = req
    if (body?.[Symbol.asyncIterator] === undefined) reached.push(body)
    else {
      const parts: unknown[] = []
      for await (const part of body) parts.push(part instanceof Uint8Array ? String(part) : part.name)
      reached.push(parts)
    }
    res.status(201).end()
  })
  app.use(((error, _req, res, _next) => {
    errors.push(error)
    res.status(error.status ?? 500).end()
  }) as express.ErrorRequestHandler)
  return { send: await listen(app), errors, reached }
}

describe('digest before bodyParse', () => {
  const multipart = multipartOf([{ name: 'a', content: '1' }])
  const multipartType = multipart.fields as Fields

  it.each<[string, Fields, string, unknown]>([
    ['JSON', JSON_TYPE, '{"a":1}', { a: 1 }],
    ['a form', { 'Content-Type': 'application/x-www-form-urlencoded' }, 'a=1', { a: '1' }],
    ['text', { 'Content-Type': 'text/plain' }, 'text', 'text'],
    ['empty text', { 'Content-Type': 'text/plain' }, '', ''],
    ['raw content', { 'Content-Type': 'image/x-test' }, 'bytes', ['bytes']],
    ['multipart', multipartType, String(multipart.body), ['a']],
  ])('verifies %s (RFC 9530 §2)', async (_, fields, body, parsed) => {
    const { send, reached } = await serve(digestFields(), bodyParse({ raw: true }))
    expect((await send('POST', '/', { ...fields, 'Content-Digest': digestOf('other') }, body)).status).toBe(400)
    expect(reached).toEqual([])
    expect((await send('POST', '/', { ...fields, 'Content-Digest': digestOf(body) }, body)).status).toBe(201)
    expect((await send('POST', '/', fields, body)).status).toBe(201)
    expect(reached).toEqual([parsed, parsed])
  })

  it('verifies the content of QUERY, and requires no digest of it, as in a service', async () => {
    const { send, reached } = await serve(digestFields({ required: true }), bodyParse())
    const query = (fields: Fields) => send('QUERY', '/', { ...JSON_TYPE, ...fields }, '{}')
    expect((await query({ 'Content-Digest': digestOf('other') })).status).toBe(400)
    expect((await query({ 'Content-Digest': 'malformed' })).status).toBe(400)
    expect(reached).toEqual([])
    expect((await query({ 'Content-Digest': digestOf('{}') })).status).toBe(201)
    expect((await query({})).status).toBe(201)
    expect(reached).toEqual([{}, {}])
  })

  it('has the parser verify content that is empty and has no type', async () => {
    const { send } = await serve(digestFields(), bodyParse())
    const post = (digest: string) => send('POST', '/', { 'Transfer-Encoding': 'chunked', 'Content-Digest': digest })
    expect([(await post(digestOf('other'))).status, (await post(digestOf(''))).status]).toEqual([400, 201])
  })

  it('refuses malformed fields, and where it is required content without a digest (RFC 9530 §4)', async () => {
    const { send, reached } = await serve(digestFields({ required: true }), bodyParse())
    const answer = await send('POST', '/', JSON_TYPE, '{}')
    expect([answer.status, answer.field('Want-Content-Digest')]).toEqual([400, 'sha-256=10, sha-512=9'])
    expect((await send('POST', '/', { ...JSON_TYPE, 'Repr-Digest': '?' }, '{}')).status).toBe(400)
    expect((await send('POST', '/', { ...JSON_TYPE, 'Repr-Digest': digestOf('{}') }, '{}')).status).toBe(201)
    expect((await send('GET', '/')).status).toBe(201)
    expect((await send('DELETE', '/')).status).toBe(201)
    expect(reached).toEqual([{}, undefined, undefined])
    expect((await send('DELETE', '/', { ...JSON_TYPE, 'Content-Length': '2' }, '{}')).status).toBe(400)
    expect((await send('POST', '/')).status).toBe(400)
    expect(reached).toHaveLength(3)
  })

  it('requires a digest also behind a middleware that has begun to verify what a trailer will state', async () => {
    const { send, reached } = await serve(digestFields(), digestFields({ required: true }), bodyParse())
    const announced = { ...JSON_TYPE, 'Transfer-Encoding': 'chunked', Trailer: 'Content-Digest' }
    const answer = await send('POST', '/', announced, '{}')
    expect([answer.status, answer.field('Want-Content-Digest')]).toEqual([400, 'sha-256=10, sha-512=9'])
    expect(reached).toEqual([])
    expect((await send('POST', '/', { ...announced, 'Content-Digest': digestOf('{}') }, '{}')).status).toBe(201)
  })
})

describe('digest before patch', () => {
  it('verifies the patch document, and nothing is written otherwise (RFC 9530 §3.2)', async () => {
    const written: string[] = []
    const piece = patch({
      read: () => ({ document: { a: 1 }, entityTag: '"1"' }),
      write: ({ text }) => void written.push(text),
    })
    const { send } = await serve(digestFields(), piece)
    const type = { 'Content-Type': 'application/merge-patch+json' }
    expect((await send('PATCH', '/', { ...type, 'Repr-Digest': digestOf('{}') }, '{"a":2}')).status).toBe(400)
    expect(written).toEqual([])
    expect((await send('PATCH', '/', { ...type, 'Repr-Digest': digestOf('{"a":2}') }, '{"a":2}')).status).toBe(200)
    expect(written).toEqual(['{"a":2}'])
  })
})

describe('digest before a service', () => {
  it('leaves the service its own definitions', async () => {
    const resources = { '/docs/{name}': document() }
    const { send } = await serve(digestFields(), createResourceService(memoryStore(), { resources, https: 'optional' }))
    expect((await send('PUT', '/docs/a', { 'Content-Digest': digestOf('b') }, 'a')).status).toBe(400)
    expect((await send('PUT', '/docs/a', { 'Content-Digest': digestOf('a') }, 'a')).status).toBe(201)
  })

  it('has the service miss what is required, and not in the trailer that was announced', async () => {
    const service = createResourceService(memoryStore())
    const verified: unknown[] = []
    const send = await listen((req, res) =>
      digestFields({ required: true })(req, res, () => {
        verified.push(findExchange(req)!.verifier, service.createExchange(req, res)!.verifier)
        res.end()
      }),
    )
    await send('PUT', '/docs/a', { 'Transfer-Encoding': 'chunked', Trailer: 'Content-Digest' }, 'a')
    expect(verified).toEqual([expect.anything(), verified[0]])
  })
})

describe('digest behind a parser of the host', () => {
  it('verifies the bytes that the parser has left', async () => {
    const app = express().use(express.raw({ type: '*/*' }), digestFields() as unknown as RequestHandler, (_, res) => {
      res.status(201).end()
    })
    const send = await listen(app)
    expect((await send('POST', '/', { ...JSON_TYPE, 'Content-Digest': digestOf('b') }, 'a')).status).toBe(400)
    expect((await send('POST', '/', { ...JSON_TYPE, 'Content-Digest': digestOf('a') }, 'a')).status).toBe(201)
  })

  it('lets coded content pass that the parser has decoded: its digest is of the coded bytes (RFC 9530 §2)', async () => {
    const app = express().use(express.raw({ type: '*/*' }), digestFields() as unknown as RequestHandler, (_, res) => {
      res.status(201).end()
    })
    const send = await listen(app)
    const coded = gzipSync('a')
    const fields = { 'Content-Encoding': 'gzip', 'Content-Digest': digestOf(coded) }
    expect((await send('POST', '/', { ...JSON_TYPE, ...fields }, coded)).status).toBe(201)
  })

  it('lets a parsed value pass, but fails where a digest is required', async () => {
    const serveBehind = async (piece: Handler) => {
      const errors: Error[] = []
      const app = express().use(express.json(), piece as unknown as RequestHandler, (_, res) => {
        res.status(201).end()
      })
      app.use(((error, _req, res, _next) => {
        errors.push(error)
        res.status(500).end()
      }) as express.ErrorRequestHandler)
      return { send: await listen(app), errors }
    }
    const fields = { ...JSON_TYPE, 'Content-Digest': digestOf('other') }
    expect((await (await serveBehind(digestFields())).send('POST', '/', fields, '{}')).status).toBe(201)
    const { send, errors } = await serveBehind(digestFields({ required: true }))
    expect((await send('POST', '/', fields, '{}')).status).toBe(500)
    expect(errors[0]).toMatchObject({ name: 'TypeError', message: expect.stringMatching(/before the body parser/) })
  })
})

describe('digest before range', () => {
  const BOTH = { 'Want-Repr-Digest': 'sha-256=1', 'Want-Content-Digest': 'sha-256=1' }

  it('has answers carry the digests that are wanted (RFC 9530 §4)', async () => {
    const source = { contentType: 'text/plain', entityTag: '"1"', content: 'abcdefghij' }
    const { send } = await serve(
      digestFields(),
      range(() => source),
    )
    const fieldsOf = async (method: string, fields: Fields) => {
      const answer = await send(method, '/', fields)
      return [answer.status, answer.field('Repr-Digest'), answer.field('Content-Digest'), answer.field('Cache-Control')]
    }
    const whole = digestOf(source.content)
    expect(await fieldsOf('GET', BOTH)).toEqual([200, whole, whole, 'no-cache, no-transform'])
    expect(await fieldsOf('HEAD', BOTH)).toEqual([200, whole, undefined, 'no-cache, no-transform'])
    const part = [206, whole, digestOf('abc'), 'no-cache, no-transform']
    expect(await fieldsOf('GET', { ...BOTH, Range: 'bytes=0-2' })).toEqual(part)
    expect(await fieldsOf('GET', { ...BOTH, 'If-None-Match': '"1"' })).toEqual([304, undefined, undefined, 'no-cache'])
    expect(await fieldsOf('GET', {})).toEqual([200, undefined, undefined, 'no-cache'])
  })

  it('has answers carry the digest of what they send, where one source is given again with other content', async () => {
    const source = { contentType: 'text/plain', content: 'before' }
    const { send } = await serve(
      digestFields(),
      range(() => source),
    )
    for (const content of ['before', 'after']) {
      source.content = content
      const answer = await send('GET', '/', BOTH)
      expect([answer.field('Repr-Digest'), String(answer.body)]).toEqual([digestOf(content), content])
    }
  })

  it('takes the digest of content that is read in parts from the source, and never reads it for that', async () => {
    const bytes = Buffer.alloc(200_000, 'x')
    const sha256 = Buffer.from(digestOf(bytes).slice('sha-256=:'.length, -1), 'base64')
    let read = 0
    const content = {
      size: bytes.length,
      async *open(first: number, last: number) {
        read += last - first + 1
        yield bytes.subarray(first, last + 1)
      },
    }
    const known = await serve(
      digestFields(),
      range(() => ({ contentType: 'text/plain', content, sha256 })),
    )
    const whole = await known.send('HEAD', '/', BOTH)
    expect([whole.field('Repr-Digest'), read]).toEqual([digestOf(bytes), 0])
    const unknown = await serve(
      digestFields(),
      range(() => ({ contentType: 'text/plain', content })),
    )
    const part = await unknown.send('GET', '/', { ...BOTH, Range: 'bytes=0-9' })
    expect([part.field('Repr-Digest'), part.field('Content-Digest')]).toEqual([undefined, digestOf('x'.repeat(10))])
  })

  it('keeps the Cache-Control of the host', async () => {
    const { send } = await serve(
      digestFields(),
      ((_, res, next) => {
        res.setHeader('Cache-Control', 'max-age=60')
        next()
      }) as RequestHandler,
      range(() => ({ contentType: 'text/plain', content: 'a' })),
    )
    expect((await send('GET', '/', BOTH)).field('Cache-Control')).toBe('max-age=60, no-transform')
  })
})

describe('digestFields', () => {
  it('refuses options that it does not have', () => {
    expect(() => digestFields({ require: true } as never)).toThrow(TypeError)
    expect(() => digestFields({ required: 'yes' } as never)).toThrow(TypeError)
  })
})

it.each(['http', 'http2'] as const)('a request without content needs no digest: %s', async (scheme) => {
  const guard = digestFields({ required: true })
  const listener = (...[req, res]: Parameters<Handler>): void => guard(req, res, () => res.writeHead(204).end())
  const host = await runServer(scheme === 'http' ? createServer(listener) : createHttp2Server(listener), scheme)
  try {
    expect((await host.send({ method: 'DELETE', path: '/' })).status).toBe(204)
  } finally {
    await host.close()
  }
})
