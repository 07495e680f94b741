import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Answer } from '../support/answer.ts'

/** A request as bytes, and what is needed to read its answer. */
export interface FuzzedRequest {
  readonly method: string
  readonly bytes: Buffer
  /** Whether the client goes away before the content is complete. */
  readonly isCut: boolean
}

export type Random = (below: number) => number

/** A generator of numbers that gives the same numbers for the same seed. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000) * below)
  }
}

const METHODS = [
  'GET',
  'HEAD',
  'POST',
  'POST',
  'POST',
  'PUT',
  'PUT',
  'PUT',
  'PATCH',
  'PATCH',
  'PATCH',
  'DELETE',
  'OPTIONS',
]
/** What the service is for; the rest of the requests finds out what it is not for. */
const USUAL: readonly (readonly [method: string, path: string, type?: string])[] = [
  ['POST', '/users', 'application/json'],
  ['POST', '/jobs', 'application/x-www-form-urlencoded'],
  ['POST', '/uploads', 'multipart/form-data; boundary=b'],
  ['POST', '/docs', 'text/plain'],
  ['POST', '/articles', 'application/json'],
  ['PUT', '/users/1', 'application/json'],
  ['PUT', '/docs/a', 'text/plain'],
  ['PUT', '/docs/b.json', 'application/json'],
  ['PUT', '/config/app', 'application/json'],
  ['PUT', '/strict/a', 'image/png'],
  ['PUT', '/articles/1', 'application/json'],
  ['PATCH', '/users/1', 'application/merge-patch+json'],
  ['PATCH', '/docs/b.json', 'application/json-patch+json'],
  ['PATCH', '/config/app', 'application/merge-patch+json'],
  ['DELETE', '/users/1'],
  ['DELETE', '/uploads/1'],
  ['DELETE', '/articles/1'],
  ['GET', '/users/1'],
  ['GET', '/docs/a'],
  ['GET', '/uploads/1'],
]
const ODD_METHODS = ['TRACE', 'PROPFIND', 'QUERY', 'LOCK', 'SEARCH', 'get', 'M-SEARCH']
const PATHS = [
  ...[
    '/',
    '/users',
    '/users/1',
    '/users/2',
    '/users/01',
    '/jobs',
    '/jobs/1',
    '/uploads',
    '/uploads/1',
    '/uploads/1/file',
  ],
  ...['/config/app', '/config/app.json', '/docs', '/docs/1', '/docs/a', '/docs/b.json', '/docs/c.json', '/articles'],
  ...[
    '/articles/1',
    '/strict/a',
    '/file.bin',
    '/operations/x',
    '/users?deleted=true',
    '/articles?limit=2',
    '/docs/__proto__',
  ],
]
const ODD_PATHS = [
  ...['//', '/users/', '/%', '/%zz', '/docs/%00', '/docs/%2e%2e%2fx', '/docs/..', '/docs/a%2Fb', '/docs/%c0%ae', '*'],
  ...[
    '/constructor',
    '/__proto__/x',
    'http://evil.example/users',
    '/docs/%E6%97%A5',
    '/docs/' + 'n'.repeat(3000),
    '/a\\b',
  ],
  ...[
    '/docs/%ED%A0%80',
    '/docs/a;b=c',
    '/users/1.0',
    '/users/9007199254740993',
    '/docs/a?' + 'x=1&'.repeat(50),
    '/docs#x',
  ],
]
const NAMES = [
  'a',
  'b',
  'name',
  'email',
  'title',
  'priority',
  'pri',
  'id',
  'list',
  '__proto__',
  'constructor',
  'toJSON',
  '',
  '~',
  'a/b',
  '0',
  'hasOwnProperty',
  'état',
]
const TYPES = [
  ...[
    'application/json',
    'application/json',
    'application/json-patch+json',
    'application/merge-patch+json',
    'text/plain',
  ],
  ...['application/x-www-form-urlencoded', 'multipart/form-data; boundary=b', 'image/png', 'application/octet-stream'],
]
const ODD_TYPES = [
  ...[
    '',
    'x',
    'a/b; c="',
    'application/json; charset=utf-7',
    'multipart/form-data',
    'multipart/form-data; boundary=""',
  ],
  ...[
    'text/plain; charset=x-none',
    'application/jsonx',
    'APPLICATION/JSON;x=1',
    'application/json,text/plain',
    `a/${'b'.repeat(300)}`,
  ],
]
const FIELDS: readonly (readonly [string, readonly string[]])[] = [
  ['If-Match', ['*', '"x"', 'W/"x"', '"', '"a", "b"', ',', '"a"'.repeat(50)]],
  ['If-None-Match', ['*', '"x"', 'x', ' ', '"a,b"']],
  ['If-Modified-Since', ['Sun, 06 Nov 1994 08:49:37 GMT', 'banana', 'Sun Nov  6 08:49:37 1994']],
  ['If-Unmodified-Since', ['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', '0']],
  ['If-Range', ['"x"', 'Sun, 06 Nov 1994 08:49:37 GMT', 'W/"x"']],
  [
    'Range',
    ['bytes=0-4', 'bytes=-5', 'bytes=5-2', 'bytes=0-0,2-3,5-', 'items=1', 'bytes=99999999999999999999-', 'bytes=,,'],
  ],
  ['Accept', ['application/json', 'text/*;q=0.1', '*/*;q=0', ';;;', 'image/png', 'a/b;q=2']],
  ['Accept-Encoding', ['gzip', 'identity;q=0']],
  [
    'Prefer',
    ['return=minimal', 'return=representation', 'handling=strict', 'respond-async', ';;="', 'return="minimal'],
  ],
  [
    'Authorization',
    ['Basic !!!', 'Basic ZGVtbzpkZW1v', 'Bearer x.y.z', 'Digest username="a"', 'Negotiate YII=', 'x', 'Bearer a b'],
  ],
  ['Origin', ['http://localhost:3000', 'https://evil.example', 'null']],
  ['Access-Control-Request-Method', ['PUT', 'x y', 'DELETE']],
  ['Access-Control-Request-Headers', ['x-a,,x-b', 'x a', 'authorization']],
  ['Content-Encoding', ['gzip', 'identity', 'gzip, gzip', 'x']],
  ['Content-Range', ['bytes 0-1/2', 'x']],
  ['Expect', ['100-continue', 'banana']],
  ['X-HTTP-Method-Override', ['DELETE', 'TRACE', 'put, delete']],
  ['X-Forwarded-Proto', ['https', 'x']],
  ['Content-Disposition', ['attachment; filename="x"', "attachment; filename*=UTF-8''%zz"]],
  ['Content-Type', ['text/html', 'application/json']],
  ['Content-Language', ['fr', '']],
]

/** Makes requests that are nearly right, and some that are not. @param authorization credentials that some of them carry */
export function createFuzzer(seed: number, authorization: string): () => FuzzedRequest {
  const random = createRandom(seed)
  const pick = <Item>(items: readonly Item[]): Item => items[random(items.length)]!
  const chance = (percent: number): boolean => random(100) < percent

  function value(depth = 0): unknown {
    switch (random(depth > 3 ? 6 : 9)) {
      case 0:
        return random(3) - 1
      case 1:
        return pick(['', 'x', 'ann@example.com', '\u0000', '\ud800', 'true', '5', '日本', '</script>'])
      case 2:
        return pick([true, false, null])
      case 3:
        return random(1e9) * 1.5
      case 4:
        return pick(NAMES)
      case 5:
        return 9007199254740991
      case 6:
        return Array.from({ length: random(4) }, () => value(depth + 1))
      default:
        return Object.fromEntries(Array.from({ length: random(5) }, () => [pick(NAMES), value(depth + 1)]))
    }
  }

  const pointer = (): string =>
    pick(['', '/', '/-', '/list/-', '/list/0', '/a~1b', '/~2', 'a', ...NAMES.map((name) => `/${name}`)])

  function patch(): unknown {
    return Array.from({ length: random(6) }, () => {
      const operation: Record<string, unknown> = {
        op: pick(['add', 'remove', 'replace', 'move', 'copy', 'test', 'spam']),
      }
      if (chance(95)) operation['path'] = pointer()
      if (chance(70)) operation['value'] = value()
      if (chance(50)) operation['from'] = pointer()
      return operation
    })
  }

  const member = (): object => ({
    ...{ name: 'Ann', email: 'ann@example.com', title: 'T', priority: random(9) },
    ...{ debug: chance(50), port: random(70_000), logLevel: 'info' },
    ...(chance(30) ? (value(3) as object) : {}),
  })

  const form = (): string =>
    (chance(50) ? `name=x&pri=${random(9)}&` : '') +
    Array.from(
      { length: random(6) },
      () => `${pick([...NAMES, 'a[b]', '%zz', '%ff', '+'])}=${pick(['1', 'x', '%E6', '+', '', '%00'])}`,
    ).join('&')

  function multipart(): string {
    const whole = [
      '--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nT\r\n',
      '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nxyz\r\n',
    ]
    if (chance(40)) return `${whole.join('')}--b--\r\n`
    const part = (): string => {
      const file = chance(50) ? `; filename="${pick(['a.txt', '../x', 'a%22', '', '日'])}"` : ''
      const head = pick([
        '',
        '',
        '',
        'Content-Type: text/plain\r\n',
        'Content-Transfer-Encoding: base64\r\n',
        'X: y\r\n',
        'bad\r\n',
      ])
      return `--b\r\nContent-Disposition: form-data; name="${pick(['title', 'file', 'file', ...NAMES])}"${file}\r\n${head}\r\n${'z'.repeat(random(2000))}\r\n`
    }
    return Array.from({ length: random(4) }, part).join('') + (chance(85) ? '--b--\r\n' : '')
  }

  function content(type: string): string {
    if (chance(5)) return pick(['[', '{"a":1,"a":2}', '['.repeat(5000), '', 'null', '\ufeff{}', '1e999', '{"a":'])
    if (type.startsWith('multipart')) return multipart()
    if (type.includes('urlencoded')) return form()
    if (type.includes('json-patch')) return JSON.stringify(chance(80) ? patch() : value())
    return JSON.stringify(chance(60) ? member() : value())
  }

  /** Changes, inserts or takes away some bytes. */
  function mutate(bytes: Buffer): Buffer {
    const copy = Buffer.from(bytes)
    for (let n = random(4); n >= 0 && copy.length > 0; n--) copy[random(copy.length)] = random(256)
    return chance(50)
      ? copy
      : Buffer.concat([copy.subarray(0, random(copy.length + 1)), copy.subarray(random(copy.length + 1))])
  }

  return () => {
    const usual = chance(60) ? pick(USUAL) : undefined
    const method = usual?.[0] ?? (chance(92) ? pick(METHODS) : pick(ODD_METHODS))
    const path = usual?.[1] ?? (chance(80) ? pick(PATHS) : pick(ODD_PATHS))
    const fields = [['Host', 'localhost']]
    const hasBody = chance(method === 'GET' || method === 'HEAD' ? 5 : 90)
    const patches = method === 'PATCH' && chance(80)
    const known = usual?.[2] ?? (patches ? pick(TYPES.slice(2, 4)) : pick(TYPES))
    const type = chance(95) ? known : pick(ODD_TYPES)
    if (hasBody && chance(96)) fields.push(['Content-Type', type])
    for (let n = random(100) < 60 ? 0 : 1 + random(3); n > 0; n--) {
      const [name, values] = pick(FIELDS)
      fields.push([name, pick(values)])
    }
    if (chance(40)) fields.push(['Authorization', authorization])
    let body: Buffer = hasBody ? Buffer.from(content(type)) : Buffer.alloc(0)
    if (hasBody && chance(10)) body = mutate(body)
    const isChunked = hasBody && chance(20)
    const isCut = hasBody && body.length > 10 && chance(3)
    if (isChunked) {
      fields.push(['Transfer-Encoding', 'chunked'])
      const size = body.length === 0 ? '' : `${body.length.toString(16)}\r\n`
      body = Buffer.concat([Buffer.from(size), body, Buffer.from(size === '' ? '0\r\n\r\n' : '\r\n0\r\n\r\n')])
    } else if (hasBody) fields.push(['Content-Length', String(body.length)])
    const head = `${method} ${path} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
    if (isCut) body = body.subarray(0, random(body.length - 1))
    return { method, bytes: Buffer.concat([Buffer.from(head, 'latin1'), body]), isCut }
  }
}

/** A connection that is kept for as long as the server keeps it. */
interface Connection {
  readonly socket: Socket
  /** The next response; `undefined` when the server closes the connection without one. */
  read(method: string): Promise<Answer | undefined>
}

async function openConnection(port: number): Promise<Connection> {
  const socket = connect({ port, host: '127.0.0.1' })
  let received = Buffer.alloc(0)
  let isClosed = false
  let wake = (): void => {}
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    wake()
  })
  socket.on('error', () => {}) // a server that answers early may reset what is still being sent
  socket.on('close', () => {
    isClosed = true
    wake()
  })
  await once(socket, 'connect')

  /** Waits for what `take` finds, or the end. */
  async function waitFor<Value>(take: () => Value | undefined): Promise<Value | undefined> {
    for (;;) {
      const value = take()
      if (value !== undefined || isClosed) return value
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }

  return {
    socket,
    async read(method) {
      const end = await waitFor(() => (received.includes('\r\n\r\n') ? received.indexOf('\r\n\r\n') : undefined))
      if (end === undefined) return undefined
      const [line = '', ...lines] = received.toString('latin1', 0, end).split('\r\n')
      received = received.subarray(end + 4)
      const fields = lines.map(
        (line) => [line.split(': ', 1)[0]!.toLowerCase(), line.slice(line.indexOf(': ') + 2)] as const,
      )
      const status = Number(line.slice(9, 12))
      const length = fields.find(([name]) => name === 'content-length')?.[1]
      const hasNone = method === 'HEAD' || status < 200 || status === 204 || status === 304
      // Of what Node refuses by itself there is no length: an empty chunk, or nothing until the connection closes.
      const isChunked = fields.some(([name]) => name === 'transfer-encoding')
      const size = hasNone ? 0 : isChunked ? 5 : length === undefined ? Number.POSITIVE_INFINITY : Number(length)
      await waitFor(() => (received.length >= size ? true : undefined))
      const body = received.subarray(0, Math.min(size, received.length))
      received = received.subarray(body.length)
      return new Answer({ status, phrase: line.slice(13), fields, body })
    },
  }
}

/**
 * Sends fuzzed requests one after the other, on one connection for as long as the server keeps it.
 * @param check looks at each answer; `undefined` is a connection closed without one
 */
export async function runFuzzer(
  port: number,
  next: () => FuzzedRequest,
  count: number,
  check: (request: FuzzedRequest, response: Answer | undefined) => void,
): Promise<void> {
  let connection: Connection | undefined
  for (let n = 0; n < count; n++) {
    const request = next()
    connection ??= await openConnection(port)
    const { socket } = connection
    socket.write(request.bytes)
    if (request.isCut) {
      await new Promise((resolve) => setImmediate(resolve))
      socket.destroy()
      connection = undefined
      continue
    }
    const isLate = AbortSignal.timeout(60_000)
    isLate.onabort = () => socket.destroy(new Error('No answer within a minute.'))
    let response = await connection.read(request.method)
    while (response !== undefined && response.status < 200) response = await connection.read(request.method)
    isLate.onabort = null
    check(request, response)
    if (response === undefined || response.fields.some(([name, value]) => name === 'connection' && value === 'close')) {
      socket.destroy()
      connection = undefined
    }
  }
  connection?.socket.destroy()
}
