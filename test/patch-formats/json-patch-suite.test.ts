import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { parseJson } from '../../src/body-types/json.ts'
import type { JsonValue } from '../../src/core/json.ts'
import { jsonPatch } from '../../src/patch-formats/json-patch.ts'
import { faultOf } from './fault.ts'

/** One vector of the public suite; without `expected` and `error` the patch only has to succeed. */
interface Vector {
  readonly comment?: string
  readonly doc: JsonValue
  readonly patch: JsonValue
  readonly expected?: JsonValue
  readonly error?: string
  readonly disabled?: boolean
}

const load = createRequire(import.meta.url)
const format = jsonPatch()

describe.each(['tests', 'spec_tests'])('json-patch-test-suite %s.json (row J25)', (name) => {
  // What is switched off there with an error has two members called "op", which are gone once it is parsed: see below.
  const vectors = (load(`json-patch-test-suite/${name}.json`) as Vector[]).filter(
    ({ disabled, error }) => disabled !== true || error === undefined,
  )

  it.each(vectors.map((vector, index) => ({ ...vector, title: vector.comment ?? vector.error ?? `vector ${index}` })))(
    '$title',
    ({ doc, patch, expected, error }) => {
      const before = JSON.stringify(doc)
      const apply = () => format.parse(patch).apply(doc)
      if (error === undefined) {
        const result = apply()
        if (expected !== undefined) expect(result).toEqual(expected)
      } else expect(faultOf(apply).status).toBeOneOf([400, 409])
      expect(JSON.stringify(doc)).toBe(before)
    },
  )
})

describe('jsonPatch beside parseJson', () => {
  it.each(['op', 'path', 'value'])(
    'refuses an operation with two members "%s" (RFC 6902 §4, A.13, rows J2, J3)',
    (name) => {
      const twice = { op: '"op":"remove"', path: '"path":"/b"', value: '"value":2' }[name]
      const text = `[{"op":"add","path":"/a","value":1,${twice}}]`
      expect(faultOf(() => parseJson(Buffer.from(text)))).toMatchObject({ status: 400 })
    },
  )
})
