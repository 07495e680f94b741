import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { buildStoreProgram, type StoreProgram } from '../support/processes.ts'
import { expectNoOrphans, killWriters } from '../support/sql-scenarios.ts'

let server: PostgresServer
let program: StoreProgram
const folder = mkdtempSync(join(tmpdir(), 'content-kills-'))

beforeAll(async () => {
  server = await startPostgres()
  program = await buildStoreProgram()
})
afterAll(async () => {
  program.remove()
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

const KILLS = { kills: 3, writers: 2, acknowledged: 20 }

describe('content in files beside the states', () => {
  it('has every acknowledged write after kill -9, and no orphan after the sweep: sqliteStore (issue 22)', async () => {
    const place = { kind: 'sqlite', file: join(folder, 'kill.db'), directory: join(folder, 'sqlite') } as const
    await killWriters(program, place, KILLS)
    await expectNoOrphans(place)
  })

  it('has every acknowledged write after kill -9, and no orphan after the sweep: postgresStore (issue 22)', async () => {
    const { connectionString } = server
    const directory = join(folder, 'postgres')
    const place = { kind: 'postgres', connectionString, tablePrefix: 'kill_', directory } as const
    await killWriters(program, place, KILLS)
    await expectNoOrphans(place)
  })
})
