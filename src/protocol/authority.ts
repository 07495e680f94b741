import { parseParameters, splitList, trimWhitespace } from './field-value.ts'

/** Where a request was sent: its host, its origin, and what proxies say of both. */

/** The authority of a request (RFC 3986 §3.2), as Host and `:authority` carry it. */
export interface Authority {
  /** In lower case; an IPv6 address keeps its brackets. */
  readonly host: string
  /** Empty when there is none. */
  readonly port: string
}

const AUTHORITY = /^([a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::(\d{0,5}))?$/
/** A name with escapes and sub-delimiters, or IPv4 (RFC 3986 §3.2.2), and a port. */
const NAMED_HOST = /^(?:[\w.~!$&'()*+,;=-]|%[0-9a-f]{2})+(?::\d*)?$/i
/** IPv6, or an address of a later version, and a port. */
const IP_LITERAL = /^\[(?:([0-9a-f:]+(?:\d+\.){3}\d+|[0-9a-f:]+)|v[0-9a-f]+\.[\w.~!$&'()*+,;=:-]+)\](?::\d*)?$/i

/** Reads host and port; `undefined` for anything else, user information included (RFC 9110 §4.2.4). */
export function parseAuthority(text: string): Authority | undefined {
  const match = AUTHORITY.exec(text.toLowerCase())
  if (match === null || !isPort(match[2] ?? '')) return undefined
  return { host: match[1]!, port: match[2] ?? '' }
}

/** The host that was found well-formed last: a connection sends one, and to judge it takes 800 instructions. */
let lastHost: string | undefined

/** Whether a text can be the value of Host (RFC 9110 §7.2, RFC 9112 §3.2). An empty host is none (RFC 9110 §4.2.1). */
export function isHost(text: string): boolean {
  if (text === lastHost) return true
  if (!isWellFormedHost(text)) return false
  lastHost = text
  return true
}

function isWellFormedHost(text: string): boolean {
  const isName = NAMED_HOST.test(text)
  const literal = isName ? null : IP_LITERAL.exec(text)
  if (!isName && literal === null) return false
  const colon = text.indexOf(':', isName ? 0 : text.indexOf(']'))
  const isPortWrong = colon >= 0 && !isPort(text.slice(colon + 1))
  return !isPortWrong && (literal?.[1] === undefined || isIpv6(literal[1]))
}

function isPort(digits: string): boolean {
  return digits.length < 5 || Number(digits) <= 65_535
}

/** Groups of up to four digits, `::` once for those that are left out, and an IPv4 address for the last two. */
function isIpv6(text: string): boolean {
  const halves = text.split('::')
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')))
  const last = groups.at(-1)?.includes('.') === true ? 1 : 0
  const isWellFormed = groups.every((group, i) =>
    last === 1 && i === groups.length - 1
      ? /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/.test(group)
      : /^[0-9a-f]{1,4}$/i.test(group),
  )
  const length = groups.length + last
  return isWellFormed && (halves.length === 1 ? length === 8 : halves.length === 2 && length < 8)
}

/** The authority of a target in absolute-form (`http://host/path`); `undefined` for every other form. */
export function parseTargetAuthority(target: string): string | undefined {
  return parseTargetOrigin(target)?.authority
}

/** Scheme, in lower case, and authority of a target in absolute-form; `undefined` for every other form. */
export function parseTargetOrigin(target: string): { readonly scheme: string; readonly authority: string } | undefined {
  if (target.charCodeAt(0) === 0x2f) return undefined
  const match = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)/i.exec(target)
  return match === null ? undefined : { scheme: match[1]!.toLowerCase(), authority: match[2]! }
}

/** Writes an origin (RFC 6454 §6.2); the default port of the scheme is left out, as browsers do. */
export function formatOrigin(scheme: 'http' | 'https', { host, port }: Authority): string {
  const isDefault = port === '' || port === (scheme === 'https' ? '443' : '80')
  return isDefault ? `${scheme}://${host}` : `${scheme}://${host}:${port}`
}

/** A host as it is compared: in lower case, without the default port of the scheme (RFC 9110 §4.2.3). */
export function normalizeHost(text: string, scheme: string): string {
  return text.toLowerCase().replace(scheme === 'https' ? /:(?:443)?$/ : /:(?:80)?$/, '')
}

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
