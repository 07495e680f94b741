import { afterEach, describe, expect, it } from 'vitest'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
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

it('PUT of large content replaces an item that another client restores first', async () => {
  const inner = memoryStore()
  let isDue = false
  const store: ResourceStore = {
    ...inner,
    async write(path, content, options) {
      if (isDue) {
        isDue = false
        await inner.write(path, { contentType: 'text/plain', body: 'other' }, { expect: 'absent' })
      }
      return inner.write(path, content, options)
    },
  }
  const options = { types: ['*/*'], deletion: 'soft', clientIds: false } as const
  target = await startService({ resources: { '/files': collection(options) } }, store)
  await target.send('POST', '/files', { fields: { 'Content-Type': 'text/plain' }, body: 'first' })
  expect((await target.send('DELETE', '/files/1')).status).toBe(204)
  isDue = true
  const body = 'b'.repeat(100_000)
  expect((await target.send('PUT', '/files/1', { body })).status).toBe(204)
  expect([isDue, (await target.send('GET', '/files/1')).text]).toEqual([false, body])
})

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
