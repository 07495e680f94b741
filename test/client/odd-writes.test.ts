import { expect, it } from 'vitest'
import { createResourceClient, expectSuccess } from '../../src/client.ts'
import { start } from './servers.ts'

it.each([
  ['another path', { 'Content-Location': '/report', ETag: '"r"' }],
  ['its path, and no tag', { 'Content-Location': '/a' }],
  ['a malformed path', { 'Content-Location': 'http://[', ETag: '"r"' }],
])('reads what was written where the answer has the content of %s (RFC 9110 §8.7)', async (_, headers) => {
  const base = await start((req, res) => {
    const isRead = req.method === 'GET'
    res.writeHead(200, { 'Content-Type': 'application/json', ...(isRead ? { ETag: '"1"' } : headers) })
    res.end(isRead ? '{"n":1}' : '{"report":true}')
  })
  const { document } = expectSuccess(await createResourceClient(base).replace('/a', 'any', { n: 1 }))
  expect([document.value, document.entityTag]).toEqual([{ n: 1 }, '"1"'])
})

it.each([
  ['0', 0],
  ['many', undefined],
  ['1, 2', undefined],
  ['', undefined],
])('reads a count only where it is one: X-Total-Count %s', async (count, total) => {
  const base = await start((_req, res) => {
    res.writeHead(200, { 'Content-Type': 'application/json', 'X-Total-Count': count }).end('[]')
  })
  const { value } = await createResourceClient(base).list('/a').pages().next()
  expect(value).toEqual({ ok: true, status: 200, items: [], total })
})

it('reads what was written where the answer is the representation, and has no content', async () => {
  const base = await start((req, res) => {
    const fields = { 'Content-Type': 'application/json', 'Content-Location': '/a', ETag: '"1"' }
    res.writeHead(req.method === 'GET' ? 200 : 204, fields).end(req.method === 'GET' ? '{"n":1}' : undefined)
  })
  const { document } = expectSuccess(await createResourceClient(base).replace('/a', 'any', { n: 1 }))
  expect(document.value).toEqual({ n: 1 })
})

it('goes on with a list by the relation next, and by no other that has it in its name (RFC 8288 §3.3)', async () => {
  const links = '</x>; rel="nextish pre-next", </y>; rel=prev; xrel="next", </z>; xrel=next, </b>; rel="last next"'
  const targets: unknown[] = []
  const base = await start((req, res) => {
    targets.push(req.url)
    const more = { '/a': { Link: links }, '/b': { Link: '</c>; REL=Next' } }[req.url!]
    res.writeHead(200, { 'Content-Type': 'application/json', ...more }).end('[]')
  })
  for await (const page of createResourceClient(base).list('/a').pages()) expectSuccess(page)
  expect(targets).toEqual(['/a', '/b', '/c'])
})

it('goes on with a list where a 304 says that there is more, and keeps the tag that a proxy weakens there (RFC 9111 §3.2)', async () => {
  let pages = 0
  const base = await start((req, res) => {
    const own = { ETag: '"2"', 'Content-Type': 'application/json' }
    if (req.url === '/a?after=1') return res.writeHead(200, own).end('[2]')
    const link = { Link: '</a?after=1>; rel="next"', 'Content-Type': 'text/html', ETag: 'W/"1"' }
    return ++pages === 1 ? res.writeHead(200, { ...own, ETag: '"1"' }).end('[1]') : res.writeHead(304, link).end()
  })
  const client = createResourceClient(base)
  const seen: unknown[] = []
  for (let i = 0; i < 2; i++) for await (const item of client.list('/a')) seen.push(item)
  expect(seen).toEqual([1, 1, 2])
  expect(expectSuccess(await client.read('/a')).document.entityTag).toBe('"1"')
})

it('keeps what it reads again longer than what it read once', async () => {
  const statuses: string[] = []
  const base = await start((req, res) => {
    const status = req.headers['if-none-match'] === undefined ? 200 : 304
    statuses.push(`${status} ${req.url}`)
    res.writeHead(status, { 'Content-Type': 'application/json', ETag: '"1"' }).end(status === 200 ? '{}' : undefined)
  })
  const client = createResourceClient(base, { cacheSize: 2 })
  for (const path of ['/a', '/b', '/a', '/c', '/a']) await client.read(path)
  expect(statuses).toEqual(['200 /a', '200 /b', '304 /a', '200 /c', '304 /a'])
})

it('keeps content of 100,000 characters at most', async () => {
  const asked: unknown[] = []
  const base = await start((req, res) => {
    asked.push(req.headers['if-none-match'])
    const text = JSON.stringify('x'.repeat(Number(req.url!.slice(1)) - 2))
    res.writeHead(200, { 'Content-Type': 'application/json', ETag: '"1"' }).end(text)
  })
  const client = createResourceClient(base)
  for (const path of ['/100000', '/100000', '/100001', '/100001']) await client.read(path)
  expect(asked).toEqual([undefined, '"1"', undefined, undefined])
})

it('keeps nothing that has no tag', async () => {
  const asked: unknown[] = []
  const base = await start((req, res) => {
    asked.push(req.headers['if-none-match'])
    res.writeHead(200, { 'Content-Type': 'application/json' }).end('{}')
  })
  const client = createResourceClient(base)
  for (let reads = 0; reads < 2; reads++) expectSuccess(await client.read('/a'))
  expect(asked).toEqual([undefined, undefined])
})

it('reads without the tag of before what it has written or removed', async () => {
  const asked: string[] = []
  const base = await start((req, res) => {
    asked.push(`${req.method} ${req.headers['if-none-match'] ?? 'without'}`)
    if (req.method !== 'GET') return res.writeHead(204).end()
    return res.writeHead(200, { 'Content-Type': 'application/json', ETag: '"1"' }).end('{}')
  })
  const client = createResourceClient(base)
  await client.read('/a')
  await client.replace('/a', 'any', {})
  await client.remove('/a', 'any')
  await client.read('/a')
  await client.upload('/a', 'any', '{}')
  await client.read('/a')
  const written = ['PUT without', 'GET without', 'DELETE without', 'GET without', 'PUT without', 'GET without']
  expect(asked).toEqual(['GET without', ...written])
})

it('reads without the tag of before what was not found meanwhile', async () => {
  const asked: unknown[] = []
  const base = await start((req, res) => {
    asked.push(req.headers['if-none-match'])
    const status = asked.length === 2 ? 404 : 200
    res.writeHead(status, { 'Content-Type': 'application/json', ETag: '"1"' }).end('{}')
  })
  const client = createResourceClient(base)
  for (const status of [200, 404, 200]) expect(await client.read('/a')).toMatchObject({ status })
  expect(asked).toEqual([undefined, '"1"', undefined])
})

it('reads JSON however the case of its media type is (RFC 9110 §8.3.1)', async () => {
  const base = await start((_req, res) => {
    res.writeHead(200, { 'Content-Type': 'Application/Vnd.Example+JSON; charset=utf-8', ETag: '"1"' }).end('{"n":1}')
  })
  const { document } = expectSuccess(await createResourceClient(base).read('/a'))
  expect(document.value).toEqual({ n: 1 })
})

it('waits at the resource for a removal that was accepted without a Location', async () => {
  const base = await start((_req, res) => void res.writeHead(202).end())
  const removed = await createResourceClient(base).remove('/a', 'any')
  expect(removed).toMatchObject({ status: 202, operation: { url: `${base}/a` } })
})

it('reads what a service has whose redirection leads to nothing', async () => {
  const base = await start((req, res) => {
    const target = req.headers['if-match'] === undefined ? { Location: '/gone' } : {}
    const status = req.url === '/gone' ? 404 : target.Location === undefined ? 200 : 307
    res.writeHead(status, { 'Content-Type': 'application/json', ETag: '"1"', ...target }).end('{"n":1}')
  })
  const { document } = expectSuccess(await createResourceClient(base).read('/a'))
  expect(document.value).toEqual({ n: 1 })
})

it('waits for work that is pending or running, a tenth of a second at least where the server says none', async () => {
  const states = ['pending', 'running', 'done']
  const base = await start((_req, res) => {
    res.writeHead(200, { 'Content-Type': 'application/json', 'Retry-After': '0' })
    res.end(JSON.stringify({ state: states.shift() }))
  })
  const begin = performance.now()
  const ended = await createResourceClient(base).wait({ url: `${base}/operations/1`, retryAfter: undefined })
  expect(ended).toMatchObject({ ok: true, document: { value: { state: 'done' } } })
  expect(performance.now() - begin).toBeGreaterThan(190)
})

it('tries again after a minute where the server asks for it, and not after more', async () => {
  const base = await start((req, res) => void res.writeHead(429, { 'Retry-After': req.url!.slice(1) }).end())
  const client = createResourceClient(base)
  await expect(client.read('/61')).rejects.toMatchObject({ status: 429 })
  const controller = new AbortController()
  const reading = client.read('/60', { signal: controller.signal })
  setTimeout(() => controller.abort(), 100)
  await expect(reading).rejects.toMatchObject({ name: 'AbortError' })
})

it('counts a chunk of an upload as sent when the next one is asked for', async () => {
  const seen: number[][] = []
  const sent: number[] = []
  const client = createResourceClient('https://example.org', {
    async fetch(_url, { body }) {
      const reader = (body as ReadableStream<Uint8Array>).getReader()
      for (let isDone = false; !isDone; ) {
        isDone = (await reader.read()).done
        await new Promise(setImmediate)
        seen.push([...sent])
      }
      return new Response(null, { status: 204, headers: { ETag: '"1"' } })
    },
  })
  const onProgress = (bytes: number): void => void sent.push(bytes)
  await client.upload('/a', 'any', new Uint8Array(100_000), { onProgress })
  expect(seen).toEqual([[], [65_536], [65_536, 100_000]])
})

it('limits the time of an upload only where that is asked for', async () => {
  const base = await start((req, res) => {
    req.resume()
    setTimeout(() => res.writeHead(204, { ETag: '"1"' }).end(), 300)
  })
  const client = createResourceClient(base, { timeout: 50, retries: 0 })
  expect(await client.upload('/a', 'any', 'text')).toMatchObject({ ok: true })
  await expect(client.upload('/a', 'any', 'text', { timeout: 50 })).rejects.toMatchObject({ status: 0 })
})

it('asks for the state of accepted work after its Retry-After, and not before', async () => {
  const base = await start((_req, res) => {
    res.writeHead(200, { 'Content-Type': 'application/json' }).end('{"state":"done"}')
  })
  const begin = performance.now()
  const done = await createResourceClient(base).wait({ url: `${base}/operations/1`, retryAfter: 400 })
  expect(done).toMatchObject({ ok: true })
  expect(performance.now() - begin).toBeGreaterThan(390)
})

it.each([
  [405, false],
  [500, true],
  [501, true],
])('says of an answer %d to a write whether it may have taken effect: %s', async (status, mayHaveTakenEffect) => {
  const base = await start((_req, res) => void res.writeHead(status).end())
  const writing = createResourceClient(base).replace('/a', 'any', {})
  await expect(writing).rejects.toMatchObject({ status, mayHaveTakenEffect })
})

it('makes no condition of a weak tag, which If-Match never matches (RFC 9110 §13.1.1)', async () => {
  const conditions: unknown[] = []
  const date = 'Tue, 01 Dec 2026 10:00:00 GMT'
  const base = await start((req, res) => {
    const { 'if-match': tag, 'if-unmodified-since': time } = req.headers
    if (req.method === 'PUT') conditions.push([tag, time])
    const dated = req.url === '/dated' ? { 'Last-Modified': date } : {}
    res.writeHead(200, { 'Content-Type': 'application/json', ETag: 'W/"1"', ...dated }).end('{}')
  })
  const client = createResourceClient(base)
  const { document } = expectSuccess(await client.read('/dated'))
  await client.replace(document, {})
  expect(conditions).toEqual([[undefined, date]])
  const undated = expectSuccess(await client.read('/undated')).document
  await expect(client.replace(undated, {})).rejects.toThrow('The document has neither a strong ETag nor Last-Modified.')
})
