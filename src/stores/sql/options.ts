import type { ContentStore } from '../../contents/types.ts'
import type { MaybePromise } from '../../core/maybe-promise.ts'
import { SIZE, shapedAs, type ValueRule, withDefault, writtenAs } from '../../core/option-values.ts'
import type { OptionTable } from '../../core/options.ts'
import type { ResourceStore } from '../types.ts'

/** The options that all stores on tables have. */
export interface SqlStoreOptions {
  /** What the names of the tables begin with: lower-case letters, digits, underscores. Default `resource_`. */
  readonly tablePrefix?: string
  /** Bytes up to which content is kept in one piece and read at once. Default 65 536. */
  readonly inlineLimit?: number
  /** Milliseconds after which a tombstone is forgotten. Default 30 days. */
  readonly retention?: number
  /** Milliseconds for which replaced large content stays readable, and unfinished uploads stay. Default 10 minutes. */
  readonly grace?: number
  /** Milliseconds between two sweeps, from the time on when the tables exist; 0 for none. Default 60 000. */
  readonly sweepInterval?: number
  /**
   * Bytes of memory for large content that is asked for repeatedly; `sqliteStore` takes a quarter of it more for states,
   * and another for pages. 0 for none. Default 32 MiB.
   */
  readonly cacheSize?: number
  /**
   * Where content above `inlineLimit` is kept instead of in the database: `fileContents`, `s3Contents` or another
   * `ContentStore`. Chunks that are in the database stay readable. Default: in the database.
   */
  readonly contents?: ContentStore
}

/** The options with their defaults, which the tables of options give. */
export type SqlSettings<Options extends SqlStoreOptions> = Readonly<
  Required<Omit<Options, 'contents'>> & Pick<SqlStoreOptions, 'contents'>
>

const CONTENT_STORE: ValueRule = writtenAs(
  shapedAs({ put: 'function', open: 'function', remove: 'function', list: 'function' }),
  'a ContentStore, as in fileContents({ directory })',
)
/** It becomes part of SQL text. */
const TABLE_PREFIX: ValueRule = {
  accepts: (value) => typeof value === 'string' && /^[a-z_][a-z0-9_]{0,39}$/.test(value),
  text: '1 to 40 lower-case letters, digits and underscores, the first not a digit',
}

/** A store puts its own options beside these. */
export const SQL_OPTIONS: OptionTable<SqlStoreOptions> = {
  tablePrefix: withDefault(TABLE_PREFIX, 'resource_'),
  inlineLimit: withDefault(SIZE, 65_536),
  retention: withDefault(SIZE, 30 * 24 * 60 * 60 * 1000),
  grace: withDefault(SIZE, 10 * 60 * 1000),
  sweepInterval: withDefault(SIZE, 60_000),
  cacheSize: withDefault(SIZE, 32 * 1024 * 1024),
  contents: CONTENT_STORE,
}

export interface MoveOptions {
  /** Ends the move with its reason. Content that has moved stays moved. */
  readonly signal?: AbortSignal
}

export const MOVE_OPTIONS: OptionTable<MoveOptions> = {
  signal: writtenAs(shapedAs({ throwIfAborted: 'function' }), 'an AbortSignal'),
}

/** A store that can move large content from its tables to its content store. */
export interface MovableContents {
  /**
   * Moves content that lies in the tables to the content store, one after the other, while the store serves requests.
   * Versions and dates stay. It may be ended and begun again at any time, and is run by one process.
   * @returns the number of contents that have moved
   * @throws TypeError when the store has no option `contents`
   */
  moveContents(options?: MoveOptions): Promise<number>
}

/** What `sqliteStore` and `postgresStore` return. */
export interface SqlStore extends ResourceStore, MovableContents {
  /** Ends the sweep and the indexing, and closes the content store; never the handle or the pool that the program passed. */
  close(): MaybePromise<void>
}
