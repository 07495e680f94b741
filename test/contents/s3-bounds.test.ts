import { describe, expect, it } from 'vitest'
import { createBytes, MEBIBYTE, stream } from '../../src/conformance/samples.ts'
import type { S3Client } from '../../src/contents/s3/client.ts'
import { readText } from '../../src/contents/s3/exchange.ts'
import { listObjects, readElement } from '../../src/contents/s3/lists.ts'
import { uploadObject } from '../../src/contents/s3/objects.ts'

/** A service that takes everything, and what it was sent. */
function createClient() {
  const requests: string[] = []
  const headers = new Headers({ 'Content-Length': '0' })
  const client: Pick<S3Client, 'send'> = {
    async send({ method, query = {} }) {
      const text = method === 'POST' && 'uploads' in query ? '<UploadId>upload</UploadId>' : ''
      requests.push(`${method} ${query['partNumber'] ?? Object.keys(query)}`)
      return { status: 200, headers, text }
    },
  }
  return { client: client as S3Client, requests }
}

describe('an upload to S3', () => {
  it('has 10,000 parts at most, as the service takes', async () => {
    const { client, requests } = createClient()
    const upload = uploadObject(client, 'a', stream(createBytes(10_001, 1), 700), undefined, 1)
    await expect(upload).rejects.toMatchObject({ status: 413 })
    expect(requests.slice(-3)).toEqual(['PUT 10000', 'DELETE uploadId', 'DELETE '])
  })

  it('goes at once up to the size of a part', async () => {
    const { client, requests } = createClient()
    await uploadObject(client, 'a', stream(createBytes(5, 1), 2), undefined, 5)
    expect(requests.splice(0)).toEqual(['PUT ', 'HEAD '])
    await uploadObject(client, 'a', stream(createBytes(6, 1), 2), undefined, 5)
    expect(requests).toEqual(['POST uploads', 'PUT 1', 'PUT 2', 'POST uploadId', 'HEAD '])
  })
})

describe('a response of S3 that is read as a whole', () => {
  const answer = (size: number) => ({ body: stream(new Uint8Array(size).fill(0x61), 5 * MEBIBYTE) })

  it('has 16 MiB at most', async () => {
    expect(await readText(answer(16 * MEBIBYTE) as unknown as Response)).toHaveLength(16 * MEBIBYTE)
    await expect(readText(answer(16 * MEBIBYTE + 1) as unknown as Response)).rejects.toThrow('more than 16777216 bytes')
  })
})

describe('a list of S3', () => {
  it('has names whose characters are escaped in any way of XML', () => {
    expect(readElement('<Key>a&#x2F;b&#47;c&amp;lt;&quot;&apos;&gt;&eacute;</Key>', 'Key')).toBe(`a/b/c&lt;"'>&eacute;`)
  })

  it('goes on behind the last name of a page, in whatever order that has them', async () => {
    const pages = [['b', 'a'], ['c']]
    const starts: unknown[] = []
    const send: S3Client['send'] = async ({ query }) => {
      starts.push(query?.['start-after'])
      const names = pages.shift()!
      const entries = names.map((name) => `<Contents><Key>${name}</Key></Contents>`).join('')
      return { status: 200, headers: new Headers(), text: `<IsTruncated>${pages.length > 0}</IsTruncated>${entries}` }
    }
    const listed: string[] = []
    for await (const { name } of listObjects({ send } as S3Client, '')) listed.push(name)
    expect(listed).toEqual(['b', 'a', 'c'])
    expect(starts).toEqual([undefined, 'b'])
  })
})
