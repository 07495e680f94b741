import { afterEach, describe, expect, it } from 'vitest'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { jsonOf, multipartOf, startService, type Target } from './support.ts'

let target: Target | undefined
afterEach(() => target?.close())

describe('a schema', () => {
  const isNamed = {
    '~standard': {
      version: 1 as const,
      vendor: 'test',
      validate: (value: unknown) =>
        typeof (value as { name?: unknown }).name === 'string'
          ? { value: value as { name: string } }
          : { issues: [{ message: 'no name', path: ['name'] }] },
    },
  }

  it('holds for JSON, also where other content is taken as it comes', async () => {
    target = await startService({
      limits: { bodySize: 1000 },
      resources: {
        '/docs/{name}': document({ schema: isNamed }),
        '/raw': collection({ types: ['*/*'], schema: isNamed }),
      },
    })
    const put = (body: string, type = 'application/json') =>
      target!.send('PUT', '/docs/a', { fields: { 'Content-Type': type }, body })
    expect((await put('{"name":5}')).status).toBe(422)
    expect((await put('{"name":5}', 'text/plain')).status).toBe(201)
    expect((await put(`{"name":"${'x'.repeat(1000)}"}`)).status).toBe(413)
    expect((await put('x'.repeat(2000), 'text/plain')).status).toBe(204)
    expect((await put('{ "name": "a" }')).status).toBe(204)
    expect((await target.send('GET', '/docs/a')).text).toBe('{ "name": "a" }')
    expect((await target.send('POST', '/raw', jsonOf({ name: 5 }))).status).toBe(422)
    const created = await target.send('POST', '/raw', jsonOf({ name: 'b' }))
    expect(created.status).toBe(201)
    expect((await target.send('GET', created.field('location')!)).text).toBe('{"name":"b"}')
  })

  const changing = {
    '~standard': {
      version: 1 as const,
      vendor: 'test',
      validate: (value: unknown) => {
        const members = value as Record<string, unknown>
        delete members['isAdmin']
        members['level'] ??= 1
        return { value: members as { level: number } }
      },
    },
  }

  it('that changes its input in place is believed all the same', async () => {
    target = await startService({
      resources: { '/one': singleton({ schema: changing }), '/all': collection({ schema: changing }) },
    })
    await target.send('PUT', '/one', jsonOf({ name: 'a', isAdmin: true }))
    expect((await target.send('GET', '/one')).json()).toEqual({ name: 'a', level: 1 })
    await target.send('POST', '/all', jsonOf({ name: 'a', isAdmin: true }))
    expect((await target.send('GET', '/all/1')).json()).toEqual({ id: 1, name: 'a', level: 1 })
    const merge = { 'Content-Type': 'application/merge-patch+json' }
    await target.send('PATCH', '/all/1', { fields: merge, body: '{"isAdmin":true,"b":1}' })
    const patched = await target.send('PATCH', '/all/1', { fields: merge, body: '{"c":1}' })
    expect(patched.json()).toEqual({ id: 1, name: 'a', level: 1, b: 1, c: 1 })
    expect((await target.send('GET', '/all/1')).text).toBe(patched.text)
  })

  it('that changes its input in place is believed of items with files', async () => {
    target = await startService({ resources: { '/docs': collection({ schema: changing, files: { file: {} } }) } })
    const file = { name: 'a.txt', type: 'text/plain', size: 1 }
    const title = { name: 'title', content: 'T' }
    const secret = { name: 'isAdmin', content: 'true' }
    const upload = multipartOf([title, secret, { ...file, name: 'file', filename: 'a.txt', content: 'x' }])
    const created = await target.send('POST', '/docs', upload)
    expect(created.json()).toEqual({ id: 1, title: 'T', level: 1, file })
    expect((await target.send('PUT', '/docs/1', jsonOf({ title: 'U', isAdmin: true, file }))).status).toBe(204)
    expect((await target.send('GET', '/docs/1')).json()).toEqual({ id: 1, title: 'U', level: 1, file })
  })

  it.each([
    ['its input', (input: object) => input],
    ['a copy that shares what is in it', (input: object) => ({ ...input })],
    ['a copy', (input: object) => structuredClone(input)],
  ])('that removes members of its input in place hides none of them, where it gives back %s', async (_, giveBack) => {
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate(value: unknown) {
          const members = value as { [name: string]: unknown; name: string; in?: { by?: unknown } }
          for (const other of Object.keys(members)) if (other !== 'name' && other !== 'in') delete members[other]
          delete members.in?.by
          return { value: giveBack(members) as typeof members }
        },
      },
    }
    const errors: string[] = []
    target = await startService({
      onError: (error) => void errors.push((error as Error).message),
      resources: {
        '/items': collection({ schema }),
        '/docs/{name}': document({ schema }),
        '/stamped': collection({ schema, beforeWrite: (value) => ({ ...value, by: 'ada' }) }),
      },
    })
    const send = async (method: string, path: string, value: object, fields: object = {}) => {
      const answer = await target!.send(method, path, jsonOf(value, { ...fields }))
      return [answer.status, /"pointer":"([^"]*)"/.exec(answer.text)?.[1]]
    }
    const strict = { Prefer: 'handling=strict' }
    for (const [method, path] of [
      ['POST', '/items'],
      ['PUT', '/items/7'],
      ['PUT', '/docs/a'],
    ] as const) {
      expect(await send(method, path, { name: 'a', by: 'b' }, strict)).toEqual([422, '/by'])
      expect(await send(method, path, { name: 'a', constructor: 'b' })).toEqual([400, '/constructor'])
      expect(await send(method, path, { name: 'a', in: { by: 'b' } }, strict)).toEqual([422, '/in/by'])
      expect((await send(method, path, { name: 'a', by: 'b', in: { by: 'b' } }))[0]).toBe(201)
    }
    expect((await target.send('GET', '/items/7')).text).toBe('{"id":7,"name":"a","in":{}}')
    expect((await send('POST', '/stamped', { name: 'a' }))[0]).toBe(500)
    expect(errors).toEqual([expect.stringContaining('beforeWrite of /stamped adds "by", which the schema leaves out.')])
  })

  it('that changes its input in place changes nothing by a patch that is refused', async () => {
    const counting = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) => {
          const { place, isRefused } = value as { place: { seen: number }; isRefused?: true }
          place.seen++
          return isRefused ? { issues: [{ message: 'no' }] } : { value: value as object }
        },
      },
    }
    target = await startService({ resources: { '/all': collection({ schema: counting }) } })
    await target.send('POST', '/all', jsonOf({ place: { seen: 0 } }))
    const fields = { 'Content-Type': 'application/merge-patch+json' }
    const patch = async (body: object) => {
      const { status } = await target!.send('PATCH', '/all/1', { fields, body: JSON.stringify(body) })
      return status
    }
    expect([await patch({ a: 1 }), await patch({ isRefused: true }), await patch({ a: 2 })]).toEqual([200, 422, 200])
    expect((await target.send('GET', '/all/1')).json()).toEqual({ id: 1, place: { seen: 3 }, a: 2 })
  })

  it.each([
    ['nothing', undefined],
    ['no value', { value: undefined }],
    ['a function', { value: () => 1 }],
    ['an array', { value: [1] }],
    ['text', { value: 'a' }],
    ['null', { value: null }],
  ])('that gives %s for an item fails before anything is stored', async (_name, result) => {
    const reported: unknown[] = []
    const schema = { '~standard': { version: 1 as const, vendor: 'test', validate: () => result as { value: object } } }
    target = await startService({
      resources: { '/all': collection({ schema }) },
      onError: (error) => reported.push(error),
    })
    const form = { fields: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: 'name=a' }
    for (const content of [jsonOf({ name: 'a' }), form]) {
      expect((await target.send('POST', '/all', content)).status).toBe(500)
    }
    expect((await target.send('PUT', '/all/1', jsonOf({ name: 'a' }))).status).toBe(500)
    expect(reported.map(String)).toEqual(Array(3).fill(expect.stringMatching(/^TypeError: The schema must return/)))
    expect((await target.send('GET', '/all')).text).toBe('[]')
  })
})
