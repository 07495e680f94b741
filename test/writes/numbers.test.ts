import { afterEach, describe, expect, it } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { jsonOf, startService, type Target } from './support.ts'

let target: Target | undefined
afterEach(() => target?.close())

describe('numbers that a double cannot hold (threat 63)', () => {
  const big = '{"account":9007199254740993,"m":1}'

  it('are kept by POST and PUT, and never changed by a patch that says nothing of them', async () => {
    target = await startService({ resources: { '/users': collection(), '/docs/{name}': document() } })
    const created = await target.send('POST', '/users', { fields: { 'Content-Type': 'application/json' }, body: big })
    expect(created.text).toContain('9007199254740993')
    const patch = { fields: { 'Content-Type': 'application/merge-patch+json' }, body: '{"m":2}' }
    const refused = await target.send('PATCH', '/users/1', patch)
    expect([refused.status, refused.json().type]).toEqual([
      409,
      'urn:problem-type:http-resource-service:patch-conflict',
    ])
    expect((await target.send('GET', '/users/1')).text).toContain('9007199254740993')
    // A raw document may hold what no double is: written again it would be null.
    await target.send('PUT', '/docs/n', { fields: { 'Content-Type': 'application/json' }, body: '{"n":1e400}' })
    expect((await target.send('PATCH', '/docs/n', patch)).status).toBe(409)
  })

  it('are found beside millions of escapes, on which a regular expression runs out of stack', async () => {
    target = await startService({ resources: { '/docs/{name}': document() } })
    const fields = { 'Content-Type': 'application/merge-patch+json' }
    await target.send('PUT', '/docs/n', { fields: { 'Content-Type': 'application/json' }, body: '{}' })
    for (const [number, status] of [
      ['1e22', 200],
      ['9007199254740993', 422],
    ] as const) {
      const body = `{"s":"${'\\\\'.repeat(3_900_000)}","n":${number}}`
      expect((await target.send('PATCH', '/docs/n', { fields, body })).status).toBe(status)
    }
  })

  it('are refused where an item is accepted: it is written anew, with its state', async () => {
    target = await startService({ resources: { '/jobs': collection({ create: 'accepted' }) } })
    const post = (body: string) =>
      target!.send('POST', '/jobs', { fields: { 'Content-Type': 'application/json' }, body })
    expect((await post(big)).status).toBe(422)
    expect((await post('{"account":9007199254740992}')).status).toBe(202)
  })

  it.each([
    ['{"n":9007199254740993}', 422],
    ['{"n":-12345678901234567890}', 422],
    ['{"n":9007199254740992}', 200],
    ['{"n":6.02214076e23}', 200],
    ['{"n":1e300}', 200],
    ['{"n":1e22,"f":0.1234567890123456789}', 200], // a fraction is as exact as a double is
    ['{"n":1e22,"m":9007199254740993}', 422],
    ['{"n":1e22,"m":"a \\\\\\" 9007199254740993"}', 200],
    ['{"n":"9007199254740993"}', 200],
    ['{"9007199254740993":1e22}', 200],
  ])('a patch of %s is answered %i', async (body, status) => {
    target = await startService({ resources: { '/users': collection() } })
    await target.send('POST', '/users', jsonOf({ a: 1 }))
    const answer = await target.send('PATCH', '/users/1', {
      fields: { 'Content-Type': 'application/merge-patch+json' },
      body,
    })
    expect(answer.status).toBe(status)
  })
})

describe('a schema that adds to a document', () => {
  it('is not a reason to round what it was sent (threat 63)', async () => {
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) => ({ value: { ...(value as object), level: 1 } }),
      },
    }
    target = await startService({ resources: { '/users': collection({ schema }) } })
    const post = (body: string) =>
      target!.send('POST', '/users', { fields: { 'Content-Type': 'application/json' }, body })
    expect((await post('{"account":9007199254740993}')).status).toBe(422)
    expect((await post('{"account":9007199254740992}')).status).toBe(201)
  })

  it('reads text of any length to find numbers in it', async () => {
    target = await startService({ resources: { '/users': collection() } })
    await target.send('POST', '/users', jsonOf({ a: 1 }))
    const text = '9007199254740993 '.repeat(200_000)
    const fields = { 'Content-Type': 'application/merge-patch+json' }
    const answer = await target.send('PATCH', '/users/1', { fields, body: JSON.stringify({ text, n: 1e22 }) })
    expect(answer.status).toBe(200)
  })
})
