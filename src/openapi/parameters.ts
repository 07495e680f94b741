import type { JsonObject, JsonValue } from '../core/json.ts'
import type { Components } from './components.ts'
import { type DescribedMethod, type Facts, takesKey } from './facts.ts'
import { describeFilters } from './query-parameters.ts'
import { describeName } from './schemas.ts'

const TEXT = { type: 'string' }
const TAGS = { type: 'string', description: 'Entity tags, or `*`.' }
const DATE = { type: 'string', description: 'An HTTP-date.' }

/** Request headers by name. */
const HEADERS: Readonly<Record<string, readonly [text: string, schema: JsonObject]>> = {
  'If-Match': ['Goes on only while the current entity tag is one of these (412 otherwise).', TAGS],
  'If-None-Match': ['Goes on only while the current entity tag is none of these.', TAGS],
  'If-Modified-Since': ['Answers 304 where nothing has changed since.', DATE],
  'If-Unmodified-Since': ['Goes on only where nothing has changed since (412 otherwise).', DATE],
  Range: ['Asks for ranges of bytes: `bytes=0-99`.', TEXT],
  'If-Range': ['Sends the ranges only while this is the current entity tag or date; the whole otherwise.', TEXT],
  Prefer: ['Preferences (RFC 7240).', TEXT],
  'Want-Repr-Digest': ['Asks for a digest of the representation: `sha-256=1` (RFC 9530).', TEXT],
  'Want-Content-Digest': ['Asks for a digest of the content: `sha-256=1` (RFC 9530).', TEXT],
  'Content-Digest': ['Digests of the content by sha-256 or sha-512; 400 where one differs (RFC 9530).', TEXT],
  'Repr-Digest': ['The same as Content-Digest, of the representation that is sent.', TEXT],
  'Content-Language': ['The language of the content; it is kept.', TEXT],
  'Content-Disposition': ['The file name of the content; it is kept.', TEXT],
}

/** The parameters in the path of a pattern. */
export function describePathParameters({ pattern, kind, definition, ids: names }: Facts): JsonObject {
  const found = [...pattern.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  if (found.length === 0) return {}
  // Behind those of the collection comes the name of the item.
  const item = kind === 'item' || kind === 'file' ? [...definition.matchAll(/\{/g)].length : -1
  const parameters = found.map((name, index): JsonValue => {
    const isName = index === item && names !== 'string'
    return { name, in: 'path', required: true, schema: isName ? describeName(names) : { type: 'string', minLength: 1 } }
  })
  return { parameters }
}

/** The header and query parameters of an operation, those alone that have an effect there. */
export function describeParameters(facts: Facts, method: DescribedMethod, components: Components): JsonObject {
  const header = (name: string, text = HEADERS[name]![0]): JsonValue =>
    text === HEADERS[name]![0]
      ? components.add('parameters', name, { name, in: 'header', description: text, schema: HEADERS[name]![1] })
      : { name, in: 'header', description: text, schema: HEADERS[name]![1] }
  const isRead = method === 'GET' || method === 'QUERY'
  const parameters: JsonValue[] = []
  if (method === 'GET' && (facts.isListing || facts.kind === 'open')) parameters.push(...describePaging(components))
  if (method === 'GET' && facts.query !== undefined) parameters.push(...describeFilters(facts.query))
  if (method === 'GET' && facts.deletion.isSoft && facts.isGuarded) {
    parameters.push(
      components.add('parameters', 'deleted', {
        name: 'deleted',
        in: 'query',
        description: 'Whether resources that were removed are shown, to those who may see them.',
        schema: { type: 'boolean' },
      }),
    )
  }
  parameters.push(header('If-Match'), header('If-None-Match'))
  if (isRead) parameters.push(header('If-Modified-Since'))
  parameters.push(header('If-Unmodified-Since'))
  if (isRead && !facts.isListing) parameters.push(header('Range'), header('If-Range'))
  const preferences = findPreferences(facts, method)
  if (preferences.length > 0) parameters.push(header('Prefer', `Preferences (RFC 7240): ${preferences.join(', ')}.`))
  if (mayAnswerContent(facts, method)) parameters.push(header('Want-Repr-Digest'), header('Want-Content-Digest'))
  if (facts.content[method] !== undefined) parameters.push(header('Content-Digest'), header('Repr-Digest'))
  if (takesKey(facts, method)) parameters.push(describeKey(facts, method, components))
  if (method === 'PUT' || method === 'POST') for (const name of facts.storedHeaders) parameters.push(header(name))
  return { parameters }
}

/** Whether an answer other than an error may have content. */
function mayAnswerContent({ acceptsItems, deletion, kind }: Facts, method: DescribedMethod): boolean {
  if (method === 'POST') return !acceptsItems
  return method !== 'DELETE' || (kind !== 'operation' && !deletion.isQueued)
}

/** Where every request needs one, a PATCH with If-Match does not. */
function describeKey({ idempotency }: Facts, method: DescribedMethod, components: Components): JsonValue {
  const required = idempotency === 'required' && method === 'POST'
  const unless = method === 'PATCH' ? ' Ignored beside If-Match.' : ''
  return components.add('parameters', `Idempotency-Key-${method}${required ? '-required' : ''}`, {
    name: 'Idempotency-Key',
    in: 'header',
    description: `A string of the client's own: however often the request is sent with it, it is done once.${unless}`,
    ...(required && { required }),
    schema: { type: 'string', minLength: 1, maxLength: 257 },
  })
}

function describePaging(components: Components): readonly JsonValue[] {
  return [
    components.add('parameters', 'limit', {
      name: 'limit',
      in: 'query',
      description: 'The most items on a page.',
      schema: { type: 'integer', minimum: 1, maximum: 999_999_999 },
    }),
    components.add('parameters', 'after', {
      name: 'after',
      in: 'query',
      description: 'A cursor from the Link of the page before; opaque.',
      schema: TEXT,
    }),
  ]
}

/** The preferences that an operation knows (RFC 7240). */
function findPreferences(facts: Facts, method: DescribedMethod): readonly string[] {
  if (method === 'GET' || method === 'QUERY' || facts.kind === 'operation') return []
  const { isQueued, mayBeQueued } = facts.deletion
  const found: string[] = []
  const isAnsweredLater = (method === 'POST' && facts.acceptsItems) || (method === 'DELETE' && isQueued)
  if (!isAnsweredLater) found.push('`return=minimal`', '`return=representation`')
  if ((method === 'DELETE' && mayBeQueued) || (method === 'POST' && facts.acceptsItems)) found.push('`respond-async`')
  if (facts.schema !== undefined && method !== 'DELETE') found.push('`handling=strict`')
  return found
}
