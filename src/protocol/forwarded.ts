import { parseParameters, splitList, trimWhitespace } from './field-value.ts'

/** One hop of Forwarded (RFC 7239 §4), each value as received but unquoted. */
export interface ForwardedHop {
  readonly for?: string
  readonly by?: string
  readonly host?: string
  readonly proto?: string
}

/** Reads Forwarded (RFC 7239 §4). A malformed hop makes the whole field `undefined`, because hops are trusted by position. */
export function parseForwarded(field: string): ForwardedHop[] | undefined {
  const hops: ForwardedHop[] = []
  for (const member of splitList(field)) {
    const parsed = parseParameters(';' + member, 0)
    if (parsed === undefined || parsed.end !== member.length + 1) return undefined
    // An object without a prototype holds thousands of names that differ in a tenth of the time.
    const hop: Record<string, string> = Object.create(null)
    for (const [name, value] of parsed.parameters) hop[name] = value
    hops.push(hop)
  }
  return hops
}

/** How a request reached the nearest proxy; `unknown` when the proxy does not say. */
type ForwardedTransport = 'https' | 'cleartext' | 'unknown'

/**
 * Decides how the request reached the nearest proxy.
 *
 * The last value of a field counts: it is the one that the trusted peer wrote, a client can write only those before it.
 * A proxy writes one of the two fields and may pass the other on from the client, so where both speak both must say
 * https: believing either alone would believe the client.
 * @param forwarded the value of Forwarded
 * @param xForwardedProto the value of X-Forwarded-Proto
 */
export function decideForwardedTransport(
  forwarded: string | undefined,
  xForwardedProto: string | undefined,
): ForwardedTransport {
  let transport: ForwardedTransport = 'unknown'
  if (forwarded !== undefined) {
    const hops = parseForwarded(forwarded)
    if (hops === undefined) return 'cleartext'
    const proto = hops[hops.length - 1]?.proto
    if (proto !== undefined) transport = toTransport(proto)
  }
  if (xForwardedProto === undefined || transport === 'cleartext') return transport
  return toTransport(trimWhitespace(xForwardedProto.slice(xForwardedProto.lastIndexOf(',') + 1)))
}

function toTransport(scheme: string): ForwardedTransport {
  return scheme.toLowerCase() === 'https' ? 'https' : 'cleartext'
}
