import type { BodyLimits } from '../body-types/limits.ts'
import type { StandardSchema } from '../core/definition-types.ts'
import type { JsonObject, JsonValue } from '../core/json.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Reply } from '../core/reply.ts'
import type { RequestView } from '../core/request-view.ts'
import type { ByteBudget, Turns } from '../core/turns.ts'
import type { PatchFormat } from '../patch-formats/patch-format.ts'
import type { CacheControls } from '../protocol/cache-control.ts'
import type { MediaType } from '../protocol/media-type.ts'
import type { Method } from '../protocol/request-line.ts'
import type { RelatedWrite, ResourceStore, StoredResource } from '../stores/types.ts'
import type { AfterCommits } from './change-hooks.ts'
import type { AfterCommit, Authorize, BeforeWrite, ConflictHook, FileOptions, Outbox, Rendition } from './hook-types.ts'
import type { Indexing } from './indexing.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/** What one method does to one kind of resource, once everything that fields alone decide has been checked. */
export interface Action {
  /** Finds the current state and puts it on the exchange. Throws 404 or 410 where the method needs a state, 415 where it cannot be patched. */
  readonly load: (exchange: ResourceExchange) => MaybePromise<void>
  /** Performs the method; the last thing it does is one compare-and-swap in the store. */
  readonly perform: (exchange: ResourceExchange) => MaybePromise<Reply>
  /** What the method takes as content; `undefined` when it takes none. */
  readonly content: ContentRule | undefined
}

/** A media type that content of a method may have, and how it was spelled. */
export interface AcceptedType extends MediaType {
  readonly spelling: string
  readonly isJson: boolean
  /** The most bytes of such content. */
  readonly limit: number
}

/** Which content a method takes: decided by fields, before a byte is read. */
export interface ContentRule {
  /** Media ranges that are accepted, in lower case. */
  readonly types: readonly string[]
  /** The type of content that names none; left out when it must name one. */
  readonly defaultType?: string
  /** The field that tells a client which types there are (RFC 9110 §12.5.1, RFC 5789 §3.1). */
  readonly hint: 'Accept' | 'Accept-Post' | 'Accept-Patch' | 'Accept-Query'
  /** The most bytes of content of a type. */
  readonly limit: (essence: string) => number
  /**
   * The type that was accepted last. Most clients of a resource send one type; to read and judge it anew costs 2,900
   * instructions of the 150,000 of a small PUT.
   */
  accepted?: AcceptedType
}

/** What a path is, of the kinds that a definition stands for. */
type RouteKind =
  | 'collection'
  | 'item'
  | 'file'
  | 'document'
  | 'singleton'
  | 'operation'
  | 'description'
  /** Any path of a service without definitions. */
  | 'open'

/** What a definition says about itself to readers. Nothing of it changes an answer but the two dates. */
export interface Documentation {
  readonly title: string | undefined
  readonly description: string | undefined
  /** Representations by name. */
  readonly examples: Readonly<Record<string, JsonValue>>
  /** JSON Schema of request content and of representations; `undefined` leaves both to the schema. */
  readonly jsonSchema: { readonly input: JsonObject; readonly output: JsonObject } | undefined
  readonly isDeprecated: boolean
  /** Deprecation and Sunset as answers carry them, names and values in turn. */
  readonly fields: readonly string[]
}

export type DeletionMode = 'hard' | 'soft' | 'queued'

/** A compiled resource definition for one path pattern: everything that is the same for every request to it. */
export interface Route {
  /** The pattern, as in the definition. */
  readonly pattern: string
  readonly kind: RouteKind
  /** The pattern of the definition that the route is part of: those of a collection, its items and their files are one. */
  readonly definition: string
  readonly documentation: Documentation
  readonly actions: Readonly<Partial<Record<Method, Action>>>
  /** The methods of the resource with HEAD and OPTIONS, in the order of Allow. */
  readonly methods: readonly Method[]
  /** The store path of singletons, whose aliases share it. */
  readonly storePath: string | undefined
  /** Media ranges of what is stored. */
  readonly types: readonly string[]
  /** Whether content is a JSON document that is parsed and validated. */
  readonly isJson: boolean
  /** The most bytes of content that is stored as it was sent; a patch of it must not make it larger. */
  readonly maxSize: number
  /** Whether members have a JSON member `id` that is the name in the path. */
  readonly idMember: 'integer' | 'string' | undefined
  /** Whether PUT creates a resource that does not exist. */
  readonly createsByPut: boolean
  /** What is special about a collection; `undefined` for routes that list nothing. */
  readonly collection: CollectionFacts | undefined
  /** How items are indexed and whose they are; `undefined` where lists take no queries and all items are everybody's. */
  readonly indexing: Indexing | undefined
  /** The media type of what is stored, where the definition names one; content may be of a relative of it. */
  readonly usualType: MediaType | undefined
  /** Media types of the renditions, in order of preference. */
  readonly offers: readonly MediaType[]
  readonly renditions: readonly Rendition[]
  /** Whether Accept is a demand, 406 where it cannot be met, or a preference. */
  readonly accept: 'strict' | 'lenient'
  readonly schema: StandardSchema | undefined
  readonly cacheControl: CacheControls
  /** Cache-Control of answers to POST. */
  readonly postCacheControl: CacheControls
  /** Whether content needs a digest that can be verified (RFC 9530). */
  readonly needsDigests: boolean
  readonly preconditions: 'optional' | 'required'
  /** Whether a request needs credentials; `undefined` leaves it to the service. */
  readonly requiresCredentials: ((request: RequestView) => boolean) | undefined
  /** Whether a GET needs credentials, by the definition or else by the service. */
  readonly readsNeedCredentials: boolean | ((request: RequestView) => boolean)
  /** Which requests need credentials, for the description; `some`: a function decides. `undefined` leaves it to the service. */
  readonly credentials: 'all' | 'writes' | 'none' | 'some' | undefined
  readonly authorize: Authorize | undefined
  readonly conflict: ConflictHook | undefined
  /** What PATCH takes; `application/json` among it where the definition has it stand for a merge patch. */
  readonly patchFormats: readonly PatchFormat[]
  readonly beforeWrite: BeforeWrite | undefined
  readonly outbox: Outbox | undefined
  readonly afterCommit: AfterCommit | undefined
  /** Whether `outbox` or `afterCommit` sees changes. */
  readonly observesChanges: boolean
  /** What PUT answers where it replaces: 200 with the representation, or 204. */
  readonly putResponse: 'representation' | 'none'
  readonly deletion: DeletionMode
  /** What DELETE answers: 204, 204 with the tag of what was removed, 200 with the confirmation, or with what was removed. */
  readonly deleteResponse: 'none' | 'tag' | 'confirmation' | 'representation'
  /** Milliseconds for which a removal is remembered; 0 leaves no trace; `undefined` is the store's own. */
  readonly retention: number | undefined
  /** Whether requests with an Idempotency-Key are done once, and need one; milliseconds for which a key is remembered. */
  readonly idempotency: { readonly isRequired: boolean; readonly retention: number } | undefined
  /** Accept-Query (RFC 10008), where the collection takes queries as content. */
  readonly acceptQuery: readonly string[]
  /** Fields that OPTIONS adds to Allow. */
  readonly capabilities: readonly string[]
  /** Request fields that are stored with the content. */
  readonly storedHeaders: readonly ('Content-Language' | 'Content-Disposition')[]
  /** Whether representations tell of accepted work in a member `state`. */
  readonly showsWork: boolean
  /**
   * Names of the files that an item may have below it. `any`: everything below it that has no definition of its own.
   * `filename`: each resource below it that has a file name, where other resources may be there as well.
   */
  readonly fileNames: 'any' | 'filename' | readonly string[]
  /** Whether items say something of files, by names that the definition knows. */
  readonly describesFiles: boolean
  /** Whether If-Match of a PUT may be left to the write: nothing of the definition has to see the state before. */
  readonly isComparedByWrite: boolean
  /** Whether the target is a file of an item: it is there as long as the item is, and for those who may read that. */
  readonly isFile: boolean
  /** Whether the collection is below a resource that must be there, for those who may read it. */
  readonly hasParent: boolean
  /** Media ranges that browsers may show in place although they can act as a page of this origin. */
  readonly allowInline: readonly string[]
  readonly context: RouteContext
}

/** What is special about members that a collection makes. */
export interface CollectionFacts {
  /**
   * What members are made of: `json` parses everything into a JSON document, `raw` keeps any content as it is, `any`
   * does the first for JSON and forms and the second for text.
   */
  readonly content: 'json' | 'raw' | 'any'
  readonly ids: 'integer' | 'string' | 'uuid'
  /** Form field names and the members they stand for. */
  readonly formFields: ReadonlyMap<string, string>
  /** The member that holds a text/plain body; `undefined` when text is not a creation. */
  readonly textProperty: string | undefined
  /** File parts that become resources below the member, by name, and whether they must be there; `any` takes all. */
  readonly files: 'any' | ReadonlyMap<string, FileOptions>
  readonly create: 'created' | 'accepted'
  readonly pageSize: { readonly default: number; readonly max: number }
  /** Limits on a form. A file has the limit that it has with PUT. */
  readonly formLimits: BodyLimits
}

/** What all routes of a service share. */
export interface RouteContext {
  readonly store: ResourceStore
  readonly limits: BodyLimits
  /** The longest request target below the mount, in characters. */
  readonly maxTargetLength: number
  readonly patchFormats: readonly PatchFormat[]
  /** Content codings that are accepted and decoded. */
  readonly contentCodings: readonly ('gzip' | 'deflate' | 'br')[]
  /** Accepted work; `undefined` when no resource needs it. */
  readonly work: AcceptedWork | undefined
  readonly now: () => number
  readonly afterCommits: AfterCommits
  /** By path: the requests that change a resource go one after the other. */
  readonly turns: Turns
  /** What patched documents, and content that representations are made of, take in memory. */
  readonly largeContent: ByteBudget
  /** The route of a path, for entries of a listing: each is judged by the definition that its own path has. */
  readonly findRoute: (path: string) => Route | undefined
  /** Whether collections below a resource exist as long as it does: they are removed with it. */
  readonly isParent: (route: Route) => boolean
  /** Finds out what the indexes of all collections have, before a change whose outbox may write into any of them. */
  readonly loadIndexes: () => MaybePromise<void>
  /** All routes that paths one segment below a pattern may have. */
  readonly findRoutesBelow: (pattern: string) => readonly Route[]
}

/** How actions hand over work that is done after the answer. */
export interface AcceptedWork {
  /** Records the removal of a state and returns the path of its monitor; durable when fulfilled. */
  removeLater(exchange: ResourceExchange, resource: StoredResource): MaybePromise<string>
  /** The record to write in the same atomic step as a new member, and what starts the work afterwards. */
  prepareProcessing(exchange: ResourceExchange, path: string): { readonly record: RelatedWrite; start(): void }
}
