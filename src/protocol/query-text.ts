import { decodePercent } from './field-value.ts'

/** A parameter of a query, decoded. */
export interface QueryParameter {
  readonly name: string
  readonly value: string
  /** Whether an escape of it is malformed, or does not stand for UTF-8. Name and value are then as received. */
  readonly isMalformed: boolean
}

/**
 * Reads `application/x-www-form-urlencoded` text (URL standard, "urlencoded parsing"), without replacing what is malformed.
 * @param most how many parameters the caller takes: one more is read, and the rest is left out. A broken escape costs 10 µs
 */
export function parseQueryText(text: string, most: number = Number.POSITIVE_INFINITY): readonly QueryParameter[] {
  const parameters: QueryParameter[] = []
  for (const pair of text.split('&')) {
    if (pair === '') continue
    if (parameters.length > most) break
    const end = pair.indexOf('=')
    const rawName = end < 0 ? pair : pair.slice(0, end)
    const rawValue = end < 0 ? '' : pair.slice(end + 1)
    const name = decodePercent(rawName.replaceAll('+', ' '))
    const value = decodePercent(rawValue.replaceAll('+', ' '))
    const isMalformed = name === undefined || value === undefined
    parameters.push({ name: name ?? rawName, value: value ?? rawValue, isMalformed })
  }
  return parameters
}

/** Writes parameters so that {@link parseQueryText} reads them, as a part of a URI. */
export function formatQueryText(parameters: readonly Pick<QueryParameter, 'name' | 'value'>[]): string {
  // RFC 3986 §3.4 lets both stand in a query, where date-times and sort keys have them.
  const encode = (text: string): string => encodeURIComponent(text).replaceAll('%3A', ':').replaceAll('%2C', ',')
  return parameters.map(({ name, value }) => `${encode(name)}=${encode(value)}`).join('&')
}
