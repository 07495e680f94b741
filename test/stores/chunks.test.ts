import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createRecentCache } from '../../src/core/caches.ts'
import { createLargeBody } from '../../src/stores/sql/chunks.ts'
import { type SqliteHandle, sqliteStore } from '../../src/stores/sqlite.ts'
import { memoryContents } from '../contents/mutants.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { createDatabaseFile } from '../support/sqlite.ts'

const CHUNK = 10
const CONTENT = Buffer.from('0123456789abcdefghijklmno')

/** Content in three chunks, one of which may be shorter than it was written. */
function openContent(damaged?: number) {
  const reads: string[] = []
  const chunks = [0, 1, 2].map((index) => {
    const chunk = CONTENT.subarray(index * CHUNK, (index + 1) * CHUNK)
    return index === damaged ? chunk.subarray(0, 3) : chunk
  })
  const body = createLargeBody({
    id: 1,
    size: CONTENT.length,
    chunkSize: CHUNK,
    cache: createRecentCache(1000),
    readPiece(index, offset, length) {
      reads.push(`${index} ${offset} ${length}`)
      const next = chunks[index + 1] ?? Buffer.alloc(0)
      return Buffer.concat([
        chunks[index]!.subarray(offset, offset + length),
        next.subarray(0, Math.max(0, offset + length - CHUNK)),
      ])
    },
  })
  const read = async (first: number, last: number): Promise<string> => {
    const pieces = await body.read!(first, last)
    return Buffer.concat(pieces instanceof Uint8Array ? [pieces] : (pieces as Uint8Array[])).toString()
  }
  return { read, reads }
}

describe('content in chunks', () => {
  it('is read no more where it is kept, also across the end of a chunk', async () => {
    const { read, reads } = openContent()
    for (let i = 0; i < 4; i++) expect(await read(8, 12)).toBe('89abc')
    expect(await read(9, 18)).toBe('9abcdefghi')
    expect(reads).toEqual(['0 8 5', '0 0 10', '0 8 5', '1 0 10'])
  })

  it('is unavailable where a chunk is shorter than it was written, and is not kept', async () => {
    const { read } = openContent(2)
    expect(await read(0, 9)).toBe('0123456789')
    for (let i = 0; i < 4; i++) await expect(read(18, 24)).rejects.toMatchObject({ status: 503 })
    expect(await read(18, 22)).toBe('ijklm')
  })

  it('may fail to be read ahead for a reader that has left: no rejection is unhandled', async () => {
    const body = createLargeBody({
      ...{ id: 1, size: 30, chunkSize: CHUNK, cache: createRecentCache<string, Uint8Array>(0) },
      readPiece: async (index, _, length) => {
        if (index > 0) throw new Error('away')
        return Buffer.alloc(length)
      },
    })
    const rejected: unknown[] = []
    const onRejection = (error: unknown): void => void rejected.push(error)
    process.on('unhandledRejection', onRejection)
    try {
      for await (const _ of body.open(0, 29)) break
      // The event comes once the turn is over.
      for (let turn = 0; turn < 3; turn++) await nextTurn()
      expect(rejected).toEqual([])
    } finally {
      process.off('unhandledRejection', onRejection)
    }
  })
})

describe('content in chunks that moves out of SQLite', () => {
  it('leaves no chunk, and looks once at what has moved, not for each content', async () => {
    const file = await createDatabaseFile()
    closeAfterTest(() => file.remove())
    const [handle, other] = [file.open(), file.open()]
    let looks = 0
    let steps = 0
    const counted: SqliteHandle = {
      exec: (sql) => handle.exec(sql),
      prepare(sql) {
        const statement = handle.prepare(sql)
        const isLook = sql.includes('EXISTS (SELECT 1 FROM resource_chunks')
        return {
          run: statement.run.bind(statement),
          all: statement.all.bind(statement),
          get(...values) {
            if (isLook) looks++
            if (sql.includes('AS s WHERE path >')) steps++
            return statement.get(...values)
          },
        }
      },
    }
    const before = sqliteStore(other, { inlineLimit: 0, sweepInterval: 0 })
    for (let i = 0; i < 5; i++) await before.write(`/${i}`, { contentType: 'text/x', body: 'x' }, { expect: 'any' })
    const store = sqliteStore(counted, { inlineLimit: 0, sweepInterval: 0, contents: memoryContents() })
    closeAfterTest(async () => {
      await store.close?.()
      await before.close?.()
    })
    const chunks = () => other.prepare('SELECT 1 FROM resource_chunks').all()
    expect(await store.moveContents()).toBe(5)
    expect([looks, chunks()]).toEqual([1, []])
    expect(steps).toBe(6)
    // A step for all would keep the process from its requests.
    other.exec(
      'WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO resource_states ' +
        "(path, state, revision, changed, strong, size, content_type, content) SELECT '/many/' || i, 0, 'v' || i, 0, 0, 1, 'text/x', x'78' FROM n",
    )
    expect(await store.moveContents()).toBe(0)
    expect(steps).toBe(10)
    // As a process leaves them that ended in the midst.
    other.exec("INSERT INTO resource_chunks SELECT id, 0, x'78' FROM resource_contents WHERE key IS NOT NULL LIMIT 2")
    expect(await store.moveContents()).toBe(0)
    expect(chunks()).toEqual([])
  })
})
