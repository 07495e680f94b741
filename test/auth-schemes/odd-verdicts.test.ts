import { describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { type DigestOptions, digest } from '../../src/auth-schemes/digest.ts'
import { jwt } from '../../src/auth-schemes/jwt.ts'
import { negotiate } from '../../src/auth-schemes/negotiate.ts'
import type { AuthOptions } from '../../src/handlers/auth.ts'
import { answerChallenge } from './digest-client.ts'
import { basicCredentials, type GuardedServer, serveGuarded } from './guarded-server.ts'
import { bearerHeader, createIssuer, issue } from './tokens.ts'

/** Runs a server behind one guard for the time of a use. */
async function withGuard(options: AuthOptions, use: (server: GuardedServer) => Promise<void>): Promise<void> {
  const server = await serveGuarded(options)
  try {
    await use(server)
  } finally {
    await server.close()
  }
}

const BASIC = { headers: { Authorization: basicCredentials('ada', 'wrong') } }
const BEARER = { headers: { Authorization: 'Bearer abc' } }

describe('a verifier that returns an object with neither id nor claims', () => {
  const results: readonly (readonly [string, unknown])[] = [
    ['rows of a query that found none', []],
    ['the result of a query', { rows: [], rowCount: 0 }],
    ['a Response', new Response('{}', { status: 401 })],
    ['a boxed false', new Boolean(false)],
    ['an error', new Error('no such user')],
    ['a promise in an object', { isValid: Promise.resolve(false) }],
    ['an id that is not there', { id: undefined }],
    ['an empty object', {}],
  ]
  it.each(results)('refuses the request, and is reported: %s', async (_, result) => {
    const verify = () => result as never
    for (const [scheme, sent] of [
      [basic({ verify }), BASIC],
      [bearer(async () => verify()), BEARER],
    ] as const) {
      await withGuard({ schemes: [scheme] }, async ({ send, failures }) => {
        expect((await send(sent)).status).toBe(500)
        expect(failures.map(String)).toEqual([expect.stringContaining('returns { id, claims }')])
      })
    }
  })

  it('is taken where it has claims alone: the id is the name that was sent', async () => {
    await withGuard({ schemes: [basic({ verify: () => ({ claims: { role: 'x' } }) })] }, async ({ send }) => {
      expect((await send(BASIC)).principal).toEqual({ scheme: 'basic', id: 'ada', claims: { role: 'x' } })
    })
  })
})

/** Logs in by Digest. @returns the status, and the errors that the operator got */
async function logIn(options: DigestOptions): Promise<readonly [number, readonly string[]]> {
  let outcome: readonly [number, readonly string[]] | undefined
  await withGuard({ schemes: [digest(options)] }, async ({ send, failures }) => {
    const { challenges } = await send()
    const { status } = await send({ headers: { Authorization: answerChallenge(challenges[0]) } })
    outcome = [status, failures.map(String)]
  })
  return outcome!
}

describe('a function of digest that returns what it must not', () => {
  const secrets: readonly (readonly [string, unknown])[] = [
    ['a row', { password: 'secret' }],
    ['rows', [{ password: 'secret' }]],
    ['bytes', Buffer.from('secret')],
    ['a number', 5],
    ['false', false],
    ['a hash for Basic', '$scrypt$ln=15,r=8,p=3$c2FsdA$aGFzaA'],
    ['hashes that are cut off', { 'SHA-256': 'abc' }],
  ]
  it.each(secrets)('is reported, as a secret: %s', async (_, secret) => {
    const [status, failures] = await logIn({ findSecret: () => secret as never })
    expect(status).toBe(500)
    expect(failures).toEqual([expect.stringContaining('findSecret of digest returns a password as text')])
    if (typeof secret === 'number') expect(failures[0]).toMatch(/it gave a number\.$/)
  })

  it.each([
    ['undefined', undefined],
    ['the answer of a database', 'OK'],
    ['a number', 1],
  ])('is reported, as the claim of a count: %s', async (_, answer) => {
    const shared = { key: Buffer.alloc(32, 1), claim: () => answer as never }
    const [status, failures] = await logIn({ accounts: { ada: 'secret' }, shared })
    expect([status, failures]).toEqual([500, [expect.stringContaining('claim of digest returns true or false')]])
  })
})

describe('a throttle that returns neither a number nor nothing', () => {
  const times: readonly (readonly [string, unknown])[] = [
    ['the record of a limiter', { msBeforeNext: 5000 }],
    ['text', '5000'],
    ['true', true],
    ['a list', []],
  ]
  it.each(times)('lets no guess through, and is reported: %s', async (_, time) => {
    const wait = () => time as never
    for (const throttle of [
      { check: wait, report: () => undefined },
      { check: () => undefined, report: wait },
    ]) {
      const scheme = basic({ accounts: { ada: 'wrong' }, throttle })
      await withGuard({ schemes: [scheme] }, async ({ send, failures }) => {
        expect((await send(BASIC)).status).toBe(500)
        expect(failures.map(String)).toEqual([expect.stringContaining('A throttle returns milliseconds to wait')])
      })
    }
  })

  it('lets guesses through where it returns null, as a database does', async () => {
    const throttle = { check: () => null as never, report: async () => null as never }
    await withGuard({ schemes: [basic({ accounts: { ada: 'wrong' }, throttle })] }, async ({ send }) => {
      expect((await send(BASIC)).status).toBe(200)
    })
  })

  it('may lock an account for good: 429 without Retry-After', async () => {
    const throttle = { check: () => Number.POSITIVE_INFINITY, report: () => undefined }
    await withGuard({ schemes: [basic({ accounts: { ada: 'wrong' }, throttle })] }, async ({ send }) => {
      const { status, headers } = await send(BASIC)
      expect([status, headers['retry-after']]).toEqual([429, undefined])
    })
  })
})

describe('scopes that are not a list', () => {
  const issuer = createIssuer('ES256')
  const settings = { issuer: 'https://issuer.test', audience: 'api', keys: issuer.jwk }
  const sent = bearerHeader(issue(issuer, { scope: 'notes:readers' }))

  it('of a token let no request in: "notes:readers" is not "notes:read"', async () => {
    const verifier = jwt({ ...settings, scopes: ({ scope }) => scope as never })
    const schemes = [bearer(verifier, { scope: () => ['notes:read'] })]
    await withGuard({ schemes }, async ({ send, failures }) => {
      expect((await send(sent)).status).toBe(500)
      expect(failures.map(String)).toEqual([expect.stringContaining('The verifier of a token gives scopes as a list')])
    })
  })

  it.each([[''], ['notes:read'], [new Set(['notes:read'])], [undefined], [[7]]])(
    'of a request let none in, whichever way its path is read: %j',
    async (scopes) => {
      const schemes = [bearer(jwt(settings), { scope: () => scopes as never })]
      await withGuard({ schemes }, async ({ send, failures }) => {
        for (const path of ['/a', '/a;b']) expect((await send({ ...sent, path })).status).toBe(500)
        const report = expect.stringContaining('scope of bearer gives scopes as a list')
        expect(failures.map(String)).toEqual([report, report])
      })
    },
  )
})

describe('a negotiation', () => {
  it.each([[undefined], ['Complete'], ['continue']])('whose step has as outcome %s is reported', async (outcome) => {
    const acceptor = () => ({ step: () => ({ outcome, name: 'ada@TEST' }) as never })
    await withGuard({ schemes: [negotiate({ acceptor })] }, async ({ send, failures }) => {
      expect((await send({ headers: { Authorization: 'Negotiate YWRh' } })).status).toBe(500)
      expect(failures.map(String)).toEqual([expect.stringContaining('The step of a negotiation')])
    })
  })
})
