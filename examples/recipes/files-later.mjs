// examples/recipes/files-later.mjs
import { createServer } from 'node:http'
import { collection, createResourceService, memoryStore } from 'http-resource-service'
import { z } from 'zod' // npm install zod

const service = createResourceService(memoryStore(), {
  resources: {
    '/users': collection({
      schema: z.object({ name: z.string() }),
      files: {
        photo: { replaceable: true }, // PUT /users/{id}/photo
      },
    }),
  },
  limits: { fileSize: 5 * 1024 * 1024 }, // 413 beyond it
})

createServer(service).listen(8080)
