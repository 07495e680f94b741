import { afterAll, beforeAll, describe, it } from 'vitest'
import { killWhileKeyed, raceForKeys } from '../support/keyed-scenarios.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { buildServiceProgram, type ServiceProgram } from '../support/processes.ts'
import type { StorePlace } from '../support/sql-stores.ts'
import { createDatabaseFile } from '../support/sqlite.ts'

let server: PostgresServer
let program: ServiceProgram
let prefixes = 0

beforeAll(async () => {
  const [started, built] = await Promise.all([startPostgres(), buildServiceProgram('keyed-process.ts')])
  server = started
  program = built
})
afterAll(async () => {
  program.remove()
  await server.stop()
})

const createPostgresPlace = (): StorePlace => ({
  kind: 'postgres',
  connectionString: server.connectionString,
  tablePrefix: `keyed_${++prefixes}_`,
})

async function withSqliteFile(use: (place: StorePlace) => Promise<void>): Promise<void> {
  const file = await createDatabaseFile()
  try {
    await use({ kind: 'sqlite', file: file.path })
  } finally {
    await file.remove()
  }
}

// More of each in test/stress/keyed-processes.stress.ts, which `npm run soak` runs.

const RACE = { keys: 50, perKey: 20, writers: 50 }

describe('Idempotency-Key on sqliteStore', () => {
  it(
    'has one effect and one answer a key, 1,000 requests, 20 racing for each, 2 processes (issue 20)',
    () => withSqliteFile((place) => raceForKeys(program, place, RACE)),
    60_000,
  )

  it(
    'creates once, and answers as it first did, after kill -9 at random points, ten times (issue 20)',
    () => withSqliteFile((place) => killWhileKeyed(program, place, { kills: 10 })),
    60_000,
  )
})

describe('Idempotency-Key on postgresStore', () => {
  it(
    'has one effect and one answer a key, 1,000 requests, 20 racing for each, 2 processes (issue 20)',
    () => raceForKeys(program, createPostgresPlace(), RACE),
    60_000,
  )

  it(
    'creates once, and answers as it first did, after kill -9 at random points, ten times (issue 20)',
    () => killWhileKeyed(program, createPostgresPlace(), { kills: 10 }),
    60_000,
  )
})
