import { z } from 'zod'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'

const User = z.object({
  name: z.string(),
  role: z.enum(['admin', 'member']).default('member'),
  born: z.coerce.date().optional(),
})

/** The definitions that the tests of the client use, at run time and in types. */
export const resources = {
  '/users': collection({ schema: User }),
  '/people': collection({ schema: z.object({ name: z.string() }), files: { photo: {} } }),
  '/jobs': collection({
    schema: z.object({ pages: z.number() }),
    create: 'accepted',
    process: () => ({ printed: true }),
    deletion: 'queued',
  }),
  '/orders': collection({ schema: z.object({ pages: z.number() }), idempotency: 'optional' }),
  '/spool/{name}': document({ deletion: 'queued' }),
  '/log': collection({ memberMethods: ['GET'] }),
  '/blobs': collection({ types: ['application/octet-stream'], ids: 'uuid' }),
  '/counters/{name}': document({ types: ['application/json'], preconditions: 'required' }),
  '/files/{name}': document(),
  '/texts/{owner}/{name}': document({ types: ['text/plain'] }),
  '/config/app': singleton({ schema: z.object({ theme: z.string(), size: z.number() }) }),
} as const

/** Definitions whose types alone are looked at. */
export const furtherResources = {
  '/tasks': collection({
    schema: z.object({ status: z.string(), priority: z.number() }),
    idempotency: 'optional',
    query: {
      status: 'string',
      priority: 'number',
      done: 'boolean',
      dueAt: 'date-time',
      city: { type: 'string', pointer: '/address/city' },
      phone: { type: 'string', sensitive: true },
    },
    count: true,
  }),
}
export type FurtherResources = typeof furtherResources
