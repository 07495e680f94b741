import { collectBytes } from '../body-types/collect-bytes.ts'
import { andThen, type MaybePromise } from '../core/handler.ts'
import type { JsonValue } from '../core/json.ts'
import { isJsonType, parseMediaType } from '../protocol/media-type.ts'
import { isLargeBody, type StoredResource } from '../stores/types.ts'
import type { ResourceState } from './route.ts'

/** The text of small content, decoded as UTF-8; `undefined` for content that can be read only in pieces. */
export function textOf(resource: StoredResource): string | undefined {
  const { body } = resource
  if (typeof body === 'string') return body
  return isLargeBody(body) ? undefined : Buffer.from(body.buffer, body.byteOffset, body.length).toString()
}

/**
 * Fetches content that the store gives in pieces, where it is JSON that may be parsed: which stores keep in one piece
 * must not decide what can be patched, or what a hook sees.
 * @param limit the most bytes to fetch
 */
export function fetchJson(resource: StoredResource, limit: number): MaybePromise<StoredResource> {
  const { body, size } = resource
  if (!isLargeBody(body) || size > limit || !isJson(resource)) return resource
  return collectBytes(body.open(0, size - 1), limit).then((body) => ({ ...resource, body }))
}

/** A stored state as hooks see it, with its content at hand where it is JSON of at most `limit` bytes. */
export function loadView(resource: StoredResource | undefined, limit: number): MaybePromise<ResourceState | undefined> {
  return resource === undefined ? undefined : andThen(fetchJson(resource, limit), viewState)
}

/** A stored state as hooks see it; its content is parsed when a hook first asks. */
export function viewState(resource: StoredResource): ResourceState {
  let parsed: { readonly value: JsonValue | undefined } | undefined
  return {
    path: resource.path,
    contentType: resource.contentType,
    lastModified: resource.lastModified,
    size: resource.size,
    get value() {
      parsed ??= { value: parseStored(resource) }
      return parsed.value
    },
  }
}

function isJson({ contentType }: StoredResource): boolean {
  return isJsonType(parseMediaType(contentType)?.essence ?? '')
}

/** The JSON value of a stored resource; `undefined` when it is not JSON, too large, or malformed. */
export function parseStored(resource: StoredResource): JsonValue | undefined {
  if (!isJson(resource)) return undefined
  const text = textOf(resource)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}
