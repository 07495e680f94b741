import { afterEach, describe, expect, it } from 'vitest'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { STORES } from '../hooks/stores.ts'
import { openRawClient } from '../wire/raw-client.ts'
import { jsonOf, startService, type Target } from './support.ts'

let target: Target
afterEach(() => target.close())

/** Definitions whose PUT takes each of the ways to the store. */
const OPTIONS: readonly (readonly [string, CollectionOptions])[] = [
  ['nothing else', {}],
  ['beforeWrite', { beforeWrite: (value) => value }],
  ['afterCommit', { afterCommit: () => {} }],
  ['conflict', { conflict: () => undefined }],
  ['authorize', { authorize: () => true }],
]

describe.each(Object.entries(STORES))('PUT where it creates nothing, on %s', (_, createStore) => {
  async function startItems(options: CollectionOptions): Promise<string> {
    target = await startService({ resources: { '/items': collection({ ids: 'uuid', ...options }) } }, createStore())
    return (await target.send('POST', '/items', jsonOf({ n: 1 }))).field('location')!
  }

  it.each(OPTIONS)('is 410 for an item that is removed while the content arrives, with %s', async (_, options) => {
    const path = await startItems(options)
    const client = await openRawClient(target.port)
    try {
      const fields = ['Content-Type: application/json', 'Content-Length: 7', 'Expect: 100-continue']
      client.send([`PUT ${path} HTTP/1.1`, 'Host: localhost', ...fields, '', ''].join('\r\n'))
      expect((await client.read('PUT')).status).toBe(100)
      expect((await target.send('DELETE', path)).status).toBe(204)
      client.send('{"n":2}')
      expect((await client.read('PUT')).status).toBe(410)
    } finally {
      await client.leave()
    }
    expect((await target.send('GET', path)).status).toBe(410)
  })

  it.each(OPTIONS)('restores an item that is softly deleted, with %s', async (_, options) => {
    const path = await startItems({ ...options, deletion: 'soft' })
    expect((await target.send('DELETE', path)).status).toBe(204)
    expect((await target.send('PUT', path, jsonOf({ n: 2 }))).status).toBe(201)
    expect((await target.send('GET', path)).json()).toEqual({ id: path.split('/').at(-1), n: 2 })
    expect(
      (
        await target.send(
          'PUT',
          path.replace(/.$/, (x) => (x === '0' ? '1' : '0')),
          jsonOf({}),
        )
      ).status,
    ).toBe(404)
  })
})
