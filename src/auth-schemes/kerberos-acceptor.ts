import { type ValueRule, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import type { NegotiateAcceptor, Negotiation, NegotiationStep } from './negotiate.ts'

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

export interface KerberosAcceptorOptions {
  /** The service that tickets are for: `HTTP` for any of this machine's names, or `HTTP@host`. Default: `HTTP`. */
  readonly service?: string
}

/** An empty name would accept tickets for any service that has a key on this machine. */
const SERVICE: ValueRule = {
  accepts: (value) => typeof value === 'string' && /^[\w-]+(?:@[\w.-]+)?$/.test(value),
  text: 'HTTP, or HTTP@ and the name of a host',
}

const OPTIONS = { service: withDefault(SERVICE, 'HTTP') } satisfies OptionTable<KerberosAcceptorOptions>

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
  const { service } = resolveOptions('kerberosAcceptor', options, OPTIONS)
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
  // Not a literal: neither a bundler nor the compiler shall look for a package that most do without.
  const name: string = 'kerberos'
  const imported = (await import(name)) as KerberosModule & { readonly default?: KerberosModule }
  return imported.default ?? imported
}
