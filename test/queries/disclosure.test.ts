import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { type Served, serve } from '../service/serve.ts'
import { JSON_TYPE, linkOf } from './tasks.ts'

const FORM = 'Content-Type: application/x-www-form-urlencoded'
const MERGE = 'Content-Type: application/merge-patch+json'
const JSON_PATCH = 'Content-Type: application/json-patch+json'
const EVE = 'X-User: eve'

/** Serves notes of the user whom the request names, and makes one that is hidden from eve, between two of hers. */
async function serveSecret(secret: object, store: ResourceStore = memoryStore()): Promise<Served> {
  const served = await serve(store, {
    resources: {
      '/notes': collection({
        query: { text: 'string', level: 'number', at: 'date-time' },
        scope: ({ headers }) => ({ owner: headers['x-user'] as string }),
        count: true,
        idempotency: 'optional',
        deletion: 'soft',
        clientIds: true,
        pageSize: { default: 2, max: 3 },
      }),
    },
  })
  const post = (user: string, note: object) =>
    served.send('POST', '/notes', [JSON_TYPE, `X-User: ${user}`], JSON.stringify(note))
  await post('eve', { text: 'm', level: 50, at: '2026-06-01T00:00:00Z' })
  expect((await post('ada', secret)).status).toBe(201)
  await post('eve', { text: 'n', level: 51 })
  return served
}

/** What eve learns. Tags are numbered by their first appearance: a store draws the versions in them. */
async function attack({ send }: Served): Promise<readonly string[]> {
  const tags = new Map<string, string>()
  const learned: string[] = []
  const nameTag = (tag: string): string => tags.get(tag) ?? tags.set(tag, `"tag ${tags.size}"`).get(tag)!
  const ask: Served['send'] = async (method, target, fields = [], body) => {
    const answer = await send(method, target, [EVE, ...fields], body)
    const shown = answer.fields
      .filter(([name]) => name !== 'date' && name !== 'last-modified')
      .map(([name, value]) => [name, name === 'etag' ? nameTag(value) : value])
    learned.push(JSON.stringify([method, target, body, answer.status, shown, answer.text]))
    return answer
  }

  // By bisection over filters, orders, counts and tags.
  for (const [property, low, high] of [
    ['level', 0, 100],
    ['level', 45, 55],
  ] as const) {
    for (let [from, to] = [low, high] as [number, number]; to - from > 1; ) {
      const middle = Math.floor((from + to) / 2)
      const list = await ask('GET', `/notes?${property}[gte]=${middle}&count=true`)
      await ask('HEAD', `/notes?${property}[lt]=${middle}&sort=-${property}`)
      await ask('QUERY', '/notes', [FORM], `${property}[ne]=${middle}&count=true`)
      await ask('GET', `/notes?${property}[gte]=${middle}`, [`If-None-Match: ${list.field('ETag')}`])
      if (list.field('X-Total-Count') === '0') to = middle
      else from = middle
    }
  }
  for (const letter of 'abmnz') {
    await ask('GET', `/notes?text[prefix]=${letter}&count=true`)
    await ask('GET', `/notes?text[gt]=${letter}&sort=text&limit=1`)
    await ask('GET', `/notes?at[lt]=2026-0${letter.charCodeAt(0) % 9 || 1}-01T00:00:00Z&sort=at,-text`)
  }
  await ask('GET', '/notes?owner=ada')
  await ask('GET', '/notes?deleted=true&count=true')

  // By cursors, also such as the service has not made.
  const first = await ask('GET', '/notes?sort=level&limit=1')
  const cursor = new URL(linkOf(first.field('Link'), 'next')!, 'http://demo.test').searchParams.get('after')!
  const binding = Buffer.from(cursor, 'base64url').subarray(0, 12)
  for (const position of ['0 1', '49 1', '50 2', '51 0', 'null 2', '"x 2', '1e300 2']) {
    const forged = Buffer.concat([binding, Buffer.from(position.replace(' ', '\0'))]).toString('base64url')
    await ask('GET', `/notes?sort=level&limit=1&count=true&after=${forged}`)
  }
  const key = JSON.stringify([[{ property: '/owner', operator: 'in', values: ['ada'] }], [], false])
  const other = createHash('sha256').update(key).digest().subarray(0, 12)
  await ask('GET', `/notes?after=${Buffer.concat([other, Buffer.from('0')]).toString('base64url')}`)

  // By what single requests tell of the item.
  for (const [method, fields, body] of [
    ['GET', []],
    ['GET', ['If-None-Match: *']],
    ['GET', ['If-Match: *']],
    ['GET', ['Range: bytes=0-0']],
    ['GET', ['Want-Repr-Digest: sha-256=1']],
    ['HEAD', []],
    ['PATCH', [JSON_PATCH], '[{"op":"test","path":"/level","value":20}]'],
    ['PATCH', [JSON_PATCH], '[{"op":"test","path":"/level","value":80}]'],
    ['PATCH', [MERGE], '{"level":1}'],
    ['PATCH', [MERGE, 'Idempotency-Key: "0123456789abcdef"'], '{"level":1}'],
    ['PUT', [JSON_TYPE, 'If-Match: *'], '{"level":1}'],
    ['PUT', [JSON_TYPE, 'If-None-Match: *'], '{"level":1}'],
    ['PUT', [JSON_TYPE], '{"level":1}'],
    ['DELETE', ['If-Match: "x"']],
    ['DELETE', []],
  ] as const) {
    await ask(method, '/notes/2', fields, body)
    await ask(method, '/notes/2?deleted=true', fields, body)
  }
  await ask('POST', '/notes', [JSON_TYPE, 'If-Match: *'], '{"level":1}')
  await ask('POST', '/notes', [JSON_TYPE, 'Idempotency-Key: "0123456789abcdef"'], '{"level":1}')
  await ask('GET', '/notes?count=true')
  return learned
}

describe('what a caller can find out about an item that is out of scope', () => {
  it('is nothing: every answer is the same, whatever the item says and whether it is deleted', async () => {
    const worlds = [
      { text: 'a', level: 20, at: '2026-02-01T00:00:00Z' },
      { text: 'zzz', level: 80, at: '2026-09-01T00:00:00Z', more: 'x'.repeat(1000) },
      {},
    ]
    const [first, ...others] = await Promise.all(worlds.map(async (secret) => attack(await serveSecret(secret))))
    expect(first!.length).toBeGreaterThan(90)
    for (const other of others) expect(other).toEqual(first)
    const removed = await serveSecret(worlds[0]!)
    expect((await removed.send('DELETE', '/notes/2', ['X-User: ada'])).status).toBe(204)
    expect(await attack(removed)).toEqual(first)
  })

  it('takes as many calls of the store as for an item that never existed', async () => {
    const store = memoryStore()
    const calls: string[] = []
    const counted: ResourceStore = {
      ...store,
      read: (path, options) => {
        calls.push(`read ${JSON.stringify({ ...options, signal: undefined })}`)
        return store.read(path, options)
      },
      write: (path, content, options) => {
        calls.push('write')
        return store.write(path, content, options)
      },
    }
    const { send } = await serveSecret({ text: 'a' }, counted)
    for (const [method, fields, body] of [
      ['GET', []],
      ['HEAD', []],
      ['GET', ['If-None-Match: "x"']],
      ['DELETE', []],
      ['PATCH', [MERGE], '{}'],
      ['PATCH', [JSON_PATCH], '[{"op":"test","path":"/text","value":"a"}]'],
    ] as const) {
      const made = async (path: string): Promise<readonly string[]> => {
        calls.length = 0
        await send(method, path, [EVE, ...fields], body)
        return [...calls]
      }
      const hidden = await made('/notes/2')
      expect(hidden.length).toBeGreaterThan(0)
      expect([method, hidden]).toEqual([method, await made('/notes/99')])
    }
  })
})
