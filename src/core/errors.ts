import { ERROR_PHRASES } from '../protocol/error-phrases.ts'
import { readErrorHeaders, readErrorOptions } from './error-options.ts'
import { describeValue, quoteValue } from './option-values.ts'

/**
 * The stable name of a failure: compare this, not the message. Codes of your own are welcome; they begin with `ERR_`.
 */
export type HttpErrorCode =
  | 'ERR_MALFORMED_TARGET'
  | 'ERR_MALFORMED_FIELD'
  | 'ERR_MALFORMED_BODY'
  | 'ERR_MALFORMED_PATCH'
  | 'ERR_MALFORMED_QUERY'
  | 'ERR_INCOMPLETE_BODY'
  | 'ERR_DIGEST_INVALID'
  | 'ERR_DIGEST_MISMATCH'
  | 'ERR_DIGEST_REQUIRED'
  | 'ERR_DIGEST_UNSUPPORTED'
  | 'ERR_IDEMPOTENCY_KEY_REQUIRED'
  | 'ERR_IDEMPOTENCY_KEY_REUSED'
  | 'ERR_UNAUTHENTICATED'
  | 'ERR_FORBIDDEN'
  | 'ERR_CLEARTEXT'
  | 'ERR_CROSS_SITE'
  | 'ERR_NOT_FOUND'
  | 'ERR_METHOD_NOT_ALLOWED'
  | 'ERR_NOT_ACCEPTABLE'
  | 'ERR_TIMEOUT'
  | 'ERR_CONFLICT'
  | 'ERR_PATCH_CONFLICT'
  | 'ERR_GONE'
  | 'ERR_PRECONDITION_FAILED'
  | 'ERR_TOO_LARGE'
  | 'ERR_TARGET_TOO_LONG'
  | 'ERR_UNSUPPORTED_MEDIA_TYPE'
  | 'ERR_UNSUPPORTED_CODING'
  | 'ERR_RANGE_NOT_SATISFIABLE'
  | 'ERR_MISDIRECTED'
  | 'ERR_INVALID_CONTENT'
  | 'ERR_UPGRADE_REQUIRED'
  | 'ERR_PRECONDITION_REQUIRED'
  | 'ERR_TOO_MANY_REQUESTS'
  | 'ERR_FIELDS_TOO_LARGE'
  | 'ERR_INTERNAL'
  | 'ERR_METHOD_NOT_IMPLEMENTED'
  | 'ERR_VERSION_NOT_SUPPORTED'
  | 'ERR_UNAVAILABLE'
  | 'ERR_INDEXING'
  | 'ERR_OUT_OF_SPACE'
  // Keeps the names above in the completion of editors.
  | (string & {})

/** One fault in the content of a request, where there is something to point at. */
export interface ContentError {
  /** JSON Pointer (RFC 6901) into the content; empty for the whole. */
  readonly pointer: string
  /** What is wrong there, in a sentence. */
  readonly detail: string
}

/** One fault in the query of a request. */
export interface ParameterError {
  /** The name of the parameter, decoded. */
  readonly parameter: string
  /** What is wrong with it, in a sentence. */
  readonly detail: string
}

/** Header fields by name; a list of values is sent as one field line each. */
export type ErrorHeaders = Readonly<Record<string, string | readonly string[]>>

/** Options of an `HttpError`: what the client gets beside the status and the code. */
export interface HttpErrorOptions {
  /** What would help the client; sent to it when `expose` is true. Never put a secret or the request's content here. */
  readonly detail?: string
  /**
   * Header fields of the response: name and value, or name and list of values where the field is sent more than once.
   * Content-Length and others that describe its content are not sent, nor is Content-Type without a `formatError`.
   */
  readonly headers?: ErrorHeaders
  /** Faults in the content, or in the query. */
  readonly errors?: readonly (ContentError | ParameterError)[]
  /** The URI of the kind of problem (RFC 9457 §3.1.1). Default: that of `code`; see {@link problemType}. */
  readonly type?: string
  /** What the kind of problem is in a few words (RFC 9457 §3.1.3); sent when `expose` is true. Default: the phrase of the status. */
  readonly title?: string
  /** Further members of the problem document (RFC 9457 §3.2); `type`, `title`, `status`, `detail` and `errors` are its own. */
  readonly extensions?: Readonly<Record<string, unknown>>
  /** Whether `detail` and the rest may be sent. Default: true below 500. */
  readonly expose?: boolean
  /** The error behind this one, for `onError` and logs; never sent. Default: none. */
  readonly cause?: unknown
}

/** False where the program has frozen its intrinsics. */
const canLimitTraces = Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')?.writable === true

const BRAND = Symbol.for('http-resource-service.HttpError')

/**
 * The failure of one request. Throw it from any hook or store to choose the response (RFC 9457).
 *
 * Express and Koa understand it too: it has `status`, `statusCode`, `expose` and `headers`.
 * @example throw new HttpError(409, 'ERR_CONFLICT', { detail: 'The order has been shipped.' })
 */
export class HttpError extends Error {
  override readonly name: string = 'HttpError'
  /** The status of the response, 400 to 599. */
  readonly status: number
  /** The stable name of the failure. */
  readonly code: HttpErrorCode
  /** Whether `title`, `detail`, `errors` and `extensions` are sent: by default below 500. */
  readonly expose: boolean
  /** What helps the client, in a sentence. */
  readonly detail: string | undefined
  /** Header fields of the response, as the error handlers of Express and Koa read them. */
  readonly headers: ErrorHeaders
  /** Faults in the content, or in the query. */
  readonly errors: readonly (ContentError | ParameterError)[] | undefined
  /** The URI of the kind of problem (RFC 9457 §3.1.1). */
  readonly type: string
  /** What the kind of problem is in a few words (RFC 9457 §3.1.3): as it was passed, or the phrase of the status. */
  readonly title: string
  /** Further members of the problem document (RFC 9457 §3.2). */
  readonly extensions: Readonly<Record<string, unknown>> | undefined

  /**
   * @param status 400 to 599
   * @param code a stable name of the failure; one of your own begins with `ERR_`
   * @param given see {@link HttpErrorOptions}
   * @throws TypeError for anything else: it would be sent as it is
   */
  constructor(status: number, code: HttpErrorCode, given?: HttpErrorOptions) {
    const options = readErrorOptions(given)
    if (!isErrorStatus(status)) {
      throw new TypeError(`HttpError takes a status of 400 to 599, not ${describeValue(status)}.`)
    }
    if (typeof code !== 'string' || !code.startsWith('ERR_')) {
      throw new TypeError(`HttpError takes a code such as 'ERR_CONFLICT', not ${quoteValue(code)}.`)
    }
    // Where a refusal was decided is of no interest, and finding it out would cost more than the rest of the request.
    const { stackTraceLimit } = Error
    if (status < 500 && canLimitTraces) Error.stackTraceLimit = 0
    const title = options.title ?? phraseOf(status)
    super(options.detail ?? title, options.cause === undefined ? {} : { cause: options.cause })
    if (canLimitTraces) Error.stackTraceLimit = stackTraceLimit
    this.status = status
    this.code = code
    this.expose = options.expose ?? status < 500
    this.detail = options.detail
    this.headers = readErrorHeaders(options.headers)
    this.errors = options.errors
    this.type = options.type ?? problemType(code)
    this.title = title
    this.extensions = options.extensions
    Object.defineProperty(this, BRAND, { value: true })
  }

  /** The same as `status`; the name that Express reads. */
  get statusCode(): number {
    return this.status
  }
}

function phraseOf(status: number): string {
  return ERROR_PHRASES[status] ?? 'Error'
}

/** 400 for a field of the request that is malformed, missing or misplaced. */
export function malformedField(detail: string): HttpError {
  return new HttpError(400, 'ERR_MALFORMED_FIELD', { detail })
}

/** Whether a status is that of an error: an integer from 400 to 599. */
export function isErrorStatus(status: unknown): boolean {
  return Number.isInteger(status) && (status as number) >= 400 && (status as number) <= 599
}

/** Whether a value is an {@link HttpError}, also one of another copy of this package. */
export function isHttpError(value: unknown): value is HttpError {
  if (typeof value !== 'object' || value === null) return false
  try {
    return (value as { [BRAND]?: unknown })[BRAND] === true
  } catch {
    return false // a proxy that throws
  }
}

/** The client went away before its request was complete. There is no client left to answer: it ends the exchange silently. */
export class RequestAborted extends Error {
  override readonly name: string = 'RequestAborted'
}

const REGISTRY = 'https://iana.org/assignments/http-problem-types#'

/** Kinds of problems that are registered (RFC 9457 §4.2; draft-ietf-httpapi-digest-fields-problem-types). */
const REGISTERED_TYPES: ReadonlyMap<HttpErrorCode, string> = new Map([
  ['ERR_DIGEST_INVALID', `${REGISTRY}digest-invalid-values`],
  ['ERR_DIGEST_MISMATCH', `${REGISTRY}digest-mismatched-values`],
  ['ERR_DIGEST_UNSUPPORTED', `${REGISTRY}digest-unsupported-algorithms`],
])

/** The stable URI of a kind of problem (RFC 9457 §3.1.1): the registered one, otherwise a URN made from the code. */
export function problemType(code: HttpErrorCode): string {
  const registered = REGISTERED_TYPES.get(code)
  if (registered !== undefined) return registered
  return 'urn:problem-type:http-resource-service:' + code.slice(4).toLowerCase().replaceAll('_', '-')
}

/** A problem document (RFC 9457). */
export type Problem = Readonly<Record<string, unknown>> & {
  readonly type: string
  readonly title: string
  readonly status: number
}

/** The problem document that tells a client about an error; nothing internal unless `expose` says so. */
export function createProblem(error: HttpError): Problem {
  const problem = {
    type: error.type ?? problemType(error.code),
    // One of an older copy of this package has no title.
    title: (error.expose ? error.title : undefined) ?? phraseOf(error.status),
    status: error.status,
  }
  if (!error.expose) return problem
  const own = {
    ...problem,
    ...(error.detail === undefined ? {} : { detail: error.detail }),
    ...(error.errors === undefined ? {} : { errors: error.errors }),
  }
  // The error may be one of another copy of this package, which takes members of these names.
  return error.extensions === undefined ? own : { ...own, ...error.extensions, ...own }
}
