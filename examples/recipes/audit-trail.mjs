// examples/recipes/audit-trail.mjs
import { createServer } from 'node:http'
import { basic, collection, createResourceService, json, memoryStore } from 'http-resource-service'

const isAuditor = (principal) => principal?.id === 'auditor'

const service = createResourceService(memoryStore(), {
  resources: {
    '/tasks': collection({
      outbox: (change) => [{ path: `/audit/${change.eventId}`, content: json(change) }],
    }),
    // Written by the outbox alone.
    '/audit': collection({
      ids: 'string',
      methods: ['GET'],
      memberMethods: ['GET'],
      authorize: isAuditor,
    }),
  },
  auth: {
    schemes: [basic({ realm: 'tasks', accounts: { ada: 'lovelace', auditor: 'secret' } })],
    requireAuth: 'all',
  },
})

createServer(service).listen(8080)
