import { afterEach, describe, expect, it } from 'vitest'
import type { Authorize, ResourceState } from '../../src/actions/hook-types.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import {
  JSON_PATCH,
  JSON_TYPE,
  jsonOf,
  MERGE_PATCH,
  multipartOf,
  type SendOptions,
  startService,
  type Target,
} from './support.ts'

let target: Target | undefined
afterEach(() => target?.close())

/** The token is the name of the user. */
const auth: NonNullable<ServiceOptions['auth']> = {
  schemes: [bearer((name) => ({ id: name }))],
  requireAuth: () => false,
}
const as = (user: string, fields: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> => ({
  ...fields,
  Authorization: `Bearer ${user}`,
})

/** An item of another owner does not exist; a new one may be made. */
const ownersOnly: Authorize = (principal, _request, current) => {
  if (current === undefined) return true
  return (current.value as { owner?: string } | undefined)?.owner === principal?.id || 'not-found'
}

const OF_ADA = { contentType: 'application/json', body: '{"id":1,"owner":"ada"}' }

/** A store in which, once it is due, another client acts between the next read of `/notes/1` and what follows. */
function createRace(act: (inner: ResourceStore) => unknown): { readonly store: ResourceStore; isDue: boolean } {
  const inner = memoryStore()
  const store: ResourceStore = {
    ...inner,
    async read(path, options) {
      const state = await inner.read(path, options)
      if (race.isDue && path === '/notes/1') {
        race.isDue = false
        await act(inner)
      }
      return state
    },
  }
  const race = { store, isDue: false }
  return race
}

/** All parts of an answer that a client sees. */
const shown = ({ status, text, fields }: Answer) => ({
  status,
  text,
  fields: fields.filter(([name]) => name !== 'date'),
})

const METHODS: readonly (readonly [method: string, fields: Readonly<Record<string, string>>, body?: string])[] = [
  ['GET', {}],
  ['HEAD', {}],
  ['GET', { Range: 'bytes=0-1' }],
  ['PUT', JSON_TYPE, '{"owner":"eve"}'],
  ['PUT', { ...JSON_TYPE, 'If-None-Match': '*' }, '{"owner":"eve"}'],
  ['PATCH', MERGE_PATCH, '{"owner":"eve"}'],
  ['PATCH', JSON_PATCH, '[{"op":"test","path":"/owner","value":"ada"}]'],
  ['DELETE', {}],
  ['DELETE', { 'If-Match': '*' }],
  ['DELETE', { Prefer: 'respond-async' }],
]

describe.each<readonly [string, ServiceOptions, string]>([
  ['without definitions', {}, '/notes/1'],
  ['a document', { resources: { '/notes/{id}': document() } }, '/notes/1'],
  ['an item', { resources: { '/notes': collection() } }, '/notes/1'],
  [
    'an item whose collection has accepted work',
    { resources: { '/notes': collection({ deletion: 'queued' }) } },
    '/notes/1',
  ],
  ['a singleton', { resources: { '/notes/1': singleton({ aliases: ['/n'] }) } }, '/n'],
])('authorize for %s', (_, options, path) => {
  it('is shown the state of the target for every method', async () => {
    const seen: [string, ResourceState | undefined][] = []
    target = await startService({
      ...options,
      auth: {
        ...auth,
        authorize: (...given) => {
          seen.push([given[1].method, given[2]])
          return given.length === 3 && ownersOnly(...given)
        },
      },
    })
    await target.send('PUT', path, jsonOf({ owner: 'ada' }, as('ada')))
    expect(seen.map(([method, current]) => [method, current])).toEqual([['PUT', undefined]])
    for (const [method, fields, body] of METHODS) {
      seen.length = 0
      const answer = await target.send(method, path, { fields: as('eve', fields), ...(body && { body }) })
      if (answer.status === 405) continue // a singleton is not removed
      expect([method, answer.status]).toEqual([method, 404])
      // HEAD is judged as a GET.
      const judged = method === 'HEAD' ? 'GET' : method
      // Where any path may be a list, what is below one that is hidden is judged as where there is no resource.
      const asList = options.resources === undefined && judged === 'GET' ? [['GET', undefined]] : []
      expect(seen).toMatchObject([[judged, { path: '/notes/1', deleted: false, value: { owner: 'ada' } }], ...asList])
    }
    expect((await target.send('GET', path, { fields: as('ada') })).json()).toMatchObject({ owner: 'ada' })
  })
})

describe('a hook with a default for its third parameter', () => {
  it('is given the state all the same: parameters are not counted', async () => {
    target = await startService({
      auth: {
        ...auth,
        authorize: (principal, _request, current = { value: { owner: principal?.id } } as never) =>
          (current.value as { owner: string }).owner === principal?.id,
      },
    })
    await target.send('PUT', '/a', jsonOf({ owner: 'ada' }, as('ada')))
    expect((await target.send('GET', '/a', { fields: as('eve') })).status).toBe(403)
    expect((await target.send('DELETE', '/a', { fields: as('eve') })).status).toBe(403)
    expect((await target.send('GET', '/a', { fields: as('ada') })).status).toBe(200)
  })
})

describe.each<readonly [string, CollectionOptions]>([
  ['no hook', {}],
  ['outbox', { outbox: () => [] }],
  ['afterCommit', { afterCommit: () => undefined }],
  ['beforeWrite', { beforeWrite: (value) => value }],
  ['conflict', { conflict: () => undefined }],
  ['files', { files: { photo: {} } }],
])('an item that another client takes over before the write, with %s', (_, options) => {
  it.each([
    ['PUT', JSON_TYPE, '{"owner":"eve"}'],
    ['PATCH', MERGE_PATCH, '{"n":1}'],
    ['DELETE', {}, undefined],
  ] as const)('is judged anew: %s is 404 and changes nothing', async (method, fields, body) => {
    const race = createRace((inner) => inner.write('/notes/1', OF_ADA, { expect: 'any' }))
    target = await startService(
      { auth, resources: { '/notes': collection({ authorize: ownersOnly, ...options }) } },
      race.store,
    )
    await target.send('PUT', '/notes/1', jsonOf({ owner: 'eve' }, as('eve')))
    race.isDue = true
    const late = await target.send(method, '/notes/1', { fields: as('eve', fields), ...(body && { body }) })
    expect([late.status, race.isDue]).toEqual([404, false])
    expect((await target.send('GET', '/notes/1', { fields: as('ada') })).json()).toEqual({ id: 1, owner: 'ada' })
  })
})

describe('the value of a state', () => {
  const big = (owner: string): string => JSON.stringify({ owner, padding: 'x'.repeat(2_000_000) })

  /** A store that gives large content in pieces and counts what was read of it. */
  function createCountingStore(): { readonly store: ResourceStore; readonly read: { bytes: number } } {
    const inner = memoryStore()
    const read = { bytes: 0 }
    const store: ResourceStore = {
      ...inner,
      async read(...given) {
        const state = await inner.read(...given)
        if (state === undefined || 'removed' in state || state.size < 1000) return state
        const bytes = Buffer.from(state.body as string | Uint8Array)
        const open = async function* (first: number, last: number) {
          read.bytes += last - first + 1
          yield bytes.subarray(first, last + 1)
        }
        return { ...state, body: { open } }
      },
    }
    return { store, read }
  }

  it('is fetched from the store only where the hook reads it', async () => {
    const { store, read } = createCountingStore()
    let usesValue = false
    target = await startService(
      {
        auth: {
          ...auth,
          authorize: async (principal, request, current) => {
            await undefined
            if (!usesValue || current === undefined) return true
            try {
              return (current.value as { owner: string }).owner === principal?.id
            } catch {
              return request.method === 'GET' // a decision without the content must not count
            }
          },
        },
      },
      store,
    )
    await target.send('PUT', '/a', { fields: as('ada', JSON_TYPE), body: big('ada') })
    expect((await target.send('HEAD', '/a', { fields: as('eve') })).status).toBe(200)
    expect(read.bytes).toBe(0)
    usesValue = true
    expect((await target.send('HEAD', '/a', { fields: as('ada') })).status).toBe(200)
    expect(read.bytes).toBe(big('ada').length)
    for (const method of ['GET', 'HEAD', 'DELETE', 'PUT']) {
      const content = method === 'PUT' ? { body: big('eve') } : {}
      const answer = await target.send(method, '/a', { fields: as('eve', JSON_TYPE), ...content })
      expect([method, answer.status]).toEqual([method, 403])
    }
  })

  it.each<[string, Authorize]>([
    [
      'throws without it',
      (principal, _request, current) =>
        current === undefined || (current.value as { owner: string }).owner === principal?.id,
    ],
    [
      'is asynchronous and throws without it',
      async (principal, _request, current) =>
        current === undefined || (current.value as { owner: string }).owner === principal?.id,
    ],
  ])('is fetched for a hook that %s', async (_, authorize) => {
    target = await startService({ auth: { ...auth, authorize } }, createCountingStore().store)
    await target.send('PUT', '/a', { fields: as('ada', JSON_TYPE), body: big('ada') })
    expect((await target.send('HEAD', '/a', { fields: as('ada') })).status).toBe(200)
    expect((await target.send('HEAD', '/a', { fields: as('eve') })).status).toBe(403)
  })

  it('is undefined for other types than JSON, and for JSON above the limit', async () => {
    const seen: unknown[] = []
    target = await startService({
      limits: { bodySize: 10 },
      auth: { ...auth, authorize: (_principal, _request, current) => seen.push(current?.value) > 0 },
    })
    await target.send('PUT', '/a', { fields: { 'Content-Type': 'text/plain' }, body: 'text' })
    await target.store.write('/b', { contentType: 'application/json', body: big('ada') }, { expect: 'any' })
    await target.store.write('/c', { contentType: 'application/json', body: '{"a":1}' }, { expect: 'any' })
    seen.length = 0
    for (const path of ['/a', '/b', '/c']) await target.send('HEAD', path)
    expect(seen).toEqual([undefined, undefined, { a: 1 }])
  })
})

describe('a resource that was deleted', () => {
  const SOFT: ServiceOptions = {
    resources: { '/notes': collection({ deletion: 'soft', authorize: ownersOnly }) },
    auth,
  }

  it('softly is protected like a live resource: strangers neither replace it nor learn of it', async () => {
    target = await startService(SOFT)
    await target.send('POST', '/notes', jsonOf({ owner: 'ada' }))
    expect((await target.send('DELETE', '/notes/1', { fields: as('ada') })).status).toBe(204)
    for (const [method, fields, body] of METHODS) {
      const hidden = await target.send(method, '/notes/1', { fields: as('eve', fields), ...(body && { body }) })
      expect([method, hidden.status]).toEqual([method, 404])
      if (method === 'PUT') continue
      const absent = await target.send(method, '/notes/2', { fields: as('eve', fields), ...(body && { body }) })
      expect(shown(hidden)).toEqual(shown(absent))
    }
    expect((await target.send('GET', '/notes/1?deleted=true', { fields: as('eve') })).status).toBe(404)
    expect((await target.send('GET', '/notes/1', { fields: as('ada') })).status).toBe(410)
    const kept = await target.send('GET', '/notes/1?deleted=true', { fields: as('ada') })
    expect(kept.json()).toEqual({ id: 1, owner: 'ada' })
    expect((await target.send('PUT', '/notes/1', jsonOf({ owner: 'ada', is: 'back' }, as('ada')))).status).toBe(201)
  })

  it('softly while the content of a PUT arrives is protected as well', async () => {
    const race = createRace(async (inner) => {
      await inner.write('/notes/1', OF_ADA, { expect: 'any' })
      await inner.remove('/notes/1', { expect: 'any', mode: 'hide' })
    })
    target = await startService(SOFT, race.store)
    race.isDue = true
    expect((await target.send('PUT', '/notes/1', jsonOf({ owner: 'eve' }, as('eve')))).status).toBe(404)
    expect(race.isDue).toBe(false)
    const kept = await target.send('GET', '/notes/1?deleted=true', { fields: as('ada') })
    expect(kept.json()).toEqual({ id: 1, owner: 'ada' })
  })

  it('softly and taken over by another client before it is restored is judged anew', async () => {
    const race = createRace((inner) => inner.write('/notes/1', OF_ADA, { expect: 'any' }))
    const options = { deletion: 'soft', clientIds: false, authorize: ownersOnly } as const
    target = await startService({ resources: { '/notes': collection(options) }, auth }, race.store)
    await target.send('POST', '/notes', jsonOf({ owner: 'eve' }, as('eve')))
    expect((await target.send('DELETE', '/notes/1', { fields: as('eve') })).status).toBe(204)
    race.isDue = true
    expect((await target.send('PUT', '/notes/1', jsonOf({ owner: 'eve' }, as('eve')))).status).toBe(404)
    expect(race.isDue).toBe(false)
    expect((await target.send('GET', '/notes/1', { fields: as('ada') })).json()).toEqual({ id: 1, owner: 'ada' })
  })

  it('for good looks as if it never existed to those who may not read it, and gone to the others', async () => {
    target = await startService({
      resources: {
        '/notes': collection({ authorize: ownersOnly }),
        '/public': collection({ authorize: (principal, { method }) => method === 'GET' || principal?.id === 'ada' }),
      },
      auth,
    })
    for (const path of ['/notes', '/public']) {
      await target.send('POST', path, jsonOf({ owner: 'ada' }, as('ada')))
      expect((await target.send('DELETE', `${path}/1`, { fields: as('ada') })).status).toBe(204)
    }
    for (const [method, fields, body] of METHODS) {
      if (method === 'PUT') continue
      const options: SendOptions = { fields: as('eve', fields), ...(body && { body }) }
      const gone = await target.send(method, '/notes/1', options)
      expect([method, gone.status]).toEqual([method, 404])
      expect(shown(gone)).toEqual(shown(await target.send(method, '/notes/2', options)))
    }
    expect((await target.send('GET', '/public/1')).status).toBe(410)
    expect((await target.send('DELETE', '/public/1', { fields: as('ada') })).status).toBe(410)
    // The path is free again.
    expect((await target.send('PUT', '/notes/1', jsonOf({ owner: 'eve' }, as('eve')))).status).toBe(201)
  })
})

it('a removed item looks as if it never existed where authorize needs its content, and throws', async () => {
  const authorize: Authorize = (principal, _request, current) =>
    current === undefined || (current.value as { owner: string }).owner === principal?.id
  target = await startService({ resources: { '/notes': collection({ authorize }) }, auth })
  await target.send('POST', '/notes', jsonOf({ owner: 'ada' }, as('ada')))
  expect((await target.send('DELETE', '/notes/1', { fields: as('ada') })).status).toBe(204)
  for (const user of ['ada', 'eve']) {
    expect((await target.send('GET', '/notes/1', { fields: as(user) })).status).toBe(404)
  }
})

describe('files of an item', () => {
  const upload = (fields: Readonly<Record<string, string>> = {}): SendOptions =>
    multipartOf(
      [
        { name: 'owner', content: 'ada' },
        { name: 'file', filename: 'a.json', type: 'application/json', content: '{"owner":"eve"}' },
      ],
      fields,
    )

  it.each(['hard', 'soft', 'queued'] as const)('are as readable as their item is (%s)', async (remove) => {
    target = await startService({
      resources: { '/notes': collection({ deletion: remove, files: { file: {} }, authorize: ownersOnly }) },
      auth,
    })
    expect((await target.send('POST', '/notes', upload(as('ada')))).status).toBe(201)
    const read = async (user: string, query = ''): Promise<number> =>
      (await target!.send('GET', `/notes/1/file${query}`, { fields: as(user) })).status
    expect([await read('ada'), await read('eve')]).toEqual([200, 404])
    const removal = await target.send('DELETE', '/notes/1', { fields: as('ada') })
    const monitor = removal.field('location')
    while (monitor !== undefined) {
      if ((await target.send('GET', monitor, { fields: as('ada') })).json().state === 'done') break
    }
    expect(await read('eve')).toBe(404)
    expect([404, 410]).toContain(await read('ada'))
    if (remove !== 'soft') return
    expect([await read('ada', '?deleted=true'), await read('eve', '?deleted=true')]).toEqual([200, 404])
    const item = await target.send('GET', '/notes/1?deleted=true', { fields: as('ada') })
    const restored = { fields: as('ada', JSON_TYPE), body: item.text }
    expect((await target.send('PUT', '/notes/1', restored)).status).toBe(201)
    expect([await read('ada'), await read('eve')]).toEqual([200, 404])
  })

  it('are there again with an item that an earlier release hid together with them', async () => {
    target = await startService({ resources: { '/notes': collection({ deletion: 'soft', files: { file: {} } }) } })
    await target.send('POST', '/notes', upload())
    await target.store.remove('/notes/1', { expect: 'any', mode: 'hide', related: ['/notes/1/file'] })
    expect((await target.send('GET', '/notes/1/file')).status).toBe(410)
    await target.send('PUT', '/notes/1', jsonOf({ owner: 'ada' }))
    expect((await target.send('GET', '/notes/1/file')).text).toBe('{"owner":"eve"}')
  })

  it('go with their item without definitions, and nothing else does', async () => {
    target = await startService()
    await target.send('POST', '/notes', upload())
    await target.send('PUT', '/notes/1/comment', { fields: { 'Content-Type': 'text/plain' }, body: 'mine' })
    expect((await target.send('GET', '/notes/1/file')).status).toBe(200)
    expect((await target.send('DELETE', '/notes/1')).status).toBe(204)
    expect((await target.send('GET', '/notes/1/file')).status).toBe(410)
    expect((await target.send('GET', '/notes/1/comment')).text).toBe('mine')
  })
})

describe('a principal that may write and not read', () => {
  const SECRET = { id: 1, secret: 'apple', list: [1, 2, 3] }
  /** All may write, the owner may read. */
  const authorize: Authorize = (principal, { method }) =>
    (method !== 'GET' && method !== 'HEAD') || principal?.id === 'owner'

  async function start(options: CollectionOptions = {}, more: Partial<ServiceOptions> = {}) {
    target = await startService({ resources: { '/box': collection({ authorize, ...options }) }, auth, ...more })
    await target.store.write(
      '/box/1',
      { contentType: 'application/json', body: JSON.stringify(SECRET) },
      { expect: 'any' },
    )
    const state = await target.send('HEAD', '/box/1', { fields: as('owner') })
    return { target, tag: state.field('etag')!, date: state.field('last-modified')! }
  }

  it.each<readonly [string, Readonly<Record<string, string>>, string]>([
    ['a right guess', JSON_PATCH, '[{"op":"test","path":"/secret","value":"apple"}]'],
    ['a wrong guess', JSON_PATCH, '[{"op":"test","path":"/secret","value":"pear"}]'],
    ['a path that is there', JSON_PATCH, '[{"op":"test","path":"/list/2","value":0}]'],
    ['a path that is not', JSON_PATCH, '[{"op":"remove","path":"/list/3"}]'],
    ['a copy', JSON_PATCH, '[{"op":"copy","from":"/secret","path":"/known"}]'],
    ['no change', MERGE_PATCH, '{}'],
    ['no change, and the result', { ...MERGE_PATCH, Prefer: 'return=representation' }, '{}'],
    ['no change, and no result', { ...MERGE_PATCH, Prefer: 'return=minimal' }, '{"secret":"pear"}'],
    ['a malformed patch', JSON_PATCH, 'nonsense'],
  ])('learns nothing by PATCH with %s (RFC 5789 §5)', async (_, fields, body) => {
    const { target, tag } = await start()
    const answer = await target.send('PATCH', '/box/1', { fields: as('writer', fields), body })
    expect([answer.status, answer.field('etag'), answer.text.includes('apple')]).toEqual([403, undefined, false])
    expect((await target.send('HEAD', '/box/1', { fields: as('owner') })).field('etag')).toBe(tag)
  })

  it.each(['PUT', 'DELETE', 'POST'])('learns nothing by the conditions of %s (RFC 9110 §13.1)', async (method) => {
    const { target, tag, date } = await start()
    const path = method === 'POST' ? '/box' : '/box/1'
    const content = method === 'DELETE' ? {} : { body: '{}' }
    for (const condition of [
      ...[{ 'If-Match': tag }, { 'If-Match': '"x"' }, { 'If-Match': '*' }],
      ...[{ 'If-None-Match': tag }, { 'If-None-Match': '*' }],
      ...[{ 'If-Unmodified-Since': date }, { 'If-Unmodified-Since': 'Thu, 01 Jan 1970 00:00:00 GMT' }],
      { 'If-Modified-Since': date },
    ] as Readonly<Record<string, string>>[]) {
      const answer = await target.send(method, path, {
        fields: as('writer', { ...JSON_TYPE, ...condition }),
        ...content,
      })
      expect([condition, answer.status]).toEqual([condition, 403])
    }
    expect((await target.send('GET', '/box/1', { fields: as('owner') })).json()).toEqual(SECRET)
  })

  it('may replace and remove, and gets back only its own content', async () => {
    const { target } = await start({ putResponse: 'representation' })
    const replaced = await target.send('PUT', '/box/1', jsonOf({ mine: true }, as('writer')))
    expect([replaced.status, replaced.json()]).toEqual([200, { id: 1, mine: true }])
    const removed = await target.send('DELETE', '/box/1', { fields: as('writer', { Prefer: 'return=representation' }) })
    expect([removed.status, removed.json()]).toEqual([200, { deleted: true, id: 1 }])
  })

  it('does not get the representation by DELETE', async () => {
    const { target } = await start({ deleteResponse: 'representation' })
    expect((await target.send('DELETE', '/box/1', { fields: as('writer') })).status).toBe(403)
    const minimal = as('writer', { Prefer: 'return=minimal' })
    expect((await target.send('DELETE', '/box/1', { fields: minimal })).status).toBe(204)
  })

  it('is held to the scopes of a GET as well (RFC 6750 §3.1)', async () => {
    const schemes = [
      bearer((scope) => ({ id: 'x', claims: { scope } }), {
        scope: ({ method }) => [method === 'GET' ? 'read' : 'write'],
      }),
    ]
    const { target } = await start({ authorize: () => true }, { auth: { schemes, requireAuth: 'all' } })
    const patch = (scope: string) =>
      target.send('PATCH', '/box/1', { fields: { ...MERGE_PATCH, Authorization: `Bearer ${scope}` }, body: '{}' })
    expect((await patch('write')).status).toBe(403)
    expect((await target.send('PUT', '/box/1', jsonOf({}, { Authorization: 'Bearer write' }))).status).toBe(204)
  })

  it('needs the credentials that a GET needs', async () => {
    const { target } = await start({ authorize: () => true, requireAuth: ({ method }) => method === 'GET' })
    expect((await target.send('PATCH', '/box/1', { fields: MERGE_PATCH, body: '{}' })).status).toBe(401)
    expect((await target.send('PUT', '/box/1', jsonOf({}, { 'If-Match': '*' }))).status).toBe(401)
    expect((await target.send('PUT', '/box/1', jsonOf({}))).status).toBe(204)
  })

  it('sees 404 where reading would be 404', async () => {
    const { target } = await start({
      authorize: (principal, { method }) => method !== 'GET' || principal?.id === 'owner' || 'not-found',
    })
    const answer = await target.send('PATCH', '/box/1', { fields: as('writer', MERGE_PATCH), body: '{}' })
    expect(answer.status).toBe(404)
  })
})

describe('the answer to DELETE', () => {
  it('has the tag of what was removed where the definition says so', async () => {
    target = await startService({
      resources: { '/notes': collection({ deleteResponse: 'tag' }), '/plain': collection() },
    })
    for (const [path, hasTag] of [
      ['/notes', true],
      ['/plain', false],
    ] as const) {
      await target.send('POST', path, jsonOf({}))
      const tag = (await target.send('GET', `${path}/1`)).field('etag')
      const removed = await target.send('DELETE', `${path}/1`)
      expect([removed.status, removed.field('etag')]).toEqual([204, hasTag ? tag : undefined])
    }
  })
})
