import { isJsonObject, type JsonObject, type JsonValue } from '../core/json.ts'
import { isJsonType } from '../protocol/media-type.ts'
import type { DescribedMethod, Facts } from './facts.ts'
import type { HeaderName } from './headers.ts'
import { objectOf } from './json-schema.ts'
import { describeName, type Schemas } from './schemas.ts'
import { TEXT } from './shared-schemas.ts'

/** An answer other than an error. */
interface Success {
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
const PREFERRED = 'Preference-Applied'

type Successes = Readonly<Record<number, Success>>

/** The answers of an operation other than errors, by status. */
export function findSuccesses(facts: Facts, method: DescribedMethod, schemas: Schemas): Successes {
  switch (method) {
    case 'GET':
      return facts.isListing ? listAnswers(facts, schemas, 'Accept-Query') : readAnswers(facts, schemas)
    case 'QUERY':
      return listAnswers(facts, schemas, 'Location of GET')
    case 'POST':
      return createAnswers(facts, schemas)
    case 'PUT':
      return facts.kind === 'file' ? REPLACED_FILE : replaceAnswers(facts, schemas)
    case 'PATCH':
      return patchAnswers(facts, schemas)
    case 'DELETE':
      return facts.kind === 'operation' ? CANCELLED : removeAnswers(facts, schemas)
  }
}

/** The store tells no version of a file, which is written beside its item. */
const REPLACED_FILE: Successes = {
  201: { text: 'Created. The item says of the file what is known of it.', headers: ['Location'] },
  204: { text: 'Replaced. The item says of the file what is known of it.', headers: [] },
}
const CANCELLED: Successes = {
  204: { text: 'Cancelled, or forgotten where the work has ended.', headers: [] },
}

/** @param own the header of a page where lists take queries */
function listAnswers(facts: Facts, schemas: Schemas, own: 'Accept-Query' | 'Location of GET'): Successes {
  const { query } = facts
  const [text, items] = describeEntries(facts, schemas)
  const headers: HeaderName[] = ['ETag', 'Link']
  if (query !== undefined) headers.push(own)
  if (query?.allowsCount === true) headers.push('X-Total-Count')
  return {
    200: { text, headers, content: { 'application/json': { schema: { type: 'array', items } } } },
    304: { text: 'The page has not changed.', headers: ['ETag', 'Link'] },
  }
}

/** The entries of a page: items of JSON as they are; of anything else that is here, where it is. */
function describeEntries(facts: Facts, schemas: Schemas): readonly [text: string, schema: JsonObject] {
  const entry = schemas.shared('Entry')
  if (facts.json !== 'all') return ['A page of the items: where each is, and what it is.', entry]
  const { output } = schemas.of(facts)
  if (!facts.listsOthers) return ['A page of the items.', output]
  return ['A page of the items, and of other resources that are here: where each is.', { anyOf: [output, entry] }]
}

function readAnswers(facts: Facts, schemas: Schemas): Successes {
  const content = representation(facts, schemas)
  const headers: HeaderName[] = [...VALIDATORS, 'Accept-Ranges', ...contentHeaders(facts)]
  if (facts.showsWork) headers.push('Retry-After')
  if (facts.kind === 'open') headers.push('Link')
  const bytes = Object.fromEntries([...Object.keys(content), 'multipart/byteranges'].map((type) => [type, {}]))
  // A part of JSON has no schema, and without one a typed client would lose the type of the whole as well.
  const part =
    facts.json === 'all'
      ? { text: 'The bytes that Range asks for, in the media type of the representation, or as multipart/byteranges.' }
      : { text: 'The bytes that Range asks for.', content: bytes }
  const work = facts.showsWork ? ', with Retry-After while the work goes on' : ''
  return {
    200: { text: `The representation${work}.`, headers, content },
    206: { ...part, headers: [...headers, 'Content-Range'] },
    304: {
      text: 'The representation has not changed.',
      headers: facts.kind === 'open' ? [...VALIDATORS, 'Link'] : VALIDATORS,
    },
    ...(facts.redirects && { 307: REDIRECT }),
  }
}

function createAnswers(facts: Facts, schemas: Schemas): Successes {
  if (facts.acceptsItems) {
    const text = 'The item is accepted, and its content is worked on; Location is the item, which says its state.'
    return { 202: { text, headers: ['Location', PREFERRED] } }
  }
  const isItem = facts.json === 'all'
  const headers: HeaderName[] = ['Location', PREFERRED]
  if (isItem || facts.kind === 'open') headers.push('Content-Location', ...VALIDATORS)
  if (isItem) headers.push(...contentHeaders(facts))
  const schema = isItem
    ? schemas.of(facts).output
    : facts.kind === 'open'
      ? {}
      : objectOf({ id: describeName(facts.ids) })
  const media = { schema, ...(isItem && examplesOf(facts, 'output')) }
  const text = `The new item${isItem ? '' : "'s id"}, or no content with \`Prefer: return=minimal\`.`
  return { 201: { text, headers, content: { 'application/json': media } } }
}

function replaceAnswers(facts: Facts, schemas: Schemas): Successes {
  const headers: HeaderName[] = [...VALIDATORS, PREFERRED, 'Content-Location', ...contentHeaders(facts)]
  const content = stored(facts, schemas)
  const isShown = facts.putResponse === 'representation'
  const asked = isShown ? '' : ' that `Prefer: return=representation` asks for'
  const minimal = isShown ? ', with `Prefer: return=minimal`' : ''
  const verb = facts.createsByPut ? 'Created' : facts.restoresByPut ? 'Restored' : undefined
  // RFC 9110 §9.3.4: no validator where the content is not stored as it was sent.
  const tag =
    'ETag is there only where the content is stored as it was sent: without it, read again before the next write.'
  return {
    200: { text: `Replaced, with the representation${asked}. ${tag}`, headers, content },
    ...(verb !== undefined && {
      201: {
        text: `${verb}; with the representation where \`Prefer: return=representation\` asks for it. ${tag}`,
        headers: ['Location', ...headers],
        content,
      },
    }),
    204: { text: `Replaced${minimal}. ${tag}`, headers: [...VALIDATORS, PREFERRED] },
  }
}

function patchAnswers(facts: Facts, schemas: Schemas): Successes {
  const headers: HeaderName[] = [...VALIDATORS, PREFERRED]
  return {
    200: {
      text: 'Changed: the representation.',
      headers: [...headers, 'Content-Location', ...contentHeaders(facts)],
      content: stored(facts, schemas),
    },
    204: { text: 'Nothing had to be changed, or `Prefer: return=minimal`.', headers },
  }
}

function removeAnswers(facts: Facts, schemas: Schemas): Successes {
  const { mayBeQueued, deleteResponse } = facts
  const isQueued = facts.deletion === 'queued'
  const when = isQueued ? '' : ', with `Prefer: respond-async`'
  const accepted: Success = {
    text: `The removal is accepted${when}; Location is its monitor.`,
    headers: ['Location', PREFERRED],
  }
  const later = mayBeQueued ? { 202: accepted } : {}
  if (isQueued) return later
  const headers: HeaderName[] = deleteResponse === 'tag' ? ['ETag', PREFERRED] : [PREFERRED]
  const isShown = deleteResponse === 'representation'
  const usual = isShown || deleteResponse === 'confirmation'
  const asked = usual ? '' : ', with `Prefer: return=representation`'
  return {
    200: {
      text: `Removed: the ${isShown ? 'last representation' : 'confirmation'}${asked}.`,
      headers: [...headers, ...(isShown ? contentHeaders(facts) : [])],
      content: isShown
        ? orConfirmation(stored(facts, schemas), schemas)
        : { 'application/json': { schema: schemas.shared('Removal') } },
    },
    ...later,
    204: { text: `Removed${usual ? ', with `Prefer: return=minimal`' : ''}.`, headers },
  }
}

/** What a store keeps in pieces is gone when the answer is made: it is confirmed instead. */
function orConfirmation(content: JsonObject, schemas: Schemas): JsonObject {
  const json = content['application/json']
  const schema = isJsonObject(json) ? json['schema'] : undefined
  const either = schema === undefined ? {} : { schema: { anyOf: [schema, schemas.shared('Removal')] } }
  return { ...content, 'application/json': either }
}

function contentHeaders(facts: Facts): readonly HeaderName[] {
  const language = facts.storedHeaders.includes('Content-Language') ? (['Content-Language'] as const) : []
  return facts.json === 'all' ? language : [...language, 'Content-Disposition']
}

/** The content of GET: the stored representation and those made from it. */
function representation(facts: Facts, schemas: Schemas): JsonObject {
  const made = facts.offers.map(({ essence }) => [essence, describeText(essence)])
  return { ...stored(facts, schemas), ...(Object.fromEntries(made) as JsonObject) }
}

/** Text is a string to typed clients, and other content is what each makes of it. */
function describeText(type: string): JsonObject {
  return type.startsWith('text/') ? { schema: TEXT } : {}
}

/** The stored representation, by media range. */
function stored(facts: Facts, schemas: Schemas): JsonObject {
  const { schema, documentation, json, types } = facts
  const isKnown = json === 'all' || (json === 'some' && (schema ?? documentation.jsonSchema) !== undefined)
  const media = isKnown ? { schema: schemas.of(facts).output, ...examplesOf(facts, 'output') } : {}
  const content: Record<string, JsonValue> = {}
  for (const type of types) content[type] = isJsonType(type) ? media : describeText(type)
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
