import type { DefinitionTypes } from '../core/definition-types.ts'
import type { JsonValue } from '../core/json.ts'

/** What a client sees of a resource definition: its kind, and the types that it carries. */
export interface ClientDefinition {
  readonly kind: 'collection' | 'document' | 'singleton'
  readonly '~types'?: DefinitionTypes
}

/** Definitions by path pattern, as `createResourceService` takes them. */
export type ClientDefinitions = Readonly<Record<string, ClientDefinition>>

/** Stands for the definitions where they are not known: every path takes any JSON and any content. */
export interface AnyResources {
  readonly '~any': true
}

/** What requests to one path may do, and the types of what they carry. */
export interface PathTypes {
  readonly kind: 'collection' | 'resource'
  readonly content: 'json' | 'raw' | 'any'
  readonly methods: string
  /** What is read. */
  readonly output: unknown
  /** What is written. */
  readonly input: unknown
  readonly traits: object
}

/** The types of a path whose definition is not known. */
export interface AnyPath extends PathTypes {
  readonly kind: 'resource'
  readonly content: 'any'
  readonly output: JsonValue
  readonly traits: AnyTraits
}
/** Traits that are not known. */
export interface AnyTraits {
  readonly '~any': true
}

/** A value as JSON shows it: a Date is text, functions and `undefined` are left out. */
export type JsonOf<Value> = [Value] extends [JsonValue] ? Value : ToJson<Value>
type ToJson<Value> = Value extends { toJSON(): infer Text }
  ? JsonOf<Text>
  : Value extends string | number | boolean | null | undefined
    ? Value
    : Value extends readonly unknown[]
      ? { [Index in keyof Value]: JsonOf<Value[Index]> }
      : Value extends object
        ? {
            [Name in keyof Value as Value[Name] extends (...args: never) => unknown ? never : Name]: JsonOf<Value[Name]>
          }
        : JsonValue

type TypesOf<Definition> = Definition extends { readonly '~types'?: infer Types }
  ? Exclude<Types, undefined>
  : DefinitionTypes<JsonValue, JsonValue, object>
type TraitsOf<Definition> = TypesOf<Definition> extends { readonly traits: infer Named extends object } ? Named : object
type OutputOf<Definition> = TypesOf<Definition> extends { readonly output: infer Output } ? JsonOf<Output> : JsonValue
type InputOf<Definition> = TypesOf<Definition> extends { readonly input: infer Input } ? Input : JsonValue

/** The value of an option as it was written; `Otherwise` where it was left out. */
export type Trait<Named, Name extends string, Otherwise> = Named extends { readonly [Key in Name]: infer Value }
  ? [Value] extends [undefined]
    ? Otherwise
    : Exclude<Value, undefined>
  : Otherwise
type Listed<List> = List extends readonly (infer Item)[] ? Item : never

type ContentOf<Named, Otherwise> =
  Trait<Named, 'types', undefined> extends infer List extends readonly string[]
    ? Listed<List> extends 'application/json' | 'text/json' | `${string}+json`
      ? 'json'
      : Extract<
            string extends Listed<List> ? '*/*' : Listed<List>, // options that a function was passed may have any types
            '*/*' | 'application/*' | 'application/json' | 'text/json' | `${string}+json`
          > extends never
        ? 'raw'
        : 'any'
    : Otherwise

type Id<Named> = {
  readonly id: Trait<Named, 'ids', 'integer'> extends 'integer'
    ? number
    : Trait<Named, 'ids', 'integer'> extends 'uuid'
      ? string
      : number | string
}
/** The names of the files that items may have. */
export type FileNames<Named> = Named extends { readonly fileNames: infer Names extends string } ? Names : never
/** The names of the files that PUT may replace. */
type ReplaceableNames<Named> = Named extends { readonly replaceable: infer Files }
  ? { [Name in keyof Files & string]: Files[Name] extends true ? Name : never }[keyof Files & string]
  : never
/** The properties of an item that the server keeps. */
type ServerProperties<Named> = Id<Named> & { readonly [Name in FileNames<Named>]?: JsonValue } & (Named extends {
    readonly create: 'accepted'
  }
    ? { readonly state?: string; readonly problem?: JsonValue }
    : object)

type ItemOutput<Definition> =
  ContentOf<TraitsOf<Definition>, 'json'> extends 'json'
    ? OutputOf<Definition> & ServerProperties<TraitsOf<Definition>>
    : OutputOf<Definition>
type ItemMethods<Named> = Listed<
  Trait<
    Named,
    'memberMethods',
    Named extends { readonly create: 'accepted' }
      ? readonly ['GET', 'DELETE']
      : readonly ['GET', 'PUT', 'PATCH', 'DELETE']
  >
>
type Below<Path extends string, Name extends string> = Path extends '/' ? `/${Name}` : `${Path}/${Name}`

/** The types of a collection. */
export interface CollectionTypes<Definition> extends PathTypes {
  readonly kind: 'collection'
  readonly content: ContentOf<TraitsOf<Definition>, 'json'>
  readonly methods: Listed<Trait<TraitsOf<Definition>, 'methods', readonly ['GET', 'POST']>> & string
  readonly output: ItemOutput<Definition>
  readonly input: InputOf<Definition>
  readonly traits: TraitsOf<Definition>
}
/** The types of the items of a collection. */
export interface ItemTypes<Definition> extends PathTypes {
  readonly kind: 'resource'
  readonly content: ContentOf<TraitsOf<Definition>, 'json'>
  readonly methods: ItemMethods<TraitsOf<Definition>> & string
  readonly output: ItemOutput<Definition>
  readonly input: InputOf<Definition> & Partial<ServerProperties<TraitsOf<Definition>>>
  readonly traits: TraitsOf<Definition>
}
/** The types of a file of an item. */
export interface FileTypes<Methods extends string> extends PathTypes {
  readonly kind: 'resource'
  readonly content: 'raw'
  readonly methods: Methods
  readonly output: never
  readonly input: never
  readonly traits: object
}
/** The types of a document or a singleton. */
export interface SingleTypes<Definition, Usual extends string> extends PathTypes {
  readonly kind: 'resource'
  readonly content: ContentOf<TraitsOf<Definition>, Definition extends { readonly kind: 'singleton' } ? 'json' : 'any'>
  readonly methods: Listed<Trait<TraitsOf<Definition>, 'methods', readonly Usual[]>> & string
  readonly output: OutputOf<Definition>
  readonly input: InputOf<Definition>
  readonly traits: TraitsOf<Definition>
}

type Own<Definition> = Definition extends { readonly kind: 'collection' }
  ? CollectionTypes<Definition>
  : Definition extends { readonly kind: 'document' }
    ? SingleTypes<Definition, 'GET' | 'PUT' | 'PATCH' | 'DELETE'>
    : SingleTypes<Definition, 'GET' | 'PUT' | 'PATCH'>

type Collections<Resources> = {
  [Path in keyof Resources & string]: Resources[Path] extends { readonly kind: 'collection' } ? Path : never
}[keyof Resources & string]
type FilePaths<Resources> = {
  [Path in Collections<Resources>]: Below<Path, `{id}/${FileNames<TraitsOf<Resources[Path]>>}`>
}[Collections<Resources>]
type ReplaceablePaths<Resources> = {
  [Path in Collections<Resources>]: Below<Path, `{id}/${ReplaceableNames<TraitsOf<Resources[Path]>>}`>
}[Collections<Resources>]

/** Every path of some definitions with what it can do: collections, their items, the files of items, and the rest. */
export type Paths<Resources> = Resources extends AnyResources
  ? Readonly<Record<string, AnyPath>>
  : { readonly [Path in keyof Resources & string]: Own<Resources[Path]> } & {
      readonly [Path in Collections<Resources> as Below<Path, '{id}'>]: ItemTypes<Resources[Path]>
    } & {
      readonly [Path in FilePaths<Resources>]: FileTypes<
        Path extends ReplaceablePaths<Resources> ? 'GET' | 'PUT' : 'GET'
      >
    }

/** The paths that allow a method on a kind of resource with a kind of content. */
export type PathsWith<
  Resources,
  Method extends string,
  Kind extends PathTypes['kind'],
  Content extends PathTypes['content'],
> = Resources extends AnyResources
  ? string
  : {
      [Path in keyof Paths<Resources>]: Paths<Resources>[Path] extends {
        readonly kind: Kind
        readonly content: infer Given
        readonly methods: infer Allowed
      }
        ? Method extends Allowed
          ? Given extends Content | 'any'
            ? Path
            : never
          : never
        : never
    }[keyof Paths<Resources>] &
      string

export type At<Resources, Path extends string> = Path extends keyof Paths<Resources> ? Paths<Resources>[Path] : AnyPath

type ParameterNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `${infer Plain}...` ? Plain : Name) | ParameterNames<Rest>
  : never

/**
 * The arguments after a path: the values of its `{parameters}`, or none. Those of each path of a union: of a path that there
 * is not, an error then names the path, and not a number of arguments.
 */
export type PathParameters<Path extends string> = string extends Path
  ? []
  : Path extends unknown
    ? [ParameterNames<Path>] extends [never]
      ? []
      : [parameters: { readonly [Name in ParameterNames<Path>]: string | number }]
    : never
