import { afterEach, describe, expect, it } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { isResource } from '../../src/stores/rules.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { digestOf } from '../support/digests.ts'
import { jsonOf, MERGE_PATCH, multipartOf, type SendOptions, startService, type Target } from './support.ts'

const KEY = { 'Idempotency-Key': 'a-key-of-16-chars' }
const WANT = { 'Want-Repr-Digest': 'sha-256=5', 'Want-Content-Digest': 'sha-512=5' }

const targets: Target[] = []
afterEach(async () => {
  for (const target of targets.splice(0)) await target.close()
})

async function start(store?: ResourceStore): Promise<Target> {
  const resources = {
    '/users': collection({ idempotency: 'optional' }),
    '/sealed': collection({ idempotency: 'required', digests: 'required' }),
    '/notes': collection({ idempotency: 'optional', types: ['application/octet-stream'] }),
    '/photos': collection({ idempotency: 'optional', files: { photo: {} } }),
    '/docs/{name}': document({ idempotency: 'optional' }),
  }
  const target = await startService({ resources }, store)
  targets.push(target)
  return target
}

/** A store whose reads take time, as those of a database do: a small POST is then read before its record is looked for. */
function slowStore(): ResourceStore {
  const store = memoryStore()
  return { ...store, read: async (...values) => store.read(...values) }
}

const digests = (answer: Answer) => [answer.field('repr-digest'), answer.field('content-digest')]

describe('Idempotency-Key beside digest fields', () => {
  it.each<[string, string, string, SendOptions]>([
    ['a creation', 'POST', '/users', jsonOf({ name: 'Ann' }, { ...KEY, ...WANT })],
    ['a patch', 'PATCH', '/docs/a', { fields: { ...MERGE_PATCH, ...KEY, ...WANT }, body: '{"b":2}' }],
  ])('repeats the digests of the response to %s (RFC 9530 §4)', async (_, method, path, options) => {
    const { send } = await start()
    await send('PUT', '/docs/a', jsonOf({ a: 1 }))
    const first = await send(method, path, options)
    const second = await send(method, path, options)
    expect(digests(first)).toEqual([digestOf(first.body), expect.stringMatching(/^sha-512=:/)])
    expect(digests(second)).toEqual(digests(first))
    expect([second.field('idempotency-replayed'), second.field('cache-control')]).toEqual([
      '?1',
      'no-store, no-transform',
    ])
  })

  it('states the digests that a repetition wants, not those that the first request wanted', async () => {
    const { send } = await start()
    const create = (fields = {}) => send('POST', '/users', jsonOf({ name: 'Ann' }, { ...KEY, ...fields }))
    expect(digests(await create(WANT)).includes(undefined)).toBe(false)
    expect(digests(await create())).toEqual([undefined, undefined])
    const third = await create({ 'Want-Repr-Digest': 'sha-256=1' })
    expect(digests(third)).toEqual([digestOf(third.body), undefined])
  })

  it.each([
    ['at once', memoryStore],
    ['in time', slowStore],
  ])(
    'leaves a key free whose content was damaged, and refuses a damaged repetition, where the store answers %s: 400 (issue 20)',
    async (_, createStore) => {
      const target = await start(createStore())
      const large = Buffer.alloc(300_000, 7)
      const form = multipartOf([{ name: 'photo', filename: 'a', content: large }], KEY)
      const bytes = { fields: { 'Content-Type': 'application/octet-stream', ...KEY }, body: large }
      const requests: readonly (readonly [string, SendOptions])[] = [
        ['/users', jsonOf({ name: 'Ann' }, KEY)],
        ['/notes', bytes],
        ['/notes?chunked', { ...bytes, chunked: true }],
        ['/photos', form],
      ]
      for (const [path, options] of requests) {
        const post = (digest: string) =>
          target.send('POST', path, {
            ...options,
            fields: { ...(options.fields as Record<string, string>), 'Content-Digest': digest },
          })
        const statuses = [await post(digestOf('other')), await post(digestOf(options.body!))]
        expect([path, ...statuses.map(({ status }) => status)]).toEqual([path, 400, 201])
        const [damaged, repeated] = [await post(digestOf('other')), await post(digestOf(options.body!))]
        expect([path, damaged.status, repeated.status]).toEqual([path, 400, 201])
        expect(repeated.field('idempotency-replayed')).toBe('?1')
      }
      for (const [path, count] of [
        ['/users', 1],
        ['/notes', 2],
        ['/photos', 1],
      ] as const) {
        expect((await target.store.list(path, { limit: 5 })).items.filter(isResource)).toHaveLength(count)
      }
    },
  )

  it("asks for the digest before the key is looked up where digests are 'required'", async () => {
    const { send } = await start()
    const body = '{"name":"Ann"}'
    const post = (fields = {}) =>
      send('POST', '/sealed', { fields: { 'Content-Type': 'application/json', ...fields }, body })
    const digest = { 'Content-Digest': digestOf(body) }
    expect((await post(KEY)).json().type).toMatch(/digest-required$/)
    expect((await post(digest)).json().type).toMatch(/idempotency-key-required$/)
    expect((await post({ ...KEY, ...digest })).status).toBe(201)
    expect((await post(KEY)).status).toBe(400)
    expect((await post({ ...KEY, ...digest })).field('idempotency-replayed')).toBe('?1')
  })
})
