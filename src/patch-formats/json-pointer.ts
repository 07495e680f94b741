/** JSON Pointer (RFC 6901): which value in a document is meant. */

import { formatPointerStep } from '../core/json.ts'

/**
 * Reads a JSON Pointer (RFC 6901).
 * @returns its reference tokens, unescaped; none for the whole document; `undefined` when the text is not a pointer
 */
export function parsePointer(text: string): readonly string[] | undefined {
  if (text === '') return []
  if (text.charCodeAt(0) !== 0x2f) return undefined
  const tokens = text.slice(1).split('/')
  if (!text.includes('~')) return tokens
  if (/~(?![01])/.test(text)) return undefined
  // RFC 6901 §4: "~1" first, or "~01" would become "/".
  return tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** The array index that a token names, `undefined` for anything but digits without a leading zero (RFC 6901 §4). */
export function parseArrayIndex(token: string): number | undefined {
  return /^(?:0|[1-9]\d*)$/.test(token) ? Number(token) : undefined
}

/** Writes a JSON Pointer (RFC 6901). @param tokens names of properties and indexes of arrays, not escaped */
export function formatPointer(tokens: readonly (string | number)[]): string {
  return tokens.map(formatPointerStep).join('')
}
