import { once } from 'node:events'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import express from 'express'
import express4 from 'express4'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { auth, basic, bearer, digest, jwt, negotiate, principalOf } from '../../src/auth.ts'
import type { AuthScheme } from '../../src/auth-schemes/scheme.ts'
import type { AuthOptions } from '../../src/handlers/auth.ts'
import { answerChallenge } from '../auth-schemes/digest-client.ts'
import { basicCredentials, type GuardedServer, send, serveGuarded } from '../auth-schemes/guarded-server.ts'
import { createIssuer, issue } from '../auth-schemes/tokens.ts'
import { listen } from './serve.ts'

const servers: { close(): unknown }[] = []
const accounts = { ada: 'secret' }
const ada = { Authorization: basicCredentials('ada', 'secret') }
const issuer = createIssuer('ES256')
const expected = { issuer: 'https://issuer.test', audience: 'api' }
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

async function serve(options: Partial<AuthOptions> = {}): Promise<GuardedServer> {
  const guarded = await serveGuarded({ schemes: [basic({ accounts })], ...options })
  servers.push(guarded)
  return guarded
}

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

describe('auth', () => {
  it('knows the principal of a request with good credentials', async () => {
    const { send } = await serve()
    expect((await send({ headers: ada })).principal).toEqual({ scheme: 'basic', id: 'ada' })
  })

  it('answers 401 with the challenge of every scheme, in order, each on a line of its own (RFC 9110 §11.6.1)', async () => {
    const { send } = await serve({
      schemes: [
        bearer(() => false),
        digest({ accounts, algorithms: ['SHA-256', 'MD5'] }),
        negotiate({ acceptor: () => ({ step: () => ({ outcome: 'rejected', reason: '' }) }) }),
        basic({ accounts }),
      ],
    })
    const expected = [
      /^Bearer realm="Resources"$/,
      /^Digest realm="Resources", .*algorithm=SHA-256/,
      /^Digest realm="Resources", .*algorithm=MD5/,
      /^Negotiate$/,
      /^Basic realm="Resources", charset="UTF-8"$/,
    ].map((text) => expect.stringMatching(text))
    for (const Authorization of [undefined, 'Basic !', 'Unknown x', 'Negotiate YQ==', '===', 'Basic']) {
      const answer = await send(Authorization === undefined ? {} : { headers: { Authorization } })
      expect(answer.status).toBe(401)
      expect(answer.challenges).toEqual(expected)
    }
    const failed = await send({ headers: { Authorization: 'Bearer x' } })
    expect(failed.challenges[0]).toContain('error="invalid_token"')
    expect(failed.challenges.slice(1)).toEqual(expected.slice(1))
  })

  it('tells a client nothing but that credentials are needed (threats 119, 120, 124)', async () => {
    const { send } = await serve()
    const { headers, body } = await send()
    expect(JSON.parse(body)).toEqual({
      type: 'urn:problem-type:http-resource-service:unauthenticated',
      title: 'Unauthorized',
      status: 401,
      detail: 'Credentials are required.',
    })
    expect(headers).toMatchObject({
      ...{ 'cache-control': 'no-store', vary: 'Authorization', 'x-content-type-options': 'nosniff' },
      'content-type': 'application/problem+json',
    })
    expect(headers).not.toHaveProperty('etag')
    expect(headers).not.toHaveProperty('last-modified')
  })

  it('tells caches that the answer depends on Authorization, also the anonymous one where it is optional (RFC 9111 §4.1)', async () => {
    const { send } = await serve({ requireAuth: 'writes' })
    expect((await send({ headers: ada })).headers).toMatchObject({
      vary: 'Authorization',
      'cache-control': 'private, no-cache',
    })
    const { headers } = await send()
    expect([headers.vary, headers['cache-control']]).toEqual(['Authorization', undefined])
  })

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['no principal', { outcome: 'accepted' }],
    ['a principal without a name', { outcome: 'accepted', principal: { scheme: 'x' } }],
    ['a name that is not text', { outcome: 'accepted', principal: { scheme: 'x', id: 7 } }],
    ['another outcome', { outcome: 'denied', principal: { scheme: 'x', id: 'ada' } }],
  ])('answers 500 where a scheme of the user gives %s', async (_, result) => {
    const scheme = { name: 'Own', challenges: () => ['Own'], authenticate: () => result } as unknown as AuthScheme
    const { send, failures } = await serve({ schemes: [scheme] })
    expect((await send({ headers: { Authorization: 'Own 1' } })).status).toBe(500)
    expect(String(failures[0])).toContain('The scheme Own gave neither a principal nor a rejection.')
  })

  it.each([[['X Y', 'x']], [['X-Y']], [['X-Y', 'a\nb']], ['X-Y: x']])(
    'answers 500 where such a scheme gives the fields %j',
    async (fields) => {
      const result = { outcome: 'accepted', principal: { scheme: 'own', id: 'ada' }, fields }
      const scheme = { name: 'Own', challenges: () => ['Own'], authenticate: () => result } as unknown as AuthScheme
      const { send, failures } = await serve({ schemes: [scheme] })
      expect((await send({ headers: { Authorization: 'Own 1' } })).status).toBe(500)
      expect(String(failures[0])).toContain('The scheme Own gave fields that no message can have.')
    },
  )

  it.each<[string, () => unknown]>([
    ['text', () => 'Own realm="a"'],
    ['a promise', () => Promise.reject(new Error('too late'))],
  ])('answers 500 where the challenges of such a scheme are %s', async (kind, challenges) => {
    const rejected = { outcome: 'rejected', reason: 'wrong' }
    for (const scheme of [
      { name: 'Own', challenges, authenticate: () => rejected },
      { name: 'Own', challenges: () => [], authenticate: () => ({ ...rejected, challenges: challenges() }) },
    ]) {
      const { send, failures } = await serve({ schemes: [scheme as unknown as AuthScheme] })
      expect((await send({ headers: { Authorization: 'Own 1' } })).status).toBe(500)
      expect(String(failures[0])).toContain(`The scheme Own gave as challenges ${kind}`)
    }
  })

  it.each(METHODS)('lets no %s through without credentials (threat 109)', async (method) => {
    const { send } = await serve()
    const refused = await send({ method })
    expect([refused.status, refused.challenges.length]).toEqual([401, 1])
    expect((await send({ method, headers: ada })).status).toBe(200)
  })

  it.each(METHODS)('with "writes", asks for credentials of %s only where it writes', async (method) => {
    const { send } = await serve({ requireAuth: 'writes' })
    const isSafe = ['GET', 'HEAD', 'OPTIONS'].includes(method)
    expect((await send({ method })).status).toBe(isSafe ? 200 : 401)
  })

  it('with "none", asks for credentials of no request, and verifies what is sent', async () => {
    const { send } = await serve({ requireAuth: 'none' })
    expect((await send({ method: 'DELETE' })).status).toBe(200)
    expect((await send({ headers: { Authorization: basicCredentials('ada', 'wrong') } })).status).toBe(401)
  })

  it('with a function, asks whatever it says, and where it says nothing', async () => {
    const { send } = await serve({
      requireAuth: ({ path, query, method }) => {
        if (path === '/forgotten') return undefined as never
        return method === 'DELETE' || query.has('deleted') || path.startsWith('/private/')
      },
    })
    const ask = async (path: string, method = 'GET') => (await send({ path, method })).status
    expect([await ask('/'), await ask('/public/x'), await ask('/private'), await ask('/?x')]).toEqual([
      200, 200, 200, 200,
    ])
    expect([await ask('/private/x'), await ask('/?deleted=true'), await ask('/', 'DELETE')]).toEqual([401, 401, 401])
    expect(await ask('/forgotten')).toBe(401)
    expect(await ask('/%70rivate/x')).toBe(401)
  })

  it('verifies credentials that are sent without need', async () => {
    const { send } = await serve({ requireAuth: () => false })
    expect((await send({ headers: ada })).principal?.id).toBe('ada')
    expect((await send({ headers: { Authorization: basicCredentials('ada', 'x') } })).status).toBe(401)
    expect((await send({ headers: { Authorization: 'Unknown x' } })).status).toBe(401)
  })

  it('asks nothing of a preflight, nor of OPTIONS * (threat 109)', async () => {
    const { send } = await serve()
    const origin = { Origin: 'https://a.test' }
    const preflight = { ...origin, 'Access-Control-Request-Method': 'PUT' }
    expect((await send({ method: 'OPTIONS', headers: preflight })).status).toBe(200)
    expect((await send({ method: 'OPTIONS', headers: origin })).status).toBe(401)
    expect((await send({ method: 'OPTIONS', headers: { 'Access-Control-Request-Method': 'PUT' } })).status).toBe(401)
    expect((await send({ method: 'GET', headers: preflight })).status).toBe(401)
    expect((await send({ method: 'OPTIONS', path: '*' })).status).toBe(200)
    expect((await send({ method: 'OPTIONS', path: '/*' })).status).toBe(401)
  })

  it('answers 400 to a repeated Authorization field (design, small rulings)', async () => {
    const { port } = await serve()
    const socket = connect(port, '127.0.0.1')
    socket.end(
      `GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n` +
        `Authorization: ${ada.Authorization}\r\nauthorization: ${ada.Authorization}\r\n\r\n`,
    )
    let text = ''
    for await (const chunk of socket) text += chunk
    expect(text).toMatch(/^HTTP\/1.1 400 /)
  })

  it.each(['', ' ', 'Basic', 'basic', 'Basic ', ':', 'Basic, x', '"Basic" x', 'Basic\tx', '\u00ff'])(
    'answers 401 to %j in the Authorization field',
    async (Authorization) => {
      const server = await serve()
      expect((await server.send({ headers: { Authorization } })).status).toBe(401)
      expect(server.failures).toEqual([])
    },
  )

  it('finds credentials in the Authorization field only (threat 107)', async () => {
    const { send } = await serve()
    const headers = { 'Proxy-Authorization': ada.Authorization, Cookie: `Authorization=${ada.Authorization}` }
    expect((await send({ path: '/?authorization=x', headers })).status).toBe(401)
    expect((await send({ headers: { 'X-Authorization': ada.Authorization } })).status).toBe(401)
  })

  it('takes no field from a polluted prototype (threat 150)', async () => {
    const { send } = await serve()
    const polluted = Object.prototype as Record<string, unknown>
    polluted['authorization'] = ada.Authorization
    try {
      expect((await send()).status).toBe(401)
    } finally {
      delete polluted['authorization']
    }
  })

  it('takes no claims from a polluted prototype: those of a scheme of the user are its own', async () => {
    const scheme: AuthScheme = {
      name: 'X-Key',
      challenges: () => [],
      authenticate: () => ({ outcome: 'accepted', principal: { scheme: 'x-key', id: 'ada' } }),
    }
    const { send } = await serve({
      schemes: [scheme],
      authorize: (principal) => principal?.claims?.['role'] === 'admin',
    })
    const polluted = Object.prototype as Record<string, unknown>
    polluted['claims'] = { role: 'admin' }
    try {
      expect((await send({ headers: { Authorization: 'X-Key a' } })).status).toBe(403)
    } finally {
      delete polluted['claims']
    }
  })

  it('hands a principal of a class of the user on as it is', async () => {
    class User {
      readonly scheme = 'x-key'
      readonly id = 'ada'
      get claims(): Readonly<Record<string, string>> {
        return { role: 'admin' }
      }
    }
    const user = new User()
    const scheme: AuthScheme = {
      name: 'X-Key',
      challenges: () => [],
      authenticate: () => ({ outcome: 'accepted', principal: user }),
    }
    const seen: unknown[] = []
    const { send } = await serve({
      schemes: [scheme],
      authorize(principal) {
        seen.push(principal)
        return principal?.claims?.['role'] === 'admin'
      },
    })
    expect((await send({ headers: { Authorization: 'X-Key a' } })).status).toBe(200)
    expect(seen[0]).toBe(user)
  })

  it.each<[string, AuthScheme, string]>([
    ['basic with cacheLifetime', basic({ accounts, cacheLifetime: 60_000 }), ada.Authorization],
    ['bearer with cacheLifetime', bearer(() => ({ id: 'ada' }), { cacheLifetime: 60_000 }), 'Bearer a'],
    ['bearer with jwt', bearer(jwt({ ...expected, keys: issuer.publicKey })), `Bearer ${issue(issuer)}`],
  ])('shows the next request nothing of what a hook writes on a principal: %s', async (_, scheme, Authorization) => {
    const seen: unknown[] = []
    const { send } = await serve({
      schemes: [scheme],
      authorize(principal) {
        seen.push({ ...principal, claims: undefined })
        return Object.assign(principal!, { id: 'root', role: 'admin' }).id === 'root'
      },
    })
    for (const _ of [1, 2]) {
      expect((await send({ headers: { Authorization } })).principal).toMatchObject({ id: 'root', role: 'admin' })
    }
    expect(seen[1]).toEqual(seen[0])
    expect(seen[0]).toMatchObject({ id: 'ada' })
  })

  it('asks whether the principal may: 403, or 404 where existence is a secret', async () => {
    const { send } = await serve({
      requireAuth: 'writes',
      authorize: async (principal, { method, path }) => {
        if (path === '/secret') return principal === undefined ? 'not-found' : true
        return method === 'GET' || path !== '/forbidden'
      },
    })
    expect((await send({ path: '/forbidden', method: 'PUT' })).status).toBe(401)
    const forbidden = await send({ path: '/forbidden', method: 'PUT', headers: ada })
    expect([forbidden.status, forbidden.challenges]).toEqual([403, []])
    expect((await send({ path: '/secret' })).status).toBe(404)
    expect((await send({ path: '/secret', headers: ada })).status).toBe(200)
    for (const { headers } of [forbidden, await send({ path: '/secret' })]) {
      expect(headers['cache-control']).toBe('no-store')
      expect(headers).not.toHaveProperty('etag')
    }
  })

  it.each([undefined, null, 0, 1, '', 'yes', {}])('takes %j from authorize for a no', async (verdict) => {
    const { send } = await serve({ authorize: () => verdict as never })
    expect((await send({ headers: ada })).status).toBe(403)
  })

  it('forwards what it did not expect to the host', async () => {
    const server = await serve({
      authorize: () => {
        throw new Error('secret')
      },
    })
    const { status, body } = await server.send({ headers: ada })
    expect([status, server.failures.length]).toEqual([500, 1])
    expect(body).not.toContain('secret')
  })

  it('reports what it did not expect where there is no host', async () => {
    const onError = vi.fn()
    const guard = auth({ schemes: [basic({ verify: () => Promise.reject(new Error('secret')) })], onError })
    const port = await listen((req, res) => guard(req, res))
    const answer = await send(port, { headers: ada })
    expect([answer.status, onError.mock.calls.length]).toEqual([500, 1])
    expect(answer.body).not.toContain('secret')
  })

  it('answers 404 to what passes where there is no host', async () => {
    const guard = auth({ schemes: [basic({ accounts })] })
    const port = await listen((req, res) => guard(req, res))
    expect((await send(port, { headers: ada })).status).toBe(404)
    expect((await send(port)).status).toBe(401)
  })

  it('works over HTTP/2, with every challenge a field of its own', async () => {
    const guard = auth({ schemes: [bearer(() => false), digest({ accounts }), basic({ accounts })] })
    const server = createHttp2Server((req, res) => guard(req, res, () => res.end(principalOf(req)?.id ?? '')))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const ask = async (fields: Readonly<Record<string, string>>) => {
      const stream = client.request({ ':path': '/a?b', ...fields })
      let raw: readonly string[] = []
      stream.once('response', (_fields: unknown, _flags: unknown, list: readonly string[]) => {
        raw = list
      })
      let body = ''
      for await (const chunk of stream) body += chunk
      const challenges = raw.flatMap((name, i) => (i % 2 === 0 && name === 'www-authenticate' ? [raw[i + 1]!] : []))
      return { body, challenges }
    }
    const { challenges } = await ask({})
    expect(challenges.map((text) => text.split(' ')[0])).toEqual(['Bearer', 'Digest', 'Basic'])
    expect((await ask({ authorization: ada.Authorization })).body).toBe('ada')
    const authorization = answerChallenge(challenges[1], { uri: '/a?b' })
    expect((await ask({ authorization })).body).toBe('ada')
    expect((await ask({ authorization })).challenges).toHaveLength(3)
    client.close()
    server.close()
    await once(server, 'close')
  })

  it('takes a scheme of the user', async () => {
    const scheme: AuthScheme = {
      name: 'X-Key',
      challenges: () => [],
      authenticate: (value) =>
        value === 'good'
          ? { outcome: 'accepted', principal: { scheme: 'x-key', id: 'ada' }, fields: ['X-Seen', '1', 'X-Seen', '2'] }
          : { outcome: 'rejected', reason: 'no' },
    }
    const { send } = await serve({ schemes: [scheme] })
    expect((await send()).challenges).toEqual(['X-Key'])
    const answer = await send({ headers: { Authorization: 'x-key good' } })
    expect([answer.principal?.id, answer.headers['x-seen']]).toEqual(['ada', '1, 2'])
  })

  it.each<[string, object]>([
    ['nothing', {}],
    ['no schemes', { schemes: [] }],
    ['a scheme that is none', { schemes: [basic] }],
    ['a scheme without a name', { schemes: [{ ...basic({ accounts }), name: '' }] }],
    ['a name that is not a token', { schemes: [{ ...basic({ accounts }), name: 'a b' }] }],
    ['two schemes of one name', { schemes: [basic({ accounts }), { ...basic({ accounts }), name: 'BASIC' }] }],
    ['a rule that it does not know', { schemes: [basic({ accounts })], requireAuth: 'reads' }],
    ['a rule that is none', { schemes: [basic({ accounts })], requireAuth: false }],
    ['an authorize that is none', { schemes: [basic({ accounts })], authorize: true }],
    ['an option that does not exist', { schemes: [basic({ accounts })], required: 'all' }],
  ])('is not made with %s', (_, options) => {
    expect(() => auth(options as AuthOptions)).toThrow(TypeError)
  })
})

describe.each([
  ['Express 5', express],
  ['Express 4', express4 as unknown as typeof express],
])('auth in %s', (_, create) => {
  it('guards what is mounted behind it, at its prefix only', async () => {
    const app = create()
    const guard = auth({
      schemes: [digest({ accounts }), basic({ accounts })],
      requireAuth: 'writes',
      authorize: (principal, { path, mount }) => mount === '/api' && (path !== '/admin' || principal?.id === 'root'),
    })
    app.use('/api', guard as unknown as express.RequestHandler)
    app.use((req, res) => {
      res.json({ principal: principalOf(req) })
    })
    const port = await listen(app)
    expect((await send(port, { path: '/other', method: 'PUT' })).status).toBe(200)
    expect((await send(port, { path: '/api/x' })).status).toBe(200)
    expect((await send(port, { path: '/api/x', method: 'PUT' })).status).toBe(401)
    expect((await send(port, { path: '/API/x', method: 'PUT' })).status).toBe(401)
    expect((await send(port, { path: '/api/x', method: 'PUT', headers: ada })).principal?.id).toBe('ada')
    expect((await send(port, { path: '/api/admin', headers: ada })).status).toBe(403)
  })

  it('binds Digest to the whole target', async () => {
    const app = create()
    app.use('/api', auth({ schemes: [digest({ accounts })] }) as unknown as express.RequestHandler)
    app.use((req, res) => {
      res.json({ principal: principalOf(req) })
    })
    const port = await listen(app)
    const { challenges } = await send(port, { path: '/api/a?b' })
    const headers = { Authorization: answerChallenge(challenges[0], { uri: '/api/a?b' }) }
    expect((await send(port, { path: '/api/a?c', headers })).status).toBe(401)
    const answer = await send(port, { path: '/api/a?b', headers })
    expect(answer.principal?.id).toBe('ada')
    expect(answer.headers['authentication-info']).toContain('rspauth=')
  })
})

it('auth lets a request on whose answer has begun: its caching is no longer to be said', async () => {
  const guard = auth({ schemes: [basic({ accounts })] })
  const port = await listen((req, res) => {
    res.writeHead(200).write('{')
    guard(req, res, (error?: unknown) => void res.end(error === undefined ? '}' : String(error)))
  })
  expect(await send(port, { headers: ada })).toMatchObject({ status: 200 })
})
