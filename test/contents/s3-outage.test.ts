import type { ServerResponse } from 'node:http'
import { describe, expect, it, vi } from 'vitest'
import { readAll } from '../../src/conformance/contents-cases.ts'
import { createBytes, MEBIBYTE, stream } from '../../src/conformance/samples.ts'
import { createS3Client } from '../../src/contents/s3/client.ts'
import { listObjects } from '../../src/contents/s3/lists.ts'
import type { S3ContentsOptions } from '../../src/contents/s3.ts'
import type { ContentStore } from '../../src/contents/types.ts'
import { createKey, createPrefix, listKeys, openS3Contents } from '../support/contents.ts'
import { MEASURED } from '../support/measured.ts'
import { runS3 } from '../support/running-s3.ts'
import { BUCKET } from '../support/s3-service.ts'
import { CREDENTIALS, REGION } from '../support/s3-signatures.ts'

const service = await runS3()

const open = (options: Partial<S3ContentsOptions> = {}): ContentStore =>
  openS3Contents(service.endpoint, { prefix: createPrefix(), ...options })

const AWAY = { status: 503, headers: { 'Retry-After': '1' } }

async function putOne(contents: ContentStore, size: number): Promise<{ readonly key: string; readonly bytes: Buffer }> {
  const [key, bytes] = [createKey(), createBytes(size, size)]
  await contents.put(key, stream(bytes, 100_000))
  return { key, bytes }
}

/** The beginning of a range, and then nothing. */
function beginRange(res: ServerResponse): 'done' {
  res.writeHead(206, { 'Content-Range': 'bytes 0-499999/500000', 'Content-Length': '500000' })
  res.write(Buffer.alloc(1000))
  return 'done'
}

/** Answers without end, as fast as they are read. @returns how many bytes were sent */
function answerEndlessly(status: number): () => number {
  let size = 0
  service.interfere = (_, res) => {
    const piece = Buffer.alloc(MEBIBYTE, 'x')
    const send = (error?: Error | null): void => {
      if (error || res.destroyed) return
      size += piece.length
      res.write(piece, send)
    }
    res.writeHead(status)
    send()
    return 'done'
  }
  return () => size
}

describe('s3Contents with a service whose answer has no end', () => {
  it.each([
    ['a refusal', 403, (contents: ContentStore) => readAll(contents, createKey(), 0, 9)],
    ['a list', 200, (contents: ContentStore) => listKeys(contents)],
    [
      'the answer to an upload',
      200,
      (contents: ContentStore) => contents.put(createKey(), stream(createBytes(10, 1), 10)),
    ],
  ])('gives up %s after 16 MiB', async (_, status, act) => {
    const contents = open({ timeout: 10_000 })
    const sentSize = answerEndlessly(status)
    await expect(act(contents)).rejects.toMatchObject({
      ...AWAY,
      cause: new Error('The S3 service answered with more than 16777216 bytes.'),
    })
    // Four attempts, each with what lies in buffers on its way: on a busy machine that is more than the 16 MiB.
    expect(sentSize()).toBeLessThan(4 * 64 * MEBIBYTE)
  })
})

describe('s3Contents with a service that fails late', () => {
  const FAILED = '<?xml version="1.0"?>\n   <Error><Code>InternalError</Code></Error>'

  it.each([
    ['200 and an error', (res: ServerResponse) => void res.writeHead(200).end(FAILED)],
    ['200 and half a document', (res: ServerResponse) => void res.writeHead(200).end('<CompleteMulti')],
    [
      '200 and a broken connection',
      (res: ServerResponse) => {
        res.writeHead(200, { 'Content-Length': '500' })
        res.write('<?xml', () => res.destroy())
      },
    ],
  ])('completes an upload in parts again after %s', async (_, answer) => {
    const contents = open()
    let count = 0
    service.interfere = (req, res) => {
      if (req.method !== 'POST' || !req.url!.includes('uploadId') || ++count > 1) return undefined
      answer(res)
      return 'done'
    }
    const { key, bytes } = await putOne(contents, 9 * MEBIBYTE)
    expect(count).toBe(2)
    expect((await readAll(contents, key, 0, bytes.length - 1)).equals(bytes)).toBe(true)
  })

  it('takes a completion whose element has the name that moto gives it', async () => {
    const contents = open()
    let completions = 0
    service.interfere = (req, res) => {
      if (req.method !== 'POST' || !req.url!.includes('uploadId')) return undefined
      completions++
      const { end } = res
      res.end = ((xml: string) => end.call(res, xml.replaceAll('UploadResult', 'UploadResponse'), 'utf8')) as never
      return undefined
    }
    const { key, bytes } = await putOne(contents, 9 * MEBIBYTE)
    expect(completions).toBe(1)
    expect((await readAll(contents, key, 0, bytes.length - 1)).equals(bytes)).toBe(true)
  })

  it('fails with 503 when an upload is never completed, and removes its parts', async () => {
    const contents = open()
    service.interfere = (req, res) => {
      if (req.method !== 'POST' || !req.url!.includes('uploadId')) return undefined
      res.writeHead(200).end(FAILED)
      return 'done'
    }
    await expect(putOne(contents, 9 * MEBIBYTE)).rejects.toMatchObject(AWAY)
    await vi.waitFor(async () => expect(await listKeys(contents)).toEqual([]), 30_000)
  })
})

/** Lets the service begin a range and send no more. @returns whether the connection is closed */
function breakRange(): () => boolean {
  let isClosed = false
  service.interfere = (_, res) => {
    res.on('close', () => {
      isClosed = true
    })
    return beginRange(res)
  }
  return () => isClosed
}

describe('s3Contents with a service that falls silent', () => {
  it('breaks a reader off in the midst of content, and closes the connection', MEASURED, async () => {
    const prefix = createPrefix()
    const { key } = await putOne(open({ prefix }), 500_000)
    const contents = open({ prefix, timeout: 200 })
    const isClosed = breakRange()
    const begin = performance.now()
    await expect(readAll(contents, key, 0, 499_999)).rejects.toMatchObject({ status: 503 })
    expect(performance.now() - begin).toBeLessThan(5000)
    await vi.waitFor(() => expect(isClosed()).toBe(true), 30_000)
  })

  it('gives up in the midst of a list', async () => {
    const contents = open({ timeout: 200 })
    service.interfere = (_, res) => {
      res.writeHead(200)
      res.write('<ListBucketResult>')
      return 'done'
    }
    await expect(listKeys(contents)).rejects.toMatchObject(AWAY)
  })

  it(
    'waits for about the time of one attempt before it fails, and not for the removal of what it has sent',
    MEASURED,
    async () => {
      const contents = open({ timeout: 500 })
      service.interfere = () => 'done'
      const begin = performance.now()
      await expect(putOne(contents, 1000)).rejects.toMatchObject(AWAY)
      expect(performance.now() - begin).toBeLessThan(1900)
    },
  )

  it('waits for a reader that is slow, however short the timeout', async () => {
    const prefix = createPrefix()
    const { key, bytes } = await putOne(open({ prefix }), 3 * MEBIBYTE)
    const contents = open({ prefix, timeout: 500 })
    const chunks: Buffer[] = []
    for await (const chunk of contents.open(key, 0, bytes.length - 1)) {
      if (chunks.length === 1) await new Promise((resolve) => setTimeout(resolve, 1000))
      chunks.push(Buffer.from(chunk))
    }
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true)
  })

  it.each(['leaves', 'aborts'])('closes the connection when the reader %s', async (how) => {
    const contents = open()
    const { key } = await putOne(contents, 500_000)
    const isClosed = breakRange()
    const controller = new AbortController()
    const reader = contents.open(key, 0, 499_999, { signal: controller.signal })[Symbol.asyncIterator]()
    expect((await reader.next()).value).toHaveLength(1000)
    if (how === 'leaves') await reader.return?.()
    else {
      const next = reader.next()
      controller.abort(new Error('The client has left.'))
      await expect(next).rejects.toThrow('The client has left.')
    }
    await vi.waitFor(() => expect(isClosed()).toBe(true), 30_000)
  })
})

describe('s3Contents with a clock that differs from that of the service', () => {
  it.each([-3_600_000, 3_600_000, -800_000, 800_000, 40_000])(
    'works at a distance of %i ms, and takes ages from the service',
    async (offset) => {
      const contents = open({ redirect: true })
      service.clockOffset = offset
      const { key, bytes } = await putOne(contents, 1000)
      expect((await readAll(contents, key, 0, 999)).equals(bytes)).toBe(true)
      for await (const { age } of contents.list()) expect(Math.abs(age)).toBeLessThan(10_000)
      const address = await contents.locate!(key, { method: 'GET', headers: {} })
      expect((await fetch(address)).status).toBe(200)
    },
  )

  it('follows a clock that is put right', async () => {
    const contents = open({ redirect: true })
    service.clockOffset = 3_600_000
    const { key } = await putOne(contents, 1000)
    service.clockOffset = 0
    await readAll(contents, key, 0, 999)
    const address = await contents.locate!(key, { method: 'GET', headers: {} })
    expect((await fetch(address)).status).toBe(200)
  })

  it('works again after a date that no request could be signed with', async () => {
    const contents = open()
    const { key, bytes } = await putOne(contents, 1000)
    const now = Date.now()
    service.clockOffset = 8.64e15 - now - 3000
    await readAll(contents, key, 0, 999).catch(() => {})
    service.clockOffset = 0
    const clock = vi.spyOn(Date, 'now').mockReturnValue(now + 10_000)
    try {
      expect((await readAll(contents, key, 0, 999)).equals(bytes)).toBe(true)
    } finally {
      clock.mockRestore()
    }
  })
})

describe('s3Contents with a service that lists wrongly', () => {
  it('lists many pages of objects and of uploads', async () => {
    const contents = open()
    service.pageSize = 2
    const keys = []
    for (let count = 0; count < 5; count++) keys.push((await putOne(contents, 10)).key)
    expect(await listKeys(contents)).toEqual(keys.sort())
  })

  it('takes a list of objects for no list of uploads: a service that knows no uploads may answer so', async () => {
    const contents = open()
    const { key } = await putOne(contents, 10)
    service.interfere = (req, res) => {
      if (!req.url!.includes('uploads')) return undefined
      res.end(
        `<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>${key}</Key></Contents></ListBucketResult>`,
      )
      return 'done'
    }
    expect(await listKeys(contents)).toEqual([key])
  })

  it('lists names of other programs in the order of S3, which is that of UTF-8', async () => {
    service.pageSize = 1
    const endpoint = new URL(service.endpoint)
    const readCredentials = () => CREDENTIALS
    const client = createS3Client({ endpoint, region: REGION, bucket: BUCKET, readCredentials, timeout: 10_000 })
    const prefix = createPrefix()
    const names = ['a', '\ufffd', '\u{1f600}'].map((name) => prefix + name)
    for (const name of names) await client.send({ method: 'PUT', name, body: Buffer.from('x') })
    const listed: string[] = []
    for await (const { name } of listObjects(client, prefix)) listed.push(name)
    expect(listed).toEqual(names)
  })

  it('reads a list whose elements do not end in time that grows with its length alone', MEASURED, async () => {
    const contents = open({ prefix: '' })
    const key = createKey()
    const objects = `<Contents><Key>${key}</Key></Contents>${'<Contents>'.repeat(50_000)}`
    service.interfere = (req, res) => {
      if (req.url!.includes('uploads')) return undefined
      res.end(`<ListBucketResult><IsTruncated>false</IsTruncated>${objects}</ListBucketResult>`)
      return 'done'
    }
    const begin = performance.now()
    expect(await listKeys(contents)).toEqual([key])
    expect(performance.now() - begin).toBeLessThan(5000)
  })

  it('fails when a page begins where the one before it began, and does not go on for ever', async () => {
    const contents = open()
    await putOne(contents, 10)
    await putOne(contents, 10)
    service.pageSize = 1
    service.interfere = (req) => {
      req.url = req.url!.replace(/start-after=[^&]*/, '')
      return undefined
    }
    await expect(listKeys(contents)).rejects.toThrow('The S3 service lists a name twice')
  })

  const objects = (...keys: readonly string[]) =>
    `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken>${keys
      .map((key) => `<Contents><Key>${key}</Key></Contents>`)
      .join('')}</ListBucketResult>`
  const uploads = (marker: string, ...keys: readonly string[]) =>
    `<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>${marker}${keys
      .map((key) => `<Upload><Key>${key}</Key><UploadId>1</UploadId></Upload>`)
      .join('')}</ListMultipartUploadsResult>`
  const marker = (key: string) => `<NextKeyMarker>${key}</NextKeyMarker><NextUploadIdMarker>1</NextUploadIdMarker>`
  const TWICE = 'The S3 service lists a name twice'
  const EMPTY = 'The S3 service lists a page without entries that is not the last.'
  const PAGE_TWICE = 'The S3 service lists a page of uploads twice.'

  /** Each page says that another one follows; after the last one the first comes again. */
  it.each([
    ['an empty page first', [objects()], [], EMPTY],
    ['an empty page', [objects('a'), objects()], [], EMPTY],
    ['the same page', [objects('a', 'b')], [], TWICE],
    ['two pages in turn', [objects('a'), objects('b'), objects('a')], [], TWICE],
    ['a page in the wrong order', [objects('c', 'a')], [], TWICE],
    ['an empty page of uploads', [], [uploads(marker('a'), 'a'), uploads(marker('b'))], EMPTY],
    ['a page of uploads without a marker', [], [uploads('', 'a')], PAGE_TWICE],
    ['the same page of uploads', [], [uploads(marker('a'), 'a')], PAGE_TWICE],
    ['two pages of uploads in turn', [], [uploads(marker('a'), 'a'), uploads(marker('b'), 'b')], PAGE_TWICE],
  ])('fails where the list does not end: %s', async (_, objectPages, uploadPages, message) => {
    const contents = open({ prefix: '' })
    const counts = { objects: 0, uploads: 0 }
    service.interfere = (req, res) => {
      const kind = req.url!.includes('uploads') ? 'uploads' : 'objects'
      const pages = kind === 'uploads' ? uploadPages : objectPages
      if (pages.length === 0) return undefined
      res.end(pages[counts[kind]++ % pages.length])
      return 'done'
    }
    await expect(listKeys(contents)).rejects.toThrow(message)
    expect(counts.objects + counts.uploads).toBeLessThan(5)
  })
})
