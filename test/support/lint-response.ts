import type { Answer } from './answer.ts'

const IMF_DATE =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d GMT$/
const ENTITY_TAG = /^(?:W\/)?"[\x21\x23-\x7e]*"$/
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

const CACHE_DIRECTIVES =
  /^(?:(?:no-store|no-cache|private|public|must-revalidate|no-transform|immutable|(?:max-age|s-maxage)=\d+)(?:, (?!$)|$))+$/
const QUOTED = String.raw`"(?:[\t !#-[\]-~]|\\[\t -~])*"`
/** One challenge a line (RFC 9110 §11.6.1). */
const CHALLENGE = new RegExp(`^[A-Za-z]+(?: [\\w-]+=(?:${QUOTED}|[\\w-]+)(?:, [\\w-]+=(?:${QUOTED}|[\\w-]+))*)?$`)
const LINK = new RegExp(`^<[^<>\\s]*>; rel=(?:${QUOTED}|[\\w-]+)(?:, <[^<>\\s]*>; rel=(?:${QUOTED}|[\\w-]+))*$`)
const MEDIA_TYPE = new RegExp(`^[\\w!#$&^.+-]+/[\\w!#$&^.+-]+(?:; ?[\\w-]+=(?:${QUOTED}|[\\w!#$%&'*+.^\`|~-]+))*$`)
/** What describes content: not on a 304, which has none and whose ETag says it all (RFC 9110 §15.4.5). */
const METADATA = ['content-type', 'content-encoding', 'content-language', 'content-disposition', 'accept-ranges']

/** Fields that an answer of the service may have, and no others (invariant I8). */
const KNOWN = new Set([
  ...['date', 'connection', 'keep-alive', 'content-length', 'transfer-encoding', 'upgrade'],
  ...['content-type', 'content-encoding', 'content-language', 'content-location', 'content-range', 'location'],
  ...['etag', 'last-modified', 'cache-control', 'vary', 'accept-ranges', 'link', 'retry-after'],
  ...['deprecation', 'sunset'],
  ...[
    'allow',
    'accept',
    'accept-patch',
    'accept-post',
    'accept-query',
    'x-total-count',
    'accept-encoding',
    'www-authenticate',
    'preference-applied',
    'idempotency-replayed',
  ],
  ...['authentication-info', 'content-disposition', 'content-security-policy', 'cross-origin-resource-policy'],
  ...['x-content-type-options', 'access-control-allow-origin', 'access-control-allow-methods'],
  ...['access-control-allow-headers', 'access-control-allow-credentials', 'access-control-expose-headers'],
  ...['access-control-max-age', 'content-digest', 'repr-digest', 'want-content-digest'],
])

/**
 * Looks for faults that no answer may have, whatever it answers: what a linter of HTTP messages would report.
 * @param method of the request
 * @returns a sentence for each fault
 */
export function lintResponse(method: string, { status, fields, body }: Answer): readonly string[] {
  const faults: string[] = []
  const all = (name: string): string[] => fields.filter(([key]) => key === name).map(([, value]) => value)
  const one = (name: string): string | undefined => all(name)[0]
  const fault = (isFault: boolean, text: string): void => {
    if (isFault) faults.push(`${status}: ${text}`)
  }

  for (const [name, value] of fields) {
    fault(!KNOWN.has(name), `${name} is not among the fields of responses in test/support/lint-response.ts`)
    // A challenge of each scheme has a line of its own; nothing else is ever repeated.
    fault(name !== 'www-authenticate' && all(name).length > 1, `${name} is repeated (RFC 9110 §5.3)`)
    fault(/[^\x20-\x7e]/.test(value) || value !== value.trim(), `${name} has a value that is not plain text`)
    fault(value === '' && name !== 'allow', `${name} is empty`)
  }

  // RFC 9110 §6.6.1, §5.6.7
  for (const name of ['date', 'last-modified']) {
    const value = one(name)
    fault(value !== undefined && !IMF_DATE.test(value), `${name} is not an IMF-fixdate: ${value}`)
  }
  fault(one('date') === undefined, 'Date is missing')
  fault(Date.parse(one('last-modified') ?? '') > Date.parse(one('date') ?? ''), 'Last-Modified is later than Date')
  fault(one('etag') !== undefined && !ENTITY_TAG.test(one('etag')!), `ETag is malformed: ${one('etag')}`)

  fault(one('x-content-type-options') !== 'nosniff', 'X-Content-Type-Options is missing (I8)')
  fault(one('cache-control') === undefined, 'Cache-Control is missing (I8)')
  fault(status >= 400 && one('cache-control') !== 'no-store', 'an error may be stored (RFC 9110 §15.1)')
  fault(one('server') !== undefined || one('age') !== undefined, 'Server or Age is sent')

  // RFC 9110 §8.6, §6.4.1
  const length = one('content-length')
  const hasNoContent = status === 204 || status === 304
  fault(hasNoContent && length !== undefined, 'Content-Length on an answer that has no content')
  fault(hasNoContent && one('content-type') !== undefined, 'Content-Type on an answer that has no content')
  fault(!hasNoContent && !/^\d+$/.test(length ?? ''), 'Content-Length is missing')
  fault(one('transfer-encoding') !== undefined, 'Transfer-Encoding beside a known length')
  if (method !== 'HEAD' && !hasNoContent) {
    fault(Number(length) !== body.length, `Content-Length ${length} for ${body.length} bytes`)
    fault(body.length > 0 && one('content-type') === undefined, 'content without Content-Type (RFC 9110 §8.3)')
    fault(status === 412 && body.length > 0, '412 with content (interface, PATCH 4)')
  }
  fault(one('content-type')?.includes(',') === true, 'Content-Type is a list')

  if (status >= 400 && body.length > 0 && one('content-type') === 'application/problem+json') {
    const problem = JSON.parse(body.toString()) as Record<string, unknown>
    fault(problem['status'] !== status, `the problem says ${problem['status']} (RFC 9457 §3.1.2)`)
    fault(
      typeof problem['type'] !== 'string' || typeof problem['title'] !== 'string',
      'a problem without type and title',
    )
    fault(/node_modules|\.ts:|\n {4}at /.test(body.toString()), 'a problem that shows our insides (I6)')
  }

  // Fields that a status must have, and fields that belong to few (RFC 9110 §15).
  const requires: readonly (readonly [number, string])[] = [
    ...([
      [401, 'www-authenticate'],
      [405, 'allow'],
      [206, 'content-range'],
      [416, 'content-range'],
    ] as const),
    ...([
      [426, 'upgrade'],
      [202, 'location'],
      [201, 'location'],
    ] as const),
  ]
  for (const [code, name] of requires) {
    const isMultipart = one('content-type')?.startsWith('multipart/byteranges') === true
    fault(status === code && one(name) === undefined && !isMultipart, `${name} is missing`)
  }
  fault(one('content-range') !== undefined && status !== 206 && status !== 416, 'Content-Range without a range')
  fault(status >= 400 && (one('etag') ?? one('last-modified')) !== undefined, 'an error with validators')
  fault(status >= 400 && one('accept-ranges') !== undefined, 'an error with Accept-Ranges')
  const location = one('location')
  // Only QUERY leads to a target with a query: that of the equivalent GET (RFC 10008).
  const path = method === 'QUERY' ? location?.replace('?', '') : location
  fault(path !== undefined && !/^\/[\w!$&'()*+,;=:@%./~-]*$/.test(path), `Location is not a path: ${location}`)
  fault(location?.startsWith('//') === true, 'Location names another host')

  // RFC 9110 §5.6.1, §12.5.5
  lintCaching(one('cache-control') ?? '', status, fault)
  lintRange(status, one, body, fault)
  for (const value of all('www-authenticate')) fault(!CHALLENGE.test(value), `a malformed challenge: ${value}`)
  for (const value of all('link')) fault(!LINK.test(value), `Link is malformed: ${value}`)
  for (const name of ['content-type', 'accept', 'accept-patch', 'accept-post'])
    for (const type of one(name)?.split(', ') ?? []) {
      fault(!MEDIA_TYPE.test(type) && type !== '*/*', `${name} names no media type: ${type}`)
      // RFC 8259 §11: the type has no such parameter; JSON is UTF-8.
      fault(/json *;.*charset/i.test(type), `${name} gives JSON a charset`)
    }
  if (status === 304) {
    for (const name of METADATA) fault(one(name) !== undefined, `${name} on a 304`)
    fault(one('etag') !== undefined && one('last-modified') !== undefined, 'Last-Modified beside ETag on a 304')
  }
  fault(
    one('retry-after') !== undefined && !/^\d+$/.test(one('retry-after')!),
    'Retry-After is not a number of seconds',
  )
  fault(one('accept-ranges') !== undefined && one('accept-ranges') !== 'bytes', 'Accept-Ranges names an unknown unit')
  fault(one('accept-encoding') !== undefined && status !== 415, 'Accept-Encoding on an answer that refused no coding')
  fault(one('accept') !== undefined && status !== 415, 'Accept on an answer that refused no type (RFC 9110 §12.5.1)')
  const granted = one('access-control-allow-methods')
  fault(granted !== undefined && method !== 'OPTIONS', 'Access-Control-Allow-Methods outside a preflight (row X13)')
  fault(granted !== undefined && one('access-control-expose-headers') !== undefined, 'a preflight exposes fields')
  fault(
    one('access-control-allow-origin') === undefined &&
      fields.some(([name]) => name.startsWith('access-control-') && name !== 'access-control-max-age'),
    'CORS fields without Access-Control-Allow-Origin',
  )
  // Either can be met by no client that reads the other way.
  fault(one('connection') === 'close' && one('keep-alive') !== undefined, 'Keep-Alive beside "Connection: close"')

  const names = one('vary')?.split(', ') ?? []
  fault(!names.every((name) => TOKEN.test(name)), `Vary is malformed: ${names.join(', ')}`)
  fault(new Set(names.map((name) => name.toLowerCase())).size !== names.length, 'Vary repeats a name')
  fault(
    one('access-control-allow-origin')?.startsWith('http') === true && !names.includes('Origin'),
    'Vary lacks Origin',
  )
  const allow = one('allow')?.split(', ') ?? []
  fault(new Set(allow).size !== allow.length, 'Allow repeats a method')
  fault(allow.includes('GET') !== allow.includes('HEAD'), 'Allow has one of GET and HEAD (RFC 9110 §9.1)')
  return faults
}

type Fault = (isFault: boolean, text: string) => void

/** RFC 9111 §5.2: directives that are well-formed, given once, and do not contradict each other. */
function lintCaching(cacheControl: string, status: number, fault: Fault): void {
  fault(!CACHE_DIRECTIVES.test(cacheControl), `Cache-Control is malformed: ${cacheControl}`)
  const names = cacheControl.split(', ').map((directive) => directive.split('=')[0])
  const has = (name: string): boolean => names.includes(name)
  fault(new Set(names).size !== names.length, 'Cache-Control repeats a directive')
  const isAlone = names.every((name) => name === 'no-store' || name === 'no-transform')
  fault(has('no-store') && !isAlone, 'Cache-Control says no-store and more')
  fault(status === 206 && !has('no-transform'), 'a part may be transformed under the tag of the whole')
  fault(has('private') && (has('public') || has('s-maxage')), 'Cache-Control says private and public')
  fault(has('no-cache') && (has('max-age') || has('immutable')), 'Cache-Control says no-cache and for how long')
}

/** RFC 9110 §14.4, §15.3.7, §15.5.17: what is said of ranges is true. */
function lintRange(status: number, one: (name: string) => string | undefined, body: Buffer, fault: Fault): void {
  const range = one('content-range')
  if (status === 416) fault(!/^bytes \*\/\d+$/.test(range ?? ''), `416 with Content-Range: ${range}`)
  if (status !== 206) return
  const boundary = /^multipart\/byteranges; boundary=([\w-]{1,70})$/.exec(one('content-type') ?? '')?.[1]
  const length = Number(one('content-length'))
  if (boundary === undefined) {
    const [, first, last, size] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(range ?? '')?.map(Number) ?? []
    const isTrue = first !== undefined && first <= last! && last! < size! && last! - first + 1 === length
    fault(!isTrue, `Content-Range: ${range} for ${length} bytes`)
  } else {
    fault(range !== undefined, 'Content-Range on multipart/byteranges (RFC 9110 §15.3.7.2)')
    const parts = body.toString('latin1').split(`\r\n--${boundary}`)
    fault(parts.length < 4 || parts[0] !== '' || parts.at(-1) !== '--\r\n', 'multipart/byteranges is malformed')
  }
}
