import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createResourceService, type ResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { createPrefix, openS3Contents } from '../support/contents.ts'
import { hosts, type RunningHost, startHost } from '../support/hosts.ts'
import { runS3 } from '../support/running-s3.ts'
import { createDatabaseFile, type DatabaseFile } from '../support/sqlite.ts'

const s3 = await runS3()
const LARGE = { id: 2, text: 'x'.repeat(20_000) }

let file: DatabaseFile
let store: ResourceStore
let service: ResourceService
beforeAll(async () => {
  file = await createDatabaseFile()
  const contents = openS3Contents(s3.endpoint, { prefix: createPrefix() })
  store = sqliteStore(file.open(), { contents, inlineLimit: 10_000, sweepInterval: 0, cacheSize: 0 })
  service = createResourceService(store, {
    https: 'optional',
    log: false,
    onError: () => {},
    resources: { '/notes': collection() },
  })
  for (const note of [{ id: 1, text: 'small' }, LARGE]) {
    const body = Buffer.from(JSON.stringify(note))
    await store.write(`/notes/${note.id}`, { contentType: 'application/json', body }, { expect: 'absent' })
  }
})
afterAll(async () => {
  await service.close()
  await store.close?.()
  await file.remove()
})

describe.each(Object.keys(hosts))('a list whose large items lie in a bucket: %s', (kind) => {
  async function list(): Promise<Awaited<ReturnType<RunningHost['send']>>> {
    const host = await startHost(kind, service)
    try {
      return await host.send({ path: '/notes' })
    } finally {
      await host.close()
    }
  }

  it('has the items as they are', async () => {
    const { status, body } = await list()
    expect([status, JSON.parse(body.toString())]).toEqual([200, [{ id: 1, text: 'small' }, LARGE]])
  })

  it('is answered 503 with Retry-After while the bucket is away, not begun and broken off', async () => {
    s3.interfere = (_, res) => {
      res.writeHead(503).end()
      return 'done'
    }
    const { status, headers } = await list()
    expect(status).toBe(503)
    expect(headers).toMatchObject({ 'retry-after': '1', 'cache-control': 'no-store' })
  })
})
