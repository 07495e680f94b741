import { isJsonObject, type JsonObject, type JsonValue } from '../core/json.ts'
import { isJsonType } from '../protocol/media-type.ts'
import type { DescribedMethod, Facts } from './facts.ts'
import type { HeaderName } from './headers.ts'
import { idOnly, type Schemas } from './schemas.ts'

/** An answer other than an error. */
export interface Success {
  readonly text: string
  readonly headers: readonly HeaderName[]
  readonly content?: JsonObject
}

const VALIDATORS = ['ETag', 'Last-Modified'] as const
/** The client repeats the request there, with its Range. */
const REDIRECT: Success = {
  text: 'Large content lies at Location for a short time; its ETag there is another one.',
  headers: [...VALIDATORS, 'Location'],
}
const PREFERRED = ['Preference-Applied'] as const

/** The answers of an operation other than errors, by status. */
export function findSuccesses(facts: Facts, method: DescribedMethod, schemas: Schemas): ReadonlyMap<number, Success> {
  switch (method) {
    case 'GET':
      return facts.isListing
        ? listAnswers(facts, schemas, queryHeaders(facts, 'Accept-Query'))
        : readAnswers(facts, schemas)
    case 'QUERY':
      return listAnswers(facts, schemas, queryHeaders(facts, 'Location of GET'))
    case 'POST':
      return createAnswers(facts, schemas)
    case 'PUT':
      return replaceAnswers(facts, schemas)
    case 'PATCH':
      return patchAnswers(facts, schemas)
    case 'DELETE':
      return removeAnswers(facts, schemas)
  }
}

/** Headers of a page, where lists take queries. */
function queryHeaders({ query }: Facts, own: 'Accept-Query' | 'Location of GET'): readonly HeaderName[] {
  if (query === undefined) return []
  return query.allowsCount ? [own, 'X-Total-Count'] : [own]
}

function listAnswers(facts: Facts, schemas: Schemas, more: readonly HeaderName[]): ReadonlyMap<number, Success> {
  const items = facts.json === 'all' ? schemas.of(facts).output : facts.json === 'none' ? schemas.entry() : {}
  const text =
    facts.json === 'all'
      ? 'A page of the items.'
      : facts.json === 'none'
        ? 'A page of the items: where each is, and what it is.'
        : 'A page of the items: JSON as it is; of anything else `id`, `href`, `type` and `size`.'
  return new Map<number, Success>([
    [
      200,
      {
        text,
        headers: ['ETag', 'Link', ...more],
        content: { 'application/json': { schema: { type: 'array', items } } },
      },
    ],
    [304, { text: 'The page has not changed.', headers: ['ETag', 'Link'] }],
  ])
}

function readAnswers(facts: Facts, schemas: Schemas): ReadonlyMap<number, Success> {
  const content = representation(facts, schemas)
  const headers = [...VALIDATORS, 'Accept-Ranges', ...contentHeaders(facts)] as const
  const whole: Success = {
    text: facts.showsWork ? 'The representation, with Retry-After while the work goes on.' : 'The representation.',
    headers: [
      ...headers,
      ...(facts.showsWork ? (['Retry-After'] as const) : []),
      ...(facts.kind === 'open' ? (['Link'] as const) : []),
    ],
    content,
  }
  const bytes = Object.fromEntries([...Object.keys(content), 'multipart/byteranges'].map((type) => [type, {}]))
  // A part of JSON has no schema, and without one a typed client would lose the type of the whole as well.
  const part =
    facts.json === 'all'
      ? { text: 'The bytes that Range asks for, in the media type of the representation, or as multipart/byteranges.' }
      : { text: 'The bytes that Range asks for.', content: bytes }
  return new Map<number, Success>([
    [200, whole],
    [206, { ...part, headers: [...whole.headers, 'Content-Range'] }],
    [304, { text: 'The representation has not changed.', headers: whole.headers.filter(isValidator) }],
    ...(facts.redirects ? [[307, REDIRECT] as const] : []),
  ])
}

function isValidator(name: HeaderName): boolean {
  return name === 'ETag' || name === 'Last-Modified' || name === 'Link'
}

function createAnswers(facts: Facts, schemas: Schemas): ReadonlyMap<number, Success> {
  if (facts.acceptsItems) {
    const text = 'The item is accepted, and its content is worked on; Location is the item, which says its state.'
    return new Map<number, Success>([[202, { text, headers: ['Location', ...PREFERRED] }]])
  }
  const isItem = facts.json === 'all'
  const headers = [
    'Location',
    ...PREFERRED,
    ...(isItem || facts.kind === 'open' ? (['Content-Location', ...VALIDATORS] as const) : []),
  ] as const
  const schema = isItem ? schemas.of(facts).output : facts.kind === 'open' ? {} : idOnly(facts.ids)
  const media = { schema, ...(isItem && examplesOf(facts, 'output')) }
  const text = `The new item${isItem ? '' : "'s id"}, or no content with \`Prefer: return=minimal\`.`
  return new Map<number, Success>([[201, { text, headers, content: { 'application/json': media } }]])
}

function replaceAnswers(facts: Facts, schemas: Schemas): ReadonlyMap<number, Success> {
  const headers = [...VALIDATORS, ...PREFERRED, 'Content-Location', ...contentHeaders(facts)] as const
  const content = stored(facts, schemas)
  const isShown = facts.putResponse === 'representation'
  // RFC 9110 §9.3.4: no validator where the content is not stored as it was sent.
  const tag =
    'ETag is there only where the content is stored as it was sent: without it, read again before the next write.'
  const answers = new Map<number, Success>([
    [
      200,
      {
        text: `Replaced, with the representation${isShown ? '' : ' that `Prefer: return=representation` asks for'}. ${tag}`,
        headers,
        content,
      },
    ],
    [
      204,
      {
        text: `Replaced${isShown ? ', with `Prefer: return=minimal`' : ''}. ${tag}`,
        headers: [...VALIDATORS, ...PREFERRED],
      },
    ],
  ])
  if (facts.createsByPut || facts.restoresByPut) {
    const text = `${facts.createsByPut ? 'Created' : 'Restored'}; with the representation where \`Prefer: return=representation\` asks for it. ${tag}`
    answers.set(201, { text, headers: ['Location', ...headers], content })
  }
  return answers
}

function patchAnswers(facts: Facts, schemas: Schemas): ReadonlyMap<number, Success> {
  const headers = [...VALIDATORS, ...PREFERRED, 'Content-Location', ...contentHeaders(facts)] as const
  return new Map<number, Success>([
    [200, { text: 'Changed: the representation.', headers, content: stored(facts, schemas) }],
    [204, { text: 'Nothing had to be changed, or `Prefer: return=minimal`.', headers: [...VALIDATORS, ...PREFERRED] }],
  ])
}

function removeAnswers(facts: Facts, schemas: Schemas): ReadonlyMap<number, Success> {
  if (facts.kind === 'operation') {
    return new Map<number, Success>([[204, { text: 'Cancelled, or forgotten where the work has ended.', headers: [] }]])
  }
  const { isQueued, mayBeQueued, answer } = facts.deletion
  const answers = new Map<number, Success>()
  if (mayBeQueued) {
    const when = isQueued ? '' : ', with `Prefer: respond-async`'
    const text = `The removal is accepted${when}; Location is its monitor.`
    answers.set(202, { text, headers: ['Location', ...PREFERRED] })
  }
  if (isQueued) return answers
  const tag = answer === 'tag' ? (['ETag'] as const) : []
  const isShown = answer === 'representation'
  const usual = isShown || answer === 'confirmation'
  answers.set(200, {
    text: `Removed: the ${isShown ? 'last representation' : 'confirmation'}${usual ? '' : ', with `Prefer: return=representation`'}.`,
    headers: [...tag, ...PREFERRED, ...(isShown ? contentHeaders(facts) : [])],
    content: isShown ? orConfirmation(stored(facts, schemas), schemas) : confirmation(schemas),
  })
  answers.set(204, {
    text: `Removed${usual ? ', with `Prefer: return=minimal`' : ''}.`,
    headers: [...tag, ...PREFERRED],
  })
  return answers
}

function confirmation(schemas: Schemas): JsonObject {
  return { 'application/json': { schema: schemas.removal() } }
}

/** What a store keeps in pieces is gone when the answer is made: it is confirmed instead. */
function orConfirmation(content: JsonObject, schemas: Schemas): JsonObject {
  const json = content['application/json']
  const schema = isJsonObject(json) ? json['schema'] : undefined
  const either = schema === undefined ? {} : { schema: { anyOf: [schema, schemas.removal()] } }
  return { ...content, 'application/json': either }
}

function contentHeaders(facts: Facts): readonly HeaderName[] {
  const language = facts.storedHeaders.includes('Content-Language') ? (['Content-Language'] as const) : []
  return facts.json === 'all' ? language : [...language, 'Content-Disposition']
}

/** The content of GET: the stored representation and those made from it. */
function representation(facts: Facts, schemas: Schemas): JsonObject {
  const made = facts.offers.map((type) => [type, type.startsWith('text/') ? { schema: { type: 'string' } } : {}])
  return { ...stored(facts, schemas), ...(Object.fromEntries(made) as JsonObject) }
}

/** The stored representation, by media range. */
function stored(facts: Facts, schemas: Schemas): JsonObject {
  const { schema, documentation, json, types } = facts
  const isKnown = json === 'all' || (json === 'some' && (schema ?? documentation.jsonSchema) !== undefined)
  const media = isKnown ? { schema: schemas.of(facts).output, ...examplesOf(facts, 'output') } : {}
  const content: Record<string, JsonValue> = {}
  for (const type of types) content[type] = isJsonType(type) ? media : {}
  if (isKnown) content['application/json'] ??= media
  return content
}

/** Examples of a definition: with the id on the way out, without it on the way in. */
export function examplesOf({ documentation, hasId }: Facts, direction: 'input' | 'output'): JsonObject {
  const entries = Object.entries(documentation.examples).flatMap(([name, value]) => {
    if (!hasId || !isJsonObject(value)) return [[name, { value }] as const]
    const { id, ...rest } = value
    if (direction === 'input') return [[name, { value: rest }] as const]
    return id === undefined ? [] : [[name, { value }] as const]
  })
  return entries.length === 0 ? {} : { examples: Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))) }
}
