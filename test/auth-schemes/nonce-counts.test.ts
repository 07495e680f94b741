import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createNonceCounts, createNonces } from '../../src/auth-schemes/nonces.ts'
import { MEASURED } from '../support/measured.ts'

afterEach(() => {
  vi.useRealTimers()
})

describe('createNonceCounts', () => {
  it('takes what comes late, 127 back and no further', () => {
    const claim = createNonceCounts(10, 1000, Date.now)
    expect(claim('n', 1000, 1)).toBe(true)
    expect([claim('n', 873, 1), claim('n', 872, 1)]).toEqual([true, false])
    expect(claim('n', 873, 1)).toBe(false)
    expect([claim('n', 0xffffffff, 1), claim('n', 1000, 1), claim('n', 0xffffffff, 1)]).toEqual([true, false, false])
    expect([claim('n', 0xffffffff - 127, 1), claim('n', 0xffffffff - 128, 1)]).toEqual([true, false])
  })

  it('takes the lowest count of the window after a jump, whatever was taken one window before', () => {
    const claim = createNonceCounts(10, 1000, Date.now)
    expect([claim('n', 1000, 1), claim('n', 1128 + 127, 1)]).toEqual([true, true])
    expect([claim('n', 1128, 1), claim('n', 1128, 1), claim('n', 1127, 1)]).toEqual([true, false, false])
  })

  it('never takes a count twice, and takes every new one that is not too far back', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 300 }), (counts) => {
        const claim = createNonceCounts(10, 1000, Date.now)
        const taken = new Set<number>()
        let highest = 0
        for (const count of counts) {
          const expected = count > 0 && count > highest - 128 && !taken.has(count)
          if (claim('n', count, 1) !== expected) return false
          if (expected) taken.add(count)
          highest = Math.max(highest, expected ? count : 0)
        }
        return true
      }),
    )
  })

  it('keeps no more nonces than it may, and takes none that is as old as one it forgot', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 100 })
    const claim = createNonceCounts(2, 1000, Date.now)
    expect([claim('a', 1, 50), claim('b', 1, 60), claim('c', 1, 70)]).toEqual([true, true, true])
    expect([claim('a', 1, 50), claim('a', 2, 50), claim('z', 1, 50), claim('z', 1, 49)]).toEqual([
      false,
      false,
      false,
      false,
    ])
    expect([claim('b', 1, 60), claim('b', 2, 60), claim('d', 1, 80), claim('b', 3, 60)]).toEqual([
      false,
      true,
      true,
      false,
    ])
  })

  it('takes none that it forgot, also once it has forgotten older ones', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 100 })
    const claim = createNonceCounts(3, 1000, Date.now)
    // Proofs arrive in another order than their nonces were made.
    const claims = [claim('a', 1, 60), claim('b', 1, 50), claim('c', 1, 51), claim('d', 1, 70), claim('e', 1, 80)]
    expect(claims).toEqual([true, true, true, true, true])
    expect([claim('a', 1, 60), claim('b', 1, 50)]).toEqual([false, false])
  })

  it('takes no new nonce either that is as old as the one that it forgets to make room for it', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 100 })
    const claim = createNonceCounts(1, 1000, Date.now)
    expect([claim('a', 1, 60), claim('b', 1, 60), claim('b', 2, 60), claim('c', 1, 61)]).toEqual([
      true,
      false,
      false,
      true,
    ])
  })

  it('minds no nonce that it forgot after its lifetime', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 5000 })
    const claim = createNonceCounts(1, 1000, Date.now)
    expect([claim('a', 1, 4000), claim('b', 1, 3999)]).toEqual([true, true])
  })
})

describe('createNonces', () => {
  const key = Buffer.alloc(32, 7)
  const share = (bytes: Buffer, realm: string) => {
    const claim = vi.fn(() => true)
    return { claim, nonces: createNonces(realm, 1000, { key: bytes, claim }) }
  }

  it('passes on when no process takes a nonce of its own any more, and takes none of another realm or key', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_234_567_890_123 })
    const own = share(key, 'r')
    const nonce = own.nonces.create()
    expect(own.nonces.claim(nonce, 3)).toBe(true)
    const same = share(key, 'r')
    expect(same.nonces.claim(nonce, 3)).toBe(true)
    for (const { claim } of [own, same]) expect(claim.mock.calls).toEqual([[nonce, 3, 1_234_567_896_123]])
    for (const other of [share(key, 's'), share(Buffer.alloc(32, 8), 'r')]) {
      expect(other.nonces.claim(nonce, 3)).toBe(false)
      expect(other.claim).not.toHaveBeenCalled()
    }
  })

  it('makes no nonce twice in one millisecond', () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const nonces = createNonces('r', 1000)
    expect(new Set(Array.from({ length: 1000 }, () => nonces.create())).size).toBe(1000)
  })

  it('takes nothing else for a nonce', () => {
    const { nonces } = share(key, 'r')
    fc.assert(fc.property(fc.string({ maxLength: 60 }), (text) => nonces.claim(text, 1) === false))
    const nonce = nonces.create()
    for (let i = 0; i < nonce.length; i++) {
      const changed = nonce.slice(0, i) + (nonce[i] === 'A' ? 'B' : 'A') + nonce.slice(i + 1)
      expect(nonces.claim(changed, 1)).toBe(false)
    }
  })

  it('keeps the counts of 10 000 nonces', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 20_000 })
    const nonces = createNonces('r', 300_000)
    const made = Array.from({ length: 10_000 }, (_, i) => {
      vi.setSystemTime(20_000 + i)
      return nonces.create()
    })
    for (const nonce of made) nonces.claim(nonce, 1)
    expect(nonces.claim(made[0]!, 2)).toBe(true)
    vi.setSystemTime(30_000)
    expect(nonces.claim(nonces.create(), 1)).toBe(true)
    expect([nonces.claim(made[0]!, 3), nonces.claim(made[1]!, 2)]).toEqual([false, true])
  })
})

it('a nonce whose counts are kept does not keep the field that it came in', MEASURED, () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const nonces = createNonces('api', 60_000)
  const claim = (): unknown => {
    const field = Buffer.from(`nonce="${nonces.create()}", ${'x'.repeat(50_000)}`).toString()
    return nonces.claim(field.slice(7, 50), 1)
  }
  expect(claim()).toBe(true)
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  for (let i = 0; i < 200; i++) claim()
  collectGarbage()
  // All fields together have 10 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(2_000_000)
})
