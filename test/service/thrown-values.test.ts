import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { HttpError } from '../../src/core/errors.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { runServer } from '../support/hosts.ts'
import { senderTo } from './serve.ts'

/** A proxy that throws itself, whatever is asked of it. */
function hostileProxy(): object {
  const refuse = (): never => {
    throw proxy
  }
  const proxy: object = new Proxy({}, { get: refuse, has: refuse, getPrototypeOf: refuse, ownKeys: refuse })
  return proxy
}

function withGetter(name: string): Error {
  return Object.defineProperty(new Error('secret'), name, {
    get() {
      throw new Error('a getter')
    },
  })
}

const BRAND = Symbol.for('http-resource-service.HttpError')

const thrown: readonly (readonly [string, () => unknown])[] = [
  ['a proxy that throws', hostileProxy],
  ['a getter of "code" that throws', () => withGetter('code')],
  ['a getter of "name" that throws', () => withGetter('name')],
  ['a getter of "message" that throws', () => withGetter('message')],
  ['an object without a prototype', () => Object.create(null)],
  ['null', () => null],
  ['a symbol', () => Symbol('secret')],
  [
    'an HttpError with members that JSON cannot hold',
    () => new HttpError(402, 'ERR_NO_CREDIT', { extensions: { balance: 5n } }),
  ],
  [
    'an HttpError with a cause that cannot be read',
    () => new HttpError(503, 'ERR_UNAVAILABLE', { cause: hostileProxy() }),
  ],
  ['an HttpError of another copy that has no status', () => ({ [BRAND]: true })],
  [
    'an HttpError whose status is not that of an error',
    () => Object.assign(new HttpError(500, 'ERR_X'), { status: 200 }),
  ],
  ['an HttpError whose detail is not text', () => new HttpError(500, 'ERR_X', { detail: 5 as never })],
  ['an HttpError whose errors are not objects', () => new HttpError(500, 'ERR_X', { errors: ['secret'] as never })],
]

describe('whatever a store throws', () => {
  it.each(thrown)('is answered from 500 on, and lets the service close: %s', async (_, make) => {
    const faults: (() => never | Promise<never>)[] = [
      () => {
        throw make()
      },
      () => Promise.reject(make()),
    ]
    for (const explain of [undefined, () => {}]) {
      for (const read of faults) {
        for (const hasHost of [false, true]) {
          const store: ResourceStore = { ...memoryStore(), read, list: read }
          const options = {
            resources: { '/a': collection() },
            log: () => {},
            onError: () => {},
            ...(explain && { explain }),
          }
          const service = createResourceService(store, options)
          const forwarded: unknown[] = []
          const host = await runServer(
            createServer((req, res) => service(req, res, hasHost ? (error) => forwarded.push(error) : undefined)),
          )
          const send = senderTo(host.port)
          for (const target of ['/a/1', '/a']) {
            const answer = await send('GET', target)
            expect(answer.status).toBeGreaterThanOrEqual(500)
            expect(answer.text).not.toContain('secret')
          }
          expect(forwarded).toEqual([])
          await service.close()
          await host.close()
        }
      }
    }
  })
})
