import type { JsonValue } from '../core/json.ts'
import { readAddress } from './address.ts'
import { check, type FieldValues, type ResourceClientOptions, readClientOptions } from './client-options.ts'
import type { ResourceClient } from './client-types.ts'
import { type CreateOptions, createItem } from './create.ts'
import type { AnyResources, ClientDefinitions } from './definition-paths.ts'
import { type DownloadOptions, openContent } from './download.ts'
import { type EditOptions, editDocument } from './edit.ts'
import { listItems } from './list.ts'
import { type ClientContext, type RequestOptions, readDocument } from './read.ts'
import type { ResourceDocument } from './results.ts'
import { createTagCache } from './tag-cache.ts'
import { createTransport } from './transport.ts'
import { type UploadContent, type UploadOptions, uploadContent } from './upload.ts'
import { waitForEnd } from './wait.ts'
import { type Match, removeResource, replaceDocument } from './write.ts'

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
