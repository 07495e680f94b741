import { runInNewContext } from 'node:vm'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { object, string } from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { basic } from '../../src/auth-schemes/basic.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import type { AuthScheme } from '../../src/auth-schemes/scheme.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { openapi } from '../../src/openapi.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document, type ResourceDefinition, singleton } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { serve } from '../service/serve.ts'

// biome-ignore lint/suspicious/noExplicitAny: a document, looked at member by member
type Document = any

function describeAll(options: ServiceOptions): Document {
  const service = createResourceService(memoryStore(), options)
  return openapi(service, { info: { title: 'T', version: '1' } }) as JsonObject as Document
}

function describeOne(definition: ResourceDefinition, options: ServiceOptions = {}): Document {
  return describeAll({ resources: { '/a': definition }, ...options })
}

const json = 'Content-Type: application/json'

describe('deprecated and sunset', () => {
  const definition = singleton({
    deprecated: '2026-01-01T00:00:00Z',
    sunset: runInNewContext('new Date("2027-06-30T00:00:00Z")'),
  })

  it('are fields of every answer of the resource, errors included (RFC 9745 §2, RFC 8594 §3)', async () => {
    const { send } = await serve(memoryStore(), { resources: { '/a': definition, '/b': singleton() } })
    for (const [method, body] of [['GET'], ['PUT', '{}'], ['HEAD'], ['DELETE'], ['OPTIONS']] as const) {
      const answer = await send(method, '/a', body === undefined ? [] : [json], body)
      expect([method, answer.field('Deprecation'), answer.field('Sunset')]).toEqual([
        method,
        '@1767225600',
        'Wed, 30 Jun 2027 00:00:00 GMT',
      ])
    }
    expect((await send('GET', '/b')).field('Deprecation')).toBeUndefined()
  })

  it('are in the description (issue 21, point 9)', () => {
    const { paths } = describeOne(definition)
    expect(paths['/a'].get.deprecated).toBe(true)
    expect(Object.keys(paths['/a'].get.responses['200'].headers)).toEqual(
      expect.arrayContaining(['Deprecation', 'Sunset']),
    )
    expect(describeOne(singleton()).paths['/a'].get.deprecated).toBeUndefined()
  })

  it('are optional in answers to requests whose target names no resource', async () => {
    const dates = { deprecated: '2026-01-01', sunset: '2027-01-01' }
    const resources = { '/a': collection(dates) }
    const { send } = await serve(memoryStore(), { resources, fallthrough: false })
    const { paths, components } = describeAll({ resources })
    const { responses } = paths['/a/{id}'].get
    const resolve = ({ $ref }: { readonly $ref: string }): Document =>
      $ref
        .split('/')
        .slice(2)
        .reduce((part: Document, name) => part[name], components)
    const isRequired = ({ headers }: Document): boolean[] =>
      [headers.Deprecation, headers.Sunset].map((header) => resolve(header).required === true)
    for (const [path, status] of [
      ['/a/x', 404],
      ['/a/%', 400],
    ] as const) {
      const answer = await send('GET', path)
      expect([answer.status, answer.field('Deprecation'), answer.field('Sunset')]).toEqual([
        status,
        undefined,
        undefined,
      ])
      expect(isRequired(resolve(responses[status]))).toEqual([false, false])
    }
    expect(isRequired(resolve(responses.default))).toEqual([false, false])
    expect([isRequired(responses['200']), isRequired(resolve(responses['403']))]).toEqual([
      [true, true],
      [true, true],
    ])
  })

  it.each([
    ['a date that is none', { deprecated: 'soon' }],
    ['a flag', { deprecated: true }],
    ['an invalid Date', { sunset: new Date(Number.NaN) }],
    ['a sunset before the deprecation (RFC 9745 §4)', { deprecated: '2027-01-01', sunset: '2026-01-01' }],
  ])('refuse %s', (_, options) => {
    expect(() => collection(options as never)).toThrow(TypeError)
  })
})

it('content of any type may be too large for a store that stages nothing, which holds it in memory', () => {
  const { stage, ...plain } = memoryStore()
  expect(stage).toBeTypeOf('function')
  const refusals = [memoryStore(), plain].map((store) => {
    const service = createResourceService(store, { resources: { '/files/{name}': document() } })
    const { paths } = openapi(service, { info: { title: 'T', version: '1' } }) as Document
    return Object.keys(paths['/files/{name}'].put.responses).includes('413')
  })
  expect(refusals).toEqual([false, true])
})

it('the monitor of accepted work is not forbidden to anybody: what its rule refuses does not exist', () => {
  const { paths } = describeAll({ resources: { '/a': collection({ deletion: 'queued' }) } })
  const { responses } = paths['/operations/{id}'].get
  expect(Object.keys(responses)).toContain('404')
  expect(responses['403'].$ref).not.toContain('forbidden')
})

it('a failure that any request may meet has the fields of each definition', () => {
  const resources = { '/a': collection({ deprecated: '2026-01-01' }), '/b': collection() }
  const { paths, components } = describeAll({ resources })
  const fieldsOf = (path: string): string[] => {
    const { $ref } = paths[path].get.responses.default
    return Object.keys(components.responses[$ref.split('/').at(-1)].headers)
  }
  expect([fieldsOf('/a').includes('Deprecation'), fieldsOf('/b').includes('Deprecation')]).toEqual([true, false])
})

describe('the schemas of a description', () => {
  it('are those of the schema by direction, without the id in and with it out (issue 21, points 2 and 5)', () => {
    const schema = z.object({ name: z.string().default('Ada') })
    const { schemas } = describeOne(collection({ title: 'User', schema })).components
    expect(schemas.UserInput).toEqual({ type: 'object', properties: { name: { default: 'Ada', type: 'string' } } })
    expect(schemas.User.required).toEqual(['id', 'name'])
    expect(schemas.User.properties.id).toMatchObject({ type: 'integer' })
  })

  it('are {} with a note where a validator knows no JSON Schema (issue 21, point 2)', () => {
    for (const schema of [object({ name: string() }), z.string().transform(Number)]) {
      const { paths, components } = describeOne(document({ types: ['application/json'], schema: schema as never }))
      expect(paths['/a'].get.responses['200'].content).toEqual({ 'application/json': { schema: {} } })
      expect(paths['/a'].put.description).toContain('cannot be described')
      expect(components.schemas.A).toBeUndefined()
    }
  })

  it('are not those of an item for the files of the item', () => {
    const schema = object({ name: string() }) as never
    const definition = collection({ schema, files: { cover: { replaceable: true } } })
    const { paths } = describeAll({ resources: { '/a': definition } })
    expect(paths['/a/{id}'].put.description).toContain('cannot be described')
    expect(paths['/a/{id}/cover'].put.description).not.toContain('cannot be described')
    const described = describeOne(collection({ jsonSchema: { type: 'object' }, files: { cover: {} } })).paths
    expect(described['/a/{id}/cover'].get.responses['200'].content).toEqual({ '*/*': {} })
  })

  it('are those that a definition gives itself, in one or in two directions (issue 21, point 2)', () => {
    const input: JsonObject = { type: 'object', properties: { a: { type: 'string' } } }
    const output: JsonObject = { type: 'object', properties: { a: { type: 'number' } } }
    const types = ['application/json']
    const one = describeOne(document({ types, jsonSchema: input })).components.schemas
    expect([one.A, one.AInput]).toEqual([input, undefined])
    const two = describeOne(document({ types, jsonSchema: { input, output } })).components.schemas
    expect([two.A, two.AInput]).toEqual([output, input])
  })

  it('follow references into definitions of their own', () => {
    const Part = z.object({ name: z.string() }).meta({ id: 'Part' })
    const schema = z.object({ parts: z.array(Part) })
    const { schemas } = describeOne(document({ types: ['application/json'], schema })).components
    expect(schemas.A.properties.parts.items).toEqual({ $ref: '#/components/schemas/A.Part' })
    expect(schemas['A.Part'].properties).toEqual({ name: { type: 'string' } })
  })

  it('follow the mapping of a discriminator, and leave values as they are (OpenAPI 3.1 §4.8.25.2)', () => {
    const values = { $ref: '#/$defs/Circle', $id: 'x', $anchor: 'y' }
    const Circle = { type: 'object', properties: { kind: { const: 'circle' } }, required: ['kind'] }
    const jsonSchema = {
      type: 'object',
      properties: {
        shape: {
          oneOf: [{ $ref: '#/$defs/Circle' }, { $ref: 'https://schemas.example/square' }],
          discriminator: {
            propertyName: 'kind',
            mapping: { circle: '#/$defs/Circle', square: 'https://schemas.example/square' },
          },
        },
        data: { const: values, default: values, enum: [values], examples: [values] },
        // Names of properties that look like keywords.
        default: { $ref: '#/$defs/Circle' },
        mapping: { $ref: '#/$defs/Circle' },
        discriminator: { type: 'object', properties: { mapping: { type: 'string' } } },
      },
      $defs: { Circle },
    } as const
    const { schemas } = describeOne(singleton({ jsonSchema })).components
    const { shape, data, ...named } = schemas.A.properties
    const component = '#/components/schemas/A.Circle'
    expect(shape.oneOf[0]).toEqual({ $ref: component })
    expect(shape.discriminator).toEqual({
      propertyName: 'kind',
      mapping: { circle: component, square: 'https://schemas.example/square' },
    })
    expect(data).toEqual(jsonSchema.properties.data)
    expect([named.default, named.mapping]).toEqual([{ $ref: component }, { $ref: component }])
    expect(named.discriminator).toEqual(jsonSchema.properties.discriminator)
    expect(schemas['A.Circle']).toEqual(Circle)
  })

  it.each(['$defs', 'definitions'])('follow a definition in %s that is one of its own alternatives', (name) => {
    const reference = { $ref: `#/${name}/Tree` }
    const tree = { anyOf: [{ type: 'string' }, reference] }
    const jsonSchema: JsonObject = { ...reference, [name]: { Tree: tree } }
    const { schemas } = describeOne(document({ types: ['application/json'], jsonSchema })).components
    expect(schemas.A.anyOf).toEqual([{ type: 'string' }, { $ref: '#/components/schemas/A.Tree' }])
  })

  it('follow a reference to a place within a definition, where it is the whole schema', () => {
    const jsonSchema: JsonObject = {
      $ref: '#/$defs/Tree/properties/leaf',
      $defs: { Tree: { properties: { leaf: { type: 'object' } } } },
    }
    const { schemas } = describeOne(document({ types: ['application/json'], jsonSchema })).components
    expect(schemas.A).toEqual({ $ref: '#/components/schemas/A.Tree/properties/leaf' })
  })

  it('follow references to places within definitions and within the schema itself', () => {
    const jsonSchema: JsonObject = {
      type: 'object',
      properties: {
        first: { type: 'string' },
        second: { $ref: '#/properties/first' },
        third: { $ref: '#/$defs/Part/properties/name' },
        fourth: { $ref: 'https://schemas.example/fourth' },
        again: { $ref: '#' },
      },
      $defs: { Part: { type: 'object', properties: { name: { type: 'string' } } } },
    }
    const { schemas } = describeOne(document({ types: ['application/json'], jsonSchema })).components
    const refs = Object.values(schemas.A.properties as JsonObject).map((property) => (property as JsonObject)['$ref'])
    expect(refs).toEqual([
      undefined,
      '#/components/schemas/A.Self/properties/first',
      '#/components/schemas/A.Part/properties/name',
      'https://schemas.example/fourth',
      '#/components/schemas/A.Self',
    ])
    expect(schemas['A.Self'].properties.first).toEqual({ type: 'string' })
  })

  it('follow references by $id and by $anchor, and have neither: of requests and responses, each would be there twice', () => {
    const jsonSchema: JsonObject = {
      $id: 'https://schemas.example/a',
      $anchor: 'top',
      type: 'object',
      properties: {
        first: { $ref: 'https://schemas.example/part' },
        second: { $ref: '#named' },
        third: { $ref: 'https://schemas.example/a#/$defs/Other' },
        fourth: { $ref: 'https://schemas.example/a#named' },
        fifth: { $ref: 'https://schemas.example/part#own' },
        again: { $ref: 'https://schemas.example/a' },
        top: { $ref: '#top' },
        $id: { type: 'string' },
      },
      $defs: {
        Part: { $id: 'https://schemas.example/part', $anchor: 'own', type: 'integer' },
        Other: { $anchor: 'named', type: 'boolean' },
      },
    }
    const { paths, components } = describeOne(collection({ jsonSchema }))
    const { schema } = paths['/a'].post.requestBody.content['application/json']
    const validate = new Ajv2020({ strict: false }).compile({ allOf: [schema], components })
    const good = { first: 1, second: true, third: true, fourth: true, fifth: 1, $id: 'x' }
    const wrong = ['first', 'second', 'third', 'fourth', 'fifth'].map((name) => ({ [name]: 'x' }))
    const bad = [...wrong, { again: { first: 'x' } }, { top: { first: 'x' } }, { $id: 1 }]
    expect([good, { again: good }, ...bad].map((value) => validate(value))).toEqual([
      true,
      true,
      ...bad.map(() => false),
    ])
  })

  it.each([{}, { anyOf: [{ required: ['own'] }, { required: ['base'] }] }])(
    'have the properties of a reference and those beside it: %j',
    (more) => {
      const own = { properties: { own: { type: 'string' } }, required: ['own', 'base'], ...more }
      const properties = { base: { type: 'string' }, other: { type: 'string' } }
      const Base = { type: 'object', properties, required: ['base', 'other'] }
      const jsonSchema = { $ref: '#/$defs/Base', ...own, $defs: { Base } } as JsonObject
      const validate = new Ajv2020({ strict: false }).compile(
        describeOne(collection({ jsonSchema })).components.schemas.A,
      )
      const good = { id: 1, own: 'x', base: 'x', other: 'x' }
      const wrong = ['id', 'own', 'base', 'other'].flatMap((name) => [true, undefined].map((to) => ({ [name]: to })))
      const bad = wrong.map((change) => JSON.parse(JSON.stringify({ ...good, ...change })))
      expect([good, ...bad].map((value) => validate(value))).toEqual([true, ...bad.map(() => false)])
    },
  )

  it('follow references to names with a slash or a tilde, which are escaped there (RFC 6901 §4)', () => {
    const Part = z.object({ name: z.string() }).meta({ id: 'order/part~1' })
    const Other = z.object({ size: z.number() }).meta({ id: 'order_part_1' })
    const schema = z.object({ part: Part, other: Other })
    const { schemas } = describeOne(document({ types: ['application/json'], schema })).components
    const [part, other] = ['part', 'other'].map((name) => schemas.A.properties[name].$ref.split('/').at(-1))
    expect(Object.keys(schemas[part!].properties)).toEqual(['name'])
    expect(Object.keys(schemas[other!].properties)).toEqual(['size'])
  })

  it('let an item have its id beside alternatives that have names, and beside a rule for the names of properties', () => {
    const kinds = ['circle', 'square'] as const
    const alternatives = kinds.map((kind) => z.object({ kind: z.literal(kind) }).meta({ id: `shape-${kind}` }))
    for (const schema of [z.union(alternatives), z.partialRecord(z.enum(['kind']), z.string())]) {
      const { schemas } = describeOne(collection({ schema })).components
      const validate = new Ajv2020().compile(schemas.A)
      expect(
        [{ id: 1, kind: 'square' }, { kind: 'square' }, { id: 1, name: 'x' }].map((item) => validate(item)),
      ).toEqual([true, false, false])
    }
  })

  it('let an item have its id where there are properties beside the alternatives', () => {
    const jsonSchema: JsonObject = {
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'string' } },
      additionalProperties: false,
      anyOf: [{ required: ['a'] }, { required: ['b'] }],
    }
    const { AReplacement, ...schemas } = describeOne(collection({ jsonSchema })).components.schemas
    const validate = new Ajv2020().compile(schemas.A)
    const values = [{ id: 1, a: 'x' }, { id: 1 }, { a: 'x' }, { id: 1, a: 'x', c: 'x' }]
    expect(values.map((value) => validate(value))).toEqual([true, false, false, false])
    expect(new Ajv2020().compile(AReplacement)({ id: 1, a: 'x' })).toBe(true)
  })

  it('of forms can be compiled where the schema has a rule for the names of properties', () => {
    const { content } = describeOne(collection({ schema: z.record(z.string(), z.number()) })).paths['/a'].post
      .requestBody
    for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data']) {
      const validate = new Ajv2020().compile(content[type].schema)
      expect([{ size: 1 }, { size: 'x' }].map((form) => validate(form))).toEqual([true, false])
    }
  })

  it.each<[string, ResourceDefinition, JsonObject]>([
    ['an object', collection({ schema: z.strictObject({ name: z.string() }) }), { name: 'Ada' }],
    ['an object with files', collection({ schema: z.strictObject({}), files: { photo: {} } }), { photo: { size: 1 } }],
    [
      'one of several',
      collection({ schema: z.union([z.strictObject({ a: z.string() }), z.strictObject({ b: z.int() })]) }),
      { a: 'x' },
    ],
    ['a record', collection({ schema: z.record(z.string(), z.string()) }), { name: 'Ada' }],
  ])('of PUT take what GET has given, where the schema is closed: %s', (_, definition, item) => {
    const { paths, components } = describeOne(definition)
    const judge = (operation: Document, value: JsonObject): boolean => {
      const { schema } = operation.requestBody.content['application/json']
      return new Ajv2020({ strict: false, formats: {} }).compile({ allOf: [schema], components })(value)
    }
    const { put } = paths['/a/{id}']
    const values = [{ ...item, id: 1 }, item, { ...item, other: 2 }]
    expect(values.map((value) => judge(put, value))).toEqual([true, true, false])
    expect(judge(paths['/a'].post, { ...item, id: 1 })).toBe(false)
  })

  it('require no property twice where a schema names the id itself', () => {
    const jsonSchema: JsonObject = {
      type: 'object',
      properties: { id: { type: 'string' }, name: { type: 'string' } },
      required: ['name', 'id'],
    }
    const { schemas } = describeOne(collection({ title: 'User', jsonSchema })).components
    expect(schemas.User.required).toEqual(['id', 'name'])
    expect(schemas.UserInput.required).toEqual(['name'])
  })

  it('of a merge patch let every property be left out, and null remove those that need not be there (RFC 7396)', () => {
    const schema = z.object({ name: z.string(), age: z.number().optional() })
    const { patch } = describeOne(collection({ schema })).paths['/a/{id}']
    const content = patch.requestBody.content
    expect(content['application/merge-patch+json'].schema).toEqual({
      type: 'object',
      additionalProperties: true,
      properties: { name: { type: 'string' }, age: { anyOf: [{ type: 'number' }, { type: 'null' }] } },
    })
    expect(content['application/json-patch+json'].schema).toEqual({ $ref: '#/components/schemas/JsonPatch' })
  })

  it('give each JSON Pointer an example, as Swagger UI would make thousands of characters of its pattern', () => {
    const { Problem, JsonPatch } = describeOne(collection()).components.schemas
    const [, { properties }] = JsonPatch.items.oneOf
    expect([Problem.properties.errors.items.oneOf[0].properties.pointer.examples, properties.path.examples]).toEqual([
      ['/name'],
      ['/name'],
    ])
  })

  it('of a merge patch are those of what is sent: null removes what has a default', () => {
    const schema = z.object({ size: z.number().default(5), done: z.stringbool() })
    const { content } = describeOne(collection({ schema })).paths['/a/{id}'].patch.requestBody
    expect(content['application/merge-patch+json'].schema.properties).toEqual({
      size: { anyOf: [{ type: 'number', default: 5 }, { type: 'null' }] },
      done: { type: 'string' },
    })
  })

  it('of a merge patch let the parts of parts be left out too, and null remove one (RFC 7396)', async () => {
    const Place = z.object({ city: z.string(), zip: z.string(), color: z.enum(['red', 'blue']).meta({ id: 'Color' }) })
    const kinds = [z.object({ kind: z.literal('a'), size: z.number() }), z.object({ kind: z.literal('b') })] as const
    const schema = z.object({
      named: Place.meta({ id: 'Place' }),
      nullable: z.object({ city: z.string(), zip: z.string() }).nullable(),
      one: z.discriminatedUnion('kind', kinds),
      record: z.record(z.string(), z.string()),
      get same() {
        return schema.optional()
      },
    })
    const place = { city: 'Ulm', zip: '1' }
    const item = { named: { ...place, color: 'red' }, nullable: place, one: { kind: 'a', size: 1 }, record: { a: 'x' } }
    const { send } = await serve(memoryStore(), { resources: { '/a': collection({ schema }) } })
    await send('POST', '/a', [json], JSON.stringify({ ...item, same: item }))
    const { paths, components } = describeOne(collection({ schema }))
    const { content } = paths['/a/{id}'].patch.requestBody
    const type = 'application/merge-patch+json'
    const validate = new Ajv2020({ strict: false }).compile({ allOf: [content[type].schema], components })
    const part = { named: { city: 'Bonn' }, nullable: { city: 'Bonn' }, one: { size: 2 }, record: { a: null } }
    for (const patch of [part, { same: part }, { same: null }, { named: { color: 'green' } }, { record: 5 }]) {
      const { status } = await send('PATCH', '/a/1', [`Content-Type: ${type}`], JSON.stringify(patch))
      expect([patch, validate(patch)]).toEqual([patch, status === 200])
    }
  })

  it('of a merge patch leave properties open that a pattern of names may describe', () => {
    const rules = { patternProperties: { '^x': { type: 'string' } }, additionalProperties: { type: 'number' } }
    const jsonSchema: JsonObject = { type: 'object', properties: { part: { type: 'object', ...rules } } }
    const { content } = describeOne(collection({ jsonSchema })).paths['/a/{id}'].patch.requestBody
    const validate = new Ajv2020().compile(content['application/merge-patch+json'].schema)
    expect([{ part: { x1: 'text', y: null } }, { part: 1 }].map((patch) => validate(patch))).toEqual([true, false])
  })

  it('show examples with the id on the way out alone (issue 21, points 5 and 9)', () => {
    const examples = { ada: { id: 1, name: 'Ada' }, draft: { name: 'Draft' } }
    const { paths } = describeOne(collection({ examples }))
    const { post } = paths['/a']
    expect(post.requestBody.content['application/json'].examples).toEqual({
      ada: { value: { name: 'Ada' } },
      draft: { value: { name: 'Draft' } },
    })
    expect(post.responses['201'].content['application/json'].examples).toEqual({
      ada: { value: { id: 1, name: 'Ada' } },
    })
  })
})

describe('the operations of a description', () => {
  it('say that a condition is needed, and require no certain one (issue 21, point 4)', () => {
    const { paths, components } = describeOne(document({ preconditions: 'required' }))
    expect(paths['/a'].put.responses['428']).toBeDefined()
    expect(paths['/a'].put.description).toContain('If-Match, If-None-Match or If-Unmodified-Since')
    expect(components.parameters['If-Match'].required).toBeUndefined()
    expect(describeOne(document()).paths['/a'].put.responses['428']).toBeUndefined()
  })

  it('say nothing of the content of errors that formatError writes', () => {
    const { components } = describeOne(document(), { formatError: () => ({ status: 412, headers: [], body: 'no' }) })
    const { Failure: _, ...failures } = components.responses
    expect(JSON.stringify(failures)).toMatch('"description":"Precondition Failed."')
    expect(JSON.stringify(failures)).not.toMatch(/without content|text only/)
  })

  it('say that 421 may have no content: for a Host that is not served it has none, for another scheme a problem', async () => {
    const options: ServiceOptions = { resources: { '/a': document() }, allowedHosts: ['a.test'] }
    const { components } = describeAll(options)
    expect(components.responses.Failure.description).toMatch(/; 421 may have no content\.$/)
    const { send } = await serve(memoryStore(), options)
    const ask = (target: string, host: string) => send('GET', target, [`Host: ${host}`, 'Connection: close'])
    const answers = [await ask('/a', 'b.test'), await ask('https://a.test/a', 'a.test')]
    expect(answers.map(({ status, text }) => [status, text === ''])).toEqual([
      [421, true],
      [421, false],
    ])
  })

  it('name the schemes, and whether credentials are needed (issue 21, point 7)', () => {
    const auth = { schemes: [bearer(() => false)] }
    const securityOf = (requireAuth: 'all' | 'writes' | (() => boolean)) => {
      const { paths } = describeOne(document(), { auth: { ...auth, requireAuth } })
      return [paths['/a'].get.security, paths['/a'].put.security]
    }
    const needed = [{ Bearer: [] }]
    const possible = [{ Bearer: [] }, {}]
    expect(securityOf('all')).toEqual([needed, needed])
    expect(securityOf('writes')).toEqual([possible, needed])
    expect(securityOf(() => true)).toEqual([possible, possible])
    const { paths, components } = describeOne(document(), { auth: { ...auth, requireAuth: () => true } })
    expect(paths['/a'].get.description).toContain('May need credentials')
    expect(components.securitySchemes).toEqual({ Bearer: { type: 'http', scheme: 'bearer' } })
  })

  it('say that a token may lack a scope, which no password does (RFC 6750 §3.1)', () => {
    const refusalWith = (scheme: AuthScheme) =>
      JSON.stringify(describeOne(document(), { auth: { schemes: [scheme] } }).paths['/a'].get.responses['403'])
    expect(refusalWith(bearer(() => false))).toContain('.forbidden.')
    expect(refusalWith(basic({ verify: () => false }))).not.toContain('.forbidden.')
  })

  it('leave out a scheme that the host has, of which nothing is known (issue 21, point 7)', () => {
    const auth = { principal: () => null, challenge: 'Session realm="app"' }
    const { paths, components } = describeOne(document(), { auth })
    expect(paths['/a'].get.security).toEqual([])
    expect(paths['/a'].get.description).toContain('the host')
    expect(paths['/a'].get.responses['401']).toBeDefined()
    expect(components.securitySchemes).toBeUndefined()
  })

  it('need no scheme of the service where the host may have found the user', async () => {
    const auth = { schemes: [bearer(() => false)], principal: () => ({ id: 'ada' }) }
    const { get } = describeOne(document(), { auth }).paths['/a']
    expect(get.security).toEqual([{ Bearer: [] }, {}])
    expect(get.description).toContain('Users are found by the host of the service, too.')
    const { send } = await serve(memoryStore(), { resources: { '/a': document() }, auth })
    expect((await send('GET', '/a')).status).toBe(404)
  })

  it('have 401 where the host finds the users and credentials are needed, or may be', () => {
    const auth = { principal: () => null, challenge: 'Session realm="app"' }
    const refusals = (requireAuth: 'all' | 'writes' | (() => boolean)): boolean[] => {
      const { paths } = describeOne(document(), { auth: { ...auth, requireAuth } })
      return [paths['/a'].get, paths['/a'].put].map(({ responses }) => '401' in responses)
    }
    expect(refusals('all')).toEqual([true, true])
    expect(refusals('writes')).toEqual([false, true])
    expect(refusals(() => true)).toEqual([true, true])
  })

  it('have 401 for wrong credentials also where none are needed', async () => {
    const auth = { schemes: [basic({ verify: () => false })], requireAuth: 'writes' } as const
    expect(describeOne(document(), { auth }).paths['/a'].get.responses).toHaveProperty('401')
    const { send } = await serve(memoryStore(), { resources: { '/a': document() }, auth })
    expect((await send('GET', '/a', ['Authorization: Basic YWRhOng='])).status).toBe(401)
  })

  it('have paths without the mount, which is in servers (issue 21, point 8)', () => {
    const { paths, servers } = describeOne(document(), { mountPath: '/api' })
    expect([Object.keys(paths), servers]).toEqual([['/a'], [{ url: '/api' }]])
  })

  it('have paths as they are sent', async () => {
    const definition = document({ types: ['application/json'] })
    const options = { resources: { '/größe 100%/v1:x+y/{name}': definition, '/a/{path...}': document() } }
    const [deep, path] = Object.keys(describeAll(options).paths)
    expect([deep, path]).toEqual(['/a/{path}', '/gr%C3%B6%C3%9Fe%20100%25/v1:x+y/{name}'])
    const { send } = await serve(memoryStore(), options)
    expect((await send('PUT', path!.replace('{name}', 'z'), [json], '{}')).status).toBe(201)
  })
})

describe('the parameters of a description', () => {
  it('require a key of POST alone: a PATCH may have If-Match in its place', () => {
    const { parameters } = describeOne(collection({ idempotency: 'required' })).components
    expect(parameters['Idempotency-Key-POST-required'].required).toBe(true)
    expect(parameters['Idempotency-Key-PATCH'].required).toBeUndefined()
    expect(parameters['Idempotency-Key-PATCH-required']).toBeUndefined()
  })

  it('have keys of the length that a service takes from callers without a name', () => {
    const patternOf = (options: ServiceOptions): RegExp => {
      const { components } = describeOne(collection({ idempotency: 'optional' }), options)
      return new RegExp(components.parameters['Idempotency-Key-POST'].schema.pattern, 'u')
    }
    const named = patternOf({ auth: { schemes: [bearer(() => true)] } })
    for (const key of ['k', '"k"', 'x'.repeat(255)]) expect(key).toMatch(named)
    for (const key of ['', 'a b', 'a;b', '"k', 'x'.repeat(256)]) expect(key).not.toMatch(named)
    for (const key of ['x'.repeat(15), `"${'x'.repeat(15)}"`]) expect(key).not.toMatch(patternOf({}))
    for (const key of ['x'.repeat(16), `"${'x'.repeat(16)}"`]) expect(key).toMatch(patternOf({}))
  })

  it('have the names that a path may have', () => {
    const { parameters } = describeOne(collection({ ids: 'string' })).paths['/a/{id}']
    const pattern = new RegExp(parameters[0].schema.pattern, 'u')
    for (const name of ['a', '...', '.a', 'a b', 'ä', '%']) expect(name).toMatch(pattern)
    for (const name of ['', '.', '..', 'a/b', 'a\\b', 'a\n', '\x7f']) expect(name).not.toMatch(pattern)
  })

  it('have the ids of the items that a collection is below', () => {
    const below = collection({ parent: true, files: { pic: {} } })
    const { paths } = describeAll({
      resources: {
        '/a': collection(),
        '/a/{a}/b': collection({ ids: 'uuid', parent: true }),
        '/a/{a}/b/{b}/c': below,
        '/a/{a}/apart': collection({ ids: 'string' }),
        '/d': collection(),
        '/d/first': singleton(),
        '/d/{d}/e': below,
        '/f/{name}': document(),
        '/f/{f}/g': below,
        '/h': singleton(),
        '/h/i': below,
      },
    })
    const typesOf = (path: string): readonly string[] =>
      (paths[path].parameters ?? []).map(({ schema }: Document) => schema.format ?? schema.type)
    expect(typesOf('/a/{a}/b')).toEqual(['integer'])
    expect(typesOf('/a/{a}/b/{b}/c')).toEqual(['integer', 'uuid'])
    expect(typesOf('/a/{a}/b/{b}/c/{id}/pic')).toEqual(['integer', 'uuid', 'integer'])
    expect(typesOf('/a/{a}/apart/{id}')).toEqual(['string', 'string'])
    // A parent of another definition may have any name.
    expect(typesOf('/d/{d}/e')).toEqual(['string'])
    expect(typesOf('/f/{f}/g/{id}')).toEqual(['string', 'integer'])
    expect(typesOf('/h/i')).toEqual([])
  })

  it('have patterns that Go, Java and .NET can read: nothing that looks around, refers back or nests classes', () => {
    const query = { status: 'string', dueAt: 'date-time' } as const
    const description = JSON.stringify(describeOne(collection({ ids: 'string', idempotency: 'optional', query })))
    const patterns = [...description.matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(([, text]) => JSON.parse(text!))
    expect(patterns.length).toBeGreaterThan(3)
    const classes = /\[((?:[^\]\\]|\\.)*)\]/g
    for (const pattern of patterns) {
      expect(pattern).not.toMatch(/\(\?[^:]|\\\d/)
      for (const [, members] of pattern.matchAll(classes)) expect(members.replaceAll(/\\./g, '')).not.toContain('[')
    }
  })

  it('name deleted where somebody may be shown what was deleted', () => {
    const parametersOf = (definition: ResourceDefinition) => describeOne(definition).components.parameters
    expect(parametersOf(collection({ deletion: 'soft' })).deleted).toBeUndefined()
    expect(parametersOf(collection({ authorize: () => true })).deleted).toBeUndefined()
    expect(parametersOf(collection({ deletion: 'soft', authorize: () => true })).deleted).toBeDefined()
  })

  it('name no content that could be asked for where a removal is done later', () => {
    const prefer = (deletion: 'hard' | 'queued'): unknown => {
      const { parameters } = describeOne(collection({ deletion })).paths['/a/{id}'].delete
      return parameters.find(({ name }: { name?: string }) => name === 'Prefer')?.description
    }
    expect(prefer('hard')).toContain('return=minimal')
    expect(prefer('queued')).not.toContain('return=minimal')
  })

  it('name Content-Disposition where it names what is sent again: files of items, and what is not JSON', () => {
    const namesOf = (definition: ResourceDefinition, path: string) =>
      JSON.stringify(describeOne(definition).paths[path].put.parameters).includes('Content-Disposition')
    const storedHeaders = ['Content-Disposition'] as const
    expect(namesOf(collection({ files: { pic: { replaceable: true } } }), '/a/{id}/pic')).toBe(true)
    expect(namesOf(collection({ storedHeaders }), '/a/{id}')).toBe(false)
    expect(namesOf(collection({ storedHeaders, types: ['*/*'] }), '/a/{id}')).toBe(true)
  })

  it('do not ask for a digest where PUT of a file answers without content', () => {
    const { paths } = describeOne(collection({ files: { pic: { replaceable: true } } }))
    const ofDigests = (method: 'get' | 'put') =>
      JSON.stringify(paths['/a/{id}/pic'][method].parameters).includes('Want-Repr-Digest')
    expect([ofDigests('get'), ofDigests('put')]).toEqual([true, false])
  })
})

it('a list of items of any type says where each is, also where they are JSON', async () => {
  const definition = collection({ types: ['*/*'] })
  const { schema } = describeOne(definition).paths['/a'].get.responses['200'].content['application/json']
  expect(schema).toEqual({ type: 'array', items: { $ref: '#/components/schemas/Entry' } })
  const { send } = await serve(memoryStore(), { resources: { '/a': definition } })
  await send('POST', '/a', [json], '{}')
  expect((await send('GET', '/a')).json()).toEqual([{ id: 1, href: '/a/1', type: 'application/json', size: 2 }])
})

it('a list of items says of a resource of another definition where it is', async () => {
  const resources = { '/a': collection({ title: 'User' }), '/a/me': singleton() }
  const { schema } = describeAll({ resources }).paths['/a'].get.responses['200'].content['application/json']
  const anyOf = [{ $ref: '#/components/schemas/User' }, { $ref: '#/components/schemas/Entry' }]
  expect(schema).toEqual({ type: 'array', items: { anyOf } })
  const { send } = await serve(memoryStore(), { resources })
  await send('PUT', '/a/me', [json], '{}')
  expect((await send('GET', '/a')).json()).toEqual([{ id: 'me', href: '/a/me', type: 'application/json', size: 2 }])
})

it('the content of one definition and another of that name have components of their own', () => {
  const resources = {
    '/a': collection({ title: 'Order', schema: z.object({ a: z.string() }) }),
    '/b': collection({ title: 'Order input', schema: z.object({ b: z.string() }) }),
  }
  const { schemas } = describeAll({ resources }).components
  const names = Object.entries(schemas as JsonObject).flatMap(([name, { properties }]: Document) =>
    properties?.b ? name : [],
  )
  expect(names).toHaveLength(2)
})

it('the contents of three definitions of one title have components of their own', () => {
  const schemas = ['a', 'b', 'c'].map((name) => z.object({ [name]: z.string() }))
  const resources = Object.fromEntries(
    schemas.map((schema, i) => [`/${i}`, collection({ title: 'Order', schema })] as const),
  )
  const { components } = describeAll({ resources })
  const named = ['Order', 'Order2', 'Order3'].map((name) => Object.keys(components.schemas[name].properties))
  expect(named).toEqual([expect.arrayContaining(['a']), expect.arrayContaining(['b']), expect.arrayContaining(['c'])])
})

it('the types of indexed properties are those that are sent: none of a property of which the schema makes another value', () => {
  const schema = z.object({ done: z.stringbool(), size: z.number() })
  const { AInput } = describeOne(collection({ schema, query: { done: 'boolean', size: 'number' } })).components.schemas
  expect(AInput.allOf[0].properties.done).toEqual({ type: 'string' })
  expect(Object.keys(AInput.allOf[1].properties)).toEqual(['size'])
})

it('indexed properties have no types of their own where a hook makes other content of what is sent', () => {
  const schema = z.object({ day: z.string() })
  const beforeWrite = ({ day }: { readonly day: string }) => ({ day: `${day}T00:00:00Z` })
  const document = describeOne(collection({ schema, query: { day: 'date-time' }, beforeWrite }))
  expect(document.components.schemas.AInput.properties).toEqual({ day: { type: 'string' } })
})

it('the names of components begin with no digit, which generators make invalid identifiers of', () => {
  const { components } = describeOne(collection({ title: '2 factors' }))
  const names = Object.values(components as JsonObject).flatMap((section) => Object.keys(section as JsonObject))
  expect(names).toEqual(expect.arrayContaining(['_2Factors']))
  expect(names.filter((name) => /^\d/.test(name))).toEqual([])
})

describe('the answers of a description', () => {
  it('name 404 of PUT where items have no names but those of the server, or a scope', () => {
    const statusesOf = (definition: ResourceDefinition) =>
      Object.keys(describeOne(definition).paths['/a/{id}'].put.responses)
    expect(statusesOf(collection())).toContain('404')
    expect(statusesOf(collection({ ids: 'string' }))).not.toContain('404')
    // An item that is out of the scope of the caller.
    const scope = { properties: ['owner'], values: () => ({ owner: 'ada' }) }
    expect(statusesOf(collection({ ids: 'string', clientIds: true, scope }))).toContain('404')
  })

  it('name 410 where removals are remembered, and 404 where something may be missing', () => {
    const statusesOf = (path: string, definition: ResourceDefinition, options: ServiceOptions = {}) =>
      Object.keys(describeOne(definition, { openapi: '/b', ...options }).paths[path].get.responses)
    expect(statusesOf('/a', document({ deletion: 'queued' }))).toContain('410')
    for (const deletion of ['hard', 'queued'] as const) {
      expect(statusesOf('/a', document({ deletion, retention: 0 }))).not.toContain('410')
    }
    expect(statusesOf('/a', singleton())).toContain('404')
    // The description is always there, for those who may see it.
    expect(statusesOf('/b', singleton())).not.toContain('404')
    const auth = { schemes: [bearer(() => true)], authorize: () => true }
    expect(statusesOf('/b', singleton(), { auth })).toContain('404')
  })

  it('name 201 of PUT where it restores what was deleted', () => {
    const statusesOf = (definition: ResourceDefinition) =>
      Object.keys(describeOne(definition).paths['/a/{id}'].put.responses)
    expect(statusesOf(collection({ clientIds: false, deletion: 'soft' }))).toContain('201')
    expect(statusesOf(collection({ clientIds: false }))).not.toContain('201')
  })
})

it('conditions by a date are described where there is one: not for a page, nor for the description', () => {
  const { paths } = describeAll({ resources: { '/a': collection() }, openapi: '/b' })
  const datesOf = ({ parameters }: Document): string[] =>
    parameters.flatMap(({ $ref = '' }) => /If-(?:Unm|M)odified-Since/.exec($ref)?.[0] ?? [])
  for (const operation of [paths['/a'].get, paths['/a'].post, paths['/b'].get]) expect(datesOf(operation)).toEqual([])
  expect(datesOf(paths['/a/{id}'].get)).toEqual(['If-Modified-Since', 'If-Unmodified-Since'])
  expect(datesOf(paths['/a/{id}'].put)).toEqual(['If-Unmodified-Since'])
})

it('the tag of a collection and its items has the words of the collection', () => {
  expect(describeOne(collection()).tags).toEqual([{ name: '/a', description: 'The collection at `/a`.' }])
  const [tag] = describeOne(collection({ title: 'Note', description: 'Short texts.' })).tags
  expect(tag).toEqual({ name: 'Note', description: 'Short texts.' })
})

it('a form has the alternatives of a schema, and refuses what the schema does', () => {
  const schema = z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('circle'), radius: z.number() }),
    z.strictObject({ kind: z.literal('square'), side: z.number() }),
  ])
  const { content } = describeOne(collection({ schema, formFields: { r: 'radius' } })).paths['/a'].post.requestBody
  const { oneOf } = content['application/x-www-form-urlencoded'].schema
  const one = { type: 'object', additionalProperties: false }
  expect(oneOf[0]).toMatchObject({ ...one, required: ['kind', 'r'], properties: { r: { type: 'number' } } })
  expect(oneOf[1]).toMatchObject({ ...one, required: ['kind', 'side'] })
})

it('a form has each of several fields that stand for one property, and requires none of them', async () => {
  const schema = z.strictObject({ name: z.string(), note: z.string() })
  const definition = collection({ schema, formFields: { first: 'name', nom: 'name', n: 'note' } })
  const { content } = describeOne(definition).paths['/a'].post.requestBody
  const form = content['application/x-www-form-urlencoded'].schema
  expect(Object.keys(form.properties)).toEqual(['first', 'nom', 'n'])
  expect(form.required).toEqual(['n'])
  const { send } = await serve(memoryStore(), { resources: { '/a': definition } })
  for (const body of ['first=Ada&n=x', 'nom=Ada&n=x']) {
    const answer = await send('POST', '/a', ['Content-Type: application/x-www-form-urlencoded'], body)
    expect([body, answer.status]).toEqual([body, 201])
  }
})

it('a form requires the files that an item has to have', () => {
  const { paths } = describeOne(collection({ files: { photo: { required: true }, note: {} } }))
  const { schema } = paths['/a'].post.requestBody.content['multipart/form-data']
  expect(schema.required).toEqual(['photo'])
})

it('a form sends each value of a list as a field of its own, in each alternative of a schema (RFC 7578 §4.3)', () => {
  const listed = z.object({ tags: z.array(z.string()), title: z.string() })
  const schema = z.union([listed, z.object({ sizes: z.array(z.string()).nullable() })])
  const { content } = describeOne(collection({ schema, formFields: { tag: 'tags' } })).paths['/a'].post.requestBody
  const each = { style: 'form', explode: true }
  for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data']) {
    expect(content[type].encoding).toEqual({ tag: each, sizes: each })
  }
  const plain = describeOne(collection({ schema: z.object({ title: z.string() }) })).paths['/a'].post.requestBody
  expect(plain.content['multipart/form-data']).not.toHaveProperty('encoding')
})

it('with bearer, a token in the query is a described 400 of every operation (RFC 6750 §3.1)', async () => {
  const resources = {
    '/a': collection({ query: { name: 'string' }, deletion: 'queued', files: { photo: { replaceable: true } } }),
    '/b/{name}': document(),
    '/c': singleton(),
  }
  for (const served of [{ resources, openapi: '/openapi.json' }, { openapi: '/openapi.json' }]) {
    const options = { ...served, auth: { schemes: [bearer(() => true)] } }
    const service = createResourceService(memoryStore(), options)
    const { paths, components } = openapi(service, { info: { title: 'T', version: '1' }, version: '3.2' }) as Document
    const { send } = await serve(memoryStore(), options)
    for (const [pattern, { parameters: _, ...operations }] of Object.entries<Document>(paths)) {
      for (const [method, { responses }] of Object.entries<Document>(operations)) {
        const target = `${pattern.replaceAll(/\{\w+\}/g, '1')}?access_token=x`
        const answer = await send(method.toUpperCase(), target, ['Authorization: Bearer x'])
        const { type } = JSON.parse(answer.text)
        expect([target, method, answer.status, type]).toEqual([
          target,
          method,
          400,
          expect.stringContaining('malformed-query'),
        ])
        expect(JSON.stringify(components.responses[responses['400'].$ref.split('/').at(-1)])).toContain(type)
      }
    }
  }
})

it('properties that a function or the work adds may be there beside names that a schema lists', async () => {
  const schema = z.partialRecord(z.enum(['a', 'b']), z.string())
  const resources = {
    '/a': collection({ schema, scope: () => ({ owner: 'ada' }) }),
    '/b': collection({ schema, create: 'accepted', process: () => ({ pages: 3 }) }),
  }
  const { components } = describeAll({ resources })
  const ajv = new Ajv2020({ strict: false })
  for (const [name, item] of [
    ['A', { id: 1, a: 'x', owner: 'ada' }],
    ['B', { id: 1, a: 'x', state: 'ready', pages: 3 }],
  ] as const) {
    expect(ajv.validate({ ...components.schemas[name], components }, item)).toBe(true)
  }
  const { send } = await serve(memoryStore(), { resources })
  expect((await send('POST', '/a', [json], '{"a":"x"}')).json()).toEqual({ id: 1, a: 'x', owner: 'ada' })
})

it('JSON beside other types has a schema in requests, also where none is given', () => {
  const { put } = describeOne(document({ types: ['application/json', 'text/csv'] })).paths['/a']
  expect(put.requestBody.content['application/json']).toEqual({ schema: {} })
})

describe('content that is not JSON', () => {
  const types = ['text/csv', 'application/pdf', 'image/*']
  const { put, get } = describeOne(document({ types })).paths['/a']

  it('has a schema in requests: without one, Swagger UI has no field for it', () => {
    expect(put.requestBody.content).toEqual({
      'text/csv': { schema: { type: 'string' } },
      'application/pdf': { schema: { contentMediaType: 'application/octet-stream' } },
      'image/*': {},
    })
  })

  it('is a string in responses where it is text', () => {
    expect(get.responses['200'].content).toEqual({
      'text/csv': { schema: { type: 'string' } },
      'application/pdf': {},
      'image/*': {},
    })
  })
})
