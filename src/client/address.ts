import { type JsonObject, readMember } from '../core/json.ts'
import type { ResourceHandle } from './results.ts'

/** Where a request goes: the URL, the state that was read where a document was given, and the other arguments. */
export interface Address<Handle extends ResourceHandle = ResourceHandle> {
  readonly url: string
  readonly handle: Handle | undefined
  readonly rest: readonly unknown[]
}

/**
 * Reads the arguments of a request: a document, or a path with the values of its parameters.
 * @throws TypeError for a path that is not one of the service, or a value that cannot stand in a path
 */
export function readAddress<Handle extends ResourceHandle>(
  base: string,
  [target, ...rest]: readonly unknown[],
): Address<Handle> {
  if (typeof target === 'object' && target !== null && 'url' in target) {
    const handle = target as Handle
    if (new URL(handle.url).origin === new URL(base).origin) return { url: handle.url, handle, rest }
    throw new TypeError(`The document is not one of ${base}: ${handle.url}.`)
  }
  if (typeof target !== 'string' || !target.startsWith('/')) {
    throw new TypeError('A request takes a document or a path that begins with a slash.')
  }
  const hasParameters = target.includes('{')
  const path = hasParameters ? fillPath(target, Object(rest[0])) : target
  const url = new URL(base + path).href
  // `..` would lead out of the service, `//` to other names of its resources.
  if (!url.startsWith(`${base}/`)) throw new TypeError(`The path leads out of ${base}: ${path}.`)
  return { url, handle: undefined, rest: hasParameters ? rest.slice(1) : rest }
}

function fillPath(pattern: string, values: JsonObject): string {
  const used = new Set<string>()
  return pattern.replaceAll(/\{(\w+)(\.\.\.)?\}/g, (_, name: string, isDeep?: string) => {
    const value = String(readMember(values, name) ?? '')
    const segments = isDeep === undefined ? [value] : value.split('/')
    if (used.has(name)) throw new TypeError(`The path ${pattern} has "${name}" twice.`)
    used.add(name)
    // A dot segment is resolved before it is sent, and an empty one names nothing.
    if (segments.some((segment) => /^\.{0,2}$/.test(segment))) {
      throw new TypeError(`The path ${pattern} cannot have ${JSON.stringify(value)} as "${name}".`)
    }
    return segments.map(encodeURIComponent).join('/')
  })
}

/**
 * The condition that holds only for the state that was read (RFC 9110 §13.1.1: a weak tag never matches If-Match).
 * @throws TypeError for a state without validators
 */
export function conditionOn(match: ResourceHandle | 'any' | 'absent'): Readonly<Record<string, string>> {
  if (match === 'any') return { 'If-Match': '*' }
  if (match === 'absent') return { 'If-None-Match': '*' }
  const { entityTag, lastModified } = match
  if (entityTag?.startsWith('"') === true) return { 'If-Match': entityTag }
  if (lastModified !== undefined) return { 'If-Unmodified-Since': lastModified }
  throw new TypeError('The document has neither a strong ETag nor Last-Modified.')
}
