/** A parameter of a query, decoded. */
export interface QueryParameter {
  readonly name: string
  readonly value: string
  /** Whether an escape of it is malformed, or does not stand for UTF-8. Name and value are then as received. */
  readonly isMalformed: boolean
}

/** Reads `application/x-www-form-urlencoded` text (URL standard, "urlencoded parsing"), without replacing what is malformed. */
export function parseQueryText(text: string): readonly QueryParameter[] {
  const parameters: QueryParameter[] = []
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const end = pair.indexOf('=')
    const rawName = end < 0 ? pair : pair.slice(0, end)
    const rawValue = end < 0 ? '' : pair.slice(end + 1)
    const name = decode(rawName)
    const value = decode(rawValue)
    const isMalformed = name === undefined || value === undefined
    parameters.push({ name: name ?? rawName, value: value ?? rawValue, isMalformed })
  }
  return parameters
}

/** Writes parameters so that {@link parseQueryText} reads them, as a part of a URI. */
export function formatQueryText(parameters: readonly Pick<QueryParameter, 'name' | 'value'>[]): string {
  return parameters.map(({ name, value }) => `${encode(name)}=${encode(value)}`).join('&')
}

function encode(text: string): string {
  // RFC 3986 §3.4 lets both stand in a query, where date-times and sort keys have them.
  return encodeURIComponent(text).replaceAll('%3A', ':').replaceAll('%2C', ',')
}

function decode(text: string): string | undefined {
  const spaced = text.replaceAll('+', ' ')
  if (!spaced.includes('%')) return spaced
  try {
    return decodeURIComponent(spaced)
  } catch {
    return undefined
  }
}
