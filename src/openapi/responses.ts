import { STATUS_CODES } from 'node:http'
import { type HttpErrorCode, problemType } from '../core/errors.ts'
import type { JsonObject, JsonValue } from '../core/json.ts'
import type { Components } from './components.ts'
import { type DescribedMethod, type Facts, isRead, takesKey } from './facts.ts'
import { describeHeaders, type HeaderName } from './headers.ts'
import type { ServiceView } from './inputs.ts'
import { objectOf } from './json-schema.ts'
import type { Schemas } from './schemas.ts'
import { findSuccesses } from './successes.ts'

/** What all operations of a description are made with. */
export interface DocumentContext {
  readonly view: ServiceView
  readonly components: Components
  readonly schemas: Schemas
  /** Makes a name unique among the operations. */
  readonly nameOperation: (name: string) => string
}

const DIGESTS = ['Content-Digest', 'Repr-Digest'] as const

/** The statuses of answers that carry a digest where the request wants one. */
const HAS_DIGESTS: readonly string[] = ['200', '201', '206']

export function describeResponses(facts: Facts, method: DescribedMethod, context: DocumentContext): JsonObject {
  const { components, schemas, view } = context
  const lifecycle = facts.documentation.fields.filter((_, index) => index % 2 === 0) as HeaderName[]
  const responses: Record<string, JsonValue> = {}
  const replayed: readonly HeaderName[] = takesKey(facts, method) ? ['Idempotency-Replayed'] : []
  for (const [status, { text, headers, content }] of Object.entries(findSuccesses(facts, method, schemas))) {
    const all = [...headers, ...(HAS_DIGESTS.includes(status) ? DIGESTS : []), ...replayed, ...lifecycle]
    responses[status] = { description: text, ...describeHeaders(all, status, components), ...(content && { content }) }
  }
  for (const [status, codes] of findFailures(view, facts, method)) {
    const headers = [...headersOf(status, codes, facts, method), ...lifecycle]
    responses[status] = describeFailure(status, codes, headers, context)
  }
  responses['default'] = components.add('responses', ['Failure', ...lifecycle].join('-'), {
    description: `A failure that any request may meet: ${GENERAL_FAILURES.join(', ')}, or one that a hook has chosen; 421 may have no content.`,
    ...describeHeaders(['Retry-After', ...lifecycle], 'default', components),
    ...problemContent(schemas.shared('Problem'), context),
  })
  return responses
}

/** An error as problem details, its types as constants. */
function describeFailure(
  status: number,
  codes: readonly HttpErrorCode[],
  headers: readonly HeaderName[],
  context: DocumentContext,
): JsonObject {
  const { components, schemas, view } = context
  const reason = STATUS_CODES[status]!
  const types = codes.map(problemType)
  // Generators make identifiers of it, which do not begin with a digit.
  const name = [
    `Failure${status}`,
    ...codes.map((code) => code.slice(4).toLowerCase().replaceAll('_', '-')),
    ...headers,
  ].join('.')
  // An answer to a condition that failed has no content: the client knows what it asked for.
  if (status === 412 && !view.formatsErrors) {
    const description = `${reason}, without content.`
    return components.add('responses', name, { description, ...describeHeaders(headers, String(status), components) })
  }
  const type = types.length === 1 ? { const: types[0]! } : { enum: types }
  const constants = objectOf({ type, status: { const: status } })
  return components.add('responses', name, {
    description: view.formatsErrors ? `${reason}.` : `${reason}. Text where Accept takes text only.`,
    ...describeHeaders(headers, String(status), components),
    ...problemContent({ allOf: [schemas.shared('Problem'), constants] }, context),
  })
}

/** A hook of the service may write errors in a form of its own, of which nothing is known. */
function problemContent(schema: JsonObject, { view }: DocumentContext): JsonObject {
  if (view.formatsErrors) return {}
  return { content: { 'application/problem+json': { schema }, 'application/json': { schema } } }
}

function headersOf(
  status: number,
  codes: readonly HttpErrorCode[],
  facts: Facts,
  method: DescribedMethod,
): readonly HeaderName[] {
  const digests: readonly HeaderName[] = codes.includes('ERR_DIGEST_REQUIRED') ? ['Want-Content-Digest'] : []
  // Bearer says with 400 that a token was sent in two ways (RFC 6750 §3.1).
  if (status === 400 || status === 401 || codes.includes('ERR_FORBIDDEN')) return ['WWW-Authenticate', ...digests]
  if (status === 416) return ['Content-Range']
  if (status !== 415) return []
  const hints = { PATCH: 'Accept-Patch', POST: 'Accept-Post', QUERY: 'Accept-Query' } as const
  const hint = method in hints ? hints[method as keyof typeof hints] : 'Accept'
  return facts.content[method] === undefined ? [] : [hint, 'Accept-Encoding']
}

/**
 * The errors of one operation: each is thrown by a step of the service, and only where the definition has that step
 * throw it. What any request to any server can meet is not among them; see {@link GENERAL_FAILURES}.
 */
function findFailures(
  view: ServiceView,
  facts: Facts,
  method: DescribedMethod,
): ReadonlyMap<number, readonly HttpErrorCode[]> {
  const found = new Map<number, HttpErrorCode[]>()
  const add = (status: number, code: HttpErrorCode, isPossible = true): void => {
    if (isPossible) found.set(status, [...(found.get(status) ?? []), code])
  }
  const reads = isRead(method)
  const isCreation = method === 'POST'
  const content = facts.content[method]
  // What has to be there before the method is performed.
  const needsState = facts.hasState && (reads || method === 'PATCH' || method === 'DELETE' || !facts.createsByPut)
  const readsPage = facts.isListing || (facts.kind === 'open' && (reads || isCreation))

  add(400, 'ERR_MALFORMED_FIELD')
  add(400, 'ERR_MALFORMED_TARGET', facts.pattern.includes('{'))
  const isKeyed = takesKey(facts, method)
  add(400, 'ERR_IDEMPOTENCY_KEY_REQUIRED', isKeyed && facts.idempotency === 'required')
  // A token in the query beside one in Authorization.
  add(400, 'ERR_MALFORMED_QUERY', readsPage || view.schemes?.includes('Bearer'))
  const isHooked = !reads && (content === undefined ? facts.hooksMayRefuse.any : facts.hooksMayRefuse.content)
  // The facts of a file, and what beforeWrite makes of its item, are held to the rules of JSON.
  const isParsed = parses(facts, method) || (facts.kind === 'file' && isHooked)
  add(400, 'ERR_MALFORMED_BODY', content !== undefined && isParsed)
  add(400, 'ERR_MALFORMED_PATCH', method === 'PATCH')
  add(400, 'ERR_DIGEST_INVALID', method !== 'GET')
  add(400, 'ERR_DIGEST_MISMATCH', content !== undefined)
  add(400, 'ERR_DIGEST_REQUIRED', content !== undefined && !reads && facts.needsDigests)
  add(400, 'ERR_DIGEST_UNSUPPORTED', content !== undefined && !reads && facts.needsDigests)

  const { schemes } = view
  const needsCredentials = facts.credentials === 'writes' ? !reads : facts.credentials !== 'none'
  add(401, 'ERR_UNAUTHENTICATED', schemes !== undefined && (schemes.length > 0 || needsCredentials))
  add(403, 'ERR_CLEARTEXT', view.refusesCleartext)
  add(403, 'ERR_CROSS_SITE', !reads || view.refusesOrigins)
  const isScoped = facts.scope !== 'none'
  add(403, 'ERR_FORBIDDEN', facts.isGuarded || isScoped || schemes?.includes('Bearer') || isHooked)

  const isHiddenFromOthers = facts.isGuarded || facts.hasParent || (isScoped && method === 'PUT')
  const hasOtherNames = facts.kind === 'item' && facts.ids !== 'string'
  add(404, 'ERR_NOT_FOUND', needsState || isHiddenFromOthers || hasOtherNames || facts.kind === 'file')
  add(410, 'ERR_GONE', (needsState || facts.kind === 'file') && facts.remembersRemoval)

  add(406, 'ERR_NOT_ACCEPTABLE', reads && facts.accept === 'strict')
  add(412, 'ERR_PRECONDITION_FAILED')
  add(428, 'ERR_PRECONDITION_REQUIRED', !reads && !isCreation && facts.preconditions === 'required')
  add(416, 'ERR_RANGE_NOT_SATISFIABLE', reads && !facts.isListing)

  if (content !== undefined) {
    add(415, 'ERR_UNSUPPORTED_MEDIA_TYPE', !content.types.includes('*/*') || facts.json !== 'none' || isCreation)
    add(415, 'ERR_UNSUPPORTED_CODING')
    add(413, 'ERR_TOO_LARGE', content.isLimited)
    add(422, 'ERR_INVALID_CONTENT', validates(facts, method) || isHooked)
  }
  add(422, 'ERR_IDEMPOTENCY_KEY_REUSED', isKeyed)
  // A write that compares gives up when other requests keep changing the resource.
  const compares = !reads && !isCreation && !(method === 'DELETE' && facts.deletion === 'queued')
  add(409, 'ERR_CONFLICT', compares || isHooked || (isCreation && facts.createsBesideOthers))
  add(409, 'ERR_PATCH_CONFLICT', method === 'PATCH')
  return found
}

/** Errors of the server, not of a definition; the answer `default` stands for them. */
export const GENERAL_FAILURES: readonly number[] = [408, 414, 421, 429, 431, 500, 501, 503, 505, 507]

/** Whether the content of a method is parsed, if it is of some type that can be. */
function parses(facts: Facts, method: DescribedMethod): boolean {
  if (facts.kind === 'file') return false
  return method === 'PATCH' || method === 'QUERY' || facts.json !== 'none' || facts.kind === 'open'
}

/** Whether the content of a method is held to rules beyond its syntax. */
function validates(facts: Facts, method: DescribedMethod): boolean {
  if (method === 'QUERY') return false
  if (method === 'PATCH' || facts.json === 'all' || facts.kind === 'open')
    return method !== 'PUT' || facts.json === 'all'
  return facts.schema !== undefined && facts.json === 'some'
}
