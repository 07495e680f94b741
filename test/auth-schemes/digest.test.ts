import { Agent } from 'node:http'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { attemptLimit } from '../../src/auth-schemes/accounts.ts'
import { type DigestOptions, digest } from '../../src/auth-schemes/digest.ts'
import {
  computeResponse,
  type DigestAlgorithm,
  type DigestCredentials,
  hashAccount,
  hashDigestSecret,
  parseDigestCredentials,
} from '../../src/auth-schemes/digest-response.ts'
import { answerChallenge, type DigestRequest, readChallenge } from './digest-client.ts'
import { type GuardedServer, type Sent, send, serveGuarded } from './guarded-server.ts'

let guarded: GuardedServer | undefined

async function serve(options: Partial<DigestOptions> = {}): Promise<GuardedServer> {
  const accounts = options.findSecret === undefined ? { accounts: { ada: 'secret' } } : {}
  guarded = await serveGuarded({ schemes: [digest({ ...accounts, ...options })] })
  return guarded
}

/** Asks for a challenge, then answers it. */
async function ask({ send }: GuardedServer, request: DigestRequest = {}, sent: Sent = {}) {
  const { method = 'GET', uri = '/' } = request
  const { challenges } = await send({ method, path: uri })
  const authorization = answerChallenge(challenges[0], request)
  const answer = await send({ method, path: uri, ...sent, headers: { Authorization: authorization } })
  return { ...answer, authorization, challenge: challenges[0]! }
}

const isStale = (challenges: readonly string[]) =>
  challenges.every((text) => readChallenge(text).get('stale') === 'true')

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] })
})

afterEach(async () => {
  vi.useRealTimers()
  await guarded?.close()
  guarded = undefined
})

describe('computeResponse', () => {
  const credentials = {
    ...{ user: 'Mufasa', realm: 'http-auth@example.org', uri: '/dir/index.html', response: '', nc: '00000001' },
    nonce: '7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v',
    cnonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
  }

  it.each<[DigestAlgorithm, string]>([
    ['MD5', '8ca523f5e9506fed4657c9700eebdbec'],
    ['SHA-256', '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1'],
  ])('gives the example of RFC 7616 §3.9.1 with %s', (algorithm, expected) => {
    const account = hashAccount(algorithm, credentials.user, credentials.realm, 'Circle of Life')
    expect(computeResponse({ ...credentials, algorithm }, account, 'GET')).toBe(expected)
  })
})

describe('parseDigestCredentials', () => {
  const piece = fc.oneof(
    fc.constantFrom('username', 'realm', 'nonce', 'uri', 'qop', 'nc', 'cnonce', 'response', 'algorithm', 'username*'),
    fc.constantFrom('=', ',', ' ', '"', '\\', 'auth', '00000001', 'SHA-256', "UTF-8''%zz", '__proto__'),
    fc.string({ maxLength: 5 }),
  )

  it('never throws', () => {
    fc.assert(fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => void parseDigestCredentials(pieces.join(''))))
  })
})

describe('digest', () => {
  it('offers SHA-256 alone, with realm, nonce and qop (RFC 7616 §3.3, row G1)', async () => {
    const { challenges } = await (await serve({ realm: 'a "b"' })).send()
    expect(challenges).toHaveLength(1)
    expect(challenges[0]).toMatch(
      /^Digest realm="a \\"b\\"", qop="auth", algorithm=SHA-256, nonce="[\w-]{43}", charset=UTF-8$/,
    )
  })

  it('offers MD5 after it, in whatever order it is asked for (row G1, threat 101)', async () => {
    const server = await serve({ algorithms: ['MD5', 'SHA-256'] })
    const { challenges } = await server.send()
    expect(challenges.map((text) => readChallenge(text).get('algorithm'))).toEqual(['SHA-256', 'MD5'])
    for (const [i, challenge] of challenges.entries()) {
      const answer = await server.send({
        headers: { Authorization: answerChallenge(challenge, { nc: `0000000${i + 1}` }) },
      })
      expect(answer.principal).toEqual({ scheme: 'digest', id: 'ada' })
    }
  })

  it('proves that it knows the password, too (RFC 7616 §3.5)', async () => {
    const answer = await ask(await serve(), { uri: '/a?b=c', cnonce: 'x, y' })
    const info = readChallenge(String(answer.headers['authentication-info']))
    const nonce = readChallenge(answer.challenge).get('nonce')!
    const account = hashAccount('SHA-256', 'ada', 'Resources', 'secret')
    const credentials: DigestCredentials = {
      ...{ user: 'ada', realm: 'Resources', nonce, uri: '/a?b=c', response: '', cnonce: 'x, y' },
      ...{ nc: '00000001', algorithm: 'SHA-256' as const },
    }
    expect(info.get('rspauth')).toBe(computeResponse(credentials, account, ''))
    expect([info.get('qop'), info.get('cnonce'), info.get('nc')]).toEqual(['auth', 'x, y', '00000001'])
  })

  describe('refuses', () => {
    it.each<[string, DigestRequest]>([
      ['a wrong password', { password: 'Secret' }],
      ['an unknown user', { user: 'bob' }],
      ['a name of every object', { user: '__proto__' }],
      ['another realm', { realm: 'Elsewhere' }],
      ['another response', { send: { response: `"${'0'.repeat(64)}"` } }],
      ['a shorter response', { send: { response: '"0"' } }],
      ['no qop (threat 101)', { send: { qop: undefined } }],
      ['a qop that is not offered (threat 101)', { send: { qop: 'auth-int' } }],
      ['a list of qop', { send: { qop: '"auth,auth-int"' } }],
      ['an algorithm that is not offered (threat 101)', { send: { algorithm: 'MD5' } }],
      ['an algorithm left out, which means MD5', { send: { algorithm: undefined } }],
      ['a session', { send: { algorithm: 'SHA-256-sess' } }],
      ['an algorithm of every object', { send: { algorithm: 'constructor' } }],
      ['a hashed user name', { send: { userhash: 'true' } }],
      ['a hashed user name in capitals', { send: { userhash: 'TRUE' } }],
      ['a name in both forms', { send: { 'username*': "UTF-8''ada" } }],
      ['no name', { send: { username: undefined } }],
      ['no nonce', { send: { nonce: undefined } }],
      ['no count', { send: { nc: undefined } }],
      ['no cnonce', { send: { cnonce: undefined } }],
      ['an empty cnonce', { cnonce: '' }],
      ['no uri', { send: { uri: undefined } }],
      ['no response', { send: { response: undefined } }],
      ['a count of zero', { nc: '00000000' }],
      ['a count of seven digits', { nc: '0000001' }],
      ['a count of nine digits', { nc: '000000001' }],
      ['a count that is none', { nc: '0000000g' }],
      ['a parameter twice (threat 101)', { send: { realm: '"Resources", realm="Resources"' } }],
      ['a parameter without a value', { send: { opaque: '' } }],
      ['a quote that does not end', { send: { opaque: '"x' } }],
    ])('%s', async (_, request) => {
      const server = await serve()
      const answer = await ask(server, request)
      expect(answer.status).toBe(401)
      expect(answer.challenges).toHaveLength(1)
      expect(server.failures).toEqual([])
    })

    it.each(['', 'x', '=', ',', '"', 'username', 'username=', 'YWRhOnNlY3JldA=='])(
      '%j for credentials',
      async (value) => {
        const { send } = await serve()
        expect((await send({ headers: { Authorization: `Digest ${value}` } })).status).toBe(401)
      },
    )
  })

  describe('takes', () => {
    it.each<[string, DigestRequest]>([
      [
        'quotes where none are needed, and none where they are usual (row G5)',
        { send: { qop: '"auth"', algorithm: '"SHA-256"' } },
      ],
      ['names in any case', { send: { username: undefined, USERNAME: '"ada"', algorithm: 'sha-256' } }],
      [
        'the name in the extended form (RFC 7616 §3.4.4)',
        { send: { username: undefined, 'username*': "UTF-8''%61da" } },
      ],
      ['a user name that is said not to be hashed', { send: { userhash: 'false' } }],
      ['parameters that it does not know', { send: { opaque: '"a, b=\\"c\\""', more: 'x' } }],
      ['quoted commas (row G5)', { uri: '/a,b?c="', send: { uri: '"/a,b?c=\\""' } }],
    ])('%s', async (_, request) => {
      expect((await ask(await serve(), request)).principal).toEqual({ scheme: 'digest', id: 'ada' })
    })
  })

  describe('binds a response to one request', () => {
    it('refuses it the second time (row G4, threat 100)', async () => {
      const server = await serve()
      const { status, authorization } = await ask(server)
      expect(status).toBe(200)
      const replayed = await server.send({ headers: { Authorization: authorization } })
      expect([replayed.status, isStale(replayed.challenges)]).toEqual([401, true])
      expect(readChallenge(replayed.challenges[0]).get('nonce')).not.toBe(readChallenge(authorization).get('nonce'))
    })

    it.each<[string, DigestRequest, Sent]>([
      ['another path (row G2, threat 100)', { uri: '/a' }, { path: '/b' }],
      ['another query', { uri: '/a?x=1' }, { path: '/a?x=2' }],
      ['a query that was cut off', { uri: '/a?x=1' }, { path: '/a' }],
      ['another spelling', { uri: '/a' }, { path: '/%61' }],
      ['another method (threat 100)', { method: 'GET' }, { method: 'DELETE' }],
      ['HEAD', { method: 'GET' }, { method: 'HEAD' }],
    ])('refuses it for %s', async (_, request, sent) => {
      const answer = await ask(await serve(), request, sent)
      expect(answer.status).toBe(401)
      expect(answer.challenges.map((text) => readChallenge(text).has('stale'))).toEqual([false])
    })

    it('compares with the target as it was sent, where the host cuts off a prefix', async () => {
      const guard = await serve()
      guard.server.prependListener('request', (req) => {
        Object.assign(req, { originalUrl: req.url, baseUrl: '/api', url: req.url?.slice(4) })
      })
      expect((await ask(guard, { uri: '/api/users/1?x' })).status).toBe(200)
    })

    it('compares with the result of targetOf, where a proxy cuts off a prefix', async () => {
      const guard = await serve({ targetOf: ({ req }) => `/api${req.url}` })
      expect((await ask(guard, { uri: '/api/a' }, { path: '/a' })).status).toBe(200)
      expect((await ask(guard, { uri: '/a' })).status).toBe(401)
    })

    it('hashes the method that was sent, not the one that it stands for', async () => {
      const guard = await serve()
      guard.server.prependListener('request', (req) =>
        Object.assign(req, { originalMethod: req.method, method: 'PUT' }),
      )
      expect((await ask(guard, { method: 'POST' })).status).toBe(200)
    })
  })

  describe('nonces', () => {
    it('are good for their lifetime, then stale (RFC 7616 §3.3, row G3)', async () => {
      const { send } = await serve({ nonceLifetime: 10_000 })
      const { challenges } = await send()
      const ask = async (nc: string, password = 'secret') =>
        send({ headers: { Authorization: answerChallenge(challenges[0], { nc, password }) } })
      vi.setSystemTime(Date.now() + 9999)
      expect((await ask('00000001')).status).toBe(200)
      vi.setSystemTime(Date.now() + 1)
      const late = await ask('00000002')
      expect([late.status, isStale(late.challenges)]).toEqual([401, true])
      const wrong = await ask('00000003', 'wrong')
      expect([wrong.status, isStale(wrong.challenges)]).toEqual([401, false])
      expect((await send({ headers: { Authorization: answerChallenge(late.challenges[0]) } })).status).toBe(200)
    })

    it.each([
      ['made by somebody else (threat 100)', (nonce: string) => Buffer.from(nonce).toString('base64url').slice(0, 43)],
      ['of another time', (nonce: string) => `B${nonce.slice(1)}`],
      ['with another proof', (nonce: string) => nonce.slice(0, 30) + (nonce[30] === 'A' ? 'B' : 'A') + nonce.slice(31)],
      ['in another spelling', (nonce: string) => nonce.slice(0, 42) + String.fromCharCode(nonce.charCodeAt(42) + 1)],
      ['with padding', (nonce: string) => `${nonce}=`],
      ['that is empty', () => ''],
      ['that is long', (nonce: string) => nonce.repeat(50)],
    ])('%s are refused', async (_, forge) => {
      const { send } = await serve()
      const { challenges } = await send()
      const forged = challenges[0]!.replace(/nonce="([^"]*)"/, (_, nonce: string) => `nonce="${forge(nonce)}"`)
      expect((await send({ headers: { Authorization: answerChallenge(forged) } })).status).toBe(401)
    })

    it('are good in the process that made them, where nothing is shared', async () => {
      const first = await serve()
      const { challenges } = await first.send()
      await first.close()
      const answer = await (await serve()).send({ headers: { Authorization: answerChallenge(challenges[0]) } })
      expect([answer.status, isStale(answer.challenges)]).toEqual([401, true])
    })

    it('take counts in any order, each once (RFC 7616 §5.5, row G4)', async () => {
      const { send } = await serve()
      const { challenges } = await send()
      const ask = async (count: number) => {
        const nc = count.toString(16).padStart(8, '0')
        return (await send({ headers: { Authorization: answerChallenge(challenges[0], { nc }) } })).status
      }
      expect([await ask(3), await ask(1), await ask(2), await ask(10), await ask(5)]).toEqual([200, 200, 200, 200, 200])
      expect([await ask(3), await ask(1), await ask(10), await ask(5), await ask(4)]).toEqual([401, 401, 401, 401, 200])
    })

    it('have no count used up by credentials with a wrong password', async () => {
      const { send } = await serve()
      const { challenges } = await send()
      const ask = async (password: string): Promise<number> =>
        (await send({ headers: { Authorization: answerChallenge(challenges[0], { password }) } })).status
      expect([await ask('x'), await ask('secret'), await ask('secret')]).toEqual([401, 200, 401])
    })

    it('take fifty requests at once', async () => {
      const { send } = await serve()
      const { challenges } = await send()
      const answers = Array.from({ length: 50 }, (_, i) => {
        const nc = (i + 1).toString(16).padStart(8, '0')
        return send({ headers: { Authorization: answerChallenge(challenges[0], { nc }) } })
      })
      expect(new Set((await Promise.all(answers)).map(({ status }) => status))).toEqual(new Set([200]))
    })

    it('are shared by processes that share the counts', async () => {
      const taken = new Set<string>()
      const expiries: number[] = []
      const shared = {
        key: Buffer.alloc(32, 1),
        claim: async (nonce: string, count: number, expires: number) => {
          expiries.push(expires)
          const key = `${nonce} ${count}`
          return taken.has(key) ? false : taken.add(key) !== undefined
        },
      }
      const [a, b] = [await serve({ shared }), await serve({ shared })]
      const now = Date.now()
      const { challenges } = await a.send()
      const headers = { Authorization: answerChallenge(challenges[0]) }
      // The time of the nonce counts, not that of the request.
      vi.setSystemTime(now + 1000)
      expect([(await b.send({ headers })).status, (await a.send({ headers })).status]).toEqual([200, 401])
      // A process whose clock is behind takes the nonce five seconds longer than the one that made it.
      expect(expiries[0]).toBe(now + 305_000)
      await a.close()
    })

    it('take no count twice in a process whose clock is behind that of the store, which has forgotten what expired', async () => {
      const taken = new Map<string, number>()
      let ahead = 0
      const claim = (nonce: string, count: number, expires: number): boolean => {
        const key = `${nonce} ${count}`
        if ((taken.get(key) ?? 0) > Date.now() + ahead) return false
        return taken.set(key, expires) !== undefined
      }
      const { send } = await serve({ shared: { key: Buffer.alloc(32, 1), claim } })
      const now = Date.now()
      const { challenges } = await send()
      const headers = { Authorization: answerChallenge(challenges[0]) }
      const first = (await send({ headers })).status
      ahead = 4000
      vi.setSystemTime(now + 299_000)
      expect([first, (await send({ headers })).status]).toEqual([200, 401])
    })
  })

  it.each([
    [4999, 200],
    [5001, 401],
  ])('takes the nonce of a process whose clock is %d ms ahead, where nonces are shared: %d', async (ahead, status) => {
    const server = await serve({ shared: { key: Buffer.alloc(32, 1), claim: () => true } })
    const now = Date.now()
    const { challenges } = await server.send()
    vi.setSystemTime(now - ahead)
    expect((await server.send({ headers: { Authorization: answerChallenge(challenges[0]) } })).status).toBe(status)
  })

  it('does not ask the other processes about a count of zero (RFC 7616 §3.4)', async () => {
    const claim = vi.fn(() => true)
    const server = await serve({ shared: { key: Buffer.alloc(32, 1), claim } })
    const { challenges } = await server.send()
    const ask = (nc: string) => server.send({ headers: { Authorization: answerChallenge(challenges[0], { nc }) } })
    expect([(await ask('00000000')).status, (await ask('00000001')).status]).toEqual([401, 200])
    expect(claim).toHaveBeenCalledTimes(1)
  })

  it('keeps a copy of the shared key, which nothing changes', async () => {
    const key = Buffer.alloc(32, 1)
    const server = await serve({ shared: { key, claim: () => true } })
    const { challenges } = await server.send()
    key.fill(2)
    expect((await server.send({ headers: { Authorization: answerChallenge(challenges[0]) } })).status).toBe(200)
  })

  it('tells its throttle every outcome, and names the user in one spelling before and after', async () => {
    const calls: (readonly [string, string])[] = []
    const throttle = {
      check: (user: string) => void calls.push(['check', user]),
      report: (user: string, outcome: string) => void calls.push([outcome, user]),
    }
    const user = 'ada\u0301'
    const server = await serve({ findSecret: (name) => (name === 'ad\u00e1' ? 'secret' : undefined), throttle })
    const username = `"${Buffer.from(user).toString('latin1')}"`
    for (const [password, outcome] of [
      ['x', 'rejected'],
      ['secret', 'accepted'],
    ] as const) {
      await ask(server, { user, password, send: { username } })
      expect(calls.splice(0)).toEqual([
        ['check', 'ad\u00e1'],
        [outcome, 'ad\u00e1'],
      ])
    }
  })

  describe('accounts', () => {
    const secrets = { ada: hashDigestSecret('ada', 'Resources', 'secret') }

    it('may be hashes instead of passwords', async () => {
      const server = await serve({ accounts: secrets, algorithms: ['SHA-256', 'MD5'] })
      expect((await ask(server)).principal).toEqual({ scheme: 'digest', id: 'ada' })
      expect((await ask(server, { password: 'x' })).status).toBe(401)
      expect((await ask(server, { user: 'bob' })).status).toBe(401)
    })

    it('may be found by a function, which may take its time', async () => {
      const findSecret = async (user: string) => (user === 'ada' ? 'secret' : user === 'bob' ? null : undefined)
      const server = await serve({ findSecret, principal: async (user) => ({ id: `#${user}`, claims: { role: 'x' } }) })
      expect((await ask(server)).principal).toEqual({ scheme: 'digest', id: '#ada', claims: { role: 'x' } })
      expect((await ask(server, { user: 'bob' })).status).toBe(401)
      expect((await ask(server, { user: 'eve' })).status).toBe(401)
    })

    it('may be turned down although the password was right', async () => {
      expect((await ask(await serve({ principal: () => false }))).status).toBe(401)
    })

    it('have names in UTF-8, and in Latin-1 where a client hashes them in UTF-8', async () => {
      const server = await serve({ accounts: { jürgen: 'pä' } })
      const name = { user: 'jürgen', password: 'pä' }
      const asUtf8 = { ...name, send: { username: `"${Buffer.from('jürgen').toString('latin1')}"` } }
      expect((await ask(server, asUtf8)).principal?.id).toBe('jürgen')
      expect((await ask(server, name)).principal?.id).toBe('jürgen')
      const extended = { ...name, send: { username: undefined, 'username*': "UTF-8''j%C3%BCrgen" } }
      expect((await ask(server, extended)).principal?.id).toBe('jürgen')
    })

    it('are throttled (threat 99), whatever the nonce', async () => {
      const server = await serve({ throttle: attemptLimit({ failures: 2 }) })
      expect((await ask(server, { password: 'x' })).status).toBe(401)
      expect((await ask(server, { password: 'y' })).status).toBe(401)
      const refused = await ask(server)
      expect([refused.status, refused.headers['retry-after']]).toEqual([429, '60'])
    })

    it('are throttled where guesses with a nonce of their own come at once: stale=true would tell the right one', async () => {
      let open = (): void => {}
      const gate = new Promise<void>((resolve) => (open = resolve))
      let arrived = 0
      const server = await serve({
        findSecret: async () => {
          if (++arrived === 4) open()
          await gate
          return 'secret'
        },
        throttle: attemptLimit({ failures: 2 }),
      })
      const challenge = (await server.send()).challenges[0]!.replace(/nonce="[^"]*"/, 'nonce="mine"')
      const guess = async (password: string): Promise<number> =>
        (await server.send({ headers: { Authorization: answerChallenge(challenge, { password }) } })).status
      const wrong = ['x', 'y', 'z'].map(guess)
      await vi.waitFor(() => expect(arrived).toBe(3))
      expect(await guess('secret')).toBe(429)
      expect((await Promise.all(wrong)).toSorted()).toEqual([401, 401, 429])
    })

    it('do not have their failures forgotten for a replay', async () => {
      const server = await serve({ throttle: attemptLimit({ failures: 2 }) })
      const { authorization } = await ask(server)
      expect((await ask(server, { password: 'x' })).status).toBe(401)
      expect((await server.send({ headers: { Authorization: authorization } })).status).toBe(401)
      expect((await ask(server, { password: 'x' })).status).toBe(401)
      expect((await ask(server)).status).toBe(429)
    })
  })

  it('judges a request once, however many guards share the scheme', async () => {
    const scheme = digest({ accounts: { ada: 'secret' } })
    const [outer, inner] = [await serveGuarded({ schemes: [scheme] }), await serveGuarded({ schemes: [scheme] })]
    guarded = outer
    const [first, second] = [outer.server.listeners('request')[0]!, inner.server.listeners('request')[0]!]
    await inner.close()
    outer.server.removeAllListeners('request')
    outer.server.on('request', (req, res) => {
      const end = res.end.bind(res)
      res.end = ((...args: Parameters<typeof end>) => {
        res.end = end
        if (res.statusCode !== 200) return end(...args)
        second.call(outer.server, req, res)
        return res
      }) as typeof res.end
      first.call(outer.server, req, res)
    })
    expect((await ask(outer)).principal).toEqual({ scheme: 'digest', id: 'ada' })
  })

  it('works on requests that come one after the other on one connection', async () => {
    const server = await serve()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const { challenges } = await server.send({ agent })
    for (const nc of ['00000001', '00000002']) {
      const answer = await send(server.port, {
        agent,
        headers: { Authorization: answerChallenge(challenges[0], { nc }) },
      })
      expect(answer.status).toBe(200)
    }
    agent.destroy()
  })

  it.each<[string, object]>([
    ['neither accounts nor findSecret', {}],
    ['both', { accounts: { a: 'b' }, findSecret: () => 'b' }],
    ['no accounts', { accounts: {} }],
    ['an account without a secret', { accounts: { a: undefined } }],
    [
      'an account without a hash for MD5',
      { accounts: { a: { 'SHA-256': '0'.repeat(64) } }, algorithms: ['SHA-256', 'MD5'] },
    ],
    ['a hash that is none', { accounts: { a: { 'SHA-256': 'x' } } }],
    ['a user with a colon', { accounts: { 'a:b': 'c' } }],
    ['a hash for Basic', { accounts: { a: '$scrypt$ln=4,r=8,p=1$AAAA$AAAA' } }],
    ['no algorithm', { accounts: { a: 'b' }, algorithms: [] }],
    ['an unknown algorithm', { accounts: { a: 'b' }, algorithms: ['SHA-1'] }],
    ['nonces for ever', { accounts: { a: 'b' }, nonceLifetime: Number.POSITIVE_INFINITY }],
    ['nonces for no time', { accounts: { a: 'b' }, nonceLifetime: 0 }],
    ['a short key', { accounts: { a: 'b' }, shared: { key: Buffer.alloc(31), claim: () => true } }],
    ['a key without counts', { accounts: { a: 'b' }, shared: { key: Buffer.alloc(32) } }],
    ['a realm with a line feed', { accounts: { a: 'b' }, realm: 'a\nb' }],
    ['an option that does not exist', { accounts: { a: 'b' }, qop: 'auth' }],
  ])('is not made with %s', (_, options) => {
    expect(() => digest(options as DigestOptions)).toThrow(TypeError)
  })
})
