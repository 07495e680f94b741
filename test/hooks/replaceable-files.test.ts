import { createHash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { type Change, json } from '../../src/actions/hook-types.ts'
import { bearer, insufficientScope } from '../../src/auth-schemes/bearer.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { StoredResource } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { beforeWrites } from '../support/before-writes.ts'
import { jsonOf, MERGE_PATCH, multipartOf, startService, type Target } from '../writes/support.ts'
import { STORES } from './stores.ts'

let target: Target | undefined
afterEach(() => target?.close())

const png = (body: string | Uint8Array, fields: Readonly<Record<string, string>> = {}) => ({
  fields: { 'Content-Type': 'image/png', ...fields },
  body,
})
const tasks = collection({ files: { photo: { replaceable: true }, scan: {} } })

describe.each(Object.entries(STORES))('PUT of a file of an item on %s', (_, createStore) => {
  it('keeps the name of the file where the request gives none', async () => {
    target = await startService({ resources: { '/tasks': tasks } }, createStore())
    await target.send('POST', '/tasks', jsonOf({ title: 'T' }))
    await target.send('PUT', '/tasks/1/photo', png('old', { 'Content-Disposition': 'inline; filename="a.png"' }))
    expect((await target.send('PUT', '/tasks/1/photo', png('new'))).status).toBe(204)
    expect((await target.send('GET', '/tasks/1/photo')).field('content-disposition')).toContain('a.png')
    expect((await target.send('GET', '/tasks/1')).json().photo.name).toBe('a.png')
  })

  it('keeps what the item became before the write', async () => {
    let change: (() => unknown) | undefined
    let writes = 0
    const store = beforeWrites(createStore(), () => {
      writes++
      const now = change
      change = undefined
      return now?.()
    })
    target = await startService({ resources: { '/tasks': tasks } }, store)
    await target.send('POST', '/tasks', jsonOf({ title: 'T' }))
    writes = 0
    change = () => target!.send('PATCH', '/tasks/1', { fields: MERGE_PATCH, body: '{"title":"U"}' })
    expect((await target.send('PUT', '/tasks/1/photo', png('new'))).status).toBe(201)
    // One that fails, that of the other, and one with what it left.
    expect(writes).toBe(3)
    const item = (await target.send('GET', '/tasks/1')).json()
    expect([item.title, item.photo.size, (await target.send('GET', '/tasks/1/photo')).text]).toEqual(['U', 3, 'new'])
  })

  it('stores it anew, with what the item says of it, and leaves the rest alone', async () => {
    target = await startService({ resources: { '/tasks': tasks } }, createStore())
    const form = multipartOf([
      { name: 'title', content: 'T' },
      { name: 'photo', filename: 'a.png', type: 'image/png', content: 'old' },
      { name: 'scan', filename: 's.pdf', type: 'application/pdf', content: 'PDF' },
    ])
    expect((await target.send('POST', '/tasks', form)).status).toBe(201)
    const before = await target.send('GET', '/tasks/1')
    for (const body of ['new!', Buffer.alloc(200_000, 'x')]) {
      const put = await target.send(
        'PUT',
        '/tasks/1/photo',
        png(body, { 'Content-Disposition': 'inline; filename="b.png"' }),
      )
      expect([put.status, put.field('etag'), put.text]).toEqual([204, undefined, ''])
      const photo = await target.send('GET', '/tasks/1/photo')
      expect([photo.body.equals(Buffer.from(body)), photo.field('content-type')]).toEqual([true, 'image/png'])
      expect(photo.field('content-disposition')).toContain('b.png')
      const item = await target.send('GET', '/tasks/1')
      const known = { name: 'b.png', type: 'image/png', size: body.length }
      expect(item.json()).toEqual({ ...before.json(), photo: known })
      expect(item.field('etag')).not.toBe(before.field('etag'))
    }
    expect((await target.send('GET', '/tasks/1/scan')).text).toBe('PDF')
  })

  it.each([
    ['text/plain; charset=iso-8859-1', 'text/plain; charset=iso-8859-1'],
    ['Application/Geo+JSON; charset=utf-8', 'application/geo+json'],
  ])('says of its type what a form says of it: of %s %s', async (type, kept) => {
    target = await startService({ resources: { '/tasks': tasks } }, createStore())
    await target.send('POST', '/tasks', multipartOf([{ name: 'photo', filename: 'a.txt', type, content: 'a' }]))
    const { photo } = (await target.send('GET', '/tasks/1')).json()
    await target.send('PUT', '/tasks/1/photo', { fields: { 'Content-Type': type }, body: 'b' })
    expect((await target.send('GET', '/tasks/1')).json()).toEqual({ id: 1, photo })
    expect([photo.type, (await target.send('GET', '/tasks/1/photo')).field('content-type')]).toEqual([kept, kept])
  })

  it('creates it where the item has none; the item must be there', async () => {
    target = await startService({ resources: { '/tasks': tasks } }, createStore())
    expect((await target.send('PUT', '/tasks/1/photo', png('x'))).status).toBe(404)
    await target.send('PUT', '/tasks/1', jsonOf({ n: 1 }))
    const created = await target.send('PUT', '/tasks/1/photo', png('x', { 'If-None-Match': '*' }))
    expect([created.status, created.field('location')]).toEqual([201, '/tasks/1/photo'])
    expect((await target.send('PUT', '/tasks/1/photo', png('y', { 'If-None-Match': '*' }))).status).toBe(412)
    const item = (await target.send('GET', '/tasks/1')).json()
    expect(item).toEqual({ id: 1, n: 1, photo: { name: 'photo', type: 'image/png', size: 1 } })
    await target.send('DELETE', '/tasks/1')
    expect((await target.send('PUT', '/tasks/1/photo', png('x'))).status).toBe(410)
    expect((await target.send('PUT', '/tasks/1/scan', png('x'))).status).toBe(405)
  })

  it('asks for a condition where the definition requires one: 428 for a file that is there (RFC 6585 §3)', async () => {
    const resources = { '/tasks': collection({ preconditions: 'required', files: { photo: { replaceable: true } } }) }
    target = await startService({ resources }, createStore())
    await target.send('POST', '/tasks', jsonOf({}))
    expect((await target.send('PUT', '/tasks/1/photo', png('one', { 'If-None-Match': '*' }))).status).toBe(201)
    expect((await target.send('PUT', '/tasks/1/photo', png('two'))).status).toBe(428)
    const tag = (await target.send('GET', '/tasks/1/photo')).field('etag')!
    expect((await target.send('PUT', '/tasks/1/photo', png('two', { 'If-Match': tag }))).status).toBe(204)
    expect((await target.send('GET', '/tasks/1/photo')).text).toBe('two')
  })

  it('holds conditions against the file, not the item (RFC 9110 §13.1.1)', async () => {
    target = await startService({ resources: { '/tasks': tasks } }, createStore())
    await target.send('PUT', '/tasks/1', jsonOf({}))
    await target.send('PUT', '/tasks/1/photo', png('one'))
    const tagOf = async (path: string) => (await target!.send('GET', path)).field('etag')!
    const put = async (tag: string) =>
      (await target!.send('PUT', '/tasks/1/photo', png('two', { 'If-Match': tag }))).status
    const tag = await tagOf('/tasks/1/photo')
    expect(await put(await tagOf('/tasks/1'))).toBe(412)
    await target.send('PATCH', '/tasks/1', { fields: MERGE_PATCH, body: '{"n":1}' })
    expect(await put(tag)).toBe(204)
    expect(await put(tag)).toBe(412)
  })

  it('keeps the file and what the item says of it together, also under many writers', async () => {
    const store = createStore()
    const services = await Promise.all([1, 2].map(() => startService({ resources: { '/tasks': tasks } }, store)))
    try {
      await services[0]!.send('PUT', '/tasks/1', jsonOf({}))
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, n): Promise<Answer> => {
          const { send } = services[n % 2]!
          if (n % 4 === 3) return send('PATCH', '/tasks/1', { fields: MERGE_PATCH, body: `{"n${n}":${n}}` })
          return send('PUT', '/tasks/1/photo', png('x'.repeat(n + 1)))
        }),
      )
      expect(answers.filter(({ status }) => ![200, 201, 204].includes(status))).toEqual([])
      const item = (await services[0]!.send('GET', '/tasks/1')).json()
      expect(item.photo.size).toBe((await services[0]!.send('GET', '/tasks/1/photo')).body.length)
      expect(item).toMatchObject({ n3: 3, n7: 7, n11: 11, n15: 15 })
    } finally {
      for (const service of services) await service.close()
    }
  })
})

describe('PUT of a file of an item', () => {
  it('is a change of the item for its hooks', async () => {
    const changes: Change[] = []
    const resources = {
      '/tasks': collection({
        files: { photo: { replaceable: true, describe: ({ size }) => size } },
        beforeWrite: (value, { current }) => ({ ...value, changes: Number(current?.value['changes'] ?? 0) + 1 }),
        outbox: (change) => [{ path: `/audit/${change.eventId}`, content: json(change) }],
        afterCommit: (change) => void changes.push(change),
      }),
    }
    target = await startService({ resources })
    await target.send('PUT', '/tasks/1', jsonOf({}))
    expect((await target.send('PUT', '/tasks/1/photo', png('12345'))).status).toBe(201)
    await target.service.close()
    expect(changes.map(({ kind, path, id, params, after }) => [kind, path, id, { ...params }, after?.value])).toEqual([
      ['created', '/tasks/1', 1, { id: '1' }, { id: 1, changes: 1 }],
      ['patched', '/tasks/1', 1, { id: '1' }, { id: 1, changes: 2, photo: 5 }],
    ])
    expect((await target.store.list('/audit', { limit: 9 })).items).toHaveLength(2)
  })

  it('keeps what the schema leaves out of the item, as without beforeWrite', async () => {
    const stamped = collection({
      schema: z.object({ places: z.array(z.object({ street: z.string() })), changes: z.number().optional() }),
      files: { photo: { replaceable: true } },
      beforeWrite: (value) => ({ ...value, changes: 2 }),
    })
    target = await startService({ resources: { '/tasks': stamped } })
    const left = { places: [{ street: 'S', ofAnEarlierSchema: 1 }], ofAnEarlierSchema: true }
    await target.store.write('/tasks/1', json({ id: 1, ...left }), { expect: 'any' })
    expect((await target.send('PUT', '/tasks/1/photo', png('12345'))).status).toBe(201)
    const photo = { name: 'photo', type: 'image/png', size: 5 }
    const { body } = (await target.store.read('/tasks/1')) as StoredResource
    expect(JSON.parse(String(body))).toEqual({ id: 1, ...left, changes: 2, photo })
  })

  it('is taken also where the item has a value from before that its list cannot index, which the file does not make', async () => {
    const query = { rank: 'number', photoSize: { type: 'string', pointer: '/photo/size' } } as const
    const listed = (more: object) =>
      collection({ query: { rank: 'number', ...more }, files: { photo: { replaceable: true } } })
    const store = memoryStore()
    target = await startService({ resources: { '/tasks': listed({}) } }, store)
    await store.write('/tasks/1', json({ id: 1, rank: 'first' }), { expect: 'any' })
    expect((await target.send('PUT', '/tasks/1/photo', png('12345'))).status).toBe(201)
    const photo = { name: 'photo', type: 'image/png', size: 5 }
    const listing = await target.send('GET', '/tasks?rank[exists]=false')
    expect(listing.json()).toEqual([{ id: 1, rank: 'first', photo }])
    await target.close()
    // The size of a file is not text: the same file is as little taken as another one.
    target = await startService({ resources: { '/tasks': listed(query) } }, store)
    const refused = await target.send('PUT', '/tasks/1/photo', png('12345'))
    expect([refused.status, refused.json().errors]).toMatchObject([422, [{ pointer: '/photo/size' }]])
  })

  it('has facts within the limits of the service, in a form as well', async () => {
    // As many lists in one another as the file has bytes.
    const describeFile = ({ size }: { size: number }) => JSON.parse(`${'['.repeat(size)}0${']'.repeat(size)}`)
    const resources = { '/tasks': collection({ files: { photo: { replaceable: true, describe: describeFile } } }) }
    target = await startService({ resources, limits: { depth: 200 } })
    const upload = (size: number) =>
      target!.send('POST', '/tasks', multipartOf([{ name: 'photo', filename: 'a', content: 'x'.repeat(size) }]))
    const put = (size: number) => target!.send('PUT', '/tasks/1/photo', png('x'.repeat(size)))
    expect([(await upload(150)).status, (await upload(201)).status]).toEqual([201, 400])
    expect([(await put(151)).status, (await put(201)).status]).toEqual([204, 400])
  })

  it('asks beforeWrite once where it waited for another one: about the item that that one left', async () => {
    const seen: unknown[] = []
    let goOn: (() => void) | undefined
    const resources = {
      '/tasks': collection({
        files: { photo: { replaceable: true, describe: ({ size }) => size } },
        async beforeWrite(value, { kind, current }) {
          if (kind !== 'patched') return value
          seen.push(current?.value['photo'])
          if (goOn === undefined) {
            await new Promise<void>((resolve) => {
              goOn = resolve
            })
          }
          return value
        },
      }),
    }
    target = await startService({ resources })
    await target.send('PUT', '/tasks/1', jsonOf({}))
    const first = target.send('PUT', '/tasks/1/photo', png('1'))
    await vi.waitFor(() => expect(goOn).toBeDefined(), 30_000)
    const second = target.send('PUT', '/tasks/1/photo', png('22'))
    // It has its content by then, and waits for its turn.
    await wait(100)
    goOn!()
    expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([201, 204])
    expect(seen).toEqual([undefined, 1])
    expect((await target.send('GET', '/tasks/1')).json()).toEqual({ id: 1, photo: 2 })
  })

  it('is judged by authorize with the item', async () => {
    const auth = { schemes: [bearer((name: string) => ({ id: name }))], requireAuth: () => false }
    const resources = {
      '/tasks': collection({
        files: { photo: { replaceable: true } },
        authorize: (principal, _, current) =>
          current === undefined || (current.value as { owner?: string }).owner === principal?.id || 'not-found',
      }),
    }
    target = await startService({ resources, auth })
    const ada = { Authorization: 'Bearer ada' }
    await target.send('PUT', '/tasks/1', jsonOf({ owner: 'ada' }, ada))
    expect((await target.send('PUT', '/tasks/1/photo', png('x'))).status).toBe(404)
    expect((await target.send('PUT', '/tasks/1/photo', png('x', ada))).status).toBe(201)
  })

  it('verifies digests, and refuses what is too large (RFC 9530 §2)', async () => {
    const limited = collection({ files: { photo: { replaceable: true } }, maxSize: 100 })
    target = await startService({ resources: { '/tasks': limited } })
    await target.send('PUT', '/tasks/1', jsonOf({}))
    const digestOf = (body: string) => `sha-256=:${createHash('sha256').update(body).digest('base64')}:`
    const put = async (body: string, fields = {}) =>
      (await target!.send('PUT', '/tasks/1/photo', png(body, fields))).status
    expect(await put('new', { 'Content-Digest': digestOf('old') })).toBe(400)
    expect(await put('x'.repeat(101))).toBe(413)
    expect((await target.send('GET', '/tasks/1/photo')).status).toBe(404)
    expect((await target.send('GET', '/tasks/1')).json()).toEqual({ id: 1 })
    expect(await put('new', { 'Content-Digest': digestOf('new') })).toBe(201)
  })

  it.each([
    ['limits.fileSize', Number.POSITIVE_INFINITY, 10],
    ['maxSize', 10, Number.POSITIVE_INFINITY],
    ['maxSize below limits.fileSize', 10, 20],
    ['limits.fileSize below maxSize', 20, 10],
  ])('is 413 above %s, as for a file of a form', async (_, maxSize, fileSize) => {
    const tasks = collection({ files: { photo: { replaceable: true } }, maxSize })
    target = await startService({ resources: { '/tasks': tasks }, limits: { fileSize } })
    await target.send('PUT', '/tasks/1', jsonOf({}))
    for (const [size, status] of [
      [11, 413],
      [10, 201],
    ] as const) {
      expect((await target.send('PUT', '/tasks/1/photo', png('x'.repeat(size)))).status).toBe(status)
      const form = multipartOf([{ name: 'photo', filename: 'a.png', type: 'image/png', content: 'x'.repeat(size) }])
      expect((await target.send('POST', '/tasks', form)).status).toBe(status)
      const large = [
        { name: 'note', content: 'x'.repeat(60_000) },
        { name: 'more', content: 'x'.repeat(60_000) },
        { name: 'photo', filename: 'a.png', type: 'image/png', content: 'x'.repeat(size) },
      ]
      expect((await target.send('POST', '/tasks', multipartOf(large))).status).toBe(status)
    }
  })

  it('refuses what a service refuses of any write, and leaves the file alone', async () => {
    const verify = (token: string) => {
      if (token === 'narrow') throw insufficientScope(['more'])
      return token === 'good'
    }
    target = await startService({
      resources: { '/tasks': tasks },
      auth: { schemes: [bearer(verify)], requireAuth: 'writes' },
    })
    const good = { Authorization: 'Bearer good' }
    await target.send('PUT', '/tasks/1', jsonOf({}, good))
    expect((await target.send('PUT', '/tasks/1/photo', png('x', good))).status).toBe(201)
    const foreign = { Cookie: 'a=b', Origin: 'https://elsewhere.test', 'Sec-Fetch-Site': 'cross-site' }
    const refusals = [
      [400, 'digest-invalid-values', { 'Content-Digest': 'sha-256=:AAAA:' }],
      [401, 'unauthenticated', { Authorization: 'Bearer bad' }],
      [403, 'forbidden', { Authorization: 'Bearer narrow' }],
      [403, 'cleartext', { 'X-Forwarded-For': '192.0.2.1' }],
      [403, 'cross-site', foreign],
      [415, 'unsupported-coding', { 'Content-Encoding': 'zstd' }],
      [415, 'unsupported-media-type', { 'Content-Type': 'application/json; charset=iso-8859-1' }],
    ] as const
    for (const [status, problem, fields] of refusals) {
      const answer = await target.send('PUT', '/tasks/1/photo', png('y', { ...good, ...fields }))
      expect([answer.status, String(answer.json()['type']).split(/[:#]/).at(-1)]).toEqual([status, problem])
    }
    expect((await target.send('GET', '/tasks/1/photo')).text).toBe('x')
  })

  it('leaves alone an item with a number that would be another one when it is written again', async () => {
    target = await startService({ resources: { '/tasks': tasks } })
    const text = '{"id":1,"n":12345678901234567890}'
    await target.store.write('/tasks/1', { contentType: 'application/json', body: text }, { expect: 'any' })
    expect((await target.send('PUT', '/tasks/1/photo', png('x'))).status).toBe(409)
    expect((await target.send('GET', '/tasks/1')).text).toBe(text)
  })
})
