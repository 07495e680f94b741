import type { JsonValue } from '../core/json.ts'
import { readAddress } from './address.ts'
import type { ResourceClient } from './client-types.ts'
import { type DownloadOptions, openContent, type UploadContent, type UploadOptions, uploadContent } from './content.ts'
import type { AnyResources, ClientDefinitions, Paths } from './definition-paths.ts'
import { type EditOptions, editDocument } from './edit.ts'
import type { Fetch } from './fetch.ts'
import { listItems } from './list.ts'
import { type ClientContext, createTagCache, type RequestOptions, readDocument, waitForEnd } from './read.ts'
import type { ResourceDocument } from './results.ts'
import { createTransport } from './transport.ts'
import { type CreateOptions, createItem, type Match, removeResource, replaceDocument } from './write.ts'

/**
 * Makes a client of a service. With the type of the service's definitions, paths and documents have types.
 * @typeParam Resources the type of the `resources` of the service; without it, every path takes any JSON
 * @param base the URL that the service is mounted at; in browsers possibly relative to the page
 * @throws TypeError for an option that does not exist or makes no sense
 * @example
 * import type { resources } from './server.ts'
 * const client = createResourceClient<typeof resources>('https://example.org/api')
 * await client.edit('/users/{id}', { id: 42 }, (user) => ({ ...user, role: 'admin' }))
 */
export function createResourceClient<Resources extends ClientDefinitions | AnyResources = AnyResources>(
  base: string | URL,
  options?: ResourceClientOptions<Resources>,
): ResourceClient<Resources> {
  return bindRequests(
    readContext(base, options as ResourceClientOptions | undefined),
  ) as unknown as ResourceClient<Resources>
}

function readContext(base: string | URL, options: ResourceClientOptions | undefined): ClientContext {
  const given = readClientOptions(options)
  const { fetch, prefer, maxAttempts = 10, timeout = 30_000, retries = 3, keyed = [], cacheSize = 100 } = given
  const page = (globalThis as { readonly location?: { readonly href: string } }).location?.href
  const { href, search, hash } = new URL(base, page)
  check(search + hash === '', 'takes a base without query and fragment')
  return {
    base: href.replace(/\/$/, ''),
    send: createTransport({ fetch, findHeaders: () => findHeaders(given), timeout, retries }),
    cache: createTagCache(cacheSize),
    prefer,
    maxAttempts,
    keyed,
  }
}

async function findHeaders({ token, headers }: ResourceClientOptions): Promise<FieldValues> {
  const value = typeof token === 'function' ? await token() : token
  const fields = typeof headers === 'function' ? await headers() : headers
  return { ...fields, ...(value === undefined ? {} : { Authorization: `Bearer ${value}` }) }
}

/** The requests as programs make them: a document or a path comes first. A mistake in them rejects, as a failure does. */
function bindRequests(context: ClientContext): object {
  const locate = (args: readonly unknown[]) => readAddress<ResourceDocument>(context.base, args)

  /** The state that a write is for, and the arguments after it. */
  function locateState(args: readonly unknown[], states: readonly unknown[]) {
    const { url, handle, rest } = locate(args)
    if (handle !== undefined) return { url, match: handle as Match, rest }
    if (states.includes(rest[0])) return { url, match: rest[0] as Match, rest: rest.slice(1) }
    throw new TypeError(`A write takes a document, or after its path one of '${states.join("', '")}'.`)
  }

  return {
    async read(...args: readonly unknown[]) {
      const { url, rest } = locate(args)
      return readDocument(context, url, rest[0] as RequestOptions)
    },
    list(...args: readonly unknown[]) {
      const { url, rest } = locate(args)
      return listItems(context, url, rest[0] as RequestOptions)
    },
    async create(...args: readonly unknown[]) {
      const { url, rest } = locate(args)
      return createItem(context, url, String(args[0]), rest[0], rest[1] as CreateOptions)
    },
    async replace(...args: readonly unknown[]) {
      const { url, match, rest } = locateState(args, ['any', 'absent'])
      return replaceDocument(context, url, match, rest[0], rest[1] as RequestOptions)
    },
    async edit(...args: readonly unknown[]) {
      const { url, handle, rest } = locate(args)
      return editDocument(context, url, handle, rest[0] as JsonValue, rest[1] as EditOptions)
    },
    async remove(...args: readonly unknown[]) {
      const { url, match, rest } = locateState(args, ['any'])
      return removeResource(context, url, match as 'any', rest[0] as RequestOptions)
    },
    async upload(...args: readonly unknown[]) {
      const { url, match, rest } = locateState(args, ['any', 'absent'])
      return uploadContent(context, url, match, rest[0] as UploadContent, rest[1] as UploadOptions)
    },
    async download(...args: readonly unknown[]) {
      const { url, rest } = locate(args)
      return openContent(context, url, rest[0] as DownloadOptions)
    },
    wait: (operation: { readonly url: string; readonly retryAfter: number | undefined }, options: RequestOptions) =>
      waitForEnd(context, operation, options),
  }
}

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

export interface ResourceClientOptions<Resources = AnyResources> {
  /** Default: the global `fetch`. */
  readonly fetch?: Fetch
  /** The token for `Authorization: Bearer`, or a function that is called before each attempt. Default: none. */
  readonly token?: string | (() => Later<string | undefined>)
  /** Header fields of every request, or a function that is called before each attempt. Default: none. */
  readonly headers?: FieldValues | (() => Later<FieldValues>)
  /** The patch format to prefer: see {@link createPatch}. Default `'merge'`. */
  readonly prefer?: 'merge' | 'json'
  /** How often an edit is tried while others change the document. Default 10. */
  readonly maxAttempts?: number
  /** Milliseconds for one attempt at a request, until its answer is complete; of a download, until each piece. Default
   * 30 000. */
  readonly timeout?: number
  /**
   * How often a request that may be repeated is sent again after 429, 502, 503, 504 or no answer, with growing random
   * pauses and after Retry-After. Default 3.
   */
  readonly retries?: number
  /**
   * Paths of collections whose definitions have the option `idempotency`: creations in them are repeated when no answer
   * comes. Types do not exist at run time, so they have to be named. Default: none.
   */
  readonly keyed?: readonly KeyedPaths<Resources>[]
  /** How many answers are kept with their tags, so that what has not changed is not sent again. Default 100; 0: none. */
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
 * A copy that inherits nothing, with shorter messages than `readOptions` has: each byte is loaded by browsers.
 * @throws TypeError for an option that does not exist or makes no sense
 */
export function readClientOptions(options: ResourceClientOptions = {}): ResourceClientOptions {
  check(kindOf(options) === 'object', 'takes as options: object')
  const given = { __proto__: null, ...options } as ResourceClientOptions
  for (const [name, value] of Object.entries(given)) {
    const text = OPTIONS[name]
    check(text, `has no option "${name}"`)
    check(value === undefined || fits(name, value, text), `takes as ${name}: ${text}`)
  }
  return given
}

function fits(name: string, value: unknown, text: string): boolean {
  if (typeof value === 'number') return value >= Number(text.at(-1))
  return name === 'prefer' ? value === 'merge' || value === 'json' : text.includes(kindOf(value))
}

/** The type of a value. An iterable is not an object: a copy of the properties of `Headers` is empty. */
function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return typeof value === 'object' && Symbol.iterator in value ? 'list' : typeof value
}

export function check(holds: unknown, text: string): asserts holds {
  if (!holds) throw new TypeError(`createResourceClient ${text}.`)
}
