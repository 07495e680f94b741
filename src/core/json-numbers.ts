import type { JsonValue } from './json.ts'

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
  return !holdsLargeNumber(value) || (text.match(TOKEN) ?? []).every(isKept)
}

/** Strings, so that numbers in them are passed over, and numbers. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g

function isKept(token: string): boolean {
  if (token.startsWith('"')) return true
  const value = Number(token)
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
