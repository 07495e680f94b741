import { describe, expect, it } from 'vitest'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { HttpError } from '../../src/core/errors.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type Served, serve } from '../service/serve.ts'
import type { Answer } from '../support/answer.ts'
import { idsOf, JSON_TYPE, linkOf } from './tasks.ts'

const MERGE = 'Content-Type: application/merge-patch+json'
const JSON_PATCH = 'Content-Type: application/json-patch+json'

/** Everything that a client could tell two answers apart by. */
const shown = ({ status, fields, text }: Answer) => ({
  status,
  fields: fields.filter(([name]) => name !== 'date'),
  text,
})

/** Sends a request as a user; the boss sees all items. */
type As = (user: string, ...request: Parameters<Served['send']>) => Promise<Answer>

async function serveNotes(
  options: Omit<CollectionOptions, 'files'> & { readonly files?: { readonly photo: object } } = {},
  service: ServiceOptions = {},
  store = memoryStore(),
): Promise<As> {
  const { send } = await serve(store, {
    ...service,
    resources: {
      '/notes': collection({
        scope: ({ headers }) => (headers['x-user'] === 'boss' ? undefined : { owner: headers['x-user'] as string }),
        query: { text: 'string' },
        count: true,
        ...options,
      }),
    },
  })
  return (user, method, target, fields = [], body) =>
    send(method, target, [...(user === '' ? [] : [`X-User: ${user}`]), ...fields], body)
}

/** Makes a note. @returns its path */
async function post(as: As, user: string, note: object): Promise<string> {
  const created = await as(user, 'POST', '/notes', [JSON_TYPE], JSON.stringify(note))
  expect(created.status, created.text).toBe(201)
  return created.field('Location')!
}

describe('items of a scope', () => {
  it('are given its properties by the server, and are all that a list shows and counts', async () => {
    const as = await serveNotes()
    await post(as, 'ada', { text: 'a' })
    await post(as, 'bob', { text: 'b' })
    const created = await as('ada', 'POST', '/notes', [JSON_TYPE], '{"text":"c","owner":"ada"}')
    expect(JSON.parse(created.text)).toEqual({ id: 3, text: 'c', owner: 'ada' })
    for (const [user, ids] of [
      ['ada', [1, 3]],
      ['bob', [2]],
      ['eve', []],
      ['boss', [1, 2, 3]],
    ] as const) {
      const list = await as(user, 'GET', '/notes?count=true')
      expect([user, idsOf(list.text), list.field('X-Total-Count')]).toEqual([user, ids, String(ids.length)])
      expect(list.field('Cache-Control')).toBe('private, no-cache')
      expect(idsOf((await as(user, 'GET', '/notes?text=b')).text)).toEqual(ids.filter((id) => id === 2))
    }
    expect((await as('ada', 'GET', '/notes/1')).field('Cache-Control')).toBe('private, no-cache')
  })

  it('do not exist for others, whatever is asked of them: the answer is that of a path that never existed', async () => {
    for (const options of [
      {},
      { deletion: 'soft' },
      { preconditions: 'required' },
      { idempotency: 'optional' },
    ] as const) {
      const as = await serveNotes(options)
      const path = await post(as, 'ada', { text: 'secret' })
      const tag = (await as('ada', 'GET', path)).field('ETag')
      for (const [method, fields, body] of [
        ['GET', []],
        ['HEAD', []],
        ['GET', [`If-None-Match: ${tag}`]],
        ['GET', ['If-None-Match: *']],
        ['GET', [`If-Match: ${tag}`]],
        ['GET', ['If-Match: "x"']],
        ['GET', ['If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT']],
        ['GET', ['Range: bytes=9999-']],
        ['GET', ['Accept: image/png']],
        ['GET', ['Want-Repr-Digest: sha-256=1']],
        ['DELETE', []],
        ['DELETE', ['If-Match: "x"']],
        ['DELETE', [`If-Match: ${tag}`]],
        ['PUT', [JSON_TYPE], '{"text":"mine"}'],
        ['PUT', [JSON_TYPE, 'If-None-Match: *'], '{"text":"mine"}'],
        ['PUT', [JSON_TYPE, `If-Match: ${tag}`], '{"text":"mine"}'],
        ['PUT', [JSON_TYPE], '{"text":"mine","owner":"ada"}'],
        ['PUT', [JSON_TYPE], '{'],
        ['PUT', ['Content-Type: text/csv'], 'a'],
        ['PATCH', [MERGE], '{"text":"mine"}'],
        ['PATCH', [MERGE, 'If-Match: "x"'], '{"text":"mine"}'],
        ['PATCH', [MERGE, 'Idempotency-Key: "0123456789abcdef"'], '{"text":"mine"}'],
        ['PATCH', [JSON_PATCH], '[{"op":"test","path":"/text","value":"secret"}]'],
        ['PATCH', [JSON_PATCH], '[{"op":"test","path":"/text","value":"other"}]'],
        ['PATCH', [JSON_PATCH], '[{"op":"remove","path":"/nothing"}]'],
        ['PATCH', [JSON_PATCH], '{'],
        ['POST', [JSON_TYPE], '{}'],
        ['OPTIONS', []],
      ] as const) {
        const hidden = await as('eve', method, path, fields, body)
        const absent = await as('eve', method, '/notes/99', fields, body)
        expect(shown(hidden), `${method} ${fields} ${body}`).toEqual(shown(absent))
        if (!['OPTIONS', 'POST'].includes(method)) expect([404, 406, 415]).toContain(hidden.status)
      }
      const read = await as('ada', 'GET', path)
      expect([read.status, JSON.parse(read.text).text]).toEqual([200, 'secret'])
    }
  })

  it('stay so when they are removed: 404 and not 410', async () => {
    for (const deletion of ['hard', 'soft'] as const) {
      const as = await serveNotes({ deletion })
      const path = await post(as, 'ada', { text: 'a' })
      expect((await as('ada', 'DELETE', path)).status).toBe(204)
      const absent = await as('eve', 'GET', '/notes/99')
      expect(shown(await as('eve', 'GET', path))).toEqual(shown(absent))
      expect((await as('boss', 'GET', path)).status).toBe(410)
      // A removal for good leaves no properties that say whose it was.
      expect((await as('ada', 'GET', path)).status).toBe(deletion === 'soft' ? 410 : 404)
      const restored = await as('eve', 'PUT', path, [JSON_TYPE], '{"text":"mine"}')
      expect(restored.status).toBe(404)
      if (deletion === 'soft') {
        expect((await as('ada', 'PUT', path, [JSON_TYPE], '{"text":"back"}')).status).toBe(201)
        expect(JSON.parse((await as('ada', 'GET', path)).text)).toEqual({ id: 1, text: 'back', owner: 'ada' })
      }
    }
  })

  it('are shown among the removed ones to their caller alone', async () => {
    const as = await serveNotes({ deletion: 'soft', authorize: () => true })
    for (const user of ['ada', 'bob']) await as(user, 'DELETE', await post(as, user, { text: user }))
    for (const user of ['ada', 'bob']) {
      const list = await as(user, 'GET', '/notes?deleted=true&count=true')
      expect([JSON.parse(list.text).map(({ text }: { text: string }) => text), list.field('X-Total-Count')]).toEqual([
        [user],
        '1',
      ])
      expect((await as(user, 'GET', '/notes?count=true')).field('X-Total-Count')).toBe('0')
    }
    expect((await as('ada', 'GET', '/notes/1?deleted=true')).status).toBe(200)
    expect(shown(await as('ada', 'GET', '/notes/2?deleted=true'))).toEqual(
      shown(await as('ada', 'GET', '/notes/9?deleted=true')),
    )
  })

  it('have files that others do not see', async () => {
    const as = await serveNotes({ files: { photo: {} } })
    const form = ['--b', 'Content-Disposition: form-data; name="text"', '', 'a', '--b']
    form.push(
      'Content-Disposition: form-data; name="photo"; filename="p.png"',
      'Content-Type: image/png',
      '',
      'PNG',
      '--b--',
      '',
    )
    const created = await as(
      'ada',
      'POST',
      '/notes',
      ['Content-Type: multipart/form-data; boundary=b'],
      form.join('\r\n'),
    )
    expect([created.status, JSON.parse(created.text).owner]).toEqual([201, 'ada'])
    expect((await as('ada', 'GET', '/notes/1/photo')).text).toBe('PNG')
    expect(shown(await as('eve', 'GET', '/notes/1/photo'))).toEqual(shown(await as('eve', 'GET', '/notes/2/photo')))
    const replaced = await as('ada', 'PUT', '/notes/1', [JSON_TYPE], '{"text":"b"}')
    expect([replaced.status, replaced.field('ETag')]).toEqual([204, undefined])
    const { photo, ...rest } = JSON.parse((await as('ada', 'GET', '/notes/1')).text)
    expect([photo.size, rest]).toEqual([3, { id: 1, text: 'b', owner: 'ada' }])
  })

  it('never leave it: another value is 403 that tells nothing, the same value passes', async () => {
    const as = await serveNotes()
    const path = await post(as, 'ada', { text: 'a' })
    for (const [method, type, body] of [
      ['POST', JSON_TYPE, '{"text":"x","owner":"bob"}'],
      ['POST', JSON_TYPE, '{"text":"x","owner":null}'],
      ['POST', JSON_TYPE, '{"text":"x","owner":["ada"]}'],
      ['POST', 'Content-Type: application/x-www-form-urlencoded', 'text=x&owner=bob'],
      ['PUT', JSON_TYPE, '{"text":"x","owner":"bob"}'],
      ['PATCH', MERGE, '{"owner":"bob"}'],
      ['PATCH', MERGE, '{"owner":null}'],
      ['PATCH', JSON_PATCH, '[{"op":"remove","path":"/owner"}]'],
      ['PATCH', JSON_PATCH, '[{"op":"replace","path":"","value":{"id":1}}]'],
      ['PATCH', JSON_PATCH, '[{"op":"move","from":"/text","path":"/owner"}]'],
    ] as const) {
      const answer = await as('ada', method, method === 'POST' ? '/notes' : path, [type], body)
      expect([body, answer.status]).toEqual([body, 403])
      expect(JSON.parse(answer.text).errors).toEqual([{ pointer: '/owner', detail: 'This is set by the server.' }])
    }
    for (const [method, type, body] of [
      ['PUT', JSON_TYPE, '{"id":1,"text":"b","owner":"ada"}'],
      ['PUT', JSON_TYPE, '{"text":"c"}'],
      ['PATCH', MERGE, '{"text":"d","owner":"ada"}'],
      [
        'PATCH',
        JSON_PATCH,
        '[{"op":"test","path":"/owner","value":"ada"},{"op":"replace","path":"/text","value":"e"}]',
      ],
    ] as const) {
      expect((await as('ada', method, path, [type], body)).status, body).toBeLessThan(300)
      expect(JSON.parse((await as('ada', 'GET', path)).text).owner).toBe('ada')
    }
    const form = await as(
      'ada',
      'POST',
      '/notes',
      ['Content-Type: application/x-www-form-urlencoded'],
      'text=x&owner=ada',
    )
    expect(JSON.parse(form.text)).toEqual({ id: 2, text: 'x', owner: 'ada' })
  })

  it('are stored as they were sent where they have its properties and nothing is to see the rest alone', async () => {
    const text = '{"owner": "ada", "id": 1, "text": "b", "n": 1e2}'
    const as = await serveNotes()
    const path = await post(as, 'ada', { owner: 'ada', text: 'a' })
    expect((await as('ada', 'GET', path)).text).toBe('{"id":1,"owner":"ada","text":"a"}')
    const put = await as('ada', 'PUT', path, [JSON_TYPE], text)
    const got = await as('ada', 'GET', path)
    expect(got.text).toBe(text)
    expect([put.status, put.field('ETag')]).toEqual([204, got.field('ETag')])
    expect(JSON.parse((await as('ada', 'GET', '/notes?text=b')).text)).toHaveLength(1)
    expect((await as('bob', 'GET', path)).status).toBe(404)
    // Two values of one property are a malformed document, so none of them passes for the one that was compared.
    const twice = await as('ada', 'PUT', path, [JSON_TYPE], '{"owner":"bob","owner":"ada","id":1}')
    expect(twice.status).toBe(400)
    const hooked = await serveNotes({ beforeWrite: (value) => value })
    await post(hooked, 'ada', { owner: 'ada', text: 'a' })
    expect((await hooked('ada', 'PUT', '/notes/1', [JSON_TYPE], text)).field('ETag')).toBeUndefined()
  })

  it('are created by PUT only with clientIds: true, which tells what paths others have', async () => {
    const scoped = await serveNotes()
    expect((await scoped('ada', 'PUT', '/notes/7', [JSON_TYPE], '{}')).status).toBe(404)
    const as = await serveNotes({ clientIds: true })
    expect((await as('ada', 'PUT', '/notes/7', [JSON_TYPE], '{"text":"a"}')).status).toBe(201)
    expect(JSON.parse((await as('ada', 'GET', '/notes/7')).text)).toEqual({ id: 7, text: 'a', owner: 'ada' })
    expect((await as('eve', 'PUT', '/notes/7', [JSON_TYPE], '{"text":"mine"}')).status).toBe(404)
    expect((await as('eve', 'PUT', '/notes/7', [JSON_TYPE, 'If-None-Match: *'], '{"text":"mine"}')).status).toBe(404)
    expect((await as('ada', 'PUT', '/notes/7', [JSON_TYPE], '{"text":"b"}')).status).toBe(204)
    const soft = await serveNotes({ clientIds: true, deletion: 'soft' })
    await soft('ada', 'PUT', '/notes/7', [JSON_TYPE], '{"text":"a"}')
    await soft('ada', 'DELETE', '/notes/7')
    expect((await soft('eve', 'PUT', '/notes/7', [JSON_TYPE], '{"text":"mine"}')).status).toBe(404)
    expect((await soft('ada', 'PUT', '/notes/7', [JSON_TYPE], '{"text":"b"}')).status).toBe(201)
  })

  it.each([
    ['PUT', JSON_TYPE, '{"text":"mine"}'],
    ['PATCH', MERGE, '{"text":"mine"}'],
    ['DELETE', 'Accept: */*', undefined],
  ])(
    'that are given to another user before a write are not written: %s with If-Match: *',
    async (method, field, body) => {
      const inner = memoryStore()
      const others = await serveNotes({}, {}, inner)
      const path = await post(others, 'ada', { text: 'a' })
      let isDue = true
      const give = async () => {
        if (!isDue) return
        isDue = false
        const given = await others('boss', 'PUT', path, [JSON_TYPE], '{"text":"b","owner":"bob"}')
        expect(given.status).toBe(204)
      }
      const as = await serveNotes(
        {},
        {},
        {
          ...inner,
          write: (...write) => give().then(() => inner.write(...write)),
          remove: (...removal) => give().then(() => inner.remove(...removal)),
        },
      )
      const late = await as('ada', method, path, [field, 'If-Match: *'], body)
      expect([late.status, isDue]).toEqual([404, false])
      expect(JSON.parse((await others('bob', 'GET', path)).text)).toEqual({ id: 1, text: 'b', owner: 'bob' })
    },
  )

  it('of others may be written by a caller without a scope, with any owner', async () => {
    const as = await serveNotes()
    const path = await post(as, 'ada', { text: 'a' })
    expect(await post(as, 'boss', { text: 'b', owner: 'bob' })).toBe('/notes/2')
    expect((await as('boss', 'PATCH', path, [MERGE], '{"owner":"bob"}')).status).toBe(200)
    expect((await as('ada', 'GET', path)).status).toBe(404)
    expect(idsOf((await as('bob', 'GET', '/notes')).text)).toEqual([1, 2])
    await as('boss', 'PUT', path, [JSON_TYPE], '{"text":"c"}')
    expect((await as('bob', 'GET', path)).status).toBe(404)
    expect((await as('boss', 'GET', path)).text).toBe('{"id":1,"text":"c"}')
    const unindexable = await as('boss', 'PUT', path, [JSON_TYPE], `{"owner":"${'x'.repeat(257)}"}`)
    expect([unindexable.status, JSON.parse(unindexable.text).errors[0].pointer]).toEqual([422, '/owner'])
  })
})

describe('a scope', () => {
  it('that lacks a value is 403 for every method, and never everything', async () => {
    const as = await serveNotes()
    const path = await post(as, 'ada', {})
    for (const [method, target, body] of [
      ['GET', '/notes'],
      ['GET', path],
      ['DELETE', path],
      ['POST', '/notes', '{}'],
      ['PUT', path, '{}'],
    ] as const) {
      const answer = await as('', method, target, [JSON_TYPE], body)
      expect([method, answer.status]).toEqual([method, 403])
    }
    expect((await as('x'.repeat(257), 'GET', '/notes')).status).toBe(403)
  })

  it('that is the id of a token without a subject is 403: such tokens do not share items', async () => {
    const { send } = await serve(memoryStore(), {
      resources: { '/notes': collection({ scope: ({ principal }) => ({ owner: principal?.id }) }) },
      auth: { schemes: [bearer((token) => token === 'ada' || { claims: { client: token } })] },
    })
    for (const token of ['one', 'two', 'ada']) {
      const fields = [JSON_TYPE, `Authorization: Bearer ${token}`]
      expect((await send('POST', '/notes', fields, '{}')).status).toBe(403)
      expect((await send('GET', '/notes', fields)).status).toBe(403)
    }
  })

  it('may be found out asynchronously, have several properties, and refuse', async () => {
    const as = await serveNotes({
      scope: async ({ headers }) => {
        const user = headers['x-user'] as string
        if (user === 'nobody') throw new HttpError(403, 'ERR_FORBIDDEN')
        return { team: 7, owner: user, isGuest: false }
      },
    })
    const path = await post(as, 'ada', { text: 'a' })
    expect(JSON.parse((await as('ada', 'GET', path)).text)).toEqual({
      id: 1,
      text: 'a',
      team: 7,
      owner: 'ada',
      isGuest: false,
    })
    expect((await as('bob', 'GET', path)).status).toBe(404)
    expect((await as('nobody', 'GET', path)).status).toBe(403)
    expect((await as('ada', 'PATCH', path, [MERGE], '{"team":8}')).status).toBe(403)
  })

  it.each([[{}], [null], ['ada'], [[]], [{ owner: {} }], [{ owner: Number.NaN }], [{ owner: 2 ** 53 }], [{ id: 1 }]])(
    'that is none is a failure of the service, which shows nothing: %j',
    async (scope) => {
      const errors: unknown[] = []
      const as = await serveNotes({ scope: () => scope as never }, { onError: (error) => errors.push(error) })
      expect((await as('ada', 'GET', '/notes')).status).toBe(500)
      expect(errors).toEqual([expect.objectContaining({ message: expect.stringContaining('scope of /notes gives') })])
    },
  )

  it('has properties that the schema does not see', async () => {
    const seen: unknown[] = []
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) => {
          seen.push(value)
          const { text } = value as { text?: string }
          return { value: { text: text ?? 'default' } }
        },
      },
    }
    const as = await serveNotes({ schema })
    await post(as, 'ada', { text: 'a', owner: 'ada' })
    await post(as, 'boss', { text: 'b', owner: 'bob', extra: 1 })
    await as('ada', 'PUT', '/notes/1', [JSON_TYPE], '{"owner":"ada"}')
    await as('ada', 'PATCH', '/notes/1', [MERGE], '{"text":"c"}')
    expect(seen).toEqual([{ text: 'a' }, { text: 'b', extra: 1 }, {}, { text: 'c' }])
    expect((await as('ada', 'GET', '/notes/1')).text).toBe('{"id":1,"text":"c","owner":"ada"}')
    expect((await as('bob', 'GET', '/notes/2')).text).toBe('{"id":2,"text":"b","owner":"bob"}')
  })

  it('keeps the properties that it has had, for other processes on the store', async () => {
    const store = memoryStore()
    await post(await serveNotes({}, {}, store), 'ada', { text: 'a' })
    const schema = {
      '~standard': { version: 1 as const, vendor: 'test', validate: () => ({ value: {} }) },
    }
    const other = await serveNotes({ schema }, {}, store)
    await post(other, 'boss', { owner: 'bob' })
    expect((await other('bob', 'GET', '/notes/2')).text).toBe('{"id":2,"owner":"bob"}')
  })

  it('finds items that were stored before it', async () => {
    const store = memoryStore()
    const body = '{"id":1,"text":"old","owner":"ada"}'
    await store.write('/notes/1', { contentType: 'application/json', body }, { expect: 'any' })
    const as = await serveNotes({}, {}, store)
    expect((await as('ada', 'GET', '/notes/1')).text).toBe(body)
    expect((await as('ada', 'HEAD', '/notes/1')).status).toBe(200)
    expect((await as('eve', 'GET', '/notes/1')).status).toBe(404)
    for (let attempts = 0; attempts < 50; attempts++) {
      const list = await as('ada', 'GET', '/notes')
      if (list.status === 200) return expect(idsOf(list.text)).toEqual([1])
      expect([list.status, list.field('Retry-After')]).toEqual([503, expect.any(String)])
    }
    expect.unreachable()
  })

  it('tells a removed item that was stored before it by its content, also for HEAD', async () => {
    const store = memoryStore()
    const content = { contentType: 'application/json', body: '{"id":1,"owner":"ada"}' }
    await store.write('/notes/1', content, { expect: 'any' })
    await store.remove('/notes/1', { expect: 'any', mode: 'hide' })
    const as = await serveNotes({ deletion: 'soft' }, {}, store)
    for (const method of ['GET', 'HEAD']) {
      expect((await as('ada', method, '/notes/1')).status).toBe(410)
      expect((await as('eve', method, '/notes/1')).status).toBe(404)
    }
  })

  it('binds cursors and entity tags', async () => {
    const as = await serveNotes()
    for (const user of ['ada', 'ada', 'eve', 'eve']) await post(as, user, {})
    const list = await as('ada', 'GET', '/notes?limit=1')
    const next = linkOf(list.field('Link'), 'next')!
    expect((await as('ada', 'GET', next)).status).toBe(200)
    expect((await as('eve', 'GET', next)).status).toBe(400)
    expect((await as('boss', 'GET', next)).status).toBe(400)
    const empty = [await as('x', 'GET', '/notes'), await as('y', 'GET', '/notes')]
    expect(empty[0]!.field('ETag')).not.toBe(empty[1]!.field('ETag'))
  })

  it('has idempotency keys of its own', async () => {
    const as = await serveNotes({ idempotency: 'optional' })
    const key = 'Idempotency-Key: "0123456789abcdef"'
    const [first, second] = [
      await as('ada', 'POST', '/notes', [JSON_TYPE, key], '{"text":"a"}'),
      await as('eve', 'POST', '/notes', [JSON_TYPE, key], '{"text":"a"}'),
    ]
    expect(JSON.parse(first.text)).toEqual({ id: 1, text: 'a', owner: 'ada' })
    expect(JSON.parse(second.text).owner).toBe('eve')
    const again = await as('ada', 'POST', '/notes', [JSON_TYPE, key], '{"text":"a"}')
    expect([again.text, again.field('Idempotency-Replayed')]).toEqual([first.text, '?1'])
  })

  it('stands beside authorize, which sees nothing of what is out of it', async () => {
    const seen: unknown[] = []
    const as = await serveNotes({
      authorize: (_principal, request, current) => {
        seen.push(current?.value)
        return request.headers['x-user'] !== 'mallory' || current !== undefined
      },
    })
    const path = await post(as, 'ada', { text: 'a' })
    seen.length = 0
    expect((await as('eve', 'GET', path)).status).toBe(404)
    expect((await as('mallory', 'GET', path)).status).toBe(403)
    expect((await as('mallory', 'GET', '/notes/99')).status).toBe(403)
    expect(seen).toEqual([undefined, undefined, undefined])
    expect((await as('ada', 'GET', path)).status).toBe(200)
  })

  it('counts only the entries that authorize lets the caller see', async () => {
    const as = await serveNotes({
      authorize: (_principal, _request, current) => (current?.value as { text?: string })?.text !== 'secret',
    })
    for (const text of ['a', 'secret', 'b']) await post(as, 'ada', { text })
    const list = await as('ada', 'GET', '/notes?count=true&limit=1')
    expect([idsOf(list.text), list.field('X-Total-Count')]).toEqual([[1], '2'])
    expect((await as('ada', 'GET', '/notes?count=true&text=secret')).field('X-Total-Count')).toBe('0')
  })
})
