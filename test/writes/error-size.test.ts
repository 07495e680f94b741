import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { collection } from '../../src/service/resource-definitions.ts'
import { startService, type Target } from './support.ts'

let target: Target | undefined
afterEach(() => target?.close())

const LONG = 'n'.repeat(1_000_000)
const START = () =>
  startService({
    resources: { '/items': collection({ schema: z.record(z.string(), z.record(z.string(), z.string())) }) },
  })

/** Many faults below one long name: a pointer to each repeats the name. */
const below = (value: unknown) =>
  JSON.stringify({ [LONG]: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, value])) })

describe('answers that list faults of the content (RFC 9457 §3)', () => {
  const fields = { 'Content-Type': 'application/json' }

  it('list at most 100 of them, each at the nearest place whose pointer has at most 1024 characters', async () => {
    target = await START()
    const refused = await target.send('POST', '/items', { fields, body: below(1) })
    expect([refused.status, refused.json().errors.length, refused.json().errors[0].pointer]).toEqual([422, 100, ''])
    const few = JSON.stringify({ a: { b: 1, ['c'.repeat(1021)]: 1, ['d'.repeat(1022)]: 1 } })
    const { errors } = (await target.send('POST', '/items', { fields, body: few })).json()
    expect(errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual(['/a/b', `/a/${'c'.repeat(1021)}`, '/a'])
  })

  it('are as short where a schema leaves members out', async () => {
    target = await startService({
      resources: { '/items': collection({ schema: z.record(z.string(), z.object({ a: z.number().optional() })) }) },
    })
    expect((await target.send('POST', '/items', { fields, body: below(1) })).status).toBe(201)
    const strict = { ...fields, Prefer: 'handling=strict' }
    const refused = await target.send('POST', '/items', { fields: strict, body: below(1) })
    const { errors } = refused.json()
    expect([refused.status, errors.length, errors[0].pointer]).toEqual([422, 100, ''])
    expect(refused.body.length).toBeLessThan(20_000)
  })
})
