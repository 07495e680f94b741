import type { JsonValue } from './json.ts'

/** JSON text, and the value that was read from it. */
interface JsonText {
  readonly value: JsonValue
  readonly text: string
}

/**
 * Whether the integers of JSON text are the same once its value is written again. Numbers are read as doubles: beyond
 * 2^53 not every integer is one (RFC 8259 §6), and what is too large for any becomes null.
 */
export function keepsNumbers({ value, text }: JsonText): boolean {
  return !holdsLargeNumber(value) || (text.replace(STRING, '""').match(LONG_INTEGER) ?? []).every(isKept)
}

const STRING = /"(?:[^"\\]|\\.)*"/g
/** Numbers without a fraction or an exponent, and all with an exponent of three digits. */
const LONG_INTEGER = /-?\b\d{16,}(?![\d.eE])|-?\b\d[\d.]*[eE]\+?\d{3,}/g

function isKept(digits: string): boolean {
  const value = Number(digits)
  return Number.isFinite(value) && (/[eE]/.test(digits) || BigInt(value) === BigInt(digits))
}

function holdsLargeNumber(value: JsonValue): boolean {
  if (typeof value === 'number') return !(Math.abs(value) <= Number.MAX_SAFE_INTEGER)
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(holdsLargeNumber)
  for (const name of Object.keys(value))
    if (holdsLargeNumber((value as Readonly<Record<string, JsonValue>>)[name]!)) return true
  return false
}
