import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import Database from 'libsql'
import { expect, it } from 'vitest'
import { sqliteStore } from '../../src/stores/sqlite.ts'

async function* pass(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('x')
}

async function* fail(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('x')
  throw new Error('The source failed.')
}

it('reads no stream of a write that has staged content of another store', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'foreign-staged-'))
  const databases = ['a.db', 'b.db'].map((name) => new Database(join(folder, name)))
  const [store, other] = databases.map((database) => sqliteStore(database))
  const unhandled: unknown[] = []
  const note = (reason: unknown): void => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  try {
    const contentType = 'text/plain'
    const related = [{ path: '/a/b', content: { contentType, body: await other!.stage!(pass()) } }]
    const write = async () => store!.write('/a', { contentType, body: fail() }, { expect: 'any', related })
    await expect(write()).rejects.toThrow('The staged content belongs to another store.')
    await setTimeout(20)
    expect(unhandled).toEqual([])
  } finally {
    process.off('unhandledRejection', note)
    for (const opened of [store, other]) await opened!.close?.()
    for (const database of databases) database.close()
    rmSync(folder, { recursive: true })
  }
})
