import { formatContentDisposition } from '../protocol/content-disposition.ts'
import { isInMediaRange, isJsonType, parseMediaType } from '../protocol/media-type.ts'
import type { ContentFields } from '../stores/types.ts'

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
export function safetyFields(content: ContentFields, inline: readonly string[]): readonly string[] {
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
