import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Answer } from '../support/answer.ts'
import { ask, checkAnswer, formatRequest, type RawRequest } from '../support/ask.ts'
import { basicCredentials, type RunningDemo, startDemo } from '../support/demo.ts'
import { openRawClient } from '../wire/raw-client.ts'

const json = 'Content-Type: application/json'
const text = 'Content-Type: text/plain'
const me = `Authorization: ${basicCredentials}`
const origin = 'Origin: https://app.example'

type Row = readonly [status: number, request: Omit<RawRequest, 'target'> & { readonly target: string }]
const get = (target: string, ...fields: string[]): RawRequest => ({ target, fields })
const send = (method: string, target: string, body: string | Uint8Array, ...fields: string[]): RawRequest => ({
  method,
  target,
  fields,
  body,
})

/** Targets below the mount point, and what each is answered on every host. */
const targets: readonly Row[] = [
  // Rows H5, H6; threats 20 to 25: nothing is normalised, dot segments and what is empty or encoded twice are errors.
  ...[
    ...['/docs/../users', '/docs/./x', '/docs/..', '/docs/%2e%2e/users', '/docs/%2e/x', '/docs/%2E%2E'],
    ...['/docs/..%2fusers', '/docs/%2e%2e%2fx', '/docs/%2e%2e%5cx', '/docs/..\\x', '/docs\\x', '/docs/a%5Cb'],
    ...['/docs/a%2Fb', '/users%2F1', '/docs/a%00b', '/docs/%0a', '/docs/%0d%0aINFO', '/docs/%7f', '/docs/%1f'],
    ...['/docs/%zz', '/docs/%', '/docs/%4', '/docs/%c0%ae', '/docs/%ED%A0%80', '/docs/%ff', '/docs/....//x'],
    ...['//users', '//', '/docs//x', '/docs/x//', '//evil.example/x', '/users#top'],
  ].map((target): Row => [400, get(target)]),
  // Threats 21, 31, 122: one spelling for each resource.
  ...[
    ...['/users/', '/docs/', '/USERS', '/users;x', '/users/1;x', '/users/1/', '/users/1.css', '/users/1/a.css'],
    ...[
      '/users/01',
      '/users/+1',
      '/users/-1',
      '/users/1.0',
      '/users/1e0',
      '/users/0x1',
      '/users/%201',
      '/users/%D9%A1',
    ],
    ...['/users/9007199254740993', '/users/99999999999999999999', '/nothing', '/docs', '/constructor/x'],
    ...['/users/__proto__', '/docs/toString', '/docs/__proto__', '/docs/%252e%252e%252fx', '/docs/a%20b'],
  ].map((target): Row => [target === '/docs' ? 200 : 404, get(target)]),
  [200, get('/users/%31')],
  [200, get('/users/1?a?b&c=/../%zz')],
  // Rows H1, H2.
  [404, get(`/docs/${'a'.repeat(2042)}`)],
  [414, get(`/docs/${'a'.repeat(2043)}`)],
  [200, get(`/users/1?${'a'.repeat(2039)}`)],
  [414, get(`/users/1?${'a'.repeat(2040)}`)],
  [414, send('DELETE', `/${'../'.repeat(1000)}`, '')],
]

/** Messages that are refused, or that look odd and are not, on every host. */
const messages: readonly Row[] = [
  // Rows H7 to H9, threat 3: a repeated singleton is an error, never "first wins".
  [400, get('/users/1', me, me)],
  [400, get('/users/1', me, 'Authorization: Basic eA==')],
  [400, get('/users/1', 'Authorization: Basic eA==', me)],
  [400, get('/users/1', origin, 'Origin: https://evil.example')],
  [400, get('/users/1', 'Host: a.test', 'Host: b.test')],
  [400, get('/users/1', 'Host: a.test', 'hOST: a.test')],
  [400, send('PUT', '/docs/x', 'x', text, 'Content-Type: text/html')],
  // RFC 9112 §3.2
  [400, get('/users/1', 'Host: a b')],
  [400, get('/users/1', 'Host: a/b')],
  [400, get('/users/1', 'Host: <a>')],
  [200, get('/users/1', 'Host: [::1]:8080')],
  [200, get('/users/1', 'Host: A.test:')],
  [200, get('/users/1', 'Host: a.test:65535')],
  [200, get('/users/1', 'Host: a_b!$%20.test')],
  // RFC 9112 §3.2, RFC 9110 §4.2.1 and §4.2.4
  ...[
    '',
    ':80',
    'u@a.test',
    'u:p@a.test:80',
    'a.test:x',
    'a.test:-1',
    'a.test:65536',
    'a.test:1:2',
    '[::1',
    '::1',
    '[]',
  ]
    .concat(['[::1]x', '[::g]', '[1:2]', 'a.test?x', 'a.test#x', 'a%zz.test'])
    .map((host): Row => [400, get('/users/1', `Host: ${host}`)]),
  // Row H53, threat 2: content of GET, HEAD and DELETE means nothing.
  [200, send('GET', '/users/1', 'abc')],
  [200, send('HEAD', '/users/1', 'abc')],
  [401, send('DELETE', '/users/1', '{"id":2}', json)],
  [204, send('OPTIONS', '/users/1', 'abc')],
  [200, { target: '/users/1', fields: ['Transfer-Encoding: chunked'], body: '3\r\nabc\r\n0\r\n\r\n' }],
  // Rows H47 to H49, H74; threat 16.
  [501, { method: 'PROPFIND', target: '/users/1' }],
  [501, { method: 'TRACE', target: '/users/1', fields: [me] }],
  [501, send('REPORT', '/users', '{}', json)],
  // Known to the demo, but not allowed here: its users have no `query`.
  [405, send('QUERY', '/users', '{}', json)],
  [501, { method: 'PURGE', target: '/nothing' }],
  [405, { method: 'DELETE', target: '/users', fields: [me] }],
  [405, send('POST', '/users/1', '{}', json)],
  [405, send('PUT', '/users', '[]', json)],
  [405, send('PATCH', '/users', '[]', json)],
  [405, send('PUT', '/', '{}', json)],
  [405, { method: 'DELETE', target: '/config/app', fields: [me] }],
  // Early refusals of content (rows H66, H177, H178).
  [415, send('PUT', '/users/1', '<a/>', 'Content-Type: text/xml')],
  [415, send('POST', '/users', '{}')],
  [415, send('PATCH', '/users/1', '{}', json)],
  [415, send('PUT', '/docs/x', 'x', text, 'Content-Encoding: br')],
  [400, send('PUT', '/docs/x', 'x', 'Content-Type: ')],
  [400, send('PUT', '/docs/x', 'x', 'Content-Type: text')],
  [400, send('PUT', '/docs/x', 'x', text, 'Content-Range: bytes 0-0/1')],
  [400, send('POST', '/users', '{"name":', json)],
  [422, send('POST', '/users', '{"name":""}', json)],
  [404, send('PATCH', '/users/9', '{}', 'Content-Type: application/merge-patch+json')],
  [412, send('PUT', '/users/1', '{}', json, 'If-Match: "x"')],
  [400, send('PUT', '/users/1', '{}', json, 'If-Match: x')],
  [406, get('/users/1', 'Accept: image/png')],
  [401, get('/articles?deleted=true')],
  [401, send('DELETE', '/users/1', '', 'Authorization: Basic')],
  [401, send('DELETE', '/users/1', '', 'Authorization: Negotiate abc')],
  [404, { method: 'DELETE', target: '/users/9', fields: [me] }],
  // A foreign origin without a preflight (threat 112).
  [
    403,
    send(
      'POST',
      '/users',
      'name=x',
      me,
      'Content-Type: application/x-www-form-urlencoded',
      'Origin: https://evil.example',
    ),
  ],
  // Cleartext that a proxy passed on (row H3, threat 111).
  [403, get('/users/1', 'X-Forwarded-Proto: https')],
  [403, get('/users/1', 'Forwarded: for=192.0.2.1;proto=https', me)],
  [404, get('/users/9', origin)],
  [204, { method: 'OPTIONS', target: '/users/1', fields: [origin, 'Access-Control-Request-Method: PATCH'] }],
]

const title = ([status, { method = 'GET', target, fields = [] }]: Row): string => {
  const short = target.length > 60 ? `${target.slice(0, 12)}… of ${target.length} characters` : target
  return `${method} ${short} ${fields.filter((line) => line !== me).join(' ')} is ${status}`
}

/** What may differ between two runs and two hosts. */
function comparable(answer: Answer, prefix: string): unknown {
  const fields = answer.fields.filter(([name]) => !/^(?:date|connection|keep-alive|etag|last-modified)$/.test(name))
  const stable = fields.map(([name, value]) => [name.toLowerCase(), value.replace(/nonce="[^"]*"/, 'nonce')] as const)
  const shown = JSON.stringify({ status: answer.status, fields: stable.sort(), text: answer.text })
  return JSON.parse(prefix === '' ? shown : shown.replaceAll(prefix, ''))
}

const hosts = ['plain', 'Express 5', 'Koa 3']

describe.each(hosts.flatMap((host) => ['', '/api'].map((prefix) => [host, prefix] as const)))(
  'the demo on %s under "%s"',
  (host, prefix) => {
    let demo: RunningDemo
    let reference: RunningDemo
    // The limit is on what is below the mount point.
    const mounted = ({ target, ...request }: RawRequest): RawRequest => ({ ...request, target: prefix + target })

    beforeAll(async () => {
      demo = await startDemo(host, { prefix })
      reference = await startDemo('plain')
      for (const { port, at } of [
        { port: demo.port, at: prefix },
        { port: reference.port, at: '' },
      ]) {
        const user = send('POST', `${at}/users`, '{"name":"Ada","email":"ada@example.com"}', json)
        expect((await ask(port, user)).status).toBe(201)
      }
    })
    afterAll(() => Promise.all([demo.close(), reference.close()]))

    it.each([...targets, ...messages].map((row) => [title(row), row] as const))('%s', async (_, [status, request]) => {
      const answer = await ask(demo.port, mounted(request))
      expect(answer.status).toBe(status)
      expect(answer.text).not.toContain('evil')
      if (host !== 'plain' || prefix !== '')
        expect(comparable(answer, prefix)).toEqual(comparable(await ask(reference.port, request), ''))
    })

    it('takes an absolute-form target for the path in it (RFC 9110 §7.1, row H5, threat 5)', async () => {
      for (const authority of ['demo.test', 'evil.example:81', '[::1]']) {
        const answer = await ask(demo.port, get(`http://${authority}${prefix}/users/1`))
        expect(answer.status).toBe(200)
        expect(JSON.stringify(answer.fields)).not.toContain('evil')
      }
      expect((await ask(demo.port, get(`http://user@demo.test${prefix}/users/1`))).status).toBe(400)
    })

    it('makes Location of the path alone, whatever the host is said to be (threat 7)', async () => {
      const fields = [json, 'Host: evil.test', 'X-Forwarded-Host: evil.example', 'X-Original-URL: /evil']
      const body = '{"name":"Eve","email":"eve@example.com"}'
      const answer = await ask(demo.port, mounted(send('POST', '/users', body, ...fields)))
      expect(answer.status).toBe(201)
      expect(answer.field('Location')).toMatch(new RegExp(`^${prefix}/users/\\d+$`))
      expect((await ask(demo.port, get(answer.field('Location')!))).text).toBe(answer.text)
    })

    it('stays in step on one connection whatever is refused on it (row K4)', async () => {
      let client = await openRawClient(demo.port)
      for (const [status, request] of [...targets, ...messages]) {
        const { method = 'GET' } = request
        client.send(formatRequest(mounted(request)))
        const answer = checkAnswer(method, await client.read(method))
        expect([title([status, request]), answer.status]).toEqual([title([status, request]), status])
        if (answer.field('connection') !== 'close') continue
        await client.closed
        client = await openRawClient(demo.port)
      }
      client.socket.destroy()
    })

    it('answers requests that arrive together in their order (RFC 9112 §9.3.2)', async () => {
      const client = await openRawClient(demo.port)
      const rows = messages.filter(([, { fields = [] }]) => !fields.some((line) => line.startsWith('Host:')))
      client.send(Buffer.concat(rows.map(([, request]) => formatRequest(mounted(request)))))
      for (const [status, { method = 'GET' }] of rows) expect((await client.read(method)).status).toBe(status)
      client.socket.destroy()
    })
  },
)

describe.each(['Express 4', 'Koa 2', 'Fastify', 'Hono'])('the demo on %s', (host) => {
  it('answers the same, in step on one connection (rows K1, K4)', async () => {
    const demo = await startDemo(host)
    const user = send('POST', '/users', '{"name":"Ada","email":"ada@example.com"}', json)
    expect((await ask(demo.port, user)).status).toBe(201)
    let client = await openRawClient(demo.port)
    // Some hosts refuse a malformed Host in their own words.
    const rows = messages.filter(([, { fields = [] }]) => !fields.some((line) => line.startsWith('Host:')))
    for (const [status, request] of rows) {
      const { method = 'GET' } = request
      client.send(formatRequest(request))
      const answer = checkAnswer(method, await client.read(method))
      expect([title([status, request]), answer.status]).toEqual([title([status, request]), status])
      if (answer.field('connection') !== 'close') continue
      await client.closed
      client = await openRawClient(demo.port)
    }
    client.socket.destroy()
    await demo.close()
  })
})
