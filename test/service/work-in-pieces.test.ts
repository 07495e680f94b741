import { expect, it, vi } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { createDatabaseFile } from '../support/sqlite.ts'
import { serve } from './serve.ts'

const json = 'Content-Type: application/json'

it('accepted work is done, shown and called back where the store keeps all content in pieces', async () => {
  const file = await createDatabaseFile()
  const store = sqliteStore(file.open(), { inlineLimit: 0, reserve: 0, sweepInterval: 0 })
  closeAfterTest(async () => {
    await store.close()
    await file.remove()
  })
  let end = (_: object): void => {}
  const result = new Promise<object>((resolve) => (end = resolve))
  const { send } = await serve(store, {
    resources: {
      '/reports': collection({ create: 'accepted', process: () => result as Promise<{ pages: number }> }),
      '/notes': collection({ deletion: 'queued' }),
    },
    operations: { concurrency: 1, pollInterval: 20, retention: 100 },
  })
  await send('POST', '/reports', [json], '{}')
  const pending = await send('GET', '/reports/1')
  expect([JSON.parse(pending.text).state, pending.field('Retry-After')]).toEqual(['pending', '1'])

  // The only turn is taken: this removal can still be called back.
  await send('POST', '/notes', [json], '{}')
  const calledBack = (await send('DELETE', '/notes/1')).field('Location')!
  expect((await send('DELETE', calledBack)).status).toBe(204)
  const monitor = (await send('DELETE', '/notes/1')).field('Location')!

  end({ pages: 12 })
  await vi.waitFor(async () => {
    expect(JSON.parse((await send('GET', '/reports/1')).text)).toEqual({ id: 1, state: 'ready', pages: 12 })
    expect((await send('GET', '/notes/1')).status).toBe(410)
    expect((await send('GET', monitor)).status).toBe(404)
  }, 10_000)
})
