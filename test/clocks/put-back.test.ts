import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createAfterCommits } from '../../src/actions/change-hooks.ts'
import { attemptLimit } from '../../src/auth-schemes/accounts.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { digest } from '../../src/auth-schemes/digest.ts'
import { jwt } from '../../src/auth-schemes/jwt.ts'
import { createNonces } from '../../src/auth-schemes/nonces.ts'
import { type AuthScheme, createMemory } from '../../src/auth-schemes/scheme.ts'
import type { RequestView } from '../../src/core/request-view.ts'
import { isWithin } from '../../src/core/time.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { createWorkQueue, type WorkQueue } from '../../src/work/queue.ts'
import { createExternalScheduler } from '../../src/work/scheduler.ts'
import { answerChallenge } from '../auth-schemes/digest-client.ts'
import { type GuardedServer, serveGuarded } from '../auth-schemes/guarded-server.ts'
import { bearerHeader, createIssuer, issue } from '../auth-schemes/tokens.ts'

const HOUR = 3_600_000
const START = 1_800_000_000_000

const closing: (() => unknown)[] = []
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: START }))
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  vi.useRealTimers()
})

const move = (milliseconds: number): void => void vi.setSystemTime(Date.now() + milliseconds)

async function guard(scheme: AuthScheme): Promise<GuardedServer> {
  const server = await serveGuarded({ schemes: [scheme] })
  closing.push(() => server.close())
  return server
}

describe('isWithin', () => {
  it('counts from a moment until a span has passed, and not before the moment', () => {
    expect([99, 100, 109, 110].map((now) => isWithin(100, 10, now))).toEqual([false, true, true, false])
    expect(isWithin(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, 0)).toBe(false)
    expect(isWithin(0, Number.POSITIVE_INFINITY, 1)).toBe(true)
  })
})

describe('a clock that is put back', () => {
  it('ends what a memory of credentials holds', () => {
    const memory = createMemory<number>(10, 5000)
    memory.set('a', 1)
    move(-1)
    expect(memory.get('a')).toBeUndefined()
    memory.set('a', 2)
    move(4999)
    expect(memory.get('a')).toBe(2)
  })

  it('does not keep a token in use that was revoked', async () => {
    let isGood = true
    const { send } = await guard(bearer(() => isGood, { cacheLifetime: 5000 }))
    expect((await send(bearerHeader('tok'))).status).toBe(200)
    isGood = false
    move(-HOUR)
    expect((await send(bearerHeader('tok'))).status).toBe(401)
  })

  it('does not keep a key in use that its issuer has withdrawn', async () => {
    const rsa = createIssuer('RS256')
    let keys = [rsa.jwk]
    const load = vi.fn(async () => ({ keys }))
    const { send } = await guard(bearer(jwt({ issuer: 'https://issuer.test', audience: 'api', jwks: load as never })))
    const token = bearerHeader(issue(rsa, { exp: START / 1000 + 100_000 }))
    expect([(await send(token)).status, (await send(token)).status, load.mock.calls.length]).toEqual([200, 200, 1])
    keys = []
    move(-HOUR)
    expect([(await send(token)).status, load.mock.calls.length]).toEqual([401, 2])
  })

  it('does not keep keys in use beyond their time while their issuer is away', async () => {
    const rsa = createIssuer('RS256')
    let isAway = false
    const load = async () => {
      if (isAway) throw new Error('The issuer is away.')
      return { keys: [rsa.jwk] }
    }
    const { send } = await guard(bearer(jwt({ issuer: 'https://issuer.test', audience: 'api', jwks: load as never })))
    const token = bearerHeader(issue(rsa, { exp: START / 1000 + 100_000 }))
    expect((await send(token)).status).toBe(200)
    isAway = true
    move(-HOUR)
    expect((await send(token)).status).toBe(503)
  })

  it('does not lock a user out for longer than the window', () => {
    const limit = attemptLimit({ failures: 1, window: 60_000 })
    const request = { clientAddress: '192.0.2.1' } as RequestView
    limit.report('ada', 'rejected', request)
    move(-HOUR)
    expect(limit.check('ada', request)).toBeUndefined()
    limit.report('ada', 'rejected', request)
    expect(limit.check('ada', request)).toBe(60_000)
  })

  it('neither shortens nor lengthens the life of a nonce', async () => {
    const { send } = await guard(digest({ accounts: { ada: 'secret' }, nonceLifetime: 2000 }))
    const { challenges } = await send()
    const ask = async (nc: string) =>
      (await send({ headers: { Authorization: answerChallenge(challenges[0], { nc }) } })).status
    move(-HOUR)
    expect(await ask('00000001')).toBe(200)
    const { challenges: later } = await send()
    expect((await send({ headers: { Authorization: answerChallenge(later[0]) } })).status).toBe(200)
    await new Promise((resolve) => setTimeout(resolve, 3100))
    expect(await ask('00000002')).toBe(401)
    move(HOUR)
    expect(await ask('00000003')).toBe(401)
  })

  it('does not make new nonces useless where many older ones are forgotten', () => {
    const lifetime = 300_000
    const nonces = createNonces('r', lifetime)
    for (let count = 0; count < 10_000; count++) nonces.claim(nonces.create(), 1)
    move(2 * lifetime)
    expect(nonces.claim(nonces.create(), 1)).toBe(true)
    move(-HOUR)
    expect(nonces.claim(nonces.create(), 1)).toBe(true)
  })

  it('ends nonces of processes that share them, with some tolerance for other clocks', async () => {
    const shared = { key: Buffer.alloc(32, 1), claim: () => true }
    const { send } = await guard(digest({ accounts: { ada: 'secret' }, shared }))
    const { challenges } = await send()
    const ask = async (): Promise<number> =>
      (await send({ headers: { Authorization: answerChallenge(challenges[0]) } })).status
    move(-5000)
    expect(await ask()).toBe(200)
    move(-1)
    expect(await ask()).toBe(401)
  })

  it('lets accepted work start that another process has left, or that waits for another attempt', async () => {
    const store = memoryStore()
    let now = START
    const queue = createWorkQueue(store, () => now)
    const { path, content } = queue.record('a', { kind: 'process', pattern: '/jobs', path: '/jobs/1' })
    await store.write(path, content, { expect: 'absent' })
    const isClaimed = async (): Promise<boolean> => {
      const work = await queue.find('a')
      return work !== undefined && queue.claim(work)
    }
    expect(await isClaimed()).toBe(true)
    expect(await queue.due(10)).toEqual({ ids: [], wait: 10_000 })
    now -= 500_000
    expect(await queue.due(10)).toEqual({ ids: [], wait: 510_000 })
    now -= HOUR
    expect(await queue.due(10)).toEqual({ ids: ['a'], wait: undefined })
    expect(await isClaimed()).toBe(true)
    expect(await isClaimed()).toBe(false)
  })

  it('does not keep work from a queue of the user that has lost it', async () => {
    vi.useFakeTimers({ now: START })
    const enqueue = vi.fn()
    const queue = { due: async () => ({ ids: ['a'], wait: undefined }) } as unknown as WorkQueue
    const scheduler = createExternalScheduler({ enqueue }, { queue, pollInterval: 1000, log: () => {} })
    scheduler.start()
    await vi.advanceTimersByTimeAsync(1500)
    expect(enqueue).toHaveBeenCalledTimes(1)
    move(-HOUR)
    await vi.advanceTimersByTimeAsync(1500)
    expect(enqueue).toHaveBeenCalledTimes(2)
    scheduler.close()
  })

  it('does not let a service wait longer for its hooks when it closes', async () => {
    vi.useFakeTimers({ now: START, toFake: ['Date', 'setTimeout', 'clearTimeout', 'setImmediate', 'performance'] })
    const hooks = createAfterCommits(() => {})
    const hang = () => new Promise<void>(() => {})
    let end = (): void => {}
    const first = () =>
      new Promise<void>((resolve) => {
        end = () => {
          hooks.announce(hang, undefined)
          resolve()
        }
      })
    hooks.announce(first, undefined)
    await vi.advanceTimersByTimeAsync(1)
    const onDrained = vi.fn()
    void hooks.drain().then(onDrained)
    move(-HOUR)
    end()
    await vi.advanceTimersByTimeAsync(5001)
    expect(onDrained).toHaveBeenCalled()
  })
})
