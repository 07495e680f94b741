import { gzipSync } from 'node:zlib'
import { afterEach, expect, it } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { jsonOf, MERGE_PATCH, startService, type Target } from './support.ts'

let target: Target
afterEach(() => target.close())

const KEY = { 'Idempotency-Key': 'a-key-of-16-chars' }
const resources = { '/notes': collection({ idempotency: 'optional' }) }

it('a repetition has the first answer where its coding makes the content larger than the limit', async () => {
  const limits = { bodySize: 1024 }
  target = await startService({ resources, limits, contentCodings: ['gzip'] })
  const body = gzipSync(JSON.stringify({ text: 'x'.repeat(1000) }), { level: 0 })
  expect(body.length).toBeGreaterThan(limits.bodySize)
  const fields = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip', ...KEY }
  const first = await target.send('POST', '/notes', { fields, body, chunked: true })
  const second = await target.send('POST', '/notes', { fields, body, chunked: true })
  expect([first.status, second.status, second.text]).toEqual([201, 201, first.text])
  expect(second.field('idempotency-replayed')).toBe('?1')
})

it('a repetition has a date of its own (RFC 9110 §6.6.1)', async () => {
  const now = () => Date.UTC(2001, 0, 1)
  const docs = document({ idempotency: 'optional' })
  target = await startService({ resources: { '/docs/{name}': docs }, now }, memoryStore({ now }))
  await target.send('PUT', '/docs/a', jsonOf({ n: 1 }))
  for (const replayed of [undefined, '?1']) {
    const answer = await target.send('PATCH', '/docs/a', jsonOf({ n: 1 }, { ...MERGE_PATCH, ...KEY }))
    expect([answer.status, answer.field('idempotency-replayed')]).toEqual([204, replayed])
    // What was kept is as old as the clock of the service says.
    expect(Date.parse(answer.field('date')!)).toBeGreaterThan(Date.UTC(2020, 0, 1))
  }
})

it('a repetition of a form that is stored as it is has the bytes of the first', async () => {
  const types = ['multipart/form-data']
  target = await startService({ resources: { '/forms': collection({ types, idempotency: 'optional' }) } })
  const post = (text: string) => {
    const body = `--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n${text}\r\n--b--\r\n`
    return target.send('POST', '/forms', {
      fields: { 'Content-Type': 'multipart/form-data; boundary=b', ...KEY },
      body,
    })
  }
  const statuses = [(await post('one')).status, (await post('two')).status, (await post('one')).status]
  expect(statuses).toEqual([201, 422, 201])
})

it('the record of an answer tells the store how long it is kept', async () => {
  const inner = memoryStore()
  const retentions: unknown[] = []
  const create: typeof inner.create = (path, content, options) =>
    inner.create(path, content, {
      ...options,
      related(name, state) {
        const writes = options!.related!(name, state)
        retentions.push(...writes.map(({ retention }) => retention))
        return writes
      },
    })
  const notes = (idempotencyRetention: number) => collection({ idempotency: 'optional', idempotencyRetention })
  const both = { '/notes': notes(60_000), '/kept': notes(Number.POSITIVE_INFINITY) }
  target = await startService({ resources: both }, { ...inner, create })
  for (const path of Object.keys(both)) await target.send('POST', path, jsonOf({}, KEY))
  expect(retentions).toEqual([60_000, undefined])
})
