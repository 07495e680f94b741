import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createGzip } from 'node:zlib'
import { afterEach, expect, it } from 'vitest'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { runServer } from '../support/hosts.ts'

let close = async (): Promise<void> => {}
afterEach(() => close())

/** Replaces the methods of a response as the middleware `compression` does: functions to call after a write are dropped. */
function compress(req: IncomingMessage, res: ServerResponse): void {
  const native = { write: res.write.bind(res), end: res.end.bind(res), on: res.on.bind(res) }
  const gzip = createGzip()
  gzip.on('data', (chunk) => {
    if (!native.write(chunk)) gzip.pause()
  })
  gzip.on('end', () => native.end())
  native.on('drain', () => gzip.resume())
  const writeHead = (): void => {
    if (res.headersSent) return
    res.removeHeader('Content-Length')
    res.setHeader('Content-Encoding', 'gzip')
    res.writeHead(res.statusCode)
  }
  res.setHeader('Vary', 'Accept-Encoding') // so that fields are set one by one
  const nativeHead = res.writeHead.bind(res)
  res.writeHead = (status: number) => {
    res.removeHeader('Content-Length')
    res.setHeader('Content-Encoding', 'gzip')
    return nativeHead(status)
  }
  res.write = (chunk: Uint8Array) => {
    writeHead()
    return gzip.write(chunk)
  }
  res.end = (chunk?: unknown) => {
    writeHead()
    gzip.end(chunk)
    return res
  }
  res.on = (name: string, listener: (...values: never[]) => void) => {
    if (name === 'drain') gzip.on(name, listener as () => void)
    else native.on(name, listener as () => void)
    return res
  }
  req.on('close', () => gzip.destroy())
}

it.each([100, 1_500_000, 9_000_000])(
  'content of %i bytes leaves whole through middleware that compresses, which calls nothing after a write',
  async (size) => {
    const service = createResourceService(memoryStore(), { resources: { '/{name}': document() }, https: 'optional' })
    const running = await runServer(
      createServer((req, res) => {
        if (req.method === 'GET') compress(req, res)
        service(req, res)
      }),
    )
    close = running.close
    const url = `http://localhost:${running.port}/a`
    const content = Buffer.alloc(size, 'abcdefg')
    const fields = { 'Content-Type': 'text/plain' }
    expect((await fetch(url, { method: 'PUT', body: content, headers: fields })).status).toBe(201)
    const answer = await fetch(url)
    expect(answer.headers.get('content-encoding')).toBe('gzip')
    expect(Buffer.from(await answer.arrayBuffer()).equals(content)).toBe(true)
  },
)
