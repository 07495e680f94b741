import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import express from 'express'
import express4 from 'express4'
import { describe, expect, it } from 'vitest'
import type { Exchange } from '../../src/core/exchange.ts'
import { createHandler, sharedExchange } from '../../src/core/node-handler.ts'
import { findPlace, readTarget } from '../../src/core/place.ts'
import { contentReply, type Reply } from '../../src/core/reply.ts'
import { declaredLength } from '../../src/core/request-content.ts'
import type { HostRequest } from '../../src/core/request-view.ts'
import { addPending, addVary } from '../../src/core/write-head.ts'
import { listen, serve } from '../handlers/serve.ts'

function text(value: unknown): Reply {
  return contentReply(200, JSON.stringify(value), ['Content-Type', 'application/json'])
}

describe('findPlace', () => {
  const find = (request: HostRequest & { url: string }) => findPlace(request as IncomingMessage & HostRequest)

  it.each([
    ['/a', undefined, undefined, '', '/a'],
    ['/a', '/a', undefined, '', '/a'],
    ['/a', '/api/a', undefined, '/api', '/a'],
    ['/', '/api', undefined, '/api', '/'],
    ['/?x', '/api?x', undefined, '/api', '/?x'],
    ['/', '/api/', undefined, '/api', '/'],
    ['/a', '/x/y/a', '/x/y', '/x/y', '/a'],
    ['/a', '/a', '', '', '/a'],
    // Express inside of Connect
    ['/a', '/x/y/a', '/y', '/x/y', '/a'],
    ['/', '/x/y', '/y', '/x/y', '/'],
    // Absolute-form: koa-mount and Express leave the authority in both, Connect the query too
    ['http://h/a', 'http://h/api/a', undefined, '/api', '/a'],
    ['http://h/', 'http://h/api', '/api', '/api', '/'],
    ['http://h', 'http://h/api', undefined, '/api', '/'],
    ['http://h?x', 'http://h/api?x', undefined, '/api', '/?x'],
    ['http://h/a', 'http://h/a', undefined, '', '/a'],
    // Express 4 takes two slashes for one
    ['/a', '/api//a', '/api', '/api', '//a'],
    ['http://h/a', 'http://h/api//a', '/api', '/api', '//a'],
    // Rewritten by the host
    ['/index.html', '/', '', '', '/index.html'],
    ['/', '/old', '', '', '/'],
    ['/b', '/api/a', '/api', '/api', '/b'],
    ['/b', '/a', undefined, '', '/b'],
    ['/a', '//evil.test/a', undefined, '', '/a'],
    ['/a', '/x/../a', '', '', '/a'],
  ])('finds for %j of %j, base %j, the mount %j and the target %j', (url, originalUrl, baseUrl, mount, target) => {
    const host = { ...(originalUrl !== undefined && { originalUrl }), ...(baseUrl !== undefined && { baseUrl }) }
    expect(find({ url, ...host })).toEqual({ mount, target, isClear: true })
  })
})

describe.each([
  ['Express 5', express],
  ['Express 4', express4],
])('readTarget under %s', (_name, create) => {
  it.each([
    ['/api/users/1?a=b', 200, { mount: '/api', path: '/users/1', query: 'a=b' }],
    ['/api', 200, { mount: '/api', path: '/', query: '' }],
    ['/api?x', 200, { mount: '/api', path: '/', query: 'x' }],
    ['/api/a%20b', 200, { mount: '/api', path: '/a b', query: '' }],
    ['/api//users', 200, { mount: '/api', path: '//users', query: '' }],
    ['/api/%2e%2e/x?a=b', 400, undefined],
    ['/api/@scope%2Fname', 200, { mount: '/api', path: '/@scope%2Fname', query: '' }],
    ['/api/a%zz', 200, { mount: '/api', path: '/a%zz', query: '' }],
  ])('reads %s (RFC 9112 §3.2): %i', async (target, status, expected) => {
    const handler = createHandler({
      run(exchange) {
        readTarget(exchange)
        return text({ mount: exchange.mount, path: exchange.path, query: exchange.queryText })
      },
      forwardErrors: false,
    })
    const app = create()
    app.use('/api', handler)
    const answer = await (await serve(app))('GET', target)
    expect(answer.status).toBe(status)
    if (expected !== undefined) expect(JSON.parse(answer.text)).toEqual(expected)
  })
})

describe('Exchange', () => {
  it('is shared by the middleware on one request, and by nothing else', async () => {
    const seen: Exchange[] = []
    const piece = createHandler({
      run(exchange) {
        seen.push(exchange)
        return undefined
      },
      forwardErrors: false,
    })
    const app = express()
    app.use(piece, piece)
    app.use((req, res) => void res.json(sharedExchange(req, res) === seen[0]))
    const send = await serve(app)
    expect((await send('GET', '/')).text).toBe('true')
    expect(seen[0]).toBe(seen[1])
    await send('GET', '/')
    expect(seen[2]).not.toBe(seen[0])
  })

  it('tells each middleware the length of the content as the request states it then', async () => {
    const lengths: unknown[] = []
    const middleware = createHandler({
      run(exchange) {
        lengths.push(declaredLength(exchange))
        return undefined
      },
      forwardErrors: false,
    })
    const app = express()
    app.use(middleware)
    app.use((req, _res, next) => {
      req.headers['content-length'] = '3'
      next()
    })
    app.use(middleware)
    app.use((req, _res, next) => {
      delete req.headers['content-length']
      next()
    })
    app.use(middleware)
    app.use((_req, res) => void res.end())
    await (await serve(app))('POST', '/', {}, 'abcde')
    expect(lengths).toEqual([5, 3, undefined])
  })

  it('parses the query when it is asked for, a leading question mark included', async () => {
    const handler = createHandler({
      run(exchange) {
        readTarget(exchange)
        return text([...exchange.query])
      },
      forwardErrors: false,
    })
    const send = await serve(handler)
    expect(JSON.parse((await send('GET', '/?a=1&a=2&b=%20c')).text)).toEqual([
      ['a', '1'],
      ['a', '2'],
      ['b', ' c'],
    ])
    expect(JSON.parse((await send('GET', '/??a=1')).text)).toEqual([['?a', '1']])
    expect(JSON.parse((await send('GET', '/')).text)).toEqual([])
  })

  it('parses the query anew once a middleware has read that of another target', async () => {
    const queries: string[] = []
    const middleware = createHandler({
      run(exchange) {
        readTarget(exchange)
        queries.push(String(exchange.query))
        return undefined
      },
      forwardErrors: false,
    })
    const app = express().use(middleware)
    app.use((req, _res, next) => {
      req.url = '/?b=2'
      next()
    })
    app.use(middleware, (_req, res) => void res.end())
    await (await serve(app))('GET', '/?a=1')
    expect(queries).toEqual(['a=1', 'b=2'])
  })

  it('knows what the router of the host has found, and nothing that is inherited (threat 150)', async () => {
    const handler = createHandler({ run: ({ params }) => text(params), forwardErrors: false })
    const app = express()
    app.get('/users/:id', handler)
    expect((await (await serve(app))('GET', '/users/7')).text).toBe('{"id":"7"}')
    const prototype = Object.prototype as { params?: unknown }
    prototype.params = { id: 'evil' }
    try {
      expect((await (await serve(handler))('GET', '/')).text).toBe('{}')
    } finally {
      delete prototype.params
    }
  })

  it.each(['before', 'after'])('aborts its signal when the client goes away, asked for %s that', async (when) => {
    let settle = (_: boolean): void => {}
    const aborted = new Promise<boolean>((resolve) => {
      settle = resolve
    })
    const handler = createHandler({
      run(exchange) {
        if (when === 'before') exchange.signal.addEventListener('abort', () => settle(exchange.signal.aborted))
        else exchange.res.once('close', () => settle(exchange.signal.aborted))
        client.destroy()
        return new Promise(() => {})
      },
      forwardErrors: false,
    })
    const client = connect(await listen(handler), '127.0.0.1')
    client.write('GET / HTTP/1.1\r\nHost: a.test\r\n\r\n')
    expect(await aborted).toBe(true)
  })

  it('does not abort its signal after an answer', async () => {
    let signal: AbortSignal | undefined
    let closed: Promise<unknown> = Promise.resolve()
    const handler = createHandler({
      run(exchange) {
        signal = exchange.signal
        closed = once(exchange.res, 'close')
        return text('done')
      },
      forwardErrors: false,
    })
    expect((await (await serve(handler))('GET', '/')).text).toBe('"done"')
    await closed
    expect(signal?.aborted).toBe(false)
  })

  it('leaves no listener on the connection when its signal is first asked for after an answer, as by afterCommit', async () => {
    const signals: AbortSignal[] = []
    const counts: number[] = []
    let answered = (): void => {}
    const handler = createHandler({
      run(exchange) {
        const { req, res } = exchange
        res.once('close', () => {
          signals.push(exchange.signal)
          counts.push(req.socket.listenerCount('close'))
          answered()
        })
        return text('done')
      },
      forwardErrors: false,
    })
    const client = connect(await listen(handler), '127.0.0.1')
    for (let count = 0; count < 3; count++) {
      const closed = new Promise<void>((resolve) => (answered = resolve))
      client.write('GET / HTTP/1.1\r\nHost: a.test\r\n\r\n')
      await closed
    }
    client.destroy()
    expect([counts, signals.map(({ aborted }) => aborted)]).toEqual([
      [counts[0], counts[0], counts[0]],
      [false, false, false],
    ])
  })
})

describe('addVary', () => {
  it('adds its name once, whatever was there', () => {
    for (const [before, after] of [
      ['', 'Origin'],
      ['Accept', 'Accept, Origin'],
      ['origin', 'origin'],
      ['*', '*'],
      ['', 'Origin'],
    ]) {
      const exchange = { vary: before } as Exchange
      addVary(exchange, 'Origin')
      expect(exchange.vary).toBe(after)
      addVary(exchange, 'Origin')
      expect(exchange.vary).toBe(after)
    }
  })
})

describe('addPending', () => {
  it('never changes a list that others share', () => {
    const shared = Object.freeze(['A', '1'])
    const exchange = { pending: shared as readonly string[] } as Exchange
    addPending(exchange, ['B', '2'])
    expect([exchange.pending, shared]).toEqual([
      ['A', '1', 'B', '2'],
      ['A', '1'],
    ])
  })
})
