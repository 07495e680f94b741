import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Answer } from '../support/answer.ts'
import { formatRequest } from '../support/ask.ts'
import { basicCredentials, bearerCredentials, type RunningDemo, startDemo } from '../support/demo.ts'
import { lintResponse } from '../support/lint-response.ts'
import { openRawClient, type RawClient } from '../wire/raw-client.ts'

const json = 'Content-Type: application/json'
const ORIGIN = 'Origin: https://app.example'
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'TRACE']
const PATHS = [
  ...['/', '/file.bin', '/users', '/users/1', '/users/2', '/users/99', '/users/x', '/jobs', '/jobs/1', '/uploads'],
  ...['/uploads/1', '/uploads/1/file', '/config/app', '/config/app.json', '/docs', '/docs/a', '/docs/%C3%BC.txt'],
  ...[
    '/docs/page.html',
    '/articles',
    '/articles/1',
    '/articles?deleted=true',
    '/strict/a',
    '/operations/1',
    '/nowhere',
  ],
  ...['/users?limit=1', '/users?limit=x', '/docs/../x', '/docs/%zz', '//docs', `/docs/${'a'.repeat(3000)}`, '*'],
]

/** Sets of fields, each with what it makes a server say. `$E` and `$L` stand for the validators of the target. */
const FIELDS: readonly (readonly string[])[] = [
  ...[[], [`Authorization: ${basicCredentials}`], ['Authorization: Basic !'], ['Authorization: Bearer x']],
  [`Authorization: ${basicCredentials}`, 'Origin: https://evil.example'],
  ...[['Authorization: Unknown x'], [ORIGIN], ['Origin: https://evil.example'], ['Origin: null']],
  [ORIGIN, 'Access-Control-Request-Method: PUT', 'Access-Control-Request-Headers: authorization,x-a'],
  [ORIGIN, 'Access-Control-Request-Method: NONE'],
  ...[['If-None-Match: $E'], ['If-None-Match: *'], ['If-Match: "x"'], ['If-Match: *'], ['If-Match: $E']],
  ...[['If-Modified-Since: $L'], ['If-Unmodified-Since: Mon, 01 Jan 1990 00:00:00 GMT'], ['If-Match: x']],
  ...[['Range: bytes=0-4'], ['Range: bytes=0-1,5-6'], ['Range: bytes=99999999-'], ['Range: bytes=x']],
  ...[
    ['Range: bytes=0-4', 'If-Range: $E'],
    ['Range: bytes=0-4', 'If-Range: "x"'],
  ],
  ...[['Accept: image/png'], ['Accept: text/plain'], ['Accept-Encoding: identity;q=0'], ['Prefer: return=minimal']],
  ...[
    ['Prefer: return=representation'],
    ['Content-Range: bytes 0-1/2'],
    ['Host: a', 'Host: b'],
    ['X-HTTP-Method: PUT'],
  ],
]

const BODIES: readonly (readonly [fields: readonly string[], body: string])[] = [
  [[json], '{"name":"Ada","email":"ada@example.org","priority":1,"title":"t","debug":true,"port":1,"logLevel":"x"}'],
  ...([
    [[json], '{"name":1}'],
    [[json], '{'],
    [[json, 'Prefer: return=minimal'], '{"name":"Ada","email":"ada@example.org","priority":1,"title":"t"}'],
    [[json, 'Content-Encoding: br2'], '{}'],
    [['Content-Type: application/merge-patch+json'], '{"role":"admin"}'],
    [['Content-Type: application/json-patch+json'], '[{"op":"test","path":"/name","value":"nobody"}]'],
    [['Content-Type: text/plain; charset=utf-8'], 'text'],
    [['Content-Type: text/html'], '<script>'],
    [['Content-Type: image/png'], 'png'],
    [['Content-Type: application/x-www-form-urlencoded'], 'name=x&pri=1'],
    [['Content-Type: multipart/form-data'], 'no boundary'],
    [
      ['Content-Type: multipart/form-data; boundary=b'],
      '--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nT\r\n--b\r\nContent-Disposition: form-data; name="file"; ' +
        'filename="ü.svg"\r\nContent-Type: image/svg+xml\r\n\r\n<svg/>\r\n--b--\r\n',
    ],
    [[], 'no type'],
  ] as const),
]

describe.each(['plain', 'Express 5', 'Koa 3'])('every kind of answer of the demo on %s', (name) => {
  let demo: RunningDemo
  let client: RawClient | undefined
  const validators = new Map<string, readonly [tag: string, date: string]>()
  const statuses = new Set<number>()
  const faults = new Set<string>()

  beforeAll(async () => {
    demo = await startDemo(name)
  })
  afterAll(async () => {
    client?.socket.destroy()
    await demo.close()
  })

  async function ask(method: string, target: string, fields: readonly string[], body?: string): Promise<Answer> {
    const [tag, date] = validators.get(target) ?? ['"none"', 'Mon, 01 Jan 1990 00:00:00 GMT']
    const sent = fields.map((field) => field.replace('$E', tag).replace('$L', date))
    client ??= await openRawClient(demo.port)
    client.send(formatRequest({ method, target, fields: sent, ...(body === undefined ? {} : { body }) }))
    const answer = await client.read(method)
    if (answer.values('connection')[0] === 'close') {
      await client.closed
      client = undefined
    }
    if (method === 'GET' && answer.status === 200) {
      validators.set(target, [answer.values('etag')[0] ?? tag, answer.values('last-modified')[0] ?? date])
    }
    statuses.add(answer.status)
    const drift = Math.abs(Date.parse(answer.values('date')[0] ?? '') - Date.now())
    const found = [...lintResponse(method, answer), ...(drift < 10_000 ? [] : [`Date is ${drift} ms off`])]
    for (const fault of found) faults.add(`${method} ${target.slice(0, 40)} ${sent.join(', ')}: ${fault}`)
    return answer
  }

  it('passes the linter (invariant I8)', async () => {
    for (const target of PATHS)
      for (const [fields, body] of BODIES)
        for (const method of ['PUT', 'POST', 'PATCH', 'DELETE', 'GET']) await ask(method, target, fields, body)
    for (const target of PATHS)
      for (const fields of FIELDS) for (const method of METHODS) await ask(method, target, fields)
    const admin = [`Authorization: ${bearerCredentials()}`]
    for (const target of PATHS)
      for (const method of ['GET', 'DELETE', 'GET', 'HEAD', 'PUT'])
        for (const more of [[], ['Prefer: return=representation']]) await ask(method, target, [...admin, ...more])
    expect([...faults]).toEqual([])
    expect([...statuses].sort()).toEqual([
      ...[200, 201, 202, 204, 206, 304, 400, 401, 403, 404, 405, 406, 409, 410, 412, 414, 415, 416, 422, 428, 501],
    ])
  })

  it('gives HEAD the fields of GET, and 304 those of 200 that caches keep (RFC 9110 §9.3.2, §15.4.5)', async () => {
    const pick = ({ fields }: Answer, names: readonly string[]) => fields.filter(([key]) => names.includes(key))
    const kept = ['etag', 'cache-control', 'vary', 'content-location', 'expires', 'access-control-allow-origin']
    for (const target of ['/', '/file.bin', '/users', '/config/app', '/docs', '/articles'])
      for (const more of [[], [ORIGIN], [`Authorization: ${basicCredentials}`]]) {
        const whole = await ask('GET', target, more)
        const head = await ask('HEAD', target, more)
        const all = whole.fields.map(([key]) => key).filter((key) => key !== 'date')
        expect(pick(head, all)).toEqual(pick(whole, all))
        const notModified = await ask('GET', target, [...more, 'If-None-Match: $E'])
        expect([notModified.status, pick(notModified, kept)]).toEqual([304, pick(whole, kept)])
      }
  })
})
