import { setImmediate as nextTurn } from 'node:timers/promises'
import { andThen, type MaybePromise } from '../../core/handler.ts'
import { type ChunkCache, readThroughCache } from '../sql/chunk-cache.ts'
import { type ChunkSink, type ContentId, createLostContentError } from '../sql/intake.ts'
import { createLargeBody } from '../sql/large-body.ts'
import { toBytes } from '../sql/rows.ts'
import type { Swept } from '../sql/sweeper.ts'
import type { LargeBody } from '../types.ts'
import type { SqliteConnection } from './handle.ts'
import { CHUNK_SIZE } from './schema.ts'
import type { SqliteStatements } from './statements.ts'

export interface SqliteContentsOptions {
  /** Milliseconds for which content that no path shows is kept: for readers that are still on it, and for slow uploads. */
  readonly grace: number
  /** The time by the file; asked for within transactions. */
  readonly now: () => number
  readonly chunks: ChunkCache
  /** Told when content was given up. */
  readonly onRelease: () => void
}

/** Large content in chunks that never change. */
export interface SqliteContents extends ChunkSink {
  /** Within a transaction: content becomes that of a path. */
  link(id: ContentId): void
  /** Within a transaction: no path shows the content any more; its readers may go on for the grace period. */
  release(id: ContentId): void
  /** Within a transaction: one bounded step of clearing away. */
  sweep(): Swept
  /** The same when room is needed: content that was released goes at once, and its readers are broken off. */
  reclaim(): Swept
}

/** Steps in which content that was given up is cleared away at once: half a gigabyte. The sweep does the rest. */
const MAX_STEPS = 64
/** Content that this process has released and that may still be there. */
const MAX_RELEASED = 200

export function createSqliteContents(
  connection: SqliteConnection,
  statements: SqliteStatements,
  { grace, now, chunks, onRelease }: SqliteContentsOptions,
): SqliteContents {
  const expiry = () => now() + grace
  const released = new Set<ContentId>()

  function readPiece(id: ContentId, index: number, offset: number, length: number): unknown {
    const rest = offset + length - CHUNK_SIZE
    if (rest > 0) return statements.readAcross.get(offset + 1, rest, id, index, id, index + 1)
    return statements.readPart.get(offset + 1, length, id, index)
  }

  function open(id: ContentId, size: number): LargeBody {
    function readFromTable(index: number, offset: number, length: number): MaybePromise<Uint8Array | undefined> {
      const isWhole = offset === 0 && (length === CHUNK_SIZE || index * CHUNK_SIZE + length === size)
      const row = connection.attempt(() =>
        isWhole ? statements.readChunk.get(id, index) : readPiece(id, index, offset, length),
      )
      return andThen(row, (row) => (row === undefined ? undefined : toBytes((row as { bytes: unknown }).bytes)))
    }

    return createLargeBody(size, CHUNK_SIZE, readThroughCache(chunks, id, size, CHUNK_SIZE, readFromTable))
  }

  /** Content that was given up; content that a path shows stays. */
  function clear(id: ContentId): Swept {
    if (statements.findAbandoned.get(id) === undefined) return 'all'
    const swept = statements.sweepChunks.all(id, id) as unknown[]
    if (swept.length === 0) statements.sweepContent.run(id)
    return 'part'
  }

  function sweep(): Swept {
    const row = statements.findExpired.get(now()) as { id: number } | undefined
    if (row === undefined) return 'all'
    statements.abandonContent.run(row.id)
    return clear(row.id)
  }

  function reclaim(): Swept {
    if (sweep() === 'part') return 'part'
    // Content that a path shows again, because a transaction was undone, stays.
    for (const id of released) statements.abandonContent.run(id)
    return sweep()
  }

  return {
    open,

    begin() {
      const row = connection.transactLazily(() => {
        connection.space.admit(0, 1, reclaim)
        return statements.beginContent.get(expiry())
      })
      return andThen(row, (row) => (row as { id: number }).id)
    },

    append(id, index, bytes) {
      return connection.transactLazily(() => {
        connection.space.admit(bytes.length, 1, reclaim)
        if (statements.touchContent.get(expiry(), id) === undefined) throw createLostContentError()
        for (let from = 0; from < bytes.length; from += CHUNK_SIZE) {
          statements.addChunk.run(id, (index + from) / CHUNK_SIZE, bytes.subarray(from, from + CHUNK_SIZE))
        }
      })
    },

    // At once: while the disk is full, the next write needs what this one has taken.
    async abandon(id) {
      await connection.transactLazily(() => void statements.abandonContent.run(id))
      for (let step = 0; step < MAX_STEPS; step++) {
        if ((await connection.transactLazily(() => clear(id))) === 'all') break
        await nextTurn()
      }
      onRelease()
    },

    link(id) {
      if (statements.linkContent.get(id) === undefined) throw createLostContentError()
    },

    release(id) {
      statements.releaseContent.run(expiry(), id)
      released.add(id)
      if (released.size > MAX_RELEASED) released.delete(released.values().next().value!)
    },

    sweep,
    reclaim,
  }
}
