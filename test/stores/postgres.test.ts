import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { postgresStore } from '../../src/stores/postgres.ts'
import { describeStore } from '../../src/testing.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'

let server: PostgresServer
let pool: Pool

beforeAll(async () => {
  server = await startPostgres()
  pool = server.createPool({ max: 10 })
})
afterAll(() => server.stop())

let fixtures = 0

describeStore(
  'postgresStore',
  () => {
    const tablePrefix = `kit_${++fixtures}_`
    const open = () => postgresStore({ pool, tablePrefix })
    return { store: open(), reopen: open }
  },
  { describe, it },
)
