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

describe.each(Object.keys(hosts))('what stands before content in a bucket: %s', (kind) => {
  async function read(path: string, headers = {}): Promise<Awaited<ReturnType<RunningHost['send']>>> {
    const host = await startHost(kind, service)
    try {
      return await host.send({ path, headers })
    } finally {
      await host.close()
    }
  }

  it('comes before the large items of a list', async () => {
    const { status, body } = await read('/notes')
    expect([status, JSON.parse(body.toString())]).toEqual([200, [{ id: 1, text: 'small' }, LARGE]])
  })

  it('comes before each of several ranges', async () => {
    const { status, body } = await read('/notes/2', { Range: 'bytes=0-7,100-109' })
    expect(status).toBe(206)
    expect(body.toString().match(/(?<=\r\n\r\n).*(?=\r\n--)/g)).toEqual(['{"id":2,', 'xxxxxxxxxx'])
  })

  it.each([
    ['a list', '/notes', {}],
    ['a range', '/notes/2', { Range: 'bytes=0-7' }],
    ['several ranges', '/notes/2', { Range: 'bytes=0-7,100-109' }],
  ])('is not sent while the bucket is away: %s is answered 503 with Retry-After', async (_, path, headers) => {
    s3.interfere = (_, res) => {
      res.writeHead(503).end()
      return 'done'
    }
    const answer = await read(path, headers)
    expect(answer.status).toBe(503)
    expect(answer.headers).toMatchObject({ 'retry-after': '1', 'cache-control': 'no-store' })
  })
})
