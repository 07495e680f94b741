import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createResourceClient, expectSuccess, type Fetch, type ResourceClient } from '../../src/client.ts'
import { createBytes } from '../../src/conformance/samples.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { createPrefix, openS3Contents } from '../support/contents.ts'
import { type S3Service, startS3 } from '../support/s3-service.ts'
import { createDatabaseFile, type DatabaseFile } from '../support/sqlite.ts'
import { start } from './servers.ts'

const LARGE = createBytes(100_000, 1)
const FILLING = 'x'.repeat(20_000)
const resources = {
  '/pages/{name}': document({}),
  '/files': collection({ types: ['*/*'], ids: 'string' }),
} as const

let s3: S3Service
let file: DatabaseFile
let store: ResourceStore
let base: string
let client: ResourceClient
/** Each request to the service: method, status. */
let requests: string[]
beforeAll(async () => {
  s3 = await startS3()
  file = await createDatabaseFile()
  const contents = openS3Contents(s3.endpoint, { prefix: createPrefix(), redirect: true })
  store = sqliteStore(file.open(), { contents, inlineLimit: 10_000, sweepInterval: 0 })
})
afterAll(async () => {
  await store.close?.()
  await file.remove()
  await s3.close()
})
beforeEach(async () => {
  const service = createResourceService(store, { https: 'optional', resources })
  requests = []
  base = await start((req, res) => {
    res.once('finish', () => requests.push(`${req.method} ${res.statusCode}`))
    service(req, res)
  })
  client = createResourceClient(base)
  await write('/pages/a', JSON.stringify({ text: FILLING, count: 0 }), 'application/json')
  await write('/files/a', LARGE)
  requests.length = 0
})

/** What another client does between two requests of this one. */
const write = async (path: string, body: Uint8Array | string, contentType = 'application/octet-stream') => {
  await store.write(path, { contentType, body }, { expect: 'any' })
}

describe('the client, where the service redirects GET of large content (RFC 9110 §15.4.8)', () => {
  it('edits with the tag of the resource instead of that of the target', async () => {
    const edited = await client.edit('/pages/a', (page) => ({ ...(page as JsonObject), count: 1 }))
    expect(expectSuccess(edited).document.value).toEqual({ text: FILLING, count: 1 })
    expect(requests).not.toContain('PATCH 412')
  })

  it('reads a document whose tag fits PUT, PATCH and DELETE', async () => {
    const { document: read } = expectSuccess(await client.read('/pages/a'))
    expect(read.entityTag).toBe(expectSuccess(await client.read('/pages/a')).document.entityTag)
    const { document: replaced } = expectSuccess(await client.replace(read, { text: FILLING, count: 2 }))
    expect(await client.replace(read, { count: 3 })).toMatchObject({ ok: false, status: 412 })
    expect(await client.remove(replaced)).toMatchObject({ ok: true })
    expect(await client.read('/pages/a')).toMatchObject({ ok: false })
  })

  it('reads what has not changed from memory', async () => {
    await client.read('/pages/a')
    requests.length = 0
    expect(expectSuccess(await client.read('/pages/a')).document.value).toMatchObject({ count: 0 })
    expect(requests).toEqual(['GET 304'])
  })

  it('downloads from the target, with the tag of the resource', async () => {
    const { file: content } = expectSuccess(await client.download('/files/a'))
    const before = s3.requests.filter((request) => request.startsWith('GET ')).length
    expect(before).toBeGreaterThan(0)
    expect(LARGE.equals(Buffer.from(await (await content.blob()).arrayBuffer()))).toBe(true)
    expect(await client.upload(content, 'new')).toMatchObject({ ok: true })
    expect(await client.upload(content, 'newer')).toMatchObject({ ok: false, status: 412 })
  })

  it('continues a download by the tag of the resource', async () => {
    const { file: content } = expectSuccess(await client.download('/files/a'))
    await content.cancel()
    const resume = { offset: 99_990, entityTag: content.entityTag! }
    const { file: rest } = expectSuccess(await client.download('/files/a', { resume }))
    expect(rest.offset).toBe(99_990)
    expect(LARGE.subarray(99_990).equals(Buffer.from(await (await rest.blob()).arrayBuffer()))).toBe(true)
  })

  it('continues a transfer that breaks', async () => {
    let breaks = 1
    s3.interfere = (req, res) => {
      if (req.method !== 'GET' || breaks-- <= 0) return undefined
      // The header of the response is that of the bucket.
      const { end } = res
      res.end = ((content: Buffer) => {
        res.end = end
        return res.write(content.subarray(0, 1000), () => setTimeout(() => res.destroy(), 50))
      }) as never
      return undefined
    }
    try {
      const { file: content } = expectSuccess(await client.download('/files/a'))
      expect(LARGE.equals(Buffer.from(await (await content.blob()).arrayBuffer()))).toBe(true)
    } finally {
      s3.interfere = () => undefined
    }
  })

  it('never joins the tag of a newer state to the content of an older one', async () => {
    const [newer] = [createBytes(100_000, 2)]
    let isChanged = false
    const fetch: Fetch = async (url, options) => {
      // The content of the first state is under way when the state changes.
      if (options.method === 'HEAD' && !isChanged) {
        isChanged = true
        await write('/files/a', newer)
      }
      return globalThis.fetch(url, options)
    }
    const other = createResourceClient(base, { fetch })
    await expect(other.download('/files/a')).rejects.toThrow('The content changed while it was transferred.')
    const { file: content } = expectSuccess(await other.download('/files/a'))
    expect(newer.equals(Buffer.from(await (await content.blob()).arrayBuffer()))).toBe(true)
    expect(await client.upload(content, 'new')).toMatchObject({ ok: true })
  })

  it('gives the refusal of the service or of the target', async () => {
    const removing: Fetch = async (url, options) => {
      if (options.method === 'HEAD') await store.remove('/files/a', { expect: 'any', mode: 'tombstone' })
      return globalThis.fetch(url, options)
    }
    const cancel = vi.spyOn(ReadableStreamDefaultReader.prototype, 'cancel')
    const gone = await createResourceClient(base, { fetch: removing }).download('/files/a')
    expect(gone).toMatchObject({ ok: false, status: 410 })
    // The content of the target is read no further.
    expect(cancel).toHaveBeenCalledTimes(1)
    cancel.mockRestore()
    await write('/files/a', LARGE)
    s3.interfere = (_, res) => {
      res.writeHead(403).end()
      return 'done'
    }
    try {
      expect(await client.download('/files/a')).toMatchObject({ ok: false, status: 403 })
    } finally {
      s3.interfere = () => undefined
    }
  })
})
