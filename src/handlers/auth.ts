import type { IncomingMessage } from 'node:http'
import type { AuthResult, AuthScheme } from '../auth-schemes/types.ts'
import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import { type AnyRequest, type Exchange, findExchange, type Principal, type RequestView } from '../core/exchange.ts'
import { countField, readField } from '../core/fields.ts'
import { andThen, isPromise, type MaybePromise, type Step } from '../core/handler.ts'
import { createHandler, type ErrorHook, type Handler } from '../core/node-handler.ts'
import { readOptions } from '../core/options.ts'
import { addPending, createVaryMark, passOnPending } from '../core/pending.ts'
import { readTarget } from '../core/read-target.ts'
import { formatChallenge, parseAuthorization } from '../protocol/authorization.ts'
import { isToken } from '../protocol/field-value.ts'
import { isSafeMethod } from '../protocol/methods.ts'
import { isPreflightRequest } from './preflight-request.ts'

/** Decides which requests need credentials. */
export type RequireRule = 'all' | 'writes' | ((request: RequestView) => boolean)

export interface AuthenticationOptions {
  /** In the order in which they are offered to the client; one at least. */
  readonly schemes: readonly AuthScheme[]
  /**
   * Which requests need credentials: all, those with an unsafe method, or those that a function picks. Credentials
   * that are sent without need are verified too. Default: `all`.
   */
  readonly require?: RequireRule
}

/** Finds out who sends a request. */
export interface Authentication {
  /**
   * Whether a request needs credentials. A preflight never does: browsers send none with it (Fetch, "CORS-preflight
   * fetch"). Nor does `OPTIONS *`, which is about no resource.
   */
  isRequired(exchange: Exchange): boolean
  /**
   * Verifies the credentials of a request and puts the principal on the exchange.
   * @param require decides whether they are needed. Default: the `require` option
   * @throws HttpError 401 with every scheme's challenge, and whatever a scheme throws
   */
  authenticate(exchange: Exchange, require?: (request: RequestView) => boolean): MaybePromise<undefined>
  /** `authenticate` as a step. */
  readonly step: Step
}

/**
 * Makes the part of a service that finds out who sends a request (RFC 9110 §11). Credentials count in the
 * Authorization field only.
 * @throws TypeError without schemes, or with two of one name
 */
export function createAuthentication(options: AuthenticationOptions): Authentication {
  const { schemes, require = 'all' } = readOptions('auth', options, ['schemes', 'require'])
  if (!Array.isArray(schemes) || schemes.length === 0) throw new TypeError('auth needs at least one scheme.')
  for (const scheme of schemes as readonly Partial<AuthScheme>[]) {
    const isScheme = typeof scheme?.authenticate === 'function' && typeof scheme.challenges === 'function'
    if (!isScheme || !isToken(scheme.name ?? '')) throw new TypeError('auth has a scheme that is none.')
  }
  const byName = new Map((schemes as readonly AuthScheme[]).map((scheme) => [scheme.name.toLowerCase(), scheme]))
  if (byName.size < schemes.length) throw new TypeError('auth has two schemes of one name.')
  const needsCredentials = compileRule(require)
  const markAuthorization = createVaryMark('Authorization')

  function isRequired(exchange: Exchange, rule = needsCredentials): boolean {
    return rule(exchange) && !isPreflightRequest(exchange) && exchange.path !== '*'
  }

  /** 401 with a challenge of every scheme, each a field line of its own: clients differ in how they split one. */
  function refuse(exchange: Exchange, failed?: AuthScheme, challenges?: readonly string[]): never {
    const headers: string[] = []
    for (const scheme of schemes as readonly AuthScheme[]) {
      const own = scheme === failed ? challenges : undefined
      for (const challenge of own ?? scheme.challenges(exchange)) headers.push('WWW-Authenticate', challenge)
    }
    // A 401 without any challenge is none (RFC 9110 §15.5.2).
    if (headers.length === 0) headers.push('WWW-Authenticate', formatChallenge(schemes[0]!.name, []))
    throw new HttpError(401, 'ERR_UNAUTHENTICATED', {
      detail: failed === undefined ? 'Credentials are required.' : 'The credentials were refused.',
      headers,
    })
  }

  function conclude(exchange: Exchange, scheme: AuthScheme, result: AuthResult): undefined {
    if (result.outcome === 'rejected') {
      note(exchange, result.reason)
      refuse(exchange, scheme, result.challenges)
    }
    exchange.principal = result.principal
    exchange.isAuthorized = true
    if (result.fields !== undefined) addPending(exchange, result.fields)
    return undefined
  }

  function authenticate(exchange: Exchange, require = needsCredentials): MaybePromise<undefined> {
    const { headers } = exchange
    const field = headers.authorization === undefined ? undefined : readField(headers, 'authorization')
    const required = isRequired(exchange, require)
    // Caches must tell what somebody got from what anybody gets (RFC 9111 §4.1).
    if (required || field !== undefined) markAuthorization(exchange)
    if (field === undefined) return required ? refuse(exchange) : undefined
    const credentials = parseAuthorization(field)
    const scheme = credentials === undefined ? undefined : byName.get(credentials.scheme)
    if (scheme === undefined) {
      note(exchange, 'unknown scheme')
      return refuse(exchange)
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
  }
}

function compileRule(rule: RequireRule): (request: RequestView) => boolean {
  if (rule === 'all') return () => true
  if (rule === 'writes') return ({ method }) => !isSafeMethod(method)
  if (typeof rule !== 'function') throw new TypeError('"require" is "all", "writes" or a function.')
  // Anything but false needs credentials: a function that forgets to return must not open everything.
  return (request) => rule(request) !== false
}

export interface AuthOptions extends AuthenticationOptions {
  /** Whether the principal may do this; `hide` answers 404 where even existence is a secret. Default: everybody may. */
  readonly authorize?: (principal: Principal | undefined, request: RequestView) => MaybePromise<boolean | 'hide'>
  /** Told of unexpected errors. Default: `console.error`. */
  readonly onError?: ErrorHook
}

/**
 * A piece that lets only those requests through whose sender is known, and allowed. What it found out is to be had from
 * `principalOf(req)`.
 * @returns a handler for Express and Connect; a request that passes goes on to `next`
 * @throws TypeError without schemes, or with two of one name
 * @example
 * app.use('/api', auth({ schemes: [basic({ verify })], require: 'writes' }))
 */
export function auth(options: AuthOptions): Handler {
  const { authorize, onError, ...rest } = readOptions('auth', options, ['schemes', 'require', 'authorize', 'onError'])
  if (authorize !== undefined && typeof authorize !== 'function') throw new TypeError('"authorize" is a function.')
  const { authenticate } = createAuthentication(rest)
  return createHandler({
    run(exchange) {
      readTarget(exchange)
      if (countField(exchange.req, 'authorization') > 1) {
        throw new HttpError(400, 'ERR_MALFORMED_FIELD', { detail: 'The field authorization was sent more than once.' })
      }
      return andThen(authenticate(exchange), () =>
        andThen(authorize === undefined ? true : authorize(exchange.principal, exchange), (verdict) => {
          if (verdict === 'hide') throw new HttpError(404, 'ERR_NOT_FOUND')
          if (verdict !== true) throw new HttpError(403, 'ERR_FORBIDDEN')
          passOnPending(exchange)
          return undefined
        }),
      )
    },
    onError,
    forwardErrors: true,
  })
}

/** Who sends a request, as `auth` found out; `undefined` when nobody is known. */
export function principalOf(req: AnyRequest): Principal | undefined {
  return findExchange(req as IncomingMessage)?.principal
}
