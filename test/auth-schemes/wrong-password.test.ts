import { beforeEach, expect, it, vi } from 'vitest'
import { hashInTurn, hashPassword, verifyLikeStranger } from '../../src/auth-schemes/password-hash.ts'

/** How long each pause was to be, in milliseconds. None of them takes any time. */
const pauses: number[] = []
let hashes = 0

vi.mock('node:timers/promises', () => ({ setTimeout: async (time: number) => void pauses.push(time) }))
vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof import('node:crypto')>()
  const scrypt = (...values: unknown[]) => {
    hashes++
    Reflect.apply(crypto.scrypt, crypto, values)
  }
  return { ...crypto, scrypt }
})

beforeEach(() => {
  pauses.length = 0
  hashes = 0
})

/** Takes the place in a lane until it is given back. */
function hold(lane: string): () => void {
  let giveBack = (): void => {}
  void hashInTurn(lane, () => new Promise<void>((resolve) => (giveBack = resolve)))
  return giveBack
}

/** Some milliseconds. */
const COST = { log2n: 12, parallelization: 1 }

it('a wrong password takes its time in its turn, also where it was compared before', async () => {
  const decoy = await hashPassword('-', COST)
  for (const hash of [undefined, await hashPassword('a', COST)]) {
    const giveBack = hold('all')
    hashes = 0
    // It is compared in the lane of its account, as a right one would be.
    const verdict = verifyLikeStranger('x', hash, decoy)
    expect(hashes).toBe(1)
    await hashInTurn('another', async () => {})
    expect(pauses).toEqual([])
    giveBack()
    expect(await verdict).toBe(false)
    expect(pauses).toHaveLength(1)
    expect(pauses.pop()).toBeGreaterThan(0)
    expect(hashes).toBe(1)
  }
})

it('a wrong password takes no more than its time where it is compared in its turn, and is compared once', async () => {
  const decoy = await hashPassword('-', COST)
  const others = [hold('a'), hold('b')]
  hashes = 0
  const verdict = verifyLikeStranger('x', undefined, decoy)
  for (const giveBack of others) giveBack()
  expect(await verdict).toBe(false)
  expect([hashes, pauses]).toEqual([1, [0]])
})

it('a refusal takes as long as the last hash, and in the line of all as long as 8 of them and a quarter of a second', async () => {
  await hashPassword('-', COST)
  const giveBack = [hold('all'), hold('a')]
  const waiting = [...new Array(256).fill('all'), ...new Array(64).fill('a')].map((lane) =>
    hashInTurn(lane, async () => {}),
  )
  for (const lane of ['a', 'all']) {
    await expect(hashInTurn(lane, async () => {})).rejects.toThrow(expect.objectContaining({ status: 503 }))
  }
  const [inLane, inAll] = pauses as [number, number]
  expect(inAll).toBe(250 + 8 * inLane)
  // What is taken for the time of a hash before any was made.
  expect(inLane).not.toBe(100)
  for (const end of giveBack) end()
  await Promise.all(waiting)
})
