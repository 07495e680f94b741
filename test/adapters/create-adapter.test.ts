import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { type AdapterOptions, createAdapter, type HostAnswer } from '../../src/adapters/create-adapter.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import type { Handler } from '../../src/core/handler.ts'
import { createHandler } from '../../src/core/node-handler.ts'
import { emptyReply } from '../../src/core/reply.ts'
import { auth } from '../../src/handlers/auth.ts'
import { bodyParse } from '../../src/handlers/body-parse.ts'
import { methodOverride } from '../../src/handlers/method-override.ts'
import { preflight } from '../../src/handlers/preflight.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { openRawClient } from '../wire/raw-client.ts'
import { listen, send } from './raw.ts'

/** A host of this test: it hands request and response to its middleware, and keeps fields of its own. */
interface Context {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly fields: Map<string, string>
  readonly found: Readonly<Record<string, string>>
}

type Result = 'written' | 'next' | 'failed' | HostAnswer

const base: AdapterOptions<Context, Result> = {
  name: 'hostMiddleware',
  request: ({ req }) => req,
  response: ({ res }) => res,
  release: () => 'written',
}

/** Runs a handler on the host, and lets the test see what each request ended in. */
async function serve(handler: Handler, options: Partial<AdapterOptions<Context, Result>> = {}) {
  const results: unknown[] = []
  const middleware = createAdapter<Context, Result>({ ...base, ...options })(handler)
  const port = await listen(
    createServer(async (req, res) => {
      const context: Context = { req, res, fields: new Map([['vary', 'Cookie']]), found: { id: '7' } }
      try {
        const result = await middleware(context, () => 'next')
        results.push(result)
        if (result === 'next') return void res.end(`host ${[...context.fields].join(';')}`)
        if (typeof result === 'string') return
        res.writeHead(result.status, Object.fromEntries(result.fields) as Record<string, string>).end(result.body)
      } catch (error) {
        results.push(error)
        res.writeHead(599, { 'Content-Length': '0' }).end()
      }
    }),
  )
  return { port, results }
}

const createService = () => createResourceService(memoryStore(), { resources: { '/files/{name}': document() } })
const text = ['Content-Type: text/plain']

describe('createAdapter', () => {
  it('takes no option from a polluted prototype', async () => {
    const prototype = Object.prototype as { answer?: () => Result }
    prototype.answer = () => 'failed'
    try {
      const { port, results } = await serve(createService())
      await send(port, { method: 'PUT', target: '/files/a', fields: text, body: 'text' })
      expect(results).toEqual(['written'])
    } finally {
      delete prototype.answer
    }
  })

  it('writes to the response of Node where the host has no way of its own', async () => {
    const { port, results } = await serve(createService())
    expect((await send(port, { method: 'PUT', target: '/files/a', fields: text, body: 'text' })).status).toBe(201)
    expect((await send(port, { target: '/files/a' })).text).toBe('text')
    expect((await send(port, { target: '/other' })).text).toBe('host vary,Cookie')
    expect(results).toEqual(['written', 'written', 'next'])
  })

  it('gives small answers to the host, with its Vary, and writes all others', async () => {
    const { port, results } = await serve(createService(), {
      answer: (_context, answer) => answer,
      field: ({ fields }, name) => fields.get(name),
    })
    await send(port, { method: 'PUT', target: '/files/a', fields: text, body: 'text' })
    const answer = await send(port, { target: '/files/a' })
    expect([answer.status, answer.text, answer.field('vary')]).toEqual([200, 'text', 'Cookie'])
    expect((await send(port, { method: 'HEAD', target: '/files/a' })).field('content-length')).toBe('4')
    const large = 'x'.repeat(1024 * 1024 + 1)
    await send(port, { method: 'PUT', target: '/files/b', fields: text, body: large })
    expect((await send(port, { target: '/files/b' })).text).toBe(large)
    await send(port, { method: 'PUT', target: '/files/a', fields: [...text, 'If-Match: "x"'], body: 'text' })
    const kinds = results.map((result) => (typeof result === 'string' ? result : (result as HostAnswer).status))
    expect(kinds).toEqual([201, 200, 200, 201, 'written', 'written'])
    expect((results[2] as HostAnswer).body).toBeUndefined()
  })

  it('puts what a piece has for every answer on that of the host', async () => {
    const { port } = await serve(preflight({ origins: ['https://app.example'] }), {
      field: ({ fields }, name) => fields.get(name),
      setField: ({ fields }, name, value) => void fields.set(name.toLowerCase(), value),
    })
    const answer = await send(port, { target: '/', fields: ['Origin: https://app.example'] })
    expect(answer.text).toContain('vary,Cookie, Origin')
    expect(answer.text).toContain('access-control-allow-origin,https://app.example')
  })

  it('fails a request with the fields that its answer has to carry', async () => {
    const failing = createHandler({
      forwardErrors: true,
      run(exchange) {
        exchange.vary = 'Origin'
        throw new Error('failed')
      },
    })
    const seen: unknown[] = []
    const { port, results } = await serve(failing, {
      fail(context, error, fields) {
        seen.push(error, [...fields])
        context.res.writeHead(500, { 'Content-Length': '0' }).end()
        return 'failed'
      },
    })
    expect((await send(port, { target: '/' })).status).toBe(500)
    expect([seen, results]).toEqual([[new Error('failed'), [['Vary', 'Origin']]], ['failed']])
    expect((await send((await serve(failing)).port, { target: '/' })).status).toBe(599)
  })

  it('answers 500 for a field that no message may hold, through whichever way', async () => {
    const handler = createHandler({
      forwardErrors: false,
      onError: () => {},
      run: () => emptyReply(200, ['X-A', 'a', 'X-B', 'b\n']),
    })
    const { port, results } = await serve(handler, { answer: (_context, answer) => answer })
    const answer = await send(port, { target: '/' })
    expect([answer.status, answer.field('x-a')]).toEqual([500, undefined])
    expect(results).toEqual(['written'])
  })

  it('gives hooks what the router of the host has found', async () => {
    const seen: unknown[] = []
    const piece = auth({
      schemes: [basic({ realm: 'test', accounts: { ada: 'lovelace' } })],
      requireAuth: ({ params }) => seen.push(params) < 0,
    })
    const { port } = await serve(piece, { params: ({ found }) => found })
    expect((await send(port, { target: '/' })).text).toContain('host')
    expect(seen).toEqual([{ id: '7' }])
  })

  it('tells the host with status 0 that the client has left', async () => {
    const statuses: number[] = []
    let requests = 0
    const { port, results } = await serve(bodyParse(), {
      request({ req }) {
        requests++
        return req
      },
      release(_context, status) {
        statuses.push(status)
        return 'written'
      },
    })
    const client = await openRawClient(port)
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nhalf')
    await expect.poll(() => requests).toBe(1)
    client.socket.destroy()
    await expect.poll(() => results).toEqual(['written'])
    expect(statuses).toEqual([0])
  })

  it('refuses what comes too late for a host that has chosen the route', () => {
    const create = createAdapter<Context, Result>({ ...base, routesFirst: true })
    expect(() => create(methodOverride())).toThrow('hostMiddleware comes too late for methodOverride')
    expect(() => create((() => {}) as never)).toThrow('hostMiddleware takes a service or a standalone middleware, as ')
  })
})

describe('decide', () => {
  it('tells "not for this handler" from "the client has left"', async () => {
    const service = createService()
    const decisions: unknown[] = []
    let requests = 0
    const port = await listen(
      createServer(async (req, res) => {
        requests++
        const exchange = service.createExchange(req, res)!
        exchange.canPass = true
        decisions.push(await service.decide(exchange))
        res.end()
      }),
    )
    await send(port, { target: '/other' })
    const client = await openRawClient(port)
    client.send('PUT /files/a HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nhalf')
    await expect.poll(() => requests).toBe(2)
    client.socket.destroy()
    await expect.poll(() => decisions).toEqual([undefined, 'gone'])
  })
})
