import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { attemptLimit, normalizeText, passThrottle, type Throttle } from '../../src/auth-schemes/accounts.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { digest } from '../../src/auth-schemes/digest.ts'
import { hashPassword } from '../../src/auth-schemes/password-hash.ts'
import { type AuthOptions, auth } from '../../src/handlers/auth.ts'
import { requireHttps } from '../../src/handlers/require-https.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { runListener } from '../support/hosts.ts'
import { basicCredentials, type GuardedServer, serveGuarded } from './guarded-server.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const close of closers.splice(0)) await close()
})

async function serve(options: AuthOptions): Promise<GuardedServer> {
  const guarded = await serveGuarded(options)
  closers.push(guarded.close)
  return guarded
}

/** A name of nine letters with accents: each can be typed in two ways. */
const NAME = 'éééééèèèè'
/** One of its 512 spellings. */
const spell = (choice: number): string =>
  [...NAME].map((letter, bit) => (choice & (1 << bit) ? letter.normalize('NFD') : letter)).join('')

/** Credentials of Digest as a client makes them that spells the name its own way. */
function digestCredentials(challenge: string, user: string, password: string): string {
  const nonce = /nonce="([^"]+)"/.exec(challenge)![1]!
  const hash = (text: string) => createHash('sha256').update(text).digest('hex')
  const [ha1, ha2] = [hash(`${user}:Resources:${password}`), hash('GET:/')]
  const response = hash(`${ha1}:${nonce}:00000001:c:auth:${ha2}`)
  const name = Buffer.from(user).toString('latin1')
  return `Digest username="${name}", realm="Resources", nonce="${nonce}", uri="/", response="${response}", qop=auth, nc=00000001, cnonce="c", algorithm=SHA-256`
}

describe('an account', () => {
  const accounts = { [spell(3)]: 'secret' }

  it('is counted once whatever spelling of its name is sent, by Basic (RFC 7617 §2.1)', async () => {
    const { send } = await serve({ schemes: [basic({ accounts, throttle: attemptLimit({ failures: 10 }) })] })
    const statuses: number[] = []
    for (let i = 0; i < 20; i++) {
      statuses.push((await send({ headers: { Authorization: basicCredentials(spell(i * 25), 'x') } })).status)
    }
    expect(statuses).toEqual([...new Array(10).fill(401), ...new Array(10).fill(429)])
  })

  it('is counted once whatever spelling of its name is sent, by Digest (RFC 7616 §4)', async () => {
    const { send } = await serve({ schemes: [digest({ accounts, throttle: attemptLimit({ failures: 10 }) })] })
    const statuses: number[] = []
    for (let i = 0; i < 20; i++) {
      const { challenges } = await send()
      const Authorization = digestCredentials(challenges[0]!, spell(i * 25), 'x')
      statuses.push((await send({ headers: { Authorization } })).status)
    }
    expect(statuses).toEqual([...new Array(10).fill(401), ...new Array(10).fill(429)])
  })

  it('is one principal, under the name that the configuration gives it', async () => {
    const hashed = { [spell(3)]: await hashPassword('secret', { log2n: 4 }) }
    const verify = (_user: string, password: string) => password === 'secret'
    for (const [scheme, id] of [
      [basic({ accounts }), spell(3)],
      [basic({ accounts: hashed }), spell(3)],
      [basic({ verify }), NAME],
    ] as const) {
      const { send } = await serve({ schemes: [scheme] })
      for (const choice of [0, 3, 511]) {
        const { principal } = await send({ headers: { Authorization: basicCredentials(spell(choice), 'secret') } })
        expect(principal).toEqual({ scheme: 'basic', id })
      }
    }
    for (const [scheme, id] of [
      [digest({ accounts }), spell(3)],
      [digest({ findSecret: (user) => (user === NAME ? 'secret' : undefined) }), NAME],
    ] as const) {
      const { send } = await serve({ schemes: [scheme] })
      for (const choice of [0, 3, 511]) {
        const Authorization = digestCredentials((await send()).challenges[0]!, spell(choice), 'secret')
        expect((await send({ headers: { Authorization } })).principal).toEqual({ scheme: 'digest', id })
      }
    }
  })

  it('has a name that takes no time to normalize, of whatever marks it consists', () => {
    const sorted = (above: number, below: number) => `a${'\u0300'.repeat(above)}${'\u0316'.repeat(below)}`
    expect(normalizeText(sorted(15, 15))).toBe(sorted(15, 15).normalize('NFC'))
    expect(normalizeText(sorted(15, 16))).toBe(sorted(15, 16))
    const start = process.cpuUsage()
    for (let i = 0; i < 20; i++) expect(normalizeText(sorted(3000, 3000))).toHaveLength(6001)
    const { user, system } = process.cpuUsage(start)
    expect(user + system).toBeLessThan(200_000)
  })

  it('is not configured twice in two spellings', () => {
    expect(() => basic({ accounts: { [spell(0)]: 'a', [spell(1)]: 'b' } })).toThrow(
      '"accounts" has one name in two spellings.',
    )
  })
})

describe('wrong passwords behind a trusted proxy', () => {
  const schemes = () => [basic({ accounts: { ada: 'a' }, throttle: attemptLimit({ failures: 2 }) })]
  type Send = (password: string, fields: Readonly<Record<string, string>>) => Promise<number>

  const hosts: readonly (readonly [string, (trustProxy?: 'loopback') => Promise<Send>])[] = [
    [
      'a service',
      async (trustProxy) => {
        const service = createResourceService(memoryStore(), {
          ...(trustProxy && { trustProxy }),
          https: 'optional',
          auth: { schemes: schemes() },
        })
        const host = await runListener(service)
        closers.push(host.close)
        return async (password, fields) => {
          const headers = { ...fields, Authorization: basicCredentials('ada', password) }
          const { status } = await host.send({ path: '/', headers })
          return status === 404 ? 200 : status
        }
      },
    ],
    [
      'the piece',
      async (trustProxy) => {
        const { send } = await serve({ schemes: schemes(), ...(trustProxy && { trustProxy }) })
        return async (password, fields) =>
          (await send({ headers: { ...fields, Authorization: basicCredentials('ada', password) } })).status
      },
    ],
  ]

  it('count for the client where requireHttps before the guard names the proxy', async () => {
    const [https, guard] = [requireHttps({ trustProxy: 'loopback' }), auth({ schemes: schemes() })]
    const host = await runListener((req, res) => https(req, res, () => guard(req, res, () => res.end())))
    closers.push(host.close)
    const send = async (password: string, address: string) => {
      const fields = { 'X-Forwarded-For': address, 'X-Forwarded-Proto': 'https' }
      return (await host.send({ path: '/', headers: { ...fields, Authorization: basicCredentials('ada', password) } }))
        .status
    }
    expect([await send('x', '203.0.113.7'), await send('x', '203.0.113.7')]).toEqual([401, 401])
    expect([await send('a', '203.0.113.7'), await send('a', '198.51.100.1')]).toEqual([429, 200])
  })

  it.each(hosts)('lock out the client that sent them, not all clients of the proxy: %s', async (_, start) => {
    const send = await start('loopback')
    const from = (address: string) => ({ 'X-Forwarded-For': address })
    const evil = '203.0.113.7'
    expect([await send('x', from(evil)), await send('x', from(evil)), await send('a', from(evil))]).toEqual([
      401, 401, 429,
    ])
    expect(await send('a', from('198.51.100.1'))).toBe(200)
    // The hop that the proxy has written counts, whatever the client has put before it.
    expect(await send('a', from(`198.51.100.1, ${evil}`))).toBe(429)
    expect(await send('a', from(`10.0.0.1,${evil}:4711`))).toBe(429)
    expect(await send('a', { Forwarded: `for=198.51.100.1, for="${evil}:4711"` })).toBe(429)
    expect(await send('a', from(`::ffff:${evil}`))).toBe(429)
    // A second proxy on the same machine.
    expect(await send('a', from(`${evil}, 127.0.0.1`))).toBe(429)
    expect(await send('a', from('198.51.100.1, ::1'))).toBe(200)
    expect(await send('a', { ...from(evil), Forwarded: `for=${evil}` })).toBe(429)
    // One that contradicts another counts for the proxy itself, and so do malformed ones.
    const contradiction = { ...from('198.51.100.9'), Forwarded: 'for=198.51.100.8' }
    expect([await send('x', contradiction), await send('x', { Forwarded: 'for="' })]).toEqual([401, 401])
    expect(await send('a', { ...from('198.51.100.3'), Forwarded: 'for=198.51.100.4' })).toBe(429)
    // Beside a malformed one, the other may be the client's own.
    expect(await send('a', { ...from('198.51.100.5'), Forwarded: 'for="' })).toBe(429)
  })

  it.each(hosts)('count one network of IPv6 as one client: %s', async (_, start) => {
    const send = await start('loopback')
    const from = (address: string) => ({ 'X-Forwarded-For': address })
    expect(await send('x', from('2001:db8::1'))).toBe(401)
    expect(await send('x', { Forwarded: 'for="[2001:0db8:0:0:ffff::2]:80"' })).toBe(401)
    expect(await send('a', from('2001:db8:0:0:1:2:3:4'))).toBe(429)
    expect(await send('a', from('2001:db8:0:1::1'))).toBe(200)
  })

  it.each(hosts)('count for the peer where no proxy is trusted: %s', async (_, start) => {
    const send = await start()
    expect([await send('x', { 'X-Forwarded-For': '203.0.113.7' }), await send('x', {})]).toEqual([401, 401])
    expect(await send('a', { 'X-Forwarded-For': '203.0.113.8' })).toBe(429)
  })

  it('count for the peer over HTTP/2 as well', async () => {
    const service = createResourceService(memoryStore(), { auth: { schemes: schemes() } })
    const server = createServer(service)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    closers.push(() => new Promise((resolve) => session.close(() => server.close(resolve))))
    const statuses: number[] = []
    for (const password of ['x', 'x', 'a']) {
      const stream = session.request({ ':path': '/', authorization: basicCredentials('ada', password) })
      const [fields] = await once(stream, 'response')
      stream.resume()
      await once(stream, 'close')
      statuses.push(fields[':status'])
    }
    expect(statuses).toEqual([401, 401, 429])
  })
})

describe('attemptLimit', () => {
  const request = {} as Parameters<ReturnType<typeof attemptLimit>['check']>[1]

  it('remembers 10 000 accounts, and forgets the oldest first', () => {
    const limit = attemptLimit({ failures: 1 })
    for (let i = 0; i < 10_000; i++) limit.report(`user${i}`, 'rejected', request)
    expect([limit.check('user0', request), limit.check('user1', request)]).toEqual([
      expect.any(Number),
      expect.any(Number),
    ])
    limit.report('one more', 'rejected', request)
    expect(limit.check('user0', request)).toBeUndefined()
    expect(limit.check('user1', request)).toBeGreaterThan(0)
  })

  it('forgets no account that has to wait for the sake of other names', () => {
    const limit = attemptLimit({ failures: 2 })
    for (const name of ['ada', 'ada', 'bob']) limit.report(name, 'rejected', request)
    for (let i = 0; i < 10_000; i++) limit.report(`user${i}`, 'rejected', request)
    expect(limit.check('ada', request)).toBeGreaterThan(0)
    // The count of bob began anew.
    limit.report('bob', 'rejected', request)
    expect(limit.check('bob', request)).toBeUndefined()
  })

  it('counts attempts with two names in turn also where all others have to wait', () => {
    const limit = attemptLimit({ failures: 2 })
    for (let i = 0; i < 20_000; i++) limit.report(`user${i >> 1}`, 'rejected', request)
    for (const name of ['ada', 'bob', 'ada', 'bob']) limit.report(name, 'rejected', request)
    expect([limit.check('ada', request), limit.check('bob', request)]).not.toContain(undefined)
  })

  it('ends with its window: a failure then is the first of another', () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const limit = attemptLimit({ failures: 1, window: 1000 })
    limit.report('ada', 'rejected', request)
    vi.setSystemTime(Date.now() + 999)
    expect(limit.check('ada', request)).toBe(1)
    vi.setSystemTime(Date.now() + 1)
    expect(limit.check('ada', request)).toBeUndefined()
    limit.report('ada', 'rejected', request)
    expect(limit.check('ada', request)).toBe(1000)
  })

  it('ends with the window of the first failure, whenever the last one was', () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const limit = attemptLimit({ failures: 2, window: 1000 })
    limit.report('ada', 'rejected', request)
    vi.setSystemTime(Date.now() + 999)
    limit.report('ada', 'rejected', request)
    expect(limit.check('ada', request)).toBe(1)
    vi.setSystemTime(Date.now() + 1)
    expect(limit.check('ada', request)).toBeUndefined()
  })

  it('takes an account whose window is over for a new one, and forgets others before it', () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const limit = attemptLimit({ failures: 1, window: 1000 })
    limit.report('ada', 'rejected', request)
    vi.setSystemTime(Date.now() + 1000)
    for (const user of ['first', 'ada']) limit.report(user, 'rejected', request)
    for (let i = 0; i < 9999; i++) limit.report(`user${i}`, 'rejected', request)
    expect([limit.check('first', request), limit.check('ada', request)]).toEqual([undefined, 1000])
  })

  it('is asked before a password is verified: an attempt that it refuses costs no hash', () => {
    const verify = vi.fn(() => 'judged')
    expect(() => passThrottle({ check: () => 1, report: () => {} }, 'ada', request, verify)).toThrow(
      expect.objectContaining({ status: 429, headers: { 'Retry-After': '1' } }),
    )
    expect(verify).not.toHaveBeenCalled()
  })

  it.each([undefined, 0, -1, Number.NaN])('lets an attempt pass where a throttle of the user returns %s', (wait) => {
    expect(passThrottle({ check: () => wait, report: () => {} }, 'ada', request, () => 'judged')).toBe('judged')
  })
})

describe('attemptLimit, called by itself', () => {
  const from = (clientAddress: string) => ({ clientAddress }) as Parameters<Throttle['check']>[1]

  it('withholds the answer to wrong and to right guesses alike once the limit is reached', () => {
    const { report } = attemptLimit({ failures: 1 })
    const request = from('192.0.2.1')
    expect(report('ada', 'rejected', request)).toBeUndefined()
    expect(report('ada', 'rejected', request)).toBeGreaterThan(0)
    expect(report('ada', 'accepted', request)).toBeGreaterThan(0)
  })

  it('takes no address and user for another address and user', () => {
    const { check, report } = attemptLimit({ failures: 1 })
    report('2ada', 'rejected', from('192.0.2.1'))
    expect(check('2ada', from('192.0.2.1'))).toBeGreaterThan(0)
    expect(check('ada', from('192.0.2.12'))).toBeUndefined()
  })
})

describe('a throttle that counts in a store which several processes share', () => {
  const accounts = { ada: 'secret' }
  /** Answers of a guard with such a throttle to a right and to a wrong password, by each scheme. */
  async function statusesWith(report: () => Promise<number | undefined>): Promise<number[]> {
    const throttle: Throttle = { check: () => undefined, report }
    const statuses: number[] = []
    const byBasic = await serve({ schemes: [basic({ accounts, throttle })] })
    const byDigest = await serve({ schemes: [digest({ accounts, throttle })] })
    for (const password of ['secret', 'wrong']) {
      statuses.push((await byBasic.send({ headers: { Authorization: basicCredentials('ada', password) } })).status)
      const challenge = (await byDigest.send()).challenges[0]!
      const credentials = digestCredentials(challenge, 'ada', password)
      statuses.push((await byDigest.send({ headers: { Authorization: credentials } })).status)
    }
    return statuses
  }

  it('is waited for: what it withholds is withheld', async () => {
    expect(await statusesWith(async () => 5000)).toEqual([429, 429, 429, 429])
    expect(await statusesWith(async () => undefined)).toEqual([200, 200, 401, 401])
  })

  it('refuses all passwords while that store is away, and does not end the process', async () => {
    const rejected: unknown[] = []
    const onRejection = (error: unknown): void => void rejected.push(error)
    process.on('unhandledRejection', onRejection)
    try {
      expect(await statusesWith(() => Promise.reject(new Error('away')))).toEqual([500, 500, 500, 500])
      await new Promise((resolve) => setTimeout(resolve, 20))
      expect(rejected).toEqual([])
    } finally {
      process.off('unhandledRejection', onRejection)
    }
  })
})
