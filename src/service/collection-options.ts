import type { FileOptions, Process } from '../actions/hook-types.ts'
import type { CollectionFacts } from '../actions/route.ts'
import type { JsonObject, JsonValue } from '../core/json.ts'
import {
  BOOLEAN,
  FUNCTION,
  numberThat,
  oneOf,
  RECORD,
  recordOf,
  TEXT,
  withDefault,
  writtenAs,
} from '../core/option-values.ts'
import { changeOptions, type OptionTable, resolveOptions } from '../core/options.ts'
import { isJsonRange } from '../protocol/media-type.ts'
import { JSON_ONLY } from './compile-route.ts'
import { checkContentOptions, DOCUMENT_OPTIONS, type DocumentOptions } from './document-options.ts'
import { ownProperties, QUERY_OPTIONS, type QueryOptions, readQueryOptions } from './query-options.ts'
import { CACHE_CONTROL, checkMethods, checkResourceOptions, SOME_METHODS } from './resource-options.ts'

/** Options of `collection`: those of a collection, of its items and of all resources. */
export interface CollectionOptions<Value = JsonObject> extends DocumentOptions<Value, 'GET' | 'POST'>, QueryOptions {
  /** Cache-Control of responses to POST, which caches may keep only with explicit freshness. Default `no-store`. */
  readonly postCacheControl?: string
  /** `'accepted'`: POST answers 202, the item says `"state": "pending"` until `process` is done. Default `'created'`. */
  readonly create?: 'created' | 'accepted'
  /** The work behind an accepted creation. Without it, items are `"ready"` at once. */
  readonly process?: Process<Value>
  /** Form field names and the properties they stand for: `{ pri: 'priority' }`. Default: the same. */
  readonly formFields?: Readonly<Record<string, string>>
  /** The property that the content of a text/plain POST becomes. Default: such a POST is 415, or stored as it is. */
  readonly textProperty?: string
  /**
   * File parts that a multipart POST may carry, by name. Each becomes a resource below the item. A property of the same name
   * in the item holds what `describe` makes of its `name`, `type` and `size`, or all three. A part that is `required` and
   * missing is 422. The server keeps the property, as it does the `id`: the `schema` does not see it, PUT may leave it out,
   * and another value is 409 (422 for POST). Needs items of JSON. Default: none; any for accepting collections.
   */
  readonly files?: Readonly<Record<string, FileOptions>>
  /**
   * Names of items. `'integer'`: the next integer. `'string'`: clients may choose any name, POST takes the next
   * integer. `'uuid'`: random, for items that must not be guessed. Default `'integer'`; `'string'` for raw content.
   */
  readonly ids?: 'integer' | 'string' | 'uuid'
  /**
   * Whether PUT to the path of a new item creates it. Default true; false for `'uuid'`, for accepting collections, and with a
   * `scope`, where 404 instead of 201 would show that another caller has the path. Set it to false where writers do not trust
   * each other: POST continues after the highest integer, and after a PUT of 2^53 - 1 no id is left (507).
   */
  readonly clientIds?: boolean
  /**
   * Whether the collection exists only while its parent does, as in `/tasks/{task}/comments`: 404 while the parent does not
   * exist, is deleted, or is refused to a GET of the same caller. DELETE of the parent removes the items. Needs a store that
   * supports `parents`, as all three of this package do. Default false.
   */
  readonly parent?: boolean
  /** Items on a page. Default `{ default: 50, max: 500 }`. */
  readonly pageSize?: { readonly default?: number; readonly max?: number }
  /**
   * The methods of items; files of an item have GET in any case. Default: all but POST; of accepting collections GET and
   * DELETE.
   */
  readonly memberMethods?: readonly ('GET' | 'HEAD' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS')[]
}

const COLLECTION_OPTIONS: OptionTable<CollectionOptions<JsonValue>> = {
  ...DOCUMENT_OPTIONS,
  ...QUERY_OPTIONS,
  methods: SOME_METHODS,
  postCacheControl: CACHE_CONTROL,
  create: oneOf('created', 'accepted'),
  process: FUNCTION,
  formFields: recordOf(TEXT),
  textProperty: TEXT,
  files: writtenAs(recordOf(RECORD), 'an object of part names, such as { photo: { required: true } }'),
  ids: oneOf('integer', 'string', 'uuid'),
  clientIds: BOOLEAN,
  parent: BOOLEAN,
  pageSize: writtenAs(RECORD, 'an object such as { default: 20, max: 100 }'),
  memberMethods: SOME_METHODS,
}

const FILE_OPTIONS = {
  required: withDefault(BOOLEAN, false),
  describe: FUNCTION,
  replaceable: withDefault(BOOLEAN, false),
} satisfies OptionTable<FileOptions>

/** @throws TypeError for options that do not exist or contradict each other */
export function readCollectionOptions(
  given: CollectionOptions<JsonValue> | undefined,
): Readonly<CollectionOptions<JsonValue>> {
  const options = resolveOptions('collection', given, COLLECTION_OPTIONS)
  checkResourceOptions('collection', options)
  checkMethods('collection', 'methods', options.methods, ['GET', 'POST'])
  checkMethods('collection', 'memberMethods', options.memberMethods, ['GET', 'PUT', 'PATCH', 'DELETE'])
  const { types = JSON_ONLY, files = {}, create } = options
  const hasFiles = create === 'accepted' || Object.keys(files).length > 0
  checkContentOptions('collection', options, { types, files: hasFiles, methods: options.memberMethods })
  checkAcceptance(options)
  if (!types.every(isJsonRange)) refuseJsonOptions(options)
  refuseOwnProperties(options)
  const { textProperty } = options
  if (textProperty !== undefined && Object.values(files).some((file) => file.required === true)) {
    throw new TypeError(
      'collection has a file that is required, so POST takes forms alone: textProperty has no effect there.',
    )
  }
  return changeOptions(options, {
    pageSize: readPageSize(options.pageSize),
    ...readFiles(options.files),
    ...readQueryOptions(options),
  })
}

/** @throws TypeError for what has no effect where creation is accepted, and for what needs that */
function checkAcceptance(options: CollectionOptions<JsonValue>): void {
  if (options.create !== 'accepted') {
    if (options.process === undefined) return
    throw new TypeError("collection has a process, which runs only with create: 'accepted'.")
  }
  if (options.memberMethods?.includes('PUT')) {
    throw new TypeError('collection keeps the state of members that are accepted: PUT would replace it; use PATCH.')
  }
  const aboutPut = options.putResponse !== undefined ? 'putResponse' : options.clientIds === true && 'clientIds'
  if (aboutPut) throw new TypeError(`collection has ${aboutPut}, which is about PUT: accepted items have no PUT.`)
  if (options.postCacheControl !== undefined) {
    throw new TypeError('collection answers an accepted POST with no-store: postCacheControl has no effect there.')
  }
}

const NEED_JSON = ['query', 'scope', 'count', 'files', 'formFields', 'textProperty'] as const

/** @throws TypeError for what needs items of JSON: other content has no properties to read, set or keep */
function refuseJsonOptions(options: CollectionOptions<JsonValue>): void {
  const given = NEED_JSON.find((name) => options[name] !== undefined && options[name] !== false)
  const name = given ?? (options.create === 'accepted' ? 'create' : undefined)
  if (name === undefined) return
  throw new TypeError(`collection has ${name}, which needs items of JSON: types such as ['application/json'].`)
}

/** @throws TypeError for content that would become a property of the server: each request with it would be 422 */
function refuseOwnProperties({
  create,
  files = {},
  formFields = {},
  textProperty,
}: CollectionOptions<JsonValue>): void {
  const own = ownProperties(create)
  const given = { files: Object.keys(files), formFields: Object.values(formFields), textProperty: [textProperty] }
  for (const [option, names] of Object.entries(given)) {
    const name = own.find((name) => names.includes(name))
    if (name !== undefined)
      throw new TypeError(`collection has in ${option} the property ${name}, which the server sets.`)
  }
}

const WHOLE = numberThat((value) => Number.isInteger(value) && value > 0, 'a positive integer')

const PAGE_SIZE_OPTIONS = {
  default: WHOLE,
  max: withDefault(WHOLE, 500),
} satisfies OptionTable<NonNullable<CollectionOptions['pageSize']>>

/** @throws TypeError for a size that is not a positive integer, and for a default above the most */
export function readPageSize(given: CollectionOptions['pageSize']): CollectionFacts['pageSize'] {
  const { max, default: usual = Math.min(50, max) } = resolveOptions('pageSize', given, PAGE_SIZE_OPTIONS)
  if (usual > max) throw new TypeError('pageSize has a default above its max.')
  return Object.freeze({ default: usual, max })
}

function readFiles(files: CollectionOptions['files']): Pick<CollectionOptions, 'files'> {
  if (files === undefined) return {}
  const entries = Object.entries(files).map(([name, file]) => [name, resolveOptions('files', file, FILE_OPTIONS)])
  return { files: Object.freeze(Object.fromEntries(entries)) as NonNullable<CollectionOptions['files']> }
}
