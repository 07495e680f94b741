import { createHmac, createSecretKey, webcrypto } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { type JwtOptions, jwt, type KeyInput } from '../../src/auth-schemes/jwt.ts'
import { isPromise } from '../../src/core/maybe-promise.ts'
import { type GuardedServer, serveGuarded } from './guarded-server.ts'
import { bearerHeader, claims, createIssuer, issue, now, signToken } from './tokens.ts'

const rsa = createIssuer('RS256', 'rsa')
const ec = createIssuer('ES256', 'ec')
const ed = createIssuer('EdDSA', 'ed')
const stranger = createIssuer('RS256', 'rsa')
const secret = Buffer.alloc(32, 's')

const SETTINGS = { issuer: 'https://issuer.test', audience: 'api' } as const
const REQUEST = {} as Parameters<ReturnType<typeof jwt>['verifyToken']>[1]

let guarded: GuardedServer | undefined

async function serve(options: Partial<JwtOptions> = {}): Promise<GuardedServer> {
  guarded = await serveGuarded({
    schemes: [bearer(jwt({ ...SETTINGS, keys: [rsa.jwk, ec.jwk, ed.jwk], ...options }))],
  })
  return guarded
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 })
})

afterEach(async () => {
  vi.useRealTimers()
  await guarded?.close()
  guarded = undefined
})

const INVALID = 'Bearer realm="Resources", error="invalid_token", error_description='

describe('jwt', () => {
  it.each([rsa, ec, ed])('knows who bears a token signed with $alg', async (issuer) => {
    const answer = await (await serve()).send(bearerHeader(issue(issuer, { scope: 'a b' })))
    expect(answer.principal).toEqual({ scheme: 'bearer', id: 'ada', claims: claims({ scope: 'a b' }) })
  })

  it.each([
    ['a KeyObject', ec.publicKey],
    ['a JWK', ec.jwk],
    ['a JWK Set', { keys: [ec.jwk] }],
    ['a list', [rsa.publicKey, ec.publicKey]],
  ])('takes %s for keys', async (_, keys) => {
    expect((await (await serve({ keys })).send(bearerHeader(issue(ec)))).status).toBe(200)
  })

  it('tries four keys for a token that names none, and no fifth', async () => {
    const others = Array.from({ length: 4 }, () => createIssuer('ES256', undefined).jwk)
    const nameless = createIssuer('ES256', undefined)
    for (const [before, status] of [
      [3, 200],
      [4, 401],
    ] as const) {
      const { send, close } = await serve({ keys: [...others.slice(0, before), nameless.jwk] })
      expect((await send(bearerHeader(issue(nameless)))).status).toBe(status)
      await close()
    }
  })

  it('is not made with a CryptoKey that is an HMAC secret of fewer than 256 bits', async () => {
    const importSecret = (length: number) =>
      webcrypto.subtle.importKey('raw', Buffer.alloc(length, 1), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
    const [short, long] = [await importSecret(31), await importSecret(32)]
    const make = (keys: KeyInput) => () => jwt({ ...SETTINGS, keys, algorithms: ['HS256'] })
    expect(make(long)).not.toThrow()
    expect(make(short)).toThrow('An HMAC secret has at least 32 bytes.')
  })

  it('takes a CryptoKey', async () => {
    const key = await webcrypto.subtle.importKey(
      'jwk',
      ec.jwk as webcrypto.JsonWebKey,
      { name: 'ECDSA', namedCurve: 'P-256' },
      true,
      ['verify'],
    )
    expect((await (await serve({ keys: key, algorithms: ['ES256'] })).send(bearerHeader(issue(ec)))).status).toBe(200)
  })

  it.each([
    ['bytes', secret],
    ['a KeyObject', createSecretKey(secret)],
    ['a JWK', { kty: 'oct', k: secret.toString('base64url') }],
  ])('takes an HMAC secret as %s, where HS256 is asked for', async (_, keys) => {
    const { send } = await serve({ keys, algorithms: ['HS256'] })
    expect((await send(bearerHeader(signToken(secret, { alg: 'HS256' }, claims())))).status).toBe(200)
    expect((await send(bearerHeader(signToken(Buffer.alloc(32), { alg: 'HS256' }, claims())))).status).toBe(401)
  })

  it.each([
    ['HS256', 32],
    ['HS384', 48],
    ['HS512', 64],
  ])(
    'takes for %s a secret of %i bytes, as many as its hash has, and no shorter one (RFC 7518 §3.2)',
    async (alg, size) => {
      const make = (keys: KeyInput) => jwt({ ...SETTINGS, keys, algorithms: [alg] })
      const hmac = (bytes: Uint8Array) =>
        webcrypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: `SHA-${alg.slice(2)}` }, false, ['verify'])
      const [long, short] = [Buffer.alloc(size, 'k'), Buffer.alloc(size - 1, 'k')]
      const jwkOf = (bytes: Buffer) => ({ kty: 'oct', k: bytes.toString('base64url'), alg })
      for (const keys of [long, createSecretKey(long), jwkOf(long), await hmac(long)])
        expect(() => make(keys)).not.toThrow()
      for (const keys of [short, createSecretKey(short), jwkOf(short), await hmac(short)]) {
        expect(() => make(keys)).toThrow(new RegExp(`at least (?:32|${size}) bytes`))
      }
      const text = signToken(undefined, { alg }, claims()).slice(0, -1)
      const signature = createHmac(`sha${alg.slice(2)}`, long)
        .update(text)
        .digest('base64url')
      const { send } = await serve({ keys: long, algorithms: [alg] })
      expect((await send(bearerHeader(`${text}.${signature}`))).status).toBe(200)
    },
  )

  it.each([
    ['none', {}],
    ['those with a public key', { algorithms: ['RS256'] }],
    ['one with a public key beside HS256', { algorithms: ['RS256', 'HS256'] }],
  ])('says what a secret needs where the algorithms are %s', (_, options) => {
    expect(() => jwt({ ...SETTINGS, keys: secret, ...options })).toThrow(
      /^"keys" has no key for RS256.*; an HMAC secret needs "algorithms": \["HS256"\]\.$/,
    )
  })

  it('has each of several secrets for the algorithms that it is long enough for', async () => {
    const [short, long] = [Buffer.alloc(32, 's'), Buffer.alloc(64, 'l')]
    const { send } = await serve({ keys: [short, long], algorithms: ['HS256', 'HS512'] })
    const signed = (alg: string, key: Buffer) => {
      const text = signToken(undefined, { alg }, claims()).slice(0, -1)
      return bearerHeader(
        `${text}.${createHmac(`sha${alg.slice(2)}`, key)
          .update(text)
          .digest('base64url')}`,
      )
    }
    expect((await send(signed('HS512', long))).status).toBe(200)
    expect((await send(signed('HS256', short))).status).toBe(200)
    expect((await send(signed('HS512', short))).status).toBe(401)
  })

  describe('refuses a forged token (threat 102):', () => {
    const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' }) as string
    const der = rsa.publicKey.export({ type: 'spki', format: 'der' })
    const good = issue(rsa)
    const [header, payload, signature] = good.split('.') as [string, string, string]
    const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

    it.each<[string, () => string]>([
      ...['none', 'None', 'NONE', 'nOnE', ''].map(
        (alg) =>
          [`alg ${JSON.stringify(alg)}, not signed`, () => signToken(undefined, { alg }, claims())] as [
            string,
            () => string,
          ],
      ),
      ['alg none, signature kept', () => `${json({ alg: 'none' })}.${payload}.${signature}`],
      ['no alg', () => signToken(rsa.privateKey, {}, claims())],
      ['alg that is not text', () => signToken(rsa.privateKey, { alg: ['RS256'] }, claims())],
      ['alg in other case', () => signToken(rsa.privateKey, { alg: 'rs256' }, claims())],
      ['alg of every object', () => signToken(rsa.privateKey, { alg: 'constructor' }, claims())],
      ['HS256 with the public key as PEM', () => signToken(Buffer.from(pem), { alg: 'HS256', kid: 'rsa' }, claims())],
      ['HS256 with the public key, trimmed', () => signToken(Buffer.from(pem.trim()), { alg: 'HS256' }, claims())],
      ['HS256 with the public key as DER', () => signToken(der, { alg: 'HS256' }, claims())],
      [
        'HS256 with the modulus',
        () => signToken(Buffer.from(String(rsa.jwk['n']), 'base64url'), { alg: 'HS256' }, claims()),
      ],
      ['HS256 with nothing', () => signToken(Buffer.alloc(0), { alg: 'HS256' }, claims())],
      ['an embedded jwk', () => signToken(stranger.privateKey, { alg: 'RS256', jwk: stranger.jwk }, claims())],
      ['the key of a stranger by the same kid', () => issue(stranger)],
      ['a key of another type by the same kid', () => signToken(ec.privateKey, { alg: 'ES256', kid: 'rsa' }, claims())],
      ['an unknown kid', () => signToken(rsa.privateKey, { alg: 'RS256', kid: 'other' }, claims())],
      ['a kid that is not text', () => signToken(rsa.privateKey, { alg: 'RS256', kid: { $ne: null } }, claims())],
      ['a kid that is a path', () => signToken(rsa.privateKey, { alg: 'RS256', kid: '../../dev/null' }, claims())],
      ['crit', () => issue(rsa, {}, { crit: ['exp'] })],
      ['crit of nothing', () => issue(rsa, {}, { crit: [] })],
      ['crit with a name that it has', () => issue(rsa, {}, { crit: ['x'], x: 1 })],
      ['b64 false', () => issue(rsa, {}, { b64: false, crit: ['b64'] })],
      ['b64 false that crit does not name (RFC 7797 §7)', () => issue(rsa, {}, { b64: false })],
      ['another payload', () => `${header}.${json(claims({ sub: 'root' }))}.${signature}`],
      ['another header', () => `${json({ alg: 'RS256', kid: 'rsa', x: 1 })}.${payload}.${signature}`],
      ['no signature', () => `${header}.${payload}.`],
      ['two parts', () => `${header}.${payload}`],
      ['four parts', () => `${good}.x`],
      ['five parts', () => `${good}.x.y`],
      ['an empty header', () => `.${payload}.${signature}`],
      ['a header that is not JSON', () => signToken(rsa.privateKey, 'RS256', claims())],
      ['a header that is a list', () => signToken(rsa.privateKey, '[]', claims())],
      ['a header that is null', () => signToken(rsa.privateKey, 'null', claims())],
      ['a payload that is not JSON', () => signToken(rsa.privateKey, { alg: 'RS256' }, 'x')],
      ['a payload that is a list', () => signToken(rsa.privateKey, { alg: 'RS256' }, '[]')],
      ['a payload that is null', () => signToken(rsa.privateKey, { alg: 'RS256' }, 'null')],
      ['a payload that is text', () => signToken(rsa.privateKey, { alg: 'RS256' }, '"x"')],
      ['padding (threat 104)', () => `${good}=`],
      ['padding in every part', () => `${header}=.${payload}=.${signature}=`],
      ['base64 instead of base64url', () => `${header}.${payload}.${signature.replace(/-/g, '+').replace(/_/g, '/')}`],
      [
        'bits to spare in the last character (threat 104)',
        () => good.slice(0, -1) + String.fromCharCode(good.charCodeAt(good.length - 1) + 1),
      ],
      ['more than 8 KiB (threat 105)', () => issue(rsa, { pad: 'x'.repeat(6000) })],
    ])('%s', async (_, forge) => {
      const server = await serve()
      const token = forge()
      const { status, challenges } = await server.send(bearerHeader(token))
      expect(status).toBe(401)
      expect(challenges).toHaveLength(1)
      expect(challenges[0]).toContain(INVALID)
      expect(server.failures).toEqual([])
    })

    it.each(['jku', 'x5u'])('%s, and fetches nothing', async (name) => {
      const jwks = vi.fn(() => ({ keys: [stranger.jwk] }))
      const other = await serveGuarded({ schemes: [bearer(jwt({ ...SETTINGS, jwks }))] })
      const seen: string[] = []
      other.server.prependListener('request', (req) => seen.push(String(req.url)))
      const { send } = await serve()
      const token = signToken(stranger.privateKey, { alg: 'RS256', [name]: `${other.origin}/keys` }, claims())
      expect((await send(bearerHeader(token))).status).toBe(401)
      expect(seen).toEqual([])
      await other.close()
    })

    it('whose alg is not among those that are accepted, although a key would fit', async () => {
      const { send } = await serve({ algorithms: ['ES256'] })
      expect((await send(bearerHeader(issue(rsa)))).status).toBe(401)
      expect((await send(bearerHeader(issue(ec)))).status).toBe(200)
    })

    it('whose alg is not the one that its key is for', async () => {
      const { send } = await serve({ keys: { ...rsa.jwk, alg: 'RS384' } })
      expect((await send(bearerHeader(issue(rsa)))).status).toBe(401)
    })
  })

  describe('looks at the claims (threat 103):', () => {
    const infinite = () =>
      signToken(rsa.privateKey, { alg: 'RS256' }, JSON.stringify(claims()).replace(/"exp":\d+/, '"exp":1e400'))

    it.each<[string, number, Readonly<Record<string, unknown>>]>([
      ['no exp', 401, { exp: undefined }],
      ['exp as text', 401, { exp: String(now() + 600) }],
      ['exp of null', 401, { exp: null }],
      ['exp five seconds ago', 401, { exp: 1_800_000_000 - 5 }],
      ['exp four seconds ago', 200, { exp: 1_800_000_000 - 4 }],
      ['nbf in six seconds', 401, { nbf: 1_800_000_000 + 6 }],
      ['nbf in five seconds', 200, { nbf: 1_800_000_000 + 5 }],
      ['nbf as text', 401, { nbf: '0' }],
      ['no iss', 401, { iss: undefined }],
      ['another iss', 401, { iss: 'https://issuer.test/' }],
      ['a list for iss', 401, { iss: ['https://issuer.test'] }],
      ['no aud', 401, { aud: undefined }],
      ['another aud', 401, { aud: 'API' }],
      ['aud among others', 200, { aud: ['other', 'api'] }],
      ['an empty list for aud', 401, { aud: [] }],
      ['an object for aud', 401, { aud: { api: true } }],
    ])('%s is %i', async (_, expected, changes) => {
      const { send } = await serve()
      expect((await send(bearerHeader(issue(rsa, { exp: now() + 600, ...changes })))).status).toBe(expected)
    })

    it('exp that is read as infinite is 401', async () => {
      expect((await (await serve()).send(bearerHeader(infinite()))).status).toBe(401)
    })

    it('exp further away than the longest lifetime is 401; a clock that is ahead is allowed for', async () => {
      const { send } = await serve({ maxLifetime: 600_000 })
      expect((await send(bearerHeader(issue(rsa, { exp: now() + 605 })))).status).toBe(200)
      expect((await send(bearerHeader(issue(rsa, { exp: now() + 606 })))).status).toBe(401)
    })

    it('iat too long ago, in the future, or missing is 401, where an age is asked for', async () => {
      const { send } = await serve({ maxTokenAge: 60_000 })
      const ask = async (iat: unknown) => (await send(bearerHeader(issue(rsa, { iat })))).status
      expect([await ask(now() - 65), await ask(now() - 66)]).toEqual([200, 401])
      expect([await ask(now() + 5), await ask(now() + 6), await ask(undefined)]).toEqual([200, 401, 401])
    })

    it('typ is what is asked for (RFC 9068 §2.1)', async () => {
      const { send } = await serve({ typ: 'at+jwt' })
      expect((await send(bearerHeader(issue(rsa, {}, { typ: 'at+jwt' })))).status).toBe(200)
      expect((await send(bearerHeader(issue(rsa, {}, { typ: 'JWT' })))).status).toBe(401)
      expect((await send(bearerHeader(issue(rsa)))).status).toBe(401)
    })

    it('claims that are asked for are there', async () => {
      const { send } = await serve({ requiredClaims: ['jti'] })
      expect((await send(bearerHeader(issue(rsa, { jti: 'x' })))).status).toBe(200)
      expect((await send(bearerHeader(issue(rsa)))).status).toBe(401)
    })

    it.each([
      ['aud', { aud: 'other' }, {}],
      ['iss', { iss: 'https://issuer.test/' }, {}],
      ['nbf', { nbf: 1_800_000_000 + 60 }, {}],
      ['tenant', {}, { requiredClaims: ['tenant'] }],
      ['typ', {}, { typ: 'at+jwt' }],
      ['alg', {}, { algorithms: ['ES256'] as const }],
    ])('and names the one that it does not accept: %s', async (name, changes, options) => {
      const { challenges } = await (await serve(options)).send(bearerHeader(issue(rsa, changes)))
      expect(challenges).toEqual([`${INVALID}"The ${name} of the token is not accepted."`])
    })

    it('one of several issuers and audiences will do', async () => {
      const { send } = await serve({ issuer: ['a', 'b'], audience: ['c', 'd'] })
      expect((await send(bearerHeader(issue(rsa, { iss: 'b', aud: 'd' })))).status).toBe(200)
    })

    it('the bearer is whom the hook says, or the client without a user', async () => {
      const principal = async ({ sub }: { readonly sub?: unknown }) => (sub === 'eve' ? false : { id: `#${sub}` })
      const hooked = await serve({ principal })
      expect((await hooked.send(bearerHeader(issue(rsa)))).principal).toMatchObject({
        id: '#ada',
        claims: { sub: 'ada' },
      })
      expect((await hooked.send(bearerHeader(issue(rsa, { sub: 'eve' })))).status).toBe(401)
      await hooked.close()
      const { send } = await serve()
      const token = issue(rsa, { sub: undefined, client_id: 'robot' })
      expect((await send(bearerHeader(token))).principal?.id).toBe('robot')
    })

    it('refuses a token whose sub is not text, unless the hook names the user (RFC 7519 §4.1.2)', async () => {
      for (const changes of [{ sub: 5 }, { sub: undefined, client_id: 5 }, { sub: ['ada'] }]) {
        const token = issue(rsa, changes as never)
        const { challenges } = await (await serve()).send(bearerHeader(token))
        expect(challenges).toEqual([`${INVALID}"The sub of the token is not accepted."`])
        const silent = await serve({ principal: () => true })
        expect((await silent.send(bearerHeader(token))).status).toBe(401)
        const hooked = await serve({ principal: ({ sub, client_id: client }) => ({ id: `#${sub ?? client}` }) })
        expect((await hooked.send(bearerHeader(token))).principal?.id).toMatch(/^#(?:5|ada)$/)
      }
    })

    it('scopes are where the hook finds them', async () => {
      const verifier = jwt({ ...SETTINGS, keys: rsa.jwk, scopes: (claims) => [String(claims['role'])] })
      const result = await verifier.verifyToken(issue(rsa, { role: 'x', scope: 'y' }), REQUEST)
      expect(result).toMatchObject({ outcome: 'accepted', scopes: ['x'] })
    })
  })

  describe('remembers a token that it verified:', () => {
    it('the second time at once, without a promise', async () => {
      const verifier = jwt({ ...SETTINGS, keys: rsa.jwk })
      const token = issue(rsa)
      const first = verifier.verifyToken(token, REQUEST)
      expect(isPromise(first)).toBe(true)
      const expected = await first
      const second = verifier.verifyToken(token, REQUEST)
      expect(isPromise(second)).toBe(false)
      expect(second).toEqual(expected)
    })

    it('never past exp', async () => {
      const { send } = await serve()
      const token = issue(rsa, { exp: now() + 10 })
      expect((await send(bearerHeader(token))).status).toBe(200)
      vi.setSystemTime(Date.now() + 14_999)
      expect((await send(bearerHeader(token))).status).toBe(200)
      vi.setSystemTime(Date.now() + 1)
      const { status, challenges } = await send(bearerHeader(token))
      expect([status, challenges[0]]).toEqual([401, `${INVALID}"The token has expired."`])
    })

    it('never past its greatest age', async () => {
      const { send } = await serve({ maxTokenAge: 10_000, clockTolerance: 0 })
      const token = issue(rsa, { iat: now() })
      expect((await send(bearerHeader(token))).status).toBe(200)
      vi.setSystemTime(Date.now() + 10_999)
      expect((await send(bearerHeader(token))).status).toBe(200)
      vi.setSystemTime(Date.now() + 1)
      expect((await send(bearerHeader(token))).status).toBe(401)
    })

    it('in one spelling only: another is another token (threat 104)', async () => {
      const { send } = await serve()
      const token = issue(rsa)
      expect((await send(bearerHeader(token))).status).toBe(200)
      const last = token.charCodeAt(token.length - 1)
      expect((await send(bearerHeader(token.slice(0, -1) + String.fromCharCode(last + 1)))).status).toBe(401)
      expect((await send(bearerHeader(`${token}=`))).status).toBe(401)
    })

    it('asks about a revocation on every request, and stops at once', async () => {
      const revoked = new Set<unknown>()
      const { send } = await serve({ isRevoked: async ({ jti }) => revoked.has(jti) })
      const token = issue(rsa, { jti: 'x' })
      expect([(await send(bearerHeader(token))).status, (await send(bearerHeader(token))).status]).toEqual([200, 200])
      revoked.add('x')
      expect((await send(bearerHeader(token))).status).toBe(401)
    })

    it('asks who the bearer is once', async () => {
      const principal = vi.fn(() => true)
      const { send } = await serve({ principal })
      const token = issue(rsa)
      await send(bearerHeader(token))
      await send(bearerHeader(token))
      expect(principal).toHaveBeenCalledTimes(1)
    })

    it('gives every request claims that no other can have changed', async () => {
      const verifier = jwt({ ...SETTINGS, keys: rsa.jwk })
      const result = await verifier.verifyToken(issue(rsa, { roles: ['user'] }), REQUEST)
      const { roles } = (result as unknown as { principal: { claims: { roles: string[] } } }).principal.claims
      expect(() => roles.push('admin')).toThrow(TypeError)
    })

    it('no more tokens than it may', async () => {
      const principal = vi.fn(() => true)
      const verifier = jwt({ ...SETTINGS, keys: secret, algorithms: ['HS256'], principal, cacheSize: 4 })
      const tokens = Array.from({ length: 6 }, (_, i) => signToken(secret, { alg: 'HS256' }, claims({ jti: i })))
      for (const token of tokens) await verifier.verifyToken(token, REQUEST)
      expect(isPromise(verifier.verifyToken(tokens[5]!, REQUEST))).toBe(false)
      expect(isPromise(verifier.verifyToken(tokens[0]!, REQUEST))).toBe(true)
    })

    it('none, with cacheSize 0', async () => {
      const verifier = jwt({ ...SETTINGS, keys: rsa.jwk, cacheSize: 0 })
      const token = issue(rsa)
      await verifier.verifyToken(token, REQUEST)
      expect(isPromise(verifier.verifyToken(token, REQUEST))).toBe(true)
    })
  })

  const weak = createIssuer('RS256', undefined, 1024)

  it.each<[string, Readonly<Record<string, unknown>>]>([
    ['no issuer', { issuer: undefined }],
    ['no audience, as from a missing environment variable', { audience: undefined }],
    ['an empty audience', { audience: '' }],
    ['an empty list of audiences', { audience: [] }],
    ['an audience that is undefined among others', { audience: ['api', undefined] }],
    ['no algorithms', { algorithms: [] }],
    ['alg none', { algorithms: ['none'] }],
    ['an unknown algorithm', { algorithms: ['RS255'] }],
    ['an algorithm that no key is for', { algorithms: ['RS256', 'EdDSA'] }],
    ['neither keys nor jwks', { keys: undefined }],
    ['both', { jwks: 'https://issuer.test/jwks' }],
    ['an HMAC secret without the option for it', { keys: secret }],
    [
      'a PEM in its bytes, for RS256',
      { keys: Buffer.from(rsa.publicKey.export({ type: 'spki', format: 'pem' })), algorithms: ['RS256'] },
    ],
    ['a PEM', { keys: rsa.publicKey.export({ type: 'spki', format: 'pem' }) }],
    ['a secret of 31 bytes', { keys: Buffer.alloc(31), algorithms: ['HS256'] }],
    ['a private key', { keys: rsa.privateKey }],
    ['a private JWK', { keys: rsa.privateKey.export({ format: 'jwk' }) }],
    ['an RSA key of 1024 bits', { keys: weak.jwk }],
    ['a key for encryption', { keys: { ...rsa.jwk, use: 'enc' } }],
    ['a key that is broken', { keys: { ...ec.jwk, x: 'AAAA' } }],
    ['no keys', { keys: [] }],
    ['a tolerance that is none', { clockTolerance: Number.NaN }],
    ['an option that does not exist', { audiences: 'api' }],
  ])('is not made with %s (threat 103)', (_, changes) => {
    const options = { ...SETTINGS, keys: [rsa.jwk], ...changes }
    expect(() => jwt(options as unknown as JwtOptions)).toThrow(TypeError)
  })

  it.each<[string, Readonly<Record<string, unknown>>]>([
    ['an http address', { jwks: 'http://issuer.test/jwks' }],
    ['an address that is none', { jwks: 'issuer.test' }],
    ['a file', { jwks: 'file:///etc/keys' }],
    ['an address with a password', { jwks: 'https://ada:secret@issuer.test/jwks' }],
    ['an address with a password alone', { jwks: new URL('https://:secret@issuer.test/jwks') }],
    ['HMAC algorithms', { jwks: 'https://issuer.test/jwks', algorithms: ['HS256'] }],
    ['a time that is none', { jwks: 'https://issuer.test/jwks', jwksTimes: { cooldown: -1 } }],
    ['a time that does not exist', { jwks: 'https://issuer.test/jwks', jwksTimes: { cooldwn: 1 } }],
  ])('is not made with jwks and %s', (_, changes) => {
    expect(() => jwt({ ...SETTINGS, ...changes } as unknown as JwtOptions)).toThrow(TypeError)
  })

  it('takes own options only (threat 150)', async () => {
    const polluted = Object.prototype as Record<string, unknown>
    polluted['audience'] = 'other'
    polluted['algorithms'] = ['none']
    try {
      expect(() => jwt({ issuer: 'x', keys: rsa.jwk } as never)).toThrow(TypeError)
      const { send } = await serve()
      expect((await send(bearerHeader(issue(rsa, { aud: 'other' })))).status).toBe(401)
    } finally {
      delete polluted['audience']
      delete polluted['algorithms']
    }
  })
})

describe('a token that has been verified', () => {
  it('is refused where the clock has been put back to before its nbf', async () => {
    const { send } = await serve()
    const token = bearerHeader(issue(rsa, { nbf: now() }))
    expect((await send(token)).status).toBe(200)
    vi.setSystemTime(Date.now() - 3_600_000)
    expect((await send(token)).status).toBe(401)
  })

  it.each([undefined, null, 0, '', true])(
    'is refused where isRevoked gives %j: only false lets it pass, and the operator hears of all but true',
    async (revoked) => {
      const { send, failures } = await serve({ isRevoked: () => revoked as boolean })
      const token = bearerHeader(issue(rsa))
      const isAnswer = revoked === true
      for (const _ of [1, 2]) expect((await send(token)).status).toBe(isAnswer ? 401 : 500)
      const report = expect.stringContaining('isRevoked of jwt returns true or false')
      expect(failures.map(String)).toEqual(isAnswer ? [] : [report, report])
    },
  )
})

it('a secret is copied: its bytes may be wiped', async () => {
  const bytes = Buffer.alloc(32, 'w')
  const { send } = await serve({ keys: bytes, algorithms: ['HS256'] })
  const token = bearerHeader(signToken(Buffer.from(bytes), { alg: 'HS256' }, claims()))
  bytes.fill(0)
  expect((await send(token)).status).toBe(200)
})
