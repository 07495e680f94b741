import { expect, it } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Answer } from '../support/answer.ts'
import { serve } from './serve.ts'

const JSON_TYPE = ['Content-Type: application/json']
const FORM = 'Content-Type: application/x-www-form-urlencoded'

it.each([
  ['plain', collection({ ids: 'string' })],
  ['with a scope', collection({ ids: 'string', scope: () => ({ owner: 'a' }), clientIds: true })],
  ['with queries', collection({ ids: 'string', query: { n: 'number' } })],
])('a list is walked to its end past the longest name that PUT takes: %s', async (_, notes) => {
  const { send } = await serve(memoryStore(), { resources: { '/notes': notes } })
  const put = async (name: string) => (await send('PUT', `/notes/${name}`, JSON_TYPE, '{}')).status
  let [taken, refused] = [1, 2040]
  expect(await put('a'.repeat(refused))).toBe(414)
  while (refused - taken > 1) {
    const length = (taken + refused) >> 1
    if ((await put('a'.repeat(length))) === 201) taken = length
    else refused = length
  }
  expect(taken).toBeGreaterThan(1400)
  expect(await put('b')).toBe(201)
  let next: string | undefined = '/notes?limit=1'
  let names: string[] = []
  while (next !== undefined) {
    const page = await send('GET', next)
    expect(page.status).toBe(200)
    names = [...names, ...JSON.parse(page.text).map(({ id }: { id: string }) => id)]
    next = /<([^>]*)>; rel="next"/.exec(page.field('Link') ?? '')?.[1]
  }
  expect([names.includes('b'), names.includes('a'.repeat(taken)), names.includes('a'.repeat(refused))]).toEqual([
    true,
    true,
    false,
  ])
})

it('a list is walked past the longest name where a page has to end behind it, because the client may not see so many items', async () => {
  const store = memoryStore()
  const authorize = (_: unknown, { method }: { method: string }, current?: { path: string }) =>
    method !== 'GET' || current === undefined || !current.path.startsWith('/notes/a')
  const { send } = await serve(store, { resources: { '/notes': collection({ ids: 'string', authorize }) } })
  const put = async (name: string) => (await send('PUT', `/notes/${name}`, JSON_TYPE, '{}')).status
  let length = 1100
  while ((await put('a'.repeat(length))) !== 201) length--
  expect(length).toBeGreaterThan(1080)
  for (let n = 1; n < 2000; n++) {
    await store.write(`/notes/a${n}`, { contentType: 'application/json', body: '{}' }, { expect: 'absent' })
  }
  expect(await put('b')).toBe(201)
  const page = await send('GET', '/notes?limit=999999999')
  expect(page.text).toBe('[]')
  const next = /<([^>]*)>; rel="next"/.exec(page.field('Link') ?? '')![1]!
  expect(next.length).toBeGreaterThan(2000)
  expect(JSON.parse((await send('GET', next)).text)).toMatchObject([{ id: 'b' }])
})

it.each([
  ['text', collection({ ids: 'string', query: { title: 'string', place: 'string' } })],
  ['sensitive text', collection({ ids: 'string', query: { title: { type: 'string', sensitive: true } } })],
])('a list in an order is walked by QUERY past the longest name that PUT takes: by %s', async (_, notes) => {
  const { send } = await serve(memoryStore(), { resources: { '/notes': notes } })
  const body = JSON.stringify({ title: 't'.repeat(256), place: 'p'.repeat(256) })
  const put = async (name: string) => (await send('PUT', `/notes/${name}`, JSON_TYPE, body)).status
  let length = 1500
  while ((await put('a'.repeat(length))) !== 201) length -= 20
  expect(length).toBeGreaterThan(700)
  expect(await put('b')).toBe(201)
  const names: string[] = []
  for (let next: string | undefined = '/notes'; next !== undefined; ) {
    // The link is a target for GET where it has the query, and otherwise one for the same content.
    const isWhole: boolean = next.includes('sort=')
    const page: Answer = isWhole ? await send('GET', next) : await send('QUERY', next, [FORM], 'sort=title&limit=1')
    expect(page.status).toBe(200)
    names.push(...JSON.parse(page.text).map(({ id }: { id: string }) => id))
    next = /<([^>]*)>; rel="next"/.exec(page.field('Link') ?? '')?.[1]
  }
  expect(names).toEqual(['a'.repeat(length), 'b'])
})

it('a name that is long for its escapes alone is taken', async () => {
  const { send } = await serve(memoryStore(), { resources: { '/notes': collection({ ids: 'string' }) } })
  expect((await send('PUT', `/notes/${'%C3%A9'.repeat(339)}`, JSON_TYPE, '{}')).status).toBe(201)
})

it('a name of usual length is taken where maxTargetLength leaves no room for any cursor', async () => {
  const notes = collection({ ids: 'string', authorize: () => true })
  const { send } = await serve(memoryStore(), { resources: { '/notes': notes }, maxTargetLength: 60 })
  expect((await send('PUT', `/notes/${'a'.repeat(48)}`, JSON_TYPE, '{}')).status).toBe(201)
  expect((await send('PUT', `/notes/${'a'.repeat(49)}`, JSON_TYPE, '{}')).status).toBe(414)
})

it('a name is of usual length by its bytes, which a cursor holds', async () => {
  const notes = collection({ ids: 'string', query: { title: 'string' } })
  const { send } = await serve(memoryStore(), { resources: { '/notes': notes }, maxTargetLength: 200 })
  expect((await send('PUT', `/notes/${'%C3%A9'.repeat(24)}`, JSON_TYPE, '{}')).status).toBe(201)
  expect((await send('PUT', `/notes/${'%C3%A9'.repeat(25)}`, JSON_TYPE, '{}')).status).toBe(414)
})

it.each(['integer', 'uuid'] as const)('POST makes no item whose path no request could have: %s', async (ids) => {
  const { send } = await serve(memoryStore(), { resources: { '/{team}/notes': collection({ ids }) } })
  const post = (length: number) => send('POST', `/${'a'.repeat(length)}/notes`, JSON_TYPE, '{}')
  const made = await post(2004)
  expect([made.status, (await send('GET', made.field('Location')!)).status]).toEqual([201, 200])
  expect((await post(2005)).status).toBe(414)
})

it('a form makes no file whose path no request could have', async () => {
  const jobs = collection({ create: 'accepted', process: async () => ({}) })
  const { send } = await serve(memoryStore(), { resources: { '/jobs': jobs }, maxTargetLength: 60 })
  const post = (name: string) => {
    const part = `--b\r\nContent-Disposition: form-data; name="${name}"; filename="f"\r\n\r\nx\r\n--b--\r\n`
    return send('POST', '/jobs', ['Content-Type: multipart/form-data; boundary=b'], part)
  }
  // An id may have 36 characters.
  const made = await post('a'.repeat(17))
  expect([made.status, (await send('GET', `${made.field('Location')}/${'a'.repeat(17)}`)).status]).toEqual([202, 200])
  for (const name of ['a'.repeat(18), 'é'.repeat(3)]) {
    const refused = await post(name)
    expect([refused.status, refused.text.includes('too long')]).toEqual([422, true])
  }
})
