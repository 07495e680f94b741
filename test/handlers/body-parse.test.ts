import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import express4 from 'express4'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import Koa2 from 'koa2'
import { afterEach, describe, expect, it } from 'vitest'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import { honoMiddleware } from '../../src/adapters/hono.ts'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import type { FormPart } from '../../src/body-types/form.ts'
import { isHttpError, RequestAborted } from '../../src/core/errors.ts'
import { type BodyParseOptions, bodyParse, type MultipartBody } from '../../src/handlers/body-parse.ts'
import { gather } from '../body-types/feed.ts'
import { BODIES, BOUNDARY, type Expected, part } from '../body-types/multipart-bodies.ts'
import type { Answer } from '../support/answer.ts'
import { formatRequest } from '../support/ask.ts'
import { type RunningHost, runListener, runServer } from '../support/hosts.ts'
import { MEASURED } from '../support/measured.ts'
import { startProcessorClock } from '../support/processor-time.ts'
import { openRawClient } from '../wire/raw-client.ts'

const running: RunningHost[] = []
afterEach(async () => {
  for (const host of running.splice(0)) await host.close()
})

type Body = { readonly body?: unknown }
/** What a route does with the body that it finds; its result is the answer. */
type Route = (body: unknown, req: IncomingMessage) => unknown

async function describePart(part: FormPart): Promise<string> {
  if (part.kind === 'field') return `${part.name}=${part.value}`
  const content = await gather(part.content)
  return [part.name, part.filename ?? '-', part.contentType, content.toString('latin1')].join('|')
}

/** All parts before the end or the refusal, as BODIES has them. */
async function readParts(body: unknown): Promise<Expected> {
  const parts: string[] = []
  try {
    for await (const part of body as MultipartBody) parts.push(await describePart(part))
    return { parts }
  } catch (error) {
    if (isHttpError(error)) return { parts, status: error.status }
    throw error
  }
}

const describeBody: Route = async (body) => {
  if (body === undefined) return { none: true }
  if (Object(body) === body && Symbol.asyncIterator in (body as object)) return readParts(body)
  return { body }
}

/** Answers with what the route makes of the body, or with the message of what it throws. */
function answerWith(route: Route) {
  return async (req: IncomingMessage, res: ServerResponse, error?: unknown): Promise<void> => {
    res.setHeader('Content-Type', 'application/json')
    try {
      if (error !== undefined) throw error
      res.end(JSON.stringify(await route((req as Body).body, req)))
    } catch (error) {
      res.statusCode = 500
      res.end(JSON.stringify({ failed: String(error) }))
    }
  }
}

type Upstream = 'json' | 'urlencoded' | 'text' | 'raw' | 'gone'
type Start = (options: BodyParseOptions | undefined, route: Route, upstream?: Upstream) => Promise<RunningHost>

const drain = async (req: IncomingMessage) => {
  for await (const _ of req);
}

function startExpress(create: typeof express): Start {
  return (options, route, upstream) => {
    const app = create()
    if (upstream === 'gone') app.use((req, _, next) => void drain(req).then(() => next()))
    else if (upstream !== undefined) app.use(create[upstream]({ type: '*/*', extended: true } as never))
    app.use(bodyParse(options) as unknown as express.RequestHandler)
    app.use((req, res) => answerWith(route)(req, res))
    app.use(((error, req, res, _next) => answerWith(route)(req, res, error)) as express.ErrorRequestHandler)
    return runServer(createServer(app))
  }
}

function startKoa(App: typeof Koa): Start {
  return (options, route, upstream) => {
    const app = new App()
    app.silent = true
    app.use(async (context, next) => {
      try {
        if (upstream !== undefined) await drain(context.req)
        if (upstream === 'json') Object.assign(context.request, { body: { upstream: true } })
        await next()
      } catch (error) {
        context.status = 500
        context.body = { failed: String(error) }
      }
    })
    app.use(koaMiddleware(bodyParse(options)) as unknown as Koa.Middleware)
    app.use(async (context) => {
      context.body = await route((context.request as unknown as Body).body, context.req)
    })
    return runServer(createServer(app.callback()))
  }
}

const startPlain: Start = (options, route, upstream) => {
  const parse = bodyParse(options)
  return runListener(async (req, res) => {
    if (upstream !== undefined) await drain(req)
    if (upstream === 'json') Object.assign(req, { body: { upstream: true } })
    parse(req, res, (error) => answerWith(route)(req, res, error))
  })
}

const startFastify: Start = async (options, route, upstream) => {
  const app = fastify()
  app.setErrorHandler((error, _request, reply) => reply.code(500).send({ failed: String(error) }))
  app.addHook('onRequest', async ({ raw }) => {
    if (upstream !== undefined) await drain(raw)
    if (upstream === 'json') Object.assign(raw, { body: { upstream: true } })
  })
  await app.register(fastifyPlugin(bodyParse(options)))
  app.all('/', async ({ body, raw }) => JSON.stringify(await route(body, raw)))
  await app.ready()
  return runServer(app.server)
}

const startHono: Start = (options, route, upstream) => {
  const app = new Hono<{ Bindings: { incoming: IncomingMessage & { body?: unknown } } }>()
  app.onError((error, context) => context.json({ failed: String(error) }, 500))
  app.use('*', async ({ env: { incoming } }, next) => {
    if (upstream !== undefined) await drain(incoming)
    if (upstream === 'json') Object.assign(incoming, { body: { upstream: true } })
    await next()
  })
  app.use('*', honoMiddleware(bodyParse(options)))
  app.all('/', async ({ env: { incoming }, body }) => body(JSON.stringify(await route(incoming.body, incoming))))
  return runServer(createAdaptorServer({ fetch: app.fetch }) as Server)
}

const HOSTS: Readonly<Record<string, Start>> = {
  'plain http': startPlain,
  'Express 4': startExpress(express4 as unknown as typeof express),
  'Express 5': startExpress(express),
  'Koa 2': startKoa(Koa2 as unknown as typeof Koa),
  'Koa 3': startKoa(Koa),
  Fastify: startFastify,
  Hono: startHono,
}

async function start(
  options?: BodyParseOptions,
  { host = 'plain http', route = describeBody, upstream }: { host?: string; route?: Route; upstream?: Upstream } = {},
): Promise<RunningHost> {
  const server = await HOSTS[host]!(options, route, upstream)
  running.push(server)
  return server
}

const parsed = ({ status, body }: Answer) => ({ status, ...(JSON.parse(body.toString()) as object) })
const post = (server: RunningHost, type: string | undefined, body: string | Uint8Array, headers = {}) =>
  server.send({
    method: 'POST',
    path: '/',
    headers: { ...(type === undefined ? {} : { 'Content-Type': type }), ...headers },
    body,
  })
const MULTIPART = `multipart/form-data; boundary=${BOUNDARY}`
const chunked = { 'Transfer-Encoding': 'chunked' }

describe.each([
  ['Express 4', express4 as unknown as typeof express],
  ['Express 5', express],
])('parsers of %s behind bodyParse', (_, host) => {
  it.each([
    ['application/json', '{"a":[1]}', { a: [1] }],
    ['application/x-www-form-urlencoded', 'a=1', { a: '1' }],
    ['text/plain', 'abc', 'abc'],
    ['text/plain', '', ''],
  ])('leave to the route what it has made of %s', async (type, body, expected) => {
    const app = host()
    app.use(bodyParse(), host.json(), host.urlencoded({ extended: false }), host.text(), host.raw({ type: '*/*' }))
    app.post('/', (req, res) => void res.json(req.body))
    const server = await runServer(createServer(app))
    running.push(server)
    const answer = await post(server, type, body)
    expect([answer.status, JSON.parse(answer.body.toString())]).toEqual([200, expected])
  })
})

describe('bodyParse', () => {
  describe.each(Object.keys(HOSTS))('on %s', (host) => {
    it('parses every kind of content by its Content-Type', async () => {
      const server = await start(undefined, { host })
      const rows: [string, string, unknown][] = [
        ['application/json', '{"a":[1]}', { body: { a: [1] } }],
        ['application/x-www-form-urlencoded', 'a=1&b=2&a=%C3%BC', { body: { a: ['1', 'ü'], b: '2' } }],
        ['text/plain', 'ü', { body: 'ü' }],
        [
          MULTIPART,
          part('Content-Disposition: form-data; name="f"; filename="x"', 'PNG'),
          { parts: ['f|x|application/octet-stream|PNG'] },
        ],
      ]
      for (const [type, body, expected] of rows) {
        expect(parsed(await post(server, type, body)), type).toEqual({ status: 200, ...(expected as object) })
        expect(parsed(await post(server, type, body, chunked)), type).toEqual({ status: 200, ...(expected as object) })
      }
    })

    it('answers refusals with a problem document, and the route is not called (E1)', async () => {
      let called = 0
      const server = await start(undefined, { host, route: () => called++ })
      for (const [type, body, status] of [
        ['application/json', '{"a":', 400],
        ['application/json', '{"a":1e400}', 422],
        ['application/json', ' '.repeat(8 * 1024 * 1024) + '1', 413],
        ['image/png', 'x', 415],
        ['multipart/form-data', 'x', 400],
      ] as const) {
        const answer = await post(server, type, body)
        expect(answer.status).toBe(status)
        expect(answer.headers['content-type']).toBe('application/problem+json')
        expect(parsed(answer)).toMatchObject({ status })
      }
      expect(called).toBe(0)
    })

    it('passes a request without content on as it is', async () => {
      const server = await start(undefined, { host })
      for (const method of ['GET', 'DELETE', 'POST']) {
        const { body } = await server.send({ method, path: '/' })
        expect(JSON.parse(body.toString())).toEqual({ none: true })
      }
    })

    it.each<[string, readonly string[]]>([
      ['Content-Length 0', ['Content-Length: 0']],
      ['an empty chunked content', ['Transfer-Encoding: chunked']],
      ['no length', []],
    ])('decides empty content by its type, with %s (RFC 9110 §8.3, RFC 8259 §2)', async (kind, framing) => {
      const route: Route = (body, req) => {
        const isStream = Object(body) === body && Symbol.asyncIterator in (body as object)
        if (body === undefined) return { none: true, type: req.headers['content-type'] }
        return isStream ? readParts(body) : { body }
      }
      const server = await start(undefined, { host, route })
      const rows: [string | undefined, object][] = [
        ['application/json', { status: 400 }],
        ['application/merge-patch+json', { status: 400 }],
        ['application/x-www-form-urlencoded', { status: 200, body: {} }],
        ['text/plain', { status: 200, body: '' }],
        [MULTIPART, { status: 200, parts: [], answered: 400 }],
        ['image/png', { status: 415 }],
        [undefined, { status: 200, none: true }],
      ]
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
        for (const [type, expected] of rows) {
          // RFC 9110 §8.6: DELETE without a length has no content, whatever its Content-Type says.
          const isAbsent = kind === 'no length' && method === 'DELETE'
          const client = await openRawClient(server.port)
          const fields = [...framing, ...(type === undefined ? [] : [`Content-Type: ${type}`])]
          const end = kind === 'an empty chunked content' ? '0\r\n\r\n' : undefined
          client.send(formatRequest({ method, target: '/', fields, ...(end !== undefined && { body: end }) }))
          const { status, body } = await client.read(method)
          client.socket.destroy()
          const { status: answered, ...told } = JSON.parse(body.toString()) as { status?: number }
          const found = status === 200 ? { status, ...told, ...(answered !== undefined && { answered }) } : { status }
          const wanted = isAbsent ? { status: 200, none: true, ...(type !== undefined && { type }) } : expected
          expect(found, `${method} ${type}`).toEqual(wanted)
        }
      }
    })

    it('leaves content that a parser before it has consumed', async () => {
      const server = await start(undefined, { host, upstream: 'json' })
      const { status, body } = await post(server, 'application/json', '{"upstream":true}')
      expect([status, JSON.parse(body.toString())]).toEqual([200, { body: { upstream: true } }])
    })

    it('says so when the content was consumed and is gone, and does not hang', async () => {
      const server = await start(undefined, { host, upstream: 'gone' })
      const answer = await post(server, 'application/json', '{"a":1}')
      expect(answer.status).toBe(500)
      expect(answer.body.toString()).toContain('was read before http-resource-service saw it')
    })

    it('reads parts with back-pressure and refuses in the midst of a file (threat 71)', async () => {
      const server = await start({ limits: { fileSize: 5 } }, { host })
      const file = (content: string) => part('Content-Disposition: form-data; name="f"; filename="x"', content)
      expect(parsed(await post(server, MULTIPART, file('12345')))).toEqual({
        status: 200,
        parts: ['f|x|application/octet-stream|12345'],
      })
      expect(parsed(await post(server, MULTIPART, file('123456')))).toEqual({ status: 413, parts: [] })
      expect(parsed(await post(server, MULTIPART, file('x'.repeat(3_000_000))))).toEqual({ status: 413, parts: [] })
    })

    it('drops what a route leaves unread: the answer arrives, and the connection goes on', async () => {
      const server = await start(undefined, { host, route: () => ({ done: true }) })
      const client = await openRawClient(server.port)
      const body = part('Content-Disposition: form-data; name="f"; filename="x"', 'x'.repeat(1_000_000))
      for (let i = 0; i < 3; i++) {
        client.send(
          formatRequest({
            method: 'POST',
            target: '/',
            fields: [`Content-Type: ${MULTIPART}`],
            body: Buffer.from(body),
          }),
        )
        expect((await client.read('POST')).status).toBe(200)
      }
      client.socket.destroy()
    })

    it('throws in the route when the client goes away midway (row F12)', async () => {
      let settle: (outcome: unknown) => void = () => {}
      const outcome = new Promise((resolve) => (settle = resolve))
      const server = await start(undefined, {
        host,
        route: async (body) => {
          try {
            for await (const part of body as MultipartBody) {
              if (part.kind === 'file') {
                client.socket.destroy()
                await gather(part.content)
              }
            }
            settle('whole')
          } catch (error) {
            settle(error)
          }
        },
      })
      const client = await openRawClient(server.port)
      const head = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\nabc`
      const fields = [`Content-Type: ${MULTIPART}`, 'Content-Length: 1000000']
      client.send(formatRequest({ method: 'POST', target: '/', fields, body: Buffer.from(head) }))
      expect(await outcome).toBeInstanceOf(RequestAborted)
    })
  })

  describe.each(['Express 4', 'Express 5'])('behind the parsers of %s', (host) => {
    it.each([
      ['json', 'application/json', '{"a":1}', { a: 1 }],
      ['urlencoded', 'application/x-www-form-urlencoded', 'a=1', { a: '1' }],
      ['text', 'text/plain', 'abc', 'abc'],
    ] as const)('leaves what express.%s has parsed', async (upstream, type, content, body) => {
      const server = await start(undefined, { host, upstream })
      expect(parsed(await post(server, type, content))).toEqual({ status: 200, body })
    })

    it('leaves the bytes of express.raw', async () => {
      const route: Route = (body) => Buffer.isBuffer(body) && body.toString()
      const server = await start(undefined, { host, upstream: 'raw', route })
      expect((await post(server, MULTIPART, 'abc')).body.toString()).toBe('"abc"')
    })
  })

  it('reads every multipart body as it should, whole and byte by byte (rows F1 to F14, threats 70 to 77)', async () => {
    const server = await start({ limits: { fileSize: 1e6 } })
    for (const [description, body, expectation] of BODIES) {
      const bytes = typeof body === 'string' ? Buffer.from(body) : body
      const expected: Expected =
        typeof expectation === 'number'
          ? { parts: [], status: expectation }
          : 'parts' in expectation
            ? expectation
            : { parts: expectation }
      const outcome = { status: 200, ...expected }
      const fields = bytes.length === 0 ? chunked : {}
      expect(parsed(await post(server, MULTIPART, bytes, fields)), description).toEqual(outcome)
      // A chunk for every byte: the content reaches the parser in pieces of one byte.
      const chunks = Array.from(bytes, (byte) => Buffer.from([0x31, 0x0d, 0x0a, byte, 0x0d, 0x0a]))
      const client = await openRawClient(server.port)
      client.send(
        formatRequest({
          method: 'POST',
          target: '/',
          fields: [`Content-Type: ${MULTIPART}`, 'Transfer-Encoding: chunked'],
          body: Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]),
        }),
      )
      const answer = await client.read('POST')
      client.socket.destroy()
      expect({ status: answer.status, ...(JSON.parse(answer.body.toString()) as object) }, description).toEqual(outcome)
    }
  })

  it.each([
    ['application/json; charset=utf-8', '{}', 200],
    ['Application/JSON', '{}', 200],
    ['application/json\t; x=1', '{}', 200],
    ['application/vnd.x+json', '{}', 200],
    ['text/json', '{}', 200],
    ['application/json', '', 400],
    ['application/json', '\ufeff{}', 200],
    ['application/json; charset=utf-16', '{}', 415],
    ['application/json; charset=iso-8859-1', '{}', 415],
    ['application/jsonx', '{}', 415],
    ['application/json, text/plain', '{}', 400],
    ['application', '{}', 400],
    ['text/plain; charset=iso-8859-1', 'x', 200],
    ['text/plain; charset=utf-7', 'x', 415],
    ['text/html', 'x', 415],
    ['application/x-www-form-urlencoded; charset=iso-8859-1', 'a=1', 415],
    ['multipart/mixed; boundary=x', '--x--', 415],
    ['multipart/form-data; boundary=', 'x', 400],
    [`multipart/form-data; boundary=${'x'.repeat(71)}`, 'x', 400],
    [undefined, 'x', 415],
  ])('answers content of type %j: %j with %i (threats 65, 67, 68, U6, U9)', async (type, body, status) => {
    const server = await start()
    expect((await post(server, type, body, body === '' ? chunked : {})).status).toBe(status)
  })

  it('refuses a repeated Content-Type with 400', async () => {
    const server = await start()
    const client = await openRawClient(server.port)
    const fields = ['Content-Type: text/plain', 'Content-Type: application/json']
    client.send(formatRequest({ method: 'POST', target: '/', fields, body: '{}' }))
    expect((await client.read('POST')).status).toBe(400)
    client.socket.destroy()
  })

  it('names what it accepts with a 415 (RFC 9110 §15.5.16)', async () => {
    const server = await start({ accept: ['json', 'multipart'] })
    const answer = await post(server, 'text/plain', 'x')
    expect(answer.status).toBe(415)
    expect(answer.headers['accept']).toBe('application/json, multipart/form-data')
  })

  it('decides empty content with a coding, and empty raw content, the same with every framing', async () => {
    const route: Route = async (body) => (body === undefined ? 'none' : (await gather(body as never)).length)
    const server = await start({ raw: true, accept: ['json'], contentCodings: ['gzip'] }, { route })
    const gzip = { 'Content-Encoding': 'gzip' }
    for (const framing of [chunked, { 'Content-Length': '0' }, {}]) {
      const raw = await post(server, 'image/png', '', framing)
      expect([raw.status, raw.body.toString()]).toEqual([200, '0'])
      const coded = await post(server, 'application/json', '', { ...gzip, ...framing })
      expect(coded.status).toBe(400)
    }
  })

  it('ignores the content of GET and HEAD (RFC 9110 §9.3.1)', async () => {
    const server = await start()
    const answer = await server.send({ path: '/', headers: { 'Content-Type': 'image/png', ...chunked }, body: 'x' })
    expect(parsed(answer)).toEqual({ status: 200, none: true })
  })

  it('gives any other content as a stream with raw, and refuses it without', async () => {
    const route: Route = async (body) => (await gather(body as AsyncIterable<Uint8Array>)).toString()
    const server = await start({ raw: true, accept: ['json'] }, { route })
    expect((await post(server, 'image/png', 'x'.repeat(1000))).body.toString()).toBe(`"${'x'.repeat(1000)}"`)
  })

  it('gives raw content once: who has looked at its first bytes reads on behind them', async () => {
    const route: Route = async (body) => {
      const content = body as AsyncIterable<Uint8Array>
      const first = await content[Symbol.asyncIterator]().next()
      return [(first.value as Uint8Array).length > 0, first.value.length + (await gather(content)).length]
    }
    const server = await start({ raw: true, accept: ['json'] }, { route })
    expect(
      await post(server, 'image/png', 'x'.repeat(1_000_000)).then(({ body }) => JSON.parse(body.toString())),
    ).toEqual([true, 1_000_000])
  })

  it('holds its limits exactly: n passes, n + 1 is 413', async () => {
    const server = await start({ limits: { bodySize: 10, formFields: 2 } })
    const status = async (type: string, body: string, headers = {}) => (await post(server, type, body, headers)).status
    for (const headers of [{}, chunked]) {
      expect(await status('application/json', '"12345678"', headers)).toBe(200)
      expect(await status('application/json', '"123456789"', headers)).toBe(413)
      expect(await status('text/plain', '1234567890', headers)).toBe(200)
      expect(await status('text/plain', '12345678901', headers)).toBe(413)
      expect(await status('application/x-www-form-urlencoded', 'a=1&b=2', headers)).toBe(200)
      expect(await status('application/x-www-form-urlencoded', 'a&b&c', headers)).toBe(413)
    }
  })

  describe('content codings', () => {
    const CODERS = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync }
    const coded = { 'Content-Encoding': 'gzip' }

    it('refuses every coding with 415 and Accept-Encoding by default (threat 69)', async () => {
      const server = await start()
      const answer = await post(server, 'application/json', gzipSync('{}'), coded)
      expect(answer.status).toBe(415)
      expect(answer.headers['accept-encoding']).toBe('identity')
      expect((await post(server, 'application/json', '{}', { 'Content-Encoding': 'identity' })).status).toBe(200)
    })

    it.each(Object.entries(CODERS))('decodes %s where it is enabled', async (name, encode) => {
      const server = await start({ contentCodings: ['gzip', 'deflate', 'br'] })
      const headers = { 'Content-Encoding': name }
      expect(parsed(await post(server, 'application/json', encode('{"a":1}'), headers))).toEqual({
        status: 200,
        body: { a: 1 },
      })
      const form = part('Content-Disposition: form-data; name="a"')
      expect(parsed(await post(server, MULTIPART, encode(form), headers))).toEqual({ status: 200, parts: ['a=v'] })
      expect((await post(server, 'application/json', encode('{}').subarray(0, 5), headers)).status).toBe(400)
    })

    it('refuses a bomb with 413, soon (threat 69)', MEASURED, async () => {
      const server = await start({ contentCodings: ['gzip'] })
      const bomb = gzipSync(Buffer.alloc(100 * 1024 * 1024, ' '))
      const elapsed = startProcessorClock()
      expect((await post(server, 'application/json', bomb, coded)).status).toBe(413)
      expect(parsed(await post(server, MULTIPART, bomb, coded))).toEqual({ status: 413, parts: [] })
      expect(elapsed()).toBeLessThan(2000)
    })

    it('counts decoded bytes', async () => {
      const server = await start({ contentCodings: ['gzip'], limits: { bodySize: 1000 } })
      expect((await post(server, 'text/plain', gzipSync('x'.repeat(1000)), coded)).status).toBe(200)
      expect((await post(server, 'text/plain', gzipSync('x'.repeat(1001)), coded)).status).toBe(413)
      // Blocks of no bytes, which decode to nothing however many there are (RFC 1951 §3.2.4).
      const header = gzipSync('').subarray(0, 10)
      const blocks = Buffer.from('000000ffff'.repeat(198) + '010000ffff' + '00'.repeat(8), 'hex')
      expect((await post(server, 'text/plain', Buffer.concat([header, blocks]), coded)).status).toBe(413)
      expect((await post(server, 'text/plain', Buffer.concat([header, blocks.subarray(100)]), coded)).status).toBe(200)
    })
  })

  it('collects a form on demand, files of at most bodySize together', async () => {
    const route: Route = async (body) => {
      const { fields, files } = await (body as MultipartBody).collect()
      return { fields, files: files.map(({ name, filename, content }) => [name, filename, content.length]) }
    }
    const server = await start({ limits: { bodySize: 5 } }, { route })
    const form = (content: string, before = '') =>
      [
        `--${BOUNDARY}\r\nContent-Disposition: form-data; name="title"\r\n\r\nT\r\n`,
        `--${BOUNDARY}\r\nContent-Disposition: form-data; name="e"; filename="y"\r\n\r\n${before}\r\n`,
        part('Content-Disposition: form-data; name="f"; filename="x"', content),
      ].join('')
    expect(parsed(await post(server, MULTIPART, form('12345')))).toEqual({
      status: 200,
      fields: { title: 'T' },
      files: [
        ['e', 'y', 0],
        ['f', 'x', 5],
      ],
    })
    expect((await post(server, MULTIPART, form('123', '45'))).status).toBe(200)
    expect((await post(server, MULTIPART, form('123', '456'))).body.toString()).toContain('larger than 5 bytes')
    expect((await post(server, MULTIPART, form('123456'))).body.toString()).toContain('larger than 5 bytes')
  })

  it('gives unexpected errors to onError where there is no next', async () => {
    const errors: unknown[] = []
    const parse = bodyParse({ onError: (error) => errors.push(error) })
    const server = await runListener(async (req, res) => {
      await drain(req)
      parse(req, res)
    })
    running.push(server)
    expect((await post(server, 'application/json', '{}')).status).toBe(500)
    expect(errors).toHaveLength(1)
  })

  it.each<[string, unknown]>([
    ['an unknown kind', { accept: ['xml'] }],
    ['nothing to accept', { accept: [] }],
    ['an unknown coding', { contentCodings: ['zstd'] }],
    ['an unknown option', { limit: 5 }],
    ['an unknown limit', { limits: { size: 5 } }],
    ['a negative limit', { limits: { parts: -1 } }],
  ])('refuses %s at construction', (_, options) => {
    expect(() => bodyParse(options as BodyParseOptions)).toThrow(TypeError)
  })
})

it('content that is read in part leaves the connection to the next request, however much is still to come', async () => {
  const parse = bodyParse({ raw: true, accept: [] })
  const host = await runListener((req, res) => {
    if (req.method === 'GET') return res.end('next')
    return parse(req, res, async () => {
      const iterator = (req as unknown as { body: AsyncIterable<Uint8Array> }).body[Symbol.asyncIterator]()
      await iterator.next()
      res.end('enough')
    })
  })
  running.push(host)
  const { text, socket } = await new Promise<{ text: string; socket: Socket }>((resolve, reject) => {
    let text = ''
    const socket = connect(host.port, '127.0.0.1').on('error', reject)
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (text.endsWith('next')) resolve({ text, socket })
    })
    const size = 8 * 1024 * 1024
    socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\nContent-Length: ${size}\r\n\r\n`)
    socket.write(Buffer.alloc(size))
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  })
  socket.destroy()
  expect(text).toContain('enough')
})
