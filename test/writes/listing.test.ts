import { afterEach, describe, expect, it } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { JSON_TYPE, jsonOf, multipartOf, startService, type Target } from './support.ts'

let target: Target | undefined
afterEach(() => target?.close())

describe('a listing', () => {
  it('is JSON whatever its items began with, and however large they are (row U6)', async () => {
    target = await startService({ resources: { '/things': collection() }, limits: { bodySize: 1000 } })
    const put = (path: string, body: string) =>
      target!.store.write(path, { contentType: 'application/json', body }, { expect: 'any' })
    await target.send('PUT', '/things/1', { fields: JSON_TYPE, body: '\ufeff{"a":1}' })
    await put('/things/2', '{"id":2,"a":2}')
    await put('/things/3', `{"id":1},{"forged":"${'x'.repeat(2000)}"}`)
    const list = await target.send('GET', '/things')
    expect(list.json()).toEqual([
      { id: 1, a: 1 },
      { id: 2, a: 2 },
      expect.objectContaining({ href: '/things/3', type: 'application/json' }),
    ])
  })
})

it('a listing that is asked for by an encoded cursor names the next page once', async () => {
  target = await startService({ resources: { '/things': collection() } })
  for (let i = 0; i < 3; i++) await target.send('POST', '/things', { fields: JSON_TYPE, body: '{}' })
  const nextOf = async (path: string): Promise<string> =>
    /<([^>]+)>; rel="next"/.exec((await target!.send('GET', path)).field('link') ?? '')?.[1] ?? ''
  const second = await nextOf('/things?limit=1')
  const third = await nextOf(second.replace('after', '%61fter'))
  expect(third.match(/fter=/g)).toHaveLength(1)
  expect((await target.send('GET', third)).json()).toEqual([{ id: 3 }])
  // A cursor has one spelling.
  for (const other of ['=', '.', '%20']) expect((await target.send('GET', third + other)).status).toBe(400)
})

it('a full page has another tag once there is a next one: a client that has the page learns of it', async () => {
  target = await startService({ resources: { '/things': collection() } })
  const post = () => target!.send('POST', '/things', { fields: JSON_TYPE, body: '{}' })
  await post()
  const first = await target.send('GET', '/things?limit=1')
  const fields = { 'If-None-Match': first.field('etag')! }
  expect((await target.send('GET', '/things?limit=1', { fields })).status).toBe(304)
  await post()
  const second = await target.send('GET', '/things?limit=1', { fields })
  expect([second.status, second.text, second.field('link')]).toEqual([200, first.text, expect.stringContaining('next')])
})

describe('a listing of items of any type', () => {
  const FORGED = '{"id":1,"href":"/docs/1","type":"image/png","size":3}'

  it.each([
    ['without resources', undefined],
    ["of types: ['*/*']", { '/docs': collection({ types: ['*/*'] }) }],
    [
      "of types: ['application/json', 'image/png']",
      { '/docs': collection({ types: ['application/json', 'image/png'] }) },
    ],
  ] as const)('%s names every item, and none poses as another (issue 17, 11)', async (_, resources) => {
    target = await startService(resources === undefined ? {} : { resources })
    await target.send('PUT', '/docs/1', { fields: { 'Content-Type': 'image/png' }, body: 'png' })
    await target.send('PUT', '/docs/2', { fields: JSON_TYPE, body: FORGED })
    await target.send('PUT', '/docs/3', { fields: JSON_TYPE, body: '[{"id":1}]' })
    const list = await target.send('GET', '/docs')
    expect(list.json()).toEqual([
      { id: 1, href: '/docs/1', type: 'image/png', size: 3 },
      { id: 2, href: '/docs/2', type: 'application/json', size: FORGED.length },
      { id: 3, href: '/docs/3', type: 'application/json', size: 10 },
    ])
    expect((await target.send('HEAD', '/docs')).field('content-length')).toBe(list.field('content-length'))
  })

  it('names an item that POST has made (issue 17, 11)', async () => {
    target = await startService()
    const made = await target.send('POST', '/things', jsonOf({ name: 'x' }))
    expect([made.status, made.json()]).toEqual([201, { id: 1, name: 'x' }])
    const list = await target.send('GET', '/things')
    expect(list.json()).toEqual([{ id: 1, href: '/things/1', type: 'application/json', size: 19 }])
  })

  it('never holds the content of a file, which is unchecked (issue 16, 14)', async () => {
    target = await startService()
    const files = ['{"id":9', 'x'].map((content, index) => ({
      name: `f${index}`,
      filename: 'a.json',
      type: 'application/json',
      content,
    }))
    expect((await target.send('POST', '/things', multipartOf([{ name: 'a', content: 'b' }, ...files]))).status).toBe(
      201,
    )
    // The item goes, so that the files are what its path lists.
    await target.store.remove('/things/1', { expect: 'any', mode: 'erase' })
    const list = await target.send('GET', '/things/1')
    expect(list.json()).toEqual([
      { id: 'f0', href: '/things/1/f0', type: 'application/json', size: 7 },
      { id: 'f1', href: '/things/1/f1', type: 'application/json', size: 1 },
    ])
  })

  it('shows JSON of another definition by its facts (issue 17, 11)', async () => {
    const resources = { '/users': collection({ ids: 'string' }), '/users/forged': document() }
    target = await startService({ resources })
    await target.send('PUT', '/users/1', jsonOf({ name: 'Ann' }))
    await target.send('PUT', '/users/forged', jsonOf({ id: 1, name: 'Eve' }))
    expect((await target.send('GET', '/users')).json()).toEqual([
      { id: 1, name: 'Ann' },
      { id: 'forged', href: '/users/forged', type: 'application/json', size: 21 },
    ])
  })
})

it('never has more items on a page than pageSize.max, whatever limit asks for', async () => {
  const pageSize = { default: 1, max: 2 }
  const resources = {
    '/plain': collection({ pageSize }),
    '/queried': collection({ pageSize, query: { n: 'number' } }),
  }
  const target = await startService({ resources })
  for (const path of ['/plain', '/queried']) {
    for (let n = 0; n < 4; n++) await target.send('POST', path, jsonOf({ n }))
    const sizeOf = async (query: string) => (await target.send('GET', path + query)).json().length
    expect([await sizeOf(''), await sizeOf('?limit=2'), await sizeOf('?limit=3')]).toEqual([1, 2, 2])
    expect(await sizeOf('?limit=999999999')).toBe(2)
  }
  await target.close()
})
