import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { basic } from '../../src/auth-schemes/basic.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { openapi } from '../../src/openapi.ts'
import { mergePatch } from '../../src/patch-formats/merge-patch.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import type { DocumentOptions } from '../../src/service/document-options.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'

const schema = z.object({ name: z.string(), age: z.number().optional() })
const COLLECTION: CollectionOptions = { schema: schema as never }
const DOCUMENT: DocumentOptions = {}

interface Change {
  readonly collection?: Partial<CollectionOptions>
  readonly document?: Partial<DocumentOptions>
  readonly service?: Partial<ServiceOptions>
}

function describeWith({ collection: users, document: docs, service }: Change = {}): string {
  const options: ServiceOptions = {
    resources: {
      '/users': collection({ ...COLLECTION, ...users }),
      '/docs/{name}': document({ ...DOCUMENT, ...docs }),
      '/config': singleton(),
    },
    auth: { schemes: [basic({ accounts: { ada: 'lovelace' } })], requireAuth: 'writes' },
    ...service,
  }
  return JSON.stringify(openapi(createResourceService(memoryStore(), options), { info: { title: 'T', version: '1' } }))
}

const auth = { schemes: [basic({ accounts: { ada: 'lovelace' } })], requireAuth: 'writes' } as const

const MUTANTS: Readonly<Record<string, Change>> = {
  'a property of another type': { collection: { schema: schema.extend({ age: z.string().optional() }) as never } },
  'a property more': { collection: { schema: schema.extend({ email: z.string() }) as never } },
  'a property that is required': { collection: { schema: schema.required() as never } },
  'a schema that refuses further properties': { collection: { schema: schema.strict() as never } },
  'a method less of the collection': { collection: { methods: ['GET'] } },
  'a method less of its items': { collection: { memberMethods: ['GET', 'PUT', 'DELETE'] } },
  'names that are random': { collection: { ids: 'uuid' } },
  'names that clients choose': { collection: { ids: 'string' } },
  'no creation by PUT': { collection: { clientIds: false } },
  'items that are accepted': { collection: { create: 'accepted' } },
  'a form with another field': { collection: { formFields: { n: 'name' } } },
  'text that becomes an item': { collection: { textProperty: 'name' } },
  'a file in the form': { collection: { files: { photo: {} } } },
  'a file that is required': { collection: { files: { photo: { required: true } } } },
  'removal that hides': { collection: { deletion: 'soft' }, service: { auth: { ...auth, authorize: () => true } } },
  'removal that is queued': { collection: { deletion: 'queued' } },
  'removal that leaves no trace': { collection: { retention: 0 } },
  'removal that answers with a tag': { collection: { deleteResponse: 'tag' } },
  'removal that is confirmed': { collection: { deleteResponse: 'confirmation' } },
  'removal that answers with the representation': { collection: { deleteResponse: 'representation' } },
  'a replacement that is shown': { collection: { putResponse: 'representation' } },
  'conditions that are required': { collection: { preconditions: 'required' } },
  'credentials for all requests': { collection: { requireAuth: 'all' } },
  'credentials for no request': { collection: { requireAuth: 'none' } },
  'credentials that a function asks for': { collection: { requireAuth: () => true } },
  'a rule on who may do what': { collection: { authorize: () => true } },
  'a further representation': { collection: { representations: [{ type: 'text/csv', render: () => '' }] } },
  'a title': { collection: { title: 'User' } },
  'a text': { collection: { description: 'People.' } },
  'an example': { collection: { examples: { ada: { name: 'Ada' } } } },
  'a JSON Schema of its own': { collection: { jsonSchema: { type: 'object' } } },
  'a date since when it is deprecated': { collection: { deprecated: '2026-01-01' } },
  'a date when it goes away': { collection: { sunset: '2027-01-01' } },
  'documents of one type': { document: { types: ['text/plain'] } },
  'documents of JSON alone': { document: { types: ['application/json'] } },
  'documents of limited size': { document: { maxSize: 100 } },
  'a language that is kept': { document: { storedHeaders: ['Content-Language'] } },
  'a file name that is kept': { document: { storedHeaders: ['Content-Disposition'] } },
  'another scheme': { service: { auth: { schemes: [bearer(() => false)], requireAuth: 'writes' } } },
  'credentials for all of the service': { service: { auth: { ...auth, requireAuth: 'all' } } },
  'no credentials': { service: { auth: undefined as never } },
  'cleartext that is let in': { service: { https: 'optional' } },
  'errors in a form of their own': { service: { formatError: () => ({ status: 500, headers: [] }) } },
  'a patch format less': { service: { patchFormats: [mergePatch()] } },
  'another mount': { service: { mountPath: '/api' } },
  'other origins that are refused': { service: { cors: { origins: 'https://app.example', rejectOrigin: true } } },
  'a description of itself': { service: { openapi: '/openapi.json' } },
}

describe('the description of a service', () => {
  const original = describeWith()

  it.each(Object.entries(MUTANTS))('changes with %s (issue 21: 30 mutants)', (_, change) => {
    expect(describeWith(change)).not.toBe(original)
  })

  it('differs for every two of them', () => {
    const all = Object.values(MUTANTS).map(describeWith)
    expect(all.length).toBeGreaterThanOrEqual(30)
    expect(new Set(all).size).toBe(all.length)
  })

  it('is the same for the same definitions, in whatever order they are written', () => {
    expect(describeWith()).toBe(original)
    const resources = {
      '/config': singleton(),
      '/docs/{name}': document(DOCUMENT),
      '/users': collection(COLLECTION),
    }
    expect(describeWith({ service: { resources } })).toBe(original)
  })

  it('names no moment at which it was made', () => {
    expect(original).not.toContain(new Date().toISOString().slice(0, 10))
  })
})
