import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import express from 'express'
import express4 from 'express4'
import { describe, expect, it } from 'vitest'
import { type Exchange, findMount, type HostRequest, sharedExchange } from '../../src/core/exchange.ts'
import { createHandler } from '../../src/core/node-handler.ts'
import { addPending, createVaryMark } from '../../src/core/pending.ts'
import { readTarget } from '../../src/core/read-target.ts'
import { contentReply, type Reply } from '../../src/core/reply.ts'
import { listen, serve } from '../handlers/serve.ts'

function text(value: unknown): Reply {
  return contentReply(200, JSON.stringify(value), ['Content-Type', 'application/json'])
}

describe('findMount', () => {
  const find = (request: HostRequest & { url: string }): string => findMount(request as IncomingMessage & HostRequest)

  it.each([
    ['/a', undefined, undefined, ''],
    ['/a', '/a', undefined, ''],
    ['/a', '/api/a', undefined, '/api'],
    ['/', '/api', undefined, '/api'],
    ['/?x', '/api?x', undefined, '/api'],
    ['/', '/api/', undefined, '/api'],
    ['/a', '/x/y/a', '/x/y', '/x/y'],
    ['/a', '/a', '', ''],
  ])('finds for %j of %j, base %j, the prefix %j', (url, originalUrl, baseUrl, mount) => {
    const host = { ...(originalUrl !== undefined && { originalUrl }), ...(baseUrl !== undefined && { baseUrl }) }
    expect(find({ url, ...host })).toBe(mount)
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
    ['/api//users', 400, undefined],
    ['/api/%2e%2e/x', 400, undefined],
    ['/api/a%2Fb', 400, undefined],
    ['/api/a%zz', 400, undefined],
  ])('reads %s (threats 5, 6, 20 to 25): %i', async (target, status, expected) => {
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
  it('is shared by the pieces on one request, and by nothing else', async () => {
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
})

describe('createVaryMark', () => {
  it('adds its name once, whatever was there', () => {
    const mark = createVaryMark('Origin')
    for (const [before, after] of [
      ['', 'Origin'],
      ['Accept', 'Accept, Origin'],
      ['origin', 'origin'],
      ['*', '*'],
      ['', 'Origin'],
    ]) {
      const exchange = { vary: before } as Exchange
      mark(exchange)
      expect(exchange.vary).toBe(after)
      mark(exchange)
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
