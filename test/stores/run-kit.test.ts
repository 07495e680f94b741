import { existsSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findFreePort, type PostgresServer, startPostgres } from '../support/postgres.ts'
import { runProgram } from '../support/run-program.ts'
import { createDatabaseFile } from '../support/sqlite.ts'

/** Runs scripts/run-kit.js to its end. */
async function runKitScript(...args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const program = runProgram('scripts/run-kit.js', {}, [], args)
  return { code: await program.ended, output: program.output() }
}

describe('npm run kit (issue 22)', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  it('reports every case of a Postgres server through one connection, and leaves no table behind', async () => {
    const { code, output } = await runKitScript(server.connectionString, '--connections', '1')
    expect(output).toMatch(/^postgresStore, 2\d\d cases, against PostgreSQL \d+/)
    expect(output).toMatch(/^ {2}passed {2}finds nothing at a path that was never written \(\d+ ms\)$/m)
    expect(output).toMatch(/\n\d+ passed, 0 failed, 0 skipped in [\d.]+ s\n$/)
    expect(code).toBe(0)
    const { rows } = await server.createPool().query("SELECT tablename FROM pg_tables WHERE tablename LIKE 'kit%'")
    expect(rows).toEqual([])
  })

  it('runs against PGlite through its socket', async () => {
    const database = await PGlite.create()
    const port = await findFreePort()
    const socket = new PGLiteSocketServer({ db: database, port, host: '127.0.0.1' })
    await socket.start()
    try {
      const url = `postgres://postgres@127.0.0.1:${port}/postgres`
      const { code, output } = await runKitScript(url, '--connections', '1', '--only', 'content')
      expect(output).toMatch(/\n\d+ passed, 0 failed, 0 skipped in [\d.]+ s\n$/)
      expect(code).toBe(0)
    } finally {
      await socket.stop()
      await database.close()
    }
  })

  it('runs the cases that are asked for in a file of SQLite, and removes it', async () => {
    const file = await createDatabaseFile()
    const { code, output } = await runKitScript(`sqlite:${file.path}`, '--only', 'tombstone')
    expect(output).toMatch(/^sqliteStore, \d cases, against SQLite 3[.\d]+, libsql\n/)
    expect(output).toMatch(/\n\d passed, 0 failed, 0 skipped in [\d.]+ s\n$/)
    expect(code).toBe(0)
    expect(existsSync(file.path)).toBe(false)
    await file.remove()
  })

  it('names the case that fails and the answer of the database, and ends with 1', async () => {
    // The role may do nothing but read, so the tables cannot be made.
    const url = `${server.connectionString}?options=-c%20default_transaction_read_only%3Don`
    const { code, output } = await runKitScript(url, '--only', 'never written')
    expect(output).toMatch(/^ {2}failed {2}finds nothing at a path that was never written \(\d+ ms\)\n {10}.*25006: /m)
    expect(output).toMatch(/\n0 passed, 1 failed, 0 skipped in [\d.]+ s\n/)
    expect(code).toBe(1)
  })

  it.each([
    ['no database', [], /^usage: npm run kit/],
    ['another kind of database', ['mysql://localhost'], /^usage: npm run kit/],
    ['a database that is away', ['postgres://127.0.0.1:1/x'], /^The kit could not run: ECONNREFUSED/],
    ['a file that exists', ['sqlite:package.json'], /^package\.json exists\. /],
    ['a title that no case has', ['sqlite:/tmp/kit-none.db', '--only', 'xyz'], /^No case has "xyz" in its title/],
  ])('ends with 2 and a sentence for %s', async (_, args, message) => {
    const { code, output } = await runKitScript(...args)
    expect(output).toMatch(message)
    expect(code).toBe(2)
  })
})
