import { carrierOf } from '../core/connection.ts'
import type { Exchange } from '../core/exchange.ts'
import { isForwarded } from '../core/fields.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { FUNCTION, oneOf, required, textLike, withDefault, writtenAs } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import type { RequestView } from '../core/request-view.ts'
import { type AuthResult, type AuthScheme, oncePerRequest, parseBase64, toPrincipal, type Verdict } from './scheme.ts'

/** What one step of a negotiation came to; tokens are base64. */
export type NegotiationStep =
  /** `name` is who the client is; `token` proves to it who we are. */
  | { readonly outcome: 'complete'; readonly name: string; readonly token?: string }
  /** The client has to answer `token`. */
  | { readonly outcome: 'continue'; readonly token: string }
  /** `reason` is for the operator. */
  | { readonly outcome: 'rejected'; readonly reason: string }

/** The server's side of one negotiation (GSS-API, RFC 2743 §2.2.2). */
export interface Negotiation {
  /** Takes a token of the client, in base64. Throw an HttpError 503 when it cannot be judged. */
  step(token: string): MaybePromise<NegotiationStep>
}

/** Begins a negotiation; `kerberosAcceptor` makes one. */
export type NegotiateAcceptor = () => MaybePromise<Negotiation>

/** Options of `negotiate`. It needs `acceptor`. */
export interface NegotiateOptions {
  /** Verifies the tokens: `kerberosAcceptor()`, or a function of your own. */
  readonly acceptor: NegotiateAcceptor
  /** Makes the principal of a Kerberos name. Default: the name, `ada@EXAMPLE.TEST`, of any trusted realm. */
  readonly principal?: (name: string, request: RequestView) => MaybePromise<Verdict>
  /**
   * Whether requests from proxies are accepted. A negotiation authenticates a connection: where a proxy shares one among
   * its clients, it authenticates all of them. Use `'trusted'` only where each client has a connection of its own.
   * Default: `'refused'`.
   */
  readonly proxies?: 'refused' | 'trusted'
}

const OPTIONS = {
  acceptor: required(writtenAs(FUNCTION, 'a function, such as kerberosAcceptor()')),
  principal: FUNCTION,
  proxies: withDefault(oneOf('refused', 'trusted'), 'refused'),
} satisfies OptionTable<NegotiateOptions>

/** Kerberos takes one step, rarely two. */
const MAX_STEPS = 8
const NO_CHALLENGES: readonly string[] = []
const CHALLENGES: readonly string[] = ['Negotiate']
const MALFORMED: AuthResult = { outcome: 'rejected', reason: 'malformed Negotiate token' }
const NO_CONNECTION: AuthResult = { outcome: 'rejected', reason: 'Negotiate over HTTP/2 or a proxy' }
const NOT_KNOWN: AuthResult = { outcome: 'rejected', reason: 'no user by the name of the ticket' }

/**
 * The Negotiate scheme (RFC 4559): Kerberos tickets, by SPNEGO.
 *
 * Only the steps of an unfinished negotiation are kept with the connection. Every request proves who sends it, so one
 * that arrives on a connection where a user logged in still has no user. The token covers neither the request nor its
 * content: without https an intermediary can change both. Refused over HTTP/2, whose connections carry several
 * requests at once.
 * @throws TypeError without an acceptor, or for options that do not exist
 * @example
 * auth({ schemes: [negotiate({ acceptor: kerberosAcceptor() })] })
 */
export function negotiate(options: NegotiateOptions): AuthScheme {
  const { acceptor, principal, proxies } = resolveOptions('negotiate', options, OPTIONS)
  const unfinished = new WeakMap<object, { readonly negotiation: Negotiation; readonly steps: number }>()

  function isPossible(exchange: Exchange): boolean {
    if (exchange.req.httpVersionMajor !== 1) return false
    return proxies === 'trusted' || (!isForwarded(exchange) && exchange.field('via') === undefined)
  }

  function conclude(
    step: NegotiationStep,
    negotiation: Negotiation,
    steps: number,
    exchange: Exchange,
  ): MaybePromise<AuthResult> {
    if (step.outcome === 'rejected') return step
    if (step.outcome === 'complete') return accept(step.name, step.token, exchange)
    if (step.outcome !== 'continue' || typeof step.token !== 'string') {
      throw new TypeError(
        "The step of a negotiation has as outcome 'complete', 'continue' with a token, or 'rejected'.",
      )
    }
    if (steps >= MAX_STEPS) return MALFORMED
    unfinished.set(carrierOf(exchange), { negotiation, steps })
    return { outcome: 'rejected', reason: 'unfinished', challenges: [`Negotiate ${step.token}`] }
  }

  function accept(name: string, token: string | undefined, exchange: Exchange): MaybePromise<AuthResult> {
    if (typeof name !== 'string' || name === '') throw new TypeError('The acceptor names no user.')
    return andThen(principal === undefined ? true : principal(name, exchange), (verdict) => {
      const known = toPrincipal('negotiate', verdict, name)
      if (known === undefined) return NOT_KNOWN
      const mutual = token === undefined ? [] : ['WWW-Authenticate', `Negotiate ${token}`]
      // Otherwise clients take the next request on the connection for authenticated ([MS-N2HT] §2.2.5).
      return { outcome: 'accepted', principal: known, fields: [...mutual, 'Persistent-Auth', 'false'] }
    })
  }

  return {
    name: 'Negotiate',
    isAmbient: true,
    isPrivate: true,
    challenges: (exchange) => (isPossible(exchange) ? CHALLENGES : NO_CHALLENGES),
    authenticate: oncePerRequest((value, exchange) => {
      if (!isPossible(exchange)) return NO_CONNECTION
      if (value === '' || parseBase64(value) === undefined) return MALFORMED
      const connection = carrierOf(exchange)
      const begun = unfinished.get(connection)
      unfinished.delete(connection)
      const steps = (begun?.steps ?? 0) + 1
      return andThen(begun?.negotiation ?? acceptor(), (negotiation) =>
        andThen(negotiation.step(value), (step) => conclude(step, negotiation, steps, exchange)),
      )
    }),
  }
}

/** As much of the npm package `kerberos` as is used. */
interface KerberosModule {
  initializeServer(service: string): Promise<KerberosServer>
}

interface KerberosServer {
  readonly contextComplete: boolean
  readonly username: string | null
  readonly response: string | null
  step(token: string): Promise<unknown>
}

/** Options of `kerberosAcceptor`. */
export interface KerberosAcceptorOptions {
  /** The service that tickets are for: `HTTP` for any of this machine's names, or `HTTP@host`. Default: `HTTP`. */
  readonly service?: string
}

/** An empty name would accept tickets for any service that has a key on this machine. */
const SERVICE = textLike(/^[\w-]+(?:@[\w.-]+)?$/, 'HTTP, or HTTP@ and the name of a host')

const KERBEROS_OPTIONS = { service: withDefault(SERVICE, 'HTTP') } satisfies OptionTable<KerberosAcceptorOptions>

/** Anybody can have a ticket in this name (RFC 8062 §3). */
const ANONYMOUS = /^WELLKNOWN\/ANONYMOUS@/i

/**
 * Judges Kerberos tickets for `negotiate`, by the npm package `kerberos`, which is loaded with the first ticket. The key
 * is found in the keytab that `KRB5_KTNAME` names. A negotiation takes one step, as Kerberos does.
 * @throws TypeError for a service that is not named as described
 * @example
 * auth({ schemes: [negotiate({ acceptor: kerberosAcceptor({ service: 'HTTP@api.example' }) })] })
 */
export function kerberosAcceptor(options: KerberosAcceptorOptions = {}): NegotiateAcceptor {
  const { service } = resolveOptions('kerberosAcceptor', options, KERBEROS_OPTIONS)
  let loading: Promise<KerberosModule> | undefined

  function load(): Promise<KerberosModule> {
    loading ??= importKerberos().catch((cause: unknown) => {
      loading = undefined
      throw new Error('kerberosAcceptor needs the npm package "kerberos".', { cause })
    })
    return loading
  }

  // What fails here is the operator's: no package, no keytab, no key for the service. It is not an HttpError, so that it is
  // reported.
  return async () => createNegotiation(await (await load()).initializeServer(service))
}

function createNegotiation(server: KerberosServer): Negotiation {
  return {
    async step(token): Promise<NegotiationStep> {
      try {
        await server.step(token)
      } catch (error) {
        return { outcome: 'rejected', reason: `ticket refused: ${String((error as Error).message)}` }
      }
      const { contextComplete, username, response } = server
      // Other mechanisms that a system may have, NTLM for one, give names without a realm.
      const isName = typeof username === 'string' && /^.+@.+$/s.test(username) && !ANONYMOUS.test(username)
      if (!contextComplete || !isName) return { outcome: 'rejected', reason: 'ticket without a user in a realm' }
      return { outcome: 'complete', name: username, ...(response ? { token: response } : {}) }
    },
  }
}

async function importKerberos(): Promise<KerberosModule> {
  // Not a literal: neither a bundler nor the compiler shall look for a package that most do without. webpack would make every
  // such import fail.
  const name: string = 'kerberos'
  const imported = (await import(/* webpackIgnore: true */ name)) as KerberosModule & {
    readonly default?: KerberosModule
  }
  return imported.default ?? imported
}
