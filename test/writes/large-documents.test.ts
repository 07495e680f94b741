import { createRequire } from 'node:module'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { type SqliteHandle, sqliteStore } from '../../src/stores/sqlite.ts'
import type { Answer } from '../support/answer.ts'
import { FORM, JSON_PATCH, jsonOf, MERGE_PATCH, multipartOf, startService, type Target, waitFor } from './support.ts'

const Database = createRequire(import.meta.url)('libsql') as new (file: string) => SqliteHandle
const TEXT = 'x'.repeat(200_000)

/** What a hook was shown of removals. */
const removed: unknown[] = []
let target: Target
beforeAll(async () => {
  target = await startService(
    {
      resources: {
        '/docs/{name}': document(),
        '/shown/{name}': document({ deleteResponse: 'representation' }),
        '/queued': collection({
          deletion: 'queued',
          afterCommit: ({ kind, before }) => void (kind === 'deleted' && removed.push(before?.value)),
        }),
        '/owned/{name}': document({
          authorize: (_principal, request, current) =>
            current === undefined || (current.value as { owner?: string }).owner === request.headers['x-user'],
        }),
        '/versioned/{name}': document({
          conflict: (proposed, current) =>
            (proposed.value as { v: number }).v > ((current?.value as { v: number } | undefined)?.v ?? 0)
              ? undefined
              : 'Not newer.',
        }),
        '/jobs': collection({ create: 'accepted', process: ({ value }) => ({ length: String(value['text']).length }) }),
      },
    },
    sqliteStore(new Database(':memory:')),
  )
})
afterAll(() => target.close())

describe('a document that the store keeps in pieces', () => {
  it('is confirmed where its removal is to answer with it: by then it cannot be read', async () => {
    await target.send('PUT', '/shown/gone', jsonOf({ text: TEXT }))
    const answer = await target.send('DELETE', '/shown/gone')
    expect([answer.status, answer.json()]).toEqual([200, { deleted: true, id: 'gone' }])
  })

  it('is shown whole to a hook that sees its removal, also one that is queued', async () => {
    await target.send('POST', '/queued', jsonOf({ text: TEXT }))
    expect((await target.send('DELETE', '/queued/1')).status).toBe(202)
    await expect.poll(() => removed.length).toBe(1)
    expect(removed).toEqual([{ id: 1, text: TEXT }])
  })

  it('is patched like any other, up to the limit of parsed content (interface PATCH 1)', async () => {
    await target.send('PUT', '/docs/a', jsonOf({ text: TEXT, list: [] }))
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        target.send('PATCH', '/docs/a', jsonOf([{ op: 'add', path: '/list/-', value: index }], JSON_PATCH)),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200))
    const read = (await target.send('GET', '/docs/a')).json()
    expect([read.text === TEXT, read.list.sort()]).toEqual([true, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]])
  })

  it('of exactly the limit is patched, and a patch makes one of exactly the limit', async () => {
    const small = await startService({ limits: { bodySize: 100 } })
    const put = async (size: number): Promise<void> => {
      const answer = await small.send('PUT', '/a', jsonOf({ a: 'x'.repeat(size - '{"a":""}'.length) }))
      expect(answer.status).toBeLessThan(300)
    }
    const patch = async (document: object) => (await small.send('PATCH', '/a', jsonOf(document, MERGE_PATCH))).status
    await put(100)
    expect(await patch({ a: null })).toBe(200)
    await put(100 - ',"b":1'.length)
    expect(await patch({ b: 1 })).toBe(200)
    await put(101 - ',"b":1'.length)
    expect(await patch({ b: 1 })).toBe(413)
    await small.close()
  })

  it('is not made larger than maxSize by a patch, as by a PUT', async () => {
    const files = document({ maxSize: 100 })
    const small = await startService({
      resources: { '/d/{name}': files, '/t': collection({ types: ['*/*'], maxSize: 100 }) },
    })
    for (const path of ['/d/a', '/t/a']) {
      const put = async (size: number) => (await small.send('PUT', path, jsonOf({ a: 'x'.repeat(size - 8) }))).status
      expect([path, await put(101), await put(100 - ',"b":1'.length)]).toEqual([path, 413, 201])
      const patch = async (b: number) => (await small.send('PATCH', path, jsonOf({ b }, MERGE_PATCH))).status
      expect([path, await patch(10), await patch(1)]).toEqual([path, 413, 200])
      expect((await small.send('GET', path)).text).toHaveLength(100)
    }
    await small.close()
  })

  it('too large to be parsed is not patched: 413', async () => {
    const small = await startService({ limits: { bodySize: 100_000 } }, target.store)
    await small.send('PUT', '/big', jsonOf({ text: TEXT }))
    expect((await small.send('PATCH', '/big', jsonOf({ a: 1 }, MERGE_PATCH))).status).toBe(413)
    expect((await small.send('GET', '/big')).json()).toEqual({ text: TEXT })
    await small.close()
  })

  it('is seen whole by the hooks authorize and conflict', async () => {
    const mine = { 'X-User': 'ann' }
    await target.send('PUT', '/owned/a', jsonOf({ owner: 'ann', text: TEXT }, mine))
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const options = method === 'PUT' ? jsonOf({ owner: 'eve' }, { 'X-User': 'eve' }) : { fields: { 'X-User': 'eve' } }
      expect([method, (await target.send(method, '/owned/a', options)).status]).toEqual([method, 403])
    }
    expect((await target.send('GET', '/owned/a', { fields: mine })).status).toBe(200)
    expect((await target.send('PUT', '/versioned/a', jsonOf({ v: 2, text: TEXT }))).status).toBe(201)
    expect((await target.send('PUT', '/versioned/a', jsonOf({ v: 2, text: TEXT }))).status).toBe(409)
    expect((await target.send('PUT', '/versioned/a', jsonOf({ v: 3, text: TEXT }))).status).toBe(204)
  })

  it('may be accepted, worked on and settled', async () => {
    expect((await target.send('POST', '/jobs', jsonOf({ text: TEXT }))).status).toBe(202)
    const done = await waitFor(
      () => target.send('GET', '/jobs/1'),
      (answer) => answer.json().state === 'ready',
    )
    expect(done.json().length).toBe(TEXT.length)
  })

  it('says what is known of its files when it is replaced, also where a form has made it larger than the limit', async () => {
    const photos = collection({ files: { photo: {} } })
    const database = sqliteStore(new Database(':memory:'))
    const small = await startService({ resources: { '/photos': photos }, limits: { bodySize: 100_000 } }, database)
    const fields = ['a', 'b'].map((name) => ({ name, content: 'x'.repeat(60_000) }))
    await small.send(
      'POST',
      '/photos',
      multipartOf([...fields, { name: 'photo', filename: 'p.txt', content: 'photo' }]),
    )
    const { photo } = (await small.send('GET', '/photos/1')).json()
    expect((await small.send('PUT', '/photos/1', jsonOf({ a: 1 }))).status).toBe(204)
    expect((await small.send('GET', '/photos/1')).json()).toEqual({ id: 1, a: 1, photo })
    await small.close()
  })

  it('gets a file anew, also where a form has made it larger than the limit', async () => {
    const photos = collection({ files: { photo: { replaceable: true } } })
    const database = sqliteStore(new Database(':memory:'))
    const small = await startService({ resources: { '/photos': photos }, limits: { bodySize: 100_000 } }, database)
    await small.send('POST', '/photos', { fields: FORM, body: `text=${'%01'.repeat(30_000)}` })
    expect(
      (await small.send('PUT', '/photos/1/photo', { fields: { 'Content-Type': 'text/plain' }, body: 'photo' })).status,
    ).toBe(201)
    expect((await small.send('GET', '/photos/1')).json()).toEqual({
      id: 1,
      text: '\u0001'.repeat(30_000),
      photo: { name: 'photo', type: 'text/plain', size: 5 },
    })
    await small.close()
  })

  it('is worked on where it has outgrown the limit: by its id and state, or as the text of a form', async () => {
    let end = (_: object): void => {}
    const result = new Promise<JsonObject>((resolve) => (end = resolve as typeof end))
    const jobs = collection({ create: 'accepted', process: () => result })
    const database = sqliteStore(new Database(':memory:'))
    const small = await startService({ resources: { '/jobs': jobs }, limits: { bodySize: 100_000 } }, database)
    await small.send('POST', '/jobs', jsonOf({ text: 'x'.repeat(100_000 - '{"text":""}'.length) }))
    await small.send('POST', '/jobs', { fields: FORM, body: `text=${'%01'.repeat(30_000)}` })
    for (const path of ['/jobs/1', '/jobs/2']) {
      const pending = await small.send('GET', path)
      expect([pending.json().state, pending.field('retry-after')]).toEqual(['pending', '1'])
    }
    end({ pages: 1 })
    for (const path of ['/jobs/1', '/jobs/2']) {
      const isDone = (answer: Answer): boolean => answer.json().state !== 'pending'
      const done = await waitFor(() => small.send('GET', path), isDone)
      expect([done.json().state, done.json().pages]).toEqual(['ready', 1])
    }
    await small.close()
  })
})
