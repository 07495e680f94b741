import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { connect, constants } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { readAll } from '../../src/conformance/contents-cases.ts'
import { createBytes, stream } from '../../src/conformance/samples.ts'
import { fileContents } from '../../src/contents/file.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { createKey } from '../support/contents.ts'
import { startHost } from '../support/hosts.ts'
import { createDatabaseFile } from '../support/sqlite.ts'

/** What is done with files that are opened for reading. */
const { files } = vi.hoisted(() => ({ files: { opened: 0, open: 0, most: 0, reads: 0 } }))

/** A disk that takes its time to open a file. */
vi.mock('node:fs/promises', async (load) => {
  const fs = await load<typeof import('node:fs/promises')>()
  return {
    ...fs,
    open: async (...args: Parameters<typeof fs.open>) => {
      const file = await fs.open(...args)
      if (typeof args[1] !== 'number') return file
      files.opened++
      files.most = Math.max(files.most, ++files.open)
      const [read, close] = [file.read.bind(file), file.close.bind(file)]
      const counted = {
        read: (...values: Parameters<typeof read>) => {
          files.reads++
          return read(...values)
        },
        close: () => {
          files.open--
          return close()
        },
      }
      await new Promise((resolve) => setTimeout(resolve, 50))
      return Object.assign(file, counted)
    },
  }
})

const SIZE = 300_000
let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'file-aborts-'))
  Object.assign(files, { opened: 0, open: 0, most: 0, reads: 0 })
})
afterEach(() => rm(directory, { recursive: true, force: true }))

describe('fileContents and requests that are gone', () => {
  it('closes a file that was opened for a request that has ended meanwhile, and reads nothing of it', async () => {
    const contents = fileContents({ directory })
    const key = createKey()
    await contents.put(key, stream(createBytes(SIZE, 1)))
    const reason = new Error('The client has gone.')
    const controller = new AbortController()
    const chunks = contents.open(key, 0, SIZE - 1, { signal: controller.signal })[Symbol.asyncIterator]()
    const reading = chunks.next()
    reading.catch(() => {})
    await vi.waitFor(() => expect(files.open).toBe(1), { interval: 1 })
    controller.abort(reason)
    await expect(reading).rejects.toBe(reason)
    expect(files).toMatchObject({ opened: 1, open: 0, reads: 0 })
  })

  it('makes no file for a request that has ended before', async () => {
    const reason = new Error('The client has gone.')
    const put = fileContents({ directory }).put(createKey(), stream(createBytes(10, 1)), {
      signal: AbortSignal.abort(reason),
    })
    await expect(put).rejects.toBe(reason)
    expect(await readdir(directory)).toEqual([])
  })

  it('opens no file for a request that ends while it waits for others, and few files at a time', async () => {
    const contents = fileContents({ directory })
    const key = createKey()
    const bytes = createBytes(SIZE, 1)
    await contents.put(key, stream(bytes))
    const controller = new AbortController()
    const { signal } = controller
    const gone = Array.from({ length: 200 }, () =>
      contents
        .open(key, 0, SIZE - 1, { signal })
        [Symbol.asyncIterator]()
        .next(),
    )
    const kept = Promise.all(Array.from({ length: 30 }, () => readAll(contents, key, 0, SIZE - 1)))
    await vi.waitFor(() => expect(files.open).toBeGreaterThan(0), { interval: 1 })
    controller.abort(new Error('The client has gone.'))
    const outcomes = await Promise.allSettled(gone)
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(200)
    expect((await kept).every((read) => read.equals(bytes))).toBe(true)
    expect(files.opened).toBeLessThan(30 + 20)
    await expect(readAll(contents, createKey(), 0, 9)).rejects.toMatchObject({ status: 503 })
    await vi.waitFor(() => expect(files.open).toBe(0))
  })

  it('holds few files for streams of HTTP/2 that are reset at once (CVE-2023-44487)', async () => {
    const file = await createDatabaseFile()
    const store = sqliteStore(file.open(), { contents: fileContents({ directory }), inlineLimit: 1000 })
    const errors: unknown[] = []
    const service = createResourceService(store, { onError: (error) => void errors.push(error) })
    const host = await startHost('http2', service)
    const session = connect(`http://localhost:${host.port}`)
    try {
      const body = createBytes(SIZE, 1)
      const headers = { 'Content-Type': 'application/octet-stream' }
      expect((await host.send({ method: 'PUT', path: '/a', headers, body })).status).toBe(201)
      for (let count = 0; count < 400; count++) {
        const request = session.request({ ':path': '/a' })
        request.on('error', () => {})
        // Each in a packet of its own: a stream that is opened and reset in one packet makes no request.
        await new Promise((resolve) => setImmediate(resolve))
        request.close(constants.NGHTTP2_CANCEL)
      }
      await vi.waitFor(() => expect(files.open).toBe(0))
      expect(files.most).toBeLessThanOrEqual(16)
      expect(files.opened).toBeGreaterThan(0)
      expect((await host.send({ path: '/a' })).body.equals(body)).toBe(true)
      expect(errors).toEqual([])
    } finally {
      session.destroy()
      await host.close()
      await service.close()
      await store.close()
      await file.remove()
    }
  })
})
