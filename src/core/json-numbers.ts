import type { JsonValue } from './json.ts'
import { findQuote } from './json-text.ts'

/** JSON text, and the value that was read from it. */
interface JsonText {
  readonly value: JsonValue
  readonly text: string
}

/**
 * Whether the integers of JSON text are the same once its value is written again. Numbers are read as doubles: beyond
 * 2^53 not every integer is one (RFC 8259 §6), and what is too large for any becomes null. Fractions are as exact as
 * doubles are, here as everywhere.
 */
export function keepsNumbers({ value, text }: JsonText): boolean {
  if (!holdsLargeNumber(value)) return true
  const { length } = text
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) i = findQuote(text, i + 1) | 0
    else if (isDigit(code)) {
      const start = i
      while (i + 1 < length && isInNumber(text.charCodeAt(i + 1))) i++
      if (!isKept(text.slice(start, i + 1))) return false
    }
  }
  return true
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** Digits, ".", "e", "E", "+" and "-". */
function isInNumber(code: number): boolean {
  return isDigit(code) || code === 0x2e || (code | 0x20) === 0x65 || code === 0x2b || code === 0x2d
}

/** @param token a number without its sign */
function isKept(token: string): boolean {
  const value = Number(token)
  if (value <= Number.MAX_SAFE_INTEGER) return true
  return Number.isFinite(value) && (/[.eE]/.test(token) || BigInt(value) === BigInt(token))
}

function holdsLargeNumber(value: JsonValue): boolean {
  if (typeof value === 'number') return !(Math.abs(value) <= Number.MAX_SAFE_INTEGER)
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(holdsLargeNumber)
  for (const name of Object.keys(value))
    if (holdsLargeNumber((value as Readonly<Record<string, JsonValue>>)[name]!)) return true
  return false
}
