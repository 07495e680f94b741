import { once } from 'node:events'
import { connect, createServer, type Http2Server, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { bodyParse, type MultipartBody } from '../../src/handlers/body-parse.ts'
import { BOUNDARY, part } from '../body-types/multipart-bodies.ts'
import { closeAfterTest } from '../support/close-after-test.ts'

type Route = (body: unknown) => Promise<void>

async function start(route: Route): Promise<Http2Server> {
  const parse = bodyParse({ raw: true, limits: { fileSize: 100_000 } })
  const server = createServer((req: Http2ServerRequest, res: Http2ServerResponse) =>
    parse(req, res, () => {
      route((req as { body?: unknown }).body).then(
        () => res.end('done'),
        (error: { status?: number }) => res.writeHead(error.status ?? 500).end(),
      )
    }),
  )
  server.listen(0, '127.0.0.1')
  closeAfterTest(() => server.close())
  await once(server, 'listening')
  return server
}

const FORM = `multipart/form-data; boundary=${BOUNDARY}`
const LARGE = part('Content-Disposition: form-data; name="f"; filename="x"', 'x'.repeat(1_000_000))

describe('bodyParse over HTTP/2', () => {
  it.each<[string, string, number, Route]>([
    ['nothing of parts', FORM, 200, async () => {}],
    [
      'the beginning of a file',
      FORM,
      200,
      async (body) => {
        for await (const file of body as MultipartBody) {
          if (file.kind === 'field') continue
          for await (const _ of file.content) return
        }
      },
    ],
    [
      'the beginning of raw content',
      'application/octet-stream',
      200,
      async (body) => {
        for await (const _ of body as AsyncIterable<Uint8Array>) return
      },
    ],
    ['a file up to its limit', FORM, 413, async (body) => void (await (body as MultipartBody).collect())],
  ])('closes the stream of a route that reads %s (RFC 9113 §8.1)', async (_, type, status, route) => {
    const server = await start(route)
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    closeAfterTest(() => session.destroy())
    for (let i = 0; i < 3; i++) {
      const stream = session.request({ ':method': 'POST', 'content-type': type })
      stream.end(LARGE)
      const [headers] = await once(stream, 'response')
      expect(headers[':status']).toBe(status)
      stream.resume()
      if (!stream.closed) await once(stream, 'close', { signal: AbortSignal.timeout(5000) })
    }
  })

  it('asks a client that never stops sending to stop, when the answer is complete (RFC 9113 §8.1)', async () => {
    const server = await start(async () => {})
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    closeAfterTest(() => session.destroy())
    const stream = session.request({ ':method': 'POST', 'content-type': 'application/octet-stream' })
    const piece = Buffer.alloc(16_384)
    const send = (): void => {
      while (!stream.destroyed && stream.write(piece));
    }
    stream.on('drain', send)
    send()
    let text = ''
    stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
    await once(stream, 'close', { signal: AbortSignal.timeout(10_000) })
    expect([text, stream.rstCode]).toEqual(['done', 0])
  })

  it('lets a DELETE go on that has a Content-Type and ends with its header section', async () => {
    const server = await start(async (body) => expect(body).toBeUndefined())
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    closeAfterTest(() => session.destroy())
    const stream = session.request({ ':method': 'DELETE', 'content-type': 'application/json' }, { endStream: true })
    const [headers] = await once(stream, 'response')
    expect(headers[':status']).toBe(200)
  })
})
