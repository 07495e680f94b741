import { splitList } from './field-value.ts'

/**
 * Joins two Vary values: every field name once, in order, `*` alone when either says so (RFC 9110 §12.5.5).
 * A value beside an empty or equal one is returned as it is.
 * @param a a Vary value, possibly empty
 * @param b a Vary value, possibly empty
 */
export function mergeVary(a: string, b: string): string {
  if (a === '' || a === b) return b
  if (b === '') return a
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
