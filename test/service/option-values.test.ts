import { describe, expect, it } from 'vitest'
import { HttpError, type HttpErrorCode } from '../../src/core/errors.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { serve } from './serve.ts'

const json = 'Content-Type: application/json'

describe('options whose value could not have the effect that they promise', () => {
  const wrong: [string, () => unknown][] = [
    ['require: true', () => collection({ require: true as never })],
    ['preconditions: true', () => document({ preconditions: true as never })],
    ['maxSize: "1kb"', () => document({ maxSize: '1kb' as never })],
    ['maxSize: NaN', () => document({ maxSize: Number.NaN })],
    ['methods: ["get"]', () => document({ methods: ['get' as never] })],
    ['methods: []', () => document({ methods: [] })],
    ['authorize: text', () => document({ authorize: 'x' as never })],
    ['a rendition without render', () => document({ representations: [{ type: 'text/plain' } as never] })],
    ['create: "accept"', () => collection({ create: 'accept' as never })],
    ['remove: "hide"', () => collection({ remove: 'hide' as never })],
    ['names: "int"', () => collection({ names: 'int' as never })],
    ['files: a list', () => collection({ files: ['file'] as never })],
    ['pageSize: 2', () => collection({ pageSize: 2 as never })],
    ['cacheControl with a line break', () => document({ cacheControl: 'a\nb' })],
    ['no store', () => createResourceService(undefined as never)],
    ['a function for a store', () => createResourceService(memoryStore as never)],
    ['resources: a list', () => createResourceService(memoryStore(), { resources: [] as never })],
    [
      'a definition that was not called',
      () => createResourceService(memoryStore(), { resources: { '/a': collection as never } }),
    ],
    [
      'a pattern of another router',
      () => createResourceService(memoryStore(), { resources: { '/a/:id': document() } }),
    ],
    ['an asterisk', () => createResourceService(memoryStore(), { resources: { '/a/*': document() } })],
    ['codings: zstd', () => createResourceService(memoryStore(), { codings: ['zstd' as never] })],
    ['onError: "log"', () => createResourceService(memoryStore(), { onError: 'log' as never })],
    ['errors: "throw"', () => createResourceService(memoryStore(), { errors: 'throw' as never })],
    [
      'operations: { pollInterval: Infinity }',
      () => createResourceService(memoryStore(), { operations: { pollInterval: Number.POSITIVE_INFINITY } }),
    ],
    ['operations: { concurrency: 0 }', () => createResourceService(memoryStore(), { operations: { concurrency: 0 } })],
    [
      'require without auth',
      () => createResourceService(memoryStore(), { resources: { '/a': collection({ require: 'all' }) } }),
    ],
  ]
  it.each(wrong)('are refused: %s', (_, make) => {
    expect(make).toThrow(TypeError)
  })

  it('leave a kind of resource the methods that it has', async () => {
    const { send } = await serve(memoryStore(), {
      resources: { '/one': singleton({ methods: ['GET', 'PUT'] }) },
    })
    expect((await send('OPTIONS', '/one')).field('Allow')).toBe('GET, HEAD, PUT, OPTIONS')
    await send('PUT', '/one', [json], '{}')
    expect((await send('DELETE', '/one')).status).toBe(405)
  })
})

describe('HttpError', () => {
  it.each<[number, unknown, object?]>([
    [404, undefined],
    [409, 'Order was shipped'],
    [200, 'ERR_CONFLICT'],
    [700, 'ERR_CONFLICT'],
    [503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '1' } }],
  ])('takes no status, code or fields that could not be sent: %s %s', (status, code, options) => {
    expect(() => new HttpError(status, code as HttpErrorCode, options as never)).toThrow(TypeError)
  })
})
