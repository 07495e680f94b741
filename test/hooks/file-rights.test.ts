import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { createGate } from '../../src/conformance/samples.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { beforeWrites } from '../support/before-writes.ts'
import { jsonOf } from '../writes/support.ts'
import { as, png, scope, shown, start } from './scoped.ts'
import { STORES } from './stores.ts'

const isOwn: NonNullable<CollectionOptions['authorize']> = (_, { headers }, current) =>
  headers['x-user'] === 'boss' || (current?.value as { owner?: string } | undefined)?.owner === headers['x-user']

it('PUT of a file tells nothing of an item that authorize hides, also where the request has another fault', async () => {
  const notes = collection({
    ids: 'string',
    files: { photo: { replaceable: true } },
    maxSize: 10,
    authorize: (_, { headers }, current) =>
      (current?.value as { owner?: string } | undefined)?.owner === headers['x-user'] ||
      current === undefined ||
      'not-found',
  })
  const target = await start(memoryStore(), { '/notes': notes })
  expect((await target.send('PUT', '/notes/a', jsonOf({ owner: 'ada' }, as('ada')))).status).toBe(201)
  const faults = [
    [413, { body: Buffer.alloc(11) }],
    [415, { fields: { 'Content-Encoding': 'zstd' } }],
    [400, { fields: { 'Content-Range': 'bytes 0-0/1' } }],
    [400, { fields: { 'Content-Digest': 'sha-256=:AAAA:' } }],
    [404, {}],
  ] as const
  for (const [status, fault] of faults) {
    const { fields, body } = png('bob', 'x', 'fields' in fault ? fault.fields : {})
    const options = { fields, body: 'body' in fault ? fault.body : body }
    const [other, none] = [
      await target.send('PUT', '/notes/a/photo', options),
      await target.send('PUT', '/notes/b/photo', options),
    ]
    expect([none.status, shown(other, '/notes/a')]).toEqual([status, shown(none, '/notes/b')])
  }
})

it('GET and PUT of a file tell of the removal of its item only to those who may read every item', async () => {
  const notes = collection({
    ids: 'string',
    files: { photo: { replaceable: true } },
    authorize: (_, { headers }, current) =>
      current === undefined ||
      headers['x-user'] === 'boss' ||
      (current.value as { owner?: string } | undefined)?.owner === headers['x-user'] ||
      'not-found',
  })
  const target = await start(memoryStore(), { '/notes': notes })
  expect((await target.send('PUT', '/notes/a', jsonOf({ owner: 'ada' }, as('ada')))).status).toBe(201)
  expect((await target.send('PUT', '/notes/a/photo', png('ada', 'x'))).status).toBe(201)
  expect((await target.send('DELETE', '/notes/a', { fields: as('ada') })).status).toBe(204)
  for (const method of ['GET', 'HEAD', 'PUT']) {
    const options = (user: string) => (method === 'PUT' ? png(user, 'x') : { fields: as(user) })
    const [gone, never] = [
      await target.send(method, '/notes/a/photo', options('bob')),
      await target.send(method, '/notes/b/photo', options('bob')),
    ]
    expect([method, never.status, shown(gone, '/notes/a')]).toEqual([method, 404, shown(never, '/notes/b')])
    expect([method, (await target.send(method, '/notes/a/photo', options('boss'))).status]).toEqual([method, 410])
  }
})

describe.each(Object.keys(STORES))('GET of a file of %s', (name) => {
  it.each([
    ['scope', { scope }, 404],
    ['authorize', { authorize: isOwn }, 403],
  ] as const)(
    'gives an earlier owner nothing that came after the item had changed hands (%s)',
    async (_, rights, refusal) => {
      const inner = STORES[name]!()
      const resources = { '/notes': collection({ files: { photo: { replaceable: true } }, ...rights }) }
      const other = await start(inner, resources)
      let give: (() => Promise<unknown>) | undefined
      const store: ResourceStore = {
        ...inner,
        async read(path, options) {
          const now = path.endsWith('/photo') ? give : undefined
          if (now !== undefined) give = undefined
          await now?.()
          return await inner.read(path, options)
        },
      }
      const target = await start(store, resources)
      const put = (owner: string) => other.send('PUT', '/notes/1', jsonOf({ owner }, as('boss')))
      const get = (method: string, user: string) => target.send(method, '/notes/1/photo', { fields: as(user) })
      await other.send('POST', '/notes', jsonOf({}, as('boss')))
      for (const method of ['GET', 'HEAD']) {
        await put('ada')
        await other.send('PUT', '/notes/1/photo', png('boss', 'of ada'))
        expect((await get(method, 'ada')).status).toBe(200)
        give = async () => {
          await put('bob')
          await other.send('PUT', '/notes/1/photo', png('bob', 'a secret of bob'))
        }
        const { status, text } = await get(method, 'ada')
        expect([method, status, text.includes('secret')]).toEqual([method, refusal, false])
        expect((await get('GET', 'bob')).text).toBe('a secret of bob')
      }
      // Where the item stays with its owner, the file is the one of now.
      give = () => other.send('PUT', '/notes/1/photo', png('bob', 'another'))
      expect((await get('GET', 'bob')).text).toBe('another')
    },
  )
})

it('PUT of a file that has waited for another one tells nothing of it to an earlier owner of the item', async () => {
  const inner = memoryStore()
  const resources = { '/notes': collection({ files: { photo: { replaceable: true } }, authorize: isOwn }) }
  const other = await start(inner, resources)
  const [reached, held] = [createGate(), createGate()]
  const store = beforeWrites(inner, () => {
    reached.open()
    return held.opened
  })
  const target = await start(store, resources)
  await other.send('POST', '/notes', jsonOf({ owner: 'ada' }, as('boss')))
  const first = target.send('PUT', '/notes/1/photo', png('boss', 'a secret of bob'))
  await reached.opened
  const second = target.send('PUT', '/notes/1/photo', png('ada', 'x', { 'If-None-Match': '*' }))
  await sleep(50)
  expect((await other.send('PUT', '/notes/1', jsonOf({ owner: 'bob' }, as('boss')))).status).toBe(204)
  held.open()
  expect([(await first).status, (await second).status]).toEqual([201, 403])
})

it('GET of a file whose item changes at every look is 503 in the end, and pauses in between', async () => {
  const inner = memoryStore()
  const resources = { '/notes': collection({ files: { photo: { replaceable: true } }, scope }) }
  const other = await start(inner, resources)
  await other.send('POST', '/notes', jsonOf({ owner: 'ada' }, as('ada')))
  await other.send('PUT', '/notes/1/photo', png('ada', 'x'))
  let looks = 0
  const store: ResourceStore = {
    ...inner,
    async read(path, options) {
      if (path.endsWith('/photo'))
        await other.send('PUT', '/notes/1', jsonOf({ owner: 'ada', looks: ++looks }, as('ada')))
      return await inner.read(path, options)
    },
  }
  const target = await start(store, resources)
  const pauses = vi.spyOn(globalThis, 'setTimeout')
  const { status, fields } = await target.send('GET', '/notes/1/photo', { fields: as('ada') })
  const count = pauses.mock.calls.filter(([, time]) => Number(time) < 50).length
  pauses.mockRestore()
  expect([status, fields.some(([name]) => name === 'retry-after'), looks]).toEqual([503, true, 100])
  expect(count).toBeGreaterThanOrEqual(90)
})
