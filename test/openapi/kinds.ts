import { type } from 'arktype'
import { z } from 'zod'
import { bearer, insufficientScope } from '../../src/auth-schemes/bearer.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { type OpenApiOptions, openapi } from '../../src/openapi.ts'
import { createResourceService, type ResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document, type ResourceDefinition, singleton } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'

const User = z.looseObject({ name: z.string().min(1), age: z.int().optional() })
const Shape = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('circle'), radius: z.number() }),
  z.strictObject({ kind: z.literal('square'), side: z.number() }),
])
const Node = z.object({
  label: z.string(),
  get children() {
    return z.array(Node).optional()
  },
})
const Setting = type({ theme: "'dark' | 'light'", 'zoom?': 'number' })

/** Every kind of resource, with every option that changes its answers. */
export const KINDS: Readonly<Record<string, ResourceDefinition>> = {
  '/users': collection({ title: 'User', schema: User, examples: { ada: { id: 1, name: 'Ada' } } }),
  '/tickets': collection({
    title: 'Ticket',
    ids: 'uuid',
    schema: Shape,
    deleteResponse: 'representation',
    putResponse: 'representation',
  }),
  '/nodes': collection({ schema: Node, deletion: 'soft', preconditions: 'required', deleteResponse: 'tag' }),
  '/jobs': collection({
    title: 'Job',
    create: 'accepted',
    schema: z.object({ title: z.string() }),
    files: { file: { required: true }, note: {} },
    deletion: 'queued',
    process: () => ({ pages: 3 }),
  }),
  '/notes': collection({
    textProperty: 'text',
    formFields: { t: 'text' },
    ids: 'string',
    deleteResponse: 'confirmation',
  }),
  '/files': collection({
    types: ['image/png', 'text/plain'],
    maxSize: 1000,
    storedHeaders: ['Content-Language', 'Content-Disposition'],
  }),
  '/files/{owner}/private/{name}': document({ maxSize: 1000, retention: 0 }),
  '/pages/{name}': document({
    types: ['application/json'],
    preconditions: 'required',
    conflict: (proposed) => (proposed.size > 500 ? 'Too long for this place.' : undefined),
    representations: [{ type: 'text/csv', render: (content) => content }],
  }),
  '/sealed/{name}': document({ types: ['application/json'], digests: 'required' }),
  '/orders': collection({ title: 'Order', schema: User, idempotency: 'required', digests: 'required' }),
  '/drafts/{name}': document({ types: ['application/json'], idempotency: 'optional' }),
  '/mixed/{name}': document({ schema: User }),
  '/settings': singleton({
    schema: Setting,
    aliases: ['/settings.json'],
    deprecated: '2026-01-01',
    sunset: '2027-01-01',
    description: 'How the page looks.',
  }),
  '/plain': document({ jsonSchema: { type: 'object' }, methods: ['GET'], types: ['application/json'] }),
}

function verifyToken(token: string) {
  if (token === 'narrow') throw insufficientScope(['more'])
  return token === 'good' || token === 'barred' ? { id: token } : false
}

export const KINDS_OPTIONS: ServiceOptions = {
  resources: KINDS,
  openapi: '/openapi.json',
  auth: {
    schemes: [bearer(verifyToken)],
    requireAuth: 'writes',
    authorize: (principal, { headers }) => {
      if (headers['x-hide'] !== undefined) return 'not-found'
      return principal?.id !== 'barred'
    },
  },
}

export function createKinds(
  store: ResourceStore = memoryStore(),
  options: Partial<ServiceOptions> = {},
): ResourceService {
  return createResourceService(store, { ...KINDS_OPTIONS, ...options })
}

export function describeKinds(options: OpenApiOptions): JsonObject {
  return openapi(createKinds(), options)
}
