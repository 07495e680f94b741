import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { bodyParse } from '../../src/handlers/body-parse.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { serve } from '../handlers/serve.ts'
import { jsonOf, startService, type Target } from './support.ts'

let target: Target | undefined
afterEach(() => target?.close())

const PROBLEM = 'urn:problem-type:http-resource-service:too-large'
const MERGE = { 'Content-Type': 'application/merge-patch+json' }
const JSON_TYPE = { 'Content-Type': 'application/json' }

/** An object of `count` members and array items. */
const holding = (count: number) => ({ a: Array.from({ length: count - 1 }, (_, i) => i) })

describe('members and array items of JSON (limits.jsonMembers, issue 16)', () => {
  const start = (limits = {}) =>
    startService({
      codings: ['gzip'],
      limits,
      resources: { '/items': collection(), '/settings': singleton(), '/docs/{name}': document() },
    })

  it('are at most 100 000 where JSON is parsed for a resource; more is 413 with a problem', async () => {
    target = await start()
    for (const [method, path] of [
      ['POST', '/items'],
      ['PUT', '/settings'],
    ] as const) {
      expect((await target.send(method, path, jsonOf(holding(100_000)))).status).toBeLessThan(300)
      const refused = await target.send(method, path, jsonOf(holding(100_001)))
      expect([refused.status, refused.json().type]).toEqual([413, PROBLEM])
      expect(refused.json().detail).toContain('100000 members and array items')
    }
  })

  it('are counted in content that was coded, and in a patch', async () => {
    target = await start({ jsonMembers: 10 })
    const text = JSON.stringify(holding(11))
    const coded = { fields: { ...JSON_TYPE, 'Content-Encoding': 'gzip' }, body: gzipSync(text) }
    expect((await target.send('PUT', '/settings', coded)).status).toBe(413)
    await target.send('PUT', '/settings', jsonOf({ a: 1 }))
    expect((await target.send('PATCH', '/settings', { fields: MERGE, body: text })).status).toBe(413)
    expect((await target.send('GET', '/settings')).json()).toEqual({ a: 1 })
  })

  it('are not counted in a document, which is stored as it was sent, but it cannot be patched', async () => {
    target = await start({ jsonMembers: 10 })
    const patch = { fields: MERGE, body: '{"b":1}' }
    const text = JSON.stringify(holding(11))
    for (const [name, body, status] of [
      ['few', JSON.stringify(holding(9)), 200],
      ['many', text, 413],
    ] as const) {
      expect((await target.send('PUT', `/docs/${name}`, { fields: JSON_TYPE, body })).status).toBe(201)
      expect((await target.send('PATCH', `/docs/${name}`, patch)).status).toBe(status)
    }
    expect((await target.send('PATCH', '/docs/many', patch)).json().type).toBe(PROBLEM)
    expect((await target.send('GET', '/docs/many')).text).toBe(text)
  })

  it('do not grow beyond the limit by patches: the document could never be patched again', async () => {
    target = await start({ jsonMembers: 10 })
    await target.send('PUT', '/settings', jsonOf(holding(10)))
    expect((await target.send('PATCH', '/settings', { fields: MERGE, body: '{"b":1}' })).status).toBe(413)
    expect((await target.send('PATCH', '/settings', { fields: MERGE, body: '{"a":null}' })).status).toBe(200)
  })

  it('are counted by bodyParse, whose default is the same', async () => {
    const send = await serve((req, res) => bodyParse()(req, res, () => res.writeHead(204).end()))
    expect((await send('POST', '/', JSON_TYPE, JSON.stringify(holding(100_000)))).status).toBe(204)
    expect((await send('POST', '/', JSON_TYPE, JSON.stringify(holding(100_001)))).status).toBe(413)
  })

  it('are not limited by Infinity', async () => {
    target = await start({ jsonMembers: Number.POSITIVE_INFINITY })
    expect((await target.send('PUT', '/settings', jsonOf(holding(100_001)))).status).toBe(201)
  })
})
