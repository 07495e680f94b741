import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Answer } from '../support/answer.ts'
import { ask, checkAnswer, formatRequest } from '../support/ask.ts'
import { basicCredentials, type RunningDemo, startDemo } from '../support/demo.ts'
import { openRawClient, type RawClient } from '../wire/raw-client.ts'

const me = `Authorization: ${basicCredentials}`
const text = 'Content-Type: text/plain'
const json = 'Content-Type: application/json'

describe.each(['plain', 'Express 5', 'Koa 3'])('connections to the demo on %s', (name) => {
  let demo: RunningDemo
  let client: RawClient
  beforeEach(async () => {
    demo = await startDemo(name)
    client = await openRawClient(demo.port)
  })
  afterEach(async () => {
    client.socket.destroy()
    await demo.close()
  })

  const send = (lines: readonly string[], body = ''): void => client.send(`${lines.join('\r\n')}\r\n\r\n${body}`)
  const read = async (method = 'GET'): Promise<Answer> => checkAnswer(method, await client.read(method))

  it.each(['2.0', '0.9'])('answers 505 to HTTP/%s over HTTP/1, and lives on (RFC 9110 §15.6.6)', async (version) => {
    send([`GET / HTTP/${version}`, 'Host: demo.test'])
    const answer = await read()
    expect(answer.status).toBe(505)
    expect(answer.field('Connection')).toBe('close')
    await client.closed
    expect((await ask(demo.port, { target: '/' })).status).toBe(200)
  })

  it('serves HTTP/1.0 without Host, and closes (threat 18)', async () => {
    send(['GET / HTTP/1.0'])
    const answer = await read()
    expect(answer.status).toBe(200)
    expect(answer.field('Transfer-Encoding')).toBeUndefined()
    await client.closed
  })

  it('serves HTTP/1.0 again on the connection it asks to keep', async () => {
    for (let i = 0; i < 2; i++) {
      send(['HEAD /file.bin HTTP/1.0', 'Connection: keep-alive'])
      expect((await read('HEAD')).field('Connection')).toBe('keep-alive')
    }
  })

  it.each([
    ['no Host in HTTP/1.1', ['GET / HTTP/1.1']],
    ['a method in lower case (row H49)', ['get / HTTP/1.1', 'Host: demo.test']],
    ['a target that is not a target', ['GET users HTTP/1.1', 'Host: demo.test']],
    ['a blank in the target', ['GET /a b HTTP/1.1', 'Host: demo.test']],
    ['two lengths', ['PUT /docs/a HTTP/1.1', 'Host: demo.test', text, 'Content-Length: 1', 'Content-Length: 2']],
    [
      'a length and chunks',
      ['PUT /docs/a HTTP/1.1', 'Host: demo.test', text, 'Content-Length: 5', 'Transfer-Encoding: chunked'],
    ],
    ['a coding that is not chunked', ['PUT /docs/a HTTP/1.1', 'Host: demo.test', text, 'Transfer-Encoding: xchunked']],
    ['a length that is not a number', ['PUT /docs/a HTTP/1.1', 'Host: demo.test', text, 'Content-Length: +5']],
    ['a blank before the colon', ['GET / HTTP/1.1', 'Host : demo.test']],
  ])('refuses %s with 400, and closes (threat 1)', async (_, lines) => {
    send(lines, 'abcde')
    expect((await client.readToEnd()).toString()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect((await ask(demo.port, { target: '/docs/a' })).status).toBe(404)
  })

  it('refuses more fields than Node 20 passes on with 431 (row H10, threat 4)', async () => {
    await ask(demo.port, { method: 'PUT', target: '/docs/a', fields: [text], body: 'old' })
    const flood = Array.from({ length: 1500 }, () => 'a:b')
    const put = ['PUT /docs/a HTTP/1.1', 'Host: demo.test', 'Connection: close', text, 'Content-Length: 3']
    send([...put, ...flood, 'If-Match: "stale"'], 'new')
    // Later versions refuse them themselves, with an answer that ends with the connection.
    expect((await client.readToEnd()).toString()).toMatch(/^HTTP\/1\.1 431 /)
    expect((await ask(demo.port, { target: '/docs/a' })).text).toBe('old')
    client.socket.destroy()
    client = await openRawClient(demo.port)
    send(['GET / HTTP/1.1', 'Host: demo.test', `X-Long: ${'a'.repeat(65_536)}`])
    expect((await client.readToEnd()).toString()).toMatch(/^HTTP\/1\.1 431 /)
  })

  it('takes 999 fields, and no more', async () => {
    const get = ['GET / HTTP/1.1', 'Host: demo.test', 'Connection: close']
    for (const [count, status] of [
      [999, '200'],
      [1000, '431'],
    ] as const) {
      client = await openRawClient(demo.port)
      send([...get, ...Array.from({ length: count - 2 }, () => 'a:b')])
      expect((await client.readToEnd()).toString().slice(0, 12)).toBe(`HTTP/1.1 ${status}`)
    }
  })

  it('does nothing before the header section is complete (RFC 9110 §5.3, row H26)', async () => {
    client.send('DELETE /docs/a HTTP/1.1\r\nHost: demo.test\r\n')
    client.socket.end()
    await client.closed
    expect((await ask(demo.port, { target: '/' })).status).toBe(200)
  })

  const expects = 'Expect: 100-continue'
  it.each<readonly [number, readonly string[]]>([
    [401, ['DELETE /docs/a HTTP/1.1', 'Content-Length: 5']],
    [404, ['PATCH /users/9 HTTP/1.1', 'Content-Type: application/merge-patch+json', 'Content-Length: 5']],
    [405, ['POST /docs/a HTTP/1.1', text, 'Content-Length: 5']],
    [412, ['PUT /docs/a HTTP/1.1', text, 'Content-Length: 5', 'If-Match: "x"']],
    [412, ['PUT /docs/a HTTP/1.1', text, 'Content-Length: 2000000000', 'If-Match: "x"']],
    [413, ['PUT /users/1 HTTP/1.1', json, 'Content-Length: 1000000000000']],
    [415, ['PUT /users/1 HTTP/1.1', text, 'Content-Length: 5']],
    [415, ['PUT /docs/a HTTP/1.1', text, 'Content-Encoding: zip', 'Content-Length: 5']],
    [403, ['POST /users HTTP/1.1', json, 'Content-Length: 5', me, 'Origin: https://evil.example']],
    [400, ['PUT /docs/%zz HTTP/1.1', text, 'Content-Length: 5']],
    [414, [`PUT /docs/${'a'.repeat(3000)} HTTP/1.1`, text, 'Content-Length: 5']],
  ])(
    'answers %i at once where fields decide, and asks for no content (RFC 9110 §10.1.1, rows H76, H80)',
    async (status, lines) => {
      send([...lines, 'Host: demo.test', expects])
      const answer = await read()
      expect(answer.status).toBe(status)
      expect(answer.field('Connection')).toBe('close')
      expect((await client.readToEnd()).toString()).toBe('')
    },
  )

  it('says 100 before it waits for content, and then one final status (rows H77, H81)', async () => {
    send(['PUT /docs/a HTTP/1.1', 'Host: demo.test', text, 'Content-Length: 5', expects])
    expect((await client.read()).status).toBe(100)
    client.send('hello')
    expect((await read('PUT')).status).toBe(201)
    client.send(formatRequest({ target: '/docs/a' }))
    expect((await read()).text).toBe('hello')
  })

  it('says no 100 to HTTP/1.0, nor to a request whose content is not read (rows H78, H79)', async () => {
    send(['PUT /docs/a HTTP/1.0', text, 'Content-Length: 5', expects], 'hello')
    expect((await client.read()).status).toBe(201)
    const other = await openRawClient(demo.port)
    other.send('GET / HTTP/1.1\r\nHost: demo.test\r\nExpect: banana\r\nConnection: close\r\n\r\n')
    expect((await other.readToEnd()).toString()).toMatch(/^HTTP\/1\.1 417 /)
  })

  it('lets a client that still sends read the refusal (threat 14)', async () => {
    send(['PUT /users/1 HTTP/1.1', 'Host: demo.test', json, 'Content-Length: 50000000'])
    client.socket.write(Buffer.alloc(1_000_000))
    const answer = await read('PUT')
    expect([answer.status, answer.field('Connection')]).toEqual([413, 'close'])
    await client.closed
  })

  it('refuses content in chunks once it is over the limit (row H177)', async () => {
    send(['POST /users HTTP/1.1', 'Host: demo.test', json, 'Transfer-Encoding: chunked'])
    const chunk = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(0x100000, ' '), Buffer.from('\r\n')])
    for (let i = 0; i < 10; i++) client.socket.write(chunk)
    expect((await read('POST')).status).toBe(413)
    await client.closed
    expect((await ask(demo.port, { target: '/users' })).text).toBe('[]')
  })

  it('stores nothing of content that breaks off (threats 11, 13)', async () => {
    send(['PUT /docs/a HTTP/1.1', 'Host: demo.test', text, 'Content-Length: 1000'], 'only this')
    await wait(20)
    client.socket.destroy()
    expect((await ask(demo.port, { target: '/docs/a' })).status).toBe(404)
  })

  it('takes content in chunks, and ignores what is put between and behind them (row H176, threat 84)', async () => {
    send(
      ['PUT /docs/a HTTP/1.1', 'Host: demo.test', text, 'Transfer-Encoding: chunked'],
      '5;ext=1\r\nhello\r\n0\r\nIf-Match: "x"\r\n\r\n',
    )
    expect((await read('PUT')).status).toBe(201)
    expect((await ask(demo.port, { target: '/docs/a' })).text).toBe('hello')
  })

  it('ends a download with the client, and goes on (threat 12)', async () => {
    for (let i = 0; i < 20; i++) {
      const reader = await openRawClient(demo.port)
      reader.send(formatRequest({ target: '/file.bin', fields: [`Range: bytes=${i}-`] }))
      await new Promise((resolve) => reader.socket.once('data', resolve))
      reader.socket.destroy()
    }
    expect((await ask(demo.port, { target: '/file.bin' })).values('content-length')).toEqual(['1048576'])
  })
})
