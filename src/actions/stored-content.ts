import { atOnce } from '../core/maybe-promise.ts'
import { describeValue } from '../core/option-values.ts'
import { readProperty } from '../core/options.ts'
import { encodeText, type RangedBody } from '../core/reply.ts'
import { formatContentDisposition } from '../protocol/content-disposition.ts'
import { isInMediaRange, isJsonContentType, isJsonType, parseMediaType } from '../protocol/media-type.ts'
import { isLargeBody } from '../stores/rules.ts'
import type { ContentFields, StoredResource } from '../stores/types.ts'
import type { Route } from './route.ts'

/** Types that a browser shows without running anything in them. */
const PASSIVE = new Set([
  'text/plain',
  'text/csv',
  'text/markdown',
  'application/octet-stream',
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/avif',
  'image/bmp',
  'image/x-icon',
])

/**
 * Fields that keep stored content from acting as a page of this origin: a client that may PUT could otherwise run scripts there.
 * Passive types are shown in place; everything else is offered for saving, and sandboxed where it is opened anyway.
 * @param inline media ranges that the definition trusts
 */
function safetyFields(content: ContentFields, inline: readonly string[]): readonly string[] {
  const essence = parseMediaType(content.contentType)?.essence ?? ''
  // Whatever its name begins with, XML is a document that can hold scripts.
  const isMedia = /^(?:audio|video)\//.test(essence) && !essence.endsWith('+xml')
  const isPassive = PASSIVE.has(essence) || isJsonType(essence) || isMedia
  if (isPassive || inline.some((range) => isInMediaRange(range, essence))) {
    return content.filename === undefined
      ? []
      : ['Content-Disposition', formatContentDisposition('inline', content.filename)]
  }
  return [
    ...['Content-Disposition', formatContentDisposition('attachment', content.filename)],
    ...['Content-Security-Policy', "sandbox; default-src 'none'"],
    ...['Cross-Origin-Resource-Policy', 'same-origin'],
  ]
}

const TEXTS = ['contentType', 'contentEncoding', 'contentLanguage', 'filename'] as const

/**
 * Adds what describes the content beside its type.
 * @throws TypeError for what is not text, such as the null of a database: a client would decode by the coding "null"
 */
export function addContentFields(fields: string[], resource: StoredResource, route: Route): void {
  for (const name of TEXTS) {
    const value: unknown = resource[name]
    if (typeof value === 'string' || (value === undefined && name !== 'contentType')) continue
    throw new TypeError(`The store gave as ${name} of ${resource.path} ${describeValue(value)}, not text.`)
  }
  if (resource.contentEncoding !== undefined) fields.push('Content-Encoding', resource.contentEncoding)
  if (resource.contentLanguage !== undefined) fields.push('Content-Language', resource.contentLanguage)
  // A definition that takes JSON may have content that another one took before.
  if (route.isJson && isJsonContentType(resource.contentType)) return
  fields.push(...safetyFields(resource, route.allowInline))
}

/**
 * The content of a resource as a reply sends it.
 * @throws TypeError for what is not content, such as the null of a database, and for content of another size than the store
 *   says: what follows the answer on the connection would be taken for a part of it
 */
export function replyBodyOf(resource: StoredResource): RangedBody {
  const { body, size } = resource
  if (isLargeBody(body)) {
    if (typeof body?.open !== 'function') {
      throw new TypeError(
        `The store gave as body of ${resource.path} ${describeValue(body)}, not text, bytes or { open }.`,
      )
    }
    const openRange = (first: number, last: number, signal?: AbortSignal): AsyncIterable<Uint8Array> =>
      atOnce(body.open(first, last, signal === undefined ? undefined : { signal }))
    const readRange =
      body.read === undefined
        ? undefined
        : (first: number, last: number, buffer?: Uint8Array) => body.read!(first, last, { buffer })
    const sha256 = readProperty(resource, 'sha256')
    return { size, sha256, open: (signal) => openRange(0, size - 1, signal), openRange, readRange }
  }
  const content = typeof body === 'string' ? encodeText(body) : body
  if (content.length === size) return content
  throw new TypeError(`The store says that ${resource.path} has ${size} bytes; it has ${content.length}.`)
}

/**
 * When a state was written, as the store says.
 * @throws TypeError for text and for what is not finite: compared as NaN, If-Unmodified-Since would hold for every state
 */
export function lastModifiedOf({ path, lastModified }: StoredResource): number | undefined {
  if (lastModified === undefined || Number.isFinite(lastModified)) return lastModified
  throw new TypeError(
    `The store says that ${path} was modified at ${String(lastModified)}, not at a time in milliseconds.`,
  )
}

/**
 * The name that the store gives a state.
 * @throws TypeError for what is not text: all states would have the tag of one object, and a Date one for a whole second
 */
export function versionOf(state: Pick<StoredResource, 'version'>): string {
  if (typeof state.version === 'string') return state.version
  const kind = describeValue(state)
  throw new TypeError(
    `The store gave a version that is not text${kind === 'an object' ? '' : `: the state is ${kind}`}.`,
  )
}
