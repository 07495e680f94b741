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
])('reads a count only where it is one: X-Total-Count %s', async (count, total) => {
  const base = await start((_req, res) => {
    res.writeHead(200, { 'Content-Type': 'application/json', 'X-Total-Count': count }).end('[]')
  })
  const { value } = await createResourceClient(base).list('/a').pages().next()
  expect(value).toEqual({ ok: true, status: 200, items: [], total })
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
  expect(asked).toEqual(['GET without', 'PUT without', 'GET without', 'DELETE without', 'GET without'])
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
