import { STATUS_CODES } from 'node:http'
import { type HttpErrorCode, problemType } from '../core/errors.ts'
import type { JsonObject, JsonValue } from '../core/json.ts'
import type { Components } from './components.ts'
import { type DescribedMethod, type Facts, isDeep, takesKey } from './facts.ts'
import { findFailures, GENERAL_FAILURES } from './failures.ts'
import { describeHeaders, type HeaderName } from './headers.ts'
import { objectOf } from './json-schema.ts'
import { namePath } from './names.ts'
import { describeParameters } from './parameters.ts'
import { describeRequest } from './requests.ts'
import type { Schemas } from './schemas.ts'
import type { ServiceView } from './service-view.ts'
import { findSuccesses } from './successes.ts'

/** What all operations of a description are made with. */
export interface DocumentContext {
  readonly view: ServiceView
  readonly components: Components
  readonly schemas: Schemas
  /** Makes a name unique among the operations. */
  readonly nameOperation: (name: string) => string
}

const VERBS: Readonly<Record<DescribedMethod, string>> = {
  GET: 'read',
  PUT: 'replace',
  POST: 'create',
  DELETE: 'remove',
  PATCH: 'change',
  QUERY: 'query',
}

const DIGESTS = ['Content-Digest', 'Repr-Digest'] as const
/** The statuses of answers that carry a digest where the request wants one. */
const HAS_DIGESTS: readonly number[] = [200, 201, 206]

/** Describes one method of one path. */
export function describeOperation(facts: Facts, method: DescribedMethod, context: DocumentContext): JsonObject {
  const { view, components, schemas } = context
  const verb = facts.isListing && method === 'GET' ? 'list' : VERBS[method]
  const isReplaceOrCreate = method === 'PUT' && facts.createsByPut
  return {
    operationId: context.nameOperation(verb + namePath(facts.pattern)),
    summary: `${capitalize(verb)}${isReplaceOrCreate ? ' or create' : ''} ${facts.documentation.title ?? facts.pattern}`,
    description: describeInWords(facts, method, context),
    tags: [tagOf(facts)],
    ...(facts.documentation.isDeprecated && { deprecated: true }),
    ...describeParameters(facts, method, components),
    ...describeRequest(facts, method, schemas),
    responses: describeResponses(facts, method, context),
    ...describeSecurity(view, facts, method, components),
  }
}

/** The name that groups the operations of one definition. */
export function tagOf({ documentation, definition }: Facts): string {
  return documentation.title ?? definition
}

function describeInWords(facts: Facts, method: DescribedMethod, { view, schemas }: DocumentContext): string {
  const sentences = [describeVerb(facts, method), ...explainSecurity(view, facts)]
  const isWrite = method !== 'GET' && method !== 'POST' && method !== 'QUERY'
  if (isWrite && facts.needsCondition) {
    sentences.push('A change needs If-Match, If-None-Match or If-Unmodified-Since (428 otherwise).')
  }
  if (method !== 'DELETE' && facts.json !== 'none' && schemas.of(facts).isUnknown) {
    sentences.push('The content is validated by a schema that cannot be described here.')
  }
  if (facts.kind === 'open' || isDeep(facts))
    sentences.push('The path may have any number of segments, which OpenAPI cannot express.')
  return sentences.join(' ')
}

function describeVerb(facts: Facts, method: DescribedMethod): string {
  const { deletion, kind } = facts
  switch (method) {
    case 'GET':
      if (facts.isListing) return 'Lists the items, a page at a time; Link leads to the next page.'
      return 'Gives the representation, or ranges of its bytes.'
    case 'POST':
      return facts.acceptsItems
        ? 'Accepts a new item and works on it later; the service chooses its id.'
        : 'Makes a new item; the service chooses its id.'
    case 'PUT':
      return facts.createsByPut
        ? 'Creates the resource, or replaces it as a whole.'
        : 'Replaces the resource as a whole.'
    case 'QUERY':
      return 'Lists the items that match the query in the content, as GET does with the same query in its target (RFC 10008).'
    case 'PATCH':
      return 'Applies a patch to the resource: all of it or nothing.'
    case 'DELETE':
      if (kind === 'operation') return 'Cancels work that has not been started, or forgets work that has ended.'
      if (deletion.isQueued) return 'Has the resource removed later.'
      return deletion.isSoft ? 'Hides the resource; PUT restores it.' : 'Removes the resource.'
  }
}

function describeResponses(facts: Facts, method: DescribedMethod, context: DocumentContext): JsonObject {
  const { components, schemas, view } = context
  const lifecycle = facts.documentation.fields.filter((_, index) => index % 2 === 0) as HeaderName[]
  const responses: Record<string, JsonValue> = {}
  const replayed: readonly HeaderName[] = takesKey(facts, method) ? ['Idempotency-Replayed'] : []
  for (const [status, { text, headers, content }] of findSuccesses(facts, method, schemas)) {
    responses[status] = {
      description: text,
      ...describeHeaders(
        [...headers, ...(HAS_DIGESTS.includes(status) ? DIGESTS : []), ...replayed, ...lifecycle],
        components,
      ),
      ...(content && { content }),
    }
  }
  for (const [status, codes] of findFailures(view, facts, method)) {
    responses[status] = describeFailure(
      status,
      codes,
      [...headersOf(status, codes, facts, method), ...lifecycle],
      context,
    )
  }
  responses['default'] = components.add('responses', ['Failure', ...lifecycle].join('-'), {
    description: `A failure that any request may meet: ${GENERAL_FAILURES.join(', ')}, or one that a hook has chosen; 421 has no content.`,
    ...describeHeaders(['Retry-After', ...lifecycle], components),
    ...problemContent(schemas.problem(), context),
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
  const { components, schemas } = context
  const reason = STATUS_CODES[status]!
  const types = codes.map(problemType)
  const name = [status, ...codes.map((code) => code.slice(4).toLowerCase().replaceAll('_', '-')), ...headers].join('.')
  // An answer to a condition that failed has no content: the client knows what it asked for.
  if (status === 412) {
    return components.add('responses', name, {
      description: `${reason}, without content.`,
      ...describeHeaders(headers, components),
    })
  }
  const constants = objectOf({
    type: types.length === 1 ? { const: types[0]! } : { enum: types },
    status: { const: status },
  })
  return components.add('responses', name, {
    description: `${reason}. Text where Accept takes text only.`,
    ...describeHeaders(headers, components),
    ...problemContent({ allOf: [schemas.problem(), constants] }, context),
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

function capitalize(text: string): string {
  return text[0]!.toUpperCase() + text.slice(1)
}

/** The credentials that an operation takes; `{}` among them where it goes on without. */
function describeSecurity(
  { schemes = [] }: ServiceView,
  { credentials }: Facts,
  method: DescribedMethod,
  components: Components,
): JsonObject {
  const isNeeded = credentials === 'all' || (credentials === 'writes' && method !== 'GET' && method !== 'QUERY')
  const requirements = schemes.map((name) => {
    // RFC 9110 §16.4.1: the names are those of the registry of authentication schemes.
    components.add('securitySchemes', name, { type: 'http', scheme: name.toLowerCase() })
    return { [name]: [] }
  })
  return { security: isNeeded || requirements.length === 0 ? requirements : [...requirements, {}] }
}

/** A sentence on credentials, where the requirement alone does not say it. */
function explainSecurity({ schemes }: ServiceView, { credentials }: Facts): readonly string[] {
  if (schemes === undefined) return []
  const some = credentials === 'some' ? ['May need credentials: a function of the service decides.'] : []
  return schemes.length === 0 && credentials !== 'none'
    ? [...some, 'Users are found by the host of the service.']
    : some
}
