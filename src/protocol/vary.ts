import { isToken, splitList } from './field-value.ts'

/**
 * Joins two Vary values: every field name once, in order, `*` alone when either says so (RFC 9110 §12.5.5).
 * A value beside an empty or equal one is returned as it is.
 * @param a a Vary value, possibly empty
 * @param b a Vary value, possibly empty
 */
export function mergeVary(a: string, b: string): string {
  if (a === '' || a === b) return b
  if (b === '') return a
  if (isFieldName(a) && isFieldName(b)) return a.toLowerCase() === b.toLowerCase() ? a : `${a}, ${b}`
  const names = splitList(a)
  const known = new Set(names.map((name) => name.toLowerCase()))
  for (const name of splitList(b)) {
    const key = name.toLowerCase()
    if (!known.has(key)) {
      known.add(key)
      names.push(name)
    }
  }
  return known.has('*') ? '*' : names.join(', ')
}

/** Whether a value is one field name: two of them, as almost always, cost a tenth of what lists do. */
function isFieldName(value: string): boolean {
  return value !== '*' && isToken(value)
}
