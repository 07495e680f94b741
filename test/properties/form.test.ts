import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { collectFields, type FormField, parseForm } from '../../src/body-types/form.ts'
import { isHttpError } from '../../src/core/errors.ts'

const pairs = (bytes: Uint8Array) => parseForm(bytes).map(({ name, value }) => [name, value])

/** Text made mostly of what means something in a form; all of it ASCII, as browsers send it. */
const formText = fc
  .array(fc.constantFrom('a', 'b', '=', '&', '+', '%', '%4', '%41', '%c3%bc', '%ff', '%EF%BF%BD', '?', '[', ']'))
  .map((tokens) => tokens.join(''))

const text = fc.string({ unit: 'grapheme', maxLength: 20 })

describe('parseForm', () => {
  it('agrees with URLSearchParams, except that it refuses what that one replaces by U+FFFD', () => {
    fc.assert(
      fc.property(formText, (text) => {
        const expected = [...new URLSearchParams(`&${text}`)]
        try {
          expect(pairs(Buffer.from(text))).toEqual(expected)
        } catch (error) {
          if (!isHttpError(error)) throw error
          expect(error.status).toBe(400)
          expect(expected.flat().join('')).toContain('\ufffd')
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('reads back what URLSearchParams writes', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text)), (expected) => {
        expect(pairs(Buffer.from(String(new URLSearchParams(expected))))).toEqual(expected)
      }),
    )
  })

  it('throws nothing but HttpError', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        try {
          pairs(bytes)
        } catch (error) {
          expect(isHttpError(error)).toBe(true)
        }
      }),
    )
  })
})

describe('collectFields', () => {
  it('loses no value, keeps their order, and adds no name', () => {
    const name = fc.oneof(fc.constantFrom('__proto__', 'constructor', 'a', 'toString'), text)
    fc.assert(
      fc.property(fc.array(fc.tuple(name, text)), (expected) => {
        const fields = expected.map(([name, value]): FormField => ({ kind: 'field', name, value }))
        const values = collectFields(fields)
        for (const [name, value] of Object.entries(values)) {
          expect([value].flat()).toEqual(expected.filter(([key]) => key === name).map(([, value]) => value))
        }
        expect(Object.keys(values).sort()).toEqual([...new Set(expected.map(([name]) => name))].sort())
      }),
    )
  })
})
