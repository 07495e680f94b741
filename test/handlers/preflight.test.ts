import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import express from 'express'
import Koa from 'koa'
import { describe, expect, it } from 'vitest'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { conditional } from '../../src/handlers/conditional.ts'
import { type CorsOptions, type PreflightOptions, preflight } from '../../src/handlers/preflight.ts'
import { range } from '../../src/handlers/range.ts'
import type { Answer } from '../support/answer.ts'
import { MEASURED } from '../support/measured.ts'
import { ask, type Fields, HOSTS, listen, type Send, serve } from './serve.ts'

const GOOD = 'https://app.test'
const EVIL = 'https://evil.test'

function asking(origin: string, method = 'PUT', more: Fields = {}): Fields {
  return { Origin: origin, 'Access-Control-Request-Method': method, ...more }
}

const CORS_FIELDS = [
  'access-control-allow-origin',
  'access-control-allow-credentials',
  'access-control-allow-methods',
  'access-control-allow-headers',
  'access-control-max-age',
  'access-control-expose-headers',
  'access-control-allow-private-network',
  'timing-allow-origin',
]

function corsFieldsOf(answer: Answer): string[] {
  return CORS_FIELDS.filter((name) => answer.values(name).length > 0)
}

describe.each(HOSTS)('preflight in %s', (_name, mount) => {
  const start = (options: Partial<PreflightOptions> = {}): Promise<Send> =>
    serve(mount([preflight({ origins: GOOD, methods: ['GET', 'PUT'], ...options })], () => 'the route'))

  it('answers a preflight with 204 and everything a browser asks for (interface OPTIONS 4, rows X1, X3, X9, X12)', async () => {
    const answer = await (await start())(
      'OPTIONS',
      '/',
      asking(GOOD, 'PUT', { 'Access-Control-Request-Headers': 'authorization' }),
    )
    expect([answer.status, answer.text]).toEqual([204, ''])
    expect(answer.field('access-control-allow-origin')).toBe(GOOD)
    expect(answer.field('access-control-allow-methods')).toBe('GET, PUT')
    expect(answer.field('access-control-allow-headers')!.split(', ')).toContain('Authorization')
    expect(answer.field('access-control-max-age')).toBe('86400')
    expect(answer.field('vary')).toBe('Origin')
    expect(answer.field('content-length')).toBeUndefined()
    for (const name of ['access-control-expose-headers', 'access-control-allow-credentials', 'allow']) {
      expect(answer.field(name)).toBeUndefined()
    }
  })

  it('adds to every other answer what scripts may read, and nothing of a preflight (rows X13, X14)', async () => {
    const answer = await (await start())('GET', '/', { Origin: GOOD })
    expect(answer.text).toBe('the route')
    expect(corsFieldsOf(answer)).toEqual(['access-control-allow-origin', 'access-control-expose-headers'])
    const exposed = answer.field('access-control-expose-headers')!.split(', ')
    for (const name of [
      'ETag',
      'Location',
      'Content-Range',
      'Accept-Patch',
      'Accept-Ranges',
      'Allow',
      'Link',
      'Retry-After',
      'WWW-Authenticate',
      'Preference-Applied',
      'Repr-Digest',
      'Deprecation',
      'Sunset',
      'Last-Modified',
    ])
      expect(exposed).toContain(name)
  })

  it('leaves OPTIONS that is not a preflight to the route (row X1)', async () => {
    const send = await start()
    for (const fields of [{}, { Origin: GOOD }, { 'Access-Control-Request-Method': 'PUT' }] as Fields[]) {
      const answer = await send('OPTIONS', '/', fields)
      expect([answer.status, answer.field('access-control-allow-methods')]).toEqual([200, undefined])
    }
  })

  it.each([
    'https://a.test.evil',
    'https://evilapp.test',
    'https://app.test.evil.test',
    'http://app.test',
    'https://app.test:8443',
    'https://app.test:443',
    'https://app.test.',
    'https://u@app.test',
    'https://App.test',
    'HTTPS://app.test',
    'https://app.test/',
    'app.test',
    'null',
    'https://app.test,https://evil.test',
    '*',
    'https://sub.app.test',
  ])('grants nothing to %s (rows X4, X7, X16, threats 126 to 128)', async (origin) => {
    const send = await start({ credentials: true })
    const refused = await send('OPTIONS', '/', asking(origin))
    expect([refused.status, corsFieldsOf(refused), refused.field('vary')]).toEqual([204, [], 'Origin'])
    const actual = await send('GET', '/', { Origin: origin })
    expect([actual.text, corsFieldsOf(actual), actual.field('vary')]).toEqual(['the route', [], 'Origin'])
    expect(actual.field('x-content-type-options')).toBeUndefined()
  })

  it('varies by Origin exactly where the answer depends on it (row X8, threat 130)', async () => {
    const named = await start()
    for (const fields of [{}, { Origin: GOOD }, { Origin: EVIL }] as Fields[]) {
      expect((await named('GET', '/', fields)).field('vary')).toBe('Origin')
    }
    const any = await start({ origins: '*' })
    for (const fields of [{}, { Origin: GOOD }] as Fields[]) {
      const answer = await any('GET', '/', fields)
      expect([answer.field('access-control-allow-origin'), answer.field('vary')]).toEqual(['*', undefined])
    }
    expect((await any('OPTIONS', '/', asking(EVIL))).field('access-control-allow-origin')).toBe('*')
  })

  it('is on 304, 412 and 416 as well (rows H137 and X15)', async () => {
    const send = await serve(
      mount([
        preflight({ origins: GOOD }),
        conditional(() => ({ entityTag: '"e"' })),
        range(() => ({ contentType: 'text/plain', entityTag: '"e"', content: 'abc' })),
      ]),
    )
    const statuses = [
      [304, { 'If-None-Match': '"e"' }],
      [412, { 'If-Match': '"x"' }],
      [416, { Range: 'bytes=9-' }],
      [206, { Range: 'bytes=0-1' }],
    ] as const
    for (const [status, fields] of statuses) {
      const answer = await send('GET', '/', { Origin: GOOD, ...fields })
      expect([answer.status, answer.field('access-control-allow-origin')]).toEqual([status, GOOD])
      for (const name of [...CORS_FIELDS, 'vary', 'x-content-type-options'])
        expect(answer.values(name).length).toBeLessThan(2)
      expect(answer.field('vary')).toBe('Origin')
    }
  })

  it('names the credentials only to origins that are allowed (rows X6 and X7)', async () => {
    const send = await start({ origins: [GOOD, 'https://b.test'], credentials: true })
    for (const origin of [GOOD, 'https://b.test']) {
      const answer = await send('GET', '/', { Origin: origin })
      expect(answer.field('access-control-allow-origin')).toBe(origin)
      expect(answer.field('access-control-allow-credentials')).toBe('true')
    }
  })

  it('matches patterns below a dot only (row X21)', async () => {
    const send = await start({ origins: ['https://*.a.test', 'https://*.b.test:8443'] })
    const isAllowed = async (origin: string) =>
      (await send('GET', '/', { Origin: origin })).values('access-control-allow-origin').length === 1
    for (const origin of ['https://x.a.test', 'https://x.y.a.test', 'https://x.b.test:8443']) {
      expect([origin, await isAllowed(origin)]).toEqual([origin, true])
    }
    for (const origin of [
      'https://a.test',
      'https://xa.test',
      'http://x.a.test',
      'https://x.a.test:8443',
      'https://x.b.test',
      'https://x.a.test.evil',
      'https://evil/.a.test',
      'https://evil?.a.test',
      'https://.a.test',
      'https://x@y.a.test',
      'https://x..a.test',
    ])
      expect([origin, await isAllowed(origin)]).toEqual([origin, false])
  })

  it('asks a function about each origin, whatever it returns in whichever way', async () => {
    const asked: string[] = []
    const answers: Record<string, unknown> = {
      [GOOD]: true,
      'https://b.test': Promise.resolve(true),
      'https://c.test': 'yes',
    }
    const send = await start({
      origins: (origin) => {
        asked.push(origin)
        return answers[origin] as boolean
      },
    })
    const isAllowed = async (origin: string) =>
      (await send('GET', '/', { Origin: origin })).values('access-control-allow-origin').length === 1
    expect([await isAllowed(GOOD), await isAllowed('https://b.test')]).toEqual([true, true])
    expect([await isAllowed('https://c.test'), await isAllowed(EVIL)]).toEqual([false, false])
    asked.length = 0
    expect([await isAllowed('null'), await isAllowed('no origin')]).toEqual([false, false])
    expect(asked).toEqual([])
    expect((await send('GET', '/')).status).toBe(200)
    expect(asked).toEqual([])
  })

  it('fails the request, not the process, when the function throws', async () => {
    const send = await start({
      origins: async () => {
        throw new Error('no list')
      },
    })
    expect((await send('GET', '/', { Origin: GOOD })).status).toBe(500)
  })

  it('allows null where it is listed', async () => {
    const send = await start({ origins: ['null'] })
    expect((await send('GET', '/', { Origin: 'null' })).field('access-control-allow-origin')).toBe('null')
  })

  it('gives the methods of each resource (rows X9 and X23)', async () => {
    const send = await start({
      methods: ({ path }) => (path === '/users' ? ['GET', 'HEAD', 'POST', 'OPTIONS'] : ['GET']),
    })
    const methodsOf = async (path: string) =>
      (await send('OPTIONS', path, asking(GOOD, 'PATCH'))).field('access-control-allow-methods')
    expect([await methodsOf('/users'), await methodsOf('/other')]).toEqual(['GET, HEAD, POST', 'GET'])
  })

  it('allows all methods that the library knows by default, QUERY among them (RFC 10008)', async () => {
    const send = await serve(mount([preflight({ origins: GOOD })], () => 'the route'))
    const answer = await send('OPTIONS', '/', asking(GOOD, 'QUERY'))
    expect(answer.field('access-control-allow-methods')).toBe('GET, HEAD, QUERY, POST, PUT, PATCH, DELETE')
    const queries = await start({ methods: ['GET', 'QUERY'] })
    expect((await queries('OPTIONS', '/', asking(GOOD, 'QUERY'))).field('access-control-allow-methods')).toBe(
      'GET, QUERY',
    )
  })

  it('reflects nothing of what is asked for (row X18, threat 131)', async () => {
    const send = await start({ allowedHeaders: ['Content-Type', 'Authorization'] })
    for (const names of ['x-a,,x-b', 'x a', '__proto__', 'a\tb', ',', '*']) {
      const answer = await send('OPTIONS', '/', asking(GOOD, 'EVIL', { 'Access-Control-Request-Headers': names }))
      expect(answer.field('access-control-allow-headers')).toBe('Content-Type, Authorization')
      expect(answer.field('access-control-allow-methods')).toBe('GET, PUT')
    }
  })

  it('lists Authorization beside an asterisk, which does not cover it (row X10)', async () => {
    const answer = await (await start({ allowedHeaders: '*', exposedHeaders: '*' }))('OPTIONS', '/', asking(GOOD))
    expect(answer.field('access-control-allow-headers')).toBe('*, Authorization')
  })

  it('answers private networks only on request, and only where it may (row X22, threat 135)', async () => {
    const fields = asking(GOOD, 'PUT', { 'Access-Control-Request-Private-Network': 'true' })
    expect(
      (await (await start())('OPTIONS', '/', fields)).field('access-control-allow-private-network'),
    ).toBeUndefined()
    const open = await start({ privateNetwork: true })
    const answer = await open('OPTIONS', '/', fields)
    expect(answer.field('access-control-allow-private-network')).toBe('true')
    expect(answer.field('vary')).toBe('Origin, Access-Control-Request-Private-Network')
    expect((await open('OPTIONS', '/', asking(GOOD))).field('access-control-allow-private-network')).toBeUndefined()
  })

  it('tells timing and embedding where configured (row X25)', async () => {
    const send = await start({ timing: true, resourcePolicy: 'same-site' })
    const answer = await send('GET', '/', { Origin: GOOD })
    expect([answer.field('timing-allow-origin'), answer.field('cross-origin-resource-policy')]).toEqual([
      GOOD,
      'same-site',
    ])
    expect((await send('GET', '/')).field('cross-origin-resource-policy')).toBe('same-site')
    expect((await send('GET', '/', { Origin: EVIL })).field('cross-origin-resource-policy')).toBe('same-site')
  })

  it('refuses other origins with 403 where configured, and never the own one (row X17)', async () => {
    const port = await listen(mount([preflight({ origins: GOOD, rejectOrigin: true })], () => 'the route'))
    const own = `http://127.0.0.1:${port}`
    expect((await ask(port, 'POST', '/', { Origin: EVIL })).status).toBe(403)
    expect((await ask(port, 'OPTIONS', '/', asking(EVIL))).status).toBe(403)
    expect((await ask(port, 'POST', '/', { Origin: own })).text).toBe('the route')
    expect((await ask(port, 'POST', '/', { Origin: GOOD })).text).toBe('the route')
    expect((await ask(port, 'POST', '/')).text).toBe('the route')
  })

  it('asks a function about each request: an origin that it has withdrawn is not allowed any more', async () => {
    let isAllowed = true
    const send = await start({ origins: () => isAllowed })
    const allowed = async () => (await send('GET', '/', { Origin: GOOD })).field('access-control-allow-origin')
    expect([await allowed(), await allowed()]).toEqual([GOOD, GOOD])
    isAllowed = false
    expect(await allowed()).toBeUndefined()
  })

  it('works under a mount and for a malformed path alike', async () => {
    expect((await (await start())('OPTIONS', '/a%zz', asking(GOOD))).status).toBe(204)
  })
})

describe('preflight', () => {
  it.each<[string, object]>([
    ['nothing', {}],
    ['"*" with credentials (row X6, threat 129)', { origins: '*', credentials: true }],
    ['"*" in a list with credentials', { origins: ['*'], credentials: true }],
    ['all headers with credentials (row X11)', { origins: GOOD, allowedHeaders: '*', credentials: true }],
    ['all exposed headers with credentials (row X11)', { origins: GOOD, exposedHeaders: ['*'], credentials: true }],
    ['"*" beside an origin', { origins: ['*', GOOD] }],
    ['an origin with a path', { origins: 'https://app.test/' }],
    ['an origin with its default port', { origins: 'https://app.test:443' }],
    ['an origin in capitals', { origins: 'https://App.test' }],
    ['a host', { origins: ['app.test'] }],
    ['a pattern without its dot', { origins: 'https://*app.test' }],
    ['a pattern inside', { origins: 'https://app.*.test' }],
    ['a negative age', { origins: GOOD, maxAge: -1 }],
    ['half a second', { origins: GOOD, maxAge: 0.5 }],
    ['a field that is not a name', { origins: GOOD, allowedHeaders: ['x a'] }],
    ['a policy that does not exist', { origins: GOOD, resourcePolicy: 'none' }],
    ['an option that does not exist', { origins: GOOD, origin: GOOD }],
  ])('refuses %s at construction', (_what, options) => {
    expect(() => preflight(options as CorsOptions)).toThrow(TypeError)
  })

  it('is not misled by a polluted prototype (threat 150)', async () => {
    const prototype = Object.prototype as { credentials?: boolean; origin?: string }
    prototype.credentials = true
    prototype.origin = GOOD
    try {
      const send = await serve(preflight({ origins: GOOD }))
      expect(corsFieldsOf(await send('GET', '/'))).toEqual([])
    } finally {
      delete prototype.credentials
      delete prototype.origin
    }
  })

  it('stays on the error answers of Express (row X15, threat 133)', async () => {
    const app = express()
    app.use(preflight({ origins: GOOD }))
    app.use('/401', (_req, _res, next) => next(Object.assign(new Error('who?'), { status: 401 })))
    app.use('/500', () => {
      throw new Error('broken')
    })
    const send = await serve(app)
    for (const status of [401, 404, 500]) {
      const answer = await send('GET', `/${status}`, { Origin: GOOD })
      expect([answer.status, answer.field('access-control-allow-origin')]).toEqual([status, GOOD])
      expect(answer.field('vary')).toBe('Origin')
      expect(corsFieldsOf(await send('GET', `/${status}`, { Origin: EVIL }))).toEqual([])
    }
  })

  it('stays on the error answers of Koa, which drops what was set (row X15, threat 133)', async () => {
    const app = new Koa()
    app.silent = true
    app.use(koaMiddleware(preflight({ origins: GOOD, credentials: true })))
    app.use((context) => {
      if (context.path === '/404') return
      if (context.path === '/500') throw new Error('broken')
      context.throw(401, 'who?', { headers: { 'WWW-Authenticate': 'Basic' } })
    })
    const send = await serve(app.callback())
    for (const status of [401, 404, 500]) {
      const answer = await send('GET', `/${status}`, { Origin: GOOD })
      expect([answer.status, answer.field('access-control-allow-origin')]).toEqual([status, GOOD])
      expect([answer.field('access-control-allow-credentials'), answer.field('vary')]).toEqual(['true', 'Origin'])
      expect(answer.field('www-authenticate')).toBe(status === 401 ? 'Basic' : undefined)
      expect(corsFieldsOf(await send('GET', `/${status}`, { Origin: EVIL }))).toEqual([])
    }
  })

  it('sends no field twice when the host has CORS of its own, before or after (row X20)', async () => {
    const other: express.RequestHandler = (_req, res, next) => {
      res.set({ 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': 'X-Other' })
      res.vary('Origin')
      next()
    }
    for (const order of ['before', 'after']) {
      const app = express()
      if (order === 'before') app.use(other)
      app.use(preflight({ origins: GOOD }))
      if (order === 'after') app.use(other)
      app.use((_req, res) => void res.send('x'))
      const send = await serve(app)
      for (const [method, fields] of [
        ['GET', { Origin: GOOD }],
        ['OPTIONS', asking(GOOD)],
      ] as const) {
        const answer = await send(method, '/', fields)
        for (const name of [...CORS_FIELDS, 'vary']) expect(answer.values(name).length).toBeLessThan(2)
        expect(answer.field('vary')).toBe('Origin')
      }
    }
  })

  it('sends no field twice where two are mounted on a request: those of the second count', async () => {
    const app = express()
    app.use(preflight({ origins: ['https://app.example', 'https://b.example'], timing: true, maxAge: 1 }))
    app.use('/api', preflight({ origins: ['https://app.example'], exposedHeaders: ['Timing-Allow-Origin'] }))
    app.use((_req, res) => void res.send('x'))
    const send = await serve(app)
    const answer = await send('GET', '/api/x', { Origin: 'https://app.example' })
    expect(answer.field('access-control-allow-origin')).toBe('https://app.example')
    expect(answer.field('access-control-expose-headers')).toBe('Timing-Allow-Origin')
    expect(answer.field('timing-allow-origin')).toBe('https://app.example')
    expect((await send('GET', '/api/x', { Origin: 'https://b.example' })).field('access-control-allow-origin')).toBe(
      'https://b.example',
    )
  })

  it('keeps what the route adds to Vary', async () => {
    const app = express()
    app.use(preflight({ origins: GOOD }))
    app.use((_req, res) => void res.vary('Accept').send('x'))
    expect((await (await serve(app))('GET', '/')).field('vary')).toBe('Origin, Accept')
  })
})

it('keeps no origin that is longer than those of browsers, where a pattern allows any', MEASURED, async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const piece = preflight({ origins: 'https://*.a.test', methods: ['GET'] })
  const send = await serve((req, res) => piece(req, res, () => res.end()))
  const long = 'x'.repeat(14_000)
  const ask = async (i: number) => (await send('GET', '/', { Origin: `https://${long}${i}.a.test` })).status
  const statuses = new Set([await ask(0)])
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  for (let i = 1; i <= 400; i++) statuses.add(await ask(i))
  collectGarbage()
  expect([...statuses]).toEqual([200])
  // All origins together have 5.6 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(2_500_000)
})
