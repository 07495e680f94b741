import { collectFields, type FilePart, type FormField, parseForm } from '../body-types/form.ts'
import { checkParsedJson } from '../body-types/json.ts'
import { parseMultipart } from '../body-types/multipart.ts'
import { splitMultipart } from '../body-types/multipart-parser.ts'
import { decodeText, isUtf8Charset } from '../body-types/text.ts'
import type { StandardSchema } from '../core/definition-types.ts'
import { HttpError } from '../core/errors.ts'
import { defineMember, formatPointerStep, type JsonObject, type JsonValue, readMember } from '../core/json.ts'
import { andThen, atOnce, type MaybePromise } from '../core/maybe-promise.ts'
import { declaredLength } from '../core/request-content.ts'
import { parsePointer } from '../patch-formats/json-pointer.ts'
import { isJsonType, type MediaType, parseMediaType, withoutCharset } from '../protocol/media-type.ts'
import {
  discardContent,
  isAsSent,
  isDecodedText,
  readContent,
  SMALL_CONTENT,
  streamContent,
  type TakenContent,
  takeAtHand,
  takeIn,
} from './content.ts'
import { fitsBelow, type MemberFile, type NewMember, newMemberOf } from './new-member.ts'
import { JSON_NUMBER } from './query-rules.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { CollectionFacts } from './route.ts'
import { scopeNamesOf } from './scope.ts'
import { splitProperties, summarizeFile } from './server-properties.ts'
import { invalid, toContentError, validateValue, WrittenDocument } from './validation.ts'

/** Makes a member of what a form says: urlencoded, multipart, or plain text where the collection has a member for it. */
export function readForm(exchange: ResourceExchange): MaybePromise<NewMember> {
  const { limits } = exchange.route.context
  const { textProperty } = exchange.route.collection!
  const type: MediaType = { essence: exchange.contentType, parameters: exchange.contentParameters }
  if (type.essence === 'multipart/form-data') return readMultipart(exchange, type)
  return readContent(exchange, limits.bodySize, (exchange, bytes) => {
    const charset = type.parameters.get('charset')
    if (type.essence !== 'text/plain') return complete(exchange, parseForm(bytes, limits, charset), [])
    const value = decodeText(bytes, isDecodedText(exchange) ? 'utf-8' : charset)
    return complete(exchange, [{ kind: 'field', name: textProperty!, value }], [])
  })
}

/** A form that says that it is small is taken apart in one go; any other as it arrives. */
function readMultipart(exchange: ResourceExchange, type: MediaType): MaybePromise<NewMember> {
  const length = declaredLength(exchange)
  if (length === undefined || length > SMALL_CONTENT || !isAsSent(exchange)) return streamMultipart(exchange, type)
  return readContent(exchange, SMALL_CONTENT, (exchange, content) => {
    const form = createForm(exchange)
    for (const part of splitMultipart(content, type, form.limits)) {
      if (part.kind === 'field') form.addField(part)
      else {
        form.expect(part)
        form.addFile(part, takeAtHand(exchange, part.content))
        form.fingerprint?.addFile(part, part.content)
      }
    }
    return form.complete()
  })
}

async function streamMultipart(exchange: ResourceExchange, type: MediaType): Promise<NewMember> {
  const form = createForm(exchange)
  const bodies: TakenContent['body'][] = []
  try {
    const source = streamContent(exchange, Number.POSITIVE_INFINITY)
    for await (const part of parseMultipart(source, type, form.limits)) {
      if (part.kind === 'field') form.addField(part)
      else {
        form.expect(part)
        const content = form.fingerprint?.tapFile(part) ?? part.content
        const taken = await takeIn(exchange, content)
        bodies.push(taken.body)
        form.addFile(part, taken)
      }
    }
    return await form.complete()
  } catch (error) {
    // Nothing refers to what was taken in so far.
    for (const body of bodies) await discardContent({ body })
    throw error
  }
}

type FileHead = Pick<FilePart, 'name' | 'filename' | 'contentType'>
type FormFile = MemberFile & { readonly summary: JsonValue | undefined }

/** What has come of a form. */
function createForm(exchange: ResourceExchange) {
  const collection = exchange.route.collection!
  const fingerprint = exchange.keyed?.fingerprint
  const fields: FormField[] = []
  const files: FormFile[] = []
  return {
    limits: collection.formLimits,
    fingerprint,
    addField(field: FormField) {
      fields.push(field)
      fingerprint?.addField(field)
    },
    expect: ({ name }: FileHead) => requireKnownFile(exchange, name, files),
    addFile({ name, filename, contentType: sentType }: FileHead, { body, size }: TakenContent) {
      // What a browser sends for a file input in which nothing was chosen.
      if (filename === undefined && size === 0) return
      const contentType = typeOfFile(sentType)
      const facts = { name: filename ?? name, type: contentType, size }
      const describe = collection.files === 'any' ? undefined : collection.files.get(name)?.describe
      const summary = summarizeFile(describe, facts)
      files.push({ name, content: { contentType, filename: facts.name, body }, summary })
    },
    complete() {
      fingerprint?.endForm()
      requireFiles(collection, files)
      return complete(exchange, fields, files)
    },
  }
}

/** The type of a file, as PUT of it stores it: JSON has no charset (RFC 8259 §11). */
function typeOfFile(sent: string): string {
  const type = parseMediaType(sent)
  if (type === undefined || !isJsonType(type.essence)) return sent
  const charset = type.parameters.get('charset')
  const isKept = charset === undefined ? type.parameters.size > 0 : !isUtf8Charset(charset)
  return isKept ? sent : withoutCharset(type)
}

/** @throws HttpError 422 for a file that the collection does not take, or takes only once */
function requireKnownFile(exchange: ResourceExchange, name: string, taken: readonly MemberFile[]): void {
  const { route } = exchange
  const { files } = route.collection!
  // A file of the name has a path of its own; what the item says of it is not a property of the scope.
  const isName = /^(?!\.{1,2}$)[^/\\\u0000-\u001f\u007f]+$/.test(name) && !scopeNamesOf(route).includes(name)
  const isKnown = files === 'any' ? isName : files.has(name)
  if (!isKnown) throw invalid([{ pointer: formatPointerStep(name), detail: 'No file is expected here.' }])
  if (!fitsBelow(exchange, name)) {
    throw invalid([{ pointer: formatPointerStep(name), detail: 'The path of the file might be too long.' }])
  }
  if (taken.some((file) => file.name === name)) {
    throw invalid([{ pointer: formatPointerStep(name), detail: 'One file is expected here.' }])
  }
}

/** @throws HttpError 422 for a file that is missing */
function requireFiles({ files }: CollectionFacts, taken: readonly MemberFile[]): void {
  if (files === 'any') return
  const missing = [...files].filter(([name, { required }]) => required && !taken.some((file) => file.name === name))
  if (missing.length === 0) return
  throw invalid(missing.map(([name]) => ({ pointer: formatPointerStep(name), detail: 'A file is required.' })))
}

/** Fields as one JSON document: names mapped, text coerced to what the schema takes; what is known of files is added later. */
function complete(
  exchange: ResourceExchange,
  fields: readonly FormField[],
  files: readonly FormFile[],
): MaybePromise<NewMember> {
  const { schema, collection, context } = exchange.route
  const document = collectFields(mapNames(fields, collection!.formFields)) as Record<string, JsonValue>
  // Forms have text alone: what they say of the scope is compared as a value of its kind. The schema does not know it.
  for (const [name, value] of Object.entries(exchange.scope ?? {})) {
    const text = readMember(document, name)
    if (typeof text === 'string' && coerceText(text) === value) document[name] = value
  }
  const facts: Record<string, JsonValue> = {}
  for (const { name, summary } of files) {
    if (Object.hasOwn(document, name))
      throw invalid([{ pointer: formatPointerStep(name), detail: 'Given as text and as a file.' }])
    if (summary !== undefined) defineMember(facts, name, summary)
  }
  // What JSON is refused for is refused in a form as well: U+0000, which not every store can keep.
  checkParsedJson(document, context.limits)
  if (files.length > 0) checkParsedJson(facts, context.limits)
  return andThen(schema === undefined ? document : coerce(document, schema, scopeNamesOf(exchange.route)), (value) =>
    newMemberOf(exchange, new WrittenDocument(value), files, facts),
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
 * @param unseen names of properties that the schema does not see: their text stays text
 */
function coerce(document: JsonObject, schema: StandardSchema, unseen: readonly string[]): MaybePromise<JsonObject> {
  const seen = splitProperties(document, unseen).rest as JsonObject
  // It is asked once more when all is known, and may change its input in place.
  return andThen(validateValue(schema, structuredClone(seen)), (result) => {
    if (result?.issues === undefined) return document
    const coerced: Record<string, JsonValue> = { ...document }
    for (const issue of atOnce(result.issues)) {
      const [name = '', ...rest] = parsePointer(toContentError(issue).pointer)!
      const text = rest.length === 0 && Object.hasOwn(seen, name) ? seen[name] : undefined
      if (typeof text === 'string') defineMember(coerced, name, coerceText(text))
    }
    return coerced
  })
}

function coerceText(text: string): JsonValue {
  if (text === 'true') return true
  if (text === 'false') return false
  if (text.length > 32 || !JSON_NUMBER.test(text)) return text
  const value = Number(text)
  // A number that would be rounded is none that was sent.
  const isRounded = Number.isInteger(value) && !Number.isSafeInteger(value)
  return Number.isFinite(value) && !isRounded ? value : text
}
