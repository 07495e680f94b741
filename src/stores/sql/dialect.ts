import type { RecentCache } from '../../core/caches.ts'
import type { MaybePromise } from '../../core/maybe-promise.ts'
import type { CollectionIndex, ListOptions, ListQuery, Page } from '../lists.ts'
import type {
  Abortable,
  Content,
  CreateResult,
  LargeBody,
  RelatedWrite,
  RemoveOptions,
  RemoveResult,
  ResourceStore,
  SmallBody,
  StoredResource,
  WriteOptions,
  WriteResult,
} from '../types.ts'
import type { BesideContents } from './beside.ts'
import type { SqlSettings, SqlStoreOptions } from './options.ts'
import type { EntryKeys, Position } from './queries/index-tables.ts'
import type { Listed } from './queries/page.ts'

/** What a database brings to a store on tables: the parts in which databases differ. The rest of a store is the same for all. */

/** What a store on tables has before its database is opened. */
export interface SqlShared {
  /** The public name of the store. */
  readonly owner: string
  readonly settings: SqlSettings<SqlStoreOptions>
  readonly nextVersion: () => string
  /** Chunks of large content that are asked for repeatedly. */
  readonly cache: RecentCache<string, Uint8Array>
  /** Begins to sweep: the tables are there. */
  startSweep(): void
  /** Sweeps soon: something was given up, or room is needed. */
  sweepSoon(): void
  /** Begins to index members of a collection that wait for their entries. */
  indexMembers(collection: string, index: CollectionIndex): void
}

export interface SqlParts {
  readonly read: ResourceStore['read']
  /** A page without a query. */
  list(collection: string, options: ListOptions): MaybePromise<Page>
  /** A page by a query, or `incomplete` while members of the collection have no entry. */
  select(collection: string, options: ListOptions, query: ListQuery): MaybePromise<Listed>
  readonly changes: SqlChanges
  readonly contents: SqlContents
  readonly indexes: IndexSteps<Position>
  /** One bounded step of clearing away; several processes may take it at the same time. */
  sweep(): MaybePromise<Swept>
}

/** A write of one path and those that go with it, all or nothing. */
export interface WriteStep {
  readonly path: string
  readonly content: Content
  readonly related: readonly RelatedWrite[]
  readonly version: string
  readonly expect: WriteOptions['expect']
  /** A path that must be present. */
  readonly requires: string | undefined
}

/** A new member, once it has a name. */
export interface Draft extends Pick<WriteStep, 'content' | 'related' | 'version'> {
  readonly name: string
  /** Its own content, then that of the related writes. */
  readonly contents: readonly Content[]
}

/** Content that is there already; `undefined` while some of it has to be taken in. */
export type FindTaken = (contents: readonly Content[]) => readonly Taken[] | undefined

export interface Creation {
  readonly collection: string
  /** A path that must be present. */
  readonly requires: string | undefined
  /** The content for a name. Each call makes another version. */
  readonly draft: (name: string) => Draft
}

/** A removal of one path, with others that are removed or written, all or nothing. */
export type RemoveStep = Required<Omit<RemoveOptions, 'signal' | 'retention'>> & { readonly retention: number }

/** Changes of the states of one database. Each call is atomic; its content has been taken in. */
export interface SqlChanges {
  write(step: WriteStep, taken: readonly Taken[], call: Abortable): MaybePromise<WriteResult>
  /**
   * One attempt. A name is assigned once only, whether it is used or not.
   * @returns the result; or a draft whose content has to be taken in first
   */
  create(
    creation: Creation,
    drafted: Draft | undefined,
    findTaken: FindTaken,
    call: Abortable,
  ): MaybePromise<CreateResult | Draft>
  /** @param taken the content of `relatedWrites` */
  remove(path: string, step: RemoveStep, taken: readonly Taken[], call: Abortable): MaybePromise<RemoveResult>
}

/** Names a set of chunks. */
export type ContentId = number | string

/** Content that the store has: small content as one value, large content under the name of its chunks. */
export type Taken =
  | { readonly size: number; readonly body: SmallBody; readonly id: undefined; readonly sha256?: undefined }
  | { readonly size: number; readonly body: LargeBody; readonly id: ContentId; readonly sha256: Uint8Array }

/** Where chunks go. Nothing of it is visible before a write links the id to a path. */
export interface ChunkSink {
  /** Makes an id; its chunks are swept unless they are linked in time. */
  begin(): MaybePromise<ContentId>
  /** Adds whole chunks; only the last chunk of all may be shorter. Puts the sweep off. The bytes may change afterwards. */
  append(id: ContentId, index: number, bytes: Uint8Array): MaybePromise<void>
  /** Puts the sweep of content that is not linked yet off, until the timer is cleared. */
  keep(ids: readonly ContentId[]): NodeJS.Timeout
  /** Gives chunks to the sweep at once. */
  abandon(id: ContentId): MaybePromise<void>
  /** @param version that of the state whose content it is; left out for content that is staged */
  open(id: ContentId, size: number, version?: string): LargeBody
}

/** Large content that never changes: in chunks, or in a content store. */
export interface SqlContents extends ChunkSink {
  /** Bytes that are appended at once: a multiple of the size of a chunk. */
  readonly batchSize: number
  /** Content in the content store; `undefined` without one. */
  readonly beside: BesideContents | undefined
  /** Chunks to move to the content store. */
  readonly chunkSource: ChunkSource
}

/** Content in chunks that a state names. */
export interface ChunkedContent {
  /** The path as the database has it. */
  readonly path: string
  readonly id: ContentId
  readonly size: number
  readonly body: LargeBody
}

export interface ChunkSource {
  /** The first state behind a path whose content lies in chunks; after many states of other content, the path of the last. */
  findNext(after: string): MaybePromise<ChunkedContent | string | undefined>
  /** Whether the state still names that content. */
  isCurrent(content: ChunkedContent): MaybePromise<boolean>
  /** Lets the state name the content that was put; `false` when it has changed meanwhile: the sweep takes what was put. */
  swap(content: ChunkedContent, taken: Taken): MaybePromise<boolean>
}

/** The rows that name content beside the tables. A key has its row before anything is put under it. */
export interface ContentLedger {
  /** Makes the row of a key; its content is swept unless a write links the row in time. */
  begin(key: string): MaybePromise<ContentId>
  /** Puts the sweep off for the grace period. */
  touch(id: ContentId): MaybePromise<void>
  /** Gives content up that no path shows. */
  abandon(id: ContentId): MaybePromise<void>
  /** Marks content as lost whose time is over, a few of the rows; no write can link them any more. */
  claim(): MaybePromise<readonly LostContent[]>
  /** Removes the rows of contents that are gone. */
  forget(ids: readonly ContentId[]): MaybePromise<void>
  /** Which of some keys have a row. */
  findKnown(keys: readonly string[]): MaybePromise<ReadonlySet<string>>
  /** What the keys of this database begin with: several may keep their contents in one place. */
  readIdentity(): MaybePromise<string>
}

/** Content whose row is marked as lost. */
export interface LostContent {
  readonly id: ContentId
  readonly key: string
}

/** Members that have no entry yet, a few of them. */
export interface Batch<Position> {
  readonly items: readonly StoredResource[]
  /** Where the batch stands; nothing is committed when another process has gone on from there meanwhile. */
  readonly position: Position
}

/** A member, and the keys of the entry that it gets. */
export interface NewEntry {
  readonly item: StoredResource
  readonly keys: EntryKeys
}

export interface IndexSteps<Position> {
  /** The next members to be indexed, none when that was not known yet; `undefined` when all of them are. */
  read(collection: string, index: CollectionIndex): MaybePromise<Batch<Position> | undefined>
  /**
   * Makes the entries of those members that are unchanged since they were read, and keeps how far the work has come.
   * @returns how many members have been indexed so far; `undefined` when another process has done it meanwhile
   */
  commit(position: Position, items: readonly NewEntry[]): MaybePromise<number | undefined>
}

/** Whether a step of the sweep found all that there was to do. */
export type Swept = 'all' | 'part'

export interface QueryDialect {
  readonly entries: string
  /** Stands behind the name of the table, and names the index to use. */
  useIndex(name: string): string
  /** The place of a value in a statement. @param position its number, from 1 */
  placeholder(position: number, type: 'key' | 'name' | 'number'): string
  /** A column of keys, as it is returned. */
  readKey(column: string): string
  readName(column: string): string
}
