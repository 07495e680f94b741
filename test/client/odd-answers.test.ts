import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { inspect } from 'node:util'
import { describe, expect, it, vi } from 'vitest'
import { createResourceClient, expectSuccess } from '../../src/client.ts'
import { start } from './servers.ts'

function sendJson(res: ServerResponse, status: number, headers: Record<string, string>, value: unknown): void {
  res.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(value))
}

const DATE = 'Mon, 01 Jan 2024 00:00:00 GMT'

describe('createResourceClient with a server that answers oddly', () => {
  it('does not repeat an operation on an array under a date, which still holds (RFC 9110 §13.1.4)', async () => {
    const list = [1, 2]
    let patches = 0
    const base = await start(async (req, res) => {
      if (req.method === 'GET') return sendJson(res, 200, { 'Last-Modified': DATE }, { list })
      patches++
      for await (const _ of req);
      list.push(3)
      req.socket.destroy()
    })
    const client = createResourceClient(base, { prefer: 'json' })
    const editing = client.edit('/a', () => ({ list: [1, 2, 3] }))
    await expect(editing).rejects.toMatchObject({ status: 0, mayHaveTakenEffect: true })
    expect(patches).toBe(1)
    expect(list).toEqual([1, 2, 3])
  })

  it('repeats a merge patch under a date, which has the same effect twice', async () => {
    let n = 1
    let patches = 0
    const base = await start(async (req, res) => {
      if (req.method === 'GET') return sendJson(res, 200, { 'Last-Modified': DATE }, { n })
      for await (const _ of req);
      n = 2
      return patches++ === 0 ? req.socket.destroy() : res.writeHead(204).end()
    })
    const edited = expectSuccess(await createResourceClient(base).edit('/a', () => ({ n: 2 })))
    expect(edited.document.value).toEqual({ n: 2 })
    expect(patches).toBe(2)
  })

  it.each([
    ['many digits', '99999999999999'],
    ['400 digits', '9'.repeat(400)],
    ['0', '0'],
    ['a date of the past', DATE],
    ['a date in thousands of years', 'Fri, 31 Dec 9999 23:59:59 GMT'],
  ])('does not ask for a state in a loop where Retry-After is %s (RFC 9110 §10.2.3)', async (_, retryAfter) => {
    let reads = 0
    const base = await start((req, res) => {
      if (req.method === 'GET') {
        reads++
        return sendJson(res, 200, { 'Retry-After': retryAfter }, { state: 'pending' })
      }
      return res.writeHead(202, { Location: '/monitor' }).end()
    })
    const client = createResourceClient(base)
    const { operation } = expectSuccess(await client.remove('/a', 'any')) as { operation: { url: string } }
    const signal = AbortSignal.timeout(500)
    await expect(client.wait({ retryAfter: undefined, ...operation }, { signal })).rejects.toThrow()
    expect(reads).toBeLessThanOrEqual(6)
  })

  it('lets go of the signal of a download that is over', async () => {
    const base = await start((req, res) => (req.url === '/gone' ? res.writeHead(404).end() : res.end('content')))
    const client = createResourceClient(base)
    const { signal } = new AbortController()
    const add = vi.spyOn(signal, 'addEventListener')
    const remove = vi.spyOn(signal, 'removeEventListener')
    await expectSuccess(await client.download('/a', { signal })).file.blob()
    await expectSuccess(await client.download('/a', { signal })).file.cancel()
    for await (const chunk of expectSuccess(await client.download('/a', { signal })).file) {
      expect(chunk.length).toBe(7)
      break
    }
    expect(await client.download('/gone', { signal })).toMatchObject({ status: 404 })
    expect(add).toHaveBeenCalled()
    const listeners = new Set(add.mock.calls.map(([, listener]) => listener))
    for (const [, listener] of remove.mock.calls) listeners.delete(listener)
    expect(listeners.size).toBe(0)
  })

  it('continues a download whose server falls silent (RFC 9110 §13.1.5)', async () => {
    const ranges: unknown[] = []
    const base = await start((req, res) => {
      ranges.push(req.headers.range)
      if (req.headers.range === undefined) {
        res.writeHead(200, { 'Content-Length': 6, ETag: '"1"' }).write('abc')
        return
      }
      res.writeHead(206, { 'Content-Range': 'bytes 3-5/6', ETag: '"1"' }).end('def')
    })
    const { file } = expectSuccess(await createResourceClient(base, { timeout: 300 }).download('/a'))
    expect(await (await file.blob()).text()).toBe('abcdef')
    expect(ranges).toEqual([undefined, 'bytes=3-'])
  })

  it('limits the time of each piece of a download, and not that of the consumer between two', async () => {
    const targets: unknown[] = []
    const base = await start((req, res) => {
      targets.push(req.headers.range)
      res.writeHead(200, { 'Content-Length': 8_000_000, ETag: '"1"' }).end(Buffer.alloc(8_000_000))
    })
    const { file } = expectSuccess(await createResourceClient(base, { timeout: 2000 }).download('/a'))
    let size = 0
    for await (const chunk of file) {
      if (size === 0) await new Promise((resolve) => setTimeout(resolve, 2500))
      size += chunk.length
    }
    expect([size, targets]).toEqual([8_000_000, [undefined]])
  })

  it('cancels the content of another state that a broken download gets', async () => {
    let closed = 0
    const base = await start((req, res) => {
      if (req.headers.range === undefined) {
        res.writeHead(200, { 'Content-Length': 6, ETag: '"1"' }).write('abc', () => res.destroy())
        return
      }
      res.on('close', () => closed++)
      res.writeHead(200, { 'Content-Length': 6, ETag: '"2"' }).write('x')
    })
    const { file } = expectSuccess(await createResourceClient(base).download('/a'))
    await expect(file.blob()).rejects.toThrow(/changed while it was transferred/)
    await vi.waitFor(() => expect(closed).toBe(1), 30_000)
  })

  it.each<[string, number, Record<string, string>, string]>([
    ['without a Location', 201, {}, '{"id":1}'],
    ['with a Location on another origin', 201, { Location: 'https://elsewhere.example/1' }, '{"id":1}'],
    ['with a malformed Location', 201, { Location: 'http://[' }, '{"id":1}'],
    ['with half a document', 201, { Location: '/a/1', 'Content-Location': '/a/1', ETag: '"1"' }, '{"id":'],
    ['whose result cannot be read', 201, { Location: '/a/1' }, ''],
  ])('says of a creation %s that it may have taken effect', async (_, status, headers, text) => {
    const base = await start((req, res) => {
      if (req.method === 'GET') return res.writeHead(404).end()
      return res.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(text)
    })
    const creation = createResourceClient(base, { retries: 0 }).create('/a', {})
    await expect(creation).rejects.toMatchObject({ name: 'ResponseError', mayHaveTakenEffect: true })
  })

  it('does not take the page that a write was redirected to for its success (RFC 9110 §15.4.4)', async () => {
    const base = await start((req, res) => {
      if (req.url === '/login') return res.writeHead(200, { 'Content-Type': 'text/html' }).end('<form>')
      return res.writeHead(303, { Location: '/login' }).end()
    })
    const client = createResourceClient(base)
    await expect(client.remove('/a', 'any')).rejects.toThrow(/redirected/)
    await expect(client.upload('/a', 'any', 'text')).rejects.toThrow(/redirected/)
    await expect(client.replace('/a', 'any', {})).rejects.toThrow(/redirected/)
  })

  it('takes for the success of a write what the server answers it where it was sent on to (RFC 9110 §15.4.9)', async () => {
    const base = await start((req, res) => {
      if (req.url === '/a') return res.writeHead(308, { Location: '/b' }).end()
      return res.writeHead(req.method === 'PUT' ? 201 : 204).end()
    })
    const client = createResourceClient(base)
    expect(await client.upload('/a', 'any', 'text')).toMatchObject({ ok: true, status: 201 })
    expect(await client.remove('/a', 'any')).toMatchObject({ ok: true, status: 204 })
  })

  it('ends a list whose pages lead back to one another', async () => {
    let reads = 0
    const base = await start((req, res) => {
      reads++
      const page = Number(new URL(req.url!, 'http://a.example').searchParams.get('page') ?? 0)
      sendJson(res, 200, { Link: `</a?page=${page === 5 ? 3 : page + 1}>; rel="next"` }, [page])
    })
    const items: number[] = []
    for await (const item of createResourceClient(base).list('/a')) items.push(item as number)
    expect(items.slice(0, 6)).toEqual([0, 1, 2, 3, 4, 5])
    expect(reads).toBeLessThan(20)
  })

  it('stops at once when it is aborted while it waits for a token', async () => {
    const base = await start((_req, res) => void res.end())
    const client = createResourceClient(base, { token: () => new Promise(() => undefined) })
    const controller = new AbortController()
    const reading = client.read('/a', { signal: controller.signal })
    controller.abort(new Error('enough'))
    await expect(reading).rejects.toThrow('enough')
  })

  it('does not take a write without credentials for one that was sent', async () => {
    let requests = 0
    let tokens = 0
    const base = await start((_req, res) => {
      requests++
      res.writeHead(412).end()
    })
    const token = (): string => {
      if (tokens++ === 0) throw new Error('no token yet')
      return 'token'
    }
    const client = createResourceClient(base, { token })
    // After an attempt that was sent the state would be read, to see whether it took effect.
    expect(await client.replace('/a', 'any', {})).toMatchObject({ status: 412 })
    expect(requests).toBe(1)
    const lost = createResourceClient(base, { token: () => Promise.reject(new Error('no token')), retries: 0 })
    await expect(lost.create('/a', {})).rejects.toMatchObject({ status: 0, mayHaveTakenEffect: false })
    expect(requests).toBe(1)
  })

  it.each([
    ['a token', 'secret\nkey', {}],
    ['a token of a function', async () => 'secret\r\nkey', {}],
    ['a token beyond Latin-1', 'secret\u20ac', {}],
    ['another header', undefined, { 'X-Api-Key': 'secret\0key' }],
  ])(
    'throws a TypeError at the first attempt for %s that no request can hold (RFC 9110 §5.5)',
    async (_, token, fields) => {
      let requests = 0
      let attempts = 0
      const base = await start((_req, res) => {
        requests++
        res.writeHead(204).end()
      })
      const headers = () => {
        attempts++
        return fields as Record<string, string>
      }
      const error = await createResourceClient(base, { ...(token && { token }), headers })
        .read('/a')
        .catch((error) => error)
      expect(error).toEqual(new TypeError('The token or a header is malformed.'))
      expect(inspect(error)).not.toContain('secret')
      expect([attempts, requests]).toEqual([1, 0])
    },
  )

  it('sends a token that was read from a file with the end of its line (Fetch §2.2.2)', async () => {
    const base = await start(({ headers }, res) => sendJson(res, 200, {}, headers.authorization))
    const { document } = expectSuccess(await createResourceClient(base, { token: 'key\n' }).read('/a'))
    expect(document.value).toBe('Bearer key')
  })

  it('rejects for a page of a proxy, half a body and redirections without end', async () => {
    const base = await start(async (req, res) => {
      if (req.url === '/half') {
        res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 100, ETag: '"1"' }).write('{"a":')
        await once(res, 'drain').catch(() => undefined)
      }
      if (req.url === '/loop') return res.writeHead(302, { Location: '/loop' }).end()
      return res.writeHead(502, { 'Content-Type': 'text/html', 'Retry-After': '86400' }).end('<h1>Bad gateway</h1>')
    })
    const client = createResourceClient(base, { retries: 1, timeout: 200 })
    await expect(client.read('/proxy')).rejects.toMatchObject({ name: 'ResponseError', status: 502 })
    await expect(client.read('/half')).rejects.toMatchObject({ name: 'ResponseError', status: 0 })
    await expect(client.read('/loop')).rejects.toMatchObject({ name: 'ResponseError', status: 0 })
    await expect(client.create('/proxy', {})).rejects.toMatchObject({ status: 502, mayHaveTakenEffect: true })
  })
})
