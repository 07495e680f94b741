import { createBesideContents, createNoContentsError, keepContents } from '../sql/beside.ts'
import { createLargeBody, createLostContentError } from '../sql/chunks.ts'
import type { ChunkSource, ContentId, ContentLedger, SqlContents, SqlShared, Swept } from '../sql/dialect.ts'
import { toBytes } from '../sql/rows.ts'
import type { LargeBody } from '../types.ts'
import type { PostgresConnection, RunStatement } from './connection.ts'
import { CHUNK_SIZE } from './schema.ts'
import { KEY_MARK, type PostgresStatements, toCountable } from './statements.ts'

export interface PostgresContents extends SqlContents {
  /** Within a transaction: content becomes that of a path. */
  link(run: RunStatement, id: ContentId): Promise<void>
  /** One bounded step of clearing away; several processes may take it at the same time. */
  sweep(): Promise<Swept>
}

/** Bytes that are appended in one statement: two chunks. */
const BATCH_SIZE = 2 * CHUNK_SIZE

export function createPostgresContents(
  connection: PostgresConnection,
  statements: PostgresStatements,
  { owner, settings, cache, nextVersion, sweepSoon }: SqlShared,
): PostgresContents {
  const { contents: contentStore } = settings
  const grace = toCountable(settings.grace)
  let identity: string | undefined

  async function abandon(id: ContentId): Promise<void> {
    const rows = await connection.run(statements.abandonContent, [id])
    if (!isKey(id)) return sweepSoon()
    // A path shows it: it stays. Without the content store the row waits.
    if (rows.length > 0) await beside?.remove({ id, key: keyOf(id) })
  }

  const ledger: ContentLedger = {
    async begin(key) {
      await connection.run(statements.beginContent, [KEY_MARK + key, grace])
      return KEY_MARK + key
    },
    async touch(id) {
      await connection.run(statements.touchContent, [id, grace])
    },
    abandon,
    async claim() {
      const rows = await connection.run<{ id: string }>(statements.claimKeys, [])
      return rows.map(({ id }) => ({ id, key: keyOf(id) }))
    },
    async forget(ids) {
      await connection.run(statements.sweepContents, [ids.join(',')])
    },
    async findKnown(keys) {
      const ids = keys.map((key) => KEY_MARK + key).join(',')
      const rows = await connection.read<{ id: string }>(statements.findKnown, [ids])
      return new Set(rows.map(({ id }) => keyOf(id)))
    },
    async readIdentity() {
      if (identity !== undefined) return identity
      const [row] = await connection.read<{ id: string }>(statements.readIdentity, [])
      identity = row!.id
      return identity
    },
  }
  const beside = contentStore === undefined ? undefined : createBesideContents(contentStore, ledger, grace)

  async function link(run: RunStatement, id: ContentId): Promise<void> {
    if ((await run(statements.linkContent, [id])).length === 0) throw createLostContentError()
  }

  function open(id: ContentId, size: number): LargeBody {
    if (isKey(id)) {
      if (beside !== undefined) return beside.open(keyOf(id))
      return {
        open() {
          throw createNoContentsError(owner)
        },
      }
    }
    async function readPiece(index: number, offset: number, length: number): Promise<Uint8Array | undefined> {
      const rest = offset + length - CHUNK_SIZE
      const statement = rest > 0 ? statements.readAcross : statements.readChunk
      const values = [id, index, offset + 1, rest > 0 ? rest : length]
      const [row] = await connection.read<{ bytes: string }>(statement, values)
      return row === undefined ? undefined : toBytes(row.bytes)
    }

    return createLargeBody({ id, size, chunkSize: CHUNK_SIZE, cache, readPiece })
  }

  const chunkSource: ChunkSource = {
    async findNext(after) {
      type ChunkedRow = { readonly path: string; readonly id: string | null; readonly size: number }
      const [row] = await connection.read<ChunkedRow>(statements.findChunked, [Buffer.from(after, 'base64')])
      if (row === undefined || row.id === null) return row?.path
      return { path: row.path, id: row.id, size: row.size, body: open(row.id, row.size) }
    },
    async isCurrent({ path, id }) {
      const [row] = await connection.read<{ id: string }>(statements.findContentOf, [Buffer.from(path, 'base64')])
      return row?.id === id
    },
    swap({ path, id }, taken) {
      return connection.transact(async (run) => {
        const rows = await run(statements.moveContent, [Buffer.from(path, 'base64'), id, taken.id!])
        if (rows.length === 0) return false
        await link(run, taken.id!)
        await run(statements.releaseContent, [id, grace])
        return true
      })
    },
  }

  return {
    batchSize: BATCH_SIZE,
    beside,
    abandon,
    chunkSource,
    open,
    link,
    keep: (ids) => keepContents(ledger, ids, grace),

    async begin() {
      const id = nextVersion()
      await connection.run(statements.beginContent, [id, grace])
      return id
    },

    async append(id, from, bytes) {
      const isOne = bytes.length <= CHUNK_SIZE
      const chunks = isOne ? [bytes] : [bytes.subarray(0, CHUNK_SIZE), bytes.subarray(CHUNK_SIZE)]
      const statement = isOne ? statements.addChunk : statements.addTwoChunks
      const rows = await connection.run(statement, [id, grace, from / CHUNK_SIZE, ...chunks])
      if (rows.length === 0) throw createLostContentError()
    },

    async sweep() {
      const rows = await connection.run<{ id: string }>(statements.claimExpired, [])
      if (rows.length === 0) return 'all'
      const ids = rows.map(({ id }) => id).join(',')
      // On one connection: it waits for one as long as any of the requests that replace content.
      await connection.transact(async (run) => {
        await run(statements.sweepChunks, [ids])
        await run(statements.sweepContents, [ids])
      })
      return 'part'
    },
  }
}

function isKey(id: ContentId): id is string {
  return typeof id === 'string' && id.startsWith(KEY_MARK)
}

function keyOf(id: string): string {
  return id.slice(KEY_MARK.length)
}
