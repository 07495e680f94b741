import { andThen, type MaybePromise } from '../../core/handler.ts'
import { type ChunkCache, readThroughCache } from '../sql/chunk-cache.ts'
import { type ChunkSink, type ContentId, createLostContentError } from '../sql/intake.ts'
import { createLargeBody } from '../sql/large-body.ts'
import { toBytes } from '../sql/rows.ts'
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
  sweep(): 'all' | 'part'
}

export function createSqliteContents(
  connection: SqliteConnection,
  statements: SqliteStatements,
  { grace, now, chunks, onRelease }: SqliteContentsOptions,
): SqliteContents {
  const expiry = () => now() + grace

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

  return {
    open,

    begin() {
      const row = connection.transactLazily(() => statements.beginContent.get(expiry()))
      return andThen(row, (row) => (row as { id: number }).id)
    },

    append(id, index, bytes) {
      return connection.transactLazily(() => {
        if (statements.touchContent.get(expiry(), id) === undefined) throw createLostContentError()
        for (let from = 0; from < bytes.length; from += CHUNK_SIZE) {
          statements.addChunk.run(id, (index + from) / CHUNK_SIZE, bytes.subarray(from, from + CHUNK_SIZE))
        }
      })
    },

    abandon(id) {
      return andThen(
        connection.transactLazily(() => void statements.abandonContent.run(id)),
        onRelease,
      )
    },

    link(id) {
      if (statements.linkContent.get(id) === undefined) throw createLostContentError()
    },

    release(id) {
      statements.releaseContent.run(expiry(), id)
    },

    sweep() {
      const row = statements.findExpired.get(now()) as { id: number } | undefined
      if (row === undefined) return 'all'
      statements.abandonContent.run(row.id)
      const swept = statements.sweepChunks.all(row.id, row.id) as unknown[]
      if (swept.length === 0) statements.sweepContent.run(row.id)
      return 'part'
    },
  }
}
