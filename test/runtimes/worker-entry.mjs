// The demo as a Worker: bundled by run-worker.mjs. Everything is constructed while the module is loaded.

import { httpServerHandler } from 'cloudflare:node'
import { createServer } from 'node:http'
import { memoryStore } from 'http-resource-service'
import { createDemo, seed } from '../../examples/demo/service.js'

const { DEMO_SECRET: secret, DEMO_USER: user, DEMO_PASSWORD: password, CORS_ORIGINS: origins } = process.env
const store = memoryStore()
const service = createDemo(store, { secret, user, password, origins: origins.split(','), acceptsWork: false })
let seeded
const server = createServer(async (req, res) => {
  // Versions are random: nothing may be written before the first request.
  await (seeded ??= seed(store))
  service(req, res)
})
server.listen(8080)

export default httpServerHandler({ port: 8080 })
