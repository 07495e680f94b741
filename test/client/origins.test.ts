import { expect, it } from 'vitest'
import { createResourceClient } from '../../src/client.ts'
import { start } from './servers.ts'

const validators = { entityTag: '"1"', lastModified: undefined }

it.each(['http://127.0.0.1:1', 'http://example.org'])('follows no Link and no Location to %s', async (other) => {
  const base = await start((req, res) => {
    res.setHeader('Content-Type', 'application/json').setHeader('Link', `<${other}/>; rel="next"`)
    res.writeHead(req.method === 'GET' ? 200 : 202, { Location: `${other}/1` }).end('[]')
  })
  const client = createResourceClient(base)
  const pages = client.list('/a').pages()
  expect(await pages.next()).toMatchObject({ value: { ok: true } })
  await expect(pages.next()).rejects.toThrow(/another origin/)
  await expect(client.create('/a', {})).rejects.toThrow(/another origin/)
  await expect(client.remove('/a', 'any')).rejects.toThrow(/another origin/)
})

it('sends nothing to another origin, whose name begins with that of its own', async () => {
  const requests: string[] = []
  const fetch = async (url: string) => {
    requests.push(url)
    return Response.json({})
  }
  const client = createResourceClient('https://example.org', { fetch: fetch as never })
  for (const url of ['https://example.org.evil.example/a', 'https://example.org:8443/a', 'http://example.org/a']) {
    await expect(client.read({ url, ...validators })).rejects.toThrow(TypeError)
    await expect(client.replace({ url, ...validators }, {})).rejects.toThrow(TypeError)
    await expect(client.wait({ url, retryAfter: undefined })).rejects.toThrow(TypeError)
  }
  expect(requests).toEqual([])
})

it('encodes each segment of a path of any depth', async () => {
  const requests: string[] = []
  const fetch = async (url: string) => {
    requests.push(url)
    return Response.json({})
  }
  const client = createResourceClient('https://example.org', { fetch: fetch as never })
  await client.read('/files/{path...}', { path: 'a b/c' } as never)
  expect(requests).toEqual(['https://example.org/files/a%20b/c'])
})

it('refuses a path that has one name twice', async () => {
  const client = createResourceClient('https://example.org', { fetch: (async () => Response.json({})) as never })
  await expect(client.read('/a/{id}/b/{id}', { id: 1 } as never)).rejects.toThrow(TypeError)
})
