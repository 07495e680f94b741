// examples/recipes/soft-deletion.mjs
import { createServer } from 'node:http'
import { basic, collection, createResourceService, memoryStore } from 'http-resource-service'

const service = createResourceService(memoryStore(), {
  resources: {
    '/articles': collection({
      deletion: 'soft',
      authorize: (principal, request, current) => {
        const isReading = request.query.get('deleted') === 'true'
        const isRestoring = request.method === 'PUT' && current?.deleted === true
        return principal?.id === 'admin' || !(isReading || isRestoring)
      },
    }),
  },
  auth: {
    schemes: [basic({ realm: 'articles', accounts: { admin: 'secret', ada: 'lovelace' } })],
    requireAuth: 'all',
  },
})

createServer(service).listen(8080)
