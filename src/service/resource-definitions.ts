import type { AfterCommit, BeforeWrite, Outbox } from '../actions/change-types.ts'
import type { Authorize, ConflictHook, DeletionMode, FileOptions, Rendition } from '../actions/route.ts'
import type { Typed } from '../core/definition-types.ts'
import type { RequestView } from '../core/exchange.ts'
import type { MaybePromise } from '../core/handler.ts'
import type { JsonObject, JsonValue } from '../core/json.ts'
import { BOOLEAN, checkValues, FUNCTION } from '../core/option-values.ts'
import { changeOptions, readOptions } from '../core/options.ts'
import type { StandardSchema } from '../core/standard-schema.ts'
import { isJsonRange } from '../protocol/media-type.ts'
import type { Method } from '../protocol/methods.ts'
import { QUERY_OPTIONS, type QueryOptions, readQueryOptions } from './collection-options.ts'
import { RESOURCE_VALUES } from './definition-values.ts'
import { JSON_ONLY } from './json-types.ts'

/**
 * Options of every kind of resource.
 * @typeParam Value what the schema gives, as hooks see it
 */
export interface ResourceOptions<Value = JsonValue> {
  /** The methods that are allowed, of those that the kind has. Default: all of them. HEAD comes with GET; OPTIONS always. */
  readonly methods?: readonly Method[]
  /**
   * Any Standard Schema (zod, valibot, arktype …). Validates JSON bodies, forms and the results of patches; 422 otherwise.
   * It does not see the properties of the server: `id`, those of `files`, and `state` and `problem` of accepted items.
   * Default: none, any JSON is taken.
   */
  readonly schema?: StandardSchema<unknown, Value>
  /** Cache-Control of successful answers. Default: that of the service, `no-cache`. */
  readonly cacheControl?: string
  /** Cache-Control of answers to POST, which caches may keep only with explicit freshness. Default `no-store`. */
  readonly postCacheControl?: string
  /**
   * `'required'`: changes of what exists need If-Match, If-None-Match or If-Unmodified-Since; 428 otherwise (RFC 6585
   * §3). Default `'optional'`.
   */
  readonly preconditions?: 'optional' | 'required'
  /**
   * Whether content needs a Content-Digest or Repr-Digest by sha-256 or sha-512 (RFC 9530): `'required'` answers 400 with
   * Want-Content-Digest otherwise. A digest that is sent is always verified: 400 where it differs. Default `'optional'`.
   */
  readonly digests?: 'optional' | 'required'
  /** Which requests need credentials. Default: what the service's `auth.requireAuth` says. */
  readonly requireAuth?: 'all' | 'writes' | 'none' | ((request: RequestView) => boolean)
  /** Who may do what; see {@link Authorize}. Default: the service's `auth.authorize`. */
  readonly authorize?: Authorize<Value>
  /** Refuses replacements that conflict with the current state (409); see {@link ConflictHook}. Default: none. */
  readonly conflict?: ConflictHook<Value>
  /**
   * Whether PATCH takes `application/json` as well, as a merge patch (RFC 7396), for clients that cannot name the format.
   * Default false: such a PATCH is 415.
   */
  readonly jsonAsMergePatch?: boolean
  /**
   * Changes JSON before it is stored: stamps an owner, a time, a number; see {@link BeforeWrite}. Only where `types` are
   * JSON types. Not called for the work's own changes of accepted items. Default: none.
   */
  readonly beforeWrite?: BeforeWrite<Value>
  /**
   * Gives resources that are written in the same atomic step as a change: an audit trail, messages to send; see
   * {@link Outbox}. Needs a store that supports `relatedExpect`, as the ready ones do. Default: none.
   */
  readonly outbox?: Outbox<Value>
  /**
   * Called once after each change, in the process that committed it. The response does not wait for it, and `close()` does.
   * After a crash between the commit and the call it is not called: what must not get lost belongs in the `outbox`.
   * Default: none.
   */
  readonly afterCommit?: AfterCommit<Value>
  /** What PUT answers when it replaces: 200 with the representation, or 204. Default `'none'`. */
  readonly putResponse?: 'representation' | 'none'
  /**
   * What DELETE does. `'hard'`: content goes. `'soft'`: hidden, readable with `?deleted=true` where `authorize` allows,
   * restored by PUT. `'queued'`: done later, 202 with a monitor. Default `'hard'`.
   */
  readonly deletion?: DeletionMode
  /**
   * What DELETE answers. `'none'`: 204. `'tag'`: 204 with the ETag of what was removed. `'confirmation'`: 200 with
   * `{ deleted, id }`. `'representation'`: 200 with what was removed. Default `'none'`.
   */
  readonly deleteResponse?: 'none' | 'tag' | 'confirmation' | 'representation'
  /** Milliseconds for which a removal is remembered (410); 0 leaves no trace (404). Default: the store's, 30 days. */
  readonly retention?: number
  /**
   * Whether a POST, or a PATCH without If-Match, that carries an Idempotency-Key is done once, however often it is sent.
   * `'optional'`: where the field is there. `'required'`: a request without it is 400. Needs a store that supports
   * `relatedExpect`, as the ready ones do. Default: the field is ignored.
   */
  readonly idempotency?: 'optional' | 'required'
  /**
   * Milliseconds for which the answer to a key is kept; `Infinity` keeps it for good. A request that comes later with the
   * same key is a new one. Default 24 hours.
   */
  readonly idempotencyRetention?: number
  /** Further representations that are made from the stored one and offered by Accept. Default: none. */
  readonly representations?: readonly Rendition[]
  /**
   * What Accept means where it names nothing that there is. `'strict'`: 406. `'lenient'`: the stored representation is
   * sent. Default `'strict'` for JSON resources and with `representations`; `'lenient'` where content is kept as it was
   * sent, and for files of items, since many clients send an Accept that names something else.
   */
  readonly accept?: 'strict' | 'lenient'
  /** The name of the resource in the OpenAPI description, in the singular: `User`. Default: its path. */
  readonly title?: string
  /** What the resource is, for readers of the OpenAPI description; CommonMark. Default: none. */
  readonly description?: string
  /** Representations by name, for the OpenAPI description: `{ ada: { id: 1, name: 'Ada' } }`. Default: none. */
  readonly examples?: Readonly<Record<string, JsonValue>>
  /**
   * JSON Schema of the content, for the OpenAPI description: one, or `{ input, output }` where requests and answers differ.
   * Default: that of the `schema`, where it has the Standard JSON Schema interface (zod, arktype).
   */
  readonly jsonSchema?: JsonObject | { readonly input: JsonObject; readonly output: JsonObject }
  /** Since when the resource is deprecated: answers carry Deprecation (RFC 9745). Default: it is not. */
  readonly deprecated?: Date | string
  /** When the resource goes away: answers carry Sunset (RFC 8594). Not before `deprecated`. Default: no such field. */
  readonly sunset?: Date | string
}

export interface DocumentOptions<Value = JsonValue> extends ResourceOptions<Value> {
  /**
   * Media ranges that PUT takes. JSON types alone make it a JSON resource, parsed and validated; a collection of it lists
   * whole items, any other `{ id, href, type, size }`. Default: any type; of a collection `application/json`.
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

/** A member of an accepting collection, as its `process` hook gets it. */
export interface AcceptedMember<Value = JsonObject> {
  readonly path: string
  readonly id: string | number
  /** The member as it is stored. */
  readonly value: Value
  /** Reads a file of the member; `undefined` when it has none of that name. */
  file(
    name: string,
  ): Promise<{ readonly contentType: string; readonly size: number; open(): AsyncIterable<Uint8Array> } | undefined>
  /** 1 for the first try. */
  readonly attempt: number
  /** Aborts when the service closes. */
  readonly signal: AbortSignal
}

/**
 * The work behind an accepted creation. It may run more than once (after a crash, on a failure), but ends once.
 * @returns members to add to the representation, or nothing
 * @throws HttpError below 500 to fail for good; anything else is tried again
 */
export type Process<Value = JsonObject> = (member: AcceptedMember<Value>) => MaybePromise<JsonObject | undefined | void>

export interface CollectionOptions<Value = JsonObject> extends DocumentOptions<Value>, QueryOptions {
  /** `'accepted'`: POST answers 202, the member says `"state": "pending"` until `process` is done. Default `'created'`. */
  readonly create?: 'created' | 'accepted'
  /** The work behind an accepted creation. Without it, members are `"ready"` at once. */
  readonly process?: Process<Value>
  /** Form field names and the members they stand for: `{ pri: 'priority' }`. Default: the same. */
  readonly formFields?: Readonly<Record<string, string>>
  /** The member that the content of a text/plain POST becomes. Default: such a POST is 415, or stored as it is. */
  readonly textProperty?: string
  /**
   * File parts that a multipart POST may carry, by name; each becomes a resource below the member, which says of it
   * what `describe` makes of its `name`, `type` and `size`, or all three; one that is `required` and missing is 422. The
   * server keeps this property, as it does the `id`: the `schema` does not see it, PUT may leave it out, and another value is
   * 409 (422 for POST). Default: none; any for accepting collections.
   */
  readonly files?: Readonly<Record<string, FileOptions>>
  /**
   * Names of members. `'integer'`: the next integer. `'string'`: clients may choose any name, POST takes the next
   * integer. `'uuid'`: random, for members that must not be guessed. Default `'integer'`; `'string'` for raw content.
   */
  readonly ids?: 'integer' | 'string' | 'uuid'
  /**
   * Whether PUT to a new member path creates it. Default true; false for `'uuid'`, for accepting collections and with a
   * `scope`: there it would tell that another caller has the path (404 in place of 201).
   */
  readonly clientIds?: boolean
  /**
   * Whether the collection exists only below a resource that does, as in `/tasks/{task}/comments`: 404 while that is not
   * there, is deleted, or would be refused to a GET of the same caller. The items are removed with it. Needs a store that
   * supports `parents`, as the ready ones do. Default false.
   */
  readonly parent?: boolean
  /** Members on a page. Default `{ default: 50, max: 500 }`. */
  readonly pageSize?: { readonly default?: number; readonly max?: number }
  /** The methods of members. Default: all but POST; of accepting collections GET and DELETE. */
  readonly memberMethods?: readonly Method[]
}

/** A resource definition, made by {@link collection}, {@link document} or {@link singleton}. */
export type ResourceDefinition =
  | { readonly kind: 'collection'; readonly options: Readonly<CollectionOptions<JsonValue>> }
  | { readonly kind: 'document'; readonly options: Readonly<DocumentOptions> }
  | { readonly kind: 'singleton'; readonly options: Readonly<SingletonOptions> }

/** The schema and the options that clients have types for, each with the type of its value. */
type Typing<Input, Value, Named> = { readonly schema?: StandardSchema<Input, Value> } & {
  readonly [Name in keyof Named]?: Named[Name]
}

interface CollectionTraits<Methods, MemberMethods, Types, Create, Deletion, Ids, Query, Idempotency> {
  readonly methods: Methods
  readonly memberMethods: MemberMethods
  readonly types: Types
  readonly create: Create
  readonly deletion: Deletion
  readonly ids: Ids
  readonly query: Query
  readonly idempotency: Idempotency
}

type Kind<Name extends ResourceDefinition['kind']> = Extract<ResourceDefinition, { readonly kind: Name }>
/** A collection, with the types that a client infers from it. */
export type CollectionDefinition<Value, Input, Named> = Kind<'collection'> & Typed<Value, Input, Named>
/** A document, with the types that a client infers from it. */
export type DocumentDefinition<Value, Input, Named> = Kind<'document'> & Typed<Value, Input, Named>
/** A singleton, with the types that a client infers from it. */
export type SingletonDefinition<Value, Input, Named> = Kind<'singleton'> & Typed<Value, Input, Named>

const COMMON = [
  ...(['methods', 'schema', 'cacheControl', 'postCacheControl', 'preconditions', 'digests', 'requireAuth'] as const),
  ...(['authorize', 'conflict', 'jsonAsMergePatch', 'beforeWrite', 'outbox', 'afterCommit'] as const),
  ...(['putResponse', 'deletion', 'deleteResponse', 'retention'] as const),
  ...(['representations', 'accept', 'idempotency', 'idempotencyRetention'] as const),
  ...(['title', 'description', 'examples', 'jsonSchema', 'deprecated', 'sunset'] as const),
] as const
const DOCUMENT = [...COMMON, 'types', 'maxSize', 'storedHeaders', 'allowInline'] as const
const COLLECTION = [
  ...DOCUMENT,
  ...QUERY_OPTIONS,
  ...([
    'create',
    'process',
    'formFields',
    'textProperty',
    'files',
    'ids',
    'clientIds',
    'parent',
    'pageSize',
    'memberMethods',
  ] as const),
] as const

/**
 * A collection and its members: `'/users': collection()` serves `/users` (GET lists, POST creates) and `/users/{id}`
 * (GET, PUT, PATCH, DELETE).
 *
 * Members are JSON objects with an `id` unless `types` says otherwise.
 * @throws TypeError for options that do not exist or contradict each other
 */
export function collection<
  Value = JsonObject,
  Input = Value,
  const Methods = undefined,
  const MemberMethods = undefined,
  const Types = undefined,
  const Create = undefined,
  const Deletion = undefined,
  const Ids = undefined,
  const Query = undefined,
  const Idempotency = undefined,
  FileNames extends string = never,
>(
  options?: CollectionOptions<Value> &
    Typing<Input, Value, CollectionTraits<Methods, MemberMethods, Types, Create, Deletion, Ids, Query, Idempotency>> & {
      readonly files?: Readonly<Record<FileNames, FileOptions>>
    },
): CollectionDefinition<
  Value,
  Input,
  CollectionTraits<Methods, MemberMethods, Types, Create, Deletion, Ids, Query, Idempotency> & {
    readonly fileNames: FileNames
  }
> {
  const read = readOptions('collection', options as CollectionOptions<JsonValue> | undefined, COLLECTION)
  checkCommon('collection', read)
  checkMethods('collection', 'methods', read.methods, ['GET', 'POST'])
  checkStampedTypes('collection', read, ['application/json'])
  checkMethods('collection', 'memberMethods', read.memberMethods, ['GET', 'PUT', 'PATCH', 'DELETE'])
  if (read.process !== undefined && read.create !== 'accepted') {
    throw new TypeError("collection has a process, which runs only with create: 'accepted'.")
  }
  if (read.create === 'accepted' && read.memberMethods?.includes('PUT')) {
    throw new TypeError('collection keeps the state of members that are accepted: PUT would replace it; use PATCH.')
  }
  const { max = 500, default: usual = Math.min(50, max) } = readOptions('pageSize', read.pageSize, ['default', 'max'])
  if (!Number.isInteger(max) || !Number.isInteger(usual) || usual < 1 || usual > max) {
    throw new TypeError('collection needs a pageSize of positive integers, its default not above its max.')
  }
  const pageSize = Object.freeze({ default: usual, max })
  const isJson = (read.types ?? JSON_ONLY).every(isJsonRange)
  const own = { pageSize, ...readFiles(read.files), ...readQueryOptions(read, isJson) }
  return Object.freeze({ kind: 'collection', options: changeOptions(read, own) })
}

function readFiles(files: CollectionOptions['files']): Pick<CollectionOptions, 'files'> {
  if (files === undefined) return {}
  const entries = Object.entries(files).map(([name, file]) => {
    const read = readOptions('files', file, ['required', 'describe', 'replaceable'])
    checkValues('files', read, { required: BOOLEAN, describe: FUNCTION, replaceable: BOOLEAN })
    return [name, read]
  })
  return { files: Object.freeze(Object.fromEntries(entries)) as NonNullable<CollectionOptions['files']> }
}

/**
 * Resources that clients name: `'/docs/{name}': document()`. GET, PUT, PATCH, DELETE; content of any media type is kept
 * byte for byte.
 * @throws TypeError for options that do not exist or contradict each other
 */
export function document<
  Value = JsonValue,
  Input = Value,
  const Methods = undefined,
  const Types = undefined,
  const Deletion = undefined,
>(
  options?: DocumentOptions<Value> & Typing<Input, Value, { methods: Methods; types: Types; deletion: Deletion }>,
): DocumentDefinition<Value, Input, { methods: Methods; types: Types; deletion: Deletion }> {
  const read = readOptions('document', options as DocumentOptions | undefined, DOCUMENT)
  checkCommon('document', read)
  checkMethods('document', 'methods', read.methods, ['GET', 'PUT', 'PATCH', 'DELETE'])
  checkStampedTypes('document', read, ['*/*'])
  return Object.freeze({ kind: 'document', options: read })
}

/**
 * One JSON resource that is always the same: `'/config/app': singleton()`. GET, PUT, PATCH.
 * @throws TypeError for options that do not exist or contradict each other
 */
export function singleton<Value = JsonValue, Input = Value, const Methods = undefined>(
  options?: SingletonOptions<Value> & Typing<Input, Value, { methods: Methods }>,
): SingletonDefinition<Value, Input, { methods: Methods }> {
  const read = readOptions('singleton', options as SingletonOptions | undefined, [...COMMON, 'aliases'])
  checkCommon('singleton', read)
  checkMethods('singleton', 'methods', read.methods, ['GET', 'PUT', 'PATCH'])
  for (const alias of read.aliases ?? []) {
    if (alias.includes('{')) throw new TypeError('singleton takes aliases without {names}: they are one resource.')
  }
  return Object.freeze({ kind: 'singleton', options: read })
}

/**
 * A definition with options that are checked and inherit nothing, also where it was copied or written by hand.
 * @throws TypeError for options that do not exist or contradict each other
 */
export function readDefinition(definition: ResourceDefinition): ResourceDefinition {
  const beside = Object.keys(definition).find((name) => name !== 'kind' && name !== 'options')
  if (beside !== undefined) {
    throw new TypeError(
      `A definition has "${beside}" beside its options, where it has no effect: pass it to ${definition.kind}().`,
    )
  }
  if (definition.kind === 'collection') return collection(definition.options)
  if (definition.kind === 'document') return document(definition.options)
  if (definition.kind === 'singleton') return singleton(definition.options)
  throw new TypeError('A definition is made by collection(), document() or singleton().')
}

/** @throws TypeError for a method that this kind of resource never has: asking for it would have no effect */
function checkMethods(
  owner: string,
  option: string,
  given: readonly Method[] | undefined,
  has: readonly Method[],
): void {
  const wrong = given?.find((method) => !has.includes(method) && method !== 'HEAD' && method !== 'OPTIONS')
  if (wrong === undefined) return
  throw new TypeError(`${owner} has no ${wrong} in its ${option}: they are ${has.join(', ')}.`)
}

/** @throws TypeError for a hook that would see only some of the content: what is not JSON is kept byte for byte */
function checkStampedTypes(
  owner: string,
  { beforeWrite, types }: Readonly<DocumentOptions<JsonValue>>,
  usual: readonly string[],
): void {
  if (beforeWrite === undefined || (types ?? usual).every(isJsonRange)) return
  throw new TypeError(`${owner} has a beforeWrite, which changes JSON: its types must be JSON types alone.`)
}

function checkCommon(owner: string, options: Readonly<ResourceOptions>): void {
  const { schema, retention } = options
  if (schema !== undefined && typeof schema['~standard']?.validate !== 'function') {
    throw new TypeError(`${owner} needs a schema with the Standard Schema interface ("~standard").`)
  }
  checkValues(owner, options, RESOURCE_VALUES)
  if (retention !== undefined && !(retention >= 0)) {
    throw new TypeError(`${owner} needs a retention of at least 0 milliseconds.`)
  }
  if (options.idempotencyRetention !== undefined && options.idempotency === undefined) {
    throw new TypeError(`${owner} has an idempotencyRetention, which needs idempotency: 'optional' or 'required'.`)
  }
  const { deprecated, sunset } = options
  // RFC 9745 §4: the Sunset date must not be earlier than the Deprecation date.
  if (deprecated !== undefined && sunset !== undefined && new Date(sunset) < new Date(deprecated)) {
    throw new TypeError(`${owner} has a sunset before the date since when it is deprecated.`)
  }
  if (options.deletion === 'soft' && retention !== undefined) {
    throw new TypeError(`${owner} keeps what it removes softly for good: retention has no effect there.`)
  }
}
