import type { Method } from './request-line.ts'

/** Request fields that scripts of another origin may set by default: those that the interface gives a meaning. */
export const DEFAULT_ALLOWED_HEADERS: readonly string[] = [
  'Authorization',
  'Content-Type',
  'Accept',
  'Accept-Language',
  'If-Match',
  'If-None-Match',
  'If-Modified-Since',
  'If-Unmodified-Since',
  'If-Range',
  'Range',
  'Prefer',
  'Idempotency-Key',
  'Content-Disposition',
  'Content-Digest',
  'Repr-Digest',
  'Want-Content-Digest',
  'Want-Repr-Digest',
]

/** Response fields that scripts of another origin may read by default. */
export const DEFAULT_EXPOSED_HEADERS: readonly string[] = [
  'ETag',
  'Last-Modified',
  'Location',
  'Content-Range',
  'Content-Location',
  'Content-Disposition',
  'Accept-Ranges',
  'Accept-Patch',
  'Accept-Post',
  'Allow',
  'Link',
  'Retry-After',
  'WWW-Authenticate',
  'Preference-Applied',
  'Content-Digest',
  'Repr-Digest',
  'Deprecation',
  'Sunset',
]

const ORIGIN = /^([a-z][a-z0-9+.-]*):\/\/((?:[a-z0-9_-]+\.)*[a-z0-9_-]+|\[[0-9a-f:.]+\])(?::([1-9]\d{0,4}))?$/

/**
 * Whether `text` is an origin as browsers write it: scheme, host and port in lower case, no path, no default port
 * (RFC 6454 §6.2).
 */
export function isOrigin(text: string): boolean {
  const match = ORIGIN.exec(text)
  if (match === null) return false
  const [, scheme, , port] = match
  return !((scheme === 'https' && port === '443') || (scheme === 'http' && port === '80'))
}

/** Origins below one: `https://*.a.test` has every `https://x.a.test` and `https://x.y.a.test`, and no `https://a.test`. */
export interface OriginPattern {
  /** `https://` */
  readonly prefix: string
  /** `.a.test`, with the port if there is one. The dot is what keeps `https://xa.test` out. */
  readonly suffix: string
}

/** Reads `https://*.a.test`; `undefined` when the rest after the asterisk is not a host. */
export function parseOriginPattern(text: string): OriginPattern | undefined {
  const at = text.indexOf('://*.')
  if (at < 0 || !isOrigin(text.replace('://*.', '://')) || text.includes('[')) return undefined
  return { prefix: text.slice(0, at + 3), suffix: text.slice(at + 4) }
}

/** Whether an origin, as {@link isOrigin} knows it, lies in a pattern. */
export function matchesOriginPattern({ prefix, suffix }: OriginPattern, origin: string): boolean {
  // Names of origins have no empty label: something stands between the two.
  return origin.startsWith(prefix) && origin.endsWith(suffix)
}

/** The value of Access-Control-Allow-Methods: what the resource has, without OPTIONS, which scripts cannot use alone. */
export function formatAllowedMethods(methods: readonly Method[]): string {
  return methods.filter((method) => method !== 'OPTIONS').join(', ')
}
