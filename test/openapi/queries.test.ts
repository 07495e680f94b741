import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { type OpenApiOptions, openapi } from '../../src/openapi.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'

const INFO: OpenApiOptions['info'] = {
  title: 'Tasks',
  version: '1.0.0',
  description: 'Tasks.',
  contact: { name: 'The authors' },
  license: { name: 'MIT', identifier: 'MIT' },
}

const options: Omit<CollectionOptions, 'schema' | 'files'> = {
  query: { status: 'string', dueAt: 'date-time', done: 'boolean', ssn: { type: 'string', sensitive: true } },
  scope: { properties: ['owner'], values: () => ({ owner: 'ada' }) },
  count: true,
  title: 'Task',
}

function describeTasks(own: Partial<OpenApiOptions> = {}, more: typeof options = options): JsonObject {
  const schema = z.strictObject({ status: z.string() })
  const service = createResourceService(memoryStore(), {
    resources: { '/tasks': collection({ ...more, schema } as never) },
  })
  return openapi(service, { info: INFO, servers: [{ url: 'https://api.example.org' }], ...own })
}

const at = (document: JsonObject, ...path: readonly string[]): JsonObject =>
  path.reduce<unknown>((value, name) => (value as JsonObject)[name], document) as JsonObject

describe('the description of a collection that takes queries', () => {
  it('has a parameter for each property that may be in a target, with its type and operators', () => {
    const get = at(describeTasks(), 'paths', '/tasks', 'get')
    const parameters = new Map((get['parameters'] as readonly JsonObject[]).map((one) => [one['name'], one]))
    expect([...parameters.keys()].filter((name) => name !== undefined)).toEqual([
      'status',
      'dueAt',
      'done',
      'sort',
      'count',
    ])
    expect(parameters.get('dueAt')).toMatchObject({
      in: 'query',
      style: 'deepObject',
      explode: true,
      schema: { anyOf: [{ type: 'string', format: 'date-time' }, { type: 'array', maxItems: 8 }, { type: 'object' }] },
    })
    const operators = (name: string): readonly string[] =>
      Object.keys((parameters.get(name)!['schema'] as { anyOf: { properties: object }[] }).anyOf[2]!.properties)
    expect(operators('status')).toEqual(['ne', 'gt', 'gte', 'lt', 'lte', 'exists', 'prefix'])
    expect(operators('done')).toEqual(['ne', 'exists'])
    const { pattern } = parameters.get('sort')!['schema'] as { pattern: string }
    for (const sort of ['status', '-dueAt,status']) expect(sort).toMatch(new RegExp(pattern))
    for (const sort of ['', 'owner', 'status,done,dueAt', 'ssn', '-status,status'])
      expect(sort).not.toMatch(new RegExp(pattern))
    expect(Object.keys(at(get, 'responses', '200', 'headers'))).toContain('X-Total-Count')
  })

  it('takes one value as well as several for [ne], as for equality', () => {
    const { parameters } = at(describeTasks(), 'paths', '/tasks', 'get') as { parameters: readonly JsonObject[] }
    const { anyOf } = parameters.find(({ name }) => name === 'status')!['schema'] as { anyOf: readonly JsonObject[] }
    const one = { type: 'string', maxLength: 256 }
    expect(at(anyOf[2]!, 'properties', 'ne')).toMatchObject({ anyOf: [one, { type: 'array', items: one }] })
  })

  it('has no sort in the target where each property is sensitive', () => {
    const ssn = { type: 'string', sensitive: true } as const
    const get = at(describeTasks({ version: '3.2' }, { query: { ssn } }), 'paths', '/tasks', 'get')
    expect(JSON.stringify(get)).not.toContain('ssn')
    expect(JSON.stringify(get)).not.toContain('sort')
  })

  it('has the types of what lists are filtered by in the content of requests', () => {
    const { allOf } = at(describeTasks(), 'components', 'schemas', 'TaskInput') as { allOf: readonly JsonObject[] }
    expect(allOf[1]!['properties']).toMatchObject({
      status: { anyOf: [{ type: 'string', maxLength: 256 }, { type: 'null' }] },
      dueAt: { anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] },
    })
  })

  it('has no type of what stands deeper for the property that it stands in', () => {
    const query = { author: { type: 'string', pointer: '/author/name' } } as const
    const document = describeTasks({}, { query })
    expect(JSON.stringify(at(document, 'components', 'schemas'))).not.toContain('author')
  })

  it('takes no id with the content of an item, although lists are filtered by it', () => {
    const schemas = at(describeTasks({}, { query: { id: 'number' } }), 'components', 'schemas')
    expect(Object.keys(at(schemas, 'TasksInput', 'properties'))).toEqual(['status'])
  })

  it('takes the names of properties literally in the pattern of sort', () => {
    const query = { 'a.b': { type: 'number' }, $c: { type: 'number' } } as const
    const { parameters } = at(describeTasks({}, { query }), 'paths', '/tasks', 'get') as {
      parameters: readonly JsonObject[]
    }
    const { pattern } = at(parameters.find(({ name }) => name === 'sort')!, 'schema') as { pattern: string }
    for (const sort of ['a.b', '-$c,a.b']) expect(sort).toMatch(new RegExp(pattern))
    expect('axb').not.toMatch(new RegExp(pattern))
  })

  it('has Accept-Query where lists take queries, and only there', () => {
    const headersOf = (more?: typeof options) =>
      Object.keys(at(describeTasks({ version: '3.2' }, more), 'paths', '/tasks', 'get', 'responses', '200', 'headers'))
    expect(headersOf()).toContain('Accept-Query')
    expect(headersOf({})).not.toContain('Accept-Query')
  })

  it('has a QUERY without credentials where only writes need them', () => {
    const auth = { schemes: [bearer(() => false)], requireAuth: 'writes' } as const
    const service = createResourceService(memoryStore(), { auth, resources: { '/tasks': collection(options) } })
    const { query, post } = at(openapi(service, { info: INFO, version: '3.2' }), 'paths', '/tasks')
    expect(query).toHaveProperty('security', [{ Bearer: [] }, {}])
    expect(post).toHaveProperty('security', [{ Bearer: [] }])
  })

  it('has QUERY in 3.2, and only there', () => {
    expect(at(describeTasks(), 'paths', '/tasks')).not.toHaveProperty('query')
    const query = at(describeTasks({ version: '3.2' }), 'paths', '/tasks', 'query')
    expect(at(query, 'responses')['415']).toEqual({ $ref: expect.stringContaining('Accept-Query') })
    expect(Object.keys(at(query, 'responses'))).toEqual([
      '200',
      '304',
      '400',
      '403',
      '406',
      '412',
      '413',
      '415',
      'default',
    ])
    const form = at(query, 'requestBody', 'content', 'application/x-www-form-urlencoded')
    expect(form['encoding']).toHaveProperty('status', { style: 'form', explode: true })
    const names = Object.keys(at(form, 'schema', 'properties'))
    expect(names).toEqual(
      expect.arrayContaining(['status', 'dueAt[gte]', 'ssn[prefix]', 'limit', 'after', 'sort', 'count']),
    )
    expect(names).not.toContain('status[]')
    const headers = at(query, 'responses', '200', 'headers')
    expect(Object.keys(headers)).toEqual(expect.arrayContaining(['ETag', 'Link', 'Location', 'X-Total-Count']))
  })

  it('says whose an item is, where the definition names the properties, and refuses none otherwise', () => {
    const named = at(describeTasks(), 'components', 'schemas', 'Task')
    expect(named).toMatchObject({
      additionalProperties: false,
      properties: { owner: { type: ['string', 'number', 'boolean'] } },
    })
    const learned = describeTasks({}, { ...options, scope: () => ({ owner: 'ada' }) })
    expect(at(learned, 'components', 'schemas', 'Task')['additionalProperties']).toBe(true)
    for (const method of ['get', 'put', 'patch', 'delete']) {
      expect(Object.keys(at(learned, 'paths', '/tasks/{id}', method, 'responses'))).toEqual(
        expect.arrayContaining(['403', '404']),
      )
    }
  })

  it.each(['3.1', '3.2'] as const)('passes the checkers: %s', { timeout: 60_000 }, async (version) => {
    const document = describeTasks({ version })
    const result = await new Validator().validate(JSON.parse(JSON.stringify(document)))
    expect(result.valid ? [] : result.errors).toEqual([])
    const config = await createConfig({ extends: ['recommended-strict'] })
    const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: 'openapi.json', config })
    const found = problems.filter(({ ruleId }) => ruleId !== 'security-defined')
    expect(found.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`)).toEqual([])
  })
})
