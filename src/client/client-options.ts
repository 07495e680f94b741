import type { AnyResources, Paths } from './definition-paths.ts'
import type { Fetch } from './fetch.ts'
import { UsageError } from './results.ts'

type Later<Value> = Value | Promise<Value>

export type FieldValues = Readonly<Record<string, string>>

/** The collections whose definitions have the option `idempotency`. */
type KeyedPaths<Resources> = Resources extends AnyResources
  ? string
  : {
      [Path in keyof Paths<Resources>]: Paths<Resources>[Path] extends {
        readonly kind: 'collection'
        readonly traits: { readonly idempotency: string }
      }
        ? Path
        : never
    }[keyof Paths<Resources>]

/** Options of `createResourceClient`. */
export interface ResourceClientOptions<Resources = AnyResources> {
  /** Sends the requests. Default: the global `fetch`. */
  readonly fetch?: Fetch
  /**
   * The token for `Authorization: Bearer`, or a function that is called before each attempt. `undefined` and `null`: none.
   * The `signal` of a request ends the wait for it; `timeout` begins after it. Default: none.
   */
  readonly token?: string | undefined | (() => Later<string | null | undefined>)
  /**
   * Header fields of every request, or a function that is called before each attempt, as `token` is. `token` and the client's
   * own fields go before fields that are spelled as theirs: write `Authorization` and not `authorization`, whose value
   * `fetch` would join with that of the token. Default: none.
   */
  readonly headers?: FieldValues | (() => Later<FieldValues>)
  /** The patch format to prefer: see {@link createPatch}. Default `'merge'`. */
  readonly prefer?: 'merge' | 'json'
  /** How often an edit is tried while others change the document. Default 10. */
  readonly maxAttempts?: number
  /**
   * Milliseconds for one attempt at a request, until its response is complete; of a download, until each piece. An upload has
   * no limit but one of its own. Default 30 000.
   */
  readonly timeout?: number
  /**
   * How often a request that may be repeated is sent again after 429, 502, 503, 504 or no response, with growing random
   * pauses and after Retry-After. Default 3.
   */
  readonly retries?: number
  /**
   * Paths of collections whose definitions have the option `idempotency`: creations in them are repeated when no
   * response comes. Types do not exist at run time, so they have to be named. Default: none.
   */
  readonly keyed?: readonly KeyedPaths<Resources>[]
  /** How many responses are kept with their tags, so that what has not changed is not sent again. Default 100; 0: none. */
  readonly cacheSize?: number
}

/** What each option takes: types, or values. A digit at the end is the least number. */
const OPTIONS: Readonly<Record<string, string>> = {
  // Otherwise a name of Object.prototype would be an option.
  __proto__: null as never,
  fetch: 'function',
  token: 'string, function',
  headers: 'object, function',
  prefer: 'merge, json',
  maxAttempts: 'number from 1',
  timeout: 'number from 1',
  retries: 'number from 0',
  keyed: 'list of paths',
  cacheSize: 'number from 0',
}

/**
 * A copy that inherits nothing, with shorter messages than `resolveOptions` has: each byte is loaded by browsers.
 * @throws TypeError for an option that does not exist or makes no sense
 */
export function readClientOptions(options: ResourceClientOptions = {}): ResourceClientOptions {
  check(kindOf(options) === 'object', 'takes as options: object')
  const given = { __proto__: null, ...options } as ResourceClientOptions
  // A polluted Object.prototype sets no options.
  for (const name in OPTIONS) {
    check(
      name in given || name in Object.prototype || !(name in options),
      `takes own, enumerable options, not "${name}"`,
    )
  }
  for (const [name, value] of Object.entries(given)) {
    const text = OPTIONS[name]
    check(text, `has no option "${name}"`)
    check(value === undefined || fits(name, value, text), `takes as ${name}: ${text}`)
  }
  return given
}

function fits(name: string, value: unknown, text: string): boolean | undefined {
  if (typeof value === 'number') return value >= Number(text.at(-1))
  // Of the iterables, lists alone have `every`.
  if (name === 'keyed') return (value as string[] | null)?.every?.((path) => path?.[0] === '/')
  return text.split(', ').includes(name === 'prefer' ? (value as string) : kindOf(value))
}

/** The type of a value. An iterable or a promise is not an object: a copy of the properties of `Headers` is empty. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return typeof value === 'object' && (Symbol.iterator in value || 'then' in value) ? 'list' : typeof value
}

export function check(holds: unknown, text: string): asserts holds {
  if (!holds) throw new UsageError(`createResourceClient ${text}.`)
}
