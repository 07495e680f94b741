import { createServer } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { json, type Process } from '../../src/actions/hook-types.ts'
import { attemptLimit } from '../../src/auth-schemes/accounts.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { HttpError } from '../../src/core/errors.ts'
import type { Handler } from '../../src/core/handler.ts'
import { auth } from '../../src/handlers/auth.ts'
import { conditional } from '../../src/handlers/conditional.ts'
import { patch } from '../../src/handlers/patch.ts'
import { preflight } from '../../src/handlers/preflight.ts'
import { range } from '../../src/handlers/range.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { serve } from '../service/serve.ts'
import { runServer } from '../support/hosts.ts'
import { FORM, jsonOf, MERGE_PATCH, multipartOf, type SendOptions, send } from '../writes/support.ts'

const onError = (): void => {}
const SECRET = 'a text that no client may see'

/** A hook as a program in JavaScript writes it: it may give anything. */
type Hook = (...args: unknown[]) => never

const failures: Record<string, () => unknown> = {
  'throws an Error': () => {
    throw new Error(SECRET)
  },
  'throws null': () => {
    throw null
  },
  'throws an HttpError': () => {
    throw new HttpError(503, 'ERR_UNAVAILABLE')
  },
}

const rejections: Record<string, () => unknown> = {
  'rejects with an Error': () => Promise.reject(new Error(SECRET)),
  'rejects with nothing': () => Promise.reject(),
  'rejects later': () => wait(1).then(failures['throws an Error']),
}

const values: Record<string, () => unknown> = {
  'gives undefined': () => undefined,
  'gives null': () => null,
  'gives a number': () => 42,
  'gives NaN': () => Number.NaN,
  'gives an object': () => ({}),
  'gives a list': () => [],
  'gives a list of null': () => [null],
  'gives true': () => true,
  'gives false': () => false,
  'gives a symbol': () => Symbol(SECRET),
  'gives a function': () => () => SECRET,
  'gives a bigint': () => 5n,
  'gives an object that cannot be read': () =>
    new Proxy({}, { get: (_, name) => name !== 'then' && failures['throws an Error']!() }),
}

const never: Record<string, () => unknown> = { 'gives a promise that nothing settles': () => new Promise(() => {}) }

/**
 * How a hook is called. `awaited`: what it throws or rejects with is the answer. `at once`: a promise is a wrong value.
 * `apart`: the answer does not depend on it.
 */
type Call = 'awaited' | 'at once' | 'apart'

type Request = readonly [method: string, path: string, options?: SendOptions]

const get: Request = ['GET', '/notes/1']
const put: Request = ['PUT', '/notes/1', jsonOf({ text: 'new' })]
const merge: Request = ['PATCH', '/notes/1', { fields: MERGE_PATCH, body: '{"text":"new"}' }]
const ownPatch: Request = ['PATCH', '/notes/1', { fields: { 'Content-Type': 'application/x+json' }, body: '{}' }]
const asAda: Request = ['GET', '/notes/1', { fields: { Authorization: `Basic ${btoa('ada:ada')}` } }]
const asToken: Request = ['GET', '/notes/1', { fields: { Authorization: 'Bearer token' } }]
const fromApp: Request = ['GET', '/notes/1', { fields: { Origin: 'https://app.example' } }]
const asked = { Origin: 'https://app.example', 'Access-Control-Request-Method': 'PUT' }
const preflighted: Request = ['OPTIONS', '/notes/1', { fields: asked }]

/** Serves something with the hook. @returns the port */
type Start = (hook: Hook) => Promise<number>

async function createStore(): Promise<ResourceStore> {
  const store = memoryStore()
  await store.write('/notes/1', json({ id: 1, text: 'old' }), { expect: 'any' })
  return store
}

const service =
  (optionsOf: (hook: Hook) => ServiceOptions): Start =>
  async (hook) =>
    (await serve(await createStore(), { resources: { '/notes': collection() }, onError, log() {}, ...optionsOf(hook) }))
      .port

const notes = (optionsOf: (hook: Hook) => CollectionOptions): Start =>
  service((hook) => ({ resources: { '/notes': collection(optionsOf(hook)) } }))

const standalone =
  (create: (hook: Hook) => Handler): Start =>
  async (hook) => {
    const guard = create(hook)
    const host = await runServer(
      createServer((req, res) => guard(req, res, (error) => res.writeHead(error ? 500 : 200).end())),
    )
    onTestFinished(() => host.close())
    return host.port
  }

/** Accepted work that reads a file of a store, which opens it by the hook. */
const startWork: Start = async (open) => {
  const store = memoryStore()
  const read = async (path: string) => {
    const found = await store.read(path)
    return path.endsWith('/scan') && found !== undefined ? { ...found, body: { open } } : found
  }
  const process: Process = async ({ file }) => {
    for await (const _ of (await file('scan'))!.open());
  }
  const resources = { '/notes': collection({ create: 'accepted', files: { scan: {} }, process }) }
  return (await serve({ ...store, read } as ResourceStore, { resources, onError, log() {} })).port
}

const authWith = (options: object) =>
  ({ https: 'optional', auth: { requireAuth: 'all', ...options } }) as ServiceOptions
const schemaOf = (validate: (value: unknown) => never) =>
  ({ '~standard': { version: 1, vendor: 'test', validate } }) as const
const state = { contentType: 'text/plain', entityTag: '"a"' } as const

/** The statuses are those of all that a hook may give instead; what is wrong is 500. */
const rows: [name: string, call: Call, request: Request, statuses: number[], start: Start][] = [
  ['authorize', 'awaited', get, [200, 403], notes((authorize) => ({ authorize }))],
  ['scope', 'awaited', get, [200], notes((scope) => ({ scope }))],
  ['conflict', 'awaited', put, [204, 409], notes((conflict) => ({ conflict }))],
  ['beforeWrite', 'awaited', put, [204], notes((beforeWrite) => ({ beforeWrite }))],
  ['schema', 'awaited', put, [], notes((validate) => ({ schema: schemaOf(validate) }))],
  [
    'issues of schema',
    'at once',
    put,
    [422],
    notes((issues) => ({ schema: schemaOf(() => ({ issues: issues() }) as never) })),
  ],
  [
    'issues of schema, for a form',
    'at once',
    ['POST', '/notes', { fields: FORM, body: 'text=new' }],
    [422],
    notes((issues) => ({ schema: schemaOf(() => ({ issues: issues() }) as never) })),
  ],
  [
    'describe',
    'at once',
    ['PUT', '/notes/1/scan', { fields: { 'Content-Type': 'image/png' }, body: 'png' }],
    [201, 204],
    notes((describe) => ({ files: { scan: { describe, replaceable: true } } })),
  ],
  ['process', 'apart', ['POST', '/notes', jsonOf({})], [202], notes((process) => ({ create: 'accepted', process }))],
  [
    'open of a file that accepted work reads',
    'apart',
    ['POST', '/notes', multipartOf([{ name: 'scan', filename: 's', content: 'png' }])],
    [202],
    startWork,
  ],
  ['outbox', 'at once', put, [204], notes((outbox) => ({ outbox }))],
  ['content of outbox', 'at once', put, [], notes((give) => ({ outbox: () => [{ path: '/log/1', content: give() }] }))],
  [
    'body of outbox',
    'at once',
    put,
    [],
    notes((give) => ({ outbox: () => [{ path: '/log/1', content: { contentType: 'text/plain', body: give() } }] })),
  ],
  ['afterCommit', 'apart', put, [204], notes((afterCommit) => ({ afterCommit }))],
  [
    'render',
    'awaited',
    ['GET', '/notes/1', { fields: { Accept: 'text/plain' } }],
    [],
    notes((render) => ({ representations: [{ type: 'text/plain', render }] })),
  ],
  [
    'requireAuth',
    'at once',
    get,
    [200, 401],
    service((requireAuth) => authWith({ requireAuth, schemes: [basic({ accounts: { ada: 'ada' } })] })),
  ],
  ['principal', 'awaited', get, [401], service((principal) => authWith({ principal, challenge: 'Session' }))],
  ['verify of basic', 'awaited', asAda, [200, 401], service((verify) => authWith({ schemes: [basic({ verify })] }))],
  [
    'keyOf of attemptLimit',
    'at once',
    asAda,
    [],
    service((keyOf) => authWith({ schemes: [basic({ accounts: { ada: 'ada' }, throttle: attemptLimit({ keyOf }) })] })),
  ],
  ['verifier of bearer', 'awaited', asToken, [200, 401], service((verify) => authWith({ schemes: [bearer(verify)] }))],
  [
    'scope of bearer',
    'at once',
    asToken,
    [200],
    service((scope) => authWith({ schemes: [bearer(() => ({ id: 'ada' }), { scope })] })),
  ],
  ['origins of cors', 'awaited', fromApp, [200], service((origins) => ({ cors: { origins } }))],
  [
    'trustProxy',
    'at once',
    ['GET', '/notes/1', { fields: { 'X-Forwarded-Proto': 'https' } }],
    [200, 403],
    service((trustProxy) => ({ trustProxy })),
  ],
  ['explain', 'apart', get, [200], service((explain) => ({ explain }))],
  ['formatError', 'apart', ['GET', '/notes/9'], [500], service((formatError) => ({ formatError }))],
  [
    'body of formatError',
    'apart',
    ['GET', '/notes/9'],
    [404, 500],
    service((give) => ({ formatError: () => ({ status: 404, headers: [], body: give() }) })),
  ],
  [
    'onError',
    'apart',
    get,
    [500],
    service((hook) => ({
      onError: hook,
      resources: { '/notes': collection({ authorize: failures['throws an Error'] as Hook }) },
    })),
  ],
  [
    'enqueue',
    'apart',
    ['DELETE', '/notes/1'],
    [202],
    service((enqueue) => ({
      operations: { queue: { enqueue } },
      resources: { '/notes': collection({ deletion: 'queued' }) },
    })),
  ],
  [
    'parse of a patch format',
    'at once',
    ownPatch,
    [422],
    service((parse) => ({ patchFormats: [{ mediaType: 'application/x+json', parse }] })),
  ],
  [
    'apply of a patch format',
    'at once',
    ownPatch,
    [200, 422],
    service((apply) => ({ patchFormats: [{ mediaType: 'application/x+json', parse: () => ({ apply }) }] })),
  ],
  ['range', 'awaited', get, [200], standalone((give) => range(give))],
  ['content of range', 'at once', get, [], standalone((give) => range(() => ({ ...state, content: give() })))],
  ['conditional', 'awaited', get, [200], standalone((give) => conditional(give))],
  ['read of patch', 'awaited', merge, [404], standalone((read) => patch({ read, write() {}, onError }))],
  [
    'document of patch',
    'at once',
    merge,
    [200],
    standalone((give) => patch({ read: () => ({ document: give() }), write() {}, onError })),
  ],
  [
    'write of patch',
    'awaited',
    merge,
    [200],
    standalone((write) => patch({ read: () => ({ document: {} }), write, onError })),
  ],
  ['origins of preflight', 'awaited', preflighted, [204], standalone((origins) => preflight({ origins }))],
  [
    'principal of auth',
    'awaited',
    get,
    [401],
    standalone((principal) => auth({ principal, challenge: 'Session', requireAuth: 'all' })),
  ],
]

it.each(rows)(
  '%s: whatever it does, there is one answer, which tells nothing of it',
  async (_, call, request, statuses, start) => {
    const rejected: unknown[] = []
    const onRejection = (error: unknown): void => void rejected.push(error)
    process.on('unhandledRejection', onRejection)
    onTestFinished(() => void process.off('unhandledRejection', onRejection))
    // Where onError itself fails, its failure is written there.
    const noise = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => noise.mockRestore())
    let calls = 0
    let fault = (): unknown => undefined
    const port = await start((() => {
      calls++
      return fault()
    }) as Hook)
    const answers: Record<string, number> = {}
    const ask = async (faults: Record<string, () => unknown>, expected: number[]): Promise<void> => {
      for (const [title, next] of Object.entries(faults)) {
        calls = 0
        fault = next
        const { status, text } = await send(port, ...request)
        expect([title, text]).toEqual([title, expect.not.stringContaining(SECRET)])
        await vi.waitFor(() => expect([title, calls > 0]).toEqual([title, true]))
        if (!expected.includes(status)) answers[title] = status
      }
    }
    const { 'throws an HttpError': unavailable, ...thrown } = failures
    const given = call === 'apart' ? statuses : [...statuses, 500]
    const failed = call === 'apart' ? statuses : [500]
    await ask(thrown, failed)
    await ask({ 'throws an HttpError': unavailable! }, call === 'apart' ? statuses : [503])
    await ask(rejections, call === 'at once' ? given : failed)
    await ask(values, given)
    if (call === 'at once') await ask(never, given)
    await wait(5)
    expect({ answers, rejected }).toEqual({ answers: {}, rejected: [] })
  },
)
