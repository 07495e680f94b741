import { describe, expect, it } from 'vitest'
import type { PostgresConnection } from '../../src/stores/postgres/connection.ts'
import { migratePostgres } from '../../src/stores/postgres/schema.ts'

const fail = (code: string) => Object.assign(new Error(code), { code })

/**
 * A database without tables.
 * @param refusals how it refuses the first statements that make one
 * @param missing how it refuses to read one
 * @param newer the version that another process makes meanwhile
 */
function openDatabase(refusals: readonly string[], missing = '42P01', newer?: number) {
  const left = [...refusals]
  let version: number | undefined
  const counts = { tries: 0, migrations: 0 }
  const run = async (statement: unknown): Promise<unknown[]> => {
    const text = String(statement)
    if (text.includes('server_encoding')) return [{ encoding: 'UTF8' }]
    if (text.startsWith('SELECT version')) {
      if (version === undefined) throw fail(missing)
      if (text.endsWith('FOR UPDATE')) version = newer ?? version
      return [{ version }]
    }
    if (/^CREATE TABLE IF NOT EXISTS \w+schema /.test(text)) {
      counts.tries++
      const code = left.shift()
      if (code !== undefined) throw fail(code)
      version = 0
    }
    const update = /^UPDATE \w+schema SET version = (\d+)/.exec(text)
    if (update !== null) {
      version = Number(update[1])
      counts.migrations++
    }
    return []
  }
  const transact = (work: (run: unknown) => unknown) => work(run)
  return { connection: { read: run, run, transact, view: transact } as unknown as PostgresConnection, counts }
}

describe('migratePostgres', () => {
  it.each(['23505', '42P07', '42710', 'XX000'])(
    'tries again where another process makes the same table at the same moment: %s',
    async (code) => {
      const { connection, counts } = openDatabase([code, code])
      await migratePostgres(connection, 'own_')
      expect(counts).toEqual({ tries: 3, migrations: 1 })
    },
  )

  it('refuses the tables of a newer release, and leaves them alone, where that was faster', async () => {
    const { connection, counts } = openDatabase([], undefined, 99)
    await expect(migratePostgres(connection, 'own_')).rejects.toThrow('have schema version 99')
    expect(counts.migrations).toBe(0)
  })

  it('gives up after 20 attempts, and at once where the database refuses for another reason', async () => {
    const busy = openDatabase(new Array(30).fill('23505'))
    await expect(migratePostgres(busy.connection, 'own_')).rejects.toThrow('23505')
    expect(busy.counts.tries).toBe(20)
    const forbidden = openDatabase(['42501'])
    await expect(migratePostgres(forbidden.connection, 'own_')).rejects.toThrow('42501')
    expect(forbidden.counts.tries).toBe(1)
    const unreadable = openDatabase([], '42501')
    await expect(migratePostgres(unreadable.connection, 'own_')).rejects.toThrow('42501')
    expect(unreadable.counts.tries).toBe(0)
  })
})
