import { type AuthResult, type AuthScheme, toPrincipal } from '../auth-schemes/scheme.ts'
import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import { isPreflightRequest } from '../core/fields.ts'
import { andThen, atOnce, type MaybePromise } from '../core/maybe-promise.ts'
import type { Log } from '../core/operator-log.ts'
import { describeValue } from '../core/option-values.ts'
import { readProperty } from '../core/options.ts'
import { askEachReading } from '../core/place.ts'
import { asJudged, asRead, type Principal, type RequestView } from '../core/request-view.ts'
import { addPending, createVaryAdder, isFieldList } from '../core/write-head.ts'
import { formatChallenge, parseAuthorization } from '../protocol/authorization.ts'
import { type AuthenticationSettings, compileRule, type HostUser } from './authentication-options.ts'
import { findMetadataEndpoint, type MetadataEndpoint } from './resource-metadata.ts'

const HOST_USER_RULE =
  'auth: "principal" returns { id, claims }, or undefined, null or false; id is text that is not empty, such as String(user.id), claims an object or absent.'

/** Finds out who sends a request. */
export interface Authentication {
  /**
   * Verifies the credentials of a request and puts the principal on the exchange.
   * @param require decides whether they are needed. Default: the `requireAuth` option
   * @throws HttpError 401 with every scheme's challenge, and whatever a scheme throws
   */
  authenticate(exchange: Exchange, require?: (request: RequestView) => boolean): MaybePromise<undefined>
  /** Reports when credentials cannot be verified, and when they can be again. @returns what ends the reports */
  watch(log: Log): () => void
  /** Serves the metadata of a scheme that has some; `undefined` where none has. */
  readonly metadata: MetadataEndpoint | undefined
}

/**
 * Makes the part of a service that finds out who sends a request (RFC 9110 §11). Credentials count in the
 * Authorization field only.
 */
export function createAuthentication(settings: AuthenticationSettings): Authentication {
  const { schemes, principal: findUser, principalIsAmbient: isAmbient, challenge } = settings
  const needsCredentials = compileRule(settings.requireAuth)
  const byName = new Map(schemes.map((scheme) => [scheme.name.toLowerCase(), scheme]))
  // A host may find its users by a cookie.
  const addVaryingFields = createVaryAdder(
    findUser !== undefined && isAmbient ? 'Authorization, Cookie' : 'Authorization',
  )

  /**
   * Whether a request needs credentials. A preflight never does: browsers send none with it (Fetch, "CORS-preflight
   * fetch"). Nor does `OPTIONS *`, which is about no resource.
   */
  function isRequired(exchange: Exchange, rule: (request: RequestView) => boolean): boolean {
    if (isPreflightRequest(exchange) || exchange.path === '*') return false
    const ask = (): boolean => rule(asJudged(exchange)) || (exchange.revealsState && rule(asRead(exchange)))
    if (exchange.readings === undefined) return ask()
    return askEachReading(exchange, ask, (isNeeded) => isNeeded) as boolean
  }

  /** 401 with a challenge of every scheme, each a field line of its own: clients differ in how they split one. */
  function refuse(exchange: Exchange, failed?: AuthScheme, challenges?: readonly string[]): never {
    const sent: string[] = []
    for (const scheme of schemes) {
      const own = scheme === failed ? challenges : undefined
      const list: unknown = atOnce(own ?? scheme.challenges(exchange))
      // The letters of a text would be challenges of their own.
      if (!Array.isArray(list)) {
        throw new TypeError(`The scheme ${scheme.name} gave as challenges ${describeValue(list)}, not a list of texts.`)
      }
      sent.push(...list)
    }
    if (challenge !== undefined) sent.push(challenge)
    // RFC 9110 §15.5.2: a 401 has at least one challenge.
    if (sent.length === 0) sent.push(formatChallenge(schemes[0]!.name, []))
    throw new HttpError(401, 'ERR_UNAUTHENTICATED', {
      detail: failed === undefined ? 'Credentials are required.' : 'The credentials were refused.',
      headers: { 'WWW-Authenticate': sent },
    })
  }

  function conclude(exchange: Exchange, scheme: AuthScheme, result: AuthResult): undefined {
    if (result?.outcome === 'rejected') {
      note(exchange, result.reason)
      refuse(exchange, scheme, readProperty(result, 'challenges'))
    }
    // Anything else must not count as consent.
    if (result?.outcome !== 'accepted' || !isPrincipal(result.principal)) {
      throw new TypeError(`The scheme ${scheme.name} gave neither a principal nor a rejection.`)
    }
    exchange.principal = withOwnClaims(result.principal)
    exchange.isAmbient = readProperty(scheme, 'isAmbient') !== false
    // What a guard before this one has found private stays so.
    const isPrivate = readProperty(scheme, 'isPrivate') === true || exchange.sharing === 'private'
    exchange.sharing = isPrivate ? 'private' : 'authorized'
    const fields = readProperty(result, 'fields')
    if (fields === undefined) return undefined
    // They would be on the 500 as well, which could not be sent for them.
    if (!isFieldList(fields)) throw new TypeError(`The scheme ${scheme.name} gave fields that no message can have.`)
    addPending(exchange, fields)
    return undefined
  }

  function takeUser(exchange: Exchange, user: HostUser | false | null | undefined, needed: boolean): undefined {
    const principal = toPrincipal('host', user, '', HOST_USER_RULE)
    if (principal?.id === '') throw new TypeError(HOST_USER_RULE)
    // Where it is not a cookie, Vary does not name the field by which users are found: a cache would give them what others get.
    if (!isAmbient || principal !== undefined) exchange.sharing = 'private'
    if (principal === undefined) return needed ? refuse(exchange) : undefined
    exchange.principal = principal
    exchange.isAmbient = isAmbient
    return undefined
  }

  function authenticate(exchange: Exchange, require = needsCredentials): MaybePromise<undefined> {
    const field = exchange.field('authorization')
    // Caches must keep the answers for users apart from the anonymous one, and the anonymous one from theirs (RFC 9111 §4.1).
    addVaryingFields(exchange)
    const credentials = field === undefined || schemes.length === 0 ? undefined : parseAuthorization(field)
    const scheme = credentials === undefined ? undefined : byName.get(credentials.scheme)
    if (scheme === undefined) {
      const isUnknown = field !== undefined && schemes.length > 0
      if (isUnknown) note(exchange, 'unknown scheme')
      const isNeeded = isUnknown || isRequired(exchange, require)
      if (findUser === undefined) return isNeeded ? refuse(exchange) : undefined
      return andThen(findUser(exchange), (user) => takeUser(exchange, user, isNeeded))
    }
    const result = scheme.authenticate(credentials!.value, exchange)
    return andThen(result, (result) => conclude(exchange, scheme, result))
  }

  return {
    authenticate,
    watch(log) {
      const stops = schemes.map((scheme) => readProperty(scheme, 'watch')?.call(scheme, log))
      return () => {
        for (const stop of stops) stop?.()
      }
    },
    metadata: findMetadataEndpoint(schemes),
  }
}

/** A hook that reads `claims` must not find those that pollute every object. An object of a class stays as it is. */
function withOwnClaims(principal: Principal): Principal {
  if (!Object.hasOwn(Object.prototype, 'claims') || Object.hasOwn(principal, 'claims')) return principal
  return { ...principal, scheme: principal.scheme, id: principal.id, claims: undefined }
}

function isPrincipal(value: unknown): boolean {
  const principal = value as Partial<Principal> | null | undefined
  return typeof principal?.scheme === 'string' && typeof principal.id === 'string'
}
