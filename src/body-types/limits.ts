import { HttpError } from '../core/errors.ts'
import { SIZE, withDefault } from '../core/option-values.ts'
import { completeOptions, type OptionTable, resolveOptions } from '../core/options.ts'

/** Limits on content that is parsed. Streamed content has none. Beyond a limit: 413, where it says nothing else. */
export interface BodyLimits {
  /**
   * Bytes of a body that is parsed as a whole: JSON, forms, patches. Beyond this, and beyond the limits that say nothing else,
   * the response is 413. Default 8 MiB; may be `Infinity`.
   */
  readonly bodySize: number
  /** Nesting of JSON; 400 beyond. Default 100; more than 1000 counts as 1000. */
  readonly depth: number
  /**
   * Members and array items of JSON together, where it is parsed for a resource or a patch. A document that
   * is stored as it was sent may have more, but cannot be patched. Default 100,000; may be `Infinity`.
   */
  readonly jsonMembers: number
  /** Parameters of a urlencoded form. Default 1000. */
  readonly formFields: number
  /** Parts of a multipart body. Default 110. */
  readonly parts: number
  /** Parts without a file name. Default 100. */
  readonly fields: number
  /** Parts with a file name. Default 10. */
  readonly files: number
  /** Bytes of one part without a file name. Default 64 KiB. */
  readonly fieldSize: number
  /** Bytes of all parts without a file name together. Default 1 MiB. */
  readonly fieldsSize: number
  /** Bytes of one file, in a form or by PUT to the file of an item. Default `Infinity`. */
  readonly fileSize: number
  /** Header fields of one part. Default 32. */
  readonly partHeaders: number
  /** Characters of the name of a part or form field; 400 beyond. Default 200. */
  readonly nameLength: number
}

const KIB = 1024
const MIB = 1024 * KIB

const LIMITS = {
  bodySize: withDefault(SIZE, 8 * MIB),
  depth: withDefault(SIZE, 100),
  jsonMembers: withDefault(SIZE, 100_000),
  formFields: withDefault(SIZE, 1000),
  parts: withDefault(SIZE, 110),
  fields: withDefault(SIZE, 100),
  files: withDefault(SIZE, 10),
  fieldSize: withDefault(SIZE, 64 * KIB),
  fieldsSize: withDefault(SIZE, MIB),
  fileSize: withDefault(SIZE, Number.POSITIVE_INFINITY),
  partHeaders: withDefault(SIZE, 32),
  nameLength: withDefault(SIZE, 200),
} satisfies OptionTable<BodyLimits>

/**
 * Limits with every default filled in.
 * @param owner the public name that takes them, for the message
 * @throws TypeError for a limit that does not exist or is not a number of at least 0
 */
export function readLimits(owner: string, given: Partial<BodyLimits> | undefined): BodyLimits {
  return Object.freeze(
    completeOptions(resolveOptions<Partial<BodyLimits>, typeof LIMITS>(`${owner} limits`, given, LIMITS), LIMITS),
  )
}

export const DEFAULT_LIMITS: BodyLimits = readLimits('', undefined)

/**
 * 400 for content that does not follow the grammar of its media type.
 * @param detail a fixed sentence; never an excerpt of the content, which may hold secrets
 */
export function malformedBody(detail: string, cause?: unknown): HttpError {
  return new HttpError(400, 'ERR_MALFORMED_BODY', { detail, cause })
}

/** 415 for content of a kind that is not taken. */
export function unsupportedBody(detail: string): HttpError {
  return new HttpError(415, 'ERR_UNSUPPORTED_MEDIA_TYPE', { detail })
}

/** 413 for more of something than is allowed. */
export function tooMany(what: string, limit: number): HttpError {
  return new HttpError(413, 'ERR_TOO_LARGE', { detail: `The content has more than ${limit} ${what}.` })
}

/** 413 for content over a limit in bytes. @param what of it, where that is not the whole */
export function tooLarge(limit: number, what = 'The content'): HttpError {
  return new HttpError(413, 'ERR_TOO_LARGE', { detail: `${what} is larger than ${limit} bytes.` })
}
