import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { collection } from '../../src/service/resource-definitions.ts'
import type { Answer } from '../support/answer.ts'
import { ADMIN, jsonOf, MERGE_PATCH, startDemo, startService, type Target, USER, uploadOf } from './support.ts'

let demo: Target
beforeAll(async () => {
  demo = await startDemo()
})
afterAll(() => demo.close())

const config = { debug: true, port: 1, logLevel: 'info' }
const applied = (answer: Answer): string | undefined => answer.field('preference-applied')

describe('Prefer: return', () => {
  it('minimal: no content, and Preference-Applied (rows R4, R5)', async () => {
    const minimal = { Prefer: 'return=minimal' }
    const created = await demo.send('POST', '/users', jsonOf(USER, minimal))
    expect([created.status, created.text, applied(created)]).toEqual([201, '', 'return=minimal'])
    const path = created.field('location')!
    expect((await demo.send('GET', path)).status).toBe(200)
    for (const [method, target, value, fields, status] of [
      ['PUT', '/config/app', config, {}, 204],
      ['PUT', '/users/900', USER, {}, 201],
      ['PATCH', path, { role: 'x' }, MERGE_PATCH, 204],
      ['POST', '/docs', {}, { 'Content-Type': 'text/plain' }, 201],
    ] as const) {
      const answer = await demo.send(method, target, jsonOf(value, { ...fields, ...minimal }))
      expect([method, answer.status, answer.text, applied(answer)]).toEqual([method, status, '', 'return=minimal'])
    }
  })

  it('representation: content with Content-Location, and Preference-Applied (rows R4, R5, H35)', async () => {
    const full = { Prefer: 'return=representation' }
    const created = await demo.send('PUT', '/users/901', jsonOf(USER, full))
    expect([created.status, created.json(), applied(created)]).toEqual([201, { id: 901, ...USER }, full.Prefer])
    expect(created.field('content-location')).toBe('/users/901')
    const replaced = await demo.send('PUT', '/users/901', jsonOf(USER, full))
    expect([replaced.status, replaced.json().id, applied(replaced)]).toEqual([200, 901, full.Prefer])
    const unchanged = await demo.send('PATCH', '/users/901', jsonOf({}, { ...MERGE_PATCH, ...full }))
    expect([unchanged.status, unchanged.json().id, applied(unchanged)]).toEqual([200, 901, full.Prefer])
    const raw = await demo.send('PUT', '/docs/raw', { fields: { 'Content-Type': 'text/plain', ...full }, body: 'grün' })
    expect([raw.status, raw.text, raw.field('content-type')]).toEqual([201, 'grün', 'text/plain'])
  })

  it.each([
    ['return=minimal, return=representation', undefined],
    ['return=other', undefined],
    ['spam=1', undefined],
    ['', undefined],
    ['return', undefined],
    [';;;"', undefined],
    ['RETURN=minimal', 'return=minimal'],
    ['return="minimal"', 'return=minimal'],
    ['return=minimal; foo=bar', 'return=minimal'],
    ['spam, return=minimal', 'return=minimal'],
    ['return=minimal, return=minimal', 'return=minimal'],
  ])('%s (rows R1, R2, R3, R6)', async (prefer, expected) => {
    const answer = await demo.send('PUT', '/config/app', jsonOf(config, { Prefer: prefer }))
    expect([answer.status, applied(answer)]).toEqual([expected === undefined ? 200 : 204, expected])
  })

  it('is read from all its lines (row R2)', async () => {
    const { body } = jsonOf(config)
    const answer = await demo.send('PUT', '/config/app', {
      fields: [
        ['Content-Type', 'application/json'],
        ['Prefer', 'spam'],
        ['Prefer', 'return=minimal'],
      ],
      body: body!,
    })
    expect([answer.status, applied(answer)]).toEqual([204, 'return=minimal'])
  })
})

describe('Prefer: handling=strict', () => {
  it('refuses members that the schema would strip, on POST, PUT and PATCH (row R8)', async () => {
    const schema = z.object({ name: z.string(), inner: z.object({ a: z.number() }).optional() })
    const target = await startService({ resources: { '/a': collection({ schema }) } })
    const value = { name: 'x', 'o/dd': 1, inner: { a: 1, b: 2 } }
    const strict = { Prefer: 'handling=strict, return=representation' }
    const lenient = await target.send('POST', '/a', jsonOf(value, { Prefer: 'handling=lenient' }))
    expect([lenient.status, lenient.json(), applied(lenient)]).toEqual([
      201,
      { id: 1, name: 'x', inner: { a: 1 } },
      undefined,
    ])
    for (const [method, path, fields] of [
      ['POST', '/a', {}],
      ['PUT', '/a/1', {}],
      ['PATCH', '/a/1', MERGE_PATCH],
    ] as const) {
      const refused = await target.send(method, path, jsonOf(value, { ...fields, ...strict }))
      expect(refused.status).toBe(422)
      expect(refused.json().errors.map((error: { pointer: string }) => error.pointer)).toEqual(['/o~1dd', '/inner/b'])
      const good = await target.send(method, path, jsonOf({ name: method }, { ...fields, ...strict }))
      expect([good.json().name, applied(good)]).toEqual([method, 'return=representation, handling=strict'])
    }
    await target.close()
  })

  it('is said to be applied where content that is kept as it came has a schema, and not without (RFC 7240 §3)', async () => {
    const schema = z.object({ name: z.string() })
    const types = ['application/json', 'text/plain']
    const target = await startService({ resources: { '/a': collection({ schema, types }) } })
    const strict = { Prefer: 'handling=strict' }
    const full = { Prefer: 'handling=strict, return=representation' }
    const minimal = { Prefer: 'handling=strict, return=minimal' }
    const text = { fields: { 'Content-Type': 'text/plain', ...strict }, body: 'x' }
    const answers = [
      await target.send('POST', '/a', jsonOf({ name: 'x', odd: 1 }, strict)),
      await target.send('POST', '/a', jsonOf({ name: 'x' }, strict)),
      await target.send('POST', '/a', jsonOf({ name: 'x' }, full)),
      await target.send('POST', '/a', jsonOf({ name: 'x' }, minimal)),
      await target.send('POST', '/a', text),
      await target.send('PUT', '/a/1', text),
      await target.send('DELETE', '/a/1', { fields: strict }),
    ]
    expect(answers.map((answer) => [answer.status, applied(answer)])).toEqual([
      [422, undefined],
      [201, 'handling=strict'],
      [201, 'handling=strict'],
      [201, 'return=minimal, handling=strict'],
      [201, undefined],
      [204, undefined],
      [204, undefined],
    ])
    await target.close()
  })
})

describe('Prefer: respond-async', () => {
  it('is said to be applied where the answer is 202 (rows R4, R7)', async () => {
    const async = { Prefer: 'respond-async, return=minimal' }
    const { body, fields } = uploadOf()
    const accepted = await demo.send('POST', '/uploads', { fields: { ...fields, ...async }, body: body! })
    expect([accepted.status, applied(accepted)]).toEqual([202, 'respond-async'])
    const queued = await demo.send('DELETE', accepted.field('location')!, { fields: { ...ADMIN, ...async } })
    expect([queued.status, applied(queued)]).toEqual([202, 'respond-async'])
    const done = await demo.send('POST', '/users', jsonOf(USER, async))
    expect([done.status, applied(done)]).toEqual([201, 'return=minimal'])
  })
})
