import { expect, it, vi } from 'vitest'
import { createBytes, MEBIBYTE, stream } from '../../src/conformance/samples.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import type { StoredResource } from '../../src/stores/types.ts'
import { createPrefix, listKeys, openS3Contents } from '../support/contents.ts'
import { startPostgres } from '../support/postgres.ts'
import { startS3 } from '../support/s3-service.ts'
import { readBytes } from '../support/store-tasks.ts'

it('s3Contents serves postgresStore: a lost swap, replaced content and a broken upload leave nothing (issue 22)', async () => {
  const [server, service] = [await startPostgres(), await startS3()]
  const contents = openS3Contents(service.endpoint, { prefix: createPrefix() })
  const pool = server.createPool({ max: 4 })
  const store = postgresStore({ pool, contents, grace: 300, sweepInterval: 50 })
  try {
    const upload = (seed: number) => ({
      contentType: 'application/octet-stream',
      body: stream(createBytes(9 * MEBIBYTE, seed), MEBIBYTE),
    })
    const { outcome } = await store.write('/a', upload(1), { expect: 'absent' })
    expect(outcome).toBe('created')
    expect((await store.write('/a', upload(2), { expect: 'absent' })).outcome).toBe('conflict')
    await store.write('/a', upload(3), { expect: 'present' })
    const controller = new AbortController()
    async function* leaving(): AsyncGenerator<Uint8Array> {
      yield* stream(createBytes(9 * MEBIBYTE, 4), MEBIBYTE)
      controller.abort(new Error('The client has left.'))
      yield createBytes(1, 5)
    }
    const body = { contentType: 'application/octet-stream', body: leaving() }
    const broken = store.write('/a', body, { expect: 'any', signal: controller.signal })
    await expect(broken).rejects.toThrow('The client has left.')
    await vi.waitFor(async () => expect(await listKeys(contents)).toHaveLength(1), 30_000)
    const found = await readBytes((await store.read('/a')) as StoredResource)
    expect(found.equals(createBytes(9 * MEBIBYTE, 3))).toBe(true)
  } finally {
    await store.close?.()
    await server.stop()
    await service.close()
  }
})
