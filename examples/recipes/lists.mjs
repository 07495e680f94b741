// examples/recipes/lists.mjs
import { createServer } from 'node:http'
import { collection, createResourceService, memoryStore } from 'http-resource-service'

const service = createResourceService(memoryStore(), {
  resources: {
    '/tasks': collection({
      query: {
        title: 'string',
        status: 'string',
        dueAt: 'date-time',
        city: { type: 'string', pointer: '/address/city' },
      },
      count: true,
    }),
  },
  cors: { origins: ['http://localhost:3000'] }, // the page may read Link and X-Total-Count
})

createServer(service).listen(8080)
