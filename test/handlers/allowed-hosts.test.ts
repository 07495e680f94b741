import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import { describe, expect, it } from 'vitest'
import { createHandler } from '../../src/core/node-handler.ts'
import { createHostCheck } from '../../src/handlers/access-checks.ts'
import { openRawClient } from '../wire/raw-client.ts'
import { listen, serve } from './serve.ts'

const HOSTS = [
  'api.test',
  'api.test:8443',
  'only.test:8080',
  'tls.test:443',
  'plain.test:80',
  '*.wild.test',
  '[::1]',
  '127.0.0.1',
]

function handlerFor(hosts: readonly string[]): RequestListener {
  const piece = createHandler({ run: createHostCheck(hosts), forwardErrors: false })
  return (req, res) => piece(req, res, () => void res.end('served'))
}

describe('createHostCheck', () => {
  it.each([
    ['api.test', 200],
    ['API.test', 200],
    ['api.test:80', 200],
    ['api.test:8443', 200],
    ['api.test:', 200],
    ['only.test:8080', 200],
    ['only.test', 421],
    ['only.test:8081', 421],
    ['tls.test', 200],
    ['tls.test:443', 200],
    ['plain.test', 200],
    ['tls.test:8443', 421],
    ['a.wild.test', 200],
    ['a.b.wild.test:99', 200],
    ['wild.test', 421],
    ['xwild.test', 421],
    ['.wild.test', 421],
    ['[::1]', 200],
    ['[::1]:8080', 200],
    ['127.0.0.1:3000', 200],
    ['127.0.0.2', 421],
    ['rebind.example', 421],
    ['api.test.evil', 421],
    ['evil@api.test', 421],
    ['api.test.', 421],
    ['api.test/x', 421],
  ])('Host %j: %i (RFC 9110 §15.5.20, row H4, threat 8)', async (host, status) => {
    const send = await serve(handlerFor(HOSTS))
    const answer = await send('GET', '/', { Host: host, Origin: 'https://a.test' })
    expect(answer.status).toBe(status)
    if (status !== 421) return
    expect([answer.text, answer.field('cache-control')]).toEqual(['', 'no-store'])
    expect(answer.field('access-control-allow-origin')).toBeUndefined()
  })

  it('goes by the authority of an absolute-form target (RFC 9112 §3.2.2, threat 5)', async () => {
    const client = await openRawClient(await listen(handlerFor(HOSTS)))
    client.send('GET http://evil.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n')
    expect((await client.read()).status).toBe(421)
    client.send('HEAD http://api.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n')
    expect((await client.read('HEAD')).status).toBe(200)
    client.socket.destroy()
  })

  it('refuses a request without a host, as HTTP/1.0 has it', async () => {
    const client = await openRawClient(await listen(handlerFor(HOSTS)))
    client.send('GET / HTTP/1.1\r\nHost: \r\n\r\n')
    expect((await client.read()).status).toBe(421)
    client.send('GET / HTTP/1.0\r\n\r\n')
    expect((await client.readToEnd()).toString()).toMatch(/^HTTP\/1\.1 421 /)
  })

  it('goes by :authority on HTTP/2 (RFC 9113 §8.3.1)', async () => {
    const server = createHttp2Server(handlerFor(HOSTS) as never)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const session = connect(`http://127.0.0.1:${(server.address() as { port: number }).port}`)
    for (const [authority, status] of [
      ['api.test', 200],
      ['evil.test', 421],
    ] as const) {
      const stream = session.request({ ':path': '/', ':authority': authority })
      const [headers] = await once(stream, 'response')
      expect(headers[':status']).toBe(status)
      stream.resume()
    }
    session.destroy()
    server.close()
  })

  it('does not remember without bound what clients spell', async () => {
    const send = await serve(handlerFor(['*.wild.test']))
    for (let i = 0; i < 300; i++) expect((await send('GET', '/', { Host: `h${i}.wild.test` })).status).toBe(200)
    expect((await send('GET', '/', { Host: 'h299.evil.test' })).status).toBe(421)
  })

  it.each([[[]], [['']], [['*']], [['a b']], [['https://a.test']], [['*.a.test:80']], [['*.[::1]']], [['a.test/']]])(
    'refuses %j at construction',
    (hosts) => {
      expect(() => createHostCheck(hosts as string[])).toThrow(TypeError)
    },
  )

  it('refuses what is not a list', () => {
    expect(() => createHostCheck('a.test' as never)).toThrow(TypeError)
  })
})
