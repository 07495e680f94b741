import { basicCredentials } from '../support/demo.ts'
import { valuesOf, type WireResponse } from './read-responses.ts'

/** A conversation with the demo server over one connection. */
export interface WireCase {
  /** What the server does, and the section that says so. */
  readonly title: string
  /** What is sent; further parts follow after a pause. */
  readonly parts: readonly string[]
  /** The methods of the requests. */
  readonly methods: readonly string[]
  /** What comes back: the statuses, or what is looked at in the responses. */
  readonly expected: readonly unknown[]
  readonly look?: (responses: readonly WireResponse[]) => readonly unknown[]
}

const CLOSE = 'Connection: close\r\n'

/** One request in bytes. */
function request(method: string, target: string, more: readonly string[] = [], body = ''): string {
  const length = body === '' ? [] : [`Content-Length: ${body.length}`]
  return [`${method} ${target} HTTP/1.1`, 'Host: a.test', ...more, ...length, '', body].join('\r\n')
}

const JSON_TYPE = 'Content-Type: application/json'
const LAST = 'Connection: close'
const ADA = '{"name":"Ada","email":"ada@example.org"}'
/** Little more than the limit: a connection that is reset while it sends loses the answer (RFC 9112 §9.6). */
const LONG = 'x'.repeat(20_000)

const statuses = (responses: readonly WireResponse[]): readonly unknown[] => responses.map(({ status }) => status)

function one(
  title: string,
  bytes: string | readonly string[],
  expected: readonly unknown[],
  look = statuses,
): WireCase {
  const parts = typeof bytes === 'string' ? [bytes] : bytes
  const methods = [...parts.join('').matchAll(/^([A-Za-z]+) \S+ HTTP\/1\.[01]\r$/gm)].map(([, method]) => method!)
  return { title, parts, methods, expected, look }
}

/** Status, then the first values of these headers in the last response. */
const last =
  (...names: readonly string[]) =>
  (responses: readonly WireResponse[]): readonly unknown[] => {
    const response = responses.at(-1)!
    return [response.status, ...names.map((name) => valuesOf(response, name)[0])]
  }

const bodyOf = (responses: readonly WireResponse[]): readonly unknown[] => {
  const { status, body } = responses.at(-1)!
  return [status, body.toString('latin1')]
}

/** They run in order, on one server. */
export const CASES: readonly WireCase[] = [
  one(
    'creates an item and names it (RFC 9110 §9.3.3)',
    request('POST', '/users', [JSON_TYPE, LAST], ADA),
    [201, '/users/1', 'no-store'],
    last('location', 'cache-control'),
  ),
  one('reads it as it was stored', request('GET', '/users/1', [LAST]), [200, `{"id":1,${ADA.slice(1)}`], bodyOf),
  one(
    'says its length in answer to GET, and sends no chunks (RFC 9110 §8.6)',
    request('GET', '/users/1', [LAST]),
    [200, '47', undefined, 'nosniff'],
    last('content-length', 'transfer-encoding', 'x-content-type-options'),
  ),
  one(
    'answers HEAD with the length and without content (RFC 9110 §9.3.2)',
    request('HEAD', '/users/1', [LAST]),
    [200, '47'],
    last('content-length'),
  ),
  one(
    'answers 304 without content to a tag that matches (RFC 9110 §15.4.5)',
    request('GET', '/users/1', ['If-None-Match: *']) + request('GET', '/users/1', [LAST]),
    [304, 200],
  ),
  one(
    'answers 412 to a tag that does not (RFC 9110 §13.1.1)',
    request('PUT', '/users/1', [JSON_TYPE, 'If-Match: "x"', LAST], ADA),
    [412],
  ),
  one(
    'combines repeated If-None-Match (RFC 9110 §5.3)',
    request('PUT', '/users/1', [JSON_TYPE, 'If-None-Match: "x"', 'If-None-Match: "y"', LAST], ADA),
    [204],
  ),
  one(
    'sends a range (RFC 9110 §14.2)',
    request('GET', '/file.bin', ['Range: bytes=10-19', LAST]),
    [206, 'bytes 10-19/1048576', '10'],
    last('content-range', 'content-length'),
  ),
  one(
    'sends several ranges (RFC 9110 §14.6)',
    request('GET', '/file.bin', ['Range: bytes=0-9,100-109', LAST]),
    [206, 'multipart/byteranges'],
    (responses) => [responses[0]!.status, valuesOf(responses[0]!, 'content-type')[0]!.split(';')[0]],
  ),
  one(
    'refuses a range beyond the end (RFC 9110 §15.5.17)',
    request('GET', '/file.bin', ['Range: bytes=9999999-', LAST]),
    [416, 'bytes */1048576'],
    last('content-range'),
  ),
  ...['sends large content whole', 'sends it whole once more'].map((title) =>
    one(title, request('GET', '/file.bin', [LAST]), [200, 1_048_576, 'ee'], (responses) => {
      const { status, body } = responses[0]!
      return [status, body.length, body.subarray(238, 239).toString('hex')]
    }),
  ),
  one(
    'sends a range of it afterwards',
    request('GET', '/file.bin', ['Range: bytes=1-3', LAST]),
    [206, '010203'],
    (responses) => [responses[0]!.status, responses[0]!.body.toString('hex')],
  ),
  one(
    'merges a patch (RFC 7396)',
    request('PATCH', '/users/1', ['Content-Type: application/merge-patch+json', LAST], '{"role":"admin"}'),
    [200],
  ),
  one(
    'names the methods of a resource (RFC 9110 §9.3.7)',
    request('OPTIONS', '/users/1', [LAST]),
    [204, 'GET, HEAD, PUT, PATCH, DELETE, OPTIONS'],
    last('allow'),
  ),
  one('answers OPTIONS * for the server (RFC 9110 §9.3.7)', request('OPTIONS', '*', [LAST]), [204]),
  one(
    'answers a preflight request of an origin that it knows (Fetch §3.2)',
    request('OPTIONS', '/users', ['Origin: https://app.example', 'Access-Control-Request-Method: POST', LAST]),
    [204, 'https://app.example'],
    last('access-control-allow-origin'),
  ),
  one('refuses a method of no resource here (RFC 9110 §15.5.6)', request('DELETE', '/users', [LAST]), [405]),
  one('does not implement TRACE (RFC 9110 §15.6.2)', request('TRACE', '/users/1', [LAST]), [501]),
  one('refuses a method in lower case (RFC 9110 §9.1)', request('get', '/users/1', [LAST]), [400]),
  one(
    'asks for credentials in three schemes, each in a field of its own (RFC 9110 §11.6.1)',
    request('DELETE', '/users/1', [LAST]),
    [401, ['Bearer', 'Basic', 'Digest']],
    (responses) => [
      responses[0]!.status,
      valuesOf(responses[0]!, 'www-authenticate').map((value) => value.split(' ')[0]),
    ],
  ),
  one(
    'removes with credentials (RFC 9110 §9.3.5)',
    request('DELETE', '/users/1', [`Authorization: ${basicCredentials}`, LAST]),
    [204],
  ),
  one('remembers what is removed (RFC 9110 §15.5.11)', request('GET', '/users/1', [LAST]), [410]),
  one(
    'takes content in chunks (RFC 9112 §7.1)',
    request('POST', '/users', [JSON_TYPE, 'Transfer-Encoding: chunked', LAST]) +
      `5\r\n${ADA.slice(0, 5)}\r\n${(ADA.length - 5).toString(16)}\r\n${ADA.slice(5)}\r\n0\r\n\r\n`,
    [201],
  ),
  one('refuses JSON that is none (RFC 8259)', request('POST', '/users', [JSON_TYPE, LAST], '{"name":'), [400]),
  one(
    'refuses a media type that it does not take (RFC 9110 §15.5.16)',
    request('POST', '/users', ['Content-Type: text/plain', LAST], 'x'),
    [415],
  ),
  one(
    'answers pipelined requests in order (RFC 9112 §9.3.2)',
    request('GET', '/users/9') +
      request('GET', '/config/app') +
      request('HEAD', '/config/app') +
      request('GET', '/users/8', [LAST]),
    [404, 200, 200, 404],
  ),
  one(
    'sends 100 before it reads content that the client holds back (RFC 9110 §10.1.1)',
    [request('POST', '/users', [JSON_TYPE, 'Expect: 100-continue', `Content-Length: ${ADA.length}`, LAST]), ADA],
    [100, 201],
  ),
  one(
    'sends no 100 where it refuses the request anyway (RFC 9110 §10.1.1)',
    request('POST', '/users', ['Content-Type: text/plain', 'Expect: 100-continue', 'Content-Length: 10', LAST]),
    [415],
  ),
  one('refuses another expectation (RFC 9110 §15.5.18)', request('GET', '/config/app', ['Expect: tea', LAST]), [417]),
  one(
    'takes the absolute form of a target (RFC 9112 §3.2.2)',
    request('GET', 'http://a.test/config/app', [LAST]),
    [200],
  ),
  one('decodes a path once (RFC 3986 §2.4)', request('GET', '/config/%61pp', [LAST]), [200]),
  one('refuses dot segments in a target', request('GET', '/users/../config/app', [LAST]), [400]),
  one('answers a request of HTTP/1.0', 'GET /config/app HTTP/1.0\r\nHost: a.test\r\n\r\n', [200]),
  one('refuses a request without Host (RFC 9112 §3.2)', `GET /config/app HTTP/1.1\r\n${CLOSE}\r\n`, [400]),
  one('refuses two Host fields (RFC 9112 §3.2)', request('GET', '/config/app', ['Host: b.test', LAST]), [400]),
  one(
    'refuses two lengths (RFC 9112 §6.3)',
    request('POST', '/users', [JSON_TYPE, 'Content-Length: 3', LAST], ADA),
    [400],
  ),
  one(
    'refuses a length beside chunks (RFC 9112 §6.1)',
    request('POST', '/users', [JSON_TYPE, 'Transfer-Encoding: chunked', 'Content-Length: 5', LAST]) + '0\r\n\r\n',
    [400],
  ),
  one(
    'refuses a chunk whose size is none (RFC 9112 §7.1)',
    request('POST', '/users', [JSON_TYPE, 'Transfer-Encoding: chunked', LAST]) + 'zz\r\n{}\r\n0\r\n\r\n',
    [400],
  ),
  one('refuses a space before the colon (RFC 9112 §5.1)', request('GET', '/config/app', ['Accept : */*', LAST]), [400]),
  one('refuses a folded line (RFC 9112 §5.2)', request('GET', '/config/app', ['Accept: */*', ' more', LAST]), [400]),
  one(
    'refuses a header section that is too large (RFC 6585 §5)',
    request('GET', '/config/app', [`X-Long: ${LONG}`, LAST]),
    [431],
  ),
  one(
    'stores nothing of an upload that breaks off (RFC 9112 §8)',
    [request('PUT', '/docs/broken', ['Content-Type: text/plain', 'Content-Length: 1000', LAST]) + 'x'.repeat(10)],
    [],
    () => [],
  ),
  one('does not find an upload that has broken off', request('GET', '/docs/broken', [LAST]), [404]),
]
