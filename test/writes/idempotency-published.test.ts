import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { jsonOf, MERGE_PATCH, startService, type Target } from './support.ts'

// The scenarios that other implementations publish for draft-ietf-httpapi-idempotency-key-header-07: idempot-js (I, its
// Gherkin features), hono-idempotency (H), universal-idempotent-request (U), node-idempotency (N). Each stands beside the
// section of the draft that it is about. What is about their interfaces (options, storage drivers, contexts) is left out.

let target: Target
let isBroken = false
beforeEach(async () => {
  isBroken = false
  const sound = memoryStore()
  const store: ResourceStore = {
    ...sound,
    create(path, content, options) {
      if (isBroken) throw new Error('The disk is gone.')
      return sound.create(path, content, options)
    },
  }
  const resources = {
    '/api': collection({ idempotency: 'required' }),
    '/other': collection({ idempotency: 'optional' }),
    '/docs/{name}': document({ idempotency: 'optional' }),
    '/notes': collection({ idempotency: 'required', types: ['text/plain'] }),
  }
  target = await startService({ resources, onError: () => {} }, store)
})
afterEach(() => target.close())

const ONE = 'abc123456789012345678'
const OTHER = 'key2-12345678901234567'
const post = (key: string | undefined, content: unknown = { foo: 'bar' }, path = '/api'): Promise<Answer> =>
  target.send('POST', path, jsonOf(content, key === undefined ? {} : { 'Idempotency-Key': key }))
const countOrders = async (): Promise<number> => (await target.store.list('/api', { limit: 9 })).items.length

function expectProblem(answer: Answer, status: number): void {
  expect([answer.status, answer.field('content-type')]).toEqual([status, 'application/problem+json'])
  expect(answer.json()).toMatchObject({
    type: expect.any(String),
    title: expect.any(String),
    detail: expect.any(String),
  })
}

describe('published scenarios of Idempotency-Key that follow from the draft', () => {
  it.each([
    [
      'is missing where it is required (I, H E5, U; §2.7: "the resource server SHOULD reply with an HTTP 400")',
      undefined,
    ],
    ['is empty (I; §2.1: "Its value MUST be a String")', ''],
    ['has 256 characters (I, H E6; §2.5: the server publishes what a key is)', 'k'.repeat(256)],
    ['has commas (I; §2.1: an Item, not a List)', 'key,with,commas,longer-than-twenty-chars'],
    ['is not a key by the rules of the server (U; §5: "Always validate the key")', 'invalid key'],
  ])('a key that %s: 400 with a problem document', async (_, key) => {
    expectProblem(await post(key), 400)
    expect(await countOrders()).toBe(0)
  })

  it.each([
    ['8e03978e-40d5-43e8-bc93-6894a57f9324', 'bare'],
    ['"8e03978e-40d5-43e8-bc93-6894a57f9324"', 'a String'],
  ])(
    'a valid key is accepted, and the request processed normally (I, U; §2.6 First time request): %s, %s',
    async (key) => {
      const answer = await post(key)
      expect([answer.status, answer.json()]).toEqual([201, { id: 1, foo: 'bar' }])
      expect(await countOrders()).toBe(1)
    },
  )

  it('a request without a key passes where none is required (H; §2.7: "requiring this header")', async () => {
    expect((await post(undefined, {}, '/other')).status).toBe(201)
  })

  it('a duplicate request gets the first result, and creates nothing (I, H E1 to E3, U, N; §2.6 Retry)', async () => {
    const first = await post(ONE)
    for (let i = 0; i < 3; i++) {
      const again = await post(ONE)
      expect([again.status, again.text, again.field('content-type'), again.field('etag')]).toEqual([
        first.status,
        first.text,
        first.field('content-type'),
        first.field('etag'),
      ])
    }
    expect(await countOrders()).toBe(1)
  })

  it('a key with another content: 422 with a problem document (I, H E8, U; §2.7)', async () => {
    await post(ONE)
    expectProblem(await post(ONE, { baz: 'qux' }), 422)
    expect(await countOrders()).toBe(1)
  })

  it('the same key at another target is another key (H; §5: a composite key)', async () => {
    expect((await post(ONE)).field('location')).toBe('/api/1')
    expect((await post(ONE, { foo: 'bar' }, '/other')).field('location')).toBe('/other/1')
  })

  it('GET, PUT and DELETE pass (I, H; §1: "OPTIONS, HEAD, GET, PUT and DELETE are idempotent")', async () => {
    const key = { 'Idempotency-Key': ONE }
    const statuses = [
      await target.send('PUT', '/docs/a', jsonOf({ foo: 'bar' }, key)),
      await target.send('PUT', '/docs/a', jsonOf({ foo: 'bar' }, key)),
      await target.send('GET', '/docs/a', { fields: key }),
      await target.send('DELETE', '/docs/a', { fields: key }),
    ].map(({ status }) => status)
    expect(statuses).toEqual([201, 204, 200, 204])
  })

  it('no content is content as well (I; §2.4: "Checksum of the entire request payload")', async () => {
    const fields = { 'Content-Type': 'text/plain', 'Idempotency-Key': ONE }
    const send = (body?: string) => target.send('POST', '/notes', { fields, ...(body !== undefined && { body }) })
    expect([(await send()).status, (await send()).field('idempotency-replayed')]).toEqual([201, '?1'])
    expect((await send('a')).status).toBe(422)
  })

  it('PATCH is protected (I, H; §1: "POST and PATCH are not")', async () => {
    await target.send('PUT', '/docs/a', jsonOf({ foo: 'bar' }))
    const patch = { fields: { ...MERGE_PATCH, 'Idempotency-Key': ONE }, body: '{"n":1}' }
    const answers = [await target.send('PATCH', '/docs/a', patch), await target.send('PATCH', '/docs/a', patch)]
    expect(answers.map((answer) => [answer.status, answer.field('idempotency-replayed')])).toEqual([
      [200, undefined],
      [200, '?1'],
    ])
  })

  it('a failed request leaves the key free (H; §2.7: "Clients MUST correct the requests")', async () => {
    isBroken = true
    expect((await post(ONE)).status).toBe(500)
    isBroken = false
    expect([(await post(ONE)).status, await countOrders()]).toEqual([201, 1])
  })
})

describe('published scenarios of Idempotency-Key that are answered in another way', () => {
  it('another key with the same content: 201, not 409 (I; §2.2 forbids one key for two contents, not two keys for one)', async () => {
    await post(ONE)
    expect((await post(OTHER)).field('location')).toBe('/api/2')
  })

  it('a concurrent request: the result of the first, not 409 (I, H E7, H E10, U; §2.6 asks for a conflict before the first has completed; here both complete by one atomic step)', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => post(ONE)))
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`))).toEqual(
      new Set(['201 {"id":1,"foo":"bar"}']),
    )
    expect(await countOrders()).toBe(1)
  })

  it('a repetition says so by Idempotency-Replayed: ?1 (I: X-Idempotent-Replayed: true, H E9: true; the draft has no such field)', async () => {
    await post(ONE)
    const again = await post(ONE)
    expect([again.field('idempotency-replayed'), again.field('x-idempotent-replayed')]).toEqual(['?1', undefined])
  })

  it('an unexpected error is not repeated (U stores it; §2.6: "success or an error"; it has changed nothing)', async () => {
    isBroken = true
    expect((await post(ONE)).status).toBe(500)
    const again = await post(ONE)
    expect([again.status, again.field('idempotency-replayed')]).toEqual([500, undefined])
  })

  it('a problem is named by its type, without a link to the draft (I; §2.7: "a link pointing to relevant documentation" is of the service, set by formatError)', async () => {
    const missing = await post(undefined)
    expect(missing.json().type).toMatch(/:idempotency-key-required$/)
    await post(ONE)
    expect((await post(ONE, { baz: 'qux' })).json().type).toMatch(/:idempotency-key-reused$/)
  })
})
