import { z } from 'zod'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'

/** A collection that keeps keys, as far as its type says. */
const keyed = { idempotency: 'optional' } as const

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

/** Options that other definitions have, for their types. */
export type FurtherResources = {
  readonly '/tasks': {
    readonly kind: 'collection'
    readonly '~types'?: {
      readonly output: { readonly status: string; readonly priority: number }
      readonly input: { readonly status: string; readonly priority: number }
      readonly traits: typeof keyed & {
        readonly query: {
          readonly status: 'string'
          readonly priority: 'number'
          readonly done: 'boolean'
          readonly dueAt: 'date-time'
          readonly city: { readonly type: 'string'; readonly pointer: '/address/city' }
        }
        readonly count: true
      }
    }
  }
}
