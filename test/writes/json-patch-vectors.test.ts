import { createRequire } from 'node:module'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { JSON_PATCH, JSON_TYPE, startService, type Target } from './support.ts'

interface Vector {
  readonly comment?: string
  readonly doc: unknown
  readonly patch: unknown
  readonly expected?: unknown
  readonly error?: string
  readonly disabled?: boolean
}

const require = createRequire(import.meta.url)
const vectors = ['tests.json', 'spec_tests.json']
  .flatMap((file) => require(`json-patch-test-suite/${file}`) as Vector[])
  .filter((vector) => vector.doc !== undefined && vector.patch !== undefined && vector.disabled !== true)

let target: Target
beforeAll(async () => {
  target = await startService()
})
afterAll(() => target.close())

describe('PATCH with application/json-patch+json', () => {
  it.each(vectors.map((vector, index) => [vector.comment ?? JSON.stringify(vector.patch), index] as const))(
    'does what the public test suite says: %s (row J25, interface PATCH 3)',
    async (_comment, index) => {
      const { doc, patch, expected, error } = vectors[index]!
      const path = `/docs/v${index}`
      // Blanks tell whether anything was written.
      const stored = JSON.stringify(doc, undefined, 1)
      const { status } = await target.send('PUT', path, { fields: JSON_TYPE, body: stored })
      expect(status).toBe(201)
      const before = await target.send('GET', path)
      const answer = await target.send('PATCH', path, { fields: JSON_PATCH, body: JSON.stringify(patch) })
      const after = await target.send('GET', path)
      if (error !== undefined) {
        expect([400, 409]).toContain(answer.status)
        expect([after.text, after.field('etag')]).toEqual([stored, before.field('etag')])
        return
      }
      expect([200, 204]).toContain(answer.status)
      if (expected !== undefined) expect(after.json()).toEqual(expected)
      if (answer.status === 200) expect(answer.text).toBe(after.text)
      else expect([after.text, answer.field('etag')]).toEqual([stored, before.field('etag')])
    },
  )
})

/** RFC 7396, Appendix A: original, patch, result. */
const MERGES: readonly (readonly [string, string, string])[] = [
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', '{}'],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
  ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
  ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
  ['["a","b"]', '["c","d"]', '["c","d"]'],
  ['{"a":"b"}', '["c"]', '["c"]'],
  ['{"a":"foo"}', 'null', 'null'],
  ['{"a":"foo"}', '"bar"', '"bar"'],
  ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
  ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
  ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
]

describe('PATCH with application/merge-patch+json', () => {
  it.each(MERGES)('makes of %s by %s the document %s (row M7)', async (original, patch, result) => {
    await target.send('PUT', '/docs/merge', { fields: JSON_TYPE, body: original })
    const fields = { 'Content-Type': 'application/merge-patch+json' }
    expect((await target.send('PATCH', '/docs/merge', { fields, body: patch })).text).toBe(result)
    expect((await target.send('GET', '/docs/merge')).text).toBe(result)
  })
})
