import { onceFor } from '../core/caches.ts'
import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import { BASE_FIELDS, type Exchange } from '../core/exchange.ts'
import { asksForMethod } from '../core/fields.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { isOwnOrigin } from '../core/place.ts'
import { emptyReply, keepFields, type Reply } from '../core/reply.ts'
import { addPending, addVary } from '../core/write-head.ts'
import { formatAllowedMethods, isOrigin } from '../protocol/cors.ts'
import type { Method } from '../protocol/request-line.ts'
import { type CorsOptions, resolveCorsOptions } from './cors-options.ts'

/** The most origins whose fields are kept ready, and the most characters of one: a scheme, a host of 253 and a port. */
const REMEMBERED = 1000
const LONGEST = 300

export interface Cors {
  /**
   * Adds the CORS fields to every later reply, and answers a preflight. Call it before anything that may fail, so that
   * errors carry the fields too, and before authentication: a preflight has no credentials.
   * @param methods what the resource has. Answers are kept by the identity of the array.
   * @returns the 204 for a preflight; `undefined` for all other requests, OPTIONS without a preflight included
   * @throws HttpError 403 for an origin that is not allowed, where `rejectOrigin` says so
   */
  apply(exchange: Exchange, methods: readonly Method[]): MaybePromise<Reply | undefined>
  /** Whether the origins are `*`. */
  readonly isAnyOrigin: boolean
  /** Whether the options name an origin. `*` names none: browsers send no credentials for it, but forms of any site do. */
  allows(origin: string): MaybePromise<boolean>
}

interface Grant {
  /** For a preflight: that the origin is allowed. */
  readonly preflight: readonly string[]
  /** For every other reply: the same, and what scripts may read. */
  readonly actual: readonly string[]
}

/**
 * Makes a CORS policy (Fetch standard, "CORS protocol").
 * @throws TypeError for `*` with credentials, for an origin that no browser sends, and for options that do not exist
 */
export function createCors(options: CorsOptions): Cors {
  const policy = resolveCorsOptions(options)
  const { isAnyOrigin, mayAllow } = policy
  const grants = new Map<string, Grant>()
  const refused = policy.always.length === 0 ? BASE_FIELDS : [...BASE_FIELDS, ...policy.always]
  const anyGrant = createGrant('*')
  const refusedPreflight = emptyReply(204, ['Cache-Control', 'no-store'])

  function createGrant(origin: string): Grant {
    const allow = ['Access-Control-Allow-Origin', origin]
    if (policy.credentials) allow.push('Access-Control-Allow-Credentials', 'true')
    const expose = policy.exposed === '' ? [] : ['Access-Control-Expose-Headers', policy.exposed]
    const timing = policy.timing ? ['Timing-Allow-Origin', origin] : []
    return { preflight: [...BASE_FIELDS, ...allow], actual: [...refused, ...allow, ...expose, ...timing] }
  }

  function grantFor(origin: string): Grant {
    let grant = grants.get(origin)
    if (grant === undefined) {
      grant = createGrant(origin)
      // A function or a pattern may allow any number of origins, as long as clients like.
      if (origin.length > LONGEST) return grant
      if (grants.size >= REMEMBERED) grants.clear()
      grants.set(origin, grant)
    }
    return grant
  }

  const preflightFor = onceFor((methods: readonly Method[]): Reply => {
    // The same answer whatever is asked for: nothing is reflected, the browser compares (Fetch, "CORS-preflight fetch").
    const fields = ['Access-Control-Allow-Methods', formatAllowedMethods(methods)]
    if (policy.allowed !== '') fields.push('Access-Control-Allow-Headers', policy.allowed)
    fields.push('Access-Control-Max-Age', policy.maxAge, 'Cache-Control', 'no-store')
    return { status: 204, headers: fields, kept: keepFields(fields) }
  })

  function allows(origin: string): MaybePromise<boolean> {
    if (policy.isFixed && grants.has(origin)) return true
    // No pattern and no function is asked about text that is not an origin; `null` counts only where it is listed.
    return origin === 'null' ? policy.allowsNull : isOrigin(origin) && mayAllow(origin)
  }

  function decide(
    exchange: Exchange,
    methods: readonly Method[],
    origin: string | undefined,
    isAllowed: boolean,
  ): Reply | undefined {
    const isPreflight = origin !== undefined && asksForMethod(exchange)
    if (!isAllowed) {
      note(exchange, 'origin not allowed')
      if (policy.rejectOrigin && !isOwnOrigin(exchange, origin!, 'unknown')) {
        throw new HttpError(403, 'ERR_CROSS_SITE', { detail: 'Requests from this origin are not allowed.' })
      }
      return isPreflight ? refusedPreflight : addFields(exchange, refused)
    }
    const grant = isAnyOrigin ? anyGrant : grantFor(origin!)
    if (!isPreflight) return addFields(exchange, grant.actual)
    addFields(exchange, grant.preflight)
    if (policy.privateNetwork) {
      addVary(exchange, 'Access-Control-Request-Private-Network')
      if (exchange.field('access-control-request-private-network') === 'true') {
        addPending(exchange, ['Access-Control-Allow-Private-Network', 'true'])
      }
    }
    return preflightFor(methods)
  }

  return {
    isAnyOrigin,
    allows,
    apply(exchange, methods) {
      const origin = exchange.field('origin')
      if (isAnyOrigin) return decide(exchange, methods, origin, true)
      // On every answer, also without Origin: a cache would otherwise serve one origin's answer to another.
      addVary(exchange, 'Origin')
      if (origin === undefined) return addFields(exchange, refused)
      return andThen(allows(origin), (isAllowed) => decide(exchange, methods, origin, isAllowed === true))
    },
  }
}

/** @param fields a list that begins with the base fields: the first caller shares it instead of making one */
function addFields(exchange: Exchange, fields: readonly string[]): undefined {
  if (exchange.pending === BASE_FIELDS) exchange.pending = fields
  else addPending(exchange, fields.slice(BASE_FIELDS.length))
}
