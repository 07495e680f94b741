/** The request line (RFC 9112 §3): methods, targets and hosts. HTTP/2 sends the same in fields of its own (RFC 9113 §8.3.1). */

import { decodePercent } from './field-value.ts'

/** The methods this library knows (RFC 9110 §9, RFC 5789, RFC 10008). */
export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS' | 'QUERY'

/** The methods of resources of every kind, in the order in which Allow and Access-Control-Allow-Methods list them. */
export const METHODS: readonly Method[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** With QUERY, which collections alone have, and only those that take queries. */
export const METHODS_AND_QUERY: readonly Method[] = ['GET', 'HEAD', 'QUERY', ...METHODS.slice(2)]

/** Whether a method is GET, HEAD, OPTIONS or QUERY: safe (RFC 9110 §9.2.1, RFC 10008 §2). False for TRACE, which this library refuses. */
export function isSafeMethod(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS' || method === 'QUERY'
}

/** Methods whose meaning comes with content (RFC 9110 §9.3, RFC 5789 §2, RFC 10008 §2). */
export const CONTENT_METHODS: readonly string[] = ['POST', 'PUT', 'PATCH', 'QUERY']

/** Whether a method asks for a representation: GET and HEAD, and QUERY for that of the query. */
export function isReadMethod(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'QUERY'
}

/**
 * The value of Allow for a set of methods (RFC 9110 §10.2.1). GET brings HEAD; OPTIONS is always there.
 * @param methods in any order
 */
export function formatAllow(methods: Iterable<Method>): string {
  return completeMethods(methods).join(', ')
}

/** The methods of a resource with those that come by themselves, in the order of {@link METHODS_AND_QUERY}. */
export function completeMethods(methods: Iterable<Method>): readonly Method[] {
  const set = new Set<Method>(methods).add('OPTIONS')
  if (set.has('GET')) set.add('HEAD')
  return METHODS_AND_QUERY.filter((method) => set.has(method))
}

/** A request target, split once and decoded once. */
export interface RequestTarget {
  /**
   * The decoded path: segments joined by `/`. No segment is `.` or `..` or holds a slash, backslash or control
   * character, so the path names one resource and has one spelling. Only the last segment may be empty.
   */
  readonly path: string
  /** What follows `?`, as received; empty when there is nothing. */
  readonly query: string
}

const SLASH = 0x2f

/**
 * Splits the target of a request into path and query, and decodes each path segment exactly once.
 * Nothing is normalised: dot segments, empty segments, encoded slashes and broken escapes are errors, so that
 * no two layers can disagree about which resource is meant.
 * @param target origin-form (`/a/b?q`) or absolute-form (`http://host/a/b?q`), as received
 * @returns `undefined` when the target is malformed
 */
export function parseRequestTarget(target: string): RequestTarget | undefined {
  if (target.charCodeAt(0) !== SLASH) {
    // An empty host is invalid (RFC 9110 §4.2.1); user information is an error, it only disguises the host (§4.2.4).
    const origin = /^[a-z][a-z0-9+.-]*:\/\/[^/?#@:][^/?#@]*(?=[/?]|$)/i.exec(target)
    if (origin === null) return undefined
    const rest = target.slice(origin[0].length)
    return parseRequestTarget(rest.startsWith('/') ? rest : '/' + rest)
  }
  let end = target.length
  let plain = true
  let previous = 0
  for (let i = 0; i < target.length; i++) {
    const code = target.charCodeAt(i)
    if (code === 0x3f) {
      end = i
      break
    }
    // Blanks, controls, "#", "\" and everything outside ASCII have no place in a path.
    if (code < 0x21 || code > 0x7e || code === 0x5c || code === 0x23) return undefined
    if (code === SLASH) {
      if (previous === SLASH) return undefined
    } else if (code === 0x25 || (code === 0x2e && previous === SLASH)) plain = false
    previous = code
  }
  const raw = end === target.length ? target : target.slice(0, end)
  const query = end === target.length ? '' : target.slice(end + 1)
  if (plain) return { path: raw, query }
  const path = decodePath(raw)
  return path === undefined ? undefined : { path, query }
}

/** Decodes every segment once; `undefined` when one is malformed, a dot segment, or holds what would split it. */
function decodePath(raw: string): string | undefined {
  const segments = raw.split('/')
  for (const [index, segment] of segments.entries()) {
    const text = segment.includes('%') ? decodePercent(segment) : segment
    if (text === undefined || text === '.' || text === '..' || /[/\\\x00-\x1f\x7f]/.test(text)) return undefined
    segments[index] = text
  }
  return segments.join('/')
}

/**
 * A target of any form as origin-form: of an absolute one (RFC 9112 §3.2.2), what follows scheme and authority. One stays as it is
 * where programs differ in where its path begins: without an authority (the URL Standard takes `http:///a/b` for `http://a/b`), and
 * with an authority that ends in anything but a path or a query without slashes (`http://host?/a/b` is `/a/b` for some).
 */
export function toOriginForm(target: string): string {
  const origin = target.charCodeAt(0) === SLASH ? null : ABSOLUTE_FORM.exec(target)
  if (origin === null) return target
  const rest = target.slice(origin[0].length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

const ABSOLUTE_FORM = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\\%\x00-\x20\x7f-\uffff]+(?=\/|\?[^/]*$|$)/i

/** Whether every program looks for the path of a target in the same place, after {@link toOriginForm}. */
export function hasKnownForm(target: string): boolean {
  return target === '' || target.charCodeAt(0) === SLASH || /^[a-z][a-z0-9+.-]*:\/\/\//i.test(target)
}

/** The path of a target, as received. */
export function pathOfTarget(target: string): string {
  const path = toOriginForm(target)
  const end = path.indexOf('?')
  return end < 0 ? path : path.slice(0, end)
}

/** Writes a decoded path as the path of a URI reference: each segment percent-encoded (RFC 3986 §3.3). */
export function formatPath(path: string): string {
  return isWrittenAsIs(path) ? path : path.split('/').map(encodeURIComponent).join('/')
}

/** Whether a path has unreserved characters and slashes only. A regular expression takes 500 instructions for a short one. */
function isWrittenAsIs(path: string): boolean {
  for (let i = 0; i < path.length; i++) {
    const code = path.charCodeAt(i)
    const letter = code | 0x20
    const isWord = (letter >= 0x61 && letter <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x5f
    // "-", "." and "/" follow one another.
    if (!isWord && (code < 0x2d || code > 0x2f) && code !== 0x7e) return false
  }
  return true
}

/** The authority of a request (RFC 3986 §3.2), as Host and `:authority` carry it. */
interface Authority {
  /** In lower case; an IPv6 address keeps its brackets. */
  readonly host: string
  /** Empty when there is none. */
  readonly port: string
}

const AUTHORITY = /^([a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::(\d{0,5}))?$/
/** A name with escapes and sub-delimiters, or IPv4 (RFC 3986 §3.2.2), and a port. */
const NAMED_HOST = /^(?:[\w.~!$&'()*+,;=-]|%[0-9a-f]{2})+(?::\d*)?$/i
/** IPv6, or an address of a later version, and a port. */
const IP_LITERAL = /^\[(?:([0-9a-f:]*:(?:\d+\.){3}\d+|[0-9a-f:]+)|v[0-9a-f]+\.[\w.~!$&'()*+,;=:-]+)\](?::\d*)?$/i

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

/** Scheme, in lower case, and authority of a target in absolute-form (`http://host/path`); `undefined` for every other form. */
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
