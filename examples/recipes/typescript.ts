// examples/recipes/typescript.ts
import { createServer } from 'node:http'
import { collection, createResourceService, memoryStore, singleton } from 'http-resource-service'
import { createResourceClient } from 'http-resource-service/client'
import { z } from 'zod' // npm install zod

const Task = z.object({
  id: z.int().optional(), // set by the server
  title: z.string().min(1),
  done: z.boolean().default(false), // a client may leave it out; hooks and readers always have it
})

const resources = {
  '/tasks': collection({
    schema: Task,
    // `current.value` and `proposed.value` have the type of the schema.
    conflict: (proposed, current) =>
      current?.value?.done === true && proposed.value?.title !== current.value.title
        ? 'The title of a task that is done cannot be changed.'
        : undefined,
  }),
  '/config': singleton({ schema: z.object({ theme: z.enum(['light', 'dark']) }) }),
}

const server = createServer(createResourceService(memoryStore(), { resources }))
await new Promise<void>((resolve) => server.listen(8080, resolve))

// A browser takes the types alone: import type { resources } from './server.ts'
const client = createResourceClient<typeof resources>('http://localhost:8080')
await client.create('/tasks', { title: 'First' }) // `done` has a default
const task = await client.read('/tasks/{id}', { id: 1 })
if (task.ok) {
  const edited = await client.edit(task.document, { ...task.document.value, done: true })
  if (edited.ok) console.log(edited.document.value.title, edited.document.value.done)
}
