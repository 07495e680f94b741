import { afterEach, describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import { hashInTurn, hashPassword, verifyLikeStranger, verifyPassword } from '../../src/auth-schemes/password-hash.ts'
import { isHttpError } from '../../src/core/errors.ts'
import { basicCredentials, type GuardedServer, serveGuarded } from './guarded-server.ts'

const CHEAP = { log2n: 9, parallelization: 1 }
/** More than a line of one account holds, and more than that of all does. */
const MANY = 100
const TOO_MANY = 300

let guarded: GuardedServer | undefined
afterEach(async () => {
  await guarded?.close()
  guarded = undefined
})

/** 503 where a hash was refused, else what it found. */
const settle = (verifying: Promise<boolean>): Promise<boolean | number> =>
  verifying.catch((error: unknown) => (isHttpError(error) ? error.status : 0))

describe('hashes of passwords', () => {
  it('for names that do not exist, or for one account, keep no other user out', async () => {
    const accounts = { ada: await hashPassword('a', CHEAP), bob: await hashPassword('b', CHEAP) }
    guarded = await serveGuarded({ schemes: [basic({ accounts })] })
    const { send } = guarded
    const ask = async (user: string, password: string): Promise<number> =>
      (await send({ headers: { Authorization: basicCredentials(user, password) } })).status
    for (const stranger of [(i: number) => `nobody${i}`, () => 'bob']) {
      const flood = Array.from({ length: MANY }, (_, i) => ask(stranger(i), 'x'))
      expect(await ask('ada', 'a')).toBe(200)
      for (const status of await Promise.all(flood)) expect([401, 503]).toContain(status)
    }
    expect([await ask('bob', 'b'), await ask('ada', 'x'), await ask('nobody', 'x')]).toEqual([200, 401, 401])
  })

  it('of one stand-in for all users that a verifier does not know keep no known user out', async () => {
    const known = await hashPassword('a', CHEAP)
    const standIn = await hashPassword('-', CHEAP)
    const flood = Array.from({ length: MANY }, () => settle(verifyPassword('x', standIn)))
    expect(await verifyPassword('a', known)).toBe(true)
    expect(new Set(await Promise.all(flood))).toEqual(new Set([false, 503]))
  })

  it('tell a wrong password from a name that does not exist neither by their order nor by a refusal', async () => {
    const known = await hashPassword('a', CHEAP)
    const decoy = await hashPassword('-', CHEAP)
    const order: string[] = []
    const verify = (name: string, password: string, hash: string | undefined): Promise<boolean | number> =>
      settle(verifyLikeStranger(password, hash, decoy)).finally(() => order.push(name))
    // A line of strangers that has places left: a wrong password is answered in the place of a stranger's.
    const line = Array.from({ length: 30 }, (_, i) => verify(`nobody${i}`, 'x', undefined))
    const late = [verify('ada', 'x', known), verify('stranger', 'x', undefined), verify('ada', 'a', known)]
    expect(await Promise.all(late)).toEqual([false, false, true])
    await Promise.all(line)
    // Two hashes are made at a time: neighbours may change places.
    expect(order.indexOf('ada')).toBeLessThan(25)
    expect(order.slice(-4)).toEqual(expect.arrayContaining(['ada', 'stranger']))
    // A line that has none: both are refused, and the right password is not.
    const flood = Array.from({ length: TOO_MANY }, () => settle(verifyLikeStranger('x', undefined, decoy)))
    const full = [verify('ada', 'x', known), verify('stranger', 'x', undefined), verify('ada', 'a', known)]
    expect(await Promise.all(full)).toEqual([503, 503, true])
    await Promise.all(flood)
  })

  it('are made for 200 users who log in at once', async () => {
    const hashes = await Promise.all(Array.from({ length: 10 }, () => hashPassword('a', CHEAP)))
    const logIns = Array.from({ length: 200 }, (_, i) => settle(verifyLikeStranger('a', hashes[i % 10], hashes[0]!)))
    expect(new Set(await Promise.all(logIns))).toEqual(new Set([true]))
  })

  it('do not tell by the time of a refusal whether an account exists', async () => {
    const known = await hashPassword('a', CHEAP)
    const decoy = await hashPassword('-', CHEAP)
    const flood = Array.from({ length: TOO_MANY }, () => settle(verifyLikeStranger('x', undefined, decoy)))
    const order: string[] = []
    const ask = (name: string, hash: string | undefined): Promise<unknown> =>
      settle(verifyLikeStranger('x', hash, decoy)).then((result) => order.push(`${name} ${result}`))
    await Promise.all(Array.from({ length: 3 }, () => [ask('ada', known), ask('stranger', undefined)]).flat())
    expect(order).toEqual(Array.from({ length: 3 }, () => ['ada 503', 'stranger 503']).flat())
    await Promise.all(flood)
  })

  it.each(['an account', 'a name that does not exist'])('for %s keep other names waiting alike', async (target) => {
    const known = await hashPassword('a', CHEAP)
    const decoy = await hashPassword('-', CHEAP)
    const order: string[] = []
    const verify = (name: string, hash: string | undefined): Promise<unknown> =>
      verifyLikeStranger('x', hash, decoy).then(() => order.push(name))
    const flood = Array.from({ length: 40 }, () => verify('flood', target === 'an account' ? known : undefined))
    await Promise.all([...flood, verify('nobody', undefined)])
    expect(order.indexOf('nobody')).toBeGreaterThan(35)
  })
})

describe('hashInTurn', () => {
  /** Asks for a hash that is made only when `finish` is called. */
  function askFor(lane: string) {
    let finish = (): void => {}
    let isStarted = false
    const made = hashInTurn(lane, () => {
      isStarted = true
      return new Promise<boolean>((resolve) => (finish = () => resolve(true)))
    })
    return { isStarted: () => isStarted, finish: () => finish(), result: settle(made) }
  }

  it('makes 2 hashes at a time, and lets 64 wait in a lane and 256 in all', async () => {
    // The pause of a refusal is as long as the last hash took.
    await hashInTurn('a', async () => true)
    const first = Array.from({ length: 3 }, () => askFor('a'))
    expect(first.map(({ isStarted }) => isStarted())).toEqual([true, true, false])
    const waiting = ['a', 'b', 'c', 'd'].flatMap((lane) => {
      const free = lane === 'a' ? 63 : 64
      const held = Array.from({ length: free }, () => askFor(lane))
      return lane === 'd' ? held : [...held, askFor(lane)]
    })
    // One beyond each of the first three lanes, and one beyond the 256.
    const refused = [...waiting.filter((_, i) => [63, 128, 193].includes(i)), askFor('e')]
    expect(await Promise.all(refused.map(({ result }) => result))).toEqual([503, 503, 503, 503])
    const placed = [...first, ...waiting].filter((one) => !refused.includes(one))
    expect(placed).toHaveLength(2 + 256)
    while (placed.some(({ isStarted }) => !isStarted())) {
      for (const one of placed) one.finish()
      await new Promise(setImmediate)
    }
    for (const one of placed) one.finish()
    expect(new Set(await Promise.all(placed.map(({ result }) => result)))).toEqual(new Set([true]))
  })
})
