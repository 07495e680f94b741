import type { DeletionMode } from '../actions/route.ts'
import type { JsonValue } from '../core/json.ts'
import { listOf, oneOf, PERIOD, SIZE, TEXT, type ValueRule } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { includesJson, isJsonRange, isMediaRange } from '../protocol/media-type.ts'
import type { Method } from '../protocol/request-line.ts'
import {
  checkMethods,
  checkResourceOptions,
  RESOURCE_OPTIONS,
  type ResourceOptions,
  SOME_METHODS,
} from './resource-options.ts'

/** Options of `document`: those of content, and of all resources. */
export interface DocumentOptions<Value = JsonValue, KindMethod extends Method = 'GET' | 'PUT' | 'PATCH' | 'DELETE'>
  extends ResourceOptions<Value, KindMethod> {
  /**
   * Media ranges that PUT takes. JSON types alone make it a JSON resource, parsed and validated. PATCH needs a JSON
   * type among them. A collection of JSON resources lists whole items; other collections list `{ id, href, type, size }`.
   * Default: all types; for a collection `application/json`.
   */
  readonly types?: readonly string[]
  /**
   * The most bytes of content that is not parsed: of one file, in a form too. No patch makes a document larger
   * than that. Default `Infinity`.
   */
  readonly maxSize?: number
  /**
   * Request fields that are stored with the content and sent with it again; of Content-Disposition the file name, which JSON
   * resources do not send. Default: none.
   */
  readonly storedHeaders?: readonly ('Content-Language' | 'Content-Disposition')[]
  /** Media ranges that browsers may show in place although they can run scripts in this origin. Default: none. */
  readonly allowInline?: readonly string[]
  /**
   * What DELETE does. `'hard'`: content goes. `'soft'`: hidden, readable with `?deleted=true` where `authorize` allows,
   * restored by PUT. `'queued'`: done later, 202 with a monitor. Default `'hard'`.
   */
  readonly deletion?: DeletionMode
  /**
   * The response to DELETE. `'none'`: 204. `'tag'`: 204 with the ETag of what was removed. `'confirmation'`: 200 with
   * `{ deleted, id }`. `'representation'`: 200 with what was removed, or the confirmation where the store keeps that in
   * pieces. Default `'none'`.
   */
  readonly deleteResponse?: 'none' | 'tag' | 'confirmation' | 'representation'
  /**
   * Milliseconds for which a removal is remembered (410); 0 leaves no trace (404). Not beside `deletion: 'soft'`, which keeps
   * what it hides. Default: the store's, 30 days.
   */
  readonly retention?: number
}

/** The options that collections and documents share, whatever their methods. */
export type SharedOptions = Readonly<DocumentOptions<JsonValue, Method>>

/** Options of `singleton`: `aliases`, and those of all resources. */
export interface SingletonOptions<Value = JsonValue> extends ResourceOptions<Value, 'GET' | 'PUT' | 'PATCH'> {
  /** Further paths of the same resource. Default: none. */
  readonly aliases?: readonly string[]
}

/** The type of content is compared with it in lower case (RFC 9110 §8.3.1), and without its parameters. */
const MEDIA_RANGE: ValueRule = {
  accepts: (value) => typeof value === 'string' && isMediaRange(value) && value === value.toLowerCase(),
  text: "a media range such as 'image/*', in lower case and without parameters",
}

export const DOCUMENT_OPTIONS: OptionTable<DocumentOptions> = {
  ...RESOURCE_OPTIONS,
  methods: SOME_METHODS,
  types: listOf(MEDIA_RANGE, 1),
  maxSize: SIZE,
  storedHeaders: listOf(oneOf('Content-Language', 'Content-Disposition')),
  allowInline: listOf(MEDIA_RANGE),
  deletion: oneOf('hard', 'soft', 'queued'),
  deleteResponse: oneOf('none', 'tag', 'confirmation', 'representation'),
  retention: PERIOD,
}

const SINGLETON_OPTIONS: OptionTable<SingletonOptions> = {
  ...RESOURCE_OPTIONS,
  methods: SOME_METHODS,
  aliases: listOf(TEXT),
}

/** @throws TypeError for options that do not exist or contradict each other */
export function readDocumentOptions(given: DocumentOptions | undefined): Readonly<DocumentOptions> {
  const options = resolveOptions('document', given, DOCUMENT_OPTIONS)
  checkResourceOptions('document', options)
  checkMethods('document', 'methods', options.methods, ['GET', 'PUT', 'PATCH', 'DELETE'])
  const { types = ['*/*'] } = options
  checkContentOptions('document', options, { types, files: false, methods: options.methods })
  if (options.idempotency !== undefined && !types.some(includesJson)) {
    throw new TypeError('document has idempotency, which is about PATCH: none of its types is a JSON type.')
  }
  return options
}

/** @throws TypeError for options that do not exist or contradict each other */
export function readSingletonOptions(given: SingletonOptions | undefined): Readonly<SingletonOptions> {
  const options = resolveOptions('singleton', given, SINGLETON_OPTIONS)
  checkResourceOptions('singleton', options)
  checkMethods('singleton', 'methods', options.methods, ['GET', 'PUT', 'PATCH'])
  for (const alias of options.aliases ?? []) {
    if (alias.includes('{')) throw new TypeError('singleton takes aliases without {names}: they are one resource.')
  }
  return options
}

/** Options that need a JSON type, and options that need another one. */
const ABOUT_JSON = ['schema', 'jsonAsMergePatch'] as const
const ABOUT_OTHER_CONTENT = ['maxSize', 'allowInline'] as const

/**
 * @param has the types of the content, whether there are files, which may be of any type, and the methods that are named
 * @throws TypeError for options that have no effect on such content, or beside each other
 */
export function checkContentOptions(
  owner: string,
  options: SharedOptions,
  has: { readonly types: readonly string[]; readonly files: boolean; readonly methods: readonly string[] | undefined },
): void {
  const isJson = has.types.every(isJsonRange)
  const find = <Name extends keyof DocumentOptions>(names: readonly Name[]): Name | undefined =>
    names.find((name) => options[name] !== undefined && options[name] !== false)
  const patch = has.methods?.includes('PATCH') === true ? 'PATCH' : undefined
  const aboutJson = has.types.some(includesJson) ? undefined : (find(ABOUT_JSON) ?? patch)
  if (aboutJson !== undefined) {
    throw new TypeError(`${owner} has ${aboutJson}, which is about JSON: none of its types is a JSON type.`)
  }
  // What is not JSON is kept byte for byte: the hook would see only some of the content.
  if (options.beforeWrite !== undefined && !isJson) {
    throw new TypeError(`${owner} has a beforeWrite, which changes JSON: its types must be JSON types alone.`)
  }
  const aboutOther = isJson && !has.files ? find(ABOUT_OTHER_CONTENT) : undefined
  if (aboutOther !== undefined) {
    throw new TypeError(`${owner} has ${aboutOther}, which is about content that is not JSON: it takes JSON alone.`)
  }
  if (options.deletion === 'soft' && options.retention !== undefined) {
    throw new TypeError(`${owner} keeps what it removes softly for good: retention has no effect there.`)
  }
  if (options.deletion === 'queued' && options.deleteResponse !== undefined) {
    throw new TypeError(`${owner} answers a queued DELETE with 202 and a monitor: deleteResponse has no effect there.`)
  }
}
