import { CHECKED_LATER, listOf, quoteValue, textLike, type ValueRule, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { toOriginForm } from '../protocol/request-line.ts'

/** The metadata of a protected resource (RFC 9728): where clients get tokens for it. */
export interface ProtectedResourceMetadataOptions {
  /**
   * The resource identifier: the https URL of the service as clients write it, such as `https://api.example/notes`, without
   * a fragment (RFC 9728 §1.2). It is never made from Host. Any other form is a TypeError that names the right one.
   */
  readonly resource: string
  /**
   * Issuer identifiers of the authorization servers whose tokens are accepted: https URLs without query and fragment
   * (RFC 8414 §2); anything else is a TypeError. Default: none are named.
   */
  readonly authorizationServers?: readonly string[]
  /** The scopes that clients may ask for, each a scope token (RFC 6749 §3.3); anything else is a TypeError. Default: none are named. */
  readonly scopes?: readonly string[]
}

/** Metadata that was checked, and where it is served. */
interface ResourceMetadata {
  /** The URL of the document (RFC 9728 §3.1), for `resource_metadata` in challenges. */
  readonly url: string
  /** The document as JSON. All of it is ASCII. */
  readonly document: string
  /** Whether a request target is that of the document. */
  isTarget(target: string): boolean
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource'

const ISSUER: ValueRule = {
  accepts: (value) => parseHttpsUrl(value) !== undefined && !/[?#]/.test(value as string),
  text: 'an https URL without query and fragment, such as "https://login.example"',
}
const SCOPE = textLike(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'a scope: visible ASCII without quotes and backslashes')

const OPTIONS = {
  resource: CHECKED_LATER,
  authorizationServers: listOf(ISSUER, 1),
  scopes: withDefault(listOf(SCOPE), []),
} satisfies OptionTable<ProtectedResourceMetadataOptions>

/** @throws TypeError for a resource, an issuer or a scope that is malformed, and for options that do not exist */
export function readResourceMetadata(given: ProtectedResourceMetadataOptions): ResourceMetadata {
  const { resource, authorizationServers, scopes } = resolveOptions('metadata', given, OPTIONS)
  const { origin, pathname, search } = readResource(resource)
  // The well-known string goes between host and path; a slash that is the whole path is dropped (RFC 9728 §3.1).
  const path = WELL_KNOWN + (pathname === '/' ? '' : pathname)
  const document = JSON.stringify({
    resource,
    ...(authorizationServers !== undefined && { authorization_servers: authorizationServers }),
    // A parameter without values is left out (RFC 9728 §3.2).
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
  })
  return {
    url: origin + path + search,
    document,
    isTarget(target) {
      const [, asked, query] = /^([^?]*)(.*)$/s.exec(toOriginForm(target))!
      // Clients of the Model Context Protocol drop a slash at the end of the path.
      return (asked === path || `${asked}/` === path) && (search === '' || query === search)
    },
  }
}

/** @throws TypeError for a resource that clients could not compare with the URL that they know (RFC 9728 §3.3) */
function readResource(resource: unknown): URL {
  const url = parseHttpsUrl(resource)
  if (url === undefined || (resource as string).includes('#')) {
    throw new TypeError(
      `metadata takes as resource: an https URL without fragment and user information (RFC 9728 section 1.2), such as "https://api.example/notes", not ${quoteValue(resource)}.`,
    )
  }
  if (url.href !== resource && url.href !== `${resource}/`) {
    throw new TypeError(`metadata takes as resource: a URL as clients write it, "${url.href}", not "${resource}".`)
  }
  return url
}

function parseHttpsUrl(value: unknown): URL | undefined {
  if (typeof value !== 'string' || !/^https:\/\/[\x21-\x7e]+$/i.test(value) || !URL.canParse(value)) return undefined
  const url = new URL(value)
  return url.username === '' && url.password === '' ? url : undefined
}
