import type { IncomingMessage } from 'node:http'
import { type AuthResult, type AuthScheme, toPrincipal } from '../auth-schemes/types.ts'
import { createAddressFinder } from '../core/client-address.ts'
import { describeValue } from '../core/describe-value.ts'
import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import { type AnyRequest, type Exchange, findExchange, type Principal, type RequestView } from '../core/exchange.ts'
import { countField } from '../core/fields.ts'
import { andThen, isPromise, type MaybePromise, type Step } from '../core/handler.ts'
import { createHandler, type ErrorHook, type Handler } from '../core/node-handler.ts'
import { createLog, type Log } from '../core/operator-log.ts'
import { checkValues, FUNCTION, LOG } from '../core/option-values.ts'
import { omitOptions, readOptions, readProperty, refuseRenamedValue } from '../core/options.ts'
import type { TrustProxy } from '../core/peer.ts'
import { addPending, addVary } from '../core/pending.ts'
import { askEachReading, readTarget } from '../core/read-target.ts'
import { asRead } from '../core/read-view.ts'
import { formatChallenge, parseAuthorization } from '../protocol/authorization.ts'
import { formatCacheControl } from '../protocol/cache-control.ts'
import { isToken } from '../protocol/field-value.ts'
import { isSafeMethod } from '../protocol/methods.ts'
import { isPreflightRequest } from './preflight-request.ts'
import { findMetadataEndpoint, type MetadataEndpoint } from './resource-metadata.ts'

/** Decides which requests need credentials. */
export type RequireRule = 'all' | 'writes' | ((request: RequestView) => boolean)

/** A user that the host has found. */
export interface HostUser {
  /** Names the user; never empty. */
  readonly id: string
  /** What else is known, for `authorize`. */
  readonly claims?: Readonly<Record<string, unknown>>
}

/** Gives the user that the host has found; nothing for none. */
export type HostPrincipal = (request: RequestView) => MaybePromise<HostUser | false | null | undefined>

export interface AuthenticationOptions {
  /** In the order in which they are offered to the client. Default: none; then `principal` is needed. */
  readonly schemes?: readonly AuthScheme[]
  /**
   * Takes the user that the host has found: `({ hostContext }) => hostContext.state.user && { id: hostContext.state.user.id }`.
   * The principal has the scheme `host`. Credentials in Authorization that one of the `schemes` knows count first, right
   * or wrong; this is asked for all other requests. Default: none.
   */
  readonly principal?: HostPrincipal
  /**
   * Whether browsers attach by themselves what the host finds its users by, as they do with cookies: changes that another
   * site asks for are then refused (403). Default: true.
   */
  readonly principalIsAmbient?: boolean
  /**
   * A challenge beside those of the schemes, as WWW-Authenticate has it: `Session realm="app"`. Needed without schemes: a
   * 401 has one (RFC 9110 §15.5.2). Default: none.
   */
  readonly challenge?: string
  /**
   * Which requests need credentials: all, those with an unsafe method, or those that a function picks. Credentials
   * that are sent without need are verified too. A write whose answer tells what a GET would needs them where the GET
   * does. Default: `all`.
   */
  readonly requireAuth?: RequireRule
}

export const AUTHENTICATION_NAMES = ['schemes', 'principal', 'principalIsAmbient', 'challenge', 'requireAuth'] as const

/** Finds out who sends a request. */
export interface Authentication {
  /**
   * Whether a request needs credentials. A preflight never does: browsers send none with it (Fetch, "CORS-preflight
   * fetch"). Nor does `OPTIONS *`, which is about no resource.
   */
  isRequired(exchange: Exchange): boolean
  /**
   * Verifies the credentials of a request and puts the principal on the exchange.
   * @param require decides whether they are needed. Default: the `requireAuth` option
   * @throws HttpError 401 with every scheme's challenge, and whatever a scheme throws
   */
  authenticate(exchange: Exchange, require?: (request: RequestView) => boolean): MaybePromise<undefined>
  /** `authenticate` as a step. */
  readonly step: Step
  /** Reports when credentials cannot be verified, and when they can be again. @returns what ends the reports */
  watch(log: Log): () => void
  /** Serves the metadata of a scheme that has some; `undefined` where none has. */
  readonly metadata: MetadataEndpoint | undefined
}

/**
 * Makes the part of a service that finds out who sends a request (RFC 9110 §11). Credentials count in the
 * Authorization field only.
 * @throws TypeError without a scheme or a `principal`, with two schemes of one name, or without a challenge for 401
 */
export function createAuthentication(options: AuthenticationOptions): Authentication {
  const { schemes, principal: findUser, isAmbient, challenge, requireAuth } = readAuthentication(options)
  const byName = new Map(schemes.map((scheme) => [scheme.name.toLowerCase(), scheme]))
  if (byName.size < schemes.length) throw new TypeError('auth has two schemes of one name.')
  const needsCredentials = compileRule(requireAuth)
  // A host may find its users by a cookie.
  const varyingFields = findUser !== undefined && isAmbient ? 'Authorization, Cookie' : 'Authorization'

  function isRequired(exchange: Exchange, rule = needsCredentials): boolean {
    if (isPreflightRequest(exchange) || exchange.path === '*') return false
    const ask = (): boolean => rule(exchange) || (exchange.revealsState && rule(asRead(exchange)))
    if (exchange.readings === undefined) return ask()
    return askEachReading(exchange, ask, (isNeeded) => isNeeded) as boolean
  }

  /** 401 with a challenge of every scheme, each a field line of its own: clients differ in how they split one. */
  function refuse(exchange: Exchange, failed?: AuthScheme, challenges?: readonly string[]): never {
    const sent: string[] = []
    for (const scheme of schemes) {
      const own = scheme === failed ? challenges : undefined
      sent.push(...(own ?? scheme.challenges(exchange)))
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
    if (result.outcome === 'rejected') {
      note(exchange, result.reason)
      refuse(exchange, scheme, readProperty(result, 'challenges'))
    }
    // Anything else must not count as consent.
    if (result.outcome !== 'accepted' || !isPrincipal(result.principal)) {
      throw new TypeError(`The scheme ${scheme.name} gave neither a principal nor a rejection.`)
    }
    exchange.principal = result.principal
    exchange.isAmbient = readProperty(scheme, 'isAmbient') !== false
    exchange.sharing = readProperty(scheme, 'isPrivate') === true ? 'private' : 'authorized'
    const fields = readProperty(result, 'fields')
    if (fields !== undefined) addPending(exchange, fields)
    return undefined
  }

  function takeUser(exchange: Exchange, user: HostUser | false | null | undefined, needed: boolean): undefined {
    const principal = toPrincipal('host', user, '')
    if (principal?.id === '') throw new TypeError('auth: "principal" returns { id } with the name of the user as text.')
    if (principal === undefined) return needed ? refuse(exchange) : undefined
    exchange.principal = principal
    exchange.isAmbient = isAmbient
    exchange.sharing = 'private'
    return undefined
  }

  function authenticate(exchange: Exchange, require = needsCredentials): MaybePromise<undefined> {
    const field = exchange.field('authorization')
    // Caches must keep the answers for users apart from the anonymous one, and the anonymous one from theirs (RFC 9111 §4.1).
    addVary(exchange, varyingFields)
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
    return isPromise(result)
      ? result.then((result) => conclude(exchange, scheme, result))
      : conclude(exchange, scheme, result)
  }

  return {
    isRequired: (exchange) => isRequired(exchange),
    authenticate,
    step: function authenticateRequest(exchange) {
      return authenticate(exchange)
    },
    watch(log) {
      const stops = schemes.map((scheme) => readProperty(scheme, 'watch')?.call(scheme, log))
      return () => {
        for (const stop of stops) stop?.()
      }
    },
    metadata: findMetadataEndpoint(schemes),
  }
}

function isPrincipal(value: unknown): boolean {
  const principal = value as Partial<Principal> | null | undefined
  return typeof principal?.scheme === 'string' && typeof principal.id === 'string'
}

/** @throws TypeError for a scheme, or a list of them, in the place of the options */
export function checkSchemes(options: unknown): void {
  const isScheme = typeof (options as Partial<AuthScheme> | null | undefined)?.authenticate === 'function'
  if (!isScheme && !Array.isArray(options)) return
  throw new TypeError('auth takes its schemes as an option: { schemes: [basic({ accounts })] }.')
}

function readAuthentication(options: AuthenticationOptions) {
  const read = readOptions('auth', options, AUTHENTICATION_NAMES)
  const { schemes = [], principal, principalIsAmbient, challenge, requireAuth = 'all' } = read
  if (!Array.isArray(schemes)) throw new TypeError('auth takes "schemes" as a list: [basic({ accounts })].')
  for (const [index, scheme] of (schemes as readonly Partial<AuthScheme>[]).entries()) {
    const isScheme = typeof scheme?.authenticate === 'function' && typeof scheme.challenges === 'function'
    if (isScheme && isToken(scheme.name ?? '')) continue
    const call = typeof scheme === 'function' ? ` Call it: ${(scheme as { name: string }).name}(options).` : ''
    throw new TypeError(
      `auth: schemes[${index}] must be an AuthScheme (name, challenges, authenticate), not ${describeValue(scheme)}.${call}`,
    )
  }
  if (principal !== undefined && typeof principal !== 'function') throw new TypeError('"principal" is a function.')
  if (principal === undefined) {
    if (schemes.length === 0) throw new TypeError('auth needs at least one scheme, or "principal".')
    if (principalIsAmbient !== undefined) throw new TypeError('auth has "principalIsAmbient" without "principal".')
  } else if (schemes.length === 0 && challenge === undefined) {
    throw new TypeError(
      'auth with "principal" and no schemes needs a "challenge" for its 401 (RFC 9110 section 15.5.2).',
    )
  }
  if (principalIsAmbient !== undefined && typeof principalIsAmbient !== 'boolean') {
    throw new TypeError('"principalIsAmbient" is true or false.')
  }
  if (challenge !== undefined && !isChallenge(challenge)) {
    throw new TypeError('"challenge" is a scheme and its parameters in ASCII, such as Session realm="app".')
  }
  const isAmbient = principalIsAmbient ?? principal !== undefined
  return { schemes: schemes as readonly AuthScheme[], principal, isAmbient, challenge, requireAuth }
}

function isChallenge(text: unknown): boolean {
  return typeof text === 'string' && /^[\x20-\x7e]+$/.test(text) && parseAuthorization(text) !== undefined
}

function compileRule(rule: RequireRule): (request: RequestView) => boolean {
  if (rule === 'all') return () => true
  if (rule === 'writes') return ({ method }) => !isSafeMethod(method)
  if (typeof rule !== 'function') throw new TypeError('"requireAuth" is "all", "writes" or a function.')
  // Anything but false needs credentials: a function that forgets to return must not open everything.
  return (request) => rule(request) !== false
}

export interface AuthOptions extends AuthenticationOptions {
  /**
   * Whether the principal may do this: `true`; `false` for 403; `'not-found'` for 404, where even existence is a
   * secret. Default: everybody may.
   */
  readonly authorize?: (principal: Principal | undefined, request: RequestView) => MaybePromise<boolean | 'not-found'>
  /** Proxies whose word on the address of the client counts, for a `throttle`. Default: none. */
  readonly trustProxy?: TrustProxy
  /** Called with unexpected errors. Default: `console.error`. */
  readonly onError?: ErrorHook
  /**
   * Receives `{ level, part, state, message, error }` when credentials cannot be verified, because the keys of an issuer
   * are out of reach for instance, and when they can be again. `false` turns it off. Default: one line on the console.
   */
  readonly log?: Log | boolean
}

/**
 * Standalone middleware that lets only those requests through whose sender is known, and allowed. What it found out
 * is to be had from `principalOf(req)`.
 *
 * Where there is a principal, the response gets `Cache-Control: private, no-cache` before the request goes on; a route
 * that sets the field itself replaces it.
 * @returns a handler for Express and Connect; a request that passes goes on to `next`
 * @throws TypeError without a scheme or a `principal`, with two schemes of one name, or without a challenge for 401
 * @example
 * app.use('/api', auth({ schemes: [basic({ verify })], require: 'writes' }))
 */
export function auth(options: AuthOptions): Handler {
  checkSchemes(options)
  const read = readOptions('auth', options, [...AUTHENTICATION_NAMES, 'authorize', 'trustProxy', 'onError', 'log'])
  const { authorize, trustProxy, onError, log } = read
  checkValues('auth', read, { log: LOG, onError: FUNCTION })
  if (authorize !== undefined && typeof authorize !== 'function') throw new TypeError('"authorize" is a function.')
  const { authenticate, watch, metadata } = createAuthentication(
    omitOptions(read, 'authorize', 'trustProxy', 'onError', 'log'),
  )
  watch(createLog(log))
  const findAddress = createAddressFinder(trustProxy)
  return createHandler({
    role: 'guard',
    isWellKnown: metadata?.isWellKnown,
    run(exchange) {
      // Before any credentials: a client that has none learns here where to get them.
      if (metadata?.covers(exchange)) return metadata.answer(exchange)
      readTarget(exchange)
      if (countField(exchange.req, 'authorization') > 1) {
        throw new HttpError(400, 'ERR_MALFORMED_FIELD', { detail: 'The field authorization was sent more than once.' })
      }
      if (findAddress !== undefined) exchange.findAddress = findAddress
      return andThen(authenticate(exchange), () => {
        if (authorize === undefined) return limitSharing(exchange)
        const verdict = askEachReading<boolean | 'not-found'>(
          exchange,
          () => authorize(exchange.principal, exchange),
          (verdict) => verdict !== true,
        )
        return andThen(verdict, (verdict) => {
          if (verdict === true) return limitSharing(exchange)
          refuseRenamedValue('authorize', 'authorize', verdict)
          if (verdict === 'not-found') throw new HttpError(404, 'ERR_NOT_FOUND')
          throw new HttpError(403, 'ERR_FORBIDDEN')
        })
      })
    },
    onError,
    forwardErrors: true,
  })
}

/** Puts on the host's response that it is for one user, as far as the host has not said so itself. */
function limitSharing(exchange: Exchange): undefined {
  const { res, sharing } = exchange
  if (sharing === 'public' || res.headersSent) return
  const present = res.getHeader('cache-control')
  const value = formatCacheControl(present === undefined ? undefined : String(present), sharing)
  res.setHeader('Cache-Control', value)
  if (present === undefined) exchange.usualCacheControl = value
}

/** Who sends a request, as `auth` found out; `undefined` without a principal. */
export function principalOf(req: AnyRequest): Principal | undefined {
  return findExchange(req as IncomingMessage)?.principal
}
