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

/** The JSON value of a stored resource; `undefined` when it is not JSON, too large, or malformed. */
export function parseStored(resource: StoredResource): JsonValue | undefined {
  if (!isJsonType(parseMediaType(resource.contentType)?.essence ?? '')) return undefined
  const text = textOf(resource)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}
