import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { formatDigest, parseDigestField, selectDigestAlgorithm } from '../../src/protocol/digest-fields.ts'

const sha256 = createHash('sha256').update('{"hello": "world"}\n').digest()
const sha512 = createHash('sha512').update('{"hello": "world"}\n').digest()
// RFC 9530 Appendix B.1 and D
const SHA_256 = 'sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:'
const SHA_512 = 'sha-512=:YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg==:'

describe('parseDigestField', () => {
  it('reads the digests of known algorithms and the names of others (RFC 9530 §2, Appendix D)', () => {
    expect(parseDigestField(`${SHA_256}, ${SHA_512}, md5=:AAAA:`)).toEqual({
      digests: [
        { algorithm: 'sha-256', value: new Uint8Array(sha256) },
        { algorithm: 'sha-512', value: new Uint8Array(sha512) },
      ],
      invalid: [],
      unknown: ['md5'],
    })
  })

  it('tells values of a length that their algorithm never makes', () => {
    expect(parseDigestField('sha-256=:AAAA:')).toEqual({ digests: [], invalid: ['sha-256'], unknown: [] })
  })

  it.each([
    ['', 'nothing is stated'],
    ['sha-256=RK/0', 'a token'],
    ['sha-256="RK/0"', 'a string'],
    ['sha-256', 'a boolean'],
    ['SHA-256=:AAAA:', 'names are in lower case (RFC 9651 §3.1.2)'],
    ['md5=1', 'not bytes'],
    [`${SHA_256},`, 'a trailing comma'],
  ])('refuses %j: %s', (field) => {
    expect(parseDigestField(field)).toBeUndefined()
  })
})

describe('selectDigestAlgorithm', () => {
  it.each([
    ['sha-256=1', 'sha-256', 'Appendix C'],
    ['sha-256=3, sha-512=10', 'sha-512', '§4: the highest weight'],
    ['sha-256=10, sha-512=3', 'sha-256', '§4'],
    ['sha-256=5, sha-512=5', 'sha-512', 'the stronger of equal ones'],
    ['sha-512=0', undefined, '§4: 0 means not acceptable'],
    ['sha-256=11', undefined, '§4: 0 to 10'],
    ['sha-256=-1', undefined, '§4: 0 to 10'],
    ['sha-256=1.5', undefined, '§4: integers'],
    ['sha-256', undefined, '§4: integers'],
    ['sha-512=x, sha-256=1', 'sha-256', 'members that are not weights are ignored'],
    ['md5=10, sha-256=1', 'sha-256', '§4: the preferred one that is supported'],
    ['md5=10', undefined, '§4'],
    ['sha-256=1,', undefined, 'malformed'],
    ['', undefined, 'nothing is wanted'],
  ])('selects from %j %j (RFC 9530 %s)', (field, algorithm, _section) => {
    expect(selectDigestAlgorithm(field)).toBe(algorithm)
  })

  it('selects only from what is supported', () => {
    expect(selectDigestAlgorithm('sha-256=1, sha-512=10', ['sha-256'])).toBe('sha-256')
  })
})

describe('formatDigest', () => {
  it('writes a member of a digest field (RFC 9530 Appendix B.1)', () => {
    expect(formatDigest({ algorithm: 'sha-256', value: sha256 })).toBe(SHA_256)
    expect(formatDigest({ algorithm: 'sha-512', value: sha512 })).toBe(SHA_512)
  })
})
