// examples/recipes/behind-nginx.mjs
import { createServer } from 'node:http'
import { basic, collection, createResourceService, memoryStore } from 'http-resource-service'

const service = createResourceService(memoryStore(), {
  resources: { '/notes': collection() },
  trustProxy: 'loopback', // nginx on this machine; otherwise its address: ['10.0.0.5']
  allowedHosts: ['api.example'], // any other Host is 421
  auth: { schemes: [basic({ realm: 'notes', accounts: { ada: 'lovelace' } })], requireAuth: 'writes' },
})

const server = createServer(service)
server.keepAliveTimeout = 65_000 // above the keepalive_timeout of nginx, 60 s
server.listen(8080, '127.0.0.1')
