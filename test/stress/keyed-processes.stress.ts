import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { killWhileKeyed, raceForKeys } from '../support/keyed-scenarios.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { buildServiceProgram, type ServiceProgram } from '../support/processes.ts'
import type { StorePlace } from '../support/sql-stores.ts'

// The scenarios of test/real/keyed-processes.test.ts, for longer and on a real disk.

const KILLS = Number(process.env['KEYED_KILLS'] ?? 300)
const KEYS = Number(process.env['KEYS'] ?? 5000)

let server: PostgresServer
let program: ServiceProgram
let folder: string

beforeAll(async () => {
  server = await startPostgres()
  program = await buildServiceProgram('keyed-process.ts')
  folder = await mkdtemp(join(tmpdir(), 'keyed-stress-'))
})
afterAll(async () => {
  program.remove()
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

const places: Readonly<Record<string, (name: string) => StorePlace>> = {
  sqliteStore: (name) => ({ kind: 'sqlite', file: join(folder, name) }),
  postgresStore: (name) => ({
    kind: 'postgres',
    connectionString: server.connectionString,
    tablePrefix: `${name}_`,
  }),
}

for (const [store, place] of Object.entries(places)) {
  describe(`Idempotency-Key on ${store}`, () => {
    it(`has one effect a key, ${20 * KEYS} requests, 20 racing for each, 2 processes (issue 20)`, () =>
      raceForKeys(program, place('race'), { keys: KEYS, perKey: 20, writers: 50 }))
    it(`creates once after ${KILLS} kills at random points (issue 20)`, () =>
      killWhileKeyed(program, place('kill'), { kills: KILLS }))
  })
}
