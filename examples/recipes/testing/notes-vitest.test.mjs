// examples/recipes/testing/notes-vitest.test.mjs
import { createServer } from 'node:http'
import { memoryStore } from 'http-resource-service'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createApp } from './app.mjs'

const service = createApp(memoryStore()) // a new store: no test sees the data of another
const server = createServer(service)
/** @type {string} */
let base

beforeAll(async () => {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  base = `http://127.0.0.1:${port}`
})
afterAll(async () => {
  server.closeAllConnections()
  server.close()
  await service.close()
})

it('refuses a change of a state that the client has not seen', async () => {
  const headers = { 'Content-Type': 'application/json' }
  const created = await fetch(`${base}/notes`, { method: 'POST', headers, body: '{"title":"First"}' })
  const note = base + created.headers.get('location')
  const stale = { ...headers, 'If-Match': '"old"' }
  expect((await fetch(note, { method: 'PUT', headers: stale, body: '{"title":"Second"}' })).status).toBe(412)
  expect(await (await fetch(note)).json()).toEqual({ id: 1, title: 'First' })
})
