import { setImmediate as nextTurn } from 'node:timers/promises'
import { andThen, type MaybePromise } from '../../core/maybe-promise.ts'
import { createBesideContents, createNoContentsError, keepContents } from '../sql/beside.ts'
import { createLargeBody, createLostContentError } from '../sql/chunks.ts'
import type {
  ChunkSource,
  ContentId,
  ContentLedger,
  LostContent,
  SqlContents,
  SqlShared,
  Swept,
} from '../sql/dialect.ts'
import { toBytes } from '../sql/rows.ts'
import { readWhole } from '../streams.ts'
import type { LargeBody } from '../types.ts'
import type { SqliteClock } from './changes.ts'
import type { SqliteConnection } from './connection.ts'
import { CHUNK_SIZE } from './schema.ts'
import { MOST_CHUNKS, type SqliteStatements } from './statements.ts'

export interface SqliteContents extends SqlContents {
  /** Within a transaction: content becomes that of a path. */
  link(id: ContentId): void
  /** Within a transaction: no path shows the content any more; its readers may go on for the grace period. */
  release(id: ContentId): void
  /** Within a transaction: the same for the content of all paths between two. */
  releaseBetween(from: string, to: string): void
  /** Within a transaction: one bounded step of clearing away. */
  sweep(): Swept
  /** The same when room is needed: content that was released goes at once, and its readers are broken off. */
  reclaim(): Swept
}

/** Steps in which content that was given up is cleared away at once: half a gigabyte. The sweep does the rest. */
const MAX_STEPS = 64
/** Content that this process has released and that may still be there. */
const MAX_RELEASED = 200
/** Bytes that are appended to large content in one transaction. */
const BATCH_SIZE = 512 * 1024

export function createSqliteContents(
  connection: SqliteConnection,
  statements: SqliteStatements,
  clock: SqliteClock,
  { owner, settings, cache, sweepSoon }: SqlShared,
): SqliteContents {
  const { grace, contents: contentStore } = settings
  const expiry = () => clock.read() + grace
  const released = new Set<ContentId>()

  function open(id: ContentId, size: number, version?: string): LargeBody {
    const key = beside === undefined ? undefined : readKey(id)
    return key === undefined ? openChunks(id, size, version) : beside!.open(key)
  }

  /** A piece whose chunk is gone: it may have moved to the content store since the state was read. */
  async function readMoved(id: ContentId, offset: number, length: number): Promise<Uint8Array | undefined> {
    const key = await connection.attempt(() => readKey(id))
    if (key === undefined) return undefined
    if (beside === undefined) throw createNoContentsError(owner)
    return readWhole(beside.open(key).open(offset, offset + length - 1))
  }

  function readKey(id: ContentId): string | undefined {
    return (statements.findKey.get(id) as { key: string | null } | undefined)?.key ?? undefined
  }

  function openChunks(id: ContentId, size: number, version?: string): LargeBody {
    function readPiece(index: number, offset: number, length: number): MaybePromise<Uint8Array | undefined> {
      const isWhole = offset === 0 && (length === CHUNK_SIZE || index * CHUNK_SIZE + length === size)
      const rest = offset + length - CHUNK_SIZE
      const row = connection.attempt(() => {
        if (isWhole) return statements.readChunk.get(id, index)
        if (rest > 0) return statements.readAcross.get(offset + 1, rest, id, index, id, index + 1)
        return statements.readPart.get(offset + 1, length, id, index)
      })
      return andThen(row, (row) =>
        row === undefined
          ? readMoved(id, index * CHUNK_SIZE + offset, length)
          : toBytes((row as { bytes: unknown }).bytes),
      )
    }

    // A backup that is restored meanwhile brings earlier numbers back, for other content; no version comes twice.
    return createLargeBody({ id: version, size, chunkSize: CHUNK_SIZE, cache, readPiece })
  }

  function link(id: ContentId): void {
    if (statements.linkContent.get(id) === undefined) throw createLostContentError()
  }

  /**
   * Removes content that was given up, or a part of it; content that a path shows stays.
   * @returns the number of chunks; `undefined` where there is nothing to remove
   */
  function clear(id: ContentId): number | undefined {
    if (statements.findAbandoned.get(id) === undefined) return undefined
    const { length } = statements.sweepChunks.all(id, id) as unknown[]
    if (length < MOST_CHUNKS) statements.sweepContent.run(id)
    return length
  }

  function sweep(): Swept {
    const rows = statements.findExpired.all(clock.read()) as { id: number }[]
    let chunks = 0
    for (const { id } of rows) {
      if (chunks >= MOST_CHUNKS) break
      statements.abandonContent.run(id)
      chunks += clear(id) ?? 0
    }
    return rows.length === 0 ? 'all' : 'part'
  }

  function reclaim(): Swept {
    if (sweep() === 'part') return 'part'
    // Content that a path shows again, because a transaction was undone, stays.
    for (const id of released) statements.releaseAtOnce.run(id)
    return sweep()
  }

  /** @param insert adds a row of content and returns its id */
  function beginRow(insert: () => unknown): MaybePromise<ContentId> {
    return connection.transactLazily(() => {
      connection.space.admit(0, 1, reclaim)
      return (insert() as { id: number }).id
    })
  }

  const ledger: ContentLedger = {
    begin: (key) => beginRow(() => statements.beginKey.get(expiry(), key)),
    touch: (id) => connection.transactLazily(() => void statements.touchContent.get(expiry(), id)),
    abandon,
    claim: () => connection.transactLazily(() => statements.claimKeys.all(clock.read()) as LostContent[]),
    async forget(ids) {
      await Promise.all(ids.map(clearChunks))
      await connection.transactLazily(() => {
        for (const id of ids) statements.sweepContent.run(id)
      })
    },
    findKnown: (keys) =>
      connection.attempt(() => new Set(keys.filter((key) => statements.findRowOfKey.get(key) !== undefined))),
    readIdentity: () => connection.attempt(() => (statements.readIdentity.get() as { id: string }).id),
  }
  const beside = contentStore === undefined ? undefined : createBesideContents(contentStore, ledger, grace)

  async function abandon(id: ContentId): Promise<void> {
    const key = await connection.transactLazily(() => {
      statements.abandonContent.run(id)
      return (statements.findAbandoned.get(id) as { key: string | null } | undefined)?.key ?? undefined
    })
    // Without the content store the row waits.
    if (key !== undefined) return beside?.remove({ id, key })
    // At once: while the disk is full, the next write needs what this one has taken.
    for (let step = 0; step < MAX_STEPS; step++) {
      if ((await connection.transactLazily(() => clear(id))) === undefined) break
      await nextTurn()
    }
    sweepSoon()
  }

  /** Chunks of content that lies in the content store: a move may have ended before it had removed them. */
  async function clearChunks(id: ContentId): Promise<void> {
    const clearSome = () => (statements.sweepChunks.all(id, id) as unknown[]).length
    while ((await connection.transactLazily(clearSome)) > 0) await nextTurn()
  }

  const chunkSource: ChunkSource = {
    async findNext(after) {
      // Once: this looks at all content that has moved.
      while (after === '') {
        const left = await connection.attempt(() => statements.findLeftChunks.get() as { id: number } | undefined)
        if (left === undefined) break
        await clearChunks(left.id)
      }
      const row = await connection.attempt(() => statements.findChunked.get(after, after))
      const { path, id, size } = (row ?? {}) as { path?: string; id: number | null; size: number }
      if (path === undefined || id === null) return path
      return { path, id, size: Number(size), body: openChunks(id, Number(size)) }
    },
    isCurrent({ path, id }) {
      return connection.attempt(() => (statements.findContentOf.get(path) as { id: unknown } | undefined)?.id === id)
    },
    // The row stays that of the state, so that states which any process keeps in memory stay right.
    async swap({ id }, taken) {
      const isMoved = await connection.transact(() => {
        link(taken.id!)
        const key = readKey(taken.id!)!
        statements.sweepContent.run(taken.id!)
        if (statements.moveContent.get(key, id) !== undefined) return true
        statements.beginKey.get(expiry(), key)
        return false
      })
      if (isMoved) await clearChunks(id)
      return isMoved
    },
  }

  return {
    batchSize: BATCH_SIZE,
    open,
    beside,
    chunkSource,
    abandon,
    keep: (ids) => keepContents(ledger, ids, grace),

    begin: () => beginRow(() => statements.beginContent.get(expiry())),

    append(id, index, bytes) {
      return connection.transactLazily(() => {
        connection.space.admit(bytes.length, 1, reclaim)
        if (statements.touchContent.get(expiry(), id) === undefined) throw createLostContentError()
        for (let from = 0; from < bytes.length; from += CHUNK_SIZE) {
          statements.addChunk.run(id, (index + from) / CHUNK_SIZE, bytes.subarray(from, from + CHUNK_SIZE))
        }
      })
    },

    link,

    release(id) {
      statements.releaseContent.run(expiry(), id)
      released.add(id)
      if (released.size > MAX_RELEASED) released.delete(released.values().next().value!)
    },

    releaseBetween(from, to) {
      statements.releaseBelow.run(expiry(), from, to)
    },

    sweep,
    reclaim,
  }
}
