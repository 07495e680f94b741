import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { jsonPatch } from '../../src/patch-formats/json-patch.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { JSON_PATCH, jsonOf, MERGE_PATCH, startService, type Target } from '../writes/support.ts'

let target: Target | undefined
afterEach(() => target?.close())

const ALL = 'application/json-patch+json, application/merge-patch+json, application/json'

describe('jsonAsMergePatch', () => {
  it('takes application/json as a merge patch, beside the formats that have a name (RFC 7396)', async () => {
    const resources = {
      '/tasks': collection({ jsonAsMergePatch: true }),
      '/docs/{name}': document({ jsonAsMergePatch: true }),
      '/one': singleton({ jsonAsMergePatch: true }),
    }
    target = await startService({ resources })
    for (const path of ['/tasks/1', '/docs/x', '/one']) {
      await target.send('PUT', path, jsonOf({ a: 1, b: { c: 2, d: 3 } }))
      const patched = await target.send('PATCH', path, jsonOf({ a: null, b: { c: 4 } }))
      expect([patched.status, patched.json()]).toMatchObject([200, { b: { c: 4, d: 3 } }])
      expect(patched.json()).not.toHaveProperty('a')
      const named = { fields: JSON_PATCH, body: '[{"op":"remove","path":"/b"}]' }
      expect((await target.send('PATCH', path, named)).status).toBe(200)
      expect((await target.send('OPTIONS', path)).field('accept-patch')).toBe(ALL)
    }
  })

  it('takes no other JSON: a vendor type is 415', async () => {
    target = await startService({ resources: { '/tasks': collection({ jsonAsMergePatch: true }) } })
    await target.send('PUT', '/tasks/1', jsonOf({}))
    const answer = await target.send('PATCH', '/tasks/1', {
      fields: { 'Content-Type': 'application/vnd.a+json' },
      body: '{}',
    })
    expect([answer.status, answer.field('accept-patch')]).toEqual([415, ALL])
    // Before the target is looked for.
    const absent = { fields: { 'Content-Type': 'application/vnd.a+json' }, body: '{}' }
    expect((await target.send('PATCH', '/tasks/2', absent)).status).toBe(415)
  })

  it('is off by default, and the 415 names what to send (RFC 5789 §2.2)', async () => {
    target = await startService({ resources: { '/tasks': collection() } })
    await target.send('PUT', '/tasks/1', jsonOf({}))
    const answer = await target.send('PATCH', '/tasks/1', jsonOf({ a: 1 }))
    expect([answer.status, answer.field('accept-patch'), answer.json().detail]).toEqual([
      415,
      'application/json-patch+json, application/merge-patch+json',
      'Content of type application/json is not taken here. Send application/json-patch+json or application/merge-patch+json.',
    ])
    const untyped = await target.send('PATCH', '/tasks/1', { body: '{}' })
    expect([untyped.status, untyped.json().detail]).toEqual([
      415,
      'The content has no Content-Type. Send application/json-patch+json or application/merge-patch+json.',
    ])
  })

  it('is described (OpenAPI)', async () => {
    const schema = z.object({ a: z.number().optional() })
    const resources = { '/tasks': collection({ schema, jsonAsMergePatch: true }), '/other': collection({ schema }) }
    target = await startService({ resources, openapi: '/openapi.json' })
    const { paths } = (await target.send('GET', '/openapi.json')).json()
    const { content } = paths['/tasks/{id}'].patch.requestBody
    expect(Object.keys(content).sort()).toEqual(ALL.split(', ').sort())
    expect(content['application/json']).toEqual(content['application/merge-patch+json'])
    expect(Object.keys(paths['/other/{id}'].patch.requestBody.content)).not.toContain('application/json')
    await target.send('PUT', '/tasks/1', jsonOf({ a: 1 }))
    expect((await target.send('PATCH', '/tasks/1', { fields: MERGE_PATCH, body: '{"a":"x"}' })).status).toBe(422)
  })

  it('needs merge patches among the formats of the service', () => {
    const resources = { '/tasks': collection({ jsonAsMergePatch: true }) }
    expect(() => createResourceService(memoryStore(), { resources, patchFormats: [jsonPatch()] })).toThrow(
      '/tasks/{id} has jsonAsMergePatch, which needs mergePatch() among the patchFormats of the service.',
    )
    expect(() => collection({ jsonAsMergePatch: 'yes' as never })).toThrow('jsonAsMergePatch: true or false')
  })
})
