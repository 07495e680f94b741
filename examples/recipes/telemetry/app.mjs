// examples/recipes/telemetry/app.mjs
import { createServer } from 'node:http'
import { collection, createResourceService, memoryStore, mount } from 'http-resource-service'

const service = createResourceService(memoryStore(), { resources: { '/notes': collection() } })
const server = createServer(mount('/api', service))
server.listen(8080)
process.once('SIGTERM', () => server.close())
