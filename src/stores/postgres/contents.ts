import { type ChunkCache, readThroughCache } from '../sql/chunk-cache.ts'
import { type ChunkSink, type ContentId, createLostContentError } from '../sql/intake.ts'
import { createLargeBody } from '../sql/large-body.ts'
import { toBytes } from '../sql/rows.ts'
import type { Swept } from '../sql/sweeper.ts'
import type { PostgresConnection, RunStatement } from './connection.ts'
import { CHUNK_SIZE } from './schema.ts'
import type { PostgresStatements } from './statements.ts'

export interface PostgresContentsOptions {
  /** Milliseconds for which content that no path shows is kept: for readers that are still on it, and for slow uploads. */
  readonly grace: number
  readonly nextId: () => string
  readonly chunks: ChunkCache
  /** Told when content was given up. */
  readonly onRelease: () => void
}

/** Large content in chunks that never change. */
export interface PostgresContents extends ChunkSink {
  /** Within a transaction: content becomes that of a path. */
  link(run: RunStatement, id: ContentId): Promise<void>
  /** One bounded step of clearing away; several processes may take it at the same time. */
  sweep(): Promise<Swept>
}

/** Bytes that are appended in one statement: two chunks. */
export const BATCH_SIZE: number = 2 * CHUNK_SIZE

export function createPostgresContents(
  connection: PostgresConnection,
  statements: PostgresStatements,
  { grace, nextId, chunks, onRelease }: PostgresContentsOptions,
): PostgresContents {
  return {
    open(id, size) {
      async function readFromTable(index: number, offset: number, length: number): Promise<Uint8Array | undefined> {
        const rest = offset + length - CHUNK_SIZE
        const statement = rest > 0 ? statements.readAcross : statements.readChunk
        const values = [id, index, offset + 1, rest > 0 ? rest : length]
        const [row] = await connection.read<{ bytes: string }>(statement, values)
        return row === undefined ? undefined : toBytes(row.bytes)
      }

      return createLargeBody(size, CHUNK_SIZE, readThroughCache(chunks, id, size, CHUNK_SIZE, readFromTable))
    },

    async begin() {
      const id = nextId()
      await connection.run(statements.beginContent, [id, grace])
      return id
    },

    async append(id, from, bytes) {
      const index = from / CHUNK_SIZE
      const rows =
        bytes.length <= CHUNK_SIZE
          ? await connection.run(statements.addChunk, [id, grace, index, bytes])
          : await connection.run(statements.addTwoChunks, [
              id,
              grace,
              index,
              bytes.subarray(0, CHUNK_SIZE),
              bytes.subarray(CHUNK_SIZE),
            ])
      if (rows.length === 0) throw createLostContentError()
    },

    async abandon(id) {
      await connection.run(statements.abandonContent, [id])
      onRelease()
    },

    async link(run, id) {
      const rows = await run(statements.linkContent, [id])
      if (rows.length === 0) throw createLostContentError()
    },

    async sweep() {
      const [row] = await connection.run<{ id: string }>(statements.claimExpired, [])
      if (row === undefined) return 'all'
      const swept = await connection.run(statements.sweepChunks, [row.id])
      if (swept.length === 0) await connection.run(statements.sweepContent, [row.id])
      return 'part'
    },
  }
}
