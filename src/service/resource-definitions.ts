import type { FileOptions } from '../actions/hook-types.ts'
import type { StandardSchema, Typed } from '../core/definition-types.ts'
import type { JsonObject, JsonValue } from '../core/json.ts'
import { type CollectionOptions, readCollectionOptions } from './collection-options.ts'
import {
  type DocumentOptions,
  readDocumentOptions,
  readSingletonOptions,
  type SingletonOptions,
} from './document-options.ts'

/** A resource definition, made by {@link collection}, {@link document} or {@link singleton}. */
export type ResourceDefinition =
  | { readonly kind: 'collection'; readonly options: Readonly<CollectionOptions<JsonValue>> }
  | { readonly kind: 'document'; readonly options: Readonly<DocumentOptions> }
  | { readonly kind: 'singleton'; readonly options: Readonly<SingletonOptions> }

/** The schema and the options that clients have types for, each with the type of its value. */
type Typing<Input, Value, Named> = { readonly schema?: StandardSchema<Input, Value> } & {
  readonly [Name in keyof Named]?: Named[Name]
}

/** Not an interface: a program that exports a definition could not write the declaration of it without its name. */
type CollectionTraits<Methods, MemberMethods, Types, Create, Deletion, Ids, Query, Idempotency> = {
  readonly methods: Methods
  readonly memberMethods: MemberMethods
  readonly types: Types
  readonly create: Create
  readonly deletion: Deletion
  readonly ids: Ids
  readonly query: Query
  readonly idempotency: Idempotency
}

/** Which of the files of an item a client may replace. */
type Replaceable<Files> = {
  readonly [Name in keyof Files]?: { readonly replaceable?: Files[Name] }
}

type Kind<Name extends ResourceDefinition['kind']> = Extract<ResourceDefinition, { readonly kind: Name }>
/**
 * A collection, with the types that a client infers from it.
 * @typeParam Value what is stored and read
 * @typeParam Input what is sent
 * @typeParam Named the options that decide which requests a client can make; without it they have their defaults for the client
 */
export type CollectionDefinition<Value = JsonObject, Input = Value, Named = unknown> = Kind<'collection'> &
  Typed<Value, Input, Named>
/** A document, with the types that a client infers from it, as a `CollectionDefinition` has them. */
export type DocumentDefinition<Value = JsonValue, Input = Value, Named = unknown> = Kind<'document'> &
  Typed<Value, Input, Named>
/** A singleton, with the types that a client infers from it, as a `CollectionDefinition` has them. */
export type SingletonDefinition<Value = JsonValue, Input = Value, Named = unknown> = Kind<'singleton'> &
  Typed<Value, Input, Named>

// The constraints of the parameters are what editors complete the values from, and what errors about a misspelt one name.

/**
 * A collection and its items: `'/users': collection()` serves `/users` (GET lists, POST creates) and `/users/{id}`
 * (GET, PUT, PATCH, DELETE).
 *
 * Items are JSON objects with an `id`, unless `types` has a media type that is not JSON.
 * @throws TypeError for options that do not exist or contradict each other
 */
export function collection<
  Value = JsonObject,
  Input = Value,
  const Methods extends CollectionOptions['methods'] = undefined,
  const MemberMethods extends CollectionOptions['memberMethods'] = undefined,
  const Types extends CollectionOptions['types'] = undefined,
  const Create extends CollectionOptions['create'] = undefined,
  const Deletion extends CollectionOptions['deletion'] = undefined,
  const Ids extends CollectionOptions['ids'] = undefined,
  const Query extends CollectionOptions['query'] = undefined,
  const Idempotency extends CollectionOptions['idempotency'] = undefined,
  FileNames extends string = never,
  const Files = unknown,
>(
  options?: CollectionOptions<Value> &
    Typing<Input, Value, CollectionTraits<Methods, MemberMethods, Types, Create, Deletion, Ids, Query, Idempotency>> & {
      readonly files?: Readonly<Record<FileNames, FileOptions>> & Replaceable<Files>
    },
): CollectionDefinition<
  Value,
  Input,
  CollectionTraits<Methods, MemberMethods, Types, Create, Deletion, Ids, Query, Idempotency> & {
    readonly fileNames: FileNames
    readonly replaceable: Files
  }
> {
  const read = readCollectionOptions(options as CollectionOptions<JsonValue> | undefined)
  return Object.freeze({ kind: 'collection', options: read })
}

/**
 * Resources that clients name: `'/docs/{name}': document()`. GET, PUT, PATCH, DELETE; content of any media type is kept
 * byte for byte.
 * @throws TypeError for options that do not exist or contradict each other
 */
export function document<
  Value = JsonValue,
  Input = Value,
  const Methods extends DocumentOptions['methods'] = undefined,
  const Types extends DocumentOptions['types'] = undefined,
  const Deletion extends DocumentOptions['deletion'] = undefined,
>(
  options?: DocumentOptions<Value> & Typing<Input, Value, { methods: Methods; types: Types; deletion: Deletion }>,
): DocumentDefinition<Value, Input, { methods: Methods; types: Types; deletion: Deletion }> {
  const read = readDocumentOptions(options as DocumentOptions | undefined)
  return Object.freeze({ kind: 'document', options: read })
}

/**
 * One JSON resource at a path without names: `'/config/app': singleton()`. GET, PUT, PATCH; 404 until the first PUT.
 * @throws TypeError for options that do not exist or contradict each other
 */
export function singleton<
  Value = JsonValue,
  Input = Value,
  const Methods extends SingletonOptions['methods'] = undefined,
>(
  options?: SingletonOptions<Value> & Typing<Input, Value, { methods: Methods }>,
): SingletonDefinition<Value, Input, { methods: Methods }> {
  const read = readSingletonOptions(options as SingletonOptions | undefined)
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
