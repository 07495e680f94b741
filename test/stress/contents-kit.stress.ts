import { startFauxqs } from 'fauxqs'
import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { MEBIBYTE } from '../../src/conformance/samples.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { testContents, testStore } from '../../src/testing.ts'
import { createPrefix, openS3Contents } from '../support/contents.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { BUCKET, type S3Service, startS3 } from '../support/s3-service.ts'
import { createDatabaseFile } from '../support/sqlite.ts'

let service: S3Service
let fauxqs: Awaited<ReturnType<typeof startFauxqs>>
let postgres: PostgresServer
// One for every case: on a fast machine, pools of their own have more connections idle than the server has places for.
let pool: Pool
beforeAll(async () => {
  service = await startS3()
  fauxqs = await startFauxqs({ port: 0, logger: false })
  fauxqs.createBucket(BUCKET)
  postgres = await startPostgres()
  pool = postgres.createPool({ max: 8 })
})
afterAll(async () => {
  await service.close()
  await fauxqs.stop()
  await postgres.stop()
})

const open = (prefix: string) => openS3Contents(`http://127.0.0.1:${fauxqs.port}`, { prefix })

testContents(
  's3Contents with fauxqs',
  () => {
    const prefix = createPrefix()
    return { contents: open(prefix), reopen: () => open(prefix) }
  },
  { describe, it, largest: 17 * MEBIBYTE + 5 },
)

testStore(
  'sqliteStore with s3Contents and fauxqs',
  async () => {
    const file = await createDatabaseFile()
    const contents = open(createPrefix())
    const openStore = () => sqliteStore(file.open(), { contents, inlineLimit: 1000 })
    return { store: openStore(), reopen: openStore, close: () => file.remove() }
  },
  { describe, it },
)

let tables = 0
testStore(
  'postgresStore with s3Contents',
  () => {
    const contents = openS3Contents(service.endpoint, { prefix: createPrefix() })
    const tablePrefix = `kit_${++tables}_`
    const openStore = () => postgresStore({ pool, contents, inlineLimit: 1000, tablePrefix })
    return { store: openStore(), reopen: openStore }
  },
  { describe, it },
)
