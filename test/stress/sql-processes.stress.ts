import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { buildStoreProgram, type StoreProgram } from '../support/processes.ts'
import { countTogether, createTogether, killWriters } from '../support/sql-scenarios.ts'
import type { StorePlace } from '../support/sql-stores.ts'

// The scenarios of test/real/sql-processes.test.ts, for longer and on a real disk.

const KILLS = Number(process.env['KILLS'] ?? 200)
const STEPS = Number(process.env['STEPS'] ?? 1000)

let server: PostgresServer
let program: StoreProgram
let folder: string

beforeAll(async () => {
  server = await startPostgres()
  program = await buildStoreProgram()
  folder = await mkdtemp(join(tmpdir(), 'sqlite-stress-'))
})
afterAll(async () => {
  program.remove()
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

const sqlite = (name: string): StorePlace => ({ kind: 'sqlite', file: join(folder, name) })
const postgres = (name: string): StorePlace => ({
  kind: 'postgres',
  connectionString: server.connectionString,
  tablePrefix: `${name}_`,
})

describe('sqliteStore', () => {
  it(`has every acknowledged write after ${KILLS} kills`, () =>
    killWriters(program, sqlite('kill'), { kills: KILLS, writers: 3, acknowledged: 30 }))
  it('loses no update among 4 processes', () => countTogether(program, sqlite('count'), { processes: 4, count: STEPS }))
  it('assigns no name twice among 4 processes', () =>
    createTogether(program, sqlite('create'), { processes: 4, count: STEPS }))
})

describe('postgresStore', () => {
  it(`has every acknowledged write after ${KILLS} kills`, () =>
    killWriters(program, postgres('kill'), { kills: KILLS, writers: 3, acknowledged: 30 }))
  it('loses no update among 8 processes', () =>
    countTogether(program, postgres('count'), { processes: 8, count: STEPS }))
  it('assigns no name twice among 8 processes', () =>
    createTogether(program, postgres('create'), { processes: 8, count: STEPS }))
})
