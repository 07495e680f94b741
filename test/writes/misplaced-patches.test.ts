import { afterEach, describe, expect, it } from 'vitest'
import type { PatchFormat } from '../../src/patch-formats/patch-format.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { JSON_TYPE, jsonOf, startService, type Target } from './support.ts'

let target: Target
afterEach(() => target.close())

const PATCHES = [
  ['application/merge-patch+json', { b: 2 }],
  ['application/json-patch+json', [{ op: 'add', path: '/b', value: 2 }]],
  ['Application/Merge-Patch+JSON; charset=utf-8', { b: 2 }],
] as const
const rename: PatchFormat = {
  mediaType: 'application/x-rename+json',
  parse: () => ({ apply: (document) => document }),
}

describe('PUT and POST of a patch document', () => {
  it.each(PATCHES)('%s to a JSON resource is 415 and changes nothing (issue 17, 8)', async (type, patch) => {
    target = await startService({
      resources: {
        '/items': collection(),
        '/docs/{name}': document({ types: ['application/json'] }),
        '/config': singleton(),
      },
    })
    const request = jsonOf(patch, { 'Content-Type': type })
    for (const path of ['/items/1', '/docs/a', '/config']) {
      expect((await target.send('PUT', path, jsonOf({ a: 1 }))).status).toBe(201)
      const answer = await target.send('PUT', path, request)
      expect([path, answer.status]).toEqual([path, 415])
      expect(answer.field('accept')).toMatch(/json/)
      expect((await target.send('GET', path)).json()).toMatchObject({ a: 1 })
    }
    expect((await target.send('PUT', '/docs/new', request)).status).toBe(415)
    const posted = await target.send('POST', '/items', request)
    expect([posted.status, posted.field('accept-post')]).toEqual([415, expect.stringContaining('application/json')])
    expect((await target.send('GET', '/items')).json()).toHaveLength(1)
  })

  it('is 415 in every format of the service, and in no other (issue 17, 8)', async () => {
    target = await startService({ patchFormats: [rename], resources: { '/items': collection() } })
    await target.send('PUT', '/items/1', jsonOf({ a: 1 }))
    const put = (type: string) => target.send('PUT', '/items/1', jsonOf({ b: 2 }, { 'Content-Type': type }))
    expect((await put(rename.mediaType)).status).toBe(415)
    expect((await put('application/merge-patch+json')).status).toBe(204)
  })

  it.each(PATCHES)('%s over stored JSON is 415 where any content is taken (issue 17, 8)', async (type, patch) => {
    const request = jsonOf(patch, { 'Content-Type': type })
    for (const resources of [undefined, { '/docs/{name}': document() }, { '/docs': collection({ types: ['*/*'] }) }]) {
      target = await startService(resources === undefined ? {} : { resources })
      await target.send('PUT', '/docs/a', { fields: JSON_TYPE, body: '{"a":1}' })
      for (const fields of [{}, { 'If-Match': '*' }] as Record<string, string>[]) {
        const answer = await target.send('PUT', '/docs/a', jsonOf(patch, { 'Content-Type': type, ...fields }))
        expect(answer.status).toBe(415)
      }
      expect((await target.send('GET', '/docs/a')).text).toBe('{"a":1}')
      // Kept as it comes where nothing is changed by mistake.
      expect((await target.send('PUT', '/docs/b', request)).status).toBe(201)
      expect((await target.send('PUT', '/docs/b', request)).status).toBe(204)
      if (resources === undefined) expect((await target.send('POST', '/docs', request)).status).toBe(415)
      await target.close()
    }
    target = await startService()
  })

  it('is taken where the definition names the type (issue 17, 8)', async () => {
    const types = ['application/json', 'application/merge-patch+json']
    target = await startService({ resources: { '/docs/{name}': document({ types }) } })
    for (const type of [types[1]!, `${types[1]}; charset=utf-8`]) {
      const answer = await target.send('PUT', '/docs/a', jsonOf({ a: 1 }, { 'Content-Type': type }))
      expect([201, 204]).toContain(answer.status)
    }
  })
})
