import type { IncomingMessage } from 'node:http'
import { runInNewContext } from 'node:vm'
import express from 'express'
import express4 from 'express4'
import { describe, expect, it } from 'vitest'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { conditional, type KnownState } from '../../src/handlers/conditional.ts'
import { preflight } from '../../src/handlers/preflight.ts'
import { range } from '../../src/handlers/range.ts'
import { type Fields, HOSTS, type Send, serve } from './serve.ts'

const NOW = Date.UTC(2026, 5, 15, 12)
const CHANGED = Date.UTC(2026, 5, 15, 10, 0, 0)
const L = new Date(CHANGED).toUTCString()
const EARLIER = new Date(CHANGED - 1000).toUTCString()
const OLD = 'Mon, 01 Jan 1990 00:00:00 GMT'
const E = '"e"'

const STRONG: KnownState = { entityTag: E, lastModified: new Date(CHANGED) }
const WEAK: KnownState = { entityTag: 'W/"w"', lastModified: CHANGED }
const BARE: KnownState = {}
const STATES: Readonly<Record<string, KnownState | undefined>> = { '/a': STRONG, '/w': WEAK, '/n': BARE }

/** Status; the fields; the path, `/a` unless said otherwise. */
type Row = readonly [status: number, method: string, fields: Fields, path?: string]

const ROWS: readonly (readonly [why: string, rows: readonly Row[]])[] = [
  [
    'no condition',
    [
      [200, 'GET', {}],
      [200, 'PUT', {}],
      [200, 'GET', {}, '/none'],
    ],
  ],
  [
    'If-Match is a strong list (RFC 9110 §13.1.1, rows H105 and H106)',
    [
      [200, 'PUT', { 'If-Match': E }],
      [200, 'PUT', { 'If-Match': '"a", "e"' }],
      [412, 'PUT', { 'If-Match': '"a", "b"' }],
      [412, 'PUT', { 'If-Match': 'W/"e"' }],
      [412, 'PUT', { 'If-Match': 'W/"w"' }, '/w'],
      [412, 'GET', { 'If-Match': '"x"' }],
      [412, 'HEAD', { 'If-Match': '"x"' }],
      [412, 'PATCH', { 'If-Match': '"x"' }],
      [412, 'DELETE', { 'If-Match': '"x"' }],
      [412, 'POST', { 'If-Match': '"x"' }],
    ],
  ],
  [
    'If-Match "*" needs a representation (rows H104, H107, H108)',
    [
      [200, 'PUT', { 'If-Match': '*' }],
      [200, 'PUT', { 'If-Match': '*' }, '/n'],
      [412, 'PUT', { 'If-Match': '"x"' }, '/n'],
      [412, 'PUT', { 'If-Match': '*' }, '/none'],
      [412, 'PUT', { 'If-Match': '"abc"' }, '/none'],
    ],
  ],
  [
    'a missing target stays the 404 of the route (§13.2.1, row H101)',
    [
      [200, 'GET', { 'If-Match': '"x"' }, '/none'],
      [200, 'PATCH', { 'If-Match': '*' }, '/none'],
      [200, 'DELETE', { 'If-Match': '*' }, '/none'],
    ],
  ],
  [
    'a malformed list never counts as absent (row H110, threat 40)',
    [
      [400, 'PUT', { 'If-Match': 'abc' }],
      [400, 'PUT', { 'If-Match': '"a' }],
      [400, 'PUT', { 'If-Match': '*, "a"' }],
      [400, 'GET', { 'If-Match': 'e' }],
      [400, 'PUT', { 'If-None-Match': 'e' }],
      [200, 'GET', { 'If-None-Match': 'e' }],
      [412, 'PUT', { 'If-Match': '' }],
    ],
  ],
  [
    'If-Unmodified-Since (§13.1.4, rows H112 to H116)',
    [
      [200, 'PUT', { 'If-Unmodified-Since': L }],
      [412, 'PUT', { 'If-Unmodified-Since': EARLIER }],
      [412, 'GET', { 'If-Unmodified-Since': OLD }],
      [200, 'PUT', { 'If-Match': E, 'If-Unmodified-Since': OLD }],
      [200, 'PUT', { 'If-Unmodified-Since': '2099-01-01T00:00:00Z' }],
      [200, 'PUT', { 'If-Unmodified-Since': 'banana' }],
      [200, 'PUT', { 'If-Unmodified-Since': [OLD, OLD] }],
      [200, 'PUT', { 'If-Unmodified-Since': OLD }, '/n'],
    ],
  ],
  [
    'If-None-Match is weak (§13.1.2, rows H119 to H123, H43, H12, H8)',
    [
      [304, 'GET', { 'If-None-Match': E }],
      [304, 'HEAD', { 'If-None-Match': E }],
      [304, 'GET', { 'If-None-Match': 'W/"e"' }],
      [304, 'GET', { 'If-None-Match': '"w"' }, '/w'],
      [304, 'GET', { 'If-None-Match': '*' }, '/n'],
      [304, 'GET', { 'If-None-Match': ', ,"a,e" ,\t"e"' }],
      [304, 'GET', { 'If-None-Match': ['"x"', E] }],
      [304, 'GET', { 'If-None-Match': E, 'Cache-Control': 'no-cache' }],
      [200, 'GET', { 'If-None-Match': '"a,e"' }],
      [200, 'GET', { 'If-None-Match': '"x"' }, '/n'],
      [412, 'PUT', { 'If-None-Match': E }],
      [412, 'PATCH', { 'If-None-Match': 'W/"e"' }],
      [412, 'DELETE', { 'If-None-Match': '*' }],
      [412, 'PUT', { 'If-None-Match': '*' }],
      [200, 'PUT', { 'If-None-Match': '*' }, '/none'],
    ],
  ],
  [
    'If-Modified-Since (§13.1.3, rows H124 to H127, H15 to H17)',
    [
      [304, 'GET', { 'If-Modified-Since': L }],
      [304, 'GET', { 'If-Modified-Since': 'Monday, 15-Jun-26 10:00:00 GMT' }],
      [304, 'GET', { 'If-Modified-Since': 'Mon Jun 15 10:00:00 2026' }],
      [304, 'GET', { 'If-Modified-Since': 'Fri, 01 Jan 2100 00:00:00 GMT' }],
      [200, 'GET', { 'If-Modified-Since': EARLIER }],
      [200, 'GET', { 'If-Modified-Since': '2030' }],
      [200, 'GET', { 'If-Modified-Since': [L, L] }],
      [200, 'GET', { 'If-Modified-Since': L }, '/n'],
      [200, 'PUT', { 'If-Modified-Since': L }],
      [200, 'GET', { 'If-None-Match': '"x"', 'If-Modified-Since': L }],
      [304, 'GET', { 'If-None-Match': E, 'If-Modified-Since': OLD }],
    ],
  ],
  [
    'several at once (§13.2.2, rows H128 and H129)',
    [
      [304, 'GET', { 'If-Match': E, 'If-None-Match': E }],
      [412, 'PUT', { 'If-Match': E, 'If-None-Match': E }],
      [412, 'GET', { 'If-Match': '"x"', 'If-None-Match': E }],
      [304, 'GET', { 'If-Unmodified-Since': L, 'If-None-Match': E }],
    ],
  ],
  [
    'not on OPTIONS and TRACE (§13.2.1, row H103)',
    [
      [200, 'OPTIONS', { 'If-Match': '"x"' }],
      [200, 'TRACE', { 'If-Match': '"x"' }],
      [200, 'TRACE', { 'If-None-Match': E }],
    ],
  ],
]

describe.each(HOSTS)('conditional in %s', (_name, mount) => {
  const start = async (): Promise<{ send: Send; handled: () => number }> => {
    let handled = 0
    const piece = conditional(({ path }) => STATES[path], { now: () => NOW })
    const route = () => {
      handled++
      return 'content'
    }
    return { send: await serve(mount([piece], route)), handled: () => handled }
  }

  it.each(ROWS)('%s', async (_why, rows) => {
    const { send, handled } = await start()
    for (const [status, method, fields, path = '/a'] of rows) {
      const before = handled()
      const answer = await send(method, path, fields)
      expect([method, path, fields, answer.status]).toEqual([method, path, fields, status])
      // A false condition: the method is not performed (rows H109 and H21).
      expect(handled() - before).toBe(status === 200 ? 1 : 0)
      if (status !== 200 && status !== 400) expect(answer.text).toBe('')
    }
  })

  it('gives the route its validators, once each', async () => {
    const { send } = await start()
    const answer = await send('GET', '/a')
    expect([answer.field('etag'), answer.field('last-modified'), answer.text]).toEqual([E, L, 'content'])
    expect([answer.values('etag').length, answer.values('last-modified').length]).toEqual([1, 1])
    expect((await send('PUT', '/a', {}, 'x')).field('last-modified')).toBeUndefined()
  })

  it('repeats on 304 what tells the states apart, and nothing about content (§15.4.5, rows H135, H136, H24)', async () => {
    const piece = conditional(() => ({ ...STRONG, cacheControl: 'max-age=60' }), { now: () => NOW })
    const send = await serve(mount([piece]))
    const answer = await send('GET', '/', { 'If-None-Match': E })
    expect([answer.status, answer.field('etag'), answer.field('cache-control')]).toEqual([304, E, 'max-age=60'])
    for (const name of ['content-type', 'content-length', 'last-modified']) expect(answer.field(name)).toBeUndefined()
    const dated = await serve(mount([conditional(() => ({ lastModified: CHANGED }), { now: () => NOW })]))
    expect((await dated('GET', '/', { 'If-Modified-Since': L })).field('last-modified')).toBe(L)
  })

  it('requires a condition for changes of what exists where that is asked (RFC 6585 §3, threat 47)', async () => {
    const piece = conditional(({ path }) => STATES[path], { preconditions: 'required', now: () => NOW })
    const send = await serve(mount([piece], () => 'done'))
    const statusOf = async (...request: Parameters<Send>) => (await send(...request)).status
    expect(await statusOf('PUT', '/a')).toBe(428)
    expect(await statusOf('DELETE', '/a', { 'If-Unmodified-Since': 'banana' })).toBe(428)
    expect(await statusOf('PATCH', '/n', { 'If-Unmodified-Since': L })).toBe(428)
    expect(await statusOf('PUT', '/a', { 'If-Modified-Since': L })).toBe(428)
    expect(await statusOf('PUT', '/a', { 'If-Match': E })).toBe(200)
    expect(await statusOf('PUT', '/a', { 'If-Unmodified-Since': L })).toBe(200)
    expect(await statusOf('PUT', '/none')).toBe(200)
    expect(await statusOf('GET', '/a')).toBe(200)
  })

  it.each(['QUERY', 'PROPFIND', 'REPORT', 'SEARCH'])(
    'requires no condition of %s, which changes nothing (RFC 9110 §16.1.1, RFC 10008 §2)',
    async (method) => {
      const piece = conditional(({ path }) => STATES[path], { preconditions: 'required', now: () => NOW })
      const send = await serve(mount([piece], () => 'done'))
      expect((await send(method, '/a')).status).toBe(200)
      expect((await send(method, '/a', { 'If-Match': '"other"' })).status).toBe(412)
    },
  )

  it('passes on what the route’s own functions throw', async () => {
    const fault = new Error('no database')
    const piece = conditional(async () => {
      throw fault
    })
    const send = await serve(mount([piece], () => 'never'))
    expect((await send('GET', '/')).status).toBe(500)
  })
})

describe('conditional', () => {
  it('takes a date as strong only when its second is over (RFC 9110 §8.8.2.2, threat 46)', async () => {
    for (const [now, status] of [
      [CHANGED + 999, 412],
      [CHANGED + 1000, 200],
    ] as const) {
      const app = express()
      app.use(conditional(() => ({ lastModified: CHANGED }), { now: () => now }))
      app.use((_req, res) => void res.send('x'))
      const send = await serve(app)
      expect((await send('PUT', '/', { 'If-Unmodified-Since': L })).status).toBe(status)
      expect((await send('GET', '/', { 'If-Modified-Since': L })).status).toBe(status === 200 ? 304 : 200)
    }
  })

  it('never sends a Last-Modified later than now (RFC 9110 §8.8.2.1, row H37)', async () => {
    const app = express()
    app.use(conditional(() => ({ lastModified: NOW + 3600_000 }), { now: () => NOW }))
    app.use((_req, res) => void res.send('x'))
    expect((await (await serve(app))('GET', '/')).field('last-modified')).toBe(new Date(NOW).toUTCString())
  })

  it('takes a Date of another realm, as those of fs.stat are in Jest', async () => {
    const app = express()
    app.use(conditional(() => ({ lastModified: runInNewContext(`new Date(${CHANGED})`) }), { now: () => NOW }))
    app.use((_req, res) => void res.send('x'))
    expect((await (await serve(app))('GET', '/')).field('last-modified')).toBe(L)
  })

  it('knows what the router has found, under any mount', async () => {
    const router = express.Router()
    const piece = conditional(({ params, path, mount }) => ({ entityTag: `"${params['id']}${path}${mount}"` }))
    router.get('/notes/:id', piece, (_req, res) => void res.send('note'))
    const app = express()
    app.use('/api', router)
    expect((await (await serve(app))('GET', '/api/notes/7')).field('etag')).toBe('"7/notes/7/api"')
  })

  it('works with the router of Koa', async () => {
    const { default: Koa } = await import('koa')
    const app = new Koa()
    app.use((context, next) => {
      Object.assign(context, { params: { id: '7' } })
      return next()
    })
    app.use(koaMiddleware(conditional(({ params }) => ({ entityTag: `"${params['id']}"` }))))
    app.use((context) => {
      context.body = 'note'
    })
    const send = await serve(app.callback())
    expect((await send('GET', '/notes/7')).field('etag')).toBe('"7"')
    expect((await send('GET', '/notes/7', { 'If-None-Match': '"7"' })).status).toBe(304)
  })

  it('leaves alone what the host has set already', async () => {
    const app = express()
    app.use((_req, res, next) => {
      res.set({ 'Last-Modified': OLD, Vary: 'Accept' })
      next()
    })
    app.use(conditional(() => STRONG, { now: () => NOW }))
    app.use((_req, res) => void res.send('x'))
    const send = await serve(app)
    expect((await send('GET', '/')).field('last-modified')).toBe(OLD)
    expect((await send('GET', '/', { 'If-None-Match': E })).field('vary')).toBe('Accept')
  })

  it.each([
    ['Express 5', express],
    ['Express 4', express4 as unknown as typeof express],
  ])(
    'lets %s find out by a tag of the content whether the client has it, where the state has none',
    async (_, host) => {
      let text = 'one'
      const app = host()
      app.use(conditional(() => ({ lastModified: CHANGED, cacheControl: 'no-cache' }), { now: () => NOW }))
      app.use((_req, res) => void res.send(text))
      const send = await serve(app)
      const fields = { 'If-None-Match': (await send('GET', '/')).field('etag')!, 'If-Modified-Since': L }
      expect((await send('GET', '/', fields)).status).toBe(304)
      expect((await send('HEAD', '/', fields)).status).toBe(304)
      text = 'two'
      expect((await send('GET', '/', fields)).status).toBe(200)
    },
  )

  it('answers 500 for a tag without quotes, which would never match, and says so to the operator', async () => {
    const app = express()
    app.use(conditional(() => ({ entityTag: 'abc' })))
    app.use(
      ((error: Error, _req, res, _next) => void res.status(500).send(error.message)) as express.ErrorRequestHandler,
    )
    const answer = await (await serve(app))('GET', '/')
    expect([answer.status, answer.text]).toEqual([500, expect.stringContaining('has double quotes around it')])
  })

  it('refuses at construction what cannot work', () => {
    expect(() => conditional(undefined as never)).toThrow(TypeError)
    expect(() => conditional(() => ({}), { requird: true } as never)).toThrow('no option "requird"')
  })
})

describe('request fields that a host sets between two handlers', () => {
  const changes: Readonly<Record<string, (req: IncomingMessage) => void>> = {
    'one by one': (req) => {
      req.headers['if-none-match'] = E
    },
    'all at once': (req) => {
      req.headers = { ...req.headers, 'if-none-match': E }
    },
  }
  it.each(Object.entries(changes))('count for the second, set %s', async (_, change) => {
    const first = preflight({ origins: '*' })
    const second = conditional(() => STRONG)
    const send = await serve((req, res) =>
      first(req, res, () => {
        change(req)
        second(req, res, () => res.end('whole'))
      }),
    )
    expect(await send('GET', '/a')).toMatchObject({ status: 304 })
  })
})

describe('a state that conditional cannot judge', () => {
  it.each<[string, unknown]>([
    ['lastModified as text', { lastModified: '2026-01-01T00:00:00Z' }],
    ['lastModified that is not finite', { lastModified: Number.POSITIVE_INFINITY }],
    ['an entity tag alone', '"1"'],
    ['null', null],
    ['false', false],
    ['the rows of a query', []],
    ['a Map', new Map()],
  ])('is answered 500, and the write does not happen: %s', async (_name, state) => {
    let written = 0
    const app = express()
    app.put('/', conditional((() => state) as never), (_req, res) => {
      written++
      res.end()
    })
    app.use(((error, _req, res, _next) => void res.status(500).send(error.message)) as express.ErrorRequestHandler)
    const send = await serve(app)
    const answer = await send('PUT', '/', { 'If-Unmodified-Since': 'Mon, 01 Jan 1990 00:00:00 GMT' })
    expect([answer.status, written]).toEqual([500, 0])
    expect(answer.text).toMatch(/^(?:lastModified|A state) is /)
  })

  it.each([['no-cache\n'], [Symbol('no-cache')], [{}], ['日本']])(
    'is answered 500 with content, also where a 304 would be due: a cacheControl that no field can hold',
    async (cacheControl) => {
      const app = express()
      const state = { entityTag: E, cacheControl: cacheControl as never }
      app.get(
        '/state',
        conditional(() => state),
      )
      app.get(
        '/source',
        range(() => ({ ...state, contentType: 'text/plain', content: 'abc' })),
      )
      app.use(((error, _req, res, _next) => void res.status(500).send(error.message)) as express.ErrorRequestHandler)
      const send = await serve(app)
      for (const path of ['/state', '/source']) {
        const { status, text } = await send('GET', path, { 'If-None-Match': E })
        expect([status, text]).toEqual([500, expect.stringContaining('cacheControl is text that a field can hold')])
      }
    },
  )
})
