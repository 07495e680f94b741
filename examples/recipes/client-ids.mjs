// examples/recipes/client-ids.mjs
import { createServer } from 'node:http'
import { collection, createResourceService, memoryStore } from 'http-resource-service'

const service = createResourceService(memoryStore(), {
  resources: {
    '/notes': collection({
      ids: 'uuid', // POST names an item at random
      clientIds: true, // PUT of a new UUID creates it
    }),
    '/pages': collection({
      ids: 'string', // any name: /pages/about-us
      preconditions: 'required', // a change of an existing page without If-Match or If-None-Match is 428
    }),
  },
})

createServer(service).listen(8080)
