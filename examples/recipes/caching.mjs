// examples/recipes/caching.mjs
import { createServer } from 'node:http'
import { basic, collection, createResourceService, document, memoryStore } from 'http-resource-service'

const service = createResourceService(memoryStore(), {
  resources: {
    '/articles': collection({ cacheControl: 'max-age=60' }), // caches serve it for a minute
    '/assets/{name}': document({ cacheControl: 'max-age=31536000, immutable' }), // a new name for new content
    '/notes': collection({ requireAuth: 'all' }), // no cacheControl: "private, no-cache"
  },
  trustProxy: 'loopback',
  auth: { schemes: [basic({ realm: 'notes', accounts: { ada: 'lovelace' } })], requireAuth: 'writes' },
})

createServer(service).listen(8080)
