import { nameOf, parseIntegerName } from '../types.ts'

/**
 * The key under which a name is sorted, to be compared by bytes: integers by value, then all others.
 * The number of digits comes first, as one of the letters `a` to `p`.
 */
export function formatSortKey(name: string): string {
  if (parseIntegerName(name) === undefined) return `z${name}`
  return String.fromCharCode(0x60 + name.length) + name
}

/** The sort key of a path that is a member of a collection, as databases keep it. */
export function sortKeyOf(path: string): string {
  return encodeText(formatSortKey(nameOf(path)))
}

/** The path of a member, as databases keep it. @param sortKey as databases keep it */
export function memberKeyOf(collection: string, sortKey: string): string {
  return `${encodeText(collection)}/${sortKey.slice(1)}`
}

/** Where everything below a path stands, as databases keep it: from the first key up to the second, which is outside. */
export function rangeBelow(path: string): readonly [string, string] {
  const key = encodeText(path)
  // `0` is the character behind the slash.
  return [`${key}/`, `${key}0`]
}

const UNFIT = /[\0\u0001\ud800-\udfff]/u
const ALL_UNFIT = /[\0\u0001\ud800-\udfff]/gu

/** Text as databases keep it: some refuse U+0000, and lone surrogates would all become the same character. */
export function encodeText(text: string): string {
  if (!UNFIT.test(text)) return text
  return text.replace(ALL_UNFIT, (unit) => '\u0001' + unit.charCodeAt(0).toString(16).padStart(4, '0'))
}

/** The text that `encodeText` was given. */
export function decodeText(text: string): string {
  if (!text.includes('\u0001')) return text
  return text.replace(/\u0001([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

/**
 * Checks the prefix of table names: it becomes part of SQL text.
 * @throws TypeError for anything but lower-case letters, digits and underscores, or more than 40 of them
 */
export function checkTablePrefix(owner: string, prefix: string): string {
  if (/^[a-z_][a-z0-9_]{0,39}$/.test(prefix)) return prefix
  throw new TypeError(
    `${owner}: tablePrefix must be 1 to 40 lower-case letters, digits and underscores and not begin with a digit; ` +
      `it was ${JSON.stringify(prefix)}.`,
  )
}
