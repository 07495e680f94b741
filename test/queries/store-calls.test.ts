import { describe, expect, it } from 'vitest'
import type { Authorize } from '../../src/actions/hook-types.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { type Served, serve } from '../service/serve.ts'
import { multipartOf } from '../writes/support.ts'
import { JSON_TYPE } from './tasks.ts'

const METHODS = ['read', 'write', 'create', 'remove', 'list', 'stage'] as const

/** A store in memory, and the calls to it with their options. */
function recordCalls(): { readonly store: ResourceStore; readonly calls: string[] } {
  const store = memoryStore()
  const calls: string[] = []
  const recorded: Record<string, unknown> = { ...store }
  for (const name of METHODS) {
    const method = store[name] as (...values: unknown[]) => unknown
    recorded[name] = (...values: unknown[]) => {
      calls.push(`${name} ${JSON.stringify(values, (key, value) => (key === 'signal' ? undefined : value))}`)
      return method(...values)
    }
  }
  return { store: recorded as unknown as ResourceStore, calls }
}

/** The record of a first response, whose name depends on the target. */
const RECORD = /idempotency\/[\w-]+/g

const FORM = 'Content-Type: application/x-www-form-urlencoded'
const MERGE = 'Content-Type: application/merge-patch+json'
const JSON_PATCH = 'Content-Type: application/json-patch+json'
const TEXT = 'Content-Type: text/plain'
const KEY = 'Idempotency-Key: "0123456789abcdef"'
const ADA = 'X-User: ada'
const EVE = 'X-User: eve'

const upload = multipartOf([{ name: 'photo', filename: 'p.png', type: 'image/png', content: 'PNG' }])
const MULTIPART = `Content-Type: ${(upload.fields as Record<string, string>)['Content-Type']}`

type Request = readonly [method: string, below: string, fields: readonly string[], body?: string | Uint8Array]

/** Of an item, of its files, and of what is below it. */
const REQUESTS: readonly Request[] = [
  ['GET', '', []],
  ['GET', '', ['If-None-Match: *']],
  ['GET', '', ['If-Match: "x"']],
  ['GET', '', ['Range: bytes=0-0']],
  ['GET', '', ['Accept: image/png']],
  ['GET', '', ['Want-Repr-Digest: sha-256=1']],
  ['GET', '?deleted=true', []],
  ['HEAD', '', []],
  ['HEAD', '', ['If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT']],
  ['PUT', '', [JSON_TYPE], '{"text":"mine"}'],
  ['PUT', '', [JSON_TYPE, 'If-Match: *'], '{"text":"mine"}'],
  ['PUT', '', [JSON_TYPE, 'If-None-Match: *'], '{"text":"mine"}'],
  ['PUT', '', [JSON_TYPE], '{'],
  ['PATCH', '', [MERGE], '{"text":"mine"}'],
  ['PATCH', '', [MERGE, 'If-Match: "x"'], '{"text":"mine"}'],
  ['PATCH', '', [MERGE, KEY], '{"text":"mine"}'],
  ['PATCH', '', [JSON_PATCH], '[{"op":"test","path":"/text","value":"secret"}]'],
  ['DELETE', '', []],
  ['DELETE', '', ['If-Match: "x"']],
  ['POST', '', [JSON_TYPE], '{}'],
  ['QUERY', '', [FORM], 'text=a'],
  ['GET', '/photo', []],
  ['HEAD', '/photo', []],
  ['GET', '/photo', ['Range: bytes=0-0']],
  ['PUT', '/photo', [TEXT], 'mine'],
  ['PUT', '/photo', [TEXT], Buffer.alloc(100_000, 'mine')],
  ['GET', '/lines', []],
  ['HEAD', '/lines', []],
  ['GET', '/lines?text=secret&count=true', []],
  ['QUERY', '/lines', [FORM], 'text=secret&count=true'],
  ['POST', '/lines', [JSON_TYPE], '{"text":"mine"}'],
  ['POST', '/lines', [JSON_TYPE, KEY], '{"text":"mine"}'],
  ['POST', '/lines', [JSON_TYPE, 'If-Match: *'], '{"text":"mine"}'],
  ['POST', '/lines', [MULTIPART], upload.body!],
  ['GET', '/lines/1', []],
  ['HEAD', '/lines/1', []],
  ['PUT', '/lines/1', [JSON_TYPE], '{"text":"mine"}'],
  ['PATCH', '/lines/1', [MERGE], '{"text":"mine"}'],
  ['DELETE', '/lines/1', []],
  ['GET', '/lines/1/photo', []],
]

type NoteOptions = CollectionOptions
const ownerOf = (value: unknown): unknown => (value as { owner?: unknown } | undefined)?.owner

const authorize: Authorize = (_principal, { headers }, current) =>
  current === undefined || ownerOf(current.value) === headers['x-user'] || 'not-found'

const GUARDS: readonly (readonly [string, NoteOptions])[] = [
  ['scope', { scope: ({ headers }) => ({ owner: headers['x-user'] as string }) }],
  [
    'scope with conditions that are required',
    {
      scope: ({ headers }) => ({ owner: headers['x-user'] as string }),
      preconditions: 'required',
    },
  ],
  ["authorize that gives 'not-found'", { authorize, clientIds: false }],
]

type Fate = 'present' | 'soft' | 'hard'

/** Serves the notes of ada: 1 is hers, with a file and a line below it. */
async function serveNotes(options: NoteOptions, fate: Fate): Promise<Served & { readonly calls: string[] }> {
  const { store, calls } = recordCalls()
  const notes = collection({
    query: { text: 'string' },
    count: true,
    idempotency: 'optional',
    ...(fate === 'present' ? {} : { deletion: fate }),
    ...options,
    files: { photo: { replaceable: true } },
  })
  const lines = collection({
    parent: true,
    query: { text: 'string' },
    count: true,
    idempotency: 'optional',
    files: { photo: {} },
  })
  const resources: ServiceOptions['resources'] = { '/notes': notes, '/notes/{note}/lines': lines }
  const served = await serve(store, { resources })
  const post = async (path: string, value: object) =>
    expect((await served.send('POST', path, [JSON_TYPE, ADA], JSON.stringify(value))).status).toBe(201)
  await post('/notes', { text: 'secret', owner: 'ada' })
  await post('/notes/1/lines', { text: 'secret' })
  expect((await served.send('PUT', '/notes/1/photo', [TEXT, ADA], 'secret')).status).toBe(201)
  if (fate !== 'present') {
    const tag = (await served.send('GET', '/notes/1', [ADA])).field('ETag')
    expect((await served.send('DELETE', '/notes/1', [ADA, `If-Match: ${tag}`])).status).toBe(204)
  }
  return { ...served, calls }
}

describe.each(GUARDS)('what %s hides', (_, options) => {
  it.each<Fate>(['present', 'soft', 'hard'])(
    'takes the same calls of the store as what never existed, for every method: %s',
    async (fate) => {
      const { send, calls } = await serveNotes(options, fate)
      // The names of the scope and the index are known from here on.
      await send('GET', '/notes/1', [EVE])
      for (const [method, below, fields, body] of REQUESTS) {
        const make = async (path: string) => {
          calls.length = 0
          const { status, text } = await send(method, path + below, [EVE, ...fields], body)
          return {
            request: [method, below, ...fields],
            status,
            text,
            calls: calls.map((call) => call.replaceAll(path, '/notes/1').replace(RECORD, 'a record')),
          }
        }
        const hidden = await make('/notes/1')
        expect(hidden).toEqual(await make('/notes/9'))
        if (hidden.status === 404 && below !== '?deleted=true') expect(hidden.calls.length).toBeGreaterThan(0)
      }
      // Nothing of it has changed.
      if (fate !== 'present') return
      expect(JSON.parse((await send('GET', '/notes/1', [ADA])).text)).toMatchObject({ text: 'secret', owner: 'ada' })
      expect((await send('GET', '/notes/1/photo', [ADA])).text).toBe('secret')
    },
  )
})

describe('a list of the notes of a scope', () => {
  it('takes the same calls of the store, whether an item of others matches or none does', async () => {
    const [, options] = GUARDS[0]!
    const ask = async (secret: string) => {
      const { send, calls } = await serveNotes(options, 'present')
      await send('PATCH', '/notes/1', [MERGE, ADA], JSON.stringify({ text: secret }))
      await send('POST', '/notes', [JSON_TYPE, EVE], '{"text":"mine"}')
      const learned: unknown[] = []
      for (const [method, query] of [
        ['GET', 'text=secret'],
        ['GET', 'text[prefix]=sec&sort=-text&count=true&limit=1'],
        ['HEAD', 'text[ne]=secret&count=true'],
        ['QUERY', 'text=secret&count=true'],
        ['QUERY', 'text[gt]=n&sort=text&limit=1'],
      ] as const) {
        calls.length = 0
        const isQuery = method === 'QUERY'
        const answer = await send(
          method,
          isQuery ? '/notes' : `/notes?${query}`,
          [EVE, ...(isQuery ? [FORM] : [])],
          isQuery ? query : undefined,
        )
        learned.push([query, answer.status, answer.text, [...calls]])
        expect(calls.length).toBeGreaterThan(0)
      }
      return learned
    }
    expect(await ask('secret')).toEqual(await ask('other'))
  })
})
