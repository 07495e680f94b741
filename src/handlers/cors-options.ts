import type { MaybePromise } from '../core/maybe-promise.ts'
import {
  BOOLEAN,
  either,
  FUNCTION,
  listOf,
  numberThat,
  oneOf,
  required,
  TEXT,
  type ValueRule,
  withDefault,
  writtenAs,
} from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import {
  DEFAULT_ALLOWED_HEADERS,
  DEFAULT_EXPOSED_HEADERS,
  isOrigin,
  matchesOriginPattern,
  type OriginPattern,
  parseOriginPattern,
} from '../protocol/cors.ts'
import { isToken } from '../protocol/field-value.ts'

/**
 * Who may read responses: every origin (`*`), one origin or several as browsers write them (`https://app.example`),
 * patterns (`https://*.app.example` for every origin below), `null` for sandboxed documents, or a function that is
 * asked about each origin other than `null`.
 */
export type Origins = string | readonly string[] | ((origin: string) => MaybePromise<boolean>)

/** Which other origins may use responses in a browser: options of `preflight`, and of a service as `cors`. */
export interface CorsOptions {
  /** Which origins may read responses; see {@link Origins}. */
  readonly origins: Origins
  /** Whether browsers may send cookies and remembered passwords along, which `*` forbids. Default: false. */
  readonly credentials?: boolean
  /**
   * Request fields that scripts may set, in place of the default; `*` for all. Default: Authorization, Content-Type, Accept,
   * Accept-Language, Prefer, Idempotency-Key, Content-Disposition, and those of conditions, ranges and digests.
   */
  readonly allowedHeaders?: '*' | readonly string[]
  /** Response fields that scripts may read, in place of the default; `*` for all. Default: ETag, Location and others that clients need. */
  readonly exposedHeaders?: '*' | readonly string[]
  /** Seconds for which browsers may keep the response to a preflight. Default: 86400. */
  readonly maxAge?: number
  /** Whether requests from other origins are refused with 403, instead of answered without CORS fields. Default: false. */
  readonly rejectOrigin?: boolean
  /** Whether allowed origins of public networks may send requests to a server in a private network. Default: false. */
  readonly privateNetwork?: boolean
  /** Whether scripts of allowed origins may read the timing of requests (Timing-Allow-Origin). Default: false. */
  readonly timing?: boolean
  /** Who may embed responses (Cross-Origin-Resource-Policy). Default: no such field. */
  readonly resourcePolicy?: 'same-origin' | 'same-site' | 'cross-origin'
}

/** The options of a policy, checked and as they are sent. */
interface CorsPolicy extends Required<Pick<CorsOptions, 'credentials' | 'rejectOrigin' | 'privateNetwork' | 'timing'>> {
  readonly isAnyOrigin: boolean
  readonly allowsNull: boolean
  /** Asked about origins other than `null`. */
  readonly mayAllow: (origin: string) => MaybePromise<boolean>
  /** Whether an origin that was allowed once always is. */
  readonly isFixed: boolean
  readonly allowed: string
  readonly exposed: string
  readonly maxAge: string
  /** Fields of every reply, whatever its origin. */
  readonly always: readonly string[]
}

const FIELD_NAMES: ValueRule = {
  accepts: (value) =>
    value === '*' || (Array.isArray(value) && value.every((name) => typeof name === 'string' && isToken(name))),
  text: "'*', or a list of field names",
}
const ORIGINS = writtenAs(either(TEXT, listOf(TEXT), FUNCTION), "'*', an origin, a list of origins, or a function")
const SECONDS = numberThat((value) => Number.isSafeInteger(value) && value >= 0, 'a whole number of seconds, 0 or more')

const OPTIONS = {
  origins: required(ORIGINS),
  credentials: withDefault(BOOLEAN, false),
  // The defaults follow below: a service with further fields has longer ones.
  allowedHeaders: FIELD_NAMES,
  exposedHeaders: FIELD_NAMES,
  maxAge: withDefault(SECONDS, 86_400),
  rejectOrigin: withDefault(BOOLEAN, false),
  privateNetwork: withDefault(BOOLEAN, false),
  timing: withDefault(BOOLEAN, false),
  resourcePolicy: oneOf('same-origin', 'same-site', 'cross-origin'),
} satisfies OptionTable<CorsOptions>

/** For functions that take these options among others. */
export const CORS_OPTIONS: OptionTable<CorsOptions> = OPTIONS

/** @throws TypeError for options that contradict each other, do not exist, or could never have an effect */
export function resolveCorsOptions(options: CorsOptions): CorsPolicy {
  const read = resolveOptions('cors', options, OPTIONS)
  const { origins, credentials, rejectOrigin, privateNetwork, timing, resourcePolicy } = read
  const list = typeof origins === 'string' ? [origins] : origins
  const isAnyOrigin = Array.isArray(list) && list.includes('*')
  // With credentials `*` is an ordinary name: browsers would refuse the answer, and sending the origin instead would
  // hand every site the user's session.
  if (credentials && [list, [read.allowedHeaders], [read.exposedHeaders]].some(hasAsterisk)) {
    throw new TypeError('"*" cannot be combined with "credentials": name the origins and fields.')
  }
  if (isAnyOrigin && (list as readonly string[]).length > 1) {
    throw new TypeError('"origins" has "*" beside other origins, which it already allows.')
  }
  return {
    isAnyOrigin,
    allowsNull: Array.isArray(list) && list.includes('null'),
    mayAllow: typeof list === 'function' ? list : createOriginList(isAnyOrigin ? [] : list),
    isFixed: typeof list !== 'function',
    ...{ credentials, rejectOrigin, privateNetwork, timing },
    // An asterisk does not cover Authorization (Fetch, "CORS non-wildcard request-header name").
    allowed: formatNames(read.allowedHeaders ?? DEFAULT_ALLOWED_HEADERS, '*, Authorization'),
    exposed: formatNames(read.exposedHeaders ?? DEFAULT_EXPOSED_HEADERS, '*'),
    maxAge: String(read.maxAge),
    always: resourcePolicy === undefined ? [] : ['Cross-Origin-Resource-Policy', resourcePolicy],
  }
}

function hasAsterisk(list: unknown): boolean {
  return Array.isArray(list) && list.flat().includes('*')
}

function createOriginList(list: readonly string[]): (origin: string) => boolean {
  const exact = new Set<string>()
  const patterns: OriginPattern[] = []
  for (const text of list) {
    const pattern = parseOriginPattern(text)
    if (pattern !== undefined) patterns.push(pattern)
    else if (text === 'null' || isOrigin(text)) exact.add(text)
    else {
      throw new TypeError(
        `"origins" has "${text}", which no browser sends: write scheme, host and port in lower case, without a path ` +
          'and without the default port, as in "https://app.example" or "https://*.app.example".',
      )
    }
  }
  return (origin) => exact.has(origin) || patterns.some((pattern) => matchesOriginPattern(pattern, origin))
}

function formatNames(names: '*' | readonly string[], all: string): string {
  return names === '*' || names.includes('*') ? all : names.join(', ')
}
