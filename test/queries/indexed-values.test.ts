import { describe, expect, it } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Content } from '../../src/stores/types.ts'
import { serve } from '../service/serve.ts'
import { idsOf, JSON_TYPE, QUERY, serveTasks } from './tasks.ts'

const FORM = 'Content-Type: application/x-www-form-urlencoded'
const MERGE = 'Content-Type: application/merge-patch+json'

describe('a value that cannot be indexed', () => {
  it.each([
    [`{"status":"${'x'.repeat(257)}"}`, '/status'],
    [`{"status":"${'ü'.repeat(129)}"}`, '/status'],
    ['{"status":7}', '/status'],
    ['{"status":["open"]}', '/status'],
    [`{"status":"${'€'.repeat(86)}"}`, '/status'],
    ['{"priority":"high"}', '/priority'],
    ['{"priority":9007199254740992}', '/priority'],
    ['{"priority":-9007199254740994}', '/priority'],
    ['{"priority":1e300}', '/priority'],
    ['{"done":"true"}', '/done'],
    ['{"done":0}', '/done'],
    ['{"dueAt":"tomorrow"}', '/dueAt'],
    ['{"dueAt":"2026-01-01"}', '/dueAt'],
    ['{"dueAt":1767225600}', '/dueAt'],
    ['{"address":{"city":false}}', '/address/city'],
  ])('is 422 with a pointer, by POST, PUT and PATCH: %s', async (body, pointer) => {
    const { send } = await serveTasks()
    for (const [method, target, type] of [
      ['POST', '/tasks', JSON_TYPE],
      ['PUT', '/tasks/1', JSON_TYPE],
      ['PUT', '/tasks/77', JSON_TYPE],
      ['PATCH', '/tasks/1', MERGE],
    ] as const) {
      const answer = await send(method, target, [type], body)
      expect([method, answer.status]).toEqual([method, 422])
      expect(JSON.parse(answer.text).errors.map((fault: { pointer: string }) => fault.pointer)).toEqual([pointer])
    }
    expect(idsOf((await send('GET', '/tasks')).text)).toEqual([1, 2, 3, 4, 5])
  })

  it.each([
    [`{"status":"${'x'.repeat(256)}"}`, `status=${'x'.repeat(256)}`],
    ['{"priority":9007199254740991}', 'priority=9007199254740991'],
    ['{"priority":-0.0}', 'priority=0'],
    ['{"priority":1.5e-7}', 'priority=0.00000015'],
    ['{"status":""}', 'status='],
    ['{"status":"\\u0001\\"\\\\"}', 'status=%01%22%5C'],
    ['{"status":"a&b=c+d"}', 'status=a%26b%3Dc%2Bd'],
    ['{"address":{"city":"ü😀"}}', 'city=%C3%BC%F0%9F%98%80'],
    ['{"address":"Oslo","status":"special"}', 'status=special&city[exists]=false'],
    ['{"status":null,"priority":77}', 'priority=77&status[exists]=false'],
  ])('%s is found by %s', async (body, query) => {
    const { send } = await serveTasks()
    expect((await send('POST', '/tasks', [JSON_TYPE], body)).status).toBe(201)
    expect(idsOf((await send('GET', `/tasks?${query}`)).text)).toEqual([6])
  })
})

describe('values are taken on every way to write', () => {
  it('as forms, multipart and text, and from the id', async () => {
    const { send } = await serve(memoryStore(), {
      resources: {
        '/a': collection({
          query: { id: 'number', text: 'string', size: { type: 'number', pointer: '/photo/size' } },
          textProperty: 'text',
          files: { photo: {} },
        }),
      },
    })
    await send('POST', '/a', [FORM], 'text=form')
    await send('POST', '/a', ['Content-Type: text/plain'], 'plain')
    const parts = ['--b', 'Content-Disposition: form-data; name="text"', '', 'multi', '--b']
    parts.push('Content-Disposition: form-data; name="photo"; filename="p"', '', 'PNG', '--b--', '')
    await send('POST', '/a', ['Content-Type: multipart/form-data; boundary=b'], parts.join('\r\n'))
    const find = async (query: string) => idsOf((await send('GET', `/a?${query}`)).text)
    expect(await find('text=form&text=plain')).toEqual([1, 2])
    expect(await find('text=multi&size=3')).toEqual([3])
    expect(await find('id[gt]=1&sort=-id')).toEqual([3, 2])
    await send('PUT', '/a/3', [JSON_TYPE], '{"text":"put"}')
    expect(await find('text=put&size=3')).toEqual([3])
    await send('PUT', '/a/9', [JSON_TYPE], '{"text":"put"}')
    expect(await find('text=put&id=9')).toEqual([9])
    const long = await send('POST', '/a', [FORM], `text=${'x'.repeat(257)}`)
    expect([long.status, JSON.parse(long.text).errors[0].pointer]).toEqual([422, '/text'])
  })

  it('with keys, when what was removed softly is restored, and with random ids', async () => {
    const { send } = await serve(memoryStore(), {
      resources: {
        '/a': collection({ query: { text: 'string' }, idempotency: 'optional', deletion: 'soft' }),
        '/b': collection({ query: { text: 'string' }, ids: 'uuid' }),
      },
    })
    const find = async (path: string) => JSON.parse((await send('GET', path)).text).length
    const key = 'Idempotency-Key: "0123456789abcdef"'
    for (let i = 0; i < 2; i++) await send('POST', '/a', [JSON_TYPE, key], '{"text":"x"}')
    expect(await find('/a?text=x')).toBe(1)
    await send('PATCH', '/a/1', [MERGE, key], '{"text":"y"}')
    expect([await find('/a?text=x'), await find('/a?text=y')]).toEqual([0, 1])
    await send('DELETE', '/a/1')
    expect(await find('/a?text=y')).toBe(0)
    await send('PUT', '/a/1', [JSON_TYPE], '{"text":"z"}')
    expect(await find('/a?text=z')).toBe(1)
    await send('POST', '/b', [JSON_TYPE], '{"text":"x"}')
    expect(await find('/b?text=x')).toBe(1)
  })

  it('of accepted items, whose state can be asked for', async () => {
    const { send } = await serve(memoryStore(), {
      resources: {
        '/jobs': collection({
          create: 'accepted',
          query: { state: 'string', result: 'number' },
          scope: ({ headers }) => ({ owner: headers['x-user'] as string }),
          process: async () => ({ result: 7 }),
        }),
      },
    })
    const user = 'X-User: ada'
    expect((await send('POST', '/jobs', [JSON_TYPE, user], '{}')).status).toBe(202)
    let found: readonly unknown[] = []
    for (let attempts = 0; found.length === 0 && attempts < 500; attempts++) {
      const answer = await send('GET', '/jobs?state=ready&result=7', [user])
      expect(answer.status).toBe(200)
      found = JSON.parse(answer.text)
    }
    expect(found).toEqual([{ id: 1, owner: 'ada', state: 'ready', result: 7 }])
    expect((await send('GET', '/jobs/1', ['X-User: eve'])).status).toBe(404)
  })
})

describe('the index of a collection', () => {
  it.each([
    ['query', { query: { text: 'string' } } as const],
    ['query and scope', { query: { text: 'string' }, scope: () => ({ owner: 'ada' }) } as const],
  ])('is made once, and not for every write: %s', async (_, options) => {
    const memory = memoryStore()
    const given: Content['indexed'][] = []
    const { send } = await serve(
      {
        ...memory,
        create: (path, content, options) =>
          memory.create(
            path,
            (name) => {
              const own = typeof content === 'function' ? content(name) : content
              given.push(own.indexed)
              return own
            },
            options,
          ),
      },
      { resources: { '/a': collection(options) } },
    )
    for (const text of ['x', 'y']) await send('POST', '/a', [JSON_TYPE], JSON.stringify({ text }))
    expect(given.map((indexed) => indexed?.values['text'])).toEqual(['x', 'y'])
    expect(given[1]?.index).toBe(given[0]?.index)
  })
})

describe('the options query, scope and count', () => {
  it.each([
    [{ query: { limit: 'string' } }, 'the name "limit"'],
    [{ query: { 'a[b]': 'string' } }, 'the name "a[b]"'],
    [{ query: { '-a': 'string' } }, 'the name "-a"'],
    [{ query: { '': 'string' } }, 'the name ""'],
    [JSON.parse('{"query":{"__proto__":"string"}}'), 'the name "__proto__"'],
    [{ query: { a: 'text' } }, "query.a takes as type: one of 'string', 'number', 'boolean', 'date-time'"],
    [{ query: { a: 'toString' } }, 'query.a takes as type'],
    [{ query: { a: 5 } }, 'query.a, a property of its items: one of'],
    [{ query: { filter: { status: 'string' } } }, 'query.filter, a property of its items: one of'],
    [
      { query: { a: { type: 'string', pointer: 'x' } } },
      "query.a takes as pointer: a JSON Pointer to a property, such as '/address/city'",
    ],
    [{ query: { a: { type: 'string', pointer: '' } } }, 'pointer'],
    [{ query: { a: { type: 'string', pointer: '/~2' } } }, 'pointer'],
    [{ query: { a: { type: 'string', sensitiv: true } } }, 'Did you mean "sensitive"?'],
    [{ query: { a: { type: 'string', sensitive: 1 } } }, 'sensitive: true or false'],
    [{ query: [] }, 'collection takes as query'],
    [{ query: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`p${i}`, 'string'])) }, '17 properties'],
    [{ query: QUERY, types: ['text/plain'] }, 'query, which needs items of JSON'],
    [{ scope: () => undefined, types: ['*/*'] }, 'scope, which needs items of JSON'],
    [{ scope: 'owner' }, 'collection takes as scope: a function, or an object with properties (a list of names)'],
    [{ scope: { properties: [], values: () => undefined } }, 'scope takes as properties'],
    [{ scope: { properties: ['id'], values: () => undefined } }, 'scope has the property id'],
    [{ scope: { properties: ['a'], value: () => undefined } }, 'collection takes as scope'],
    [
      { files: { a: {} }, scope: { properties: ['a'], values: () => undefined } },
      'a in files and in the properties of scope',
    ],
    [{ scope: { properties: ['__proto__'], values: () => undefined } }, 'scope has the property __proto__'],
    [
      {
        query: Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`p${i}`, 'string'])),
        scope: { properties: ['a'], values: () => undefined },
      },
      '17 properties in query and scope',
    ],
    [{ count: 'yes' }, 'count: true or false'],
  ])('are checked: %j', (options, message) => {
    expect(() => collection(options as never)).toThrow(message)
  })

  it.each(['query', 'scope', 'count'] as const)('need a store that supports queries: %s', async (option) => {
    const { supports: _, ...store } = memoryStore()
    const resources = {
      '/tasks': collection({ [option]: { query: QUERY, scope: () => undefined, count: true }[option] }),
    }
    await expect(serve(store, { resources })).rejects.toThrow(
      `/tasks has ${option}, which needs a store that supports queries`,
    )
  })

  it('are failures of the service where a scope gives more than is declared, or than an index can have', async () => {
    const errors: Error[] = []
    const many = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`p${i}`, 'string' as const]))
    const { send } = await serve(memoryStore(), {
      resources: {
        '/a': collection({ scope: { properties: ['owner'], values: () => ({ team: 1 }) } }),
        '/b': collection({ query: many, scope: () => ({ owner: 1 }) }),
      },
      onError: (error) => errors.push(error as Error),
    })
    expect([(await send('GET', '/a')).status, (await send('GET', '/b')).status]).toEqual([500, 500])
    expect(errors.map(({ message }) => message)).toEqual([
      'scope of /a gives team, which its properties do not name.',
      '/b has 17 properties in query and scope; an index has at most 16.',
    ])
  })

  it('take an id that is a number for text where the ids of the collection are text', async () => {
    const { send } = await serve(memoryStore(), {
      resources: { '/a': collection({ ids: 'string', query: { id: 'string' } }) },
    })
    const made = await send('POST', '/a', [JSON_TYPE], '{}')
    expect([made.status, made.text]).toEqual([201, '{"id":1}'])
    for (const name of ['b', '10']) expect((await send('PUT', `/a/${name}`, [JSON_TYPE], '{}')).status).toBe(201)
    const find = async (query: string) => idsOf((await send('GET', `/a?${query}`)).text)
    expect(await find('id=1')).toEqual([1])
    expect(await find('id=10&id=b&sort=-id')).toEqual(['b', 10])
  })

  it('share a property that is in both', async () => {
    const { send } = await serve(memoryStore(), {
      resources: {
        '/a': collection({
          query: { owner: 'string' },
          scope: ({ headers }) => ({ owner: headers['x-user'] as string }),
        }),
      },
    })
    for (const user of ['ada', 'bob', 'ada']) await send('POST', '/a', [JSON_TYPE, `X-User: ${user}`], '{}')
    const find = async (query: string) => idsOf((await send('GET', `/a?${query}`, ['X-User: ada'])).text)
    expect(await find('owner=ada')).toEqual([1, 3])
    expect(await find('owner=bob')).toEqual([])
    expect(await find('owner[ne]=ada')).toEqual([])
    expect(await find('owner[exists]=true&sort=-owner')).toEqual([1, 3])
  })
})

describe('an item that its id and its owner make larger than the limit of content', () => {
  it('is in lists, and is that of its owner, once the definition has changed', async () => {
    const store = memoryStore()
    const scope = { properties: ['owner'], values: () => ({ owner: 'ann' }) }
    const open = (query: typeof QUERY) =>
      serve(store, { resources: { '/tasks': collection({ scope, query }) }, limits: { bodySize: 100 } })
    const before = await open({ status: 'string' })
    const body = JSON.stringify({ status: 'open', text: 'x'.repeat(100 - '{"status":"open","text":""}'.length) })
    expect((await before.send('POST', '/tasks', [JSON_TYPE], body)).status).toBe(201)
    const after = await open({ status: 'string', text: 'string' })
    expect((await after.send('GET', '/tasks/1')).status).toBe(200)
    expect(idsOf((await after.send('GET', '/tasks?text[exists]=true')).text)).toEqual([1])
  })
})
