import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import type { RequestEvent } from '../../src/core/diagnostics.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { type Served, serve } from './serve.ts'

const json = 'Content-Type: application/json'

/** Serves resources, and gives the steps of one request that follow the check of its method. */
async function serveTraced(resources: ServiceOptions['resources'], more: ServiceOptions = {}) {
  const events: RequestEvent[] = []
  const listen = (event: unknown): void => void events.push(event as RequestEvent)
  subscribe('http-resource-service:request', listen)
  closeAfterTest(async () => unsubscribe('http-resource-service:request', listen))
  const { send } = await serve(memoryStore(), { ...(resources && { resources }), ...more })
  const stepsOf = async (...request: Parameters<Served['send']>): Promise<readonly string[]> => {
    events.length = 0
    await send(...request)
    // Another request follows on the connection.
    const names = events[0]!.steps.map((step) => step.replace(/:.*/, ''))
    return names.slice(names.indexOf('checkMethod') + 1)
  }
  return { send, stepsOf }
}

describe('the steps of a resource', () => {
  it('are those that its definition and the method need', async () => {
    const { stepsOf } = await serveTraced({ '/plain': collection() })
    expect(await stepsOf('POST', '/plain', [json], '{}')).toEqual([
      ...['refuseCrossSite', 'checkContent', 'loadCurrent', 'evaluateConditions', 'perform'],
    ])
    const read = ['negotiate', 'loadCurrent', 'negotiateStored', 'evaluateConditions', 'selectContent', 'perform']
    expect(await stepsOf('GET', '/plain/1')).toEqual(read)
    expect(await stepsOf('HEAD', '/plain/1')).toEqual(read)
    expect(await stepsOf('DELETE', '/plain/1')).toEqual([
      ...['refuseCrossSite', 'checkContent', 'loadCurrent', 'evaluateConditions', 'perform'],
    ])
  })

  it('are in the order of decisions where a definition asks for all of them', async () => {
    const everything = collection({
      ...{ deletion: 'soft', idempotency: 'optional', parent: true, scope: () => undefined, authorize: () => true },
      query: { a: 'number' },
    })
    const { send, stepsOf } = await serveTraced(
      { '/lists': collection(), '/lists/{list}/items': everything },
      { auth: { schemes: [basic({ realm: 'test', accounts: { ada: 'lovelace' } })], requireAuth: () => false } },
    )
    await send('POST', '/lists', [json], '{}')
    const guards = ['checkParent', 'applyScope', 'checkAuthorization']
    expect(await stepsOf('POST', '/lists/1/items', [json], '{"a":1}')).toEqual([
      ...['authenticate', 'refuseCrossSite', ...guards, 'checkContent', 'checkRepeated'],
      ...['loadCurrent', 'evaluateConditions', 'perform'],
    ])
    expect(await stepsOf('GET', '/lists/1/items/1')).toEqual([
      ...['authenticate', 'seeHidden', ...guards, 'negotiate', 'loadCurrent', 'negotiateStored', 'evaluateConditions'],
      ...['selectContent', 'perform'],
    ])
  })

  it('are found anew for every definition: one that guards nothing does not open another', async () => {
    const { send } = await serveTraced({
      '/open/{name}': document(),
      '/closed/{name}': document({ authorize: (_, { method }) => method === 'PUT' }),
    })
    for (let round = 0; round < 3; round++) {
      for (const path of ['/open/a', '/closed/a']) {
        expect((await send('PUT', path, ['Content-Type: text/plain'], 'x')).status).toBe(round === 0 ? 201 : 204)
      }
      expect((await send('GET', '/open/a')).status).toBe(200)
      expect((await send('GET', '/closed/a')).status).toBe(403)
      expect((await send('HEAD', '/closed/a')).status).toBe(403)
    }
  })
})

describe('the media type that a rule has accepted last', () => {
  it('is one of its own rule: each request is judged by its own field', async () => {
    const { send } = await serveTraced({
      '/json': document({ types: ['application/json'] }),
      '/any/{name}': document(),
    })
    const put = async (path: string, type: string, body = '{}'): Promise<number> =>
      (await send('PUT', path, [`Content-Type: ${type}`], body)).status
    const rows: readonly (readonly [string, string, number])[] = [
      ['/json', 'application/json', 201],
      ['/any/a', 'text/plain', 201],
      ['/json', 'text/plain', 415],
      ['/json', 'application/json; charset=latin1', 415],
      ['/json', 'application/merge-patch+json', 415],
      ['/json', 'application/json', 204],
      ['/json', 'application/json; charset=utf-8', 204],
      ['/json', 'application/json;;', 204],
      ['/json', 'application/json; a', 400],
      ['/json', 'APPLICATION/JSON', 204],
      ['/any/a', 'text/html', 204],
    ]
    for (const [path, type, status] of rows) expect([path, type, await put(path, type)]).toEqual([path, type, status])
    expect((await send('GET', '/any/a')).field('content-type')).toBe('text/html')
  })

  it('keeps no boundary for the next form', async () => {
    const { send } = await serveTraced({ '/forms': collection() })
    for (const boundary of ['a', 'b', 'a', 'c']) {
      const body = `--${boundary}\r\nContent-Disposition: form-data; name="x"\r\n\r\n${boundary}\r\n--${boundary}--\r\n`
      const created = await send('POST', '/forms', [`Content-Type: multipart/form-data; boundary=${boundary}`], body)
      const stored = await send('GET', String(created.field('location')))
      expect(JSON.parse(stored.text)).toMatchObject({ x: boundary })
    }
  })
})
