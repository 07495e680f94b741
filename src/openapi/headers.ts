import type { JsonObject, JsonValue } from '../core/json.ts'
import type { Components } from './components.ts'
import { DATE, TEXT } from './shared-schemas.ts'

/** What each response header says; `Location of GET` is Location in the answer to QUERY. */
const TEXTS = {
  Accept: 'The media types that are accepted.',
  'Accept-Encoding': 'The content codings that are accepted.',
  'Accept-Patch': 'The patch formats that are accepted (RFC 5789).',
  'Accept-Post': 'The media types that POST accepts.',
  'Accept-Query': 'The media types that QUERY accepts (RFC 10008).',
  'Accept-Ranges': 'That ranges of bytes can be asked for.',
  'Content-Digest': 'A digest of the content, where Want-Content-Digest asks for it (RFC 9530).',
  'Content-Disposition': 'How to show the content, and its file name.',
  'Content-Language': 'The language of the content.',
  'Content-Location': 'Where this representation is.',
  'Content-Range': 'Which bytes these are, and of how many.',
  Deprecation: 'Since when the resource is deprecated (RFC 9745).',
  ETag: 'The entity tag of the representation, for If-Match and If-None-Match.',
  'Idempotency-Replayed': '`?1`: the answer to an earlier request with the same Idempotency-Key.',
  'Last-Modified': 'When the resource changed last.',
  Link: 'The next page, with rel="next"; where lists take queries, the first one with rel="first" (RFC 8288).',
  Location: 'Where the resource is.',
  'Location of GET':
    'The target of the equivalent GET, where the query fits into one and has nothing that must not be there.',
  'Preference-Applied': 'The preferences of Prefer that were applied (RFC 7240).',
  'Repr-Digest': 'A digest of the representation, where Want-Repr-Digest asks for it (RFC 9530).',
  'Retry-After': 'Seconds to wait before the next request.',
  Sunset: 'When the resource goes away (RFC 8594).',
  'WWW-Authenticate': 'How to authenticate.',
  'Want-Content-Digest': 'The digests that content may have (RFC 9530).',
  'X-Total-Count': 'How many items match, where `count=true` asks for it.',
} as const

export type HeaderName = keyof typeof TEXTS

const NUMBER = { type: 'integer', minimum: 0 }

/** Those that are not text of any form. */
const SCHEMAS: Partial<Readonly<Record<HeaderName, JsonObject>>> = {
  'Last-Modified': DATE,
  'Retry-After': NUMBER,
  Sunset: DATE,
  'X-Total-Count': NUMBER,
}
/** Those that every answer has that may have them. */
const REQUIRED: readonly HeaderName[] = ['Deprecation', 'Location', 'Sunset']
/** Answers that a request may get whose target names no resource: they have no header of the resource. */
const WITHOUT_RESOURCE: readonly string[] = ['400', '404', 'default']

const fieldOf = (name: string): string => (name === 'Location of GET' ? 'Location' : name)

export const HEADER_NAMES: readonly string[] = [...new Set(Object.keys(TEXTS).map(fieldOf))]

/** Headers of the answer of a status, as references in the order of their names. */
export function describeHeaders(names: readonly HeaderName[], status: string, components: Components): JsonObject {
  const headers: [string, JsonValue][] = [...new Set(names)].sort().map((name) => {
    if (!Object.hasOwn(TEXTS, name)) throw new Error(`src/openapi/headers.ts does not describe the field ${name}.`)
    const isRequired = REQUIRED.includes(name) && !WITHOUT_RESOURCE.includes(status)
    const header = {
      description: TEXTS[name],
      ...(isRequired && { required: true }),
      schema: SCHEMAS[name] ?? TEXT,
    }
    const key = `${name.replaceAll(' ', '-')}${isRequired ? '-required' : ''}`
    return [fieldOf(name), components.add('headers', key, header)]
  })
  return headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }
}
