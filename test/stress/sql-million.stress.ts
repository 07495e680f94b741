import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Libsql from 'libsql'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { postgresStore } from '../../src/stores/postgres.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'

// GET by path, the first page and page 10 000 cost the same among 1 000 000 members as among 1 000.

let server: PostgresServer
let folder: string

beforeAll(async () => {
  server = await startPostgres()
  folder = await mkdtemp(join(tmpdir(), 'sqlite-million-'))
})
afterAll(async () => {
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

const body = JSON.stringify({ name: 'Ada Lovelace', email: 'ada@example.org', notes: '.'.repeat(120) })

async function fill(store: ResourceStore, collection: string, count: number): Promise<void> {
  const content = { contentType: 'application/json', body }
  for (let made = 0; made < count; made += 500) {
    await Promise.all(
      Array.from({ length: Math.min(500, count - made) }, async () => store.create(collection, content)),
    )
  }
}

/** Microseconds of a call, the median of many. */
async function measure(call: (i: number) => unknown): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < 2000; i++) {
    const start = performance.now()
    await call(i)
    times.push(performance.now() - start)
  }
  times.sort((a, b) => a - b)
  return Math.round(times[1000]! * 1000)
}

async function measureAll(store: ResourceStore, collection: string, count: number) {
  const pages = Math.min(10_000, Math.floor(count / 50) - 1)
  return {
    get: await measure((i) => store.read(`${collection}/${1 + ((i * 7919) % count)}`)),
    firstPage: await measure(() => store.list(collection, { limit: 50 })),
    [`page ${pages}`]: await measure(() => store.list(collection, { limit: 50, after: String(pages * 50) })),
  }
}

async function compare(name: string, store: ResourceStore): Promise<void> {
  await fill(store, '/few', 1000)
  await fill(store, '/many', 1_000_000)
  const few = await measureAll(store, '/few', 1000)
  const many = await measureAll(store, '/many', 1_000_000)
  console.log(name, { few, many })
  expect(many.get).toBeLessThan(few.get * 2)
  expect(many.firstPage).toBeLessThan(few.firstPage * 2)
  expect(many['page 10000']).toBeLessThan(few.firstPage * 2)
}

it('sqliteStore', async () => {
  const handle = new Libsql(join(folder, 'million.db'))
  await compare('sqliteStore', sqliteStore(handle))
  handle.close()
})

it('postgresStore', async () => {
  await compare('postgresStore', postgresStore({ pool: server.createPool({ max: 10 }) }))
})
