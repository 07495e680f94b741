import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { attemptLimit, type Throttle } from '../../src/auth-schemes/accounts.ts'
import { type BasicOptions, basic, parseBasicCredentials } from '../../src/auth-schemes/basic.ts'
import { hashPassword } from '../../src/auth-schemes/password-hash.ts'
import { HttpError } from '../../src/core/errors.ts'
import { MEASURED } from '../support/measured.ts'
import { startProcessorClock } from '../support/processor-time.ts'
import { basicCredentials, type GuardedServer, serveGuarded } from './guarded-server.ts'

let guarded: GuardedServer | undefined

async function serve(options: BasicOptions): Promise<GuardedServer> {
  guarded = await serveGuarded({ schemes: [basic(options)] })
  return guarded
}

afterEach(async () => {
  vi.useRealTimers()
  await guarded?.close()
  guarded = undefined
})

const encode = (text: string | Uint8Array) => Buffer.from(text).toString('base64')
const CHEAP = { log2n: 4, parallelization: 1 }

describe('parseBasicCredentials', () => {
  it.each([
    ['u:p', 'u', 'p'],
    ['u:p:q', 'u', 'p:q'],
    [':p', '', 'p'],
    ['u:', 'u', ''],
    [':', '', ''],
    ['ü:€', 'ü', '€'],
    ['\ufeffu:p', '\ufeffu', 'p'],
    ['u: p ', 'u', ' p '],
  ])('splits %j at the first colon (RFC 7617 §2, rows B1, B4, B5)', (text, user, password) => {
    expect(parseBasicCredentials(encode(text))).toEqual({ user, password })
  })

  it.each([
    ['no colon', encode('up')],
    ['nothing', ''],
    ['junk', '!!!'],
    ['junk inside', 'dT!pwcA='],
    ['no padding', encode('u:pw').replace(/=+$/, '')],
    ['too much padding', `${encode('u:pw')}=`],
    ['base64url', encode('u:\u{10ffff}\u{3fffe}>?').replace(/\//g, '_').replace(/\+/g, '-').replace(/=/g, '')],
    ['bits to spare', 'dTpwdw=='.replace('w==', 'x==')],
    ['a blank before', ` ${encode('u:p')}`],
    ['a blank after', `${encode('u:p')} `],
    ['a second token', `${encode('u:p')} ${encode('u:p')}`],
    ['NUL', encode('u:p\0')],
    ['a line feed', encode('u\n:p')],
    ['DEL', encode('u:p\x7f')],
    ['Latin-1', encode(Buffer.from('ü:p', 'latin1'))],
    ['a truncated character', encode(Buffer.from([0x75, 0x3a, 0xe2, 0x82]))],
  ])('reads nothing from %s (row B2, threat 98)', (_, value) => {
    expect(parseBasicCredentials(value)).toBeUndefined()
  })
})

describe('parseBasicCredentials, whatever is sent', () => {
  it('never throws, and reads one spelling of each pair only', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String()), (value) => {
        const read = parseBasicCredentials(value)
        return read === undefined || encode(`${read.user}:${read.password}`) === value
      }),
    )
  })
})

describe('basic', () => {
  it('asks for a password with a realm and UTF-8 (RFC 7617 §2.1, rows B3, B4)', async () => {
    const { send } = await serve({ realm: 'say "a\\b"', accounts: { u: 'p' } })
    const { status, challenges } = await send()
    expect(status).toBe(401)
    expect(challenges).toEqual(['Basic realm="say \\"a\\\\b\\"", charset="UTF-8"'])
  })

  it.each([
    ['clear', async (password: string) => password],
    ['hashed', (password: string) => hashPassword(password, CHEAP)],
  ])('knows accounts in %s, in whatever form their letters were typed (row B4)', async (_, keep) => {
    const { send } = await serve({
      accounts: { jürgen: await keep('p:ässwort'), u: await keep(''), v: await keep('{shadow}y') },
    })
    const ask = async (user: string, password: string) =>
      (await send({ headers: { Authorization: basicCredentials(user, password) } })).principal
    expect(await ask('jürgen', 'p:ässwort')).toEqual({ scheme: 'basic', id: 'jürgen' })
    expect(await ask('jürgen'.normalize('NFD'), 'p:ässwort'.normalize('NFD'))).toBeDefined()
    expect(await ask('u', '')).toBeDefined()
    expect(await ask('jürgen', 'p:ässwor')).toBeUndefined()
    expect(await ask('jürgen', 'p:ässwortt')).toBeUndefined()
    expect(await ask('JÜRGEN', 'p:ässwort')).toBeUndefined()
    for (const name of ['__proto__', 'constructor', 'toString', '']) expect(await ask(name, '')).toBeUndefined()
  })

  it('answers an unknown user and a wrong password with the same bytes (threat 97)', async () => {
    const { send } = await serve({ accounts: { ada: await hashPassword('right', CHEAP) } })
    const wrong = await send({ headers: { Authorization: basicCredentials('ada', 'wrong') } })
    const unknown = await send({ headers: { Authorization: basicCredentials('bob', 'wrong') } })
    expect(wrong.status).toBe(401)
    const { date: _, ...fields } = wrong.headers
    const { date: __, ...others } = unknown.headers
    expect([unknown.status, unknown.body, others]).toEqual([wrong.status, wrong.body, fields])
  })

  it('works as long for an unknown user as for a wrong password (threat 97)', MEASURED, async () => {
    const verify = basic({ accounts: { ada: await hashPassword('right', { log2n: 11, parallelization: 1 }) } })
    const ask = (user: string) =>
      verify.authenticate(encode(`${user}:wrong`), {} as Parameters<typeof verify.authenticate>[1])
    const times = { ada: [] as number[], bob: [] as number[] }
    for (let i = 0; i < 60; i++) {
      for (const user of ['ada', 'bob'] as const) {
        const elapsed = startProcessorClock()
        expect((await ask(user)).outcome).toBe('rejected')
        times[user].push(elapsed())
      }
    }
    const median = (list: number[]) => list.sort((a, b) => a - b)[list.length >> 1]!
    expect(median(times.bob)).toBeGreaterThan(median(times.ada) * 0.7)
  })

  it('gives the verifier what was typed, empty user and password included (row B5)', async () => {
    const verify = vi.fn((user: string, password: string) => user === '' && password === '')
    const { send } = await serve({ verify })
    const answer = await send({ headers: { Authorization: basicCredentials('', '') } })
    expect(answer.principal).toEqual({ scheme: 'basic', id: '' })
    expect(verify.mock.calls.map(([user, password]) => [user, password])).toEqual([['', '']])
  })

  it('takes the principal from the verifier, of either kind', async () => {
    const { send } = await serve({
      verify: async (user) => (user === 'ada' ? { id: '7', claims: { role: 'admin' } } : undefined),
    })
    const answer = await send({ headers: { Authorization: basicCredentials('ada', 'x') } })
    expect(answer.principal).toEqual({ scheme: 'basic', id: '7', claims: { role: 'admin' } })
    expect((await send({ headers: { Authorization: basicCredentials('bob', 'x') } })).status).toBe(401)
  })

  it('refuses every user when a verifier fails or returns something that is not a verdict', async () => {
    const { send, failures } = await serve({ verify: (user) => (user === 'a' ? ('yes' as never) : Promise.reject(1)) })
    expect((await send({ headers: { Authorization: basicCredentials('a', '') } })).status).toBe(500)
    expect((await send({ headers: { Authorization: basicCredentials('b', '') } })).status).toBe(500)
    expect(failures).toHaveLength(2)
  })

  it('verifies again after the time it remembers, and each password by itself', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const verify = vi.fn((_: string, password: string) => password === 'p')
    const { send } = await serve({ verify, cacheLifetime: 10_000 })
    const ask = async (password: string) =>
      (await send({ headers: { Authorization: basicCredentials('u', password) } })).status
    expect([await ask('p'), await ask('p'), await ask('q'), await ask('q')]).toEqual([200, 200, 401, 401])
    expect(verify).toHaveBeenCalledTimes(3)
    vi.setSystemTime(Date.now() + 9999)
    expect([await ask('p'), verify.mock.calls.length]).toEqual([200, 3])
    vi.setSystemTime(Date.now() + 1)
    expect([await ask('p'), verify.mock.calls.length]).toEqual([200, 4])
  })

  it('remembers at most 1000 passwords, and at least the last 500', () => {
    const verify = vi.fn(() => true)
    const scheme = basic({ verify, cacheLifetime: 60_000 })
    const exchange = {} as Parameters<typeof scheme.authenticate>[1]
    const ask = (user: string): number => {
      const before = verify.mock.calls.length
      const value = Buffer.from(`${user}:p`).toString('base64')
      expect(scheme.authenticate(value, exchange)).toMatchObject({ outcome: 'accepted' })
      return verify.mock.calls.length - before
    }
    ask('first')
    for (let i = 0; i < 1000; i++) ask(`u${i}`)
    expect([ask('u999'), ask('u501'), ask('first')]).toEqual([0, 0, 1])
  })

  it.each([
    ['neither verify nor accounts', {}],
    ['both', { verify: () => true, accounts: { u: 'p' } }],
    ['no accounts', { accounts: {} }],
    ['a user with a colon', { accounts: { 'a:b': 'p' } }],
    [
      'hashes beside passwords',
      { accounts: { a: '$scrypt$ln=4,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA', b: 'p' } },
    ],
    ['a malformed hash', { accounts: { a: '$scrypt$' } }],
    ['a password that is none', { accounts: { a: undefined as never } }],
    ['an empty realm', { realm: '', accounts: { u: 'p' } }],
    ['a realm with a line feed', { realm: 'a\nb', accounts: { u: 'p' } }],
    ['a realm beyond ASCII', { realm: 'ü', accounts: { u: 'p' } }],
    ['a negative time', { cacheLifetime: -1, accounts: { u: 'p' } }],
    ['an option that does not exist', { relm: 'x', accounts: { u: 'p' } } as never],
  ])('is not made with %s', (_, options) => {
    expect(() => basic(options)).toThrow(TypeError)
  })
})

describe('attemptLimit', () => {
  it('answers 429 with Retry-After after so many wrong passwords, to one user only (threat 99)', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const throttle = attemptLimit({ failures: 3, window: 60_000 })
    const { send } = await serve({ accounts: { ada: 'a', bob: 'b' }, throttle })
    const ask = async (user: string, password: string) =>
      (await send({ headers: { Authorization: basicCredentials(user, password) } })).status
    expect([await ask('ada', 'x'), await ask('ada', 'x'), await ask('ada', 'x')]).toEqual([401, 401, 401])
    vi.setSystemTime(Date.now() + 20_500)
    const refused = await send({ headers: { Authorization: basicCredentials('ada', 'a') } })
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '40'])
    expect(await ask('bob', 'b')).toBe(200)
    vi.setSystemTime(Date.now() + 39_499)
    expect(await ask('ada', 'a')).toBe(429)
    vi.setSystemTime(Date.now() + 1)
    expect(await ask('ada', 'a')).toBe(200)
  })

  it('forgets failures once the password was right', async () => {
    const { send } = await serve({ accounts: { ada: 'a' }, throttle: attemptLimit({ failures: 2 }) })
    const ask = async (password: string) =>
      (await send({ headers: { Authorization: basicCredentials('ada', password) } })).status
    expect([await ask('x'), await ask('a'), await ask('x'), await ask('a')]).toEqual([401, 200, 401, 200])
  })

  it('tells nothing about guesses beyond the limit that were sent at once (threat 99)', async () => {
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    let arrived = 0
    const { send } = await serve({
      verify: async (_, password) => {
        if (++arrived === 12) open()
        await gate
        return password === '11'
      },
      throttle: attemptLimit({ failures: 10 }),
    })
    const guesses = Array.from({ length: 12 }, (_, i) =>
      send({ headers: { Authorization: basicCredentials('ada', String(i)) } }),
    )
    const statuses = (await Promise.all(guesses)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 401)).toHaveLength(10)
    expect(statuses[11]).not.toBe(401)
    expect(
      statuses.filter((status) => status === 429).length + statuses.filter((status) => status === 200).length,
    ).toBe(2)
  })

  it('lets no password be remembered that was guessed beyond the limit', async () => {
    const verify = async (_: string, password: string) => password === 'right'
    const scheme = basic({ verify, cacheLifetime: 60_000, throttle: attemptLimit({ failures: 2 }) })
    const exchange = {} as Parameters<typeof scheme.authenticate>[1]
    const guess = async (password: string): Promise<unknown> =>
      Promise.resolve(scheme.authenticate(Buffer.from(`ada:${password}`).toString('base64'), exchange)).then(
        ({ outcome }) => outcome,
        ({ status }) => status,
      )
    expect(await Promise.all(['x', 'y', 'right'].map(guess))).toEqual(['rejected', 'rejected', 429])
    await expect(guess('right')).rejects.toMatchObject({ status: 429 })
  })

  it('refuses guesses of a password that is remembered as those of any other', async () => {
    const scheme = basic({ accounts: { ada: 'a' }, cacheLifetime: 60_000, throttle: attemptLimit({ failures: 2 }) })
    guarded = await serveGuarded({ schemes: [scheme], trustProxy: 'loopback' })
    const { send } = guarded
    const ask = async (client: string, password: string): Promise<number> => {
      const Authorization = basicCredentials('ada', password)
      return (await send({ headers: { Authorization, 'X-Forwarded-For': client } })).status
    }
    expect(await ask('192.0.2.1', 'a')).toBe(200)
    const guesses: number[] = []
    for (const password of ['x', 'y', 'z', 'a']) guesses.push(await ask('192.0.2.2', password))
    expect(guesses).toEqual([401, 401, 429, 429])
    expect(await ask('192.0.2.1', 'a')).toBe(200)
  })

  it('withholds a remembered password that was guessed at once with others beyond the limit', async () => {
    const outcomes: string[] = []
    const throttle: Throttle = {
      check: async () => undefined,
      report: async (_, outcome) => (outcomes.push(outcome) > 2 ? 1000 : undefined),
    }
    const { send } = await serve({ accounts: { ada: 'a' }, cacheLifetime: 60_000, throttle })
    const ask = async (password: string): Promise<number> =>
      (await send({ headers: { Authorization: basicCredentials('ada', password) } })).status
    expect([await ask('a'), await ask('x'), await ask('a')]).toEqual([200, 401, 429])
    expect(outcomes).toEqual(['accepted', 'rejected', 'accepted'])
  })

  it('counts by the result of keyOf', async () => {
    const throttle = attemptLimit({ failures: 1, keyOf: (_, { headers }) => String(headers['x-peer']) })
    const { send } = await serve({ accounts: { ada: 'a' }, throttle })
    const ask = async (peer: string) =>
      (await send({ headers: { 'X-Peer': peer, Authorization: basicCredentials(peer, 'x') } })).status
    expect([await ask('1'), await ask('1'), await ask('2')]).toEqual([401, 429, 401])
  })

  it('passes on what a throttle of the user throws, and waits for one that takes time', async () => {
    const { send } = await serve({
      accounts: { ada: 'a' },
      throttle: {
        check: async (user) => {
          if (user === 'eve') throw new HttpError(403, 'ERR_FORBIDDEN')
          return user === 'bob' ? 500 : undefined
        },
        report: () => {},
      },
    })
    const ask = (user: string) => send({ headers: { Authorization: basicCredentials(user, 'a') } })
    expect((await ask('ada')).status).toBe(200)
    const bob = await ask('bob')
    expect([bob.status, bob.headers['retry-after']]).toEqual([429, '1'])
    expect((await ask('eve')).status).toBe(403)
  })

  it.each([{ failures: 0 }, { window: 0 }, { failures: Number.NaN }, { tries: 1 } as never])(
    'is not made with %j',
    (options) => {
      expect(() => attemptLimit(options)).toThrow(TypeError)
    },
  )
})
