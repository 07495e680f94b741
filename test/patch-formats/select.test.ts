import { describe, expect, it } from 'vitest'
import { jsonPatch } from '../../src/patch-formats/json-patch.ts'
import { mergePatch } from '../../src/patch-formats/merge-patch.ts'
import { formatAcceptPatch, selectPatchFormat } from '../../src/patch-formats/patch-format.ts'
import { faultOf } from './fault.ts'

const formats = [jsonPatch(), mergePatch()]

describe('selectPatchFormat', () => {
  const known: [string, number][] = [
    ['application/json-patch+json', 0],
    ['application/merge-patch+json', 1],
    ['APPLICATION/Merge-Patch+JSON', 1],
    ['application/json-patch+json; charset=utf-8', 0],
  ]
  it.each(known)('takes %s (RFC 5789 §2)', (field, index) => {
    expect(selectPatchFormat(field, formats)).toBe(formats[index])
  })

  it.each([undefined, 'application/json', 'text/plain', 'application/json-patch', 'application/*'])(
    'refuses %s and names the formats (RFC 5789 §2.2, §3.1, threat 93)',
    (field) => {
      expect(faultOf(() => selectPatchFormat(field, formats))).toMatchObject({
        status: 415,
        headers: { 'Accept-Patch': 'application/json-patch+json, application/merge-patch+json' },
      })
    },
  )

  it.each(['', 'json', 'application/merge-patch+json, application/json-patch+json'])(
    'calls "%s" malformed',
    (field) => {
      expect(faultOf(() => selectPatchFormat(field, formats))).toMatchObject({
        status: 400,
        code: 'ERR_MALFORMED_FIELD',
      })
    },
  )
})

describe('formatAcceptPatch', () => {
  it('lists the formats in their order (RFC 5789 §3.1)', () => {
    expect(formatAcceptPatch([mergePatch()])).toBe('application/merge-patch+json')
    expect(formatAcceptPatch(formats)).toBe('application/json-patch+json, application/merge-patch+json')
  })
})
