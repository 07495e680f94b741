import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { buildStoreProgram, type StoreProgram } from '../support/processes.ts'
import { type S3Service, startS3 } from '../support/s3-service.ts'
import { abortUploads, expectNoOrphans, killWriters } from '../support/sql-scenarios.ts'
import type { StorePlace } from '../support/sql-stores.ts'

const KILLS = Number(process.env['KILLS'] ?? 200)
const MEBIBYTES = Number(process.env['MEBIBYTES'] ?? 1024)

let server: PostgresServer
let service: S3Service
let program: StoreProgram
let folder: string

beforeAll(async () => {
  server = await startPostgres()
  service = await startS3()
  program = await buildStoreProgram()
  folder = await mkdtemp(join(tmpdir(), 'contents-stress-'))
})
afterAll(async () => {
  program.remove()
  await service.close()
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

/** Writes and reads one content in a process of its own. */
async function moveLarge(place: StorePlace): Promise<void> {
  const process = program.start({ place, task: { task: 'large', mebibytes: MEBIBYTES } })
  await process.done()
  const [growth, write, read] = process.lines[0]!.split(' ').map(Number)
  console.info(`${MEBIBYTES} MiB: at most ${growth} MiB more; written at ${write} MiB/s, read at ${read} MiB/s`)
  expect(growth).toBeLessThan(64)
}

describe('content beside the states', () => {
  it('moves a gigabyte through files with less than 64 MiB of growth (issue 22)', () =>
    moveLarge({ kind: 'sqlite', file: join(folder, 'large.db'), directory: join(folder, 'large') }))

  it('moves a gigabyte through S3 with less than 64 MiB of growth (issue 22)', () =>
    moveLarge({
      ...{ kind: 'postgres', connectionString: server.connectionString, tablePrefix: 'large_' },
      s3: { endpoint: service.endpoint, prefix: 'large/' },
    }))

  it.each([
    [
      'SQLite and files',
      (): StorePlace => ({ kind: 'sqlite', file: join(folder, 'kill.db'), directory: join(folder, 'kill') }),
    ],
    [
      'Postgres and S3',
      (): StorePlace => ({
        ...{ kind: 'postgres', connectionString: server.connectionString, tablePrefix: 'kill_' },
        s3: { endpoint: service.endpoint, prefix: 'kill/' },
      }),
    ],
  ] as const)(
    `loses nothing that was acknowledged in ${KILLS} kills and ${KILLS} aborted uploads, and leaves no orphan: %s`,
    async (name, create) => {
      const place = create()
      const begin = performance.now()
      await killWriters(program, place, { kills: KILLS, writers: 3, acknowledged: 15 })
      await abortUploads(place, KILLS)
      await expectNoOrphans(place)
      const seconds = Math.round((performance.now() - begin) / 1000)
      console.info(
        `${name}: ${KILLS} kills of 3 writers and ${KILLS} aborted uploads in ${seconds} s; nothing lost, no orphan`,
      )
    },
  )
})
