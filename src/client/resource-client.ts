import { type JsonObject, type JsonValue, readMember } from '../core/json.ts'
import { check, type ResourceClientOptions, readClientOptions } from './client-options.ts'
import type { ResourceClient } from './client-types.ts'
import { openContent, type UploadContent, uploadContent } from './content.ts'
import type { AnyResources, ClientDefinitions } from './definition-paths.ts'
import { editDocument } from './edit.ts'
import { listItems } from './list.ts'
import { type ClientContext, createTagCache, readDocument, waitForEnd } from './read.ts'
import type { Operation, ResourceDocument } from './results.ts'
import { createTransport } from './transport.ts'
import { createItem, type Match, removeResource, replaceDocument } from './write.ts'

/**
 * Makes a client of a service. With the type of the service's definitions, paths and documents have types.
 * @typeParam Resources the type of the `resources` of the service; without it, every path takes any JSON
 * @param base the URL that the service is mounted at; in a page also relative to it, such as `/api`
 * @throws TypeError for a base that no request can go to, and for an option that does not exist or makes no sense
 * @example
 * import type { resources } from './server.ts'
 * const client = createResourceClient<typeof resources>('https://example.org/api')
 * await client.edit('/users/{id}', { id: 42 }, (user) => ({ ...user, role: 'admin' }))
 */
export function createResourceClient<Resources extends ClientDefinitions | AnyResources = AnyResources>(
  base: string | URL,
  options?: ResourceClientOptions<Resources>,
): ResourceClient<Resources> {
  const given = readClientOptions(options as ResourceClientOptions | undefined)
  const { prefer, maxAttempts = 10, keyed = [], cacheSize = 100 } = given
  const page = (globalThis as { readonly location?: { readonly href: string } }).location?.href
  const url = URL.canParse(base as string, page) ? new URL(base, page) : null
  // `fetch` refuses user information, and puts it into its message.
  check(url?.host && !/[?#]|^\w+:..[^/]*@/.test(url as never), 'takes as base: URL, no query or user')
  const requests = bindRequests({
    base: url.href.replace(/\/$/, ''),
    send: createTransport(given),
    cache: createTagCache(cacheSize),
    prefer,
    maxAttempts,
    keyed,
  })
  return requests as unknown as ResourceClient<Resources>
}

type Arguments = readonly unknown[]

/** The requests as programs make them: a document or a path comes first. A mistake in them rejects, as a failure does. */
function bindRequests(context: ClientContext): object {
  /**
   * What the arguments of a request say.
   * @param contents how many arguments come before the options
   * @param states words that say for which state a write is, behind a path
   */
  function locate(args: Arguments, contents: number, states?: Arguments) {
    const { url, handle, rest } = readAddress(context.base, args)
    const match = handle ?? (states && rest.shift())
    if (states && !handle && !states.includes(match)) {
      throw new TypeError(`A write takes a document, or after its path one of '${states.join("', '")}'.`)
    }
    const options = rest[contents] as object | undefined
    return { call: { ...context, url, options }, handle, match: match as Match, content: rest[0] }
  }

  return {
    async read(...args: Arguments) {
      return readDocument(locate(args, 0).call)
    },
    list: (...args: Arguments) => listItems(locate(args, 0).call),
    async create(...args: Arguments) {
      const { call, content } = locate(args, 1)
      return createItem(call, String(args[0]), content)
    },
    async replace(...args: Arguments) {
      const { call, match, content } = locate(args, 1, ['any', 'absent'])
      return replaceDocument(call, match, content)
    },
    async edit(...args: Arguments) {
      const { call, handle, content } = locate(args, 1)
      return editDocument(call, handle, content as JsonValue)
    },
    async remove(...args: Arguments) {
      const { call, match } = locate(args, 0, ['any'])
      return removeResource(call, match)
    },
    async upload(...args: Arguments) {
      const { call, match, content } = locate(args, 1, ['any', 'absent'])
      return uploadContent(call, match, content as UploadContent)
    },
    async download(...args: Arguments) {
      return openContent(locate(args, 0).call)
    },
    async wait(...args: Arguments) {
      const { call, handle } = locate(args, 0)
      return waitForEnd(call, handle?.retryAfter)
    },
  }
}

interface Address {
  readonly url: string
  readonly handle?: ResourceDocument & Partial<Operation>
  readonly rest: unknown[]
}

/**
 * Reads where a request goes: a document, or a path with the values of its parameters.
 * @returns the URL, the document where one was given, and the arguments that follow
 * @throws TypeError for a path that is not one of the service, or a value that cannot stand in a path
 */
function readAddress(base: string, [target, ...rest]: Arguments): Address {
  const handle = target as Address['handle']
  if (handle?.url) {
    if (new URL(handle.url).origin === new URL(base).origin) return { url: handle.url, handle, rest }
    throw new TypeError(`The document is not one of ${base}: ${handle.url}.`)
  }
  if (typeof target !== 'string' || target[0] !== '/') {
    throw new TypeError('A request takes a document or a path that begins with a slash.')
  }
  const path = target.includes('{') ? fillPath(target, Object(rest.shift())) : target
  const url = new URL(base + path).href
  // `..` would lead out of the service, `//` to other names of its resources.
  if (!url.startsWith(`${base}/`)) throw new TypeError(`The path leads out of ${base}: ${path}.`)
  return { url, rest }
}

function fillPath(pattern: string, values: JsonObject): string {
  const used = new Set<string>()
  return pattern.replaceAll(/\{(\w+)(\.\.\.)?\}/g, (_, name: string, isDeep?: string) => {
    const value = String(readMember(values, name) ?? '')
    const segments = isDeep ? value.split('/') : [value]
    if (used.has(name)) throw new TypeError(`The path ${pattern} has "${name}" twice.`)
    used.add(name)
    // A dot segment is resolved before it is sent, and an empty one names nothing.
    if (segments.some((segment) => /^\.{0,2}$/.test(segment))) {
      throw new TypeError(`The path ${pattern} cannot have ${JSON.stringify(value)} as "${name}".`)
    }
    return segments.map(encodeURIComponent).join('/')
  })
}
