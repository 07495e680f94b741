// examples/recipes/testing/notes-node.test.mjs
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { after, before, test } from 'node:test'
import { memoryStore } from 'http-resource-service'
import { createApp } from './app.mjs'

const service = createApp(memoryStore())
const server = createServer(service)
/** @type {string} */
let base

before(async () => {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  base = `http://127.0.0.1:${port}`
})
after(async () => {
  server.closeAllConnections()
  server.close()
  await service.close()
})

test('lists what was created', async () => {
  const headers = { 'Content-Type': 'application/json' }
  await fetch(`${base}/notes`, { method: 'POST', headers, body: '{"title":"First"}' })
  assert.deepEqual(await (await fetch(`${base}/notes`)).json(), [{ id: 1, title: 'First' }])
})
