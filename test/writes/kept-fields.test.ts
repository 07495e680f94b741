import { afterEach, describe, expect, it } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { multipartOf, startService, type Target } from './support.ts'

let target: Target | undefined
afterEach(() => target?.close())

const singleJson = document({ types: ['application/json'] })

it('parameters of a JSON type stay where content is kept as it came, such as the profile of JSON-LD', async () => {
  const resources = { '/docs/{name}': document(), '/notes': collection({ types: ['*/*'] }), '/json/{name}': singleJson }
  target = await startService({ resources })
  const typeOf = async (path: string): Promise<string | undefined> =>
    (await target!.send('GET', path)).field('content-type')
  const profile = 'application/ld+json; profile="http://www.w3.org/ns/json-ld#compacted"'
  for (const [type, kept = type] of [[profile], ['application/json; charset=utf-8', 'application/json']] as const) {
    const content = { fields: { 'Content-Type': type }, body: '{"a":1}' }
    await target.send('PUT', '/docs/a', content)
    const { pathname } = new URL((await target.send('POST', '/notes', content)).field('location')!, 'http://demo.test')
    expect([await typeOf('/docs/a'), await typeOf(pathname)]).toEqual([kept, kept])
    await target.send('PUT', '/json/a', content)
    expect(await typeOf('/json/a')).toBe(kept)
  }
  const patch = { fields: { 'Content-Type': 'application/merge-patch+json' }, body: '{"a":2}' }
  await target.send('PUT', '/docs/b', { fields: { 'Content-Type': profile }, body: '{"a":1}' })
  expect((await target.send('PATCH', '/docs/b', patch)).field('content-type')).toBe(profile)
})

describe('what PATCH says nothing of', () => {
  it('stays: language and file name', async () => {
    target = await startService({
      resources: { '/docs/{name}': document({ storedHeaders: ['Content-Disposition', 'Content-Language'] }) },
    })
    const fields = {
      'Content-Type': 'application/json',
      'Content-Disposition': 'attachment; filename="f.json"',
      'Content-Language': 'de, en-GB',
    }
    await target.send('PUT', '/docs/f', { fields, body: '{"a":1}' })
    await target.send('PATCH', '/docs/f', {
      fields: { 'Content-Type': 'application/merge-patch+json' },
      body: '{"a":2}',
    })
    const answer = await target.send('GET', '/docs/f')
    expect([answer.text, answer.field('content-disposition'), answer.field('content-language')]).toEqual([
      '{"a":2}',
      'inline; filename="f.json"',
      'de, en-GB',
    ])
  })

  it('ignores Content-Language of a patch, which describes the patch', async () => {
    target = await startService({ resources: { '/docs/{name}': document({ storedHeaders: ['Content-Language'] }) } })
    const fields = { 'Content-Type': 'application/json' }
    await target.send('PUT', '/docs/f', { fields: { ...fields, 'Content-Language': 'de' }, body: '{"a":1}' })
    const patch = { 'Content-Type': 'application/merge-patch+json', 'Content-Language': '<script>' }
    expect((await target.send('PATCH', '/docs/f', { fields: patch, body: '{"a":2}' })).status).toBe(200)
    expect((await target.send('GET', '/docs/f')).field('content-language')).toBe('de')
  })

  it('is none where Content-Language is empty', async () => {
    target = await startService({ resources: { '/docs/{name}': document({ storedHeaders: ['Content-Language'] }) } })
    const fields = { 'Content-Type': 'text/plain', 'Content-Language': '' }
    expect((await target.send('PUT', '/docs/f', { fields, body: 'x' })).status).toBe(201)
    expect((await target.send('GET', '/docs/f')).field('content-language')).toBeUndefined()
  })

  it.each([
    ['Content-Language', '<script>'],
    ['Content-Language', 'a'.repeat(5000)],
  ])('and is not stored where it could not be sent again: %s (threats 116, 117)', async (name, value) => {
    target = await startService({
      resources: { '/docs/{name}': document({ storedHeaders: ['Content-Disposition', 'Content-Language'] }) },
    })
    const answer = await target.send('PUT', '/docs/f', {
      fields: { 'Content-Type': 'text/plain', [name]: value },
      body: 'x',
    })
    expect(answer.status).toBe(400)
    expect((await target.send('GET', '/docs/f')).status).toBe(404)
  })
})

describe('Content-Language', () => {
  it('has at most 256 characters', async () => {
    target = await startService({ resources: { '/docs/{name}': document({ storedHeaders: ['Content-Language'] }) } })
    const put = async (length: number): Promise<number> => {
      const value = `${'de, '.repeat(63)}en-${'a'.repeat(length - 255)}`
      expect(value).toHaveLength(length)
      const fields = { 'Content-Type': 'text/plain', 'Content-Language': value }
      return (await target!.send('PUT', '/docs/f', { fields, body: 'x' })).status
    }
    expect([await put(257), await put(256)]).toEqual([400, 201])
  })

  it('is kept without its empty members (RFC 9110 §5.6.1.2)', async () => {
    target = await startService({ resources: { '/docs/{name}': document({ storedHeaders: ['Content-Language'] }) } })
    const put = async (value: string): Promise<string | number | undefined> => {
      const fields = { 'Content-Type': 'text/plain', 'Content-Language': value }
      const { status } = await target!.send('PUT', '/docs/f', { fields, body: 'x' })
      return status === 400 ? status : (await target!.send('GET', '/docs/f')).field('content-language')
    }
    const sent = ['en,de', ', en ,, de-AT,', ',', 'en,,d e', 'en, "de"', 'en,_']
    const kept = []
    for (const value of sent) kept.push(await put(value))
    expect(kept).toEqual(['en,de', 'en, de-AT', undefined, 400, 400, 400])
  })
})

describe('PATCH on what is not JSON', () => {
  it('is 415 before any condition is looked at (row H100)', async () => {
    target = await startService({ resources: { '/docs/{name}': document({ preconditions: 'required' }) } })
    await target.send('PUT', '/docs/t', { fields: { 'Content-Type': 'text/plain' }, body: 'text' })
    for (const more of [{}, { 'If-Match': '"x"' }] as Record<string, string>[]) {
      const fields = { 'Content-Type': 'application/merge-patch+json', ...more }
      expect((await target.send('PATCH', '/docs/t', { fields, body: '{}' })).status).toBe(415)
    }
  })
})

describe('Content-Language of an item', () => {
  const MULTIPART = multipartOf([{ name: 'pic', filename: 'a.png', type: 'image/png', content: 'abc' }])

  it.each([
    ['JSON', { 'Content-Type': 'application/json' }, '{"a":1}'],
    ['a form', MULTIPART.fields, MULTIPART.body],
  ])('is stored by POST of %s, and stays when accepted work has ended', async (_, type, body) => {
    const storedHeaders = ['Content-Language'] as const
    target = await startService({
      resources: {
        '/items': collection({ storedHeaders, files: { pic: { replaceable: true } } }),
        '/work': collection({ storedHeaders, files: { pic: {} }, create: 'accepted', process: () => ({ a: 2 }) }),
      },
    })
    const { send } = target
    const fields = { ...type, 'Content-Language': 'de' }
    const languageOf = async (path: string) => (await send('GET', path)).field('content-language')
    const created = await send('POST', '/items', { fields, body: body! })
    expect([created.status, created.field('content-language'), await languageOf('/items/1')]).toEqual([201, 'de', 'de'])
    expect((await send('POST', '/work', { fields, body: body! })).status).toBe(202)
    await expect.poll(async () => (await send('GET', '/work/1')).json().state).toBe('ready')
    expect(await languageOf('/work/1')).toBe('de')
  })

  it('is stored by PUT of its file', async () => {
    const files = { pic: { replaceable: true } }
    target = await startService({ resources: { '/items': collection({ storedHeaders: ['Content-Language'], files }) } })
    await target.send('POST', '/items', { fields: { 'Content-Type': 'application/json' }, body: '{}' })
    const fields = { 'Content-Type': 'image/png', 'Content-Language': 'de' }
    expect((await target.send('PUT', '/items/1/pic', { fields, body: 'abc' })).status).toBe(201)
    expect((await target.send('GET', '/items/1/pic')).field('content-language')).toBe('de')
  })
})
