import { describe, expect, it } from 'vitest'
import type { Route } from '../../src/actions/route.ts'
import { addContentFields } from '../../src/actions/stored-content.ts'
import { HttpError } from '../../src/core/errors.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Page, ResourceStore, StoredResource } from '../../src/stores/types.ts'
import { createFixtureStore, DATE } from '../support/fixture-store.ts'
import { serve, serveFixtures } from './serve.ts'

const text = 'Content-Type: text/plain'
const json = 'Content-Type: application/json'

describe('validators (RFC 9110 §8.8)', () => {
  it('are sent where the store has them, and left out where it has none (rows H36, H38)', async () => {
    const { send } = await serveFixtures()
    const validatorsOf = async (target: string) => {
      const answer = await send('GET', target)
      return [answer.field('ETag'), answer.field('Last-Modified')]
    }
    expect(await validatorsOf('/docs/a.bin')).toEqual(['"e"', DATE])
    expect(await validatorsOf('/docs/w.bin')).toEqual(['W/"w"', DATE])
    expect(await validatorsOf('/docs/n.bin')).toEqual([undefined, undefined])
    expect(await validatorsOf('/docs/d.bin')).toEqual([undefined, DATE])
    expect(await validatorsOf('/docs/part.bin')).toEqual(['"p"', DATE])
  })

  it('are well formed whatever a version is made of (row H39)', async () => {
    const { send } = await serveFixtures()
    const tag = (await send('GET', '/docs/version.bin')).field('ETag')!
    expect(tag).toMatch(/^"[\x21\x23-\x7e]+"$/)
    expect((await send('GET', '/docs/version.bin', [`If-None-Match: ${tag}`])).status).toBe(304)
  })

  it('are those of the state at hand, also where a store makes one state out of another', async () => {
    const inner = memoryStore()
    let change: Partial<StoredResource> = {}
    let state: StoredResource | undefined
    let page: Page | undefined
    const store: ResourceStore = {
      ...inner,
      read(path) {
        state = { ...(state ?? (inner.read(path) as StoredResource)), ...change }
        return state
      },
      async list(collection, options) {
        const last = page ?? (await inner.list(collection, options))
        page = { ...last, items: last.items.map((item) => ({ ...item, ...change })) }
        return page
      },
    }
    const { send } = await serve(store, { resources: { '/a': collection() } })
    await send('POST', '/a', [json], '{"n":1}')
    for (const target of ['/a/1', '/a']) {
      change = {}
      const before = await send('GET', target)
      change = { version: 'another', body: '{"id":1,"n":2}', size: 14 }
      const after = await send('GET', target)
      expect(after.text).toBe(target === '/a' ? '[{"id":1,"n":2}]' : '{"id":1,"n":2}')
      expect(after.field('ETag')).not.toBe(before.field('ETag'))
      expect((await send('GET', target, [`If-None-Match: ${before.field('ETag')}`])).status).toBe(200)
    }
  })

  it('are a failure of the store where they are malformed: such a tag would go out, and never match', async () => {
    const errors: unknown[] = []
    const inner = memoryStore()
    const store: ResourceStore = {
      ...inner,
      read: (path) => ({ ...(inner.read(path) as StoredResource), entityTag: 'abc' }),
    }
    const { send } = await serve(store, { onError: (error) => errors.push(error) })
    await send('PUT', '/a', [text], 'x')
    expect((await send('GET', '/a', ['If-None-Match: abc'])).status).toBe(500)
    expect(errors).toEqual([new TypeError('An entity tag has double quotes around it; the store gave "abc".')])
  })

  it('never tell of a change after the answer (row H37)', async () => {
    const { send } = await serveFixtures()
    for (const method of ['GET', 'HEAD']) {
      const answer = await send(method, '/docs/future.bin')
      expect(Date.parse(answer.field('Last-Modified')!)).toBeLessThanOrEqual(Date.parse(answer.field('Date')!))
    }
    const ahead = await serve(memoryStore({ now: () => Date.now() + 3_600_000 }), {})
    const put = await ahead.send('PUT', '/a', [text], 'x')
    expect(Date.parse(put.field('Last-Modified')!)).toBeLessThanOrEqual(Date.parse(put.field('Date')!))
  })

  it('tell two states apart that follow each other within a millisecond (row H40, threat 45)', async () => {
    const { send } = await serve(memoryStore({ now: () => Date.parse(DATE) }), {})
    const tags = new Set<string | undefined>()
    for (const body of ['a', 'b', 'a']) tags.add((await send('PUT', '/a', [text], body)).field('ETag'))
    await send('DELETE', '/a')
    tags.add((await send('PUT', '/a', [text], 'a')).field('ETag'))
    expect(tags.size).toBe(4)
  })

  it('are not sent with an error (threat 49)', async () => {
    const { send } = await serveFixtures()
    for (const [method, target, ...fields] of [
      ['GET', '/docs/a.bin', 'Range: bytes=99-'],
      ['GET', '/docs/a.bin', 'If-Match: "x"'],
      ['POST', '/docs/a.bin', text],
      ['GET', '/docs/gone'],
    ] as const) {
      const answer = await send(method, target, fields)
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect([answer.field('ETag'), answer.field('Last-Modified')]).toEqual([undefined, undefined])
    }
  })
})

describe('Content-Type and Content-Encoding', () => {
  it.each([
    ['/docs/a.bin', 'application/octet-stream', undefined],
    ['/docs/text.txt', 'text/plain; charset=utf-8', undefined],
    ['/docs/coded.gz', 'text/plain', 'gzip'],
    ['/users/1', 'application/json', undefined],
    ['/users', 'application/json', undefined],
  ])('%s is sent as %s (RFC 9110 §8.3, §8.4, rows H27, H32)', async (target, type, coding) => {
    const { send } = await serveFixtures()
    const answer = await send('GET', target)
    expect([answer.field('Content-Type'), answer.field('Content-Encoding')]).toEqual([type, coding])
  })

  it('keeps the type that was stored, and takes content without one for bytes (rows H28, H29)', async () => {
    const { send } = await serve(memoryStore(), { resources: { '/docs/{name}': document(), '/users': collection() } })
    for (const [type, stored] of [
      ['image/PNG', 'image/PNG'],
      ['text/plain; charset="utf-8"', 'text/plain; charset="utf-8"'],
      ['application/ld+json; profile="https://a.test/#b"', 'application/ld+json; profile="https://a.test/#b"'],
      ['application/LD+JSON;charset=utf-8;profile="a b"', 'application/ld+json; profile="a b"'],
      ['application/json; charset=utf-8', 'application/json'],
      [undefined, 'application/octet-stream'],
    ]) {
      await send('PUT', '/docs/a', type === undefined ? [] : [`Content-Type: ${type}`], '1')
      expect((await send('GET', '/docs/a')).field('Content-Type')).toBe(stored)
    }
    expect((await send('PUT', '/users/1', [], '{}')).status).toBe(415)
    expect((await send('PUT', '/users/1', ['Content-Type: APPLICATION/JSON'], '{}')).status).toBe(201)
    expect((await send('PUT', '/users/1', ['Content-Type: application/json; CHARSET="UTF-8"'], '{}')).status).toBe(204)
    expect((await send('PUT', '/users/1', ['Content-Type: application/json\t;x=1'], '{}')).status).toBe(204)
    expect((await send('GET', '/users/1')).field('Content-Type')).toBe('application/json')
  })

  it('has the parameters of JSON for Accept to ask for (RFC 9110 §8.3.1)', async () => {
    const type = 'application/ld+json; profile="https://www.w3.org/ns/activitystreams"'
    const resources = { '/actors/{name}': document({ types: ['application/ld+json'] }) }
    const { send } = await serve(memoryStore(), { resources })
    await send('PUT', '/actors/a', [`Content-Type: ${type}`], '{}')
    expect((await send('GET', '/actors/a', [`Accept: ${type}`])).status).toBe(200)
  })

  it.each([
    ...['text/html\t; x="', `text/${'a'.repeat(300)}`, 'text/plain, text/html', 'text', '/', 'text/', 'a b/c'],
    ...['text/plain; charset', 'text/plain; =x', 'text/plain;;charset="a'],
  ])('refuses the type %s with 400 (threat 116)', async (type) => {
    const { send } = await serve(memoryStore(), {})
    const answer = await send('PUT', '/a', [`Content-Type: ${type}`], 'x')
    expect([answer.status, (await send('GET', '/a')).status]).toEqual([400, 404])
  })
})

describe('stored content in a browser', () => {
  const sandbox = "sandbox; default-src 'none'"

  it.each([
    'text/html',
    'TEXT/HTML; charset=utf-8',
    'image/svg+xml',
    'text/xml',
    'application/xhtml+xml',
    'application/pdf',
  ])('%s cannot act as a page of this origin (threat 114)', async (type) => {
    const { send } = await serve(memoryStore(), {})
    await send('PUT', '/x', [`Content-Type: ${type}`], '<script>alert(1)</script>')
    for (const range of [[], ['Range: bytes=0-3']]) {
      const answer = await send('GET', '/x', range)
      expect(answer.field('Content-Disposition')).toBe('attachment')
      expect(answer.field('Content-Security-Policy')).toBe(sandbox)
      expect(answer.field('X-Content-Type-Options')).toBe('nosniff')
    }
  })

  it('cannot act as a page of this origin where its path is that of a JSON item by now (threat 114)', () => {
    const stored = { path: '/users/1', version: '1', size: 0, body: '' }
    const route = { isJson: true, allowInline: [] } as unknown as Route
    const fieldsOf = (contentType: string) => {
      const fields: string[] = []
      addContentFields(fields, { ...stored, contentType }, route)
      return fields
    }
    expect(fieldsOf('text/html')).toContain(sandbox)
    expect(fieldsOf('application/json')).toEqual([])
  })

  it.each(['text/plain', 'image/png', 'video/mp4', 'application/json', 'application/octet-stream'])(
    '%s is shown in place',
    async (type) => {
      const { send } = await serve(memoryStore(), {})
      await send('PUT', '/x.html', [`Content-Type: ${type}`], '1')
      const answer = await send('GET', '/x.html')
      expect([answer.field('Content-Disposition'), answer.field('Content-Security-Policy')]).toEqual([
        undefined,
        undefined,
      ])
    },
  )

  it('keeps nothing else of the request that stored it (threat 17)', async () => {
    const { send } = await serve(memoryStore(), {})
    const fields = ['Set-Cookie: a=b', 'X-Evil: 1', 'Content-Language: fr', 'Cache-Control: public', 'ETag: "mine"']
    await send('PUT', '/x', [text, ...fields, 'Content-Disposition: attachment; filename="a"', 'Link: </y>'], 'x')
    const names = (await send('GET', '/x')).fields.map(([name]) => name)
    for (const name of ['set-cookie', 'x-evil', 'content-language', 'content-disposition', 'link'])
      expect(names).not.toContain(name)
    expect((await send('GET', '/x')).field('ETag')).not.toBe('"mine"')
    expect((await send('GET', '/x')).field('Cache-Control')).toBe('no-cache')
  })

  it.each([
    ['plain.txt', 'inline; filename="plain.txt"'],
    ['a"; x=y', undefined],
    ['日本.txt', undefined],
    ['ü".txt', undefined],
    ['a\r\nX-Evil: 1', undefined],
  ])('suggests the file name %j safely (RFC 6266, rows D8, D9, H11, threat 118)', async (filename, expected) => {
    const store = createFixtureStore()
    const read = store.read
    const named = { ...store, read: async (path: string) => ({ ...(await read(path))!, filename }) }
    const { send } = await serve(named, { resources: { '/docs/{name}': document() } })
    const answer = await send('GET', '/docs/text.txt')
    expect(answer.status).toBe(200)
    expect(answer.fields.map(([name]) => name)).not.toContain('x-evil')
    const disposition = answer.field('Content-Disposition')!
    expect(disposition).toMatch(
      /^inline; filename="(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"(?:; filename\*=UTF-8''[\w!#$&+.^`|~%-]*)?$/,
    )
    if (expected !== undefined) expect(disposition).toBe(expected)
  })
})

describe('HEAD (RFC 9110 §9.3.2)', () => {
  it.each([
    ['/docs/a.bin', 200],
    ['/docs/w.bin', 200],
    ['/docs/z.bin', 200],
    ['/docs/coded.gz', 200],
    ['/docs/stream.bin', 200],
    ['/users/1', 200],
    ['/users', 200],
    ['/docs/missing', 404],
    ['/docs/gone', 410],
    ['/nothing', 404],
    ['/docs/%zz', 400],
    [`/${'a'.repeat(3000)}`, 414],
  ])('has the fields of GET for %s, and no content (rows H46, H54, H55, H57, H183)', async (target, status) => {
    const { send } = await serveFixtures({ cors: { origins: ['https://app.example'] } })
    const fieldsOf = async (method: string) => {
      const answer = await send(method, target)
      expect(answer.status).toBe(status)
      return answer.fields.filter(([name]) => name !== 'date')
    }
    expect(await fieldsOf('HEAD')).toEqual(await fieldsOf('GET'))
  })

  it('says when to look again at work that is not done, as GET does (RFC 9110 §10.2.3)', async () => {
    const store = createFixtureStore()
    const content = { contentType: 'application/json', body: '{"id":7,"state":"pending"}' }
    await store.write('/uploads/7', content, { expect: 'absent' })
    const { send } = await serve(store, { resources: { '/uploads': collection({ create: 'accepted' }) } })
    for (const method of ['GET', 'HEAD']) expect((await send(method, '/uploads/7')).field('Retry-After')).toBe('1')
  })

  it('reads no content out of the store (row H56)', async () => {
    let opened = 0
    const store = createFixtureStore()
    const read = store.read
    const counting: typeof store = {
      ...store,
      async read(path, options) {
        const state = await read(path, options)
        const open = () => {
          opened++
          throw new Error('read')
        }
        return options?.metadataOnly === true ? state : { ...state!, size: 26, body: { open } }
      },
    }
    const { send } = await serve(counting, { resources: { '/docs/{name}': document() } })
    expect((await send('HEAD', '/docs/a.bin')).field('Content-Length')).toBe('26')
    expect(opened).toBe(0)
  })
})

describe('safe methods (RFC 9110 §9.2.1, row H50)', () => {
  it('change nothing', async () => {
    const { send, store } = await serveFixtures()
    for (const method of ['GET', 'HEAD', 'OPTIONS'])
      for (const target of ['/docs/a.bin', '/users', '/users/1', '/docs/missing']) await send(method, target)
    expect(store.writes).toEqual([])
  })
})

describe('a store that fails', () => {
  const failing = (error: unknown) => {
    const store = createFixtureStore()
    return {
      ...store,
      read(): never {
        throw error
      },
      list: () => Promise.reject(error),
    }
  }

  it('is answered 500 that tells nothing, and onError is called (rows H180, E5, threat 124)', async () => {
    const errors: unknown[] = []
    const error = new Error('password hunter2 at /var/db')
    const { send } = await serve(failing(error), {
      resources: { '/docs/{name}': document(), '/users': collection() },
      onError: (error) => errors.push(error),
    })
    for (const target of ['/docs/a', '/users', '/users/1']) {
      const answer = await send('GET', target)
      expect(answer.status).toBe(500)
      expect(answer.text).not.toMatch(/hunter2|var|Error:/)
      expect((await send('HEAD', target)).status).toBe(500)
    }
    expect(errors).toEqual(Array(6).fill(error))
  })

  it('may say that it is away: 503 with Retry-After (rows H181, H182)', async () => {
    const away = new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '5' } })
    const { send } = await serve(failing(away), {})
    const answer = await send('GET', '/a')
    expect([answer.status, answer.field('Retry-After')]).toEqual([503, '5'])
  })

  it.each([
    ['EMFILE', 503],
    ['ENOSPC', 507],
  ])('with %s is answered %i (threat 140)', async (code, status) => {
    const { send } = await serve(failing(Object.assign(new Error('no'), { code })), { onError() {} })
    expect((await send('GET', '/a')).status).toBe(status)
  })

  it('is 500 when its stream fails before the first byte, a broken connection after it (threat 149)', async () => {
    const store = createFixtureStore()
    const broken = (chunks: number): typeof store => ({
      ...store,
      read: (path) => ({
        path,
        version: '1',
        contentType: 'text/plain',
        size: 26,
        body: {
          async *open() {
            for (let i = 0; i < chunks; i++) yield Buffer.from('a')
            throw new Error('gone')
          },
        },
      }),
    })
    const resources = { '/docs/{name}': document() }
    const early = await serve(broken(0), { resources, onError() {} })
    expect((await early.send('GET', '/docs/a')).status).toBe(500)
    const late = await serve(broken(3), { resources, onError() {} })
    await expect(late.send('GET', '/docs/a')).rejects.toThrow(/ended/)
    expect((await late.send('HEAD', '/docs/a')).status).toBe(200)
  })
})

describe('a listing', () => {
  it('is read in pages by following Link (RFC 8288)', async () => {
    const { send } = await serve(memoryStore(), { resources: { '/users': collection() } })
    for (let i = 1; i <= 5; i++) await send('POST', '/users', [json], `{"name":"${i}"}`)
    const seen: number[] = []
    let target: string | undefined = '/users?limit=2'
    while (target !== undefined) {
      const page = await send('GET', target)
      seen.push(...(JSON.parse(page.text) as { id: number }[]).map(({ id }) => id))
      const head = await send('HEAD', target)
      expect(head.field('Link')).toBe(page.field('Link'))
      target = /^<([^>]+)>; rel="next"$/.exec(page.field('Link') ?? '')?.[1]
    }
    expect(seen).toEqual([1, 2, 3, 4, 5])
  })

  it.each([
    'limit=0',
    'limit=-1',
    'limit=x',
    'limit=1e3',
    'limit=',
    'limit=99999999999',
    'after=',
    'after=*',
    'after=Mw==',
    'limit=1&limit=2',
    'limit=2&limit=x',
    'after=Mw&after=Mw',
  ])('refuses ?%s with 400 that names the parameter', async (query) => {
    const { send } = await serve(memoryStore(), { resources: { '/users': collection() } })
    const refusal = await send('GET', `/users?${query}`)
    expect(refusal.status).toBe(400)
    const { detail, errors } = JSON.parse(refusal.text)
    expect(errors).toEqual([{ parameter: query.slice(0, 5), detail }])
    expect((await send('HEAD', `/users?${query}`)).status).toBe(400)
  })

  it('ignores the query in what a resource is (threat 36)', async () => {
    const { send } = await serve(memoryStore(), {})
    await send('PUT', '/a?x=1', [text], 'one')
    expect((await send('GET', '/a')).text).toBe('one')
    expect((await send('GET', '/a?y=%zz&__proto__=1')).text).toBe('one')
  })
})

describe('names in targets (threats 22, 26, 30)', () => {
  const names = [
    ...['a b', 'ü', '日本 "', '%2e%2e%2fx', '__proto__', 'constructor', 'toString', 'a:b', 'con', 'nul.txt', 'A', 'a.'],
    ...[
      'a;b',
      "o'brien",
      '$1',
      'a*',
      '(x)',
      '!',
      '...',
      '.hidden',
      '-',
      '0',
      '1',
      '01',
      'x'.repeat(300),
      '\u0301',
      '😀',
    ],
  ]

  it.each(names)('%s comes back under the Location it was given, as itself', async (name) => {
    const { send } = await serve(memoryStore(), { resources: { '/docs/{name}': document() } })
    const target = `/docs/${encodeURIComponent(name)}`
    const put = await send('PUT', target, [text], name)
    expect(put.status).toBe(201)
    expect(decodeURIComponent(put.field('Location')!)).toBe(`/docs/${name}`)
    expect((await send('GET', put.field('Location')!)).text).toBe(name)
    for (const other of names.filter((other) => other !== name))
      expect((await send('GET', `/docs/${encodeURIComponent(other)}`)).status).toBe(404)
  })
})
