import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Content, RemoveOptions, ResourceStore, StoredResource } from '../stores/types.ts'
import type { TestRunner } from './runner.ts'

/** A store without data, made for one case, and what belongs to it. */
export interface StoreFixture {
  readonly store: ResourceStore
  /**
   * Opens the same data once more, as another process would: `store` is neither informed nor closed, and goes on.
   * Offering it says that the store is durable.
   */
  readonly reopen?: () => MaybePromise<ResourceStore>
  /**
   * Ends `store` as a power cut would: without a call, and it serves no call any more. The data are opened with
   * `reopen` afterwards. Left out, the cases for crashes just leave `store` alone.
   */
  readonly crash?: () => MaybePromise<void>
  /** Ends all that was opened and removes the data. Stores are closed before. */
  readonly close?: () => MaybePromise<void>
}

/** What a store can do beyond the core of the contract. */
export interface StoreCapabilities {
  /** Keeps its data beyond the process, and shares it among processes. Default: whether there is a `reopen`. */
  readonly durable?: boolean
  /** Any media type and any bytes, as one value or as a stream, kept exactly. Default true. */
  readonly contents?: boolean
  /** Any path: names that are not integers, further collections, nested ones. Default true. */
  readonly paths?: boolean
  /** Knows when a state began, and whether its date is strong. Default true. */
  readonly dates?: boolean
  /** Remembers removed resources. Default true. */
  readonly tombstones?: boolean
  /** Hides resources (soft deletion). Default true. */
  readonly hiding?: boolean
  /** Writes and removes related paths in the same atomic step. Default true. */
  readonly related?: boolean
  /** Honours what related writes expect. Default: whether `supports.relatedExpect` says so. */
  readonly relatedExpect?: boolean
  /** Keeps indexed values, and selects and orders by them. Default: whether `supports.queries` says so. */
  readonly queries?: boolean
  /** Honours `requires` and `below`. Default: whether `supports.parents` says so. */
  readonly parents?: boolean
  /** Takes content in before it is known where it belongs. Default: whether there is a method `stage`. */
  readonly stage?: boolean
  /** Keeps the SHA-256 digest of content that can be read only in pieces. Default false. */
  readonly digests?: boolean
}

export type Capability = keyof StoreCapabilities

/** Options of `testStore`: what the store can do, and the functions of the runner. */
export interface TestStoreOptions extends StoreCapabilities, Partial<TestRunner> {
  /** The collection in which the cases work. Default `/things`. */
  readonly collection?: string
  /**
   * Makes small content that the store accepts and returns byte for byte.
   * @param seed different content for different seeds
   * @param name the name under which it will stand in the collection, an integer in decimal
   */
  readonly content?: (seed: number, name: string) => Content
}

/** What a case works with. */
export interface Bench {
  readonly store: ResourceStore
  readonly collection: string
  /** The path of a name in the collection. */
  readonly path: (name: string | number) => string
  /** Small content that may stand under a name of the collection. */
  readonly content: (seed: number, name: string | number) => Content
  /** Writes such content under a name, without a condition. The seed is the name where it is left out. */
  readonly keep: (name: number, seed?: number) => Promise<StoredResource>
  /** The modes of removal that the store has: without `hiding` or `tombstones`, it is not asked for these. */
  readonly modes: readonly RemoveOptions['mode'][]
  /** The same data, opened once more. Without `reopen`: the same store. */
  readonly reopen: () => Promise<ResourceStore>
  /** The same data, after the store has come to a sudden end. Without `reopen`: the same store. */
  readonly crash: () => Promise<ResourceStore>
}

/** One property that a store has or has not. @typeParam CaseBench what the case works with */
export interface Case<CaseBench = Bench> {
  /** What the store does, as a sentence without a subject. */
  readonly title: string
  /** Beside what its group needs. */
  readonly needs?: readonly Capability[]
  readonly run: (bench: CaseBench) => Promise<void>
}

type Needing = Required<Pick<Case, 'needs'>>

/** A case, written as the tests of most runners are. */
export function it<CaseBench = Bench>(title: string, run: Case<CaseBench>['run']): Case<CaseBench>
export function it(title: string, needing: Needing, run: Case['run']): Case
export function it(title: string, given: Needing | Case['run'], run?: Case['run']): Case {
  return typeof given === 'function' ? { title, run: given } : { title, ...given, run: run! }
}
