import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { JsonObject, JsonValue } from '../../src/core/json.ts'
import { openapi } from '../../src/openapi.ts'
import { createResourceService, type ResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { type Answer, type RunningHost, startHost } from '../support/hosts.ts'
import { KINDS_OPTIONS } from './kinds.ts'

/** A store whose writes and removals can be made to lose every race. */
function createJammedStore(): ResourceStore & { isJammed: boolean } {
  const store = memoryStore()
  const lose = async (path: string) => {
    const current = await store.read(path)
    return { outcome: 'conflict' as const, current }
  }
  const jammed: ResourceStore & { isJammed: boolean } = {
    ...store,
    isJammed: false,
    write: ((path, content, options) =>
      jammed.isJammed ? lose(path) : store.write(path, content, options)) as ResourceStore['write'],
    remove: ((path, options) =>
      jammed.isJammed ? lose(path) : store.remove(path, options)) as ResourceStore['remove'],
  }
  return jammed
}

interface Sent {
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Content that a place takes. */
interface Sample {
  readonly type: string
  readonly body: string
}

const json = (value: JsonValue): Sample => ({ type: 'application/json', body: JSON.stringify(value) })
const PLAIN: Sample = { type: 'text/plain', body: 'text' }

function form(parts: Readonly<Record<string, string>>): Sample {
  const lines = Object.entries(parts).map(([name, content]) => {
    const file = name === 'title' ? '' : `; filename="${name}.txt"`
    return `--b\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${content}\r\n`
  })
  return { type: 'multipart/form-data; boundary=b', body: `${lines.join('')}--b--\r\n` }
}

/** What each definition takes. */
const SAMPLES: Readonly<Record<string, Sample>> = {
  '/users': json({ name: 'Ada' }),
  '/tickets': json({ kind: 'circle', radius: 1 }),
  '/nodes': json({ label: 'root' }),
  '/jobs': form({ title: 'A job', file: 'bytes', note: 'more' }),
  '/notes': json({ text: 'A note' }),
  '/files': PLAIN,
  '/files/{owner}/private/{name}': json({ a: 1 }),
  '/pages/{name}': json({ title: 'Page' }),
  '/mixed/{name}': json({ name: 'Ada' }),
  '/settings': json({ theme: 'dark' }),
  '/plain': json({}),
  '/{path}': json({ name: 'Ada' }),
}

const GOOD = { Authorization: 'Bearer good' }

interface Case {
  readonly pattern: string
  readonly definition: string
  readonly method: string
  readonly status: number
  /** The end of the type of the problem. */
  readonly problem: string | undefined
  readonly operation: JsonObject
}

/** Everything that a description says can be answered. */
function listCases(document: JsonObject): readonly Case[] {
  const resolve = (value: JsonValue): JsonObject => {
    const [, , section, name] = String((value as JsonObject)['$ref'] ?? '').split('/')
    return name === undefined
      ? (value as JsonObject)
      : (((document['components'] as JsonObject)[section!] as JsonObject)[name] as JsonObject)
  }
  return Object.entries(document['paths'] as JsonObject).flatMap(([pattern, item]) =>
    Object.entries(item as JsonObject).flatMap(([method, operation]) => {
      if (method === 'parameters') return []
      const { responses } = operation as { responses: JsonObject }
      return Object.entries(responses).flatMap(([status, response]) => {
        if (status === 'default') return []
        const text = JSON.stringify(resolve(response)['content'] ?? null)
        const problems =
          Number(status) < 400 ? [] : [...new Set(text.match(/(?<=urn:problem-type:http-resource-service:)[\w-]+/g))]
        const base = {
          pattern,
          definition: pattern
            .replace(/(?<=^\/(?:users|tickets|nodes|jobs|notes|files))\/\{id\}.*$/, '')
            .replace('.json', ''),
          method: method.toUpperCase(),
          status: Number(status),
          operation: operation as JsonObject,
        }
        return problems.length === 0
          ? [{ ...base, problem: undefined }]
          : problems.map((problem): Case => ({ ...base, problem }))
      })
    }),
  )
}

interface World {
  readonly store: ReturnType<typeof createJammedStore>
  readonly service: ResourceService
  readonly host: RunningHost
  send(method: string, sent: Sent): Promise<Answer>
}

async function startWorld(create: (store: ResourceStore) => ResourceService): Promise<World> {
  const store = createJammedStore()
  const service = create(store)
  const host = await startHost('plain', service)
  return {
    store,
    service,
    host,
    send: (method, { path, headers = {}, body }) =>
      host.send({ method, path, headers, ...(body === undefined ? {} : { body }) }),
  }
}

let count = 0

/** A path of a pattern at which nothing is. */
function newPath(pattern: string): string {
  const name = String(100_000 + ++count)
  if (pattern.startsWith('/tickets')) return '/tickets/6a1f1f0e-7d1e-4b93-9d0c-2f5b8e3c1a77'
  return pattern.replaceAll(/\{\w+\}/g, name)
}

/** Makes what a case is about. @returns its path */
async function prepare(world: World, { pattern, definition }: Case): Promise<string> {
  const sample = SAMPLES[definition]
  const post = async (): Promise<string> => {
    const headers = { ...GOOD, 'Content-Type': sample!.type }
    return String((await world.send('POST', { path: definition, headers, body: sample!.body })).headers['location'])
  }
  if (pattern === '/openapi.json') return pattern
  if (pattern === '/operations/{id}') {
    const job = await prepare(world, { pattern: '/jobs/{id}', definition: '/jobs' } as Case)
    return String((await world.send('DELETE', { path: job, headers: GOOD })).headers['location'])
  }
  if (
    !pattern.includes('{') &&
    definition === pattern &&
    SAMPLES[`${pattern}`] !== undefined &&
    pattern !== '/settings' &&
    pattern !== '/plain'
  ) {
    await post()
    return pattern
  }
  if (pattern.startsWith(`${definition}/{id}`)) return pattern.replace(`${definition}/{id}`, await post())
  const path = newPath(pattern)
  const stored = pattern === '/settings.json' ? '/settings' : path
  await world.store.write(stored, { contentType: sample!.type, body: sample!.body }, { expect: 'any' })
  return path
}

/** The request that makes a service answer as a case says. */
async function provoke(world: World, given: Case): Promise<Answer> {
  const { pattern, definition, method, status, problem, operation } = given
  const isRead = method === 'GET'
  const isCreation = method === 'POST'
  const path = status === 201 && method === 'PUT' ? newPath(pattern) : await prepare(world, given)
  if (status === 201 && pattern.startsWith('/settings'))
    await world.store.remove('/settings', { expect: 'any', mode: 'erase' })
  const sample =
    method === 'PATCH'
      ? { type: 'application/merge-patch+json', body: definition === '/tickets' ? '{"radius":2}' : '{"note":"x"}' }
      : SAMPLES[definition]
  const hasContent = operation['requestBody'] !== undefined
  const headers: Record<string, string> = { ...GOOD }
  if (hasContent) headers['Content-Type'] = sample!.type
  // Where a condition is needed.
  if (!isRead && !isCreation && status !== 201 && status !== 428) headers['If-Match'] = '*'
  let body = hasContent ? sample!.body : undefined
  let target = path
  const tag = async (): Promise<string> => String((await world.send('GET', { path, headers: GOOD })).headers['etag'])

  switch (problem ?? status) {
    case 200:
      if (!isRead) headers['Prefer'] = 'return=representation'
      break
    case 202:
      headers['Prefer'] = 'respond-async'
      break
    case 204:
      headers['Prefer'] = 'return=minimal'
      break
    case 206:
      headers['Range'] = 'bytes=0-0'
      break
    case 304:
      headers['If-None-Match'] = await tag()
      break
    case 'malformed-field':
      headers['If-Match'] = 'no tag'
      break
    case 'malformed-query':
      target = `${path}?limit=0`
      headers['If-Match'] = '*'
      // Only of a place that holds nothing itself.
      if (pattern === '/{path}') target = `${newPath('/none-{x}')}?limit=0`
      break
    case 'malformed-body':
      if (definition === '/jobs') body = 'no parts'
      else {
        body = '{'
        if (method !== 'PATCH') headers['Content-Type'] = 'application/json'
      }
      break
    case 'malformed-patch':
      headers['Content-Type'] = 'application/json-patch+json'
      body = '[{"op":"none"}]'
      break
    case 'unauthenticated':
      headers['Authorization'] = 'Bearer bad'
      break
    case 'cleartext':
      headers['X-Forwarded-For'] = '192.0.2.1'
      break
    case 'cross-site':
      Object.assign(headers, { Cookie: 'a=b', Origin: 'https://elsewhere.test', 'Sec-Fetch-Site': 'cross-site' })
      break
    case 'forbidden':
      headers['Authorization'] = 'Bearer narrow'
      break
    case 'not-found':
      if (pattern.startsWith('/operations')) target = '/operations/none'
      else headers['x-hide'] = '1'
      break
    case 'not-acceptable':
      headers['Accept'] = 'image/webp'
      break
    case 'conflict':
      world.store.isJammed = true
      break
    case 'patch-conflict':
      headers['Content-Type'] = 'application/json-patch+json'
      body = '[{"op":"remove","path":"/none/at/all"}]'
      break
    case 'gone':
      await world.store.remove(path, { expect: 'any', mode: 'tombstone' })
      break
    case 412:
      headers['If-Match'] = '"none"'
      break
    case 'too-large':
      if (definition === '/jobs') body = form({ title: 'x'.repeat(70_000), file: 'x' }).body
      else
        body =
          method === 'PATCH' || headers['Content-Type'] === 'application/json'
            ? json({ name: 'x'.repeat(5000) }).body
            : 'x'.repeat(5000)
      break
    case 'unsupported-media-type':
      headers['Content-Type'] =
        method === 'PATCH' || !definition.includes('{') || definition.startsWith('/pages')
          ? 'application/x-none'
          : 'application/json; charset=iso-8859-1'
      break
    case 'unsupported-coding':
      headers['Content-Encoding'] = 'zstd'
      break
    case 'range-not-satisfiable':
      headers['Range'] = 'bytes=99999999-'
      break
    case 'invalid-content':
      body = definition === '/jobs' && method === 'POST' ? form({ title: 'A job' }).body : '{"name":"\\u0000"}'
      break
  }
  try {
    return await world.send(method, { path: target, headers, ...(body === undefined ? {} : { body }) })
  } finally {
    world.store.isJammed = false
  }
}

/** Work waits for ever, so that it can be cancelled. */
const operations = { queue: { enqueue: () => {} } }
const options = { fallthrough: false, limits: { parsedSize: 4000 }, operations }
const worlds: Readonly<Record<string, (store: ResourceStore) => ResourceService>> = {
  'every kind of resource': (store) => createResourceService(store, { ...KINDS_OPTIONS, ...options }),
  'no definitions': (store) => {
    const { resources: _, ...rest } = KINDS_OPTIONS
    return createResourceService(store, { ...rest, ...options })
  },
}

describe.each(Object.entries(worlds))('the description of a service with %s', (_, create) => {
  let world: World
  beforeAll(async () => {
    world = await startWorld(create)
    // The pauses between attempts, which grow, are random.
    vi.spyOn(Math, 'random').mockReturnValue(0)
  })
  afterAll(async () => {
    vi.restoreAllMocks()
    await world.host.close()
    await world.service.close()
  })

  const cases = listCases(openapi(create(memoryStore()), { info: { title: 'Test', version: '1' } }))

  it('has answers to provoke', () => {
    expect(cases.length).toBeGreaterThan(50)
  })

  it.each(cases.map((one) => [`${one.method} ${one.pattern} ${one.status} ${one.problem ?? ''}`, one] as const))(
    'names an answer that is given: %s (issue 21: no other status)',
    async (_, one) => {
      const answer = await provoke(world, one)
      expect(`${answer.status} ${answer.body.toString().slice(0, 300)}`).toMatch(new RegExp(`^${one.status} `))
      if (one.problem !== undefined) expect(answer.body.toString()).toContain(`:${one.problem}"`)
    },
  )
})
