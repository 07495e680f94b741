import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { basic } from '../../src/auth-schemes/basic.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import type { RequestView } from '../../src/core/request-view.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { FORM, JSON_PATCH, jsonOf, MERGE_PATCH, multipartOf, startService, type Target, waitFor } from './support.ts'

let target: Target
afterEach(() => target.close())

const strict = z.strictObject({ title: z.string() })
const stripping = z.object({ title: z.string() })
const FACTS = { name: 'a.txt', type: 'text/plain', size: 5 }
const FILE = { name: 'file', filename: 'a.txt', type: 'text/plain', content: 'bytes' }
const UPLOAD = multipartOf([{ name: 'title', content: 'T' }, FILE])

async function start(options: CollectionOptions, more: ServiceOptions = {}): Promise<void> {
  const files = { file: {}, scan: { describe: ({ size }: { size: number }) => ({ size }) } }
  target = await startService({ resources: { '/docs': collection({ files, ...options }) }, ...more })
}
const put = (value: unknown, fields = {}, path = '/docs/1') => target.send('PUT', path, jsonOf(value, fields))
const patch = (value: unknown, fields: Readonly<Record<string, string>> = MERGE_PATCH) =>
  target.send('PATCH', '/docs/1', jsonOf(value, fields))
const read = async (path = '/docs/1') => (await target.send('GET', path)).json()

describe.each([
  ['strict', strict],
  ['stripping', stripping],
  ['passing', z.looseObject({ title: z.string() })],
  ['no', undefined],
] as const)('what the server says of a file, with a schema: %s (issue 17, 9)', (kind, schema) => {
  const definition = (schema === undefined ? {} : { schema }) as CollectionOptions

  it.each([false, true])('is on the item that an upload makes (chunked: %s)', async (chunked) => {
    await start(definition)
    const answer = await target.send('POST', '/docs', { ...UPLOAD, chunked })
    expect([answer.status, answer.json()]).toEqual([201, { id: 1, title: 'T', file: FACTS }])
    expect(await read()).toEqual({ id: 1, title: 'T', file: FACTS })
    const none = await target.send('POST', '/docs', multipartOf([{ name: 'title', content: 'U' }]))
    expect(none.json()).toEqual({ id: 2, title: 'U' })
  })

  it('stays when the item is replaced, and comes back equal or is 409', async () => {
    await start(definition)
    await target.send('POST', '/docs', UPLOAD)
    const whole = { id: 1, title: 'U', file: FACTS }
    for (const value of [
      { title: 'U' },
      { id: 1, title: 'U' },
      whole,
      { title: 'U', file: { size: 5, type: FACTS.type, name: 'a.txt' } },
    ]) {
      expect((await put(value)).status).toBe(204)
      expect(await read()).toEqual(whole)
    }
    for (const file of [{ ...FACTS, size: 6 }, { name: 'a.txt' }, null, 'a.txt', []]) {
      const answer = await put({ title: 'V', file })
      expect([answer.status, answer.json().errors[0].pointer]).toEqual([409, '/file'])
    }
    const other = await put({ title: 'V', file: FACTS, scan: { size: 1 } })
    expect([other.status, other.json().errors[0].pointer]).toEqual([409, '/scan'])
    expect(await read()).toEqual(whole)
    expect((await target.send('GET', '/docs/1/file')).text).toBe('bytes')
  })

  it('is nothing that PUT can give an item without files', async () => {
    await start(definition)
    expect((await put({ title: 'T', file: FACTS })).status).toBe(409)
    expect((await target.send('GET', '/docs/1')).status).toBe(404)
    expect((await put({ title: 'T' })).status).toBe(201)
    expect((await put({ title: 'T', file: FACTS })).status).toBe(409)
    expect((await put({ title: 'T', file: null })).status).toBe(409)
  })

  it.each([
    ['JSON', jsonOf({ title: 'T', file: FACTS })],
    ['JSON null', jsonOf({ title: 'T', file: null })],
    ['a form', { fields: FORM, body: 'title=T&file=a.txt' }],
    [
      'multipart',
      multipartOf([
        { name: 'title', content: 'T' },
        { name: 'file', content: 'a.txt' },
      ]),
    ],
  ])('is nothing that POST of %s can bring: 422', async (_, request) => {
    await start(definition)
    const answer = await target.send('POST', '/docs', request)
    expect([answer.status, answer.json().errors.at(-1).pointer]).toEqual([422, '/file'])
    expect(await read('/docs')).toEqual([])
  })

  it('stays through patches, which are 409 where they change it', async () => {
    await start(definition)
    await target.send('POST', '/docs', UPLOAD)
    expect((await patch({ title: 'U' })).json()).toEqual({ id: 1, title: 'U', file: FACTS })
    expect((await patch({ title: 'V', file: FACTS })).status).toBe(200)
    const replace = [{ op: 'replace', path: '', value: { id: 1, title: 'W', file: FACTS } }]
    expect((await patch(replace, JSON_PATCH)).status).toBe(200)
    for (const value of [{ file: null }, { file: { size: 6 } }, { scan: { size: 1 } }]) {
      expect([value, (await patch(value)).status]).toEqual([value, 409])
    }
    expect((await patch([{ op: 'remove', path: '/file' }], JSON_PATCH)).status).toBe(409)
    expect(await read()).toEqual({ id: 1, title: 'W', file: FACTS })
    const unknown = await patch({ more: 1 })
    expect(unknown.status).toBe(kind === 'strict' ? 422 : 200)
  })

  it('is on an item whose creation was accepted, with files of any name', async () => {
    target = await startService({
      resources: { '/docs': collection({ ...definition, create: 'accepted', memberMethods: ['GET', 'PATCH'] }) },
    })
    expect((await target.send('POST', '/docs', UPLOAD)).status).toBe(202)
    await waitFor(
      () => target.send('GET', '/docs/1'),
      (answer) => answer.json().state === 'ready',
    )
    expect(await read()).toEqual({ id: 1, title: 'T', file: FACTS, state: 'ready' })
    expect((await patch({ title: 'U' })).json()).toEqual({ id: 1, title: 'U', file: FACTS, state: 'ready' })
    expect((await patch({ file: { size: 6 } })).status).toBe(409)
    expect((await patch({ state: 'failed' })).status).toBe(422)
  })
})

it('an accepted item takes no file whose name could not be the last segment of its path', async () => {
  target = await startService({ resources: { '/docs': collection({ create: 'accepted' }) } })
  for (const name of ['.', '..', '../2', 'a/b', 'a\\b']) {
    expect((await target.send('POST', '/docs', multipartOf([{ ...FILE, name }]))).status, name).toBe(422)
  }
})

describe('PUT of an item with files (issue 17, 9)', () => {
  it('is verbatim where it brings all that is stored, and says so (RFC 9110 §9.3.4)', async () => {
    await start({ schema: strict })
    await target.send('POST', '/docs', UPLOAD)
    const body = `{ "id": 1, "file": ${JSON.stringify(FACTS)}, "title": "U" }`
    const whole = await target.send('PUT', '/docs/1', { fields: { 'Content-Type': 'application/json' }, body })
    const stored = await target.send('GET', '/docs/1')
    expect([stored.text, whole.field('etag')]).toEqual([body, stored.field('etag')])
    const partial = await put({ id: 1, title: 'V' })
    expect([partial.status, partial.field('etag')]).toEqual([204, undefined])
    const shown = await put({ title: 'W' }, { Prefer: 'return=representation' })
    expect([shown.json(), shown.field('etag')]).toEqual([{ id: 1, title: 'W', file: FACTS }, undefined])
  })

  it('keeps every digit where nothing has to be written anew', async () => {
    await start({})
    await target.send('POST', '/docs', UPLOAD)
    const body = '{"n":12345678901234567890.10}'
    expect((await target.send('PUT', '/docs/1', { fields: { 'Content-Type': 'application/json' }, body })).status).toBe(
      204,
    )
    expect((await target.send('GET', '/docs/1')).text).toBe(
      `{"id":1,"n":12345678901234567890.10,"file":${JSON.stringify(FACTS)}}`,
    )
  })

  it('meets conditions, the conflict hook and soft deletion with the facts in place', async () => {
    const seen: unknown[] = []
    await start({
      deletion: 'soft',
      conflict: (proposed) => {
        seen.push(proposed.value)
        return undefined
      },
    })
    const made = await target.send('POST', '/docs', UPLOAD)
    const tag = { 'If-Match': made.field('etag')! }
    expect((await put({ title: 'U' }, tag)).status).toBe(204)
    expect((await put({ title: 'V' }, tag)).status).toBe(412)
    expect(seen).toEqual([{ id: 1, title: 'U', file: FACTS }])
    await target.send('DELETE', '/docs/1')
    expect((await put({ title: 'W' })).status).toBe(201)
    expect(await read()).toEqual({ id: 1, title: 'W', file: FACTS })
    expect((await target.send('GET', '/docs/1/file')).text).toBe('bytes')
  })

  it('loses nothing under concurrent writes', async () => {
    await start({ schema: strict })
    await target.send('POST', '/docs', UPLOAD)
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        index % 2 === 0 ? put({ title: `p${index}` }) : patch({ title: `q${index}` }),
      ),
    )
    for (const { status } of answers) expect([200, 204]).toContain(status)
    expect(await read()).toMatchObject({ id: 1, file: FACTS })
    const ends = await Promise.all([target.send('DELETE', '/docs/1'), put({ title: 'last' })])
    expect(ends[0]!.status).toBe(204)
    const after = await target.send('GET', '/docs/1')
    // Where it was made anew its files are gone, and nothing is said of them.
    if (after.status === 200) expect(after.json()).toEqual({ id: 1, title: 'last' })
    else expect(after.status).toBe(410)
  })

  it('tells who may write and not read nothing of the files', async () => {
    const verify = (user: string, password: string) => user === password
    await start(
      { authorize: (principal, { method }) => principal?.id === 'admin' || method === 'PUT' || 'not-found' },
      { auth: { schemes: [basic({ realm: 'r', verify })] } },
    )
    const as = (user: string) => ({ Authorization: `Basic ${Buffer.from(`${user}:${user}`).toString('base64')}` })
    await target.send('POST', '/docs', { ...UPLOAD, fields: { ...UPLOAD.fields, ...as('admin') } })
    for (const value of [
      { title: 'U', file: FACTS },
      { title: 'U', file: { ...FACTS, size: 6 } },
    ]) {
      expect((await put(value, as('writer'))).status).toBe(404)
    }
    await target.send('POST', '/docs', jsonOf({ title: 'without a file' }, as('admin')))
    expect((await put({ title: 'U', file: FACTS }, as('writer'), '/docs/2')).status).toBe(404)
    expect((await put({ title: 'U' }, { ...as('writer'), Prefer: 'return=representation' })).status).toBe(404)
    expect((await put({ title: 'U' }, as('writer'))).status).toBe(204)
    expect((await put({ title: 'V', file: FACTS }, as('admin'))).status).toBe(204)
  })

  it('answers with what is known of the files only where requireAuth and the scope of bearer allow a GET', async () => {
    const shown = { Prefer: 'return=representation' }
    const requireAuth = ({ method }: RequestView) => method === 'GET'
    await start({}, { auth: { schemes: [bearer(() => true)], requireAuth } })
    await target.send('POST', '/docs', UPLOAD)
    expect((await put({ title: 'U' }, shown)).status).toBe(401)
    expect((await put({ title: 'U' })).status).toBe(204)
    await target.close()

    const scope = ({ method }: RequestView) => (method === 'GET' ? ['read'] : ['write'])
    const verify = (token: string) => ({ id: token, claims: { scope: token.replace('+', ' ') } })
    await start({}, { auth: { schemes: [bearer(verify, { scope })] } })
    const as = (token: string) => ({ Authorization: `Bearer ${token}` })
    await target.send('POST', '/docs', { ...UPLOAD, fields: { ...UPLOAD.fields, ...as('write') } })
    expect((await put({ title: 'U' }, { ...as('write'), ...shown })).status).toBe(403)
    expect((await put({ title: 'U' }, as('write'))).status).toBe(204)
    expect((await put({ title: 'U' }, { ...as('write+read'), ...shown })).json()).toMatchObject({ file: FACTS })
  })
})

it('an item says nothing of a file that only a default of its schema has', async () => {
  const schema = z.object({ title: z.string(), file: z.json().default({ name: 'none' }) })
  await start({ schema: schema as never })
  expect((await target.send('POST', '/docs', jsonOf({ title: 'T' }))).json()).toEqual({ id: 1, title: 'T' })
  expect((await put({ title: 'U' })).status).toBe(204)
  expect(await read()).toEqual({ id: 1, title: 'U' })
})

it('a soft deletion leaves the files of an item alone, and they are there again once it is restored', async () => {
  await start({ deletion: 'soft' })
  await target.send('POST', '/docs', UPLOAD)
  const kept = await target.store.read('/docs/1/file')
  expect((await target.send('DELETE', '/docs/1')).status).toBe(204)
  expect(await target.store.read('/docs/1/file')).toEqual(kept)
  expect((await target.send('GET', '/docs/1/file')).status).toBe(410)
  expect((await target.send('PUT', '/docs/1', jsonOf({ title: 'U' }))).status).toBe(201)
  expect((await target.send('GET', '/docs/1/file')).status).toBe(200)
})

it('a removal removes files of an item that are hidden, too', async () => {
  target = await startService({})
  await target.send('POST', '/forms', multipartOf([{ ...FILE, name: 'a' }]))
  await target.store.remove('/forms/1/a', { expect: 'any', mode: 'hide' })
  const readHidden = () => target.store.read('/forms/1/a', { hidden: true })
  expect(await readHidden()).toMatchObject({ hidden: true })
  expect((await target.send('DELETE', '/forms/1')).status).toBe(204)
  expect(await readHidden()).not.toMatchObject({ hidden: true })
})

it('an item says nothing of a file that JSON of a client may not say: U+0000, which not every store can keep', async () => {
  const describe = ({ size }: { size: number }) => ({ sum: '\0'.repeat(size) })
  await start({ files: { file: { replaceable: true, describe } } })
  expect((await target.send('POST', '/docs', UPLOAD)).status).toBe(422)
  expect((await target.send('POST', '/docs', multipartOf([{ ...FILE, content: '' }]))).status).toBe(201)
  const replacement = { fields: { 'Content-Type': 'text/plain' }, body: 'bytes' }
  expect((await target.send('PUT', '/docs/1/file', replacement)).status).toBe(422)
})

describe('a "describe" that returns what JSON has no properties of', () => {
  it.each([
    ['a promise that is fulfilled', () => Promise.resolve({ size: 5 })],
    ['a promise that is rejected', () => Promise.reject(new Error('away'))],
    ['a promise below a property', () => ({ size: 5, checks: [Promise.reject(new Error('away'))] })],
    ['a map', () => new Map([['size', 5]])],
  ])('is 500, and ends no process: %s', async (_, describe) => {
    const rejected: unknown[] = []
    const onRejection = (error: unknown): void => void rejected.push(error)
    process.on('unhandledRejection', onRejection)
    try {
      const onError = (): void => {}
      const files = { file: { replaceable: true, describe: describe as never } }
      await start({ files, methods: ['POST', 'GET'] }, { onError })
      expect((await target.send('POST', '/docs', UPLOAD)).status).toBe(500)
      const none = await target.send('POST', '/docs', multipartOf([{ name: 'title', content: 'U' }]))
      expect(none.status).toBe(201)
      const replacement = { headers: { 'Content-Type': 'text/plain' }, body: 'bytes' }
      expect((await target.send('PUT', '/docs/1/file', replacement)).status).toBe(500)
      await new Promise((resolve) => setTimeout(resolve, 20))
      expect(rejected).toEqual([])
    } finally {
      process.off('unhandledRejection', onRejection)
    }
  })
})
