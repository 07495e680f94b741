import type { MaybePromise } from '../../core/handler.ts'
import type { Content, ResourceStore } from '../types.ts'

/** A store without data, made for one case. */
export interface StoreFixture {
  readonly store: ResourceStore
  /**
   * Opens the same data once more, as another process would, or this one after it was killed: `store` is neither told
   * nor closed, and may go on. Needed when `durable` is declared.
   */
  readonly reopen?: () => MaybePromise<ResourceStore>
  /** Ends all that was opened and removes the data. Stores are closed before. */
  readonly close?: () => MaybePromise<void>
}

/** What a store can do beyond the core of the contract. */
export interface StoreCapabilities {
  /** Keeps its data beyond the process, and shares it among processes. Default false. */
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
  /** Has the method `stage`. Default true. */
  readonly stage?: boolean
}

export type Capability = keyof StoreCapabilities

/** The functions of a test runner: of vitest, of node:test, or of any other that has them in this form. */
export interface TestRunner {
  readonly describe: (name: string, define: () => void) => unknown
  readonly it: (title: string, run: () => Promise<void>) => unknown
}

export interface DescribeStoreOptions extends StoreCapabilities, Partial<TestRunner> {
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
  /** Small content that may stand at a path of the collection. */
  readonly content: (seed: number, path: string) => Content
  /** The same data, opened once more. Without `durable`: the same store. */
  readonly reopen: () => Promise<ResourceStore>
}

/** One property that a store has or has not. */
export interface Case {
  /** What the store does, as a sentence without a subject. */
  readonly title: string
  readonly needs?: readonly Capability[]
  readonly run: (bench: Bench) => Promise<void>
}
