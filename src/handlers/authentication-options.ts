import type { AuthScheme } from '../auth-schemes/scheme.ts'
import { atOnce, type MaybePromise } from '../core/maybe-promise.ts'
import {
  BOOLEAN,
  CHECKED_LATER,
  describeValue,
  either,
  FUNCTION,
  oneOf,
  type ValueRule,
} from '../core/option-values.ts'
import { changeOptions, type OptionTable, resolveOptions } from '../core/options.ts'
import type { RequestView } from '../core/request-view.ts'
import { parseAuthorization } from '../protocol/authorization.ts'
import { isToken } from '../protocol/field-value.ts'
import { isSafeMethod } from '../protocol/request-line.ts'

/** Decides which requests need credentials. */
export type RequireRule = 'all' | 'writes' | 'none' | ((request: RequestView) => boolean)

/** A user that the host has found. */
export interface HostUser {
  /** Names the user; never empty. */
  readonly id: string
  /** What else is known, for `authorize`. */
  readonly claims?: Readonly<Record<string, unknown>>
}

/** Gives the user that the host has found; nothing for none. */
export type HostPrincipal = (request: RequestView) => MaybePromise<HostUser | false | null | undefined>

/** Who sends a request, and which requests need credentials: options of `auth`, and of a service as `auth`. */
export interface AuthenticationOptions {
  /** In the order in which they are offered to the client. Default: none; then `principal` is needed. */
  readonly schemes?: readonly AuthScheme[]
  /**
   * Takes the user that the host has found: `({ hostContext }) => hostContext.state.user && { id: hostContext.state.user.id }`.
   * The principal has the scheme `host`. It is not called for
   * a request whose Authorization is for one of the `schemes`, right or wrong. Default: none.
   */
  readonly principal?: HostPrincipal
  /**
   * Whether browsers attach the credentials of the host by themselves, as they do with cookies. A service then refuses
   * changes that another site asks for (403). The standalone `auth` does not refuse them; a service behind it does.
   * Default: true.
   */
  readonly principalIsAmbient?: boolean
  /**
   * A challenge beside those of the schemes, as WWW-Authenticate has it: `Session realm="app"`. Needed without schemes: a
   * 401 has one (RFC 9110 §15.5.2). Default: none.
   */
  readonly challenge?: string
  /**
   * Which requests need credentials: `all`, those with an unsafe method (`writes`), `none`, or those that a function
   * picks. Credentials of other requests are verified too. A write whose response shows the current state needs them where
   * a GET does. A preflight and `OPTIONS *` never need them. Default: `all`.
   */
  readonly requireAuth?: RequireRule
}

const CHALLENGE: ValueRule = {
  accepts: (value) =>
    typeof value === 'string' && /^[\x20-\x7e]+$/.test(value) && parseAuthorization(value) !== undefined,
  text: 'a scheme and its parameters in ASCII, such as Session realm="app"',
}

export const REQUIRE_RULE: ValueRule = either(oneOf('all', 'writes', 'none'), FUNCTION)

/** For functions that take these options among others. */
export const AUTHENTICATION_OPTIONS: OptionTable<AuthenticationOptions> = {
  schemes: CHECKED_LATER,
  principal: FUNCTION,
  principalIsAmbient: BOOLEAN,
  challenge: CHALLENGE,
  requireAuth: REQUIRE_RULE,
}

/** The options, checked and with their defaults. */
export interface AuthenticationSettings extends AuthenticationOptions {
  readonly schemes: readonly AuthScheme[]
  /** Whether browsers attach by themselves what the host finds its users by. */
  readonly principalIsAmbient: boolean
  readonly requireAuth: RequireRule
}

/**
 * Reads the options of this file, among others.
 * @param table the rules of all of them
 * @throws TypeError without a scheme or a `principal`, with two schemes of one name, or without a challenge for 401
 */
export function readAuth<Options extends AuthenticationOptions>(
  given: Options,
  table: OptionTable<Options>,
): Readonly<Options> & AuthenticationSettings {
  const isScheme = typeof (given as Partial<AuthScheme> | undefined)?.authenticate === 'function'
  if (isScheme || Array.isArray(given)) {
    throw new TypeError('auth takes its schemes as an option: { schemes: [basic({ accounts })] }.')
  }
  const options: Readonly<Options> = resolveOptions('auth', given, table)
  const { schemes = [], principal, principalIsAmbient, challenge, requireAuth = 'all' } = options
  checkEachScheme(schemes)
  if (principal === undefined) {
    if (schemes.length === 0) throw new TypeError('auth needs at least one scheme, or "principal".')
    if (principalIsAmbient !== undefined) throw new TypeError('auth has "principalIsAmbient" without "principal".')
  } else if (schemes.length === 0 && challenge === undefined) {
    throw new TypeError(
      'auth with "principal" and no schemes needs a "challenge" for its 401 (RFC 9110 section 15.5.2).',
    )
  }
  const settings = { schemes, principalIsAmbient: principalIsAmbient ?? principal !== undefined, requireAuth }
  return changeOptions<object>(options, settings) as Readonly<Options> & AuthenticationSettings
}

/** @throws TypeError that names the scheme that is none, and the call that was left out */
function checkEachScheme(schemes: readonly AuthScheme[]): void {
  if (!Array.isArray(schemes)) throw new TypeError('auth takes "schemes" as a list: [basic({ accounts })].')
  for (const [index, scheme] of (schemes as readonly Partial<AuthScheme>[]).entries()) {
    const isScheme = typeof scheme?.authenticate === 'function' && typeof scheme.challenges === 'function'
    if (isScheme && isToken(scheme.name ?? '')) continue
    const call = typeof scheme === 'function' ? ` Call it: ${(scheme as { name: string }).name}(options).` : ''
    throw new TypeError(
      `auth: schemes[${index}] must be an AuthScheme (name, challenges, authenticate), not ${describeValue(scheme)}.${call}`,
    )
  }
  const names = schemes.map((scheme) => scheme.name.toLowerCase())
  const second = names.findIndex((name, index) => names.indexOf(name) < index)
  if (second !== -1) throw new TypeError(`auth has two schemes of the name ${schemes[second]!.name}: it takes one.`)
}

/** Decides whether a request needs credentials. */
export function compileRule(rule: RequireRule): (request: RequestView) => boolean {
  if (rule === 'all') return () => true
  if (rule === 'writes') return ({ method }) => !isSafeMethod(method)
  if (rule === 'none') return () => false
  return askRule(rule)
}

/** Anything but false needs credentials: a function that forgets to return must not open everything. */
export function askRule(rule: (request: RequestView) => boolean): (request: RequestView) => boolean {
  return (request) => atOnce(rule(request)) !== false
}
