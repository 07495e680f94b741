import type { ContentStore } from '../contents/types.ts'
import { describeValue } from '../core/describe-value.ts'
import { BOOLEAN, COUNT, checkValues, MILLISECONDS, SIZE } from '../core/option-values.ts'
import { readOptions } from '../core/options.ts'
import { memberPath, splitPath } from './paths.ts'
import { createPostgresConnection, type PostgresPool, type RunStatement } from './postgres/connection.ts'
import { BATCH_SIZE, createPostgresContents } from './postgres/contents.ts'
import { createUnavailableError } from './postgres/errors.ts'
import { createPostgresIndexes } from './postgres/indexes.ts'
import { createNameSource } from './postgres/names.ts'
import { createPglitePool, isPglite, type PgliteDatabase } from './postgres/pglite.ts'
import { createPostgresQueries } from './postgres/queries.ts'
import { connectWhenMigrated } from './postgres/schema.ts'
import { nameStatements } from './postgres/statements.ts'
import { createPostgresStates, type DatedRow, encodeKey } from './postgres/states.ts'
import { createPostgresSteps, type Step } from './postgres/steps.ts'
import { createRecentCache } from './recent-cache.ts'
import { CONTENT_STORE, createBesideContents, supportOf } from './sql/beside.ts'
import { DEFAULT_CACHE_SIZE } from './sql/chunk-cache.ts'
import { commitContents, createIntakeFactory, type Taken } from './sql/intake.ts'
import { type MovableContents, moveChunks } from './sql/move.ts'
import { checkTablePrefix, formatSortKey } from './sql/names.ts'
import { createOrphanSearch } from './sql/orphans.ts'
import { createIndexer } from './sql/queries/indexer.ts'
import { isExpected, LIVE, type Shown, type StateRow, toResource, toState } from './sql/rows.ts'
import { createSweeper } from './sql/sweeper.ts'
import type { Content, RelatedWrite, ResourceStore, StoredState, WriteResult } from './types.ts'
import { createVersions } from './versions.ts'

export type { PostgresClient, PostgresPool, PostgresQuery } from './postgres/connection.ts'
export type { PgliteDatabase, PgliteRunner } from './postgres/pglite.ts'
export type { MovableContents, MoveOptions } from './sql/move.ts'

export interface PostgresStoreOptions {
  /**
   * A `Pool` of `pg`, or an instance of PGlite. The store holds a connection only while the database works for it, and
   * closes neither.
   */
  readonly pool: PostgresPool | PgliteDatabase
  /** What the names of the tables begin with: lower-case letters, digits, underscores. Default `resource_`. */
  readonly tablePrefix?: string
  /**
   * Milliseconds that one statement may take, 1 or more. Then the answer is 503 and the connection is destroyed. Default
   * 10 000.
   */
  readonly statementTimeout?: number
  /**
   * Milliseconds to wait for a connection, 1 or more. Then the answer is 503. Becomes the `connectionTimeoutMillis` of a
   * pool that has none, so that the pool gives up a host that accepts connections and says nothing. Default 5000.
   */
  readonly connectTimeout?: number
  /** Calls that may wait for a connection at the same time, 1 or more; a further one fails with 503 at once. Default 1000. */
  readonly maxWaiting?: number
  /** Whether connections keep statements prepared; not through every pooler. Default true. */
  readonly preparedStatements?: boolean
  /** Bytes up to which content is kept in one piece and read at once. Default 65 536. */
  readonly inlineLimit?: number
  /** Milliseconds after which a tombstone is forgotten. Default 30 days. */
  readonly retention?: number
  /** Milliseconds for which replaced large content stays readable, and unfinished uploads stay. Default 10 minutes. */
  readonly grace?: number
  /** Milliseconds between two sweeps, from the first use of the store on; 0 for none. Default 60 000. */
  readonly sweepInterval?: number
  /** Bytes of memory for large content that is asked for repeatedly; 0 for none. Default 32 MiB. */
  readonly cacheSize?: number
  /**
   * Where content above `inlineLimit` is kept instead of in the database: `s3Contents`, `fileContents` or another
   * `ContentStore`. Chunks that are in the database stay readable. Default: in the database.
   */
  readonly contents?: ContentStore
}

const NUMBERS = [
  ...([
    'statementTimeout',
    'connectTimeout',
    'maxWaiting',
    'inlineLimit',
    'retention',
    'grace',
    'sweepInterval',
    'cacheSize',
  ] as const),
] as const
const POSTGRES_VALUES = {
  ...{ statementTimeout: MILLISECONDS, connectTimeout: MILLISECONDS, preparedStatements: BOOLEAN, inlineLimit: SIZE },
  contents: CONTENT_STORE,
  ...{ maxWaiting: COUNT, retention: SIZE, grace: SIZE, sweepInterval: SIZE, cacheSize: SIZE },
}

const DAY = 24 * 60 * 60 * 1000
const MAX_ATTEMPTS = 10

/**
 * Keeps resources in a Postgres database, shared by any number of processes and machines.
 * The tables are made at the first use. While the database is away every call fails with `HttpError` 503 and
 * Retry-After; once it is back the store works again.
 * @throws TypeError for an unknown option, a missing pool, an unfit prefix or limit
 */
export function postgresStore(options: PostgresStoreOptions): ResourceStore & MovableContents {
  if (typeof (options as { connect?: unknown } | undefined)?.connect === 'function') {
    throw new TypeError('postgresStore takes the pool as an option: postgresStore({ pool }).')
  }
  const read = readOptions('postgresStore', options, [
    ...NUMBERS,
    'pool',
    'tablePrefix',
    'preparedStatements',
    'contents',
  ])
  if (!isPool(read.pool) && !isPglite(read.pool)) {
    throw new TypeError(
      `postgresStore needs as pool: an instance of PGlite, or new Pool() of pg; it is ${describeValue(read.pool)}.`,
    )
  }
  checkValues('postgresStore', read, POSTGRES_VALUES)
  const {
    pool,
    tablePrefix = 'resource_',
    statementTimeout = 10_000,
    connectTimeout = 5000,
    maxWaiting = 1000,
    preparedStatements = true,
    inlineLimit = 65_536,
    retention = 30 * DAY,
    grace = 10 * 60 * 1000,
    sweepInterval = 60_000,
    cacheSize = DEFAULT_CACHE_SIZE,
    contents: contentStore,
  } = read
  const prefix = checkTablePrefix('postgresStore', tablePrefix)
  const connection = connectWhenMigrated(
    createPostgresConnection(isPglite(pool) ? createPglitePool(pool) : pool, {
      statementTimeout,
      connectTimeout,
      maxWaiting,
      preparedStatements,
    }),
    prefix,
    maxWaiting,
    () => sweeper.start(),
  )
  const statements = nameStatements(prefix)
  const nextVersion = createVersions()
  const sweeper = createSweeper(async () => {
    const states = await connection.run(statements.sweepStates, [])
    if ((await contents.sweep()) === 'part' || states.length > 0) return 'part'
    if ((await contents.sweepKeys()) === 'part') return 'part'
    await orphans?.step()
    return 'all'
  }, sweepInterval)
  const contents = createPostgresContents(connection, statements, {
    grace,
    nextId: nextVersion,
    chunks: createRecentCache<string, Uint8Array>(cacheSize),
    contentStore,
    onRelease: sweeper.hurry,
  })
  const orphans =
    contentStore === undefined
      ? undefined
      : createOrphanSearch(contentStore, {
          ...{ grace, readIdentity: contents.ledger.readIdentity, findKnown: contents.findKnown },
        })
  const names = createNameSource(connection, statements, maxWaiting)
  const states = createPostgresStates(connection, statements, contents, names, { grace, nextVersion })
  const beside = contentStore === undefined ? undefined : createBesideContents(contentStore, contents.ledger, grace)
  const { createIntake, stage } = createIntakeFactory(contents, { inlineLimit, batchSize: BATCH_SIZE, beside })

  const indexes = createPostgresIndexes(connection, {
    prefix,
    open: contents.open,
    onIncomplete: (collection, index) => void indexer.run(collection, index),
  })
  const indexer = createIndexer(indexes)
  const queries = createPostgresQueries(connection, { prefix, indexes, indexer, open: contents.open })

  const toFoundState = (row: DatedRow | undefined, hidden: Shown = 'not-shown'): StoredState =>
    toState(row, hidden, row?.now ?? 0, contents.open)

  /** Statements that change something, and wait for a connection only until the signal aborts. */
  function runUntil(signal: AbortSignal | undefined): RunStatement {
    return signal === undefined ? connection.run : (statement, values) => connection.run(statement, values, signal)
  }

  const steps = createPostgresSteps(connection, states, names, indexes, { nextVersion, runUntil, toFoundState })

  return {
    supports: { relatedExpect: true, queries: true, parents: true, ...supportOf(contentStore) },

    async read(path, { hidden = false, metadataOnly = false, signal } = {}) {
      const row = await states.read(path, metadataOnly ? 'without-content' : 'with-content', signal)
      return toFoundState(row, hidden ? 'shown' : 'not-shown')
    },

    write(path, content, { expect, related: given = [], relatedTo, requires, signal }) {
      const version = nextVersion()
      const related = relatedTo === undefined ? given : relatedTo({ version })
      const step: Step = { path, version, content, expect, related, requires }
      return commitContents(
        createIntake(),
        withRelated(content, related),
        signal,
        async (taken): Promise<WriteResult> => {
          for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
            const written = await steps.put(step, taken, signal)
            if ('outcome' in written) return { outcome: written.outcome, resource: written.resource }
            const conflict = await steps.explain(step, written, signal)
            if (conflict !== undefined) return conflict
            // It has become the expected one in between.
          }
          throw createUnavailableError(new Error('The state changed at every attempt.'))
        },
      )
    },

    async create(collection, content, { related, requires, signal } = {}) {
      signal?.throwIfAborted()
      const intake = createIntake()
      let used: readonly Taken[] = []
      try {
        for (;;) {
          const name = await names.take(collection)
          const version = nextVersion()
          const own = typeof content === 'function' ? content(name) : content
          const others = related?.(name, { version }) ?? []
          const all = withRelated(own, others)
          const taken = intake.held(all) ?? (await intake.take(all, signal))
          const path = memberPath(collection, name)
          const step: Step = { path, version, content: own, expect: 'vacant', related: others, requires }
          const written = await steps.put(step, taken, signal)
          if ('outcome' in written) {
            used = taken
            return { outcome: 'created', resource: written.resource }
          }
          // A client has written the name: the next one.
          if (written.unexpected === path) continue
          const conflict = await steps.explain(step, written, signal)
          if (conflict?.missing !== undefined) return { ...conflict, missing: conflict.missing }
          if (conflict?.related !== undefined) return { ...conflict, related: conflict.related }
        }
      } finally {
        intake.close(used)
      }
    },

    async remove(path, { expect, mode, retention: keep = retention, related = [], below = false, signal }) {
      signal?.throwIfAborted()
      const own = { mode, keep, expect, reach: 'live' } as const
      const other = { mode, keep, expect: 'any', reach: 'live-and-hidden' } as const
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const removed =
          related.length === 0 && !below
            ? await states.drop(runUntil(signal), path, own)
            : await connection.transact(async (run) => {
                const row = await states.drop(run, path, own)
                if (row === undefined) return undefined
                for (const path of related) await states.drop(run, path, other)
                if (below) await states.dropBelow(run, path)
                return row
              }, signal)
        if (removed !== undefined) return { outcome: 'removed', resource: toResource(removed, contents.open) }
        const row = await states.read(path, 'with-content', signal)
        const current = toFoundState(row)
        if (row?.state !== LIVE && expect === 'any') return { outcome: 'absent', current: current as undefined }
        if (!isExpected(row, expect)) return { outcome: 'conflict', current }
      }
      throw createUnavailableError(new Error('The state changed at every attempt.'))
    },

    async list(collection, options) {
      const { after, limit, hidden = false, query, signal } = options
      if (query !== undefined) return queries.list(collection, options, query)
      const rows = await connection.read<StateRow>(
        hidden ? statements.listAll : statements.listLive,
        [encodeKey(collection), after === undefined ? '' : encodeKey(formatSortKey(after)), limit + 1],
        signal,
      )
      const items = rows.slice(0, limit).map((row) => toResource(row, contents.open))
      return rows.length > limit ? { items, next: splitPath(items[limit - 1]!.path).name } : { items }
    },

    stage: (body, { signal } = {}) => stage(body, signal),

    moveContents: (options) => moveChunks('postgresStore', contents.chunkSource, beside, options),

    async close() {
      await sweeper.close()
      await indexer.close()
      await orphans?.close()
    },
  }
}

function isPool(value: unknown): value is PostgresPool {
  const { connect, on } = (value ?? {}) as Partial<PostgresPool>
  return typeof connect === 'function' && typeof on === 'function'
}

function withRelated(content: Content, related: readonly RelatedWrite[]): readonly Content[] {
  return related.length === 0 ? [content] : [content, ...related.map((write) => write.content)]
}
