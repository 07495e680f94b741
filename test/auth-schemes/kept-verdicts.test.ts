import { describe, expect, it, vi } from 'vitest'
import type { Throttle } from '../../src/auth-schemes/accounts.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import type { AuthScheme, Verdict } from '../../src/auth-schemes/scheme.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Principal } from '../../src/core/request-view.ts'

type Verify = () => Verdict

/** Schemes that keep verdicts, how many they keep, and what they are sent for a name. */
const SCHEMES: readonly [string, (verify: Verify) => AuthScheme, number, (name: string) => string][] = [
  [
    'basic',
    (verify) => basic({ verify, cacheLifetime: 60_000 }),
    1000,
    (name) => Buffer.from(`${name}:p`).toString('base64'),
  ],
  ['bearer', (verify) => bearer(verify, { cacheLifetime: 60_000 }), 10_000, (name) => name],
]

const EXCHANGE = { queryText: '' } as Exchange

describe.each(SCHEMES)('the verdicts that %s keeps', (_, create, most, credentialsOf) => {
  it('are forgotten when there are too many', () => {
    const verify = vi.fn(() => true)
    const scheme = create(verify)
    const names = ['first', ...Array.from({ length: most }, (_, index) => `other${index}`)]
    for (const name of names) scheme.authenticate(credentialsOf(name), EXCHANGE)
    expect(verify).toHaveBeenCalledTimes(most + 1)
    scheme.authenticate(credentialsOf(names.at(-1)!), EXCHANGE)
    expect(verify).toHaveBeenCalledTimes(most + 1)
    scheme.authenticate(credentialsOf('first'), EXCHANGE)
    expect(verify).toHaveBeenCalledTimes(most + 2)
  })

  it('are those of one scheme, and not of another with other users', () => {
    expect(create(() => true).authenticate(credentialsOf('ada'), EXCHANGE)).toMatchObject({ outcome: 'accepted' })
    expect(create(() => false).authenticate(credentialsOf('ada'), EXCHANGE)).toMatchObject({ outcome: 'rejected' })
  })
})

const noThrottle: Throttle = { check: () => undefined, report: () => undefined }
const KEEPING: typeof SCHEMES = [
  ...SCHEMES,
  [
    'basic with a throttle',
    (verify) => basic({ verify, throttle: noThrottle, cacheLifetime: 60_000 }),
    1000,
    SCHEMES[0]![3],
  ],
]

it.each(KEEPING)('%s gives each request a principal and claims of its own', (_, create, _most, credentialsOf) => {
  const verify = vi.fn(() => ({ id: 'ada', claims: { role: 'reader' } }))
  const scheme = create(verify)
  for (const _ of [1, 2, 3]) {
    const { principal } = scheme.authenticate(credentialsOf('ada'), EXCHANGE) as { principal: Principal }
    expect(principal).toEqual({ scheme: expect.any(String), id: 'ada', claims: { role: 'reader' } })
    Object.assign(principal, { id: 'grace' })
    Object.assign(principal.claims!, { role: 'admin' })
  }
  expect(verify).toHaveBeenCalledTimes(1)
})

it('claims without a prototype are copied as well, and have none', () => {
  const claims = Object.assign(Object.create(null), { role: 'reader' }) as Record<string, unknown>
  const scheme = bearer(() => ({ id: 'ada', claims }), { cacheLifetime: 60_000 })
  scheme.authenticate('tok', EXCHANGE)
  for (const _ of [1, 2]) {
    const { principal } = scheme.authenticate('tok', EXCHANGE) as { principal: Principal }
    expect([principal.claims!['role'], Object.getPrototypeOf(principal.claims)]).toEqual(['reader', null])
    Object.assign(principal.claims!, { role: 'admin' })
  }
})

it('claims of a class stay as they are', () => {
  class Rights {
    may = (): boolean => true
  }
  const scheme = bearer(() => ({ id: 'ada', claims: new Rights() as never }), { cacheLifetime: 60_000 })
  for (const _ of [1, 2]) {
    expect(scheme.authenticate('tok', EXCHANGE)).toMatchObject({ principal: { claims: expect.any(Rights) } })
  }
})

it('a throttle withholds and counts a verdict that basic keeps, like one that it has just made', () => {
  const throttle = { check: vi.fn<Throttle['check']>(), report: vi.fn<Throttle['report']>() }
  const verify = vi.fn(() => true)
  const scheme = basic({ verify, throttle, cacheLifetime: 60_000 })
  const authenticate = () => scheme.authenticate(Buffer.from('ada:p').toString('base64'), EXCHANGE)
  for (const times of [1, 2]) {
    expect(authenticate()).toMatchObject({ outcome: 'accepted' })
    expect(throttle.report).toHaveBeenCalledTimes(times)
    expect(throttle.report).toHaveBeenLastCalledWith('ada', 'accepted', expect.anything())
  }
  throttle.check.mockReturnValue(1000)
  expect(authenticate).toThrow(expect.objectContaining({ status: 429 }))
  expect(verify).toHaveBeenCalledTimes(1)
})

describe('bearer with cacheLifetime', () => {
  it('checks the scope of every request with a token that it keeps (RFC 6750 §3.1)', () => {
    const verify = vi.fn(() => ({ id: 'ada', claims: { scope: 'read' } }))
    const scheme = bearer(verify, {
      cacheLifetime: 60_000,
      scope: ({ method }) => [method === 'GET' ? 'read' : 'write'],
    })
    const read = { ...EXCHANGE, method: 'GET' } as Exchange
    const write = { ...EXCHANGE, method: 'PUT' } as Exchange
    expect(scheme.authenticate('tok', read)).toMatchObject({ outcome: 'accepted' })
    expect(() => scheme.authenticate('tok', write)).toThrow(expect.objectContaining({ status: 403 }))
    expect(verify).toHaveBeenCalledTimes(1)
  })
})
