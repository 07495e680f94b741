import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { bearer, jwt } from '../../src/auth.ts'
import { HttpError } from '../../src/core/errors.ts'
import { type GuardedServer, serveGuarded } from '../auth-schemes/guarded-server.ts'
import { bearerHeader } from '../auth-schemes/tokens.ts'

const CLIENT = { client_id: 'robot', client_secret: 'robot-secret' }
const API = { client_id: 'api', client_secret: 'api-secret' }
const AUDIENCE = 'urn:api'

/** An authorization server on a port of its own, that can be replaced, and be away. */
interface Issuer {
  readonly url: string
  /** Requests for the key set. */
  fetches: number
  respond: RequestListener | undefined
  /** Starts anew with other keys. */
  rotate(keys: readonly object[], format?: 'jwt' | 'opaque'): void
  getToken(scope: string): Promise<string>
  close(): Promise<void>
}

function createKey(alg: 'RS256' | 'ES256', kid: string): object {
  const { privateKey } =
    alg === 'RS256'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { ...privateKey.export({ format: 'jwk' }), kid, alg, use: 'sig' }
}

function createProvider(url: string, keys: readonly object[], format: 'jwt' | 'opaque'): RequestListener {
  const alg = (keys[0] as { alg: string }).alg
  const client = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] }
  const provider = new Provider(url, {
    clients: [CLIENT, API].map((names) => ({ ...client, ...names, id_token_signed_response_alg: alg })),
    jwks: { keys },
    cookies: { keys: ['x'] },
    scopes: ['read', 'write'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => AUDIENCE,
        getResourceServerInfo: () => ({
          ...{ scope: 'read write', audience: AUDIENCE, accessTokenFormat: format, accessTokenTTL: 600 },
          ...(format === 'jwt' ? { jwt: { sign: { alg } } } : {}),
        }),
      },
    },
  })
  return provider.callback()
}

async function startIssuer(): Promise<Issuer> {
  let provider: RequestListener = () => {}
  const server: Server = createServer((req, res) => {
    if (req.url === '/jwks') {
      issuer.fetches++
      if (issuer.respond !== undefined) return issuer.respond(req, res)
    }
    return provider(req, res)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer: Issuer = {
    url,
    fetches: 0,
    respond: undefined,
    rotate(keys, format = 'jwt') {
      provider = createProvider(url, keys, format)
    },
    async getToken(scope) {
      const body = new URLSearchParams({ grant_type: 'client_credentials', resource: AUDIENCE, scope, ...CLIENT })
      const response = await fetch(`${url}/token`, { method: 'POST', body })
      const answer = (await response.json()) as { access_token?: string }
      if (answer.access_token === undefined) throw new Error(JSON.stringify(answer))
      return answer.access_token
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return issuer
}

let issuer: Issuer
let guarded: GuardedServer | undefined
const pass = (seconds: number) => void vi.setSystemTime(Date.now() + seconds * 1000)

beforeEach(async () => {
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  vi.spyOn(console, 'info').mockImplementation(() => {})
  issuer = await startIssuer()
  vi.useFakeTimers({ toFake: ['Date'] })
})

afterEach(async () => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  await guarded?.close()
  guarded = undefined
  await issuer.close()
})

async function serve(): Promise<GuardedServer> {
  const verifier = jwt({ jwks: `${issuer.url}/jwks`, issuer: issuer.url, audience: AUDIENCE, typ: 'at+jwt' })
  const scheme = bearer(verifier, { scope: ({ method }) => [method === 'GET' ? 'read' : 'write'] })
  guarded = await serveGuarded({ schemes: [scheme] })
  return guarded
}

describe('jwt, with oidc-provider', () => {
  it.each(['RS256', 'ES256'] as const)('knows its tokens, signed with %s, and their scopes', async (alg) => {
    issuer.rotate([createKey(alg, 'one')])
    const { send } = await serve()
    const token = await issuer.getToken('read')
    const answer = await send(bearerHeader(token))
    expect(answer.principal).toMatchObject({ scheme: 'bearer', id: 'robot', claims: { aud: AUDIENCE, scope: 'read' } })
    const refused = await send({ method: 'PUT', ...bearerHeader(token) })
    expect([refused.status, refused.challenges[0]]).toEqual([403, expect.stringContaining('insufficient_scope')])
    expect((await send({ method: 'PUT', ...bearerHeader(await issuer.getToken('read write')) })).status).toBe(200)
    expect(issuer.fetches).toBe(1)
  })

  it('refuses a token that has expired, and one that was changed', async () => {
    issuer.rotate([createKey('RS256', 'one')])
    const { send } = await serve()
    const token = await issuer.getToken('read')
    const [header, , signature] = token.split('.')
    const payload = Buffer.from(JSON.stringify({ sub: 'root' })).toString('base64url')
    expect((await send(bearerHeader(`${header}.${payload}.${signature}`))).status).toBe(401)
    expect((await send(bearerHeader(token))).status).toBe(200)
    pass(606)
    const expired = await send(bearerHeader(token))
    expect([expired.status, expired.challenges[0]]).toEqual([401, expect.stringContaining('expired')])
  })

  it('follows a rotation of keys, and forgets the tokens of a key that was removed', async () => {
    const [one, two, three] = [createKey('RS256', 'one'), createKey('RS256', 'two'), createKey('ES256', 'three')]
    issuer.rotate([one, two])
    const { send } = await serve()
    const old = await issuer.getToken('read')
    expect((await send(bearerHeader(old))).status).toBe(200)
    issuer.rotate([two, one])
    expect((await send(bearerHeader(await issuer.getToken('read')))).status).toBe(200)
    issuer.rotate([three, two])
    const young = await issuer.getToken('read')
    expect((await send(bearerHeader(young))).status).toBe(401)
    pass(30)
    expect((await send(bearerHeader(young))).status).toBe(200)
    const removed = await send(bearerHeader(old))
    expect([removed.status, removed.challenges[0]]).toEqual([401, expect.stringContaining('invalid_token')])
  })

  it('answers 503 while the issuer is away, then 200; and uses the keys that it has (threat 106)', async () => {
    issuer.rotate([createKey('RS256', 'one')])
    const { send } = await serve()
    const [first, second] = [await issuer.getToken('read'), await issuer.getToken('read write')]
    issuer.respond = (_, res) => void res.writeHead(502).end('<html>')
    const away = await send(bearerHeader(first))
    expect([away.status, away.headers['retry-after'], away.challenges]).toEqual([503, '5', []])
    issuer.respond = undefined
    pass(5)
    expect((await send(bearerHeader(first))).status).toBe(200)
    issuer.respond = (_, res) => void res.destroy()
    pass(590)
    expect((await send(bearerHeader(first))).status).toBe(200)
    expect((await send(bearerHeader(second))).status).toBe(200)
  })
})

describe('bearer, with the introspection of oidc-provider (RFC 7662)', () => {
  it('knows opaque tokens', async () => {
    issuer.rotate([createKey('RS256', 'one')], 'opaque')
    const scheme = bearer(
      async (token) => {
        const body = new URLSearchParams({ token, ...API })
        const response = await fetch(`${issuer.url}/token/introspection`, { method: 'POST', body })
        if (!response.ok) throw new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '5' } })
        const claims = (await response.json()) as Record<string, unknown>
        return claims['active'] === true && { id: String(claims['client_id']), claims }
      },
      { scope: () => ['read'], cacheLifetime: 30_000 },
    )
    guarded = await serveGuarded({ schemes: [scheme] })
    const token = await issuer.getToken('read')
    expect(token).not.toContain('.')
    expect((await guarded.send(bearerHeader(token))).principal).toMatchObject({ id: 'robot' })
    expect((await guarded.send(bearerHeader(`${token}x`))).status).toBe(401)
    expect((await guarded.send(bearerHeader(await issuer.getToken('write')))).status).toBe(403)
  })
})
