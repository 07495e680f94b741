// examples/recipes/files.mjs
import { createServer } from 'node:http'
import { collection, createResourceService, memoryStore } from 'http-resource-service'
import { z } from 'zod'

const service = createResourceService(memoryStore(), {
  resources: {
    '/photos': collection({
      schema: z.object({ title: z.string() }),
      files: {
        image: { required: true }, // a form without it is 422
        thumbnail: { describe: ({ size }) => ({ size }) }, // the property of the item
      },
    }),
  },
  limits: { fileSize: 20 * 1024 * 1024, files: 2 },
})

createServer(service).listen(8080)
