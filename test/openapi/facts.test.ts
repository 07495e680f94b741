import { expect, it } from 'vitest'
import { z } from 'zod'
import { openapi } from '../../src/openapi.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document, type ResourceDefinition } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { StoreSupport } from '../../src/stores/types.ts'

// biome-ignore lint/suspicious/noExplicitAny: a document, looked at member by member
type Document = any

function describePaths(resources: Readonly<Record<string, ResourceDefinition>>, redirects = false): Document {
  const store = memoryStore()
  const supports: StoreSupport = { ...store.supports, ...(redirects && { redirects }) }
  const service = createResourceService({ ...store, supports }, { resources, openapi: '/openapi.json' })
  return (openapi(service, { info: { title: 'T', version: '1' } }) as Document).paths
}

it('Content may be redirected to where it lies, but no monitor and no description is', () => {
  const paths = describePaths({ '/a': collection({ deletion: 'queued' }) }, true)
  const redirected = Object.keys(paths).filter((path) => paths[path].get.responses['307'] !== undefined)
  expect(redirected).toEqual(['/a/{id}'])
})

it('An item whose work goes on says when to ask again', () => {
  const paths = describePaths({ '/a': collection({ create: 'accepted', process: () => ({}) }) })
  expect(paths['/a/{id}'].get.responses['200'].headers).toHaveProperty('Retry-After')
})

it('Of two patterns of one shape the description has the one of one segment, since it may have one only', () => {
  const paths = describePaths({ '/d/{name}': document(), '/d/{path...}': document(), '/e/{path...}': document() })
  expect(Object.keys(paths).filter((path) => /^\/[de]\//.test(path))).toEqual(['/d/{name}', '/e/{path}'])
})

it('A document of any type whose schema is for JSON may be refused as invalid', () => {
  const paths = describePaths({ '/m/{name}': document({ schema: z.object({ name: z.string() }) }) })
  expect(paths['/m/{name}'].put.responses).toHaveProperty('422')
})

it('A removal that an outbox may refuse may be forbidden', () => {
  const outbox = () => []
  const paths = describePaths({
    '/a': collection({ outbox, deletion: 'soft' }),
    '/b': collection({ deletion: 'soft' }),
  })
  const { delete: removal } = paths['/a/{id}']
  const refusals = JSON.stringify(removal.responses['403'])
  expect(refusals).not.toBe(JSON.stringify(paths['/b/{id}'].delete.responses['403']))
})

it('The description says of itself that it may not have the range that is asked for', () => {
  expect(describePaths({})['/openapi.json'].get.responses).toHaveProperty('416')
})
