import type { JsonValue } from '../core/json.ts'
import { listOf, oneOf, SIZE, TEXT, type ValueRule } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { isJsonRange, parseMediaType } from '../protocol/media-type.ts'
import { checkMethods, checkResourceOptions, RESOURCE_OPTIONS, type ResourceOptions } from './resource-options.ts'

export interface DocumentOptions<Value = JsonValue> extends ResourceOptions<Value> {
  /**
   * Media ranges that PUT takes. JSON types alone make it a JSON resource, parsed and validated. A collection of JSON
   * resources lists whole items; other collections list `{ id, href, type, size }`. Default: all types; for a collection
   * `application/json`.
   */
  readonly types?: readonly string[]
  /** The most bytes of content that is not parsed. Default `Infinity`. */
  readonly maxSize?: number
  /**
   * Request fields that are stored with the content and sent with it again; of Content-Disposition the file name.
   * Default: none.
   */
  readonly storedHeaders?: readonly ('Content-Language' | 'Content-Disposition')[]
  /** Media ranges that browsers may show in place although they can run scripts in this origin. Default: none. */
  readonly allowInline?: readonly string[]
}

export interface SingletonOptions<Value = JsonValue> extends ResourceOptions<Value> {
  /** Further paths of the same resource. Default: none. */
  readonly aliases?: readonly string[]
}

const MEDIA_RANGE: ValueRule = {
  accepts: (value) => typeof value === 'string' && parseMediaType(value) !== undefined,
  text: "a media range such as 'image/*'",
}

export const DOCUMENT_OPTIONS: OptionTable<DocumentOptions> = {
  ...RESOURCE_OPTIONS,
  types: listOf(MEDIA_RANGE, 1),
  maxSize: SIZE,
  storedHeaders: listOf(oneOf('Content-Language', 'Content-Disposition')),
  allowInline: listOf(MEDIA_RANGE),
}

const SINGLETON_OPTIONS: OptionTable<SingletonOptions> = { ...RESOURCE_OPTIONS, aliases: listOf(TEXT) }

/** @throws TypeError for options that do not exist or contradict each other */
export function readDocumentOptions(given: DocumentOptions | undefined): Readonly<DocumentOptions> {
  const options = resolveOptions('document', given, DOCUMENT_OPTIONS)
  checkResourceOptions('document', options)
  checkMethods('document', 'methods', options.methods, ['GET', 'PUT', 'PATCH', 'DELETE'])
  checkStampedTypes('document', options, ['*/*'])
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

/** @throws TypeError for a hook that would see only some of the content: what is not JSON is kept byte for byte */
export function checkStampedTypes(
  owner: string,
  { beforeWrite, types }: Readonly<DocumentOptions<JsonValue>>,
  usual: readonly string[],
): void {
  if (beforeWrite === undefined || (types ?? usual).every(isJsonRange)) return
  throw new TypeError(`${owner} has a beforeWrite, which changes JSON: its types must be JSON types alone.`)
}
