import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import Libsql from 'libsql'
import { describe, expect, it, vi } from 'vitest'
import { json } from '../../src/actions/hook-types.ts'
import { fileContents } from '../../src/contents/file.ts'
import type { MaybePromise } from '../../src/core/maybe-promise.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { type PgliteDatabase, postgresStore } from '../../src/stores/postgres.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { watchStaged } from '../support/watch-staged.ts'
import { openRawClient } from '../wire/raw-client.ts'
import { jsonOf, multipartOf, type SendOptions, startService, type Target } from '../writes/support.ts'
import { as, list, scope } from './scoped.ts'

interface Place {
  readonly store: ResourceStore
  /** Contents that the store keeps and no path shows. */
  countLeft(): Promise<number>
}

let pglite: PgliteDatabase | undefined
let prefixes = 0

const PLACES: Readonly<Record<string, () => Promise<Place>>> = {
  async memoryStore() {
    const { store, open } = watchStaged()
    return { store, countLeft: async () => open.size }
  },
  async sqliteStore() {
    const database = new Libsql(':memory:')
    const store = sqliteStore(database, { sweepInterval: 0 })
    return { store, countLeft: async () => database.prepare('SELECT 1 FROM resource_chunks').all().length }
  },
  async 'sqliteStore with fileContents'() {
    const directory = await mkdtemp(join(tmpdir(), 'uploads-'))
    closeAfterTest(() => rm(directory, { recursive: true, force: true }))
    const store = sqliteStore(new Libsql(':memory:'), { sweepInterval: 0, contents: fileContents({ directory }) })
    const isFile = (entry: { isFile(): boolean }) => entry.isFile()
    const read = () => readdir(directory, { recursive: true, withFileTypes: true })
    return { store, countLeft: async () => (await read()).filter(isFile).length }
  },
  async postgresStore() {
    const { PGlite } = createRequire(import.meta.url)('@electric-sql/pglite') as { PGlite: new () => PgliteDatabase }
    pglite ??= new PGlite()
    const tablePrefix = `uploads_${++prefixes}_`
    // The sweep clears away what was given up; all else stays for the grace period.
    const store = postgresStore({ pool: pglite, tablePrefix, sweepInterval: 50 })
    const read = async () => (await pglite!.query(`SELECT 1 FROM ${tablePrefix}chunks`)) as { rows: readonly unknown[] }
    return { store, countLeft: async () => (await read()).rows.length }
  },
}

async function start(place: Place, deletion: 'hard' | 'soft' = 'hard') {
  const seen: string[] = []
  const target = await startService(
    {
      resources: {
        '/tasks': collection({ deletion, files: { photo: { replaceable: true } } }),
        '/tasks/{task}/notes': collection({ parent: true, types: ['text/plain'] }),
        '/tasks/{task}/comments': collection({
          parent: true,
          idempotency: 'optional',
          files: { photo: { replaceable: true } },
          outbox: ({ kind, eventId }) => [{ path: `/audit/${eventId}`, content: json({ kind }) }],
          afterCommit: ({ kind, path }) => void seen.push(`${kind} ${path}`),
        }),
      },
    },
    place.store,
  )
  closeAfterTest(async () => {
    await target.close()
    await place.store.close?.()
  })
  expect((await target.send('PUT', '/tasks/1', jsonOf({}))).status).toBe(201)
  expect((await target.send('PUT', '/tasks/1/comments/7', jsonOf({}))).status).toBe(201)
  seen.length = 0
  return { target, seen }
}

/** Bytes of a request that are sent one by one. */
const SLOW = 50

/**
 * Sends a request whose content arrives slowly: the service asks for it, having checked the parent; then all but the end,
 * and the end a byte at a time.
 * @param meanwhile what happens before the end is sent
 */
async function sendSlowly(
  { port }: Target,
  [method, path, { fields = {}, body, chunked }]: Upload,
  meanwhile: () => Promise<unknown>,
): Promise<Answer> {
  const content = Buffer.from(body!)
  const size = chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${content.length}`
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`)
  const client = await openRawClient(port)
  closeAfterTest(() => client.leave())
  client.socket.setNoDelay()
  const write = (bytes: Uint8Array) =>
    client.send(chunked ? Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, CRLF]) : bytes)
  client.send(
    [`${method} ${path} HTTP/1.1`, 'Host: localhost', 'Expect: 100-continue', size, ...lines, '', ''].join('\r\n'),
  )
  expect((await client.read(method)).status).toBe(100)
  write(content.subarray(0, -SLOW))
  await meanwhile()
  for (const byte of content.subarray(-SLOW)) {
    write(Buffer.of(byte))
    await nextTurn()
  }
  if (chunked) client.send('0\r\n\r\n')
  return client.read(method)
}

const CRLF = Buffer.from('\r\n')
const LARGE = Buffer.alloc(300_000, 'large content ')
const SMALL = LARGE.subarray(0, 100)

type Upload = readonly [method: string, path: string, options: SendOptions, content: Uint8Array]

const form = (content: Uint8Array, fields = {}): Upload => {
  const parts = [{ name: 'photo', filename: 'p.png', type: 'image/png', content }]
  return ['POST', '/tasks/1/comments', multipartOf(parts, fields), content]
}
const put = (path: string, body: Uint8Array, type = 'text/plain'): Upload => [
  'PUT',
  path,
  { fields: { 'Content-Type': type }, body },
  body,
]
const chunked = ([method, path, options, content]: Upload): Upload => [
  method,
  path,
  { ...options, chunked: true },
  content,
]
const byPost = ([, , options, content]: Upload): Upload => ['POST', '/tasks/1/notes', options, content]

const KEY = { 'Idempotency-Key': '"a-key-of-sixteen"' }
const FORMS: readonly (readonly [string, Upload])[] = [
  ['a form with a large file', form(LARGE)],
  ['a form with a small file', form(SMALL)],
  ['a form without a length', chunked(form(LARGE))],
  ['a form with an Idempotency-Key', form(LARGE, KEY)],
]
const CONTENTS: readonly (readonly [string, Upload])[] = [
  ['large content by POST', byPost(put('', LARGE))],
  ['large content by POST without a length', chunked(byPost(put('', LARGE)))],
  ['large content by PUT', put('/tasks/1/notes/5', LARGE)],
  ['large content by PUT without a length', chunked(put('/tasks/1/notes/5', LARGE))],
  ['small content by PUT', put('/tasks/1/notes/5', SMALL)],
  ['JSON by PUT', put('/tasks/1/comments/9', Buffer.from(`{"id":9,"text":"${SMALL}"}`), 'application/json')],
]
const FILES: readonly (readonly [string, Upload])[] = [
  ['a large file of an item below', put('/tasks/1/comments/7/photo', LARGE)],
  ['a small file of an item below', put('/tasks/1/comments/7/photo', SMALL)],
]

describe.each(Object.entries(PLACES))('an upload below a parent that is removed meanwhile, on %s', (_, open) => {
  it.each([...FORMS, ...FILES, ...CONTENTS])('is 404 and leaves nothing: %s', async (_, upload) => {
    for (const deletion of ['hard', 'soft'] as const) {
      const place = await open()
      const { target, seen } = await start(place, deletion)
      const answer = await sendSlowly(target, upload, async () => {
        expect((await target.send('DELETE', '/tasks/1')).status).toBe(204)
      })
      expect([answer.status, JSON.parse(answer.body.toString()).type]).toEqual([
        404,
        'urn:problem-type:http-resource-service:not-found',
      ])
      // The parent is there again: what was below it is there only after a soft deletion, and nothing is new.
      expect((await target.send('PUT', '/tasks/1', jsonOf({}))).status).toBe(201)
      expect((await target.send('GET', '/tasks/1/notes')).json()).toEqual([])
      const comments = deletion === 'soft' ? [{ id: 7 }] : []
      expect((await target.send('GET', '/tasks/1/comments')).json()).toEqual(comments)
      if (upload[0] === 'PUT') expect([404, 410]).toContain((await target.send('GET', upload[1])).status)
      await target.service.close()
      expect(seen).toEqual([])
      expect((await place.store.list('/audit', { limit: 9 })).items).toHaveLength(1)
      await vi.waitFor(async () => expect(await place.countLeft()).toBe(0), 30_000)
    }
  })

  it('is 410 where it is a file of the removed item itself (RFC 9110 §15.5.11)', async () => {
    for (const body of [LARGE, SMALL]) {
      const place = await open()
      const { target } = await start(place)
      const answer = await sendSlowly(target, put('/tasks/1/photo', body), async () => {
        expect((await target.send('DELETE', '/tasks/1')).status).toBe(204)
      })
      expect(answer.status).toBe(410)
      await target.send('PUT', '/tasks/1', jsonOf({}))
      expect((await target.send('GET', '/tasks/1')).json()).toEqual({ id: 1 })
      expect((await target.send('GET', '/tasks/1/photo')).status).toBe(404)
      await vi.waitFor(async () => expect(await place.countLeft()).toBe(0), 30_000)
    }
  })

  it.each([...FORMS, ...CONTENTS])(
    'is stored whole where the parent is there again for the commit: %s',
    async (_, upload) => {
      const place = await open()
      const { store } = place
      let attempts = -1
      // The first write misses the parent.
      async function missOnce<Result>(call: () => MaybePromise<Result>): Promise<Result> {
        if (attempts === -1 || ++attempts > 1) return call()
        await store.remove('/tasks/1', { expect: 'any', mode: 'tombstone', below: true })
        const result = await call()
        await store.write('/tasks/1', json({ id: 1 }), { expect: 'any' })
        return result
      }
      const racing: ResourceStore = {
        ...store,
        write: (path, content, options) => missOnce(() => store.write(path, content, options)),
        create: (path, content, options) => missOnce(() => store.create(path, content, options)),
      }
      const { target } = await start({ ...place, store: racing })
      attempts = 0
      const answer = await sendSlowly(target, upload, async () => undefined)
      expect([answer.status, attempts]).toEqual([201, 2])
      const location = answer.fields.find(([name]) => name === 'location')![1]
      const { status, body: bytes } = await target.send(
        'GET',
        upload[1].endsWith('comments') ? `${location}/photo` : location,
      )
      expect([status, bytes.equals(upload[3])]).toEqual([200, true])
    },
  )
})

it.each([
  ['after a while', 60_000],
  ['and the clock was put back', -60_000],
])('an upload is 404 and leaves nothing where the parent is that of another caller by then, %s', async (_, passed) => {
  const { store, open } = watchStaged()
  let time = Date.now()
  const resources = {
    '/tasks': collection({ scope, clientIds: true }),
    '/tasks/{task}/comments': collection({ parent: true, files: { photo: {} } }),
    '/tasks/{task}/notes': collection({ parent: true, types: ['text/plain'] }),
  }
  const target = await startService({ resources, now: () => time }, store)
  closeAfterTest(target.close)
  for (const [, [method, path, { fields, ...options }, content]] of [...FORMS, ...CONTENTS]) {
    expect((await target.send('PUT', '/tasks/1', jsonOf({}, as('ada')))).status).toBe(201)
    const own = { ...(fields as Record<string, string>), ...as('ada') }
    const answer = await sendSlowly(target, [method, path, { ...options, fields: own }, content], async () => {
      expect((await target.send('DELETE', '/tasks/1', { fields: as('ada') })).status).toBe(204)
      expect((await target.send('PUT', '/tasks/1', jsonOf({}, as('bob')))).status).toBe(201)
      time += passed
    })
    expect([method, path, answer.status]).toEqual([method, path, 404])
    for (const below of ['comments', 'notes']) expect(await list(target, 'bob', `/tasks/1/${below}`)).toEqual([])
    expect((await target.send('DELETE', '/tasks/1', { fields: as('bob') })).status).toBe(204)
  }
  expect(open.size).toBe(0)
})
