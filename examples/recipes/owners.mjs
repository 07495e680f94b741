// examples/recipes/owners.mjs
import { createServer } from 'node:http'
import { basic, collection, createResourceService, memoryStore } from 'http-resource-service'

const accounts = { ada: 'lovelace', bob: 'babbage', root: 'secret' }
const tenants = new Map(Object.entries({ ada: 'engines', bob: 'looms' }))

const service = createResourceService(memoryStore(), {
  resources: {
    '/tasks': collection({
      query: { status: 'string' },
      scope: {
        properties: ['tenant', 'owner'],
        values: ({ principal }) => {
          if (principal?.id === 'root') return undefined // all tasks
          return { tenant: tenants.get(principal?.id ?? ''), owner: principal?.id }
        },
      },
    }),
    // The users of a tenant share its projects.
    '/projects': collection({
      scope: ({ principal }) => ({ tenant: tenants.get(principal?.id ?? '') }),
    }),
    // Who sees the task sees its comments.
    '/tasks/{task}/comments': collection({ parent: true }),
  },
  auth: {
    schemes: [basic({ realm: 'tasks', accounts })],
    requireAuth: 'all',
  },
})

createServer(service).listen(8080)
