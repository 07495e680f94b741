import { fetch as undiciFetch } from 'undici'
import { describe, expect, it, vi } from 'vitest'
import {
  createResourceClient,
  type EditOptions,
  expectSuccess,
  type Fetch,
  type ResourceClientOptions,
} from '../../src/client.ts'
import type { JsonObject, JsonValue } from '../../src/core/json.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { start } from './servers.ts'

const MERGE_PATCH = 'application/merge-patch+json'
const JSON_PATCH = 'application/json-patch+json'
const PATH = '/config/app'

async function open(options?: ResourceClientOptions, text = '{"name":"a","list":[1,2,3],"sub":{"x":1,"y":2}}') {
  const base = await start(createResourceService(memoryStore(), { https: 'optional' }))
  const client = createResourceClient(base, options)
  await client.replace(PATH, 'absent', JSON.parse(text))
  return { base, client, read: async () => expectSuccess(await client.read(PATH)).document }
}

const platformFetch: Fetch = globalThis.fetch

const withMember = (document: JsonValue, name: string, value: JsonValue): JsonValue => ({
  ...(document as JsonObject),
  [name]: value,
})

describe('edit', () => {
  it('gives the document as it is then', async () => {
    const { client, read } = await open()
    const edited = expectSuccess(await client.edit(PATH, (document) => withMember(document, 'name', 'b')))
    expect(edited.document.value).toEqual({ name: 'b', list: [1, 2, 3], sub: { x: 1, y: 2 } })
    expect(await read()).toEqual(edited.document)
  })

  it('takes a change that is made later, and leaves out what JSON does not know', async () => {
    const { client, read } = await open()
    const edited = await client.edit(PATH, async (document) => {
      const changed = document as Record<string, unknown>
      changed['name'] = undefined
      changed['at'] = new Date(0)
      return changed as JsonObject
    })
    expect(expectSuccess(edited).document.value).toEqual({
      list: [1, 2, 3],
      sub: { x: 1, y: 2 },
      at: '1970-01-01T00:00:00.000Z',
    })
    expect(await read()).toEqual(expectSuccess(edited).document)
    await expect(client.edit(PATH, () => undefined as never)).rejects.toThrow(TypeError)
  })

  it('takes a change that is made to the value in place', async () => {
    const { client, read } = await open()
    const edited = await client.edit(PATH, (document) => {
      ;(document as Record<string, JsonValue>)['name'] = 'b'
      return document
    })
    expect(expectSuccess(edited).document.value).toMatchObject({ name: 'b' })
    expect((await read()).value).toMatchObject({ name: 'b' })
  })

  it('merges an edit of a document that was kept as JSON in an earlier session', async () => {
    const { base, client, read } = await open()
    const kept = JSON.stringify(await read())
    await client.edit(PATH, (document) => withMember(document, 'list', [4]))
    const document = JSON.parse(kept) as Awaited<ReturnType<typeof read>>
    const edited = await createResourceClient(base).edit(document, withMember(document.value, 'name', 'b'))
    expect(expectSuccess(edited).document.value).toEqual({ name: 'b', list: [4], sub: { x: 1, y: 2 } })
  })

  it('sends nothing where the change makes no difference', async () => {
    const methods: string[] = []
    const spy: Fetch = (target, options) => {
      methods.push(options.method)
      return platformFetch(target, options)
    }
    const { client, read } = await open({ fetch: spy })
    const before = await read()
    methods.length = 0
    expect(expectSuccess(await client.edit(PATH, (document) => document)).document).toEqual(before)
    expect(methods).toEqual(['GET'])
  })

  it('computes the patch from the bytes that were read, whatever was done to the value', async () => {
    const { client, read } = await open({}, '{"big":1,"name":"a"}')
    const document = await read()
    Object.assign(document.value as object, { name: 'b' })
    const edited = expectSuccess(await client.edit(document, { big: 1, name: 'b' }))
    expect(edited.document.value).toEqual({ big: 1, name: 'b' })
    expect((await read()).value).toEqual({ big: 1, name: 'b' })
  })

  it('sends a merge patch under If-Match, or a JSON Patch where null is to be stored (RFC 7396 §1)', async () => {
    const sent: unknown[] = []
    const spy: Fetch = (target, options) => {
      const { 'Content-Type': type, 'If-Match': condition } = options.headers
      if (options.method === 'PATCH') sent.push([type, condition, JSON.parse(String(options.body))])
      return platformFetch(target, options)
    }
    const { client, read } = await open({ fetch: spy })
    const { entityTag: first } = await read()
    const { document } = expectSuccess(await client.edit(PATH, (value) => withMember(value, 'sub', { x: 1, y: 3 })))
    await client.edit(document, (value) => withMember(value, 'none', null))
    expect(sent).toEqual([
      [MERGE_PATCH, first, { sub: { y: 3 } }],
      [JSON_PATCH, document.entityTag, [{ op: 'add', path: '/none', value: null }]],
    ])
  })

  it('sends a JSON Patch where that is preferred', async () => {
    const spy = vi.fn<Fetch>((target, options) => platformFetch(target, options))
    const { client } = await open({ fetch: spy, prefer: 'json' })
    await client.edit(PATH, (document) => withMember(document, 'list', [1, 2, 4]))
    expect(JSON.parse(String(spy.mock.lastCall?.[1].body))).toEqual([{ op: 'replace', path: '/list/2', value: 4 }])
  })

  it('calls the function again when others were faster', async () => {
    const { client } = await open()
    let calls = 0
    const edited = await client.edit(PATH, async (document) => {
      if (calls++ === 0) await client.edit(PATH, (other) => withMember(other, 'name', 'theirs'))
      return withMember(document, 'name', `${(document as JsonObject)['name']}!`)
    })
    expect(calls).toBe(2)
    expect(expectSuccess(edited).document.value).toMatchObject({ name: 'theirs!' })
  })

  it('merges a value with the changes of others, and names the properties that both changed', async () => {
    const { client, read } = await open()
    const base = await read()
    await client.edit(PATH, (document) => withMember(document, 'other', true))
    const merged = await client.edit(base, withMember(base.value, 'name', 'mine'))
    expect(expectSuccess(merged).document.value).toMatchObject({ name: 'mine', other: true })
    const refused = await client.edit(base, withMember(base.value, 'name', 'again'))
    expect(refused).toMatchObject({
      ok: false,
      status: 412,
      conflicts: [{ pointer: '/name', base: 'a', mine: 'again', theirs: 'mine' }],
      theirs: { value: { name: 'mine', other: true } },
    })
    const same = await client.edit(base, withMember(base.value, 'name', 'mine'))
    expect(expectSuccess(same).document.value).toMatchObject({ name: 'mine', other: true })
  })

  it('merges the result of a function where that is asked for', async () => {
    const { client } = await open()
    let calls = 0
    const refused = await client.edit(
      PATH,
      async (document) => {
        if (calls++ === 0) await client.edit(PATH, (other) => withMember(other, 'name', 'theirs'))
        return withMember(document, 'name', 'mine')
      },
      { whenChanged: 'merge' },
    )
    expect(calls).toBe(1)
    expect(refused).toMatchObject({ status: 412, conflicts: [{ pointer: '/name' }] })
  })

  it('gives up after the last attempt', async () => {
    const { base, client } = await open({ maxAttempts: 2 })
    let calls = 0
    vi.spyOn(Math, 'random').mockReturnValue(0.7)
    const startTimer = vi.spyOn(globalThis, 'setTimeout')
    const edit = await client.edit(PATH, async (document) => {
      await createResourceClient(base).edit(PATH, (other) => withMember(other, 'count', ++calls))
      return withMember(document, 'name', 'mine')
    })
    const times = startTimer.mock.calls.map(([, time]) => time)
    vi.restoreAllMocks()
    expect(edit).toMatchObject({ ok: false, status: 412, conflicts: [], theirs: { value: { count: 2 } } })
    expect(calls).toBe(2)
    // A random part of 10 ms, and one of 20.
    expect(times).toEqual(expect.arrayContaining([7, 14]))
  })

  it('takes the number of attempts of one edit from its options', async () => {
    const { base, client } = await open({ maxAttempts: 5 })
    const others = createResourceClient(base)
    const tryEdit = async (options: EditOptions) => {
      let calls = 0
      const edit = await client.edit(
        PATH,
        async (document) => {
          await others.edit(PATH, (other) => withMember(other, 'count', Math.random()))
          calls++
          return withMember(document, 'name', 'mine')
        },
        options,
      )
      return [edit.status, calls]
    }
    expect(await tryEdit({ maxAttempts: 1 })).toEqual([412, 1])
    expect(await tryEdit({ maxAttempts: 7 })).toEqual([412, 7])
    expect(await tryEdit({ maxAttempts: undefined })).toEqual([412, 5])
    expect(await tryEdit({ maxAttempts: Number.NaN })).toEqual([412, 1])
  })

  it('loses none of 2,000 edits of two clients (issue 21: two clients, racing typed edits)', async () => {
    const { base, read } = await open({}, '{"count":0}')
    const races = [createResourceClient(base, { maxAttempts: 100 }), createResourceClient(base, { maxAttempts: 100 })]
    const increment = (value: JsonValue): JsonValue =>
      withMember(value, 'count', Number((value as JsonObject)['count']) + 1)
    await Promise.all(
      races.map(async (client) => {
        for (let i = 0; i < 1000; i++) expectSuccess(await client.edit(PATH, increment))
      }),
    )
    expect((await read()).value).toEqual({ count: 2000 })
  })

  it('keeps members whatever they are called', async () => {
    const names = ['__proto__', 'constructor', 'prototype', 'hasOwnProperty', 'toString', 'toJSON']
    for (const prefer of ['merge', 'json'] as const) {
      const { client, read } = await open({ prefer })
      for (const name of names) {
        await client.replace(PATH, 'any', { a: 1, z: { b: 2 } })
        const value = JSON.parse(`{"a":1,"${name}":{"x":1},"z":{"${name}":[],"b":3}}`) as JsonValue
        await client.edit(PATH, () => value)
        expect(JSON.stringify(sorted((await read()).value))).toBe(JSON.stringify(sorted(value)))
        await client.edit(PATH, () => JSON.parse(`{"${name}":{"x":1,"y":2},"z":{}}`) as JsonValue)
        const changed = (await read()).value as JsonObject
        expect(Object.keys(changed).sort()).toEqual([name, 'z'].sort())
        expect(Object.getOwnPropertyDescriptor(changed, name)?.value).toEqual({ x: 1, y: 2 })
      }
    }
    expect(Reflect.get({}, 'x')).toBeUndefined()
  })

  it('gives another refusal as a result, and works with the fetch of undici', async () => {
    const { client } = await open({ fetch: undiciFetch })
    const edited = await client.edit(PATH, (document) => withMember(document, 'name', 'b'))
    expect(edited).toMatchObject({ ok: true, document: { value: { name: 'b' } } })
    expect(await client.edit(PATH, () => 'x'.repeat(9_000_000))).toMatchObject({ ok: false, status: 413 })
    expect(await client.edit('/config/none', (value) => value)).toMatchObject({ ok: false, status: 404 })
  })
})

describe('edit beside other servers', () => {
  it('sends If-Unmodified-Since where the tag is weak, and reads after an answer without content (RFC 9110 §13.1.1)', async () => {
    const seen: unknown[] = []
    const base = await start((req, res) => {
      if (req.method === 'PATCH') seen.push(req.headers['if-match'], req.headers['if-unmodified-since'])
      res.setHeader('Content-Type', 'application/json')
      res.setHeader('ETag', 'W/"x"').setHeader('Last-Modified', 'Thu, 02 Jan 2025 03:04:05 GMT')
      res.writeHead(req.method === 'PATCH' ? 204 : 200).end(req.method === 'PATCH' ? '' : `{"edits":${seen.length}}`)
    })
    const edited = expectSuccess(await createResourceClient(base).edit(PATH, () => ({ a: 1 })))
    expect(seen).toEqual([undefined, 'Thu, 02 Jan 2025 03:04:05 GMT'])
    expect(edited.document.value).toEqual({ edits: 2 })
  })

  it('sends operations on an array once where the tag is weak: a date does not tell whether they took effect', async () => {
    const types: unknown[] = []
    const base = await start((req, res) => {
      if (req.method === 'PATCH') types.push(req.headers['content-type'])
      if (req.method === 'PATCH') return void res.destroy()
      res.setHeader('ETag', 'W/"x"').setHeader('Last-Modified', 'Thu, 02 Jan 2025 03:04:05 GMT')
      res.setHeader('Content-Type', 'application/json').end('{"list":[1,2,3]}')
    })
    const client = createResourceClient(base, { retries: 1, prefer: 'json' })
    await expect(client.edit(PATH, () => ({ list: [1, 2, 3, 4] }))).rejects.toMatchObject({ mayHaveTakenEffect: true })
    expect(types).toEqual(['application/json-patch+json'])
  })

  it('does not change a document that has no validator', async () => {
    const methods: (string | undefined)[] = []
    const base = await start((req, res) => {
      methods.push(req.method)
      res.setHeader('Content-Type', 'application/json').end('{}')
    })
    await expect(createResourceClient(base).edit(PATH, () => ({ a: 1 }))).rejects.toThrow(/neither a strong ETag/)
    expect(methods).toEqual(['GET'])
  })
})

/** Members in the order of their names. */
function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value as JsonObject).map(([name, child]) => [name, sorted(child)] as const)
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)))
}
