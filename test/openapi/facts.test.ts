import { expect, it } from 'vitest'
import { z } from 'zod'
import { openapi } from '../../src/openapi.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document, type ResourceDefinition } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { StoreSupport } from '../../src/stores/types.ts'
import { serve } from '../handlers/serve.ts'

// biome-ignore lint/suspicious/noExplicitAny: a document, looked at member by member
type Document = any

type Resources = Readonly<Record<string, ResourceDefinition>>

function describeService(resources: Resources | undefined, redirects = false): Document {
  const store = memoryStore()
  const supports: StoreSupport = { ...store.supports, ...(redirects && { redirects }) }
  const own = resources && { resources, openapi: '/openapi.json' }
  return openapi(createResourceService({ ...store, supports }, own), { info: { title: 'T', version: '1' } })
}

const describePaths = (resources: Resources, redirects?: boolean): Document =>
  describeService(resources, redirects).paths

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

it('The description says of itself that ranges of it may be asked for, and may not be there', () => {
  const { get } = describePaths({})['/openapi.json']
  expect(get.responses).toHaveProperty('416')
  expect(get.parameters).toContainEqual({ $ref: '#/components/parameters/Range' })
})

it('What has not changed may be a page, which has its links, where any path may be one', () => {
  const [path] = Object.values<Document>(describeService(undefined).paths)
  expect(path.get.responses['304'].headers).toHaveProperty('Link')
})

it('A schema that allows any other property needs none of its own for PUT', () => {
  const schema = z.looseObject({ name: z.string() })
  const { schemas } = describeService({ '/a': collection({ schema }) }).components
  expect(Object.keys(schemas).filter((name) => name.startsWith('A'))).toEqual(['A', 'AInput'])
})

it('An accepted item may have what its work has found, also where its schema allows nothing else', () => {
  const schema = z.strictObject({ name: z.string() })
  const jobs = collection({ create: 'accepted', process: () => ({}), schema })
  expect(describeService({ '/jobs': jobs }).components.schemas.Jobs.additionalProperties).toBe(true)
})

it('A created resource may have the digests that the request wants', async () => {
  const service = createResourceService(memoryStore(), { resources: { '/a': collection() } })
  const send = await serve(service)
  const wanted = {
    'Content-Type': 'application/json',
    Prefer: 'return=representation',
    'Want-Repr-Digest': 'sha-256=1',
  }
  const created = await send('POST', '/a', wanted, '{}')
  expect([created.status, created.field('repr-digest')]).toEqual([201, expect.stringContaining('sha-256=:')])
  const { headers } = describePaths({ '/a': collection() })['/a'].post.responses['201']
  expect(headers).toHaveProperty('Repr-Digest')
  expect(headers).toHaveProperty('Content-Digest')
})

it('What the server says of an item is read-only: the state of its work, and its files, which may be empty', () => {
  const jobs = collection({ create: 'accepted', process: () => ({}), files: { scan: {} } })
  const { state, scan } = describeService({ '/jobs': jobs }).components.schemas.Jobs.properties
  expect([state.readOnly, scan.readOnly, scan.properties.size.minimum]).toEqual([true, true, 0])
})

it('Sunset is a date of HTTP, and Deprecation is none (RFC 8594 §3, RFC 9745 §2)', () => {
  const { headers } = describeService({ '/a': document({ deprecated: '2026-01-01', sunset: '2027-01-01' }) }).components
  const { 'Sunset-required': sunset, 'Deprecation-required': deprecation, 'Last-Modified': date } = headers
  expect(sunset.schema).toEqual(date.schema)
  expect(deprecation.schema).not.toEqual(date.schema)
})

it('A change that needs a condition says so, and a creation needs none', () => {
  const paths = describePaths({ '/a': collection({ preconditions: 'required' }) })
  const words = [paths['/a'].post, paths['/a/{id}'].put].map(({ description }) => description.includes('428'))
  expect(words).toEqual([false, true])
})

it('POST takes the fields that are stored, as PUT does', () => {
  const paths = describePaths({ '/a': collection({ storedHeaders: ['Content-Language'] }) })
  const takes = ({ parameters }: Document) => JSON.stringify(parameters).includes('/Content-Language"')
  expect([takes(paths['/a'].post), takes(paths['/a/{id}'].put), takes(paths['/a/{id}'].patch)]).toEqual([
    true,
    true,
    false,
  ])
})
