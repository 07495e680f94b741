import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { isResource } from '../../src/stores/rules.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { listRecords } from '../support/list-records.ts'
import { sqliteLibraries } from '../support/sqlite.ts'
import {
  JSON_PATCH,
  jsonOf,
  MERGE_PATCH,
  multipartOf,
  type SendOptions,
  startService,
  type Target,
  USER,
} from './support.ts'

const KEY = 'a-key-of-16-chars'
const keyed = (key = KEY): Readonly<Record<string, string>> => ({ 'Idempotency-Key': key })

const targets: Target[] = []
afterEach(async () => {
  for (const target of targets.splice(0)) await target.close()
})

async function start(options: ServiceOptions = {}, store?: ResourceStore): Promise<Target> {
  const resources = {
    '/users': collection({ idempotency: 'optional' }),
    '/orders': collection({ idempotency: 'required' }),
    '/secrets': collection({ idempotency: 'optional', ids: 'uuid' }),
    '/plain': collection(),
    '/notes': collection({ idempotency: 'optional', types: ['text/plain', 'application/octet-stream'] }),
    '/photos': collection({ idempotency: 'optional', files: { photo: {} } }),
    '/jobs': collection({ idempotency: 'optional', create: 'accepted', process: () => ({ done: 1 }) }),
    '/docs/{name}': document({ idempotency: 'optional' }),
  }
  const target = await startService({ resources, ...options }, store)
  targets.push(target)
  return target
}

/** Everything of an answer that its repetition has as well. */
const repeated = ({ status, fields, text }: Answer) => ({
  status,
  text,
  fields: fields.filter(([name]) => !['date', 'cache-control', 'idempotency-replayed'].includes(name)).sort(),
})

async function countOf({ send }: Target, path: string): Promise<number> {
  return (await send('GET', path)).json().length
}

function expectReplay(first: Answer, second: Answer): void {
  expect(first.field('idempotency-replayed')).toBeUndefined()
  expect(second.field('idempotency-replayed')).toBe('?1')
  expect(second.field('cache-control')).toBe('no-store')
  expect(repeated(second)).toEqual(repeated(first))
}

describe('Idempotency-Key', () => {
  const sends: readonly (readonly [string, string, string, () => SendOptions, number])[] = [
    ['JSON', 'POST', '/users', () => jsonOf(USER, keyed()), 201],
    ['JSON with return=minimal', 'POST', '/users', () => jsonOf(USER, { ...keyed(), Prefer: 'return=minimal' }), 201],
    ['JSON beyond ASCII', 'POST', '/users', () => jsonOf({ name: 'Zoë 🜂' }, keyed()), 201],
    ['JSON for a random name', 'POST', '/secrets', () => jsonOf(USER, keyed()), 201],
    [
      'a form',
      'POST',
      '/users',
      () => ({ fields: { ...keyed(), 'Content-Type': 'application/x-www-form-urlencoded' }, body: 'name=Ann' }),
      201,
    ],
    ['text', 'POST', '/notes', () => ({ fields: { ...keyed(), 'Content-Type': 'text/plain' }, body: 'hello' }), 201],
    ['no content', 'POST', '/notes', () => ({ fields: { ...keyed(), 'Content-Type': 'text/plain' } }), 201],
    [
      'streamed content',
      'POST',
      '/notes',
      () => ({
        fields: { ...keyed(), 'Content-Type': 'application/octet-stream' },
        body: Buffer.alloc(300_000, 7),
        chunked: true,
      }),
      201,
    ],
    [
      'large content',
      'POST',
      '/notes',
      () => ({ fields: { ...keyed(), 'Content-Type': 'application/octet-stream' }, body: Buffer.alloc(300_000, 7) }),
      201,
    ],
    [
      'multipart',
      'POST',
      '/photos',
      () =>
        multipartOf(
          [
            { name: 'title', content: 'A' },
            { name: 'photo', filename: 'a.png', type: 'image/png', content: 'png' },
          ],
          keyed(),
        ),
      201,
    ],
    ['accepted work', 'POST', '/jobs', () => jsonOf({ a: 1 }, keyed()), 202],
    ['a merge patch', 'PATCH', '/docs/d', () => ({ fields: { ...MERGE_PATCH, ...keyed() }, body: '{"b":2}' }), 200],
    [
      'a JSON Patch',
      'PATCH',
      '/docs/d',
      () => ({ fields: { ...JSON_PATCH, ...keyed() }, body: '[{"op":"add","path":"/list/-","value":1}]' }),
      200,
    ],
    [
      'a patch that changes nothing',
      'PATCH',
      '/docs/d',
      () => ({ fields: { ...MERGE_PATCH, ...keyed() }, body: '{"a":1}' }),
      204,
    ],
  ]

  it.each(sends)(
    'does a %s request once and answers its repetition byte for byte (issue 20, points 6 and 8)',
    async (_, method, path, options, status) => {
      const target = await start()
      await target.send('PUT', '/docs/d', jsonOf({ a: 1, list: [] }))
      const first = await target.send(method, path, options())
      expect(first.status).toBe(status)
      const second = await target.send(method, path, options())
      expectReplay(first, second)
      if (method === 'POST') expect(await countOf(target, path)).toBe(1)
      else {
        const { list } = (await target.send('GET', '/docs/d')).json()
        expect(list.length).toBeLessThan(2)
      }
      const tag = first.field('etag')
      if (tag !== undefined && status !== 202) {
        const place = first.field('content-location') ?? first.field('location') ?? path
        expect((await target.send('GET', place)).field('etag')).toBe(tag)
      }
    },
  )

  it.each([
    ['empty', ''],
    ['a list', `"${KEY}", "b"`],
    ['more than 255 characters', 'k'.repeat(256)],
    ['a character that is not visible', 'a key of 16 chars'],
    ['shorter than 16 characters, without a principal', 'k'.repeat(15)],
  ])('is refused when it is %s: 400 (issue 20, points 1 and 2)', async (_, key) => {
    const target = await start()
    const answer = await target.send('POST', '/users', jsonOf(USER, keyed(key)))
    expect([answer.status, answer.json().type]).toEqual([400, expect.stringMatching(/malformed-field$/)])
    expect(await countOf(target, '/users')).toBe(0)
  })

  it.each(['"', ',', ';', '\\'])('says that it cannot have %s: 400 (RFC 9457 §3.1.4)', async (character) => {
    const { send } = await start()
    const answer = await send('POST', '/users', jsonOf(USER, keyed(`${KEY}${character}`)))
    expect([answer.status, answer.json().detail]).toEqual([400, expect.stringContaining(` ${character}`)])
  })

  it('is refused in two field lines: 400 (issue 20, point 1)', async () => {
    const { send } = await start()
    const fields = [
      ['Content-Type', 'application/json'],
      ['Idempotency-Key', KEY],
      ['Idempotency-Key', KEY],
    ] as const
    expect((await send('POST', '/users', { fields, body: '{}' })).status).toBe(400)
  })

  it('is the same with quotes and without (issue 20, point 1)', async () => {
    const { send } = await start()
    const first = await send('POST', '/users', jsonOf(USER, keyed(`"${KEY}"`)))
    expectReplay(first, await send('POST', '/users', jsonOf(USER, keyed(KEY))))
  })

  it('is demanded where a definition requires it: 400 (draft §2.7)', async () => {
    const target = await start()
    const missing = await target.send('POST', '/orders', jsonOf(USER))
    expect([missing.status, missing.json().type]).toEqual([400, expect.stringMatching(/idempotency-key-required$/)])
    expect((await target.send('POST', '/orders', jsonOf(USER, keyed()))).status).toBe(201)
    const patch = { fields: { ...MERGE_PATCH }, body: '{"b":1}' }
    const unprotected = await target.send('PATCH', '/orders/1', patch)
    expect([unprotected.status, unprotected.json().detail]).toEqual([400, expect.stringContaining('or If-Match')])
    const patchIf = async (tag: string): Promise<number> =>
      (await target.send('PATCH', '/orders/1', { ...patch, fields: { ...MERGE_PATCH, 'If-Match': tag } })).status
    expect(await patchIf('*')).toBe(400)
    expect(await patchIf((await target.send('GET', '/orders/1')).field('etag')!)).toBe(200)
    expect((await target.send('PUT', '/orders/1', jsonOf({ id: 1 }))).status).toBe(204)
  })

  it('is refused for another patch, of a document and of an item (issue 20)', async () => {
    const { send } = await start()
    await send('PUT', '/docs/d', jsonOf({ a: 1 }))
    await send('POST', '/users', jsonOf(USER))
    for (const path of ['/docs/d', '/users/1']) {
      const patch = (body: string) => send('PATCH', path, { fields: { ...MERGE_PATCH, ...keyed() }, body })
      expect((await patch('{"name":"Ada"}')).status).toBe(200)
      expect((await patch('{"name":"Grace"}')).status).toBe(422)
    }
  })

  it('lets a patch take effect once that If-Match: * does not protect', async () => {
    const { send } = await start()
    await send('PUT', '/docs/d', jsonOf({ list: [] }))
    const patch = jsonOf([{ op: 'add', path: '/list/-', value: 1 }], { ...JSON_PATCH, ...keyed(), 'If-Match': '*' })
    const first = await send('PATCH', '/docs/d', patch)
    expectReplay(first, await send('PATCH', '/docs/d', patch))
    expect((await send('GET', '/docs/d')).json()).toEqual({ list: [1] })
  })

  it('is ignored by other methods, by a PATCH with a tag in If-Match and without the option (issue 20)', async () => {
    const target = await start()
    for (let i = 0; i < 2; i++) {
      expect((await target.send('POST', '/plain', jsonOf(USER, keyed('a,b')))).field('location')).toBe(
        `/plain/${i + 1}`,
      )
      expect(
        (await target.send('PUT', '/docs/d', jsonOf({ i }, keyed('')))).field('idempotency-replayed'),
      ).toBeUndefined()
      const tag = (await target.send('GET', '/docs/d')).field('etag')!
      const patch = { fields: { ...MERGE_PATCH, ...keyed(), 'If-Match': tag }, body: '{"a":1}' }
      const patched = await target.send('PATCH', '/docs/d', patch)
      expect([patched.status, patched.field('idempotency-replayed')]).toEqual([200, undefined])
    }
  })

  it('is tied to the principal, the method and the target with its query (issue 20, point 2)', async () => {
    const accounts = { ann: 'secret', bob: 'secret' }
    const { send } = await start({ auth: { schemes: [basic({ realm: 'r', accounts })] } })
    const by = (name: string) => ({ Authorization: `Basic ${Buffer.from(`${name}:secret`).toString('base64')}` })
    const create = (name: string, path: string) => send('POST', path, jsonOf(USER, { ...keyed('short'), ...by(name) }))
    const locations = [
      await create('ann', '/users'),
      await create('ann', '/users?a=1'),
      await create('bob', '/users'),
      await create('ann', '/orders'),
    ].map((answer) => answer.field('location'))
    expect(locations).toEqual(['/users/1', '/users/2', '/users/3', '/orders/1'])
    expect((await create('ann', '/users')).field('location')).toBe('/users/1')
    expect((await send('POST', '/users', jsonOf(USER, keyed('short')))).status).toBe(401)
  })

  const others: readonly (readonly [string, SendOptions])[] = [
    ['other content', jsonOf({ ...USER, name: 'Bob' }, keyed())],
    [
      'another Content-Type',
      { ...jsonOf(USER, keyed()), fields: { 'Content-Type': 'application/json; charset=utf-8', ...keyed() } },
    ],
    [
      'a Content-Encoding',
      {
        fields: { ...jsonOf(USER).fields, ...keyed(), 'Content-Encoding': 'gzip' },
        body: gzipSync(JSON.stringify(USER)),
      },
    ],
    ['another form of the same value', { ...jsonOf(USER, keyed()), body: JSON.stringify(USER, null, 1) }],
  ]

  it.each(others)('refuses %s under the same key: 422 (issue 20, point 3)', async (_, other) => {
    const target = await start({ contentCodings: ['gzip'] })
    await target.send('POST', '/users', jsonOf(USER, keyed()))
    const answer = await target.send('POST', '/users', other)
    expect([answer.status, answer.json().type]).toEqual([422, expect.stringMatching(/idempotency-key-reused$/)])
    expect(await countOf(target, '/users')).toBe(1)
  })

  it('refuses the same bytes without their coding: 422 (issue 20, point 3)', async () => {
    const target = await start({ contentCodings: ['gzip'] })
    const body = gzipSync('text')
    const fields = { 'Content-Type': 'application/octet-stream', ...keyed() }
    const coded = await target.send('POST', '/notes', { fields: { ...fields, 'Content-Encoding': 'gzip' }, body })
    const plain = await target.send('POST', '/notes', { fields, body })
    expect([coded.status, plain.status]).toEqual([201, 422])
  })

  it('repeats coded content by its coded bytes (issue 20, point 3)', async () => {
    const target = await start({ contentCodings: ['gzip'] })
    const options = {
      fields: { ...jsonOf(USER).fields, ...keyed(), 'Content-Encoding': 'gzip' },
      body: gzipSync(JSON.stringify(USER)),
    }
    expectReplay(await target.send('POST', '/users', options), await target.send('POST', '/users', options))
  })

  it('repeats coded content that is larger than what it stands for, which is at the limit', async () => {
    const content = JSON.stringify(USER)
    const body = gzipSync(content, { level: 0 })
    expect(body.length).toBeGreaterThan(content.length)
    const target = await start({ contentCodings: ['gzip'], limits: { bodySize: content.length } })
    const options = { fields: { ...jsonOf(USER).fields, ...keyed(), 'Content-Encoding': 'gzip' }, body, chunked: true }
    expectReplay(await target.send('POST', '/users', options), await target.send('POST', '/users', options))
  })

  it('knows a form again by its parts, never by the boundary (issue 20, points 3 and 9)', async () => {
    const target = await start()
    const form = (
      boundary: string,
      photo: string | Buffer,
      filename = 'a.png',
      chunked = false,
      change: (head: string) => string = (head) => head,
    ): SendOptions => ({
      fields: { 'Content-Type': `multipart/form-data; boundary=${boundary}`, ...keyed() },
      body: Buffer.concat([
        Buffer.from(
          change(
            `--${boundary}\r\nContent-Disposition: form-data; name="title"\r\n\r\nA\r\n--${boundary}\r\nContent-Disposition: form-data; name="photo"; filename="${filename}"\r\nContent-Type: image/png\r\n\r\n`,
          ),
        ),
        Buffer.from(photo),
        Buffer.from(`\r\n--${boundary}--\r\n`),
      ]),
      chunked,
    })
    for (const [key, photo] of [
      ['small', 'png'],
      ['large', Buffer.alloc(400_000, 3)],
    ] as const) {
      const fields = (options: SendOptions) => ({
        ...options,
        fields: { ...options.fields, ...keyed(`${KEY}-${key}`) },
      })
      const first = await target.send('POST', '/photos', fields(form('one', photo)))
      expect(first.status).toBe(201)
      expectReplay(first, await target.send('POST', '/photos', fields(form('two', photo))))
      expectReplay(first, await target.send('POST', '/photos', fields(form('three', photo, 'a.png', true))))
      const other = Buffer.from(photo)
      other[0]! ^= 1
      const changedHeads = [
        ['"title"', '"note"'],
        ['\r\nA\r\n', '\r\nB\r\n'],
        ['"photo"', '"image"'],
        ['image/png', 'image/gif'],
      ].map(([from, to]) => form('one', photo, 'a.png', false, (head) => head.replace(from!, to!)))
      for (const changed of [form('one', other), form('one', photo, 'b.png'), ...changedHeads]) {
        expect((await target.send('POST', '/photos', fields(changed))).status).toBe(422)
      }
    }
    expect(await countOf(target, '/photos')).toBe(2)
  })

  it('gives back the first answer with its old tag when the item has changed or is gone (issue 20, points 4 and 6)', async () => {
    const { send } = await start()
    const create = () => send('POST', '/users', jsonOf(USER, keyed()))
    const first = await create()
    await send('PUT', '/users/1', jsonOf({ ...USER, name: 'Bob' }))
    expectReplay(first, await create())
    await send('DELETE', '/users/1')
    expectReplay(first, await create())
    const patch = () =>
      send('PATCH', '/docs/d', {
        fields: { ...JSON_PATCH, ...keyed() },
        body: '[{"op":"test","path":"/n","value":1},{"op":"replace","path":"/n","value":2}]',
      })
    await send('PUT', '/docs/d', jsonOf({ n: 1 }))
    const patched = await patch()
    expect(patched.json()).toEqual({ n: 2 })
    expectReplay(patched, await patch())
    await send('DELETE', '/docs/d')
    expectReplay(patched, await patch())
  })

  it('is not judged by conditions when it is a repetition (issue 20, point 4)', async () => {
    const { send } = await start()
    const tag = (await send('GET', '/users')).field('etag')!
    const create = () => send('POST', '/users', jsonOf(USER, { ...keyed(), 'If-Match': tag }))
    const first = await create()
    expect(first.status).toBe(201)
    expectReplay(first, await create())
    expect((await send('POST', '/users', jsonOf(USER, { 'If-Match': tag }))).status).toBe(412)
  })

  it('is refused to those who would be refused now (issue 20, point 4)', async () => {
    let isAllowed = true
    const authorize = () => isAllowed
    const { send } = await start({ resources: { '/users': collection({ idempotency: 'optional', authorize }) } })
    await send('POST', '/users', jsonOf(USER, keyed()))
    isAllowed = false
    expect((await send('POST', '/users', jsonOf(USER, keyed()))).status).toBe(403)
    expect(
      (await send('POST', '/users', { fields: { 'Content-Type': 'image/png', ...keyed() }, body: 'x' })).status,
    ).toBe(403)
    isAllowed = true
    expect(
      (await send('POST', '/users', { fields: { 'Content-Type': 'image/png', ...keyed() }, body: 'x' })).status,
    ).toBe(415)
  })

  it('answers all who race for a key with the answer of the winner, and those with other content 422 (issue 20, point 5)', async () => {
    const target = await start()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        target.send('POST', '/users', jsonOf({ name: i % 4 === 3 ? 'Bob' : 'Ann' }, keyed())),
      ),
    )
    expect(await countOf(target, '/users')).toBe(1)
    const winner = (await target.send('GET', '/users/1')).json().name
    const good = answers.filter(({ status }) => status === 201)
    expect(good.length).toBe(winner === 'Bob' ? 5 : 15)
    expect(new Set(good.map(({ text }) => text)).size).toBe(1)
    expect(answers.filter(({ status }) => status === 422).length).toBe(20 - good.length)
    expect(answers.filter((answer) => answer.field('idempotency-replayed') === '?1').length).toBe(good.length - 1)
  })

  it('answers patches that race for a key alike, although the first makes the others impossible (issue 20, point 5)', async () => {
    const { send } = await start()
    await send('PUT', '/docs/d', jsonOf({ n: 1 }))
    const body = '[{"op":"test","path":"/n","value":1},{"op":"replace","path":"/n","value":2}]'
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => send('PATCH', '/docs/d', { fields: { ...JSON_PATCH, ...keyed() }, body })),
    )
    expect(answers.map(({ status, text }) => `${status} ${text}`)).toEqual(new Array(12).fill('200 {"n":2}'))
  })

  const openSqlite = () => sqliteStore(sqliteLibraries['libsql']!(':memory:'))

  it.each([
    ['64 KiB of content', 65_536, 201, true, memoryStore],
    ['64 KiB of content, whose record the store keeps in pieces,', 65_536, 201, true, openSqlite],
    ['one byte more', 65_537, 201, false, memoryStore],
  ])('repeats %s as it was first answered (issue 20, point 6)', async (_, size, status, hasContent, open) => {
    const { send } = await start({}, open())
    const value = { name: '' }
    value.name = 'x'.repeat(size - JSON.stringify({ id: 1, ...value }).length)
    const first = await send('POST', '/users', jsonOf(value, keyed()))
    expect([first.status, first.field('location'), first.body.length]).toEqual([
      status,
      '/users/1',
      hasContent ? size : 0,
    ])
    expectReplay(first, await send('POST', '/users', jsonOf(value, keyed())))
    await send('PUT', '/docs/d', jsonOf({ ...value, id: 2 }))
    const patch = () => send('PATCH', '/docs/d', { fields: { ...MERGE_PATCH, ...keyed() }, body: '{"id":3}' })
    const patched = await patch()
    expect([patched.status, patched.body.length]).toEqual(hasContent ? [200, size] : [204, 0])
    expectReplay(patched, await patch())
    // RFC 7240 §3: the field names what has been honoured.
    const preferring = { ...keyed('another-key-of-it'), Prefer: 'return=representation' }
    const preferred = await send('POST', '/users', jsonOf(value, preferring))
    expect(preferred.field('preference-applied')).toBe(hasContent ? 'return=representation' : undefined)
  })

  const refusals: readonly (readonly [number, string, string, { body?: string; fields?: Record<string, string> }])[] = [
    [400, 'POST', '/users', { body: '{' }],
    [404, 'PATCH', '/docs/none', { fields: MERGE_PATCH, body: '{}' }],
    [409, 'PATCH', '/docs/d', { fields: JSON_PATCH, body: '[{"op":"test","path":"/a","value":2}]' }],
    [412, 'POST', '/users', { fields: { 'If-Match': '"none"' } }],
    [413, 'POST', '/users', { body: JSON.stringify({ a: 'x'.repeat(2000) }) }],
    [415, 'POST', '/users', { fields: { 'Content-Type': 'image/png' } }],
    [422, 'POST', '/users', { body: '{"id":5}' }],
  ]

  it.each(refusals)(
    'keeps nothing of a request that is refused with %i: the key may come again, corrected (issue 20, point 7)',
    async (status, method, path, options) => {
      const target = await start({ limits: { bodySize: 1000 } }, listRecords(memoryStore()))
      await target.send('PUT', '/docs/d', jsonOf({ a: 1 }))
      const bad = {
        body: JSON.stringify(USER),
        ...options,
        fields: { ...jsonOf(1).fields, ...keyed(), ...options.fields },
      }
      expect((await target.send(method, path, bad)).status).toBe(status)
      expect((await target.store.list('idempotency', { limit: 5 })).items).toEqual([])
      const good =
        method === 'POST' ? jsonOf(USER, keyed()) : { fields: { ...MERGE_PATCH, ...keyed() }, body: '{"b":1}' }
      const answer = await target.send(method, method === 'POST' ? path : '/docs/d', good)
      expect([answer.status, answer.field('idempotency-replayed')]).toEqual([method === 'POST' ? 201 : 200, undefined])
    },
  )

  it('is allowed to scripts of other origins, and so is the sight of a repetition (issue 20, point 8)', async () => {
    const origin = 'https://app.test'
    const { send } = await start({ cors: { origins: origin } })
    const preflight = {
      fields: {
        Origin: origin,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'content-type,idempotency-key',
      },
    }
    expect((await send('OPTIONS', '/users', preflight)).field('access-control-allow-headers')).toContain(
      'Idempotency-Key',
    )
    const answer = await send('POST', '/users', jsonOf(USER, { ...keyed(), Origin: origin }))
    expect(answer.field('access-control-expose-headers')).toContain('Idempotency-Replayed')
    const without = await start({ cors: { origins: origin }, resources: { '/a': collection() } })
    expect(
      (await without.send('GET', '/a', { fields: { Origin: origin } })).field('access-control-expose-headers'),
    ).not.toContain('Idempotency')
  })

  it('gives up what a repetition has staged (issue 20, point 9)', async () => {
    const sound = memoryStore()
    let staged = 0
    let goOn = (): void => {}
    const areStaged = new Promise<void>((resolve) => {
      goOn = resolve
    })
    const store: ResourceStore = {
      ...sound,
      async stage(body, options) {
        const content = await sound.stage!(body, options)
        // None is stored before all are here: a repetition that finds the record at once stages nothing.
        if (++staged === 5) goOn()
        await areStaged
        return { ...content, discard: () => void staged-- }
      },
      create: (collection, content, options) => {
        const own = content as { body: unknown }
        return sound.create(
          collection,
          { contentType: 'text/plain', body: typeof own.body === 'object' ? 'staged' : 'small' },
          options,
        )
      },
    }
    const { send } = await start({}, store)
    const body = Buffer.alloc(200_000, 1)
    const all = await Promise.all(
      Array.from({ length: 5 }, () =>
        send('POST', '/notes', { fields: { ...keyed(), 'Content-Type': 'application/octet-stream' }, body }),
      ),
    )
    expect(new Set(all.map((answer) => answer.field('location'))).size).toBe(1)
    expect(staged).toBe(1)
  })

  it('is forgotten after its retention, and swept; the same key then creates anew (issue 20, point 10)', async () => {
    let time = Date.now()
    const resources = { '/users': collection({ idempotency: 'optional', idempotencyRetention: 5000 }) }
    const target = await start({ now: () => time, resources }, listRecords(memoryStore()))
    const create = async () => (await target.send('POST', '/users', jsonOf(USER, keyed()))).field('location')
    expect([await create(), await create()]).toEqual(['/users/1', '/users/1'])
    time += 4999
    expect(await create()).toBe('/users/1')
    time += 1
    expect([await create(), await create()]).toEqual(['/users/2', '/users/2'])
    time += 5000
    await expect.poll(async () => (await target.store.list('idempotency', { limit: 5 })).items.length).toBe(0)
  })

  it('is swept in turns of bounded size, also of records that a store keeps in pieces (issue 20, point 10)', async () => {
    const store = memoryStore()
    const record = (expires: number | null) => `{"expires":${expires},"fingerprint":"x","status":201,"headers":[]}\n`
    async function* stream(text: string) {
      yield Buffer.from(text)
    }
    for (let i = 0; i < 700; i++) {
      const body = record(i < 600 ? 1 : i < 650 ? Date.now() + 60_000 : null)
      await store.write(
        `idempotency/${createHash('md5').update(`${i}`).digest('hex')}`,
        { contentType: 'text/plain', body: i % 2 ? stream(body) : body },
        { expect: 'any' },
      )
    }
    const pages: number[] = []
    const target = await start(
      {},
      {
        ...store,
        list(path, options) {
          if (path === 'idempotency') pages.push(options.limit)
          return store.list(path, options)
        },
      },
    )
    // Not before the first request: some runtimes allow no timer where a service is constructed.
    expect(pages).toEqual([])
    expect((await target.send('GET', '/plain')).status).toBe(200)
    await expect.poll(async () => (await store.list('idempotency', { limit: 999 })).items.length).toBe(100)
    expect(Math.max(...pages)).toBeLessThan(100)
  })

  it('is not swept where its record was made anew after the sweep had listed the expired one', async () => {
    const store = memoryStore()
    const record = (expires: number) => ({
      contentType: 'text/plain',
      body: `{"expires":${expires},"fingerprint":"x","status":201,"headers":[]}\n`,
    })
    const path = 'idempotency/key'
    await store.write(path, record(1), { expect: 'any' })
    const outcomes: string[] = []
    const target = await start(
      {},
      {
        ...store,
        async remove(removed, options) {
          await store.write(removed, record(Date.now() + 60_000), { expect: 'any' })
          const result = await store.remove(removed, options)
          outcomes.push(result.outcome)
          return result
        },
      },
    )
    await target.send('GET', '/plain')
    await expect.poll(() => outcomes).toEqual(['conflict'])
    expect(await store.read(path)).toMatchObject({ path })
  })

  it('creates anew where the record expired, and repeats, on a store whose reads take time (issue 20, point 10)', async () => {
    let time = Date.now()
    const sound = memoryStore()
    const reads: string[] = []
    const read: ResourceStore['read'] = async (path, options) => {
      reads.push(path)
      return sound.read(path, options)
    }
    const slow: ResourceStore = { ...sound, read }
    const definition = collection({ idempotency: 'optional', idempotencyRetention: 3_600_000 })
    const target = await start({ now: () => time, resources: { '/users': definition } }, slow)
    const create = (name = 'Ann') => target.send('POST', '/users', jsonOf({ name }, keyed()))
    const first = await create()
    expectReplay(first, await create())
    expectReplay(first, await create())
    expect((await create('Bob')).status).toBe(422)
    // Once it is known that reads take time, the write alone looks for a record.
    reads.length = 0
    expect(
      (await target.send('POST', '/users', jsonOf({ name: 'Eve' }, keyed('another-key-of-26-chars')))).status,
    ).toBe(201)
    expect(reads).toEqual([])
    time += 3_600_000
    const next = await create()
    expect([next.status, next.field('idempotency-replayed')]).toEqual([201, undefined])
    expectReplay(next, await create())
    expect(await countOf(target, '/users')).toBe(3)
  })

  it('runs the work of an accepted item once (issue 20, point 5)', async () => {
    let runs = 0
    const jobs = collection({ idempotency: 'optional', create: 'accepted', process: () => void runs++ })
    const { send } = await start({ resources: { '/jobs': jobs } })
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => send('POST', '/jobs', jsonOf({ a: 1 }, keyed()))),
    )
    expect(answers.map((answer) => `${answer.status} ${answer.field('location')}`)).toEqual(
      new Array(10).fill('202 /jobs/1'),
    )
    await expect.poll(async () => (await send('GET', '/jobs/1')).json().state).toBe('ready')
    expect(runs).toBe(1)
  })

  it('is not needed where the client chooses the name: PUT with If-None-Match: * creates once (issue 20, recipe)', async () => {
    const { send } = await start({ resources: { '/orders': collection({ ids: 'string', clientIds: true }) } })
    const put = () => send('PUT', '/orders/8e03978e-40d5', jsonOf({ item: 'lamp' }, { 'If-None-Match': '*' }))
    expect([(await put()).status, (await put()).status]).toEqual([201, 412])
  })

  it('keeps its records out of every listing and out of reach (issue 20)', async () => {
    const target = await start(
      { resources: { '/': collection({ idempotency: 'optional' }), '/{a}/{b}': document() } },
      listRecords(memoryStore()),
    )
    await target.send('POST', '/', jsonOf(USER, keyed()))
    const [record] = (await target.store.list('idempotency', { limit: 5 })).items
    expect(isResource(record)).toBe(true)
    expect(await countOf(target, '/')).toBe(1)
    expect((await target.send('GET', `/${record!.path}`)).status).toBe(404)
  })
})

describe('idempotency', () => {
  it('is refused with a store that cannot keep a record and its effect in one step (issue 20)', () => {
    class FileStore {
      read = memoryStore().read
      write = memoryStore().write
      create = memoryStore().create
      remove = memoryStore().remove
      list = memoryStore().list
    }
    const resources = { '/a': collection(), '/users': collection({ idempotency: 'optional' }) }
    expect(() => startService({ resources }, new FileStore())).toThrow(
      "/users has idempotency: 'optional', which needs a store that supports relatedExpect (related writes that expect a path to be absent); FileStore does not.",
    )
    const { supports: _, ...bare } = memoryStore()
    expect(() => startService({ resources }, bare)).toThrow('the store of this service does not')
    expect(() => collection({ idempotency: 'always' as never })).toThrow(TypeError)
    expect(() => collection({ idempotency: 'optional', idempotencyRetention: 0 })).toThrow(TypeError)
    expect(() => collection({ idempotencyRetention: 5 })).toThrow(/needs idempotency/)
  })
})
