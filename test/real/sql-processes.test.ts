import { afterAll, beforeAll, describe, it } from 'vitest'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { buildStoreProgram, type StoreProgram } from '../support/processes.ts'
import { countTogether, createTogether, killWriters } from '../support/sql-scenarios.ts'
import type { StorePlace } from '../support/sql-stores.ts'
import { createDatabaseFile } from '../support/sqlite.ts'

let server: PostgresServer
let program: StoreProgram
let prefixes = 0

beforeAll(async () => {
  const [started, built] = await Promise.all([startPostgres(), buildStoreProgram()])
  server = started
  program = built
})
afterAll(async () => {
  program.remove()
  await server.stop()
})

function createPostgresPlace(): StorePlace {
  const { connectionString } = server
  return { kind: 'postgres', connectionString, tablePrefix: `processes_${++prefixes}_` }
}

async function withSqliteFile(use: (place: StorePlace) => Promise<void>): Promise<void> {
  const file = await createDatabaseFile()
  try {
    await use({ kind: 'sqlite', file: file.path })
  } finally {
    await file.remove()
  }
}

// More of each in test/stress/sql-processes.stress.ts, which `npm run soak` runs.

describe('sqliteStore', () => {
  it('has every acknowledged write, whole, after kill -9 under load, three times', () =>
    withSqliteFile((place) => killWriters(program, place, { kills: 3, writers: 2, acknowledged: 10 })))

  it('loses no update among 4 processes on one file', () =>
    withSqliteFile((place) => countTogether(program, place, { processes: 4, count: 30 })))

  it('assigns no name twice among 4 processes on one file', () =>
    withSqliteFile((place) => createTogether(program, place, { processes: 4, count: 40 })))
})

describe('postgresStore', () => {
  it('has every acknowledged write, whole, after kill -9 under load, three times', () =>
    killWriters(program, createPostgresPlace(), { kills: 3, writers: 2, acknowledged: 10 }))

  it('loses no update among 8 processes on one database', () =>
    countTogether(program, createPostgresPlace(), { processes: 8, count: 15 }))

  it('assigns no name twice among 8 processes on one database', () =>
    createTogether(program, createPostgresPlace(), { processes: 8, count: 40 }))
})
