import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  type BearerOptions,
  bearer,
  insufficientScope,
  type OpaqueTokenVerifier,
} from '../../src/auth-schemes/bearer.ts'
import { HttpError } from '../../src/core/errors.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { runListener } from '../support/hosts.ts'
import { type GuardedServer, serveGuarded } from './guarded-server.ts'
import { bearerHeader } from './tokens.ts'

let guarded: GuardedServer | undefined

async function serve(verify: OpaqueTokenVerifier, options?: BearerOptions): Promise<GuardedServer> {
  guarded = await serveGuarded({ schemes: [bearer(verify, options)] })
  return guarded
}

afterEach(async () => {
  vi.useRealTimers()
  await guarded?.close()
  guarded = undefined
})

const INVALID = /^Bearer realm="Resources", error="invalid_token", error_description="[^"\\]+"$/

describe('bearer', () => {
  it('asks with a realm and no error (RFC 6750 §3, row T3)', async () => {
    const { send } = await serve(() => true, { realm: 'a "b"' })
    const { status, challenges } = await send()
    expect([status, challenges]).toEqual([401, ['Bearer realm="a \\"b\\""']])
  })

  it('takes a token in the Authorization field, whatever the case of the scheme (RFC 6750 §2.1, row T1)', async () => {
    const { send } = await serve((token) => (token === 'tok' ? { id: 'ada' } : false))
    expect((await send(bearerHeader('tok'))).principal).toEqual({ scheme: 'bearer', id: 'ada' })
    expect((await send({ headers: { Authorization: 'bEARER   tok' } })).status).toBe(200)
  })

  it.each(['/?access_token=tok', '/?a=b&access_token=tok'])('takes none in %s (row T2, threat 107)', async (path) => {
    const { send } = await serve(() => true)
    expect((await send({ path })).status).toBe(401)
  })

  it.each(['Cookie', 'X-Access-Token', 'Proxy-Authorization'])('takes none in %s (threat 107)', async (name) => {
    const { send } = await serve(() => true)
    expect((await send({ headers: { [name]: 'Bearer tok', [name + '-2']: 'tok' } })).status).toBe(401)
  })

  it('answers 400 to a token sent in two ways (RFC 6750 §3.1, row T5)', async () => {
    const { send } = await serve(() => true)
    for (const path of ['/?access_token=x', '/?access_token=', '/?a&access_token=x']) {
      const { status, challenges } = await send({ path, ...bearerHeader('tok') })
      expect([status, challenges]).toEqual([400, ['Bearer realm="Resources", error="invalid_request"']])
    }
    expect((await send({ path: '/?my_access_token=x', ...bearerHeader('tok') })).status).toBe(200)
  })

  it.each([
    ['blanks', 'a b'],
    ['a comma', 'a,b'],
    ['a parameter', 'realm="x"'],
    ['padding in front', '=a'],
    ['padding inside', 'a=b'],
    ['nothing', ''],
    ['bytes beyond ASCII', 'tök'],
  ])('takes no token with %s (RFC 6750 §2.1, row T7)', async (_, token) => {
    const verify = vi.fn(() => true)
    const { send } = await serve(verify)
    const { status, challenges } = await send({
      headers: { Authorization: Buffer.from(`Bearer ${token}`).toString('latin1') },
    })
    expect(status).toBe(401)
    expect(challenges[0]).toMatch(INVALID)
    expect(verify).not.toHaveBeenCalled()
  })

  it('looks at tokens of 8192 characters, not of 8193 (threat 105)', async () => {
    const verify = vi.fn(() => true)
    const { send } = await serve(verify)
    expect((await send(bearerHeader('a'.repeat(8192)))).status).toBe(200)
    const { status, challenges } = await send(bearerHeader('a'.repeat(8193)))
    expect([status, verify.mock.calls.length]).toEqual([401, 1])
    expect(challenges[0]).toMatch(INVALID)
  })

  it('names a token that is refused invalid (RFC 6750 §3.1, row T4)', async () => {
    for (const verdict of [false, null, undefined]) {
      const { send, close } = await serve(async () => verdict)
      const { status, challenges } = await send(bearerHeader('tok'))
      expect(status).toBe(401)
      expect(challenges).toEqual([expect.stringMatching(INVALID)])
      await close()
    }
    guarded = undefined
  })

  it('asks for scopes, all of them (RFC 6750 §3.1, row T6)', async () => {
    const { send } = await serve((token) => ({ id: 'ada', claims: { scope: token.replaceAll('.', ' ') } }), {
      scope: ({ method }) => (method === 'GET' ? ['read'] : ['read', 'write']),
    })
    expect((await send(bearerHeader('read'))).status).toBe(200)
    expect((await send({ method: 'PUT', ...bearerHeader('write.read.x') })).status).toBe(200)
    const { status, challenges } = await send({ method: 'PUT', ...bearerHeader('read') })
    expect(status).toBe(403)
    expect(challenges).toEqual([
      'Bearer realm="Resources", error="insufficient_scope", ' +
        'error_description="The token lacks a scope that this request needs.", scope="read write"',
    ])
    expect((await send(bearerHeader('reader'))).status).toBe(403)
  })

  it('asks for the scopes of every path that programs may read a target as', async () => {
    const { send } = await serve((token) => ({ id: 'ada', claims: { scope: token.replaceAll('.', ' ') } }), {
      scope: ({ path }) => [path.startsWith('/admin/') ? 'admin' : 'read'],
    })
    for (const path of ['/admin;x/a', '/%2561dmin/a']) {
      const tokens = ['read', 'admin', 'admin.read']
      const answers = await Promise.all(tokens.map((token) => send({ path, ...bearerHeader(token) })))
      expect([path, ...answers.map(({ status }) => status)]).toEqual([path, 403, 403, 200])
    }
  })

  it.each([
    [{ scope: 'a b' }, 200],
    [{ scp: ['a', 'b'] }, 200],
    [{ scp: 'a' }, 200],
    [{ scope: ['a'] }, 200],
    [{ scope: 'b' }, 403],
    [{ scope: 7 }, 403],
    [{ scope: { a: 1 } }, 403],
    [{}, 403],
  ])('finds scopes in %j', async (claims, expected) => {
    const { send } = await serve(() => ({ id: 'x', claims }), { scope: () => ['a'] })
    expect((await send(bearerHeader('tok'))).status).toBe(expected)
  })

  it('a verdict of claims alone names the user by sub, or the client without a user (RFC 7662 §2.2)', async () => {
    const verdicts: Readonly<Record<string, object>> = {
      ada: { claims: { active: true, sub: 'ada', client_id: 'app' } },
      robot: { claims: { active: true, client_id: 'robot' } },
      named: { id: 'eve', claims: { sub: 'ada' } },
      number: { claims: { sub: 5 } },
    }
    const { send, failures } = await serve((token) => verdicts[token])
    expect((await send(bearerHeader('ada'))).principal).toMatchObject({ id: 'ada', claims: { sub: 'ada' } })
    expect((await send(bearerHeader('robot'))).principal?.id).toBe('robot')
    expect((await send(bearerHeader('named'))).principal?.id).toBe('eve')
    expect((await send(bearerHeader('number'))).status).toBe(500)
    expect(failures.map(String)).toEqual([expect.stringContaining('claims whose "sub" is text')])
  })

  it('passes on what the verifier throws: 503 while tokens cannot be verified, 500 otherwise', async () => {
    const { send, failures } = await serve((token) => {
      if (token === 'later') throw new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '7' } })
      throw new Error('secret')
    })
    const later = await send(bearerHeader('later'))
    expect([later.status, later.headers['retry-after'], later.challenges]).toEqual([503, '7', []])
    const never = await send(bearerHeader('never'))
    expect([never.status, failures.length]).toEqual([500, 1])
    expect(never.body).not.toContain('secret')
  })

  it('asks again about an opaque token after the time it remembers', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const verify = vi.fn(async (token: string) => token === 'tok')
    const { send } = await serve(verify, { cacheLifetime: 5000 })
    const ask = async (token: string) => (await send(bearerHeader(token))).status
    expect([await ask('tok'), await ask('tok'), verify.mock.calls.length]).toEqual([200, 200, 1])
    expect([await ask('tok='), await ask('tok='), verify.mock.calls.length]).toEqual([401, 401, 3])
    vi.setSystemTime(Date.now() + 4999)
    expect([await ask('tok'), verify.mock.calls.length]).toEqual([200, 3])
    vi.setSystemTime(Date.now() + 1)
    expect([await ask('tok'), verify.mock.calls.length]).toEqual([200, 4])
  })

  it('remembers at most 10 000 opaque tokens, and at least the last 5000', () => {
    const verify = vi.fn(() => true)
    const scheme = bearer(verify, { cacheLifetime: 60_000 })
    const exchange = { queryText: '' } as Parameters<typeof scheme.authenticate>[1]
    const ask = (token: string): number => {
      const before = verify.mock.calls.length
      expect(scheme.authenticate(token, exchange)).toMatchObject({ outcome: 'accepted' })
      return verify.mock.calls.length - before
    }
    ask('first')
    for (let i = 0; i < 10_000; i++) ask(`t${i}`)
    expect([ask('t9999'), ask('t5001'), ask('first')]).toEqual([0, 0, 1])
  })

  it.each<[string, () => unknown]>([
    ['no verifier', () => bearer(undefined as never)],
    ['a verifier that is none', () => bearer({} as never)],
    ['a time to remember what jwt remembers', () => bearer({ verifyToken: () => ({}) as never }, { cacheLifetime: 1 })],
    ['a negative time', () => bearer(() => true, { cacheLifetime: -1 })],
    ['an option that does not exist', () => bearer(() => true, { scopes: [] } as never)],
    ['a realm with a line feed', () => bearer(() => true, { realm: 'a\nb' })],
  ])('is not made with %s', (_, make) => {
    expect(make).toThrow(TypeError)
  })
})

describe('insufficientScope', () => {
  it('has no quotes and no backslashes in its challenge (RFC 6750 §3, row T8)', () => {
    const error = insufficientScope(['a"b', 'c\\d', 'ü\r\nX: y'])
    expect(error.status).toBe(403)
    expect(error.headers['WWW-Authenticate']).toMatch(/scope="ab cd X: y"$/)
  })
})

describe('scopes of a service', () => {
  it('are those of the write and those of the GET where the answer to a write shows the state', async () => {
    const verify = (token: string) => ({ id: 'ada', claims: { scope: token.replaceAll('.', ' ') } })
    const scope: BearerOptions['scope'] = ({ method }) => [method === 'GET' ? 'read' : 'write']
    const service = createResourceService(memoryStore(), {
      resources: { '/notes': collection() },
      auth: { schemes: [bearer(verify, { scope })] },
      https: 'optional',
    })
    const { port, close } = await runListener(service)
    try {
      const send = (method: string, path: string, token: string, body: string) => {
        const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
        const headers = { ...bearerHeader(token).headers, 'Content-Type': type }
        return fetch(`http://127.0.0.1:${port}${path}`, { method, headers, body })
      }
      expect((await send('POST', '/notes', 'write', '{"a":1}')).status).toBe(201)
      const refused = await send('PATCH', '/notes/1', 'write', '{"a":2}')
      expect(refused.status).toBe(403)
      expect(refused.headers.get('www-authenticate')).toContain('scope="write read"')
      expect((await send('PATCH', '/notes/1', 'write.read', '{"a":2}')).status).toBe(200)
    } finally {
      await close()
    }
  })
})
