import { type } from 'arktype'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { StandardSchema } from '../../src/core/definition-types.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { FORM, JSON_PATCH, JSON_TYPE, jsonOf, MERGE_PATCH, startService, type Target } from './support.ts'

const inner = { tags: ['a'], 'a/b': { '~': 1 } }
const schemas: Readonly<Record<string, StandardSchema>> = {
  zod: z.looseObject({
    name: z.string(),
    size: z.int(),
    inner: z.object({ tags: z.array(z.string()), 'a/b': z.object({ '~': z.number() }) }),
  }),
  valibot: v.looseObject({
    name: v.string(),
    size: v.pipe(v.number(), v.integer()),
    inner: v.object({ tags: v.array(v.string()), 'a/b': v.object({ '~': v.number() }) }),
  }),
  arktype: type({
    name: 'string',
    size: 'number.integer',
    inner: { tags: 'string[]', 'a/b': { '~': 'number' } },
  }) as unknown as StandardSchema,
}

describe.each(Object.keys(schemas))('a schema of %s', (vendor) => {
  let target: Target
  const good = { name: 'x', size: 1, inner }
  beforeAll(async () => {
    const schema = schemas[vendor]!
    target = await startService({
      resources: { '/a': collection({ schema }), '/d/{name}': document({ types: ['application/json'], schema }) },
    })
    await target.send('POST', '/a', jsonOf(good))
    await target.send('PUT', '/d/x', jsonOf(good))
  })
  afterAll(() => target.close())

  it.each([
    ['/size', { ...good, size: 1.5 }],
    ['/name', { ...good, name: null }],
    ['/inner/tags/1', { ...good, inner: { ...inner, tags: ['a', 1] } }],
    ['/inner/a~1b/~0', { ...good, inner: { ...inner, 'a/b': { '~': 'x' } } }],
  ])('points at %s in content and in results of patches: 422 (row H179, P6, threat 95)', async (pointer, value) => {
    for (const [method, path, body, fields] of [
      ['POST', '/a', value, JSON_TYPE],
      ['PUT', '/a/1', value, JSON_TYPE],
      ['PUT', '/d/x', value, JSON_TYPE],
      ['PATCH', '/a/1', value, MERGE_PATCH],
      ['PATCH', '/d/x', [{ op: 'replace', path: '', value }], JSON_PATCH],
    ] as const) {
      if (method === 'PATCH' && pointer === '/name') continue // null removes, which is another fault
      const before = (await target.send('GET', path)).text
      const answer = await target.send(method, path, jsonOf(body, fields))
      expect([method, path, answer.status]).toEqual([method, path, 422])
      expect(answer.json().errors[0].pointer).toBe(pointer)
      expect(answer.json().errors[0].detail.length).toBeGreaterThan(0)
      expect((await target.send('GET', path)).text).toBe(before)
    }
  })

  it('lets what is valid through, byte for byte', async () => {
    const body = '{ "size":1.0, "name":"y", "inner":{"tags":[],"a/b":{"~":2}}, "id":1, "more":[] }'
    const answer = await target.send('PUT', '/a/1', { fields: JSON_TYPE, body })
    const read = await target.send('GET', '/a/1')
    expect([answer.status, read.text, answer.field('etag')]).toEqual([204, body, read.field('etag')])
    const patched = await target.send('PATCH', '/a/1', jsonOf({ name: 'z' }, MERGE_PATCH))
    expect([patched.status, patched.json()]).toEqual([200, { ...JSON.parse(body), name: 'z' }])
  })

  it('never loses a member __proto__ or constructor without a word (threat 62)', async () => {
    for (const name of ['__proto__', 'constructor', 'prototype']) {
      const body = `{"name":"x","size":1,"inner":${JSON.stringify(inner)},"${name}":{"x":1}}`
      const answer = await target.send('POST', '/a', { fields: JSON_TYPE, body })
      if (answer.status === 201) expect(answer.text).toContain(`"${name}":{"x":1}`)
      else expect([name, answer.status]).toEqual([name, 400])
    }
    expect(({} as { x?: number }).x).toBeUndefined()
  })
})

describe('what a schema returns', () => {
  it('is what is stored: defaults and stripped members count, and the answer has no validators then', async () => {
    const schema = z.object({ name: z.string().trim(), role: z.string().default('guest') })
    const target = await startService({ resources: { '/a': collection({ schema }) } })
    const created = await target.send('POST', '/a', jsonOf({ name: ' x ', more: 1 }))
    expect(created.json()).toEqual({ id: 1, name: 'x', role: 'guest' })
    const put = await target.send('PUT', '/a/1', jsonOf({ id: 1, name: 'y' }))
    expect([put.status, put.field('etag')]).toEqual([204, undefined])
    expect((await target.send('GET', '/a/1')).json()).toEqual({ id: 1, name: 'y', role: 'guest' })
    expect((await target.send('PATCH', '/a/1', jsonOf({ name: ' z ' }, MERGE_PATCH))).json().name).toBe('z')
    await target.close()
  })

  it('is asked about what clients say, not about the id: a strict schema need not know it', async () => {
    const schema = z.strictObject({ name: z.string() })
    const target = await startService({ resources: { '/a': collection({ schema }) } })
    expect((await target.send('POST', '/a', jsonOf({ name: 'x' }))).status).toBe(201)
    expect((await target.send('PUT', '/a/1', jsonOf({ id: 1, name: 'y' }))).status).toBe(204)
    expect((await target.send('PATCH', '/a/1', jsonOf({ name: 'z' }, MERGE_PATCH))).json()).toEqual({
      id: 1,
      name: 'z',
    })
    expect((await target.send('POST', '/a', jsonOf({ name: 'x', other: 1 }))).status).toBe(422)
    await target.close()
  })

  it('cannot bring an id of its own', async () => {
    const schema = z.object({ id: z.int().default(99), name: z.string() })
    const target = await startService({ resources: { '/a': collection({ schema }) } })
    expect((await target.send('POST', '/a', jsonOf({ name: 'x' }))).text).toBe('{"id":1,"name":"x"}')
    await target.close()
  })

  it('may be no JSON yet: the next patch sees what the next reader sees', async () => {
    const schema = z.object({ at: z.coerce.date(), n: z.number().optional() })
    const target = await startService({ resources: { '/a': collection({ schema }) } })
    const at = '2026-01-02T03:04:05.000Z'
    expect((await target.send('POST', '/a', jsonOf({ at: '2026-01-02T03:04:05Z' }))).json().at).toBe(at)
    for (const n of [1, 2, 3]) {
      expect((await target.send('PATCH', '/a/1', jsonOf({ n }, MERGE_PATCH))).json()).toEqual({ id: 1, at, n })
    }
    await target.close()
  })

  it('may come later: validation is waited for', async () => {
    const schema = z.object({ name: z.string().refine(async (name) => name !== 'taken') })
    const target = await startService({ resources: { '/a': collection({ schema }) } })
    expect((await target.send('POST', '/a', jsonOf({ name: 'free' }))).status).toBe(201)
    expect((await target.send('POST', '/a', jsonOf({ name: 'taken' }))).status).toBe(422)
    expect((await target.send('POST', '/a', { fields: FORM, body: 'name=taken' })).status).toBe(422)
    await target.close()
  })
})
