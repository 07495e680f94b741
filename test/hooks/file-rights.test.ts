import { expect, it } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { jsonOf } from '../writes/support.ts'
import { as, png, shown, start } from './scoped.ts'

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
