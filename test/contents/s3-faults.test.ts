import { runInNewContext } from 'node:vm'
import { describe, expect, it, vi } from 'vitest'
import { readAll } from '../../src/conformance/contents-cases.ts'
import { createBytes, MEBIBYTE, stream } from '../../src/conformance/samples.ts'
import type { S3ContentsOptions } from '../../src/contents/s3.ts'
import type { ContentStore } from '../../src/contents/types.ts'
import { createKey, createPrefix, listKeys, openS3Contents } from '../support/contents.ts'
import { MEASURED } from '../support/measured.ts'
import { runS3 } from '../support/running-s3.ts'
import { CREDENTIALS } from '../support/s3-signatures.ts'

const service = await runS3()

const open = (options: Partial<S3ContentsOptions> = {}): ContentStore => openS3Contents(service.endpoint, options)

/** What a failed upload in parts removes after its caller has the error must not disturb the next test. */
async function untilGivenUp(): Promise<void> {
  const isLast = (request: string) => /^DELETE [^?]*$/.test(request)
  await vi.waitFor(() => expect(service.requests.filter(isLast)).toHaveLength(1), 30_000)
}

describe('s3Contents, when the service or the source fails', () => {
  it('ends an upload in parts with an abort when the source breaks off (issue 22)', async () => {
    const contents = open({ prefix: createPrefix() })
    async function* breaking(): AsyncGenerator<Uint8Array> {
      yield* stream(createBytes(17 * MEBIBYTE, 1), MEBIBYTE)
      throw new Error('The source has failed.')
    }
    service.requests.length = 0
    await expect(contents.put(createKey(), breaking())).rejects.toThrow('The source has failed.')
    expect(service.requests.filter((request) => /^DELETE .*uploadId=/.test(request))).toHaveLength(1)
    expect(await listKeys(contents)).toEqual([])
  })

  it('is away where the sweep has ended the upload in parts that is under way', async () => {
    const contents = open({ prefix: createPrefix() })
    async function* sweptMeanwhile(): AsyncGenerator<Uint8Array> {
      yield* stream(createBytes(9 * MEBIBYTE, 1), MEBIBYTE)
      for await (const { remove } of contents.list()) await remove()
      yield createBytes(MEBIBYTE, 2)
    }
    service.requests.length = 0
    await expect(contents.put(createKey(), sweptMeanwhile())).rejects.toMatchObject({ status: 503 })
    await untilGivenUp()
  })

  it('is away where the sweep has ended the upload between its last part and its completion', async () => {
    const contents = open({ prefix: createPrefix() })
    service.interfere = (req, res) => {
      if (req.method !== 'POST' || !req.url!.includes('uploadId=')) return undefined
      res.writeHead(404).end('<Error><Code>NoSuchUpload</Code></Error>')
      return 'done'
    }
    service.requests.length = 0
    const put = contents.put(createKey(), stream(createBytes(9 * MEBIBYTE, 1), MEBIBYTE))
    await expect(put).rejects.toMatchObject({ status: 503 })
    service.interfere = () => undefined
    await untilGivenUp()
  })

  it('lists an upload in parts that was never completed, and ends it', async () => {
    const prefix = createPrefix()
    const contents = open({ prefix })
    let isDead = false
    service.interfere = (req, res) => {
      if (!isDead && !req.url!.includes('partNumber=2')) return undefined
      // As after a kill: nothing of this process arrives any more.
      isDead = true
      res.destroy()
      return 'done'
    }
    const key = createKey()
    const put = contents.put(key, stream(createBytes(20 * MEBIBYTE, 1), MEBIBYTE))
    service.requests.length = 0
    await expect(put).rejects.toMatchObject({ status: 503 })
    const isEnd = (request: string) => /^DELETE .*uploadId=/.test(request)
    await vi.waitFor(() => expect(service.requests.filter(isEnd)).toHaveLength(4), 30_000)
    service.interfere = () => undefined
    const listed = []
    for await (const one of open({ prefix }).list()) listed.push(one)
    expect(listed).toMatchObject([{ key, age: expect.any(Number) }])
    expect(Math.abs(listed[0]!.age)).toBeLessThan(60_000)
    await listed[0]!.remove()
    expect(await listKeys(contents)).toEqual([])
  })

  it('lists every upload in parts of one name, also where they lie on several pages', async () => {
    const prefix = createPrefix()
    const key = createKey()
    for (let count = 0; count < 3; count++) {
      let isBegun = false
      service.interfere = (req, res) => {
        if (req.method === 'POST' && !isBegun) return undefined
        // As after a kill: nothing of this process arrives any more.
        isBegun = true
        res.writeHead(403).end()
        return 'done'
      }
      const put = open({ prefix }).put(key, stream(createBytes(9 * MEBIBYTE, 1), MEBIBYTE))
      await expect(put).rejects.toThrow('The S3 service answered 403')
    }
    service.interfere = () => undefined
    service.pageSize = 1
    expect(await listKeys(open({ prefix }))).toEqual([key, key, key])
  })

  it('tries again, after a pause, what fails by overload, a broken connection or a failure of the service', async () => {
    const contents = open({ prefix: createPrefix() })
    const key = createKey()
    const failures: readonly (readonly [status: number | 'reset', code?: string])[] = [
      [503, 'SlowDown'],
      [429, 'SlowDown'],
      [500, 'InternalError'],
      [400, 'RequestTimeout'],
      [400, 'IncompleteBody'],
      [409, 'OperationAborted'],
      ['reset'],
    ]
    for (const [status, code] of failures) {
      let isFirst = true
      service.interfere = (_, res) => {
        if (!isFirst) return undefined
        isFirst = false
        if (status === 'reset') res.destroy()
        else res.writeHead(status).end(`<Error><Code>${code}</Code></Error>`)
        return 'done'
      }
      await contents.put(key, stream(createBytes(1000, 1), 500))
      expect(isFirst).toBe(false)
    }
  })

  it('fails with 503 and Retry-After while the service is away (issue 22)', async () => {
    const [contents, key] = [open({ prefix: createPrefix() }), createKey()]
    await contents.put(key, stream(createBytes(1000, 1), 500))
    service.interfere = (_, res) => {
      res.destroy()
      return 'done'
    }
    const away = { status: 503, headers: { 'Retry-After': '1' } }
    await expect(contents.put(createKey(), stream(createBytes(1000, 1), 500))).rejects.toMatchObject(away)
    await expect(readAll(contents, key, 0, 999)).rejects.toMatchObject(away)
    let attempts = 0
    service.interfere = (req, res) => {
      // What the upload before has left is given up meanwhile, under another key.
      if (req.url!.includes(key)) attempts++
      res.writeHead(503).end()
      return 'done'
    }
    await expect(contents.remove(key)).rejects.toMatchObject(away)
    expect(attempts).toBe(4)
    await expect(listKeys(contents)).rejects.toMatchObject(away)
    const nowhere = open({ endpoint: 'http://127.0.0.1:1' })
    await expect(readAll(nowhere, key, 0, 999)).rejects.toMatchObject(away)
  })

  it('gives up a service that accepts connections and says nothing', async () => {
    service.interfere = () => 'done'
    const contents = open({ timeout: 50 })
    await expect(contents.remove(createKey())).rejects.toMatchObject({ status: 503 })
  })

  it('gives up credentials that never come, and waits no longer than the client', MEASURED, async () => {
    const away = { status: 503, headers: { 'Retry-After': '1' } }
    const request = { method: 'GET', headers: {} } as const
    const silent = open({ timeout: 50, redirect: true, credentials: () => new Promise<never>(() => {}) })
    await expect(silent.remove(createKey())).rejects.toMatchObject(away)
    await expect(readAll(silent, createKey(), 0, 9)).rejects.toMatchObject(away)
    await expect(silent.put(createKey(), stream(createBytes(1000, 1), 500))).rejects.toMatchObject(away)
    await expect(silent.locate!(createKey(), request)).rejects.toMatchObject(away)
    const failing = open({ redirect: true, credentials: () => Promise.reject(new Error('No credentials.')) })
    await expect(failing.locate!(createKey(), request)).rejects.toMatchObject(away)

    const patient = open({ redirect: true, credentials: () => new Promise<never>(() => {}) })
    const reason = new Error('The client has gone.')
    const begin = performance.now()
    const signal = (): AbortSignal => {
      const controller = new AbortController()
      setTimeout(() => controller.abort(reason), 20)
      return controller.signal
    }
    await expect(patient.locate!(createKey(), { ...request, signal: signal() })).rejects.toBe(reason)
    await expect(patient.put(createKey(), stream(createBytes(10, 1), 5), { signal: signal() })).rejects.toBe(reason)
    const read = async () => {
      for await (const _ of patient.open(createKey(), 0, 9, { signal: signal() }));
    }
    await expect(read()).rejects.toBe(reason)
    await expect(patient.locate!(createKey(), { ...request, signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(performance.now() - begin).toBeLessThan(30_000)
  })

  it.each([
    ['text', 'none'],
    ['nothing', undefined],
    ['an Error of another realm', runInNewContext('new Error("none")')],
  ])('is away while its credentials fail with %s', async (_, thrown) => {
    let calls = 0
    const failing = open({
      credentials: () => {
        calls++
        return Promise.reject(thrown)
      },
    })
    await expect(failing.remove(createKey())).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '1' } })
    expect(calls).toBe(4)
  })

  it('breaks a reader off when the connection breaks after the first byte (issue 22)', async () => {
    const [contents, key] = [open({ prefix: createPrefix() }), createKey()]
    await contents.put(key, stream(createBytes(500_000, 1), 100_000))
    service.interfere = (_, res) => {
      res.writeHead(206, { 'Content-Range': 'bytes 0-499999/500000', 'Content-Length': '500000' })
      res.write(Buffer.alloc(1000), () => res.destroy())
      return 'done'
    }
    const chunks: Uint8Array[] = []
    const read = async () => {
      for await (const chunk of contents.open(key, 0, 499_999)) chunks.push(chunk)
    }
    await expect(read()).rejects.toMatchObject({ status: 503 })
    expect(Buffer.concat(chunks)).toHaveLength(1000)
  })

  it('refuses a service that answers a range with other bytes', async () => {
    const [contents, key] = [open({ prefix: createPrefix() }), createKey()]
    for (const range of [undefined, 'bytes 0-10/500', 'bytes 10-99/500']) {
      service.interfere = (_, res) => {
        res.writeHead(range === undefined ? 200 : 206, range === undefined ? {} : { 'Content-Range': range }).end('x')
        return 'done'
      }
      const read = async () => {
        for await (const _ of contents.open(key, 10, 100));
      }
      await expect(read()).rejects.toThrow(/The S3 service answered 20[06]/)
    }
  })

  it('fails when the digest that the service reports is another one (issue 22)', async () => {
    const contents = open({ prefix: createPrefix() })
    service.interfere = (req, res) => {
      if (req.method !== 'PUT') return undefined
      res.writeHead(200, { ETag: `"${'0'.repeat(32)}"` }).end()
      return 'done'
    }
    const put = () => contents.put(createKey(), stream(createBytes(1000, 1), 500))
    await expect(put()).rejects.toThrow(/The S3 service has other bytes than were sent/)
    // With a key of the service's own the ETag says nothing of the bytes; the size is asked for all the same.
    service.interfere = (req, res) => {
      if (req.method !== 'PUT' && req.method !== 'HEAD') return undefined
      const headers = { ETag: `"${'0'.repeat(32)}"`, 'x-amz-server-side-encryption': 'aws:kms', 'Content-Length': '0' }
      res.writeHead(200, headers).end()
      return 'done'
    }
    expect(await put()).toEqual({ size: 0 })
  })

  it('fails with the code of the service when a request is refused', async () => {
    const credentials = { accessKeyId: CREDENTIALS.accessKeyId, secretAccessKey: 'wrong' }
    const put = open({ credentials }).put(createKey(), stream(createBytes(1000, 1), 500))
    await expect(put).rejects.toThrow('The S3 service answered 403 (SignatureDoesNotMatch).')
  })

  it.each([
    [507, 'XMinioStorageFull'],
    [403, 'QuotaExceeded'],
    [400, 'XMinioAdminBucketQuotaExceeded'],
  ])('answers 507 where the service has no room left: %d %s', async (status, code) => {
    service.interfere = (req, res) => {
      if (req.method !== 'PUT') return undefined
      res.writeHead(status).end(`<Error><Code>${code}</Code></Error>`)
      return 'done'
    }
    const put = open().put(createKey(), stream(createBytes(1000, 1), 500))
    await expect(put).rejects.toMatchObject({ status: 507, cause: { message: expect.stringContaining(code) } })
  })

  it.each([1000, 9 * MEBIBYTE])(
    'keeps no object of an upload that fails after all of its %d bytes are there',
    async (size) => {
      const contents = open({ prefix: createPrefix() })
      service.interfere = (req, res) => {
        if (req.method !== 'HEAD') return undefined
        res.writeHead(403).end()
        return 'done'
      }
      await expect(contents.put(createKey(), stream(createBytes(size, 1), size))).rejects.toThrow(
        'The S3 service answered 403 (no code).',
      )
      expect(await listKeys(contents)).toEqual([])
    },
  )

  it('takes a completed upload for done although the first response was lost', async () => {
    const contents = open({ prefix: createPrefix() })
    const [key, bytes] = [createKey(), createBytes(9 * MEBIBYTE, 2)]
    let isLost = false
    service.interfere = (req, res) => {
      if (isLost || req.method !== 'POST' || !req.url!.includes('uploadId')) return undefined
      isLost = true
      // The service completes it; the client sees a broken connection.
      const { end } = res
      res.end = ((...values: never[]) => {
        res.end = end
        res.destroy()
        return values.length > 0 ? res : res
      }) as never
      return undefined
    }
    await contents.put(key, stream(bytes, MEBIBYTE))
    expect(isLost).toBe(true)
    expect((await readAll(contents, key, 0, bytes.length - 1)).equals(bytes)).toBe(true)
  })
})

it('s3Contents lists nothing of another store whose prefix begins with its own', async () => {
  const prefix = createPrefix()
  const key = createKey()
  await open({ prefix: `${prefix}other/` }).put(key, stream(createBytes(10, 1)))
  expect(await listKeys(open({ prefix }))).toEqual([])
  expect(await listKeys(open({ prefix: `${prefix}other/` }))).toEqual([key])
})
