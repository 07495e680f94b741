import type { ContentStore } from '../contents/types.ts'
import { describeValue } from '../core/describe-value.ts'
import { andThen } from '../core/handler.ts'
import { checkValues, FUNCTION, SIZE, type ValueRule } from '../core/option-values.ts'
import { readOptions } from '../core/options.ts'
import { memberPath } from './paths.ts'
import { createRecentCache } from './recent-cache.ts'
import { CONTENT_STORE, createBesideContents, supportOf } from './sql/beside.ts'
import { DEFAULT_CACHE_SIZE } from './sql/chunk-cache.ts'
import { commitContents, createIntakeFactory, type Taken } from './sql/intake.ts'
import { type MovableContents, moveChunks } from './sql/move.ts'
import { checkTablePrefix } from './sql/names.ts'
import { createOrphanSearch } from './sql/orphans.ts'
import { createIndexer } from './sql/queries/indexer.ts'
import { isExpected, LIVE } from './sql/rows.ts'
import { createSweeper } from './sql/sweeper.ts'
import { createSqliteClock } from './sqlite/clock.ts'
import { createSqliteContents } from './sqlite/contents.ts'
import { blockWhileBusy, createSqliteConnection, type SqliteHandle } from './sqlite/handle.ts'
import { prepareIndexStatements } from './sqlite/index-statements.ts'
import { createSqliteIndexes } from './sqlite/indexes.ts'
import { createKnownStates } from './sqlite/known-states.ts'
import { createSqliteListings } from './sqlite/listings.ts'
import { createSqliteParents } from './sqlite/parents.ts'
import { createSqliteQueries } from './sqlite/queries.ts'
import { migrateSqlite } from './sqlite/schema.ts'
import { prepareStatements } from './sqlite/statements.ts'
import { createSqliteStates } from './sqlite/states.ts'
import type {
  Content,
  CreateOptions,
  CreateResult,
  RelatedWrite,
  ResourceStore,
  StoredResource,
  WriteResult,
} from './types.ts'
import { createVersions } from './versions.ts'

export type { MovableContents, MoveOptions } from './sql/move.ts'
export type { SqliteHandle, SqliteStatement, SqliteValue } from './sqlite/handle.ts'

export interface SqliteStoreOptions {
  /** What the names of the tables begin with: lower-case letters, digits, underscores. Default `resource_`. */
  readonly tablePrefix?: string
  /** Milliseconds to wait for other processes that write, before the answer is 503. Default 5000. */
  readonly busyTimeout?: number
  /** Bytes up to which content is kept in one piece and read at once. Default 65 536. */
  readonly inlineLimit?: number
  /** Milliseconds after which a tombstone is forgotten. Default 30 days. */
  readonly retention?: number
  /** Milliseconds for which replaced large content stays readable, and unfinished uploads stay. Default 10 minutes. */
  readonly grace?: number
  /** Milliseconds between two sweeps; 0 for none. Default 60 000. */
  readonly sweepInterval?: number
  /**
   * Bytes of memory for large content that is asked for repeatedly; a quarter of it more for states, and another
   * for pages. 0 for none. Default 32 MiB.
   */
  readonly cacheSize?: number
  /**
   * Bytes that are kept allocated beside the database, in a file whose name ends with `-reserve`: when the disk is full
   * they are given back, so that removal and small changes go on. Fewer, but at least 2 MiB, where less than four times
   * as much is free; 0 for none. Default 8 MiB.
   */
  readonly reserve?: number
  /**
   * Where content above `inlineLimit` is kept instead of in the database: `fileContents` or another `ContentStore`.
   * Chunks that are in the database stay readable. Default: in the database.
   */
  readonly contents?: ContentStore
  /** The clock, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

const SQLITE_NAMES = [
  ...([
    'tablePrefix',
    'busyTimeout',
    'inlineLimit',
    'retention',
    'grace',
    'sweepInterval',
    'cacheSize',
    'reserve',
    'contents',
    'now',
  ] as const),
] as const
const FINITE_SIZE: ValueRule = {
  accepts: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  text: 'a number of bytes, 0 or more',
}
const SQLITE_VALUES = {
  ...{ busyTimeout: SIZE, inlineLimit: SIZE, retention: SIZE, grace: SIZE, sweepInterval: SIZE, cacheSize: SIZE },
  reserve: FINITE_SIZE,
  contents: CONTENT_STORE,
  now: FUNCTION,
}

const DAY = 24 * 60 * 60 * 1000
const BATCH_SIZE = 512 * 1024

/** A new member whose content has to be taken in first. */
interface Draft {
  readonly name: string
  readonly version: string
  readonly content: Content
  readonly related: readonly RelatedWrite[]
}

/**
 * Keeps resources in a SQLite database: durable, one file, shared by several processes of one machine.
 * Reads, and writes of small content, are synchronous unless another process holds the lock.
 * @param handle an open database of `node:sqlite`, `libsql` or `better-sqlite3`, for this store alone; close it after
 *   `close()`
 * @returns the store; its tables exist
 * @throws TypeError for an unknown option or an unfit prefix
 * @throws Error when the tables were made by a newer release, or the database cannot keep a write-ahead log
 */
export function sqliteStore(handle: SqliteHandle, options?: SqliteStoreOptions): ResourceStore & MovableContents {
  if (typeof handle?.exec !== 'function' || typeof handle.prepare !== 'function') {
    const meant = typeof handle === 'string' ? 'sqliteStore(new Database(file))' : 'new Database(file)'
    throw new TypeError(
      `sqliteStore takes an open database of node:sqlite, libsql or better-sqlite3, as in ${meant}, not ${describeValue(handle)}.`,
    )
  }
  const read = readOptions('sqliteStore', options, SQLITE_NAMES)
  checkValues('sqliteStore', read, SQLITE_VALUES)
  const {
    tablePrefix = 'resource_',
    busyTimeout = 5000,
    inlineLimit = 65_536,
    retention = 30 * DAY,
    grace = 10 * 60 * 1000,
    sweepInterval = 60_000,
    cacheSize = DEFAULT_CACHE_SIZE,
    reserve = 8 * 1024 * 1024,
    contents: contentStore,
    now = Date.now,
  } = read
  const prefix = checkTablePrefix('sqliteStore', tablePrefix)
  const connection = createSqliteConnection(handle, {
    busyTimeout,
    reserve,
    onShortage: () => sweeper.hurry(),
    migrate: (handle) => migrateSqlite(handle, prefix),
  })
  const statements = prepareStatements(connection.handle, prefix)
  const clock = blockWhileBusy(busyTimeout, () => createSqliteClock(statements, now))
  const sweeper = createSweeper(async () => {
    const swept = await connection.transactLazily(() => {
      const states = statements.sweepStates.all(clock.read()) as unknown[]
      if (contents.sweep() === 'all' && states.length === 0 && indexes.sweep() === 'all') return 'all'
      // What was forgotten by this clock must not be followed by states with dates of before.
      clock.tick()
      return 'part'
    })
    if (swept === 'part') return 'part'
    connection.space.tend()
    if ((await contents.sweepKeys()) === 'part') return 'part'
    await orphans?.step()
    return 'all'
  }, sweepInterval)
  const chunks = createRecentCache<string, Uint8Array>(cacheSize)
  const contents = createSqliteContents(connection, statements, {
    grace,
    now: clock.read,
    chunks,
    contentStore,
    onRelease: sweeper.hurry,
  })
  const beside = contentStore === undefined ? undefined : createBesideContents(contentStore, contents.ledger, grace)
  const { createIntake, stage } = createIntakeFactory(contents, { inlineLimit, batchSize: BATCH_SIZE, beside })
  const orphans =
    contentStore === undefined
      ? undefined
      : createOrphanSearch(contentStore, {
          ...{ grace, readIdentity: contents.ledger.readIdentity, findKnown: contents.findKnown },
        })
  sweeper.start()
  const nextVersion = createVersions()
  const indexStatements = prepareIndexStatements(connection.handle, prefix)
  const indexes = createSqliteIndexes(connection, indexStatements, {
    now: clock.now,
    open: contents.open,
    onIncomplete: (collection, index) => void indexer.run(collection, index),
  })
  const indexer = createIndexer(indexes)
  const known = createKnownStates(cacheSize / 4)
  const states = createSqliteStates(statements, contents, known, connection.space, clock, indexes)
  const parents = createSqliteParents(statements, states, contents, clock)
  const queries = createSqliteQueries(connection, prefix, { indexes, indexer, known, open: contents.open })
  const listings = createSqliteListings(statements, contents, known)

  return {
    supports: { relatedExpect: true, queries: true, parents: true, ...supportOf(contentStore) },

    read(path, { hidden = false, metadataOnly = false } = {}) {
      return connection.attempt(() =>
        states.read(path, hidden ? 'shown' : 'not-shown', metadataOnly ? 'without-content' : 'with-content'),
      )
    },

    write(path, content, { expect, related: given = [], relatedTo, requires, signal }) {
      const version = relatedTo === undefined ? undefined : nextVersion()
      const related = version === undefined ? given : relatedTo!({ version })
      const all = related.length === 0 ? [content] : [content, ...related.map((write) => write.content)]
      return commitContents(createIntake(), all, signal, (taken) =>
        connection.transact((): WriteResult => {
          const missing = parents.findMissing(requires)
          if (missing !== undefined) return missing
          const row = states.readHead(path)
          if (!isExpected(row, expect)) {
            return (
              states.findConflict(path, related) ?? { outcome: 'conflict', current: states.read(path, 'not-shown') }
            )
          }
          const resource = states.put({ path, row, content, version }, related, taken)
          if ('outcome' in resource) return resource
          return { outcome: row?.state === LIVE ? 'replaced' : 'created', resource }
        }),
      )
    },

    create(collection, content, { related, requires, signal }: CreateOptions = {}) {
      signal?.throwIfAborted()
      const intake = createIntake()
      let used: readonly Taken[] = []

      /** Within a transaction. The name of a draft is not assigned again, used or not. */
      function attempt(drafted: Draft | undefined): CreateResult | Draft {
        const draft = drafted !== undefined && isFree(drafted) ? drafted : createDraft()
        const taken = intake.held(contentsOf(draft))
        if (taken === undefined) return draft
        const path = memberPath(collection, draft.name)
        const missing = parents.findMissing(requires)
        if (missing !== undefined) return missing
        const resource = states.put({ ...draft, path, row: undefined }, draft.related, taken)
        if ('outcome' in resource) return resource
        used = taken
        return { outcome: 'created', resource }
      }

      function createDraft(): Draft {
        const name = states.takeName(collection)
        const version = nextVersion()
        return {
          name,
          version,
          content: typeof content === 'function' ? content(name) : content,
          related: related?.(name, { version }) ?? [],
        }
      }

      /** A client may have written the name while the content came in. */
      function isFree(draft: Draft): boolean {
        return states.readHead(memberPath(collection, draft.name)) === undefined
      }

      async function takeAndAttempt(draft: Draft): Promise<CreateResult> {
        try {
          for (;;) {
            await intake.take(contentsOf(draft), signal)
            const result = await connection.transact(() => attempt(draft))
            if ('outcome' in result) return result
            draft = result
          }
        } finally {
          intake.close(used)
        }
      }

      return andThen(
        connection.transact(() => attempt(undefined)),
        (result) => ('outcome' in result ? result : takeAndAttempt(result)),
      )
    },

    remove(path, { expect, mode, retention: keep = retention, related = [], below = false, signal }) {
      signal?.throwIfAborted()
      return connection.transact(() => {
        const row = states.readHead(path)
        const current = states.read(path, 'not-shown')
        if (row?.state !== LIVE && expect === 'any') return { outcome: 'absent', current: current as undefined }
        if (row === undefined || !isExpected(row, expect)) return { outcome: 'conflict', current }
        states.drop(row, mode, keep)
        states.dropRelated(related, mode, keep)
        if (below) parents.dropBelow(path)
        return { outcome: 'removed', resource: current as StoredResource }
      })
    },

    list: (collection, options) =>
      options.query === undefined
        ? connection.attempt(() => listings.list(collection, options))
        : queries.list(collection, options, options.query),

    stage: (body, { signal } = {}) => stage(body, signal),

    moveContents: (options) => moveChunks('sqliteStore', contents.chunkSource, beside, options),

    close: () => andThen(sweeper.close(), () => andThen(indexer.close(), () => orphans?.close())),
  }
}

function contentsOf({ content, related }: Draft): readonly Content[] {
  return related.length === 0 ? [content] : [content, ...related.map((write) => write.content)]
}
