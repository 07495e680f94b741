import { once } from 'node:events'
import { connect } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createResourceService, type ResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { digestOf } from '../support/digests.ts'
import { hosts, type RunningHost, startHost } from '../support/hosts.ts'
import { startPostgres } from '../support/postgres.ts'
import { createDatabaseFile } from '../support/sqlite.ts'
import { watchStaged } from '../support/watch-staged.ts'
import { multipartOf } from './support.ts'

const BYTES = { 'Content-Type': 'application/octet-stream' }
const LARGE = Buffer.alloc(1_500_000, 'large content ')

function createService(store: ResourceStore): ResourceService {
  const resources = { '/docs/{name}': document(), '/photos': collection({ files: { photo: {} } }) }
  const service = createResourceService(store, { resources, https: 'optional', fallthrough: false })
  closeAfterTest(() => service.close())
  return service
}

async function start(name: string, store: ResourceStore = memoryStore()): Promise<RunningHost> {
  const host = await startHost(name, createService(store))
  closeAfterTest(() => host.close())
  return host
}

describe.each(Object.keys(hosts))('digest fields on %s', (name) => {
  it('are verified for small content and for streams, and answered (RFC 9530 §2, §4)', {
    timeout: 60_000,
  }, async () => {
    const host = await start(name)
    for (const body of ['small', LARGE]) {
      const put = async (digest: string): Promise<number> =>
        (await host.send({ method: 'PUT', path: '/docs/a', headers: { ...BYTES, 'Content-Digest': digest }, body }))
          .status
      expect(await put(digestOf('other'))).toBe(400)
      expect([201, 204]).toContain(await put(digestOf(body)))
    }
    const headers = { 'Want-Repr-Digest': 'sha-256=1' }
    const answer = await host.send({ path: '/docs/a', headers })
    expect([answer.status, answer.headers['repr-digest']]).toEqual([200, digestOf(LARGE)])
  })
})

describe('digest fields over HTTP/2', () => {
  it('count in the trailer section where Trailer has announced them (RFC 9530 §2, RFC 9113 §8.1)', async () => {
    const { port } = await start('http2')
    const session = connect(`http://127.0.0.1:${port}`)
    closeAfterTest(() => session.close())
    const put = async (body: string | Buffer, digest: string, announced = 'content-digest'): Promise<number> => {
      const head = { ':method': 'PUT', ':path': '/docs/a', 'content-type': 'text/plain', trailer: announced }
      const stream = session.request(head, { waitForTrailers: true } as never)
      stream.on('wantTrailers', () => stream.sendTrailers({ 'content-digest': digest }))
      stream.resume().end(body)
      const [fields] = (await once(stream, 'response')) as [Record<string, unknown>]
      await once(stream, 'close')
      return fields[':status'] as number
    }
    for (const body of ['small', LARGE]) {
      expect(await put(body, digestOf('other'))).toBe(400)
      expect([201, 204]).toContain(await put(body, digestOf(body)))
      expect(await put(body, digestOf('other'), 'x-other')).toBe(204)
    }
  })
})

const form = multipartOf([{ name: 'photo', filename: 'a', content: LARGE }])

/** Uploads that are damaged, streamed and in parts. */
async function sendDamaged(host: RunningHost): Promise<void> {
  const damaged = { 'Content-Digest': digestOf('other') }
  const put = await host.send({ method: 'PUT', path: '/docs/a', headers: { ...BYTES, ...damaged }, body: LARGE })
  // A condition has the content staged before it is written.
  const headers = { ...BYTES, ...damaged, 'If-None-Match': '*' }
  const staged = await host.send({ method: 'PUT', path: '/docs/a', headers, body: LARGE })
  const fields = { ...(form.fields as Readonly<Record<string, string>>), ...damaged }
  const post = await host.send({ method: 'POST', path: '/photos', headers: fields, body: form.body! })
  expect([put.status, staged.status, post.status]).toEqual([400, 400, 400])
}

async function until(isDone: () => Promise<boolean> | boolean, failure: string): Promise<void> {
  for (const end = Date.now() + 30_000; !(await isDone()); await sleep(20))
    if (Date.now() > end) throw new Error(failure)
}

describe('content that was damaged on its way', () => {
  it('leaves nothing in SQLite, neither a row nor a chunk', async () => {
    const file = await createDatabaseFile()
    closeAfterTest(() => file.remove())
    const handle = file.open()
    const store = sqliteStore(handle, { sweepInterval: 0 })
    closeAfterTest(() => store.close?.())
    await sendDamaged(await start('plain', store))
    const count = (table: string): number =>
      (handle.prepare(`SELECT count(*) AS n FROM resource_${table}`).get() as { n: number }).n
    await until(() => count('chunks') === 0 && count('contents') === 0, 'Chunks of damaged content have stayed.')
    expect(count('states')).toBe(0)
  })

  it('leaves nothing in Postgres that the next sweep does not take', { timeout: 180_000 }, async () => {
    const server = await startPostgres()
    closeAfterTest(() => server.stop())
    const pool = server.createPool({ max: 4 })
    const store = postgresStore({ pool, sweepInterval: 50 })
    closeAfterTest(() => store.close?.())
    await sendDamaged(await start('plain', store))
    const count = async (table: string): Promise<number> =>
      Number((await pool.query(`SELECT count(*) AS n FROM resource_${table}`)).rows[0].n)
    await until(
      async () => (await count('chunks')) === 0 && (await count('contents')) === 0,
      'Chunks of damaged content have stayed.',
    )
    expect(await count('states')).toBe(0)
  })

  it('is given up in a store that stages it', async () => {
    const { store, open } = watchStaged()
    await sendDamaged(await start('plain', store))
    expect(open.size).toBe(0)
    for (const path of ['/docs', '/photos']) expect((await store.list(path, { limit: 1 })).items).toEqual([])
  })
})
