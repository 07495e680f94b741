/** Paths as the store contract has them: what a collection is, and what a name in it. */

const SLASH = 0x2f

/** Path of a member of a collection. */
export function memberPath(collection: string, name: string): string {
  return `${collection}/${name}`
}

/** Splits a path into its collection and its name there. */
export function splitPath(path: string): { readonly collection: string; readonly name: string } {
  const name = nameOf(path)
  return { collection: path.slice(0, Math.max(path.length - name.length - 1, 0)), name }
}

/** The name of a path in its collection. */
export function nameOf(path: string): string {
  let at = path.length
  while (at > 0 && path.charCodeAt(at - 1) !== SLASH) at--
  return at === 0 ? path : path.slice(at)
}

/** The value of a name that is an integer in its one canonical spelling, and safe; `undefined` for other names. */
export function parseIntegerName(name: string): number | undefined {
  const length = name.length
  if (length === 0 || length > 16 || (length > 1 && name.charCodeAt(0) === 0x30)) return undefined
  let value = 0
  for (let i = 0; i < length; i++) {
    const digit = name.charCodeAt(i) - 0x30
    if (digit < 0 || digit > 9) return undefined
    value = value * 10 + digit
  }
  return Number.isSafeInteger(value) ? value : undefined
}
