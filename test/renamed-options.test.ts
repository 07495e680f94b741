import { describe, expect, it } from 'vitest'
import {
  attemptLimit,
  auth,
  basic,
  bearer,
  bodyParse,
  collection,
  conditional,
  createResourceService,
  digest,
  document,
  HttpError,
  jwt,
  memoryStore,
  patch,
  type RequestView,
  type ResourceDefinition,
  singleton,
} from '../src/index.ts'
import * as kit from '../src/testing.ts'
import { serve } from './handlers/serve.ts'

const accounts = { ada: 'lovelace' }
const schemes = [basic({ accounts })]
const service = (options: object) => () => createResourceService(memoryStore(), options)
const target = { read: () => undefined, write: () => undefined }
const issuer = { keys: new Uint8Array(32), algorithms: ['HS256'], issuer: 'https://issuer.test', audience: 'api' }

const DEFINE = [collection, document, singleton] as readonly ((options: object) => unknown)[]

/** Every old name, where it was an option, and the new name. */
const RENAMED: readonly (readonly [was: string, now: string, make: () => unknown])[] = [
  ...DEFINE.flatMap((define) => {
    const given = (options: object) => () => define(options)
    return [
      ['replaced', 'putResponse', given({ replaced: 'none' })],
      ['require', 'requireAuth', given({ require: 'writes' })],
    ] as const
  }),
  ...DEFINE.slice(0, 2).flatMap((define) => {
    const given = (options: object) => () => define(options)
    return [
      ['remove', 'deletion', given({ remove: 'erase' })],
      ['removed', 'deleteResponse', given({ removed: 'tag' })],
      ['keeps', 'storedHeaders', given({ keeps: ['Content-Language'] })],
      ['inline', 'allowInline', given({ inline: ['text/html'] })],
    ] as const
  }),
  ['createdCacheControl', 'postCacheControl', () => collection({ createdCacheControl: 'no-store' } as object)],
  ['names', 'ids', () => collection({ names: 'uuid' } as object)],
  ['form', 'formFields', () => collection({ form: { pri: 'priority' } } as object)],
  ['text', 'textProperty', () => collection({ text: 'note' } as object)],
  ['codings', 'contentCodings', service({ codings: ['gzip'] })],
  ['codings', 'contentCodings', () => bodyParse({ codings: ['gzip'] } as object)],
  ['parsedSize', 'bodySize', service({ limits: { parsedSize: 1 } })],
  ['parsedSize', 'bodySize', () => bodyParse({ limits: { parsedSize: 1 } as object })],
  ['parsedSize', 'bodySize', () => patch({ ...target, limits: { parsedSize: 1 } as object })],
  ['errors', 'unexpectedErrors', service({ errors: 'answer' })],
  ['require', 'requireAuth', service({ auth: { schemes, require: 'all' } })],
  ['require', 'requireAuth', () => auth({ schemes, require: 'all' } as never)],
  ['required', 'preconditions', () => conditional(() => undefined, { required: true } as object)],
  ['required', 'preconditions', () => patch({ ...target, required: true } as never)],
  ['formats', 'patchFormats', () => patch({ ...target, formats: [] } as never)],
  ['remember', 'cacheLifetime', () => basic({ accounts, remember: 60 } as never)],
  ['remember', 'cacheLifetime', () => bearer(() => true, { remember: 60 } as never)],
  ['remember', 'cacheSize', () => jwt({ ...issuer, remember: 60 } as never)],
  ['seconds', 'window', () => attemptLimit({ seconds: 60 } as never)],
]

describe('an option of 0.1.0 that has another name since 0.2.0', () => {
  it.each(RENAMED)('%s: is refused with the new name, %s', (was, now, make) => {
    expect(make).toThrow(TypeError)
    expect(make).toThrow(`has no option "${was}". It is "${now}" since 0.2.0`)
  })

  it('is refused with the unit, where that is another one too', () => {
    expect(() => basic({ accounts, remember: 60 } as never)).toThrow('"cacheLifetime" since 0.2.0, in milliseconds.')
    expect(() => attemptLimit({ seconds: 60 } as never)).toThrow('"window" since 0.2.0, in milliseconds.')
  })

  it('is not named where an option of that name exists, or where the new one does not', () => {
    expect(() => collection({ files: { photo: { required: true } } })).not.toThrow()
    expect(() => digest({ accounts, required: true } as never)).toThrow('digest has no option "required". It has: ')
    expect(() => collection({ toString: 1 } as never)).toThrow('collection has no option "toString". It has: ')
  })
})

describe('a value of 0.1.0 that is written in another way since 0.2.0', () => {
  it.each([
    ["collection deletion: 'erase' is 'hard' since 0.2.0.", () => collection({ deletion: 'erase' as never })],
    ["document deletion: 'erase' is 'hard' since 0.2.0.", () => document({ deletion: 'erase' as never })],
    [
      "createResourceService unexpectedErrors: 'answer' is 'respond' since 0.2.0.",
      service({ unexpectedErrors: 'answer' }),
    ],
    [
      "conditional takes as preconditions: one of 'optional', 'required'; it is true.",
      () => conditional(() => undefined, { preconditions: true as never }),
    ],
    [
      "patch takes as preconditions: one of 'optional', 'required'; it is true.",
      () => patch({ ...target, preconditions: true as never }),
    ],
    [
      "HttpError takes headers as an object: { 'Retry-After': '5' }, not a list.",
      () => new HttpError(503, 'ERR_UNAVAILABLE', { headers: ['Retry-After', '1'] as never }),
    ],
  ])('is refused: %s', (message, make) => {
    expect(make).toThrow(new TypeError(message))
  })
})

describe("authorize that returns 'hide', which is 'not-found' since 0.2.0", () => {
  const hide = (() => 'hide') as never
  const fault = new TypeError("authorize: 'hide' is 'not-found' since 0.2.0.")
  const json = (body: string, contentType = 'application/json') => ({ contentType, body })

  async function start(resources: Readonly<Record<string, ResourceDefinition>>) {
    const store = memoryStore()
    const reported: unknown[] = []
    const onError = (error: unknown) => void reported.push(error)
    return { store, reported, send: await serve(createResourceService(store, { resources, onError })) }
  }

  it.each([
    ['GET', {}, undefined],
    ['DELETE', {}, undefined],
    ['PUT', { 'Content-Type': 'application/json' }, '{}'],
    ['PATCH', { 'Content-Type': 'application/merge-patch+json' }, '{"a":1}'],
  ])('is answered 500 and reported: %s', async (method, fields, body) => {
    const { store, reported, send } = await start({
      '/docs/{id}': document({ authorize: hide, types: ['application/json'] }),
    })
    store.write('/docs/1', json('{}'), { expect: 'any' })
    expect((await send(method, '/docs/1', fields, body)).status).toBe(500)
    expect(reported).toEqual([fault])
    expect(store.read('/docs/1')).toMatchObject({ body: expect.anything(), size: 2 })
  })

  it('is answered 500 in a listing, too', async () => {
    const authorize = ((_: unknown, { path }: RequestView) => path === '/docs' || 'hide') as never
    const { store, reported, send } = await start({ '/docs': collection({ authorize }) })
    store.write('/docs/1', json('{"id":1}'), { expect: 'any' })
    expect((await send('GET', '/docs')).status).toBe(500)
    expect(reported).toEqual([fault])
  })

  it('is answered 500 for a resource that was removed', async () => {
    const { store, reported, send } = await start({ '/docs/{id}': document({ authorize: hide }) })
    store.write('/docs/1', json('a', 'text/plain'), { expect: 'any' })
    store.remove('/docs/1', { expect: 'any', mode: 'tombstone' })
    expect((await send('GET', '/docs/1')).status).toBe(500)
    expect(reported).toEqual([fault])
  })

  it('does not let a request pass the middleware auth', async () => {
    const guard = auth({ schemes, requireAuth: () => false, authorize: hide })
    const failures: unknown[] = []
    const send = await serve((req, res) =>
      guard(req, res, (error) => {
        failures.push(error)
        res.statusCode = error === undefined ? 200 : 500
        res.end()
      }),
    )
    expect((await send('GET', '/')).status).toBe(500)
    expect(failures).toEqual([fault])
  })
})

it('describeStore stands for testStore, as its old name', () => {
  expect(kit.describeStore).toBe(kit.testStore)
})
