import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { afterEach, describe, expect, it } from 'vitest'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { jsonOf, send } from './support.ts'

const closers: (() => unknown)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

describe('Idempotency-Key behind a body parser of the host', () => {
  it.each([
    ['express.json()', express.json()],
    ['express.text()', express.text({ type: '*/*' })],
    ['express.raw()', express.raw({ type: '*/*' })],
  ])('is tied to the content that %s has left (issue 20, all hosts)', async (_, parser) => {
    const store = memoryStore()
    const service = createResourceService(store, { resources: { '/users': collection({ idempotency: 'optional' }) } })
    const app = express().disable('x-powered-by').use('/api', parser, service)
    const server = createServer(app as RequestListener).listen(0, '127.0.0.1')
    closers.push(() => server.close(), service.close)
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const key = { 'Idempotency-Key': 'a-key-of-16-chars' }
    const create = (name: string) => send(port, 'POST', '/api/users', jsonOf({ name }, key))
    const first = await create('Ann')
    const second = await create('Ann')
    expect([first.status, first.field('location')]).toEqual([201, '/api/users/1'])
    expect([second.text, second.field('location'), second.field('idempotency-replayed')]).toEqual([
      first.text,
      '/api/users/1',
      '?1',
    ])
    expect((await create('Bob')).status).toBe(422)
    expect((await store.list('/users', { limit: 5 })).items).toHaveLength(1)
  })
})
