// examples/recipes/timestamps.mjs
import { createServer } from 'node:http'
import { basic, collection, createResourceService, memoryStore } from 'http-resource-service'
import { z } from 'zod' // npm install zod

const Task = z.object({
  title: z.string().min(1),
  // Set by the server; it overwrites what a client sends.
  createdAt: z.string().optional(),
  createdBy: z.string().optional(),
  updatedAt: z.string().optional(),
  updatedBy: z.string().optional(),
})

const service = createResourceService(memoryStore(), {
  resources: {
    '/tasks': collection({
      schema: Task,
      query: { createdAt: 'date-time', createdBy: 'string' },
      beforeWrite: (task, { current, principal, now }) => ({
        ...task,
        createdAt: current?.value.createdAt ?? now.toISOString(),
        createdBy: current?.value.createdBy ?? principal?.id,
        updatedAt: now.toISOString(),
        updatedBy: principal?.id,
      }),
    }),
  },
  auth: {
    schemes: [basic({ realm: 'tasks', accounts: { ada: 'lovelace', bob: 'babbage' } })],
    requireAuth: 'all',
  },
})

createServer(service).listen(8080)
