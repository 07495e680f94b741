import type { JsonValue } from '../../src/core/json.ts'
import type { ResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { digestOf } from '../support/digests.ts'
import { type RunningHost, startHost } from '../support/hosts.ts'
import type { Case } from './cases.ts'

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
  '/sealed/{name}': json({ a: 1 }),
  '/orders': json({ name: 'Ada' }),
  '/drafts/{name}': json({ a: 1 }),
  '/mixed/{name}': json({ name: 'Ada' }),
  '/settings': json({ theme: 'dark' }),
  '/plain': json({}),
  '/{path}': json({ name: 'Ada' }),
}

const GOOD = { Authorization: 'Bearer good' }

export interface World {
  readonly store: ReturnType<typeof createJammedStore>
  readonly service: ResourceService
  readonly host: RunningHost
  send(method: string, sent: Sent): Promise<Answer>
}

export async function startWorld(create: (store: ResourceStore) => ResourceService): Promise<World> {
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

/** Definitions without the option ignore it. */
const nextKey = () => ({ 'Idempotency-Key': `key-${++count}` })

function isCollection(pattern: string, definition: string): boolean {
  return definition === pattern && SAMPLES[pattern] !== undefined && !/\{|^\/(?:settings|plain)$/.test(pattern)
}

/** Makes what a case is about. @returns its path */
async function prepare(world: World, { pattern, definition }: Case): Promise<string> {
  const sample = SAMPLES[definition]
  const post = async (): Promise<string> => {
    const headers = { ...GOOD, 'Content-Type': sample!.type, ...nextKey(), 'Content-Digest': digestOf(sample!.body) }
    return String((await world.send('POST', { path: definition, headers, body: sample!.body })).headers['location'])
  }
  if (pattern === '/openapi.json') return pattern
  if (pattern === '/operations/{id}') {
    const job = await prepare(world, { pattern: '/jobs/{id}', definition: '/jobs' } as Case)
    return String((await world.send('DELETE', { path: job, headers: GOOD })).headers['location'])
  }
  if (isCollection(pattern, definition)) {
    await post()
    return pattern
  }
  if (pattern.startsWith(`${definition}/{id}`)) return pattern.replace(`${definition}/{id}`, await post())
  const path = newPath(pattern)
  const stored = pattern === '/settings.json' ? '/settings' : path
  await world.store.write(stored, { contentType: sample!.type, body: sample!.body }, { expect: 'any' })
  return path
}

/** A request that is about to be sent. */
interface Draft {
  readonly world: World
  readonly given: Case
  readonly path: string
  readonly headers: Record<string, string>
  target: string
  body: string | undefined
}

type Recipe = (draft: Draft) => Promise<unknown> | unknown

const set =
  (...names: readonly [name: string, value: string][]): Recipe =>
  ({ headers }) =>
    Object.assign(headers, Object.fromEntries(names))

const setPatch =
  (body: string): Recipe =>
  (draft) => {
    draft.headers['Content-Type'] = 'application/json-patch+json'
    draft.body = body
  }

const isForm = ({ given }: Draft): boolean => given.definition === '/jobs' && given.method === 'POST'

/** How a good request is changed to get each answer. */
const RECIPES: Readonly<Record<string, Recipe>> = {
  200: ({ given, headers }) => given.method !== 'GET' && Object.assign(headers, { Prefer: 'return=representation' }),
  202: set(['Prefer', 'respond-async']),
  204: set(['Prefer', 'return=minimal']),
  206: set(['Range', 'bytes=0-0']),
  304: async ({ world, path, headers }) => {
    const { headers: fields } = await world.send('GET', { path, headers: GOOD })
    headers['If-None-Match'] = String(fields['etag'])
  },
  412: set(['If-Match', '"none"']),
  'malformed-field': set(['If-Match', 'no tag']),
  'malformed-target': (draft) => {
    draft.target += '%5C'
  },
  'malformed-query': (draft) => {
    const { definition, method, pattern } = draft.given
    draft.headers['If-Match'] = '*'
    // A path of any kind is a listing only while it holds nothing itself.
    const isPage = (pattern === '/{path}' && ['GET', 'POST'].includes(method)) || isCollection(pattern, definition)
    if (isPage) draft.target = `${pattern === '/{path}' ? newPath('/none-{x}') : draft.path}?limit=0`
    else draft.target += '?access_token=good'
  },
  'malformed-body': (draft) => {
    draft.body = isForm(draft) ? 'no parts' : '{'
    if (!isForm(draft) && draft.given.method !== 'PATCH') draft.headers['Content-Type'] = 'application/json'
  },
  'malformed-patch': setPatch('[{"op":"none"}]'),
  'digest-invalid-values': set(['Content-Digest', 'sha-256=:AAAA:']),
  'digest-mismatched-values': set(['Content-Digest', digestOf('other')]),
  'digest-required': ({ headers }) => delete headers['Content-Digest'],
  'digest-unsupported-algorithms': set(['Content-Digest', 'md5=:AAAA:']),
  unauthenticated: set(['Authorization', 'Bearer bad']),
  cleartext: set(['X-Forwarded-For', '192.0.2.1']),
  'cross-site': set(['Cookie', 'a=b'], ['Origin', 'https://elsewhere.test'], ['Sec-Fetch-Site', 'cross-site']),
  forbidden: set(['Authorization', 'Bearer narrow']),
  'not-found': (draft) => {
    if (draft.given.pattern.startsWith('/operations')) draft.target = '/operations/none'
    else draft.headers['x-hide'] = '1'
  },
  'not-acceptable': set(['Accept', 'image/webp']),
  conflict: ({ world }) => {
    world.store.isJammed = true
  },
  'patch-conflict': setPatch('[{"op":"remove","path":"/none/at/all"}]'),
  gone: ({ world, path }) => world.store.remove(path, { expect: 'any', mode: 'tombstone' }),
  'too-large': (draft) => {
    const name = 'x'.repeat(5000)
    const isJson = draft.headers['Content-Type']!.endsWith('json')
    draft.body = isForm(draft) ? form({ title: name.repeat(14), file: 'x' }).body : isJson ? json({ name }).body : name
  },
  'unsupported-media-type': ({ given, headers }) => {
    const takesAnything = given.method !== 'PATCH' && /^\/(?:mixed|files\/\{owner|\{path)/.test(given.pattern)
    const isPost = given.method === 'POST'
    headers['Content-Type'] = takesAnything && !isPost ? 'application/json; charset=iso-8859-1' : 'application/x-none'
  },
  'unsupported-coding': set(['Content-Encoding', 'zstd']),
  'range-not-satisfiable': set(['Range', 'bytes=99999999-']),
  'idempotency-key-required': ({ headers }) => {
    delete headers['Idempotency-Key']
    delete headers['If-Match']
  },
  'idempotency-key-reused': async (draft) => {
    const { world, given, target, headers, body } = draft
    delete headers['If-Match']
    const digest = { 'Content-Digest': digestOf(body!) }
    await world.send(given.method, { path: target, headers: { ...headers, ...digest }, body: body! })
    draft.body = `${body} `
  },
  'invalid-content': (draft) => {
    draft.body = isForm(draft) ? form({ title: 'A job' }).body : '{"name":"\\u0000"}'
  },
}

/** Sends the request that makes a service answer as a case says. */
export async function provoke(world: World, given: Case): Promise<Answer> {
  const { pattern, definition, method, status, problem, operation } = given
  const isCreation = method === 'PUT' && status === 201
  const path = isCreation ? newPath(pattern) : await prepare(world, given)
  if (isCreation && pattern.startsWith('/settings')) {
    await world.store.remove('/settings', { expect: 'any', mode: 'erase' })
  }
  const patch = definition === '/tickets' ? '{"radius":2}' : '{"note":"x"}'
  const sample = method === 'PATCH' ? { type: 'application/merge-patch+json', body: patch } : SAMPLES[definition]
  const hasContent = operation['requestBody'] !== undefined
  const headers: Record<string, string> = { ...GOOD, ...(hasContent && { 'Content-Type': sample!.type }), ...nextKey() }
  // Some changes need a condition.
  if (!['GET', 'POST'].includes(method) && !isCreation && status !== 428) headers['If-Match'] = '*'
  const draft: Draft = { world, given, path, headers, target: path, body: hasContent ? sample!.body : undefined }
  await RECIPES[problem ?? status]?.(draft)
  const { target, body } = draft
  const isSealed = /^\/(?:sealed|orders)/.test(definition) && problem?.startsWith('digest-') !== true
  if (isSealed && body !== undefined) headers['Content-Digest'] = digestOf(body)
  try {
    return await world.send(method, { path: target, headers, ...(body !== undefined && { body }) })
  } finally {
    world.store.isJammed = false
  }
}
