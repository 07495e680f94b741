/** How a state comes to be, in every store: when a write may happen, and the version, the date and the resource that it makes. */

import { Buffer, isAscii } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import type { Content, ContentFields, Expectation, LargeBody, SmallBody, StoredResource } from './types.ts'

/** Whether a state is the expected one. @param version that of the resource; `undefined` where none is shown */
export function isExpected(version: string | undefined, expect: Expectation): boolean {
  if (expect === 'any') return true
  if (expect === 'absent') return version === undefined
  return version !== undefined && (expect === 'present' || version === expect.version)
}

/**
 * Makes versions. Random per process and counted within it: none comes back, not after a restart either, nor when a
 * backup of the database is restored. 36 random bits: for a version to come back, two processes would have to draw the
 * same ones and write one path at the same count. Short, because every answer carries it, and every state keeps it: an
 * entity tag of at most 12 characters is one piece of text for V8. A longer one is three, which the check of the field
 * has to join first, for 1,200 of the 136,000 instructions of a small PUT.
 */
export function createVersions(): () => string {
  // Drawn at the first use: Workers may not draw random bytes while a module is loaded.
  let incarnation: string | undefined
  let count = 0
  return () => {
    incarnation ??= randomBytes(6).toString('base64url').slice(0, 6)
    return incarnation + (++count).toString(36)
  }
}

/** When a state begins, and whether its date names it alone. */
export interface Change {
  readonly changed: number
  readonly strong: boolean
}

/**
 * The date of a resource never goes back, whatever the clocks of several processes say.
 * @param before that of the state before, as far as one is known
 */
export function decideChange(before: number | undefined, now: number): Change {
  if (before === undefined) return { changed: now, strong: true }
  return { changed: Math.max(before, now), strong: Math.floor(before / 1000) < Math.floor(now / 1000) }
}

/** Content without its bytes. */
export type Description = Omit<Content, 'body'>

/** Content as a store keeps it. */
export interface StoredContent {
  readonly size: number
  readonly body: SmallBody | LargeBody
  /** Of large content. */
  readonly sha256?: Uint8Array | undefined
}

export type MutableResource = { -readonly [Name in keyof StoredResource]: StoredResource[Name] }

/** The state that a write leaves. */
export function createResource(
  path: string,
  version: string,
  { contentType, contentEncoding, contentLanguage, filename, indexed }: ContentFields & Pick<StoredResource, 'indexed'>,
  { size, body, sha256 }: StoredContent,
  { changed, strong }: Change,
): MutableResource {
  const resource: MutableResource = {
    path,
    version,
    contentType,
    size,
    body,
    lastModified: changed,
    dateIsStrong: strong,
  }
  if (contentEncoding !== undefined) resource.contentEncoding = contentEncoding
  if (contentLanguage !== undefined) resource.contentLanguage = contentLanguage
  if (filename !== undefined) resource.filename = filename
  if (sha256 !== undefined) resource.sha256 = sha256
  if (indexed !== undefined) {
    resource.indexed = { index: { version: indexed.index.version }, values: { ...indexed.values } }
  }
  return resource
}

/** Bytes up to this length that are ASCII are kept as text: half the memory, and sent without another copy. */
const TEXT_LIMIT = 16 * 1024

/** Small ASCII content as text; `undefined` for what stays bytes. */
export function readAsText(bytes: Uint8Array): string | undefined {
  if (bytes.length > TEXT_LIMIT || !isAscii(bytes)) return undefined
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
}
