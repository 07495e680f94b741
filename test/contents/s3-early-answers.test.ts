import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createBytes, MEBIBYTE } from '../../src/conformance/samples.ts'
import { createS3Client } from '../../src/contents/s3/client.ts'
import { listenForTest } from '../support/listen.ts'
import { BUCKET } from '../support/s3-service.ts'
import { CREDENTIALS, REGION } from '../support/s3-signatures.ts'

const OVERLOAD = '<Error><Code>SlowDown</Code></Error>'

/** Ways to end a request of which the content was not read. */
const ENDS: readonly (readonly [string, (req: IncomingMessage, res: ServerResponse) => void])[] = [
  ['answers 503', (_, res) => void res.writeHead(503).end(OVERLOAD)],
  ['answers 503 and closes', (_, res) => void res.writeHead(503, { Connection: 'close' }).end(OVERLOAD)],
  ['closes in the midst', (req) => void req.once('data', () => req.destroy())],
]

describe('a request to S3 with content', () => {
  it.each(ENDS)('is sent again, whole, after a service that %s', async (_, end) => {
    const received: { readonly length: string | undefined; readonly bytes: Buffer }[] = []
    let count = 0
    const server = createServer(async (req, res) => {
      if (++count === 1) return end(req, res)
      const chunks: Buffer[] = []
      for await (const chunk of req) chunks.push(chunk as Buffer)
      received.push({ length: req.headers['content-length'], bytes: Buffer.concat(chunks) })
      res.end()
    })
    const endpoint = new URL(`http://127.0.0.1:${await listenForTest(server)}`)
    const readCredentials = () => CREDENTIALS
    const client = createS3Client({ endpoint, region: REGION, bucket: BUCKET, readCredentials, timeout: 10_000 })
    const body = createBytes(8 * MEBIBYTE, 1)
    expect((await client.send({ method: 'PUT', name: 'a', body })).status).toBe(200)
    expect(received).toHaveLength(1)
    expect([received[0]!.length, received[0]!.bytes.equals(body)]).toEqual([String(body.length), true])
  })
})
