import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { createGate } from '../../src/conformance/samples.ts'
import type { RequestView } from '../../src/core/request-view.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { beforeWrites } from '../support/before-writes.ts'
import { jsonOf, startService, type Target } from './support.ts'

let target: Target | undefined
afterEach(() => target?.close())

/** A store in which somebody else replaces `/notes/1` right before the next write or removal. */
function createRace(): { store: ResourceStore; interfere(): void } {
  const inner = memoryStore()
  let isDue = false
  const interfere = async (): Promise<void> => {
    if (!isDue) return
    isDue = false
    const body = '{"id":1,"owner":"ada"}'
    await inner.write('/notes/1', { contentType: 'application/json', body }, { expect: 'any' })
  }
  return {
    store: beforeWrites(inner, interfere),
    interfere: () => {
      isDue = true
    },
  }
}

describe('authorisation by the state', () => {
  it.each(['PUT', 'DELETE', 'PATCH'])(
    'counts for the very state that %s replaces, If-Match: * or not',
    async (method) => {
      const { store, interfere } = createRace()
      target = await startService(
        {
          resources: {
            '/notes': collection<{ owner: string }>({
              authorize: (_, { headers }, current) =>
                current === undefined || current.value?.owner === headers['x-user'],
            }),
          },
        },
        store,
      )
      await target.send('POST', '/notes', jsonOf({ owner: 'eve' }))
      interfere()
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const body = method === 'DELETE' ? {} : { body: '{"owner":"eve","mine":true}' }
      const fields = { 'x-user': 'eve', 'If-Match': '*', 'Content-Type': type }
      expect((await target.send(method, '/notes/1', { fields, ...body })).status).toBe(403)
      expect((await target.send('GET', '/notes/1', { fields: { 'x-user': 'ada' } })).json()).toEqual({
        id: 1,
        owner: 'ada',
      })
    },
  )

  it.each(['PUT', 'DELETE', 'PATCH'])(
    'comes before the condition where %s has lost a race: 403, as 412 would tell of the state',
    async (method) => {
      const { store, interfere } = createRace()
      const authorize = (_: unknown, { headers }: RequestView, current: { value?: unknown } | undefined): boolean =>
        current === undefined || (current.value as { owner: string }).owner === headers['x-user']
      target = await startService({ resources: { '/notes': collection({ authorize }) } }, store)
      const tag = (await target.send('POST', '/notes', jsonOf({ owner: 'eve' }))).field('etag')!
      interfere()
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const body = method === 'DELETE' ? {} : { body: '{"owner":"eve","mine":true}' }
      const fields = { 'x-user': 'eve', 'If-Match': tag, 'Content-Type': type }
      expect((await target.send(method, '/notes/1', { fields, ...body })).status).toBe(403)
    },
  )

  it.each(['PUT', 'DELETE', 'PATCH'])('counts anew for %s that has waited for its turn', async (method) => {
    const [reached, held] = [createGate(), createGate()]
    let isHeld = false
    const store = beforeWrites(memoryStore(), () => {
      if (!isHeld) return
      reached.open()
      return held.opened
    })
    const notes = collection<{ owner: string }>({
      authorize: (_, { headers }, current) => current === undefined || current.value?.owner === headers['x-user'],
    })
    target = await startService({ resources: { '/notes': notes } }, store)
    await target.send('POST', '/notes', jsonOf({ owner: 'eve' }))
    isHeld = true
    const first = target.send('PUT', '/notes/1', jsonOf({ owner: 'ada' }, { 'x-user': 'eve' }))
    await reached.opened
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const body = method === 'DELETE' ? {} : { body: '{"owner":"eve"}' }
    const second = target.send(method, '/notes/1', { fields: { 'x-user': 'eve', 'Content-Type': type }, ...body })
    await sleep(50)
    held.open()
    expect([(await first).status, (await second).status]).toEqual([204, 403])
  })

  it('comes before the content: 403, as 415, 413 and 400 would tell that the method is there', async () => {
    target = await startService({ resources: { '/notes': collection({ authorize: () => false }) } })
    for (const fields of [
      { 'Content-Type': 'x/y' },
      { 'Content-Type': 'application/json', 'Content-Encoding': 'zstd' },
      { 'Content-Type': 'application/json', 'Content-Range': 'bytes 0-1/2' },
    ]) {
      expect((await target.send('PUT', '/notes/1', { fields, body: '{' })).status).toBe(403)
    }
  })
})
