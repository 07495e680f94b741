import { describe, expect, it } from 'vitest'
import { completeMethods, formatAllow, isSafeMethod, METHODS } from '../../src/protocol/request-line.ts'

describe('isSafeMethod', () => {
  it('is true for GET, HEAD and OPTIONS (RFC 9110 §9.2.1, row H50)', () => {
    expect(METHODS.filter(isSafeMethod)).toEqual(['GET', 'HEAD', 'OPTIONS'])
  })
})

describe('completeMethods', () => {
  it('adds HEAD to GET, and OPTIONS to all (RFC 9110 §9.1, row H46)', () => {
    expect(completeMethods(['GET'])).toEqual(['GET', 'HEAD', 'OPTIONS'])
    expect(completeMethods(['POST'])).toEqual(['POST', 'OPTIONS'])
    expect(completeMethods([])).toEqual(['OPTIONS'])
  })

  it('names each method once, in one order', () => {
    expect(completeMethods(['OPTIONS', 'DELETE', 'GET', 'HEAD', 'GET', 'PUT'])).toEqual([
      'GET',
      'HEAD',
      'PUT',
      'DELETE',
      'OPTIONS',
    ])
    expect(completeMethods([...METHODS].reverse())).toEqual(METHODS)
  })
})

describe('formatAllow', () => {
  it('writes the value of Allow (RFC 9110 §10.2.1, rows H48 and H73)', () => {
    expect(formatAllow(new Set(['PATCH', 'GET'] as const))).toBe('GET, HEAD, PATCH, OPTIONS')
    expect(formatAllow([])).toBe('OPTIONS')
  })
})
