/** The authority of a request (RFC 3986 §3.2), as Host and `:authority` carry it. */
export interface Authority {
  /** In lower case; an IPv6 address keeps its brackets. */
  readonly host: string
  /** Empty when there is none. */
  readonly port: string
}

const AUTHORITY = /^([a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::(\d{0,5}))?$/

/** Reads host and port; `undefined` for anything else, user information included (RFC 9110 §4.2.4). */
export function parseAuthority(text: string): Authority | undefined {
  const match = AUTHORITY.exec(text.toLowerCase())
  return match === null ? undefined : { host: match[1]!, port: match[2] ?? '' }
}

/** The authority of a target in absolute-form (`http://host/path`); `undefined` for every other form. */
export function parseTargetAuthority(target: string): string | undefined {
  if (target.charCodeAt(0) === 0x2f) return undefined
  return /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(target)?.[1]
}

/** Writes an origin (RFC 6454 §6.2); the default port of the scheme is left out, as browsers do. */
export function formatOrigin(scheme: 'http' | 'https', { host, port }: Authority): string {
  const isDefault = port === '' || port === (scheme === 'https' ? '443' : '80')
  return isDefault ? `${scheme}://${host}` : `${scheme}://${host}:${port}`
}
