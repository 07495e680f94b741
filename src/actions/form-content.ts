import { collectFields, parseForm } from '../body-types/form.ts'
import { checkParsedJson } from '../body-types/json.ts'
import { parseMultipart } from '../body-types/multipart.ts'
import { decodeText } from '../body-types/text.ts'
import type { FilePart, FormField } from '../body-types/types.ts'
import { type ContentError, HttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/handler.ts'
import { defineMember, type JsonObject, type JsonValue } from '../core/json.ts'
import type { StandardSchema } from '../core/standard-schema.ts'
import type { MediaType } from '../protocol/media-type.ts'
import { discardContent, readContent, streamContent } from './content.ts'
import { type MemberFile, type NewMember, newMemberOf } from './new-member.ts'
import { readSmall } from './read-small.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { CollectionFacts } from './route.ts'
import { invalid, toContentError, validateValue } from './validation.ts'

/** Makes a member of what a form says: urlencoded, multipart, or plain text where the collection has a member for it. */
export function readForm(exchange: ResourceExchange, type: MediaType): MaybePromise<NewMember> {
  const { limits } = exchange.route.context
  const { textMember } = exchange.route.collection!
  switch (type.essence) {
    case 'multipart/form-data':
      return readMultipart(exchange, type)
    case 'text/plain':
      return andThen(readContent(exchange, limits.parsedSize), (bytes) => {
        const value = decodeText(bytes, type.parameters.get('charset'))
        return complete(exchange, [{ kind: 'field', name: textMember!, value }], [])
      })
    default:
      return andThen(readContent(exchange, limits.parsedSize), (bytes) =>
        complete(exchange, parseForm(bytes, limits, type.parameters.get('charset')), []),
      )
  }
}

async function readMultipart(exchange: ResourceExchange, type: MediaType): Promise<NewMember> {
  const { context, collection } = exchange.route
  const fields: FormField[] = []
  const files: (MemberFile & { readonly summary: JsonObject })[] = []
  try {
    const source = streamContent(exchange, Number.POSITIVE_INFINITY)
    for await (const part of parseMultipart(source, type, context.limits)) {
      if (part.kind === 'field') fields.push(part)
      else {
        requireKnownFile(part, collection!, files)
        const file = await takeFile(exchange, part)
        // What a browser sends for a file input in which nothing was chosen.
        if (part.filename !== undefined || file.summary['size'] !== 0) files.push(file)
      }
    }
    requireFiles(collection!, files)
    return await complete(exchange, fields, files)
  } catch (error) {
    // Nothing refers to what was taken in so far.
    for (const { content } of files) await discardContent(content)
    throw error
  }
}

async function takeFile(exchange: ResourceExchange, part: FilePart): Promise<MemberFile & { summary: JsonObject }> {
  const { store, limits } = exchange.route.context
  const taken = await readSmall(part.content, limits, store)
  const filename = part.filename ?? part.name
  return {
    name: part.name,
    content: { contentType: part.contentType, filename, body: taken.body },
    summary: { name: filename, type: part.contentType, size: taken.size },
  }
}

/** @throws HttpError 422 for a file that the collection does not take, or takes only once */
function requireKnownFile(part: FilePart, { files }: CollectionFacts, taken: readonly MemberFile[]): void {
  const isNameable = /^[^/\\\u0000-\u001f\u007f]+$/.test(part.name) && part.name !== '.' && part.name !== '..'
  const isKnown = files === 'any' ? isNameable : files.has(part.name)
  const pointer = '/' + part.name.replaceAll('~', '~0').replaceAll('/', '~1')
  if (!isKnown) throw invalid([{ pointer, detail: 'No file is expected here.' }])
  if (taken.some((file) => file.name === part.name)) throw invalid([{ pointer, detail: 'One file is expected here.' }])
}

/** @throws HttpError 422 for a file that is missing */
function requireFiles({ files }: CollectionFacts, taken: readonly MemberFile[]): void {
  if (files === 'any') return
  const errors: ContentError[] = []
  for (const [name, { required }] of files) {
    if (required && !taken.some((file) => file.name === name)) {
      errors.push({ pointer: `/${name}`, detail: 'A file is required.' })
    }
  }
  if (errors.length > 0) throw invalid(errors)
}

/** Fields and files as one JSON document: names mapped, text coerced to what the schema takes. */
function complete(
  exchange: ResourceExchange,
  fields: readonly FormField[],
  files: readonly (MemberFile & { readonly summary: JsonObject })[],
): MaybePromise<NewMember> {
  const { schema, collection } = exchange.route
  const document = collectFields(mapNames(fields, collection!.form)) as Record<string, JsonValue>
  for (const { name, summary } of files) {
    if (Object.hasOwn(document, name)) throw invalid([{ pointer: `/${name}`, detail: 'Given as text and as a file.' }])
    defineMember(document, name, summary)
  }
  // What JSON is refused for is refused in a form as well: U+0000, which not every store can keep.
  checkParsedJson(document)
  return andThen(schema === undefined ? document : coerce(document, schema), (value) =>
    newMemberOf(exchange, { value, text: JSON.stringify(value), isVerbatim: false }, files),
  )
}

/** @throws HttpError 400 when a member is given under both of its names */
function mapNames(fields: readonly FormField[], form: ReadonlyMap<string, string>): readonly FormField[] {
  if (form.size === 0) return fields
  const given = new Set(fields.map((field) => field.name))
  return fields.map((field) => {
    const member = form.get(field.name)
    if (member === undefined) return field
    if (given.has(member)) {
      throw new HttpError(400, 'ERR_MALFORMED_BODY', {
        detail: `The fields ${field.name} and ${member} are two names for one value.`,
      })
    }
    return { ...field, name: member }
  })
}

/**
 * Reads numbers and booleans out of the text of a form, where the schema refuses the text. A schema cannot be asked for
 * its types, but it can be asked whether it likes a value.
 */
function coerce(document: JsonObject, schema: StandardSchema): MaybePromise<JsonObject> {
  return andThen(validateValue(schema, document), (result) => {
    if (result.issues === undefined) return document
    const coerced: Record<string, JsonValue> = { ...document }
    for (const issue of result.issues) {
      const pointer = toContentError(issue).pointer
      const name = pointer.slice(1).replaceAll('~1', '/').replaceAll('~0', '~')
      const text = Object.hasOwn(document, name) ? document[name] : undefined
      if (typeof text === 'string') defineMember(coerced, name, coerceText(text))
    }
    return coerced
  })
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

function coerceText(text: string): JsonValue {
  if (text === 'true') return true
  if (text === 'false') return false
  if (text.length > 32 || !NUMBER.test(text)) return text
  const value = Number(text)
  // A number that would be rounded is none that was sent.
  const isRounded = Number.isInteger(value) && !Number.isSafeInteger(value)
  return Number.isFinite(value) && !isRounded ? value : text
}
