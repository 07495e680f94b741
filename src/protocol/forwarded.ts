import { parseParameters, splitList, trimWhitespace } from './field-value.ts'

/** One hop of Forwarded (RFC 7239 §4), each value as received but unquoted. */
export interface ForwardedHop {
  readonly for?: string
  readonly by?: string
  readonly host?: string
  readonly proto?: string
}

/** Reads Forwarded; a malformed hop makes the whole field `undefined`, because hops are trusted by position. */
export function parseForwarded(field: string): ForwardedHop[] | undefined {
  const hops: ForwardedHop[] = []
  for (const member of splitList(field)) {
    const parsed = parseParameters(';' + member.replace(/^;+/, ''), 0)
    if (parsed === undefined || parsed.end !== member.length + 1) return undefined
    hops.push(Object.fromEntries(parsed.parameters) as ForwardedHop)
  }
  return hops
}

/**
 * The scheme by which the request reached the nearest proxy, in lower case.
 * The last value counts: it is the one that the trusted peer wrote, and a client can write only those before it.
 * @param forwarded the value of Forwarded
 * @param xForwardedProto the value of X-Forwarded-Proto, used when Forwarded says nothing
 */
export function forwardedScheme(
  forwarded: string | undefined,
  xForwardedProto: string | undefined,
): string | undefined {
  if (forwarded !== undefined) {
    const hops = parseForwarded(forwarded)
    return hops?.[hops.length - 1]?.proto?.toLowerCase()
  }
  if (xForwardedProto === undefined) return undefined
  return trimWhitespace(xForwardedProto.slice(xForwardedProto.lastIndexOf(',') + 1)).toLowerCase()
}
