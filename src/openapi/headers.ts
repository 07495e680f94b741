import type { JsonObject, JsonValue } from '../core/json.ts'
import type { Components } from './components.ts'

const TEXT = { type: 'string' }
const DATE = { type: 'string', description: 'An HTTP-date.' }

interface HeaderFacts {
  /** The name of the field, where two descriptions are of one. */
  readonly name?: string
  readonly text: string
  readonly schema?: JsonObject
  /** Whether an answer that may carry it always does. */
  readonly isRequired?: boolean
}

export type HeaderName =
  | 'Accept'
  | 'Accept-Encoding'
  | 'Accept-Patch'
  | 'Accept-Post'
  | 'Accept-Query'
  | 'Accept-Ranges'
  | 'Content-Digest'
  | 'Content-Disposition'
  | 'Content-Language'
  | 'Content-Location'
  | 'Content-Range'
  | 'Deprecation'
  | 'ETag'
  | 'Idempotency-Replayed'
  | 'Last-Modified'
  | 'Link'
  | 'Location'
  | 'Location of GET'
  | 'Preference-Applied'
  | 'Repr-Digest'
  | 'Retry-After'
  | 'Sunset'
  | 'WWW-Authenticate'
  | 'Want-Content-Digest'
  | 'X-Total-Count'

/** Response headers by name, each with the words that describe it. */
const HEADERS: Readonly<Record<HeaderName, HeaderFacts>> = {
  Accept: { text: 'The media types that are accepted.' },
  'Accept-Encoding': { text: 'The content codings that are accepted.' },
  'Accept-Patch': { text: 'The patch formats that are accepted (RFC 5789).' },
  'Accept-Post': { text: 'The media types that POST accepts.' },
  'Accept-Query': { text: 'The media types that QUERY accepts (RFC 10008).' },
  'Accept-Ranges': { text: 'That ranges of bytes can be asked for.' },
  'Content-Digest': { text: 'A digest of the content, where Want-Content-Digest asks for it (RFC 9530).' },
  'Content-Disposition': { text: 'How to show the content, and its file name.' },
  'Content-Language': { text: 'The language of the content.' },
  'Content-Location': { text: 'Where this representation is.' },
  'Content-Range': { text: 'Which bytes these are, and of how many.' },
  Deprecation: { text: 'Since when the resource is deprecated (RFC 9745).', isRequired: true },
  ETag: { text: 'The entity tag of the representation, for If-Match and If-None-Match.' },
  'Idempotency-Replayed': { text: '`?1`: the answer to an earlier request with the same Idempotency-Key.' },
  'Last-Modified': { text: 'When the resource changed last.', schema: DATE },
  Link: {
    text: 'The next page, with rel="next"; where lists take queries, the first one with rel="first" (RFC 8288).',
  },
  Location: { text: 'Where the resource is.', isRequired: true },
  'Location of GET': {
    text: 'The target of the equivalent GET, where the query fits into one and has nothing that must not be there.',
    name: 'Location',
  },
  'Preference-Applied': { text: 'The preferences of Prefer that were applied (RFC 7240).' },
  'Repr-Digest': { text: 'A digest of the representation, where Want-Repr-Digest asks for it (RFC 9530).' },
  'Retry-After': { text: 'Seconds to wait before the next request.', schema: { type: 'integer', minimum: 0 } },
  Sunset: { text: 'When the resource goes away (RFC 8594).', schema: DATE, isRequired: true },
  'WWW-Authenticate': { text: 'How to authenticate.' },
  'Want-Content-Digest': { text: 'The digests that content may have (RFC 9530).' },
  'X-Total-Count': {
    text: 'How many items match, where `count=true` asks for it.',
    schema: { type: 'integer', minimum: 0 },
  },
}

/** All names. */
export const HEADER_NAMES: readonly string[] = [
  ...new Set(Object.entries(HEADERS).map(([key, { name = key }]) => name)),
]

/** Headers of an answer, as references in the order of their names. */
export function describeHeaders(names: readonly HeaderName[], components: Components): JsonObject {
  const sorted = [...new Set(names)].sort()
  const headers: [string, JsonValue][] = sorted.map((key) => {
    if (!Object.hasOwn(HEADERS, key)) throw new Error(`src/openapi/headers.ts does not describe the field ${key}.`)
    const { text, name = key, schema = TEXT, isRequired = false } = HEADERS[key]
    const header = { description: text, ...(isRequired && { required: true }), schema }
    return [name, components.add('headers', key.replaceAll(' ', '-'), header)]
  })
  return headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }
}
