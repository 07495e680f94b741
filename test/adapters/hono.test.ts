import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAdaptorServer } from '@hono/node-server'
import { type Context, Hono, type MiddlewareHandler, type Next } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { compress } from 'hono/compress'
import { describe, expect, it, vi } from 'vitest'
import { honoMiddleware } from '../../src/adapters/hono.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { auth } from '../../src/handlers/auth.ts'
import { bodyParse } from '../../src/handlers/body-parse.ts'
import { conditional } from '../../src/handlers/conditional.ts'
import { methodOverride } from '../../src/handlers/method-override.ts'
import { range } from '../../src/handlers/range.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { formatRequest, type RawRequest } from '../support/ask.ts'
import { openRawClient } from '../wire/raw-client.ts'
import { listen, send } from './raw.ts'

const serverOf = (app: Hono): Server => createAdaptorServer({ fetch: app.fetch }) as Server
const createService = (fallthrough = true) =>
  createResourceService(memoryStore(), {
    resources: { '/users': collection(), '/files/{name}': document() },
    fallthrough,
  })

/** What a connection that is sent requests gets until it closes. */
async function readAll(port: number, requests: readonly RawRequest[]): Promise<string> {
  const client = await openRawClient(port)
  for (const request of requests) client.send(formatRequest(request))
  return (await client.readToEnd()).toString()
}

/** The content of a message, and nothing behind it. */
function contentOf(message: string): string {
  const [head = '', ...rest] = message.split('\r\n\r\n')
  const content = rest.join('\r\n\r\n')
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  if (length !== undefined) return content.length === Number(length) ? content : `not of length ${length}: ${content}`
  return /^[0-9a-f]+\r\n([\s\S]*)\r\n0\r\n\r\n$/.exec(content)?.[1] ?? `not one chunk: ${content}`
}

function replaceRequest(context: Context, next: Next): Promise<void> {
  context.req.raw = new Request(context.req.raw, { headers: context.req.raw.headers })
  return next()
}

describe('honoMiddleware', () => {
  it.each([
    ['bodyLimit()', bodyLimit({ maxSize: 1_000_000 })],
    ['middleware that opens it', (context: Context, next: Next) => sleep(context.req.raw.body ? 10 : 0).then(next)],
    ['middleware that replaces the request', replaceRequest],
  ] as [string, MiddlewareHandler][])('takes the content from behind %s', async (_name, middleware) => {
    const app = new Hono()
    app.use('/*', middleware)
    app.use('/*', honoMiddleware(createService()))
    app.post('/own', async (context) => context.text(String((await context.req.text()).length)))
    const port = await listen(serverOf(app))
    const json = { 'content-type': 'application/json' }
    const body = JSON.stringify({ name: 'x'.repeat(600_000) })
    for (const content of [body, new Blob([body]).stream()]) {
      const init = { method: 'POST', headers: json, body: content, duplex: 'half' } as RequestInit
      const created = await fetch(`http://127.0.0.1:${port}/users`, init)
      expect([created.status, ((await created.json()) as { name?: string }).name?.length]).toEqual([201, 600_000])
    }
    const digest = { ...json, 'content-digest': 'sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:' }
    expect((await fetch(`http://127.0.0.1:${port}/users`, { method: 'POST', headers: digest, body })).status).toBe(400)
    const picture = { method: 'PUT', body: new Uint8Array(100_000).fill(255) }
    expect((await fetch(`http://127.0.0.1:${port}/files/a`, picture)).status).toBe(201)
    const stored = await fetch(`http://127.0.0.1:${port}/files/a`)
    expect(Buffer.from(await stored.arrayBuffer()).equals(picture.body)).toBe(true)
    const own = await fetch(`http://127.0.0.1:${port}/own`, { method: 'POST', headers: json, body })
    expect(await own.text()).toBe(String(body.length))
  })

  it('does not take for the content what middleware has made of it', async () => {
    const app = new Hono()
    app.use('/*', async (context, next) => {
      await context.req.text()
      await next()
    })
    app.use('/*', honoMiddleware(createResourceService(memoryStore(), { onError: () => {} })))
    const port = await listen(serverOf(app))
    const picture = { method: 'PUT', body: Uint8Array.of(0xff, 0xd8) }
    expect((await fetch(`http://127.0.0.1:${port}/a`, picture)).status).toBe(500)
    expect((await fetch(`http://127.0.0.1:${port}/a`)).status).toBe(404)
  })

  it('answers once, and leaves the connection to the next request', async () => {
    const app = new Hono()
    app.use('/*', honoMiddleware(createService()))
    app.get('/own', (context) => context.text('host'))
    const client = await openRawClient(await listen(serverOf(app)))
    for (const [method, target, status] of [
      ['GET', '/users', 200],
      ['HEAD', '/users', 200],
      ['GET', '/users/1', 404],
      ['HEAD', '/users/1', 404],
      ['OPTIONS', '/users', 204],
      ['GET', '/own', 200],
      ['GET', '/users', 200],
    ] as const) {
      client.send(formatRequest({ method, target }))
      expect((await client.read(method)).status).toBe(status)
    }
    client.socket.destroy()
  })

  it('keeps what earlier middleware has set, every cookie of it, and what it adds afterwards', async () => {
    const app = new Hono()
    app.use('*', async (context, next) => {
      context.header('Set-Cookie', 'a=1', { append: true })
      context.header('Set-Cookie', 'b=2', { append: true })
      context.header('Vary', 'Cookie')
      await next()
      context.header('X-After', String(context.res.status))
    })
    app.use('/*', honoMiddleware(createService()))
    const client = await openRawClient(await listen(serverOf(app)))
    for (let i = 0; i < 2; i++) {
      client.send(formatRequest({ target: '/users' }))
      const answer = await client.read()
      expect([answer.status, answer.body.toString()]).toEqual([200, '[]'])
      expect(answer.values('set-cookie')).toEqual(['a=1', 'b=2'])
      expect(answer.values('vary')).toEqual(['Cookie'])
      expect(answer.values('x-after')).toEqual(['200'])
    }
    client.socket.destroy()
  })

  it('keeps every cookie of earlier middleware beside content that is streamed', async () => {
    const app = new Hono()
    app.use('*', async (context, next) => {
      for (const cookie of ['a=1', 'b=2']) context.header('Set-Cookie', cookie, { append: true })
      await next()
    })
    app.use(honoMiddleware(createService()))
    const port = await listen(serverOf(app))
    const body = 'x'.repeat(1024 * 1024 + 1)
    await send(port, { method: 'PUT', target: '/files/a', fields: ['Content-Type: text/plain'], body })
    const answer = await send(port, { target: '/files/a' })
    expect([answer.text.length, answer.values('set-cookie')]).toEqual([body.length, ['a=1', 'b=2']])
  })

  it('shows every status that was sent to the middleware around, of streams and refused content too', async () => {
    const seen: number[] = []
    const app = new Hono()
    app.use(async (context, next) => {
      await next()
      seen.push(context.res.status)
    })
    app.use(honoMiddleware(createService(false)))
    const port = await listen(serverOf(app))
    const text = 'Content-Type: text/plain'
    const large = 'x'.repeat(1024 * 1024 + 1)
    const put = { method: 'PUT', target: '/files/a', fields: [text] }
    for (const [request, status] of [
      [{ ...put, body: large }, 201],
      [{ target: '/files/a' }, 200],
      [{ method: 'HEAD', target: '/files/a' }, 200],
      [{ target: '/files/a', fields: ['Range: bytes=0-1'] }, 206],
      [{ target: '/files/a', fields: ['If-None-Match: *'] }, 304],
      [{ ...put, fields: [text, 'If-Match: "x"'], body: large }, 412],
      [{ method: 'DELETE', target: '/files/a' }, 204],
      [{ target: '/nothing' }, 404],
      [{ target: '/files/a/b//c' }, 400],
    ] as const) {
      const answer = await send(port, request)
      expect([request.target, answer.status]).toEqual([request.target, status])
      await expect.poll(() => seen.splice(0)).toEqual([status])
    }
  })

  it('lets middleware around change an answer: compress, for one', async () => {
    const app = new Hono()
    app.use(compress(), honoMiddleware(createService()))
    const port = await listen(serverOf(app))
    const fields = ['Content-Type: application/json']
    await send(port, { method: 'POST', target: '/users', fields, body: JSON.stringify({ name: 'Ada '.repeat(500) }) })
    const response = await fetch(`http://127.0.0.1:${port}/users/1`, { headers: { 'Accept-Encoding': 'gzip' } })
    expect(response.headers.get('content-encoding')).toBe('gzip')
    expect(response.headers.get('vary')).toContain('Accept-Encoding')
    expect(await response.json()).toEqual({ id: 1, name: 'Ada '.repeat(500) })
  })

  it.each<[string, (context: Context, next: Next) => Promise<void>, string]>([
    [
      'an answer in its place',
      async (context, next) => {
        await next()
        context.res = new Response('another, and longer')
      },
      'another, and longer',
    ],
    [
      'the same answer with other content',
      async (context, next) => {
        await next()
        context.res = new Response(`read: ${await context.res.text()}`, context.res)
        context.header('X-After', 'yes')
      },
      'read: text',
    ],
    [
      'an error after it',
      async (_context, next) => {
        await next()
        throw new Error('failed afterwards')
      },
      'failed afterwards',
    ],
    [
      'nothing but a field and a look at the content',
      async (context, next) => {
        await next()
        await context.res.clone().text()
        context.header('X-After', 'yes')
      },
      'text',
    ],
  ])('gives the length of what is sent where middleware around makes %s', async (_what, around, text) => {
    const app = new Hono()
    app.onError((error, context) => context.text(error.message, 500))
    app.get('/files/changed', around)
    app.use('/*', honoMiddleware(createService()))
    const port = await listen(serverOf(app))
    const content = { method: 'PUT', fields: ['Content-Type: text/plain'], body: 'text' }
    for (const target of ['/files/changed', '/files/plain']) await send(port, { ...content, target })
    const wire = await readAll(port, [
      { target: '/files/changed' },
      { method: 'HEAD', target: '/files/changed' },
      { target: '/files/plain', fields: ['Connection: close'] },
    ])
    const heads = wire.split(/(?=HTTP\/1\.1 )/)
    expect(heads).toHaveLength(3)
    expect(contentOf(heads[0]!)).toBe(text)
    expect(heads[1]).toMatch(/\r\n\r\n$/)
    expect(heads[2]).toMatch(/\r\n\r\ntext$/)
  })

  it('leaves the answer alone that has been written: the host says of none that its client has left', async () => {
    const info = vi.spyOn(console, 'info').mockImplementation(() => {})
    const app = new Hono()
    app.use(honoMiddleware(createService()))
    const port = await listen(serverOf(app))
    const content = 'x'.repeat(2_000_000)
    const put = { method: 'PUT', target: '/files/a', fields: ['Content-Type: text/plain'], body: content }
    expect((await send(port, put)).status).toBe(201)
    expect((await send(port, { target: '/files/a' })).text).toBe(content)
    await sleep(10)
    expect(info.mock.calls).toEqual([])
    info.mockRestore()
  })

  it('sends content whole that is under way when middleware around gives up, as timeout() does', async () => {
    const errors: string[] = []
    let giveUp = (): void => {}
    const given = new Promise<void>((resolve) => {
      giveUp = resolve
    })
    let goOn = (): void => {}
    const answered = new Promise<void>((resolve) => {
      goOn = resolve
    })
    const app = new Hono()
    app.onError((error, context) => {
      errors.push(error.message)
      setImmediate(goOn)
      return context.text('another answer', 504)
    })
    app.use('/slow', async (_context, next) => {
      const isLate = await Promise.race([next().then(() => false), given.then(() => true)])
      if (isLate) throw new Error('given up')
    })
    async function* readSlowly() {
      yield Buffer.from('first ')
      await answered
      yield Buffer.from('second')
    }
    app.use(
      '/slow',
      honoMiddleware(range(() => ({ contentType: 'text/plain', content: { size: 12, open: readSlowly } }))),
    )
    app.use('/*', honoMiddleware(createService()))
    const client = await openRawClient(await listen(serverOf(app)))
    client.send(formatRequest({ target: '/slow' }))
    await client.firstBytes()
    giveUp()
    const answer = await client.read()
    expect([answer.status, answer.text, errors]).toEqual([200, 'first second', ['given up']])
    client.send(formatRequest({ target: '/users' }))
    expect((await client.read()).text).toBe('[]')
    client.socket.destroy()
  })

  it('reports no error where a client leaves before it has sent all', async () => {
    const seen: unknown[] = []
    const app = new Hono()
    app.onError((error, context) => {
      seen.push(error)
      return context.text('failed', 500)
    })
    app.use(async (context, next) => {
      seen.push('begun')
      await next()
      seen.push(context.res.status)
    })
    app.use(honoMiddleware(bodyParse()))
    const client = await openRawClient(await listen(serverOf(app)))
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nhalf')
    await expect.poll(() => seen).toEqual(['begun'])
    client.socket.destroy()
    await expect.poll(() => seen).toEqual(['begun', 200])
  })

  it('sends each challenge in a line of its own', async () => {
    const app = new Hono()
    const schemes = [
      basic({ realm: 'a', accounts: { ada: 'lovelace' } }),
      { ...basic({ realm: 'b', accounts: { ada: 'lovelace' } }), name: 'Other' },
      { ...basic({ realm: 'c', accounts: { ada: 'lovelace' } }), name: 'Third' },
    ]
    app.use(honoMiddleware(auth({ schemes })))
    const { status, fields } = await send(await listen(serverOf(app)), { target: '/' })
    expect([status, fields.filter(([name]) => name === 'www-authenticate')]).toEqual([
      401,
      [
        ['www-authenticate', 'Basic realm="a", charset="UTF-8"'],
        ['www-authenticate', 'Basic realm="b", charset="UTF-8"'],
        ['www-authenticate', 'Basic realm="c", charset="UTF-8"'],
      ],
    ])
  })

  it.each(['/api', '/api/*', '/:version', '/:version/*'])('takes the prefix %s', async (prefix) => {
    const app = new Hono()
    app.use(prefix.endsWith('*') ? prefix : `${prefix}/*`, honoMiddleware(createService(), { prefix }))
    const fields = ['Content-Type: application/json']
    const created = await send(await listen(serverOf(app)), {
      method: 'POST',
      target: '/api/users',
      fields,
      body: '{}',
    })
    expect([created.status, created.field('location')]).toEqual([201, '/api/users/1'])
  })

  it('gives a piece the values that the route has found', async () => {
    const app = new Hono()
    app.get(
      '/notes/:id',
      honoMiddleware(conditional(({ params }) => ({ entityTag: `"${params['id']}"` }))),
      (context) => context.text('note'),
    )
    const port = await listen(serverOf(app))
    expect((await send(port, { target: '/notes/7' })).field('etag')).toBe('"7"')
    expect((await send(port, { target: '/notes/7', fields: ['If-None-Match: "7"'] })).status).toBe(304)
  })

  it.each([
    ['application/json', '{"a":[1,"ü"]}', 'json', { a: [1, 'ü'] }],
    ['application/json', '"text"', 'json', 'text'],
    ['text/plain', 'ü', 'text', 'ü'],
    ['application/x-www-form-urlencoded', 'a=1&a=2&b=%C3%BC', 'parseBody', { a: '2', b: 'ü' }],
  ] as const)('leaves %s that bodyParse has read to context.req: %s', async (type, body, read, expected) => {
    const app = new Hono()
    app.use(honoMiddleware(bodyParse()))
    app.post('/', async ({ req, json }) => json((await (req[read] as () => Promise<object>).call(req)) as object))
    const answer = await send(await listen(serverOf(app)), {
      method: 'POST',
      target: '/',
      fields: [`Content-Type: ${type}`],
      body,
    })
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, expected])
  })

  it('refuses methodOverride, which would change no route, and says what does it', () => {
    expect(() => honoMiddleware(methodOverride())).toThrow(
      "honoMiddleware comes too late for methodOverride, since the host has chosen the route: use attach(server, methodOverride(), { direct: '' }), or the option methodOverride of the service.",
    )
  })

  it('names what it takes when it is given something else', () => {
    expect(() => honoMiddleware(undefined as never)).toThrow(
      'honoMiddleware takes a service or a standalone middleware, as ',
    )
    expect(() => honoMiddleware(createService(), { prefix: '/api/' })).toThrow(
      'honoMiddleware takes as prefix: a path such as ',
    )
    expect(() => honoMiddleware(createService(), { mount: '/api' } as never)).toThrow(
      'honoMiddleware has no option "mount"',
    )
  })
})
