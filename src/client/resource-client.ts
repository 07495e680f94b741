import type { JsonValue } from '../core/json.ts'
import { readAddress } from './address.ts'
import type { ResourceClient } from './client-types.ts'
import { type CreateOptions, createItem } from './create.ts'
import type { AnyResources, ClientDefinitions, Paths } from './definition-paths.ts'
import { type DownloadOptions, openContent } from './download.ts'
import { type EditOptions, editDocument } from './edit.ts'
import type { Fetch } from './fetch.ts'
import { listItems } from './list.ts'
import { type ClientContext, type RequestOptions, readDocument } from './read.ts'
import type { ResourceDocument } from './results.ts'
import { createTagCache } from './tag-cache.ts'
import { createTransport } from './transport.ts'
import { type UploadContent, type UploadOptions, uploadContent } from './upload.ts'
import { waitForEnd } from './wait.ts'
import { type Match, removeResource, replaceDocument } from './write.ts'

type Later<Value> = Value | Promise<Value>
type FieldValues = Readonly<Record<string, string>>

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
  // A copy that inherits nothing, as `readOptions` makes it, without its messages: each byte is loaded by browsers.
  const given = Object.assign(Object.create(null), options) as ResourceClientOptions
  const { fetch, token, headers, prefer = 'merge', maxAttempts = 10, timeout = 30_000, ...others } = given
  const { retries = 3, keyed = [], cacheSize = 100, ...unknown } = others
  for (const name of Object.keys(unknown)) check(false, `has no option "${name}"`)
  check(fetch === undefined || typeof fetch === 'function', 'takes a fetch function')
  check(/^(?:undefined|string|function)$/.test(typeof token), 'takes a token as text or a function')
  check(/^(?:undefined|object|function)$/.test(typeof headers), 'takes headers as an object or a function')
  check(/^(?:merge|json)$/.test(prefer), "takes prefer: 'merge' or 'json'")
  check(maxAttempts >= 1, 'takes a maxAttempts of at least 1')
  check(timeout > 0, 'takes a positive timeout')
  check(retries >= 0 && cacheSize >= 0, 'takes retries and a cacheSize of at least 0')
  const { location } = globalThis as { readonly location?: { readonly href: string } }
  const { href, search, hash } = new URL(base, location?.href)
  check(search === '' && hash === '', 'takes a base without query and fragment')
  return {
    base: href.replace(/\/$/, ''),
    send: createTransport({ fetch, findHeaders: () => findHeaders(given), timeout, retries }),
    cache: createTagCache(cacheSize),
    prefer,
    maxAttempts,
    keyed,
  }
}

function check(holds: boolean, text: string): void {
  if (!holds) throw new TypeError(`createResourceClient ${text}.`)
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
