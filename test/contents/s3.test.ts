import { startFauxqs } from 'fauxqs'
import { describe, expect, it } from 'vitest'
import { readAll } from '../../src/conformance/contents-cases.ts'
import { createBytes, MEBIBYTE, stream } from '../../src/conformance/samples.ts'
import { type S3ContentsOptions, s3Contents } from '../../src/contents/s3.ts'
import type { ContentStore } from '../../src/contents/types.ts'
import { testContents } from '../../src/testing.ts'
import { createKey, createPrefix, listKeys, openS3Contents } from '../support/contents.ts'
import { runS3 } from '../support/running-s3.ts'
import { BUCKET } from '../support/s3-service.ts'
import { CREDENTIALS } from '../support/s3-signatures.ts'

const service = await runS3()

const open = (options: Partial<S3ContentsOptions> = {}): ContentStore => openS3Contents(service.endpoint, options)

testContents(
  's3Contents',
  () => {
    const prefix = createPrefix()
    return { contents: open({ prefix }), reopen: () => open({ prefix }) }
  },
  { describe, it, largest: 17 * MEBIBYTE + 5 },
)

describe('s3Contents, its own ways', () => {
  it('sends content above 8 MiB in parts, and other content in one request (issue 22)', async () => {
    const contents = open({ prefix: createPrefix() })
    for (const [size, puts] of [
      [8 * MEBIBYTE, 1],
      [8 * MEBIBYTE + 1, 2],
    ] as const) {
      service.requests.length = 0
      const [key, bytes] = [createKey(), createBytes(size, size)]
      await contents.put(key, stream(bytes, 100_000))
      expect(service.requests.filter((request) => request.startsWith('PUT'))).toHaveLength(puts)
      expect((await readAll(contents, key, 0, size - 1)).equals(bytes)).toBe(true)
    }
  })

  it('reads a range by one request for that range (issue 22)', async () => {
    const contents = open({ prefix: createPrefix() })
    const key = createKey()
    await contents.put(key, stream(createBytes(500_000, 1), 100_000))
    service.requests.length = 0
    const ranges: unknown[] = []
    service.interfere = (req) => void ranges.push(req.headers.range)
    for await (const _ of contents.open(key, 100, 300_000));
    expect([service.requests.length, ranges]).toEqual([1, ['bytes=100-300000']])
  })

  it('asks a function for its credentials, so that they can change', async () => {
    const given = ['wrong', CREDENTIALS.secretAccessKey]
    const contents = open({
      prefix: createPrefix(),
      credentials: async () => ({
        accessKeyId: CREDENTIALS.accessKeyId,
        secretAccessKey: given.shift() ?? CREDENTIALS.secretAccessKey,
      }),
    })
    await expect(contents.remove(createKey())).rejects.toThrow(/SignatureDoesNotMatch/)
    await contents.remove(createKey())
  })

  it('takes credentials whose properties are getters of their class', async () => {
    class Provided {
      get accessKeyId() {
        return CREDENTIALS.accessKeyId
      }
      get secretAccessKey() {
        return CREDENTIALS.secretAccessKey
      }
    }
    await open({ prefix: createPrefix(), credentials: new Provided() }).remove(createKey())
  })

  it('takes complete options, and nothing that it does not know', () => {
    const good = { endpoint: 'https://s3.example', region: 'x', bucket: 'b', credentials: CREDENTIALS }
    expect(() => s3Contents({ ...good, endpoint: 's3.example' })).toThrow(/takes as endpoint: the address/)
    expect(() => s3Contents({ ...good, endpoint: 'https://a:b@s3.example' })).toThrow(/takes as endpoint: the address/)
    expect(s3Contents({ ...good, endpoint: 'https://s3.example/a@b' })).toBeDefined()
    expect(() => s3Contents({ ...good, bucket: undefined } as never)).toThrow(/takes as bucket: the name of a bucket/)
    expect(() => s3Contents({ ...good, credentials: {} } as never)).toThrow(/takes as credentials: \{ accessKeyId/)
    expect(() => s3Contents({ ...good, prefix: 'a b' })).toThrow(/takes as prefix: text of letters/)
    for (const prefix of ['./a/', '../b/', 'a/../', 'a/./b/', '/../']) {
      expect(() => s3Contents({ ...good, prefix }), prefix).toThrow(/takes as prefix: .* without a part "\." or "\.\."/)
    }
    for (const prefix of ['', '/', '.a/', 'a./', '...', '..a', 'a/..', 'a.b/c-d_e/']) s3Contents({ ...good, prefix })
    expect(() => s3Contents({ ...good, parts: 5 } as never)).toThrow(/has no option "parts"/)
  })
})

describe('s3Contents with fauxqs, which is of another making and ignores conditions', () => {
  it('keeps content of every size, reads ranges, lists and removes it (issue 22)', async () => {
    const server = await startFauxqs({ port: 0, logger: false })
    server.createBucket(BUCKET)
    try {
      const contents = openS3Contents(`http://127.0.0.1:${server.port}`, { prefix: createPrefix() })
      const keys = [createKey(), createKey()]
      for (const [index, size] of [1000, 17 * MEBIBYTE + 5].entries()) {
        const bytes = createBytes(size, size)
        expect(await contents.put(keys[index]!, stream(bytes, 100_000))).toEqual({ size })
        for (const [first, last] of [
          [0, 0],
          [10, 600],
          [size - 5, size - 1],
          [0, size - 1],
        ] as const) {
          const found = await readAll(contents, keys[index]!, first, last)
          expect(found.equals(bytes.subarray(first, last + 1))).toBe(true)
        }
      }
      async function* breaking(): AsyncGenerator<Uint8Array> {
        yield* stream(createBytes(9 * MEBIBYTE, 1), MEBIBYTE)
        throw new Error('The source has failed.')
      }
      await expect(contents.put(createKey(), breaking())).rejects.toThrow('The source has failed.')
      expect(await listKeys(contents)).toEqual([...keys].sort())
      for (const key of keys) await contents.remove(key)
      expect(await listKeys(contents)).toEqual([])
      await expect(readAll(contents, keys[0]!, 0, 9)).rejects.toMatchObject({ status: 503 })
    } finally {
      await server.stop()
    }
  })
})
