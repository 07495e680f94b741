import { describe, expect, it } from 'vitest'
import { parseIdempotencyKey } from '../../src/protocol/structured-fields.ts'

const SECTION = 'draft-ietf-httpapi-idempotency-key-header-07 §2.1'

describe('parseIdempotencyKey', () => {
  it.each([
    ['"8e03978e-40d5-43e8-bc93-6894a57f9324"', '8e03978e-40d5-43e8-bc93-6894a57f9324'],
    ['8e03978e-40d5-43e8-bc93-6894a57f9324', '8e03978e-40d5-43e8-bc93-6894a57f9324'],
    ['stripe-node-retry-1a!#$%&()*+-./:<=>?@[]^_`{|}~', 'stripe-node-retry-1a!#$%&()*+-./:<=>?@[]^_`{|}~'],
    [' k ', 'k'],
    ['"k";a=1', 'k'],
    ['k'.repeat(255), 'k'.repeat(255)],
    [`"${'k'.repeat(255)}"`, 'k'.repeat(255)],
  ])(`reads %j (${SECTION})`, (field, key) => {
    expect(parseIdempotencyKey(field)).toBe(key)
  })

  it.each([
    [''],
    ['""'],
    ['k'.repeat(256)],
    [`"${'k'.repeat(256)}"`],
    ['a, b'],
    ['"a", "b"'],
    ['a b'],
    ['"a b"'],
    ['a;b'],
    ['"a;b"'],
    ['a\\b'],
    ['"a\\"b"'],
    ['"a'],
    ['a"'],
    ['ü'],
    ['"ü"'],
    ['\u00a0k'],
    ['\u00a0"k"'],
    ['a\tb'],
  ])(`refuses %j (${SECTION})`, (field) => {
    expect(parseIdempotencyKey(field)).toBeUndefined()
  })
})
