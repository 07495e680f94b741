import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { JSON_TYPE, jsonOf, sendBytes, startDemo, startService, type Target, USER } from './support.ts'

let demo: Target
beforeAll(async () => {
  demo = await startDemo()
})
afterAll(() => demo.close())

const TEXT = { 'Content-Type': 'text/plain' }

describe('PUT', () => {
  it('creates with 201, Location and no content, then replaces with 204 (interface PUT 2, rows H60, H61, H51)', async () => {
    const created = await demo.send('PUT', '/docs/new', { fields: TEXT, body: 'one' })
    expect([created.status, created.field('location'), created.text]).toEqual([201, '/docs/new', ''])
    const replaced = await demo.send('PUT', '/docs/new', { fields: TEXT, body: 'one' })
    expect([replaced.status, replaced.text, replaced.field('location')]).toEqual([204, '', undefined])
    expect((await demo.send('GET', '/docs/new')).text).toBe('one')
  })

  it('answers with the tag of the next GET where the bytes are kept as sent (rows H64, H40)', async () => {
    const tags = new Set<string>()
    for (const body of ['a', 'b', 'c']) {
      const answer = await demo.send('PUT', '/docs/tag', { fields: TEXT, body })
      expect((await demo.send('GET', '/docs/tag')).field('etag')).toBe(answer.field('etag'))
      tags.add(answer.field('etag')!)
    }
    expect(tags.size).toBe(3)
  })

  it('answers without validators where the server added the id (row H63)', async () => {
    const created = await demo.send('PUT', '/users/100', jsonOf(USER))
    expect([created.status, created.field('etag'), created.field('last-modified')]).toEqual([201, undefined, undefined])
    const whole = await demo.send('PUT', '/users/100', jsonOf(USER, { Prefer: 'return=representation' }))
    expect([whole.status, whole.field('etag'), whole.json()]).toEqual([200, undefined, { id: 100, ...USER }])
    const verbatim = await demo.send('PUT', '/users/100', jsonOf({ id: 100, ...USER }))
    const read = await demo.send('GET', '/users/100')
    expect([verbatim.status, verbatim.field('etag')]).toEqual([204, read.field('etag')])
  })

  it('answers without validators where the store keeps other bytes than those that were sent (row H63)', async () => {
    const store = memoryStore()
    const write: typeof store.write = (path, content, options) => {
      const body = JSON.stringify({ ...JSON.parse(String(content.body)), price: 1.01, extra: undefined })
      return store.write(path, { ...content, body }, options)
    }
    const target = await startService(
      { resources: { '/users': collection(), '/docs/{name}': document() } },
      { ...store, write },
    )
    const put = async (path: string, body: string, fields = {}): Promise<unknown[]> => {
      const answer = await target.send('PUT', path, { fields: { ...JSON_TYPE, ...fields }, body })
      return [
        answer.status,
        answer.field('etag') === undefined,
        answer.field('last-modified') === undefined,
        answer.text,
      ]
    }
    expect(await put('/users/1', '{"id":1,"price":1.00}')).toEqual([201, true, true, ''])
    expect(await put('/users/1', '{"id":1,"price":1.02}')).toEqual([204, true, true, ''])
    expect(await put('/users/1', '{"id":1,"price":1.01,"extra":"ä"}')).toEqual([204, true, true, ''])
    const whole = await put('/users/1', '{ "id":1,"price":1.01}', { Prefer: 'return=representation' })
    expect(whole).toEqual([200, true, true, '{"id":1,"price":1.01}'])
    expect(await put('/docs/a', '{"id":1,"price":1.005}')).toEqual([201, true, true, ''])
    expect(await put('/users/1', '{"id":1,"name":"ä","price":1.01}')).toEqual([204, false, false, ''])
    await target.close()
  })

  it('answers without validators where content was decoded before it was stored (RFC 9110 §9.3.4)', async () => {
    const target = await startService({ contentCodings: ['gzip'] })
    const fields = { ...TEXT, 'Content-Encoding': 'gzip' }
    for (const type of ['text/plain', 'application/json']) {
      const body = gzipSync(type === 'text/plain' ? 'plain' : '{"a":1}')
      const answer = await target.send('PUT', '/a', { fields: { ...fields, 'Content-Type': type }, body })
      expect([answer.field('etag'), answer.field('last-modified')]).toEqual([undefined, undefined])
      const read = await target.send('GET', '/a')
      expect([read.text, read.field('content-encoding')]).toEqual([
        type === 'text/plain' ? 'plain' : '{"a":1}',
        undefined,
      ])
    }
    await target.close()
  })

  it('answers without validators where a byte order mark was left out (RFC 9110 §9.3.4)', async () => {
    const answer = await demo.send('PUT', '/docs/marked.json', { fields: JSON_TYPE, body: '\ufeff{"a":1}' })
    expect([answer.status, answer.field('etag'), answer.field('last-modified')]).toEqual([201, undefined, undefined])
    expect((await demo.send('GET', '/docs/marked.json')).text).toBe('{"a":1}')
  })

  it('hands over as a stream what becomes large when it is decoded', async () => {
    const store = memoryStore()
    const bodies: unknown[] = []
    const write: typeof store.write = (path, content, options) => {
      bodies.push(content.body)
      return store.write(path, content, options)
    }
    const target = await startService({ contentCodings: ['gzip'] }, { ...store, write })
    const fields = { ...TEXT, 'Content-Encoding': 'gzip' }
    const text = randomBytes(5000).toString('hex')
    for (const times of [1, 20]) {
      await target.send('PUT', '/a', { fields, body: gzipSync(text.repeat(times)) })
      expect((await target.send('GET', '/a')).text).toHaveLength(10_000 * times)
    }
    expect(bodies.map((body) => body instanceof Uint8Array)).toEqual([true, false])
    await target.close()
  })

  it('refuses with 413 what is larger than maxSize, and takes a list with identity alone for no coding (RFC 9110 §5.6.1.2)', async () => {
    const target = await startService({ resources: { '/docs/{name}': document({ maxSize: 70_000 }) } })
    for (const coding of ['identity', 'identity,', ', Identity ,']) {
      const fields = { ...TEXT, 'Content-Encoding': coding }
      const large = await target.send('PUT', '/docs/a', { fields, body: 'x'.repeat(200_000), chunked: true })
      expect([coding, large.status]).toEqual([coding, 413])
      const small = await target.send('PUT', '/docs/b', { fields, body: 'x', chunked: true })
      expect([coding, small.status < 300, small.field('etag')]).toEqual([coding, true, expect.any(String)])
    }
    await target.close()
  })

  it('without a condition goes on without its turn where 256 others wait for theirs', async () => {
    const store = memoryStore()
    let open = (): void => {}
    const isOpen = new Promise<void>((resolve) => {
      open = resolve
    })
    let arrived = 0
    const write: typeof store.write = async (...values) => {
      arrived++
      await isOpen
      return store.write(...values)
    }
    const target = await startService({}, { ...store, write })
    const answers = Array.from({ length: 259 }, () => target.send('PUT', '/a', { fields: TEXT, body: 'x' }))
    await Promise.race([expect.poll(() => arrived).toBe(3), ...answers])
    open()
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses.filter((status) => status !== 201 && status !== 204)).toEqual([])
    await target.close()
  })

  it('replaces the entire state (interface PUT 1, row H62)', async () => {
    await demo.send('PUT', '/users/101', jsonOf({ ...USER, role: 'x' }))
    await demo.send('PUT', '/users/101', jsonOf(USER))
    expect((await demo.send('GET', '/users/101')).json()).toEqual({ id: 101, ...USER })
  })

  it('keeps JSON byte for byte, with its digits and its blanks (threat 63, DESIGN §3)', async () => {
    const body = ' { "n" : 9007199254740993 ,\r\n "e": 1E2, "u": "\\u00e9", "a": 1, "a": 2 }\n'
    await demo.send('PUT', '/docs/n.json', { fields: JSON_TYPE, body })
    expect((await demo.send('GET', '/docs/n.json')).text).toBe(body)
    const user = '{ "email":"ann@example.com",  "name":"Ann", "id":102, "big": 1.0 }'
    await demo.send('PUT', '/users/102', { fields: JSON_TYPE, body: user })
    expect((await demo.send('GET', '/users/102')).text).toBe(user)
  })

  it('takes no Content-Range (rows H67, 14.5, threat 55)', async () => {
    await demo.send('PUT', '/docs/range', { fields: TEXT, body: 'abcdef' })
    const fields = { ...TEXT, 'Content-Range': 'bytes 0-1/26' }
    expect((await demo.send('PUT', '/docs/range', { fields, body: 'xy' })).status).toBe(400)
    expect((await demo.send('PUT', '/docs/range-new', { fields, body: 'xy' })).status).toBe(400)
    expect((await demo.send('GET', '/docs/range')).text).toBe('abcdef')
    expect((await demo.send('GET', '/docs/range-new')).status).toBe(404)
  })

  it('ignores Range (row H148)', async () => {
    await demo.send('PUT', '/docs/ranged', { fields: { ...TEXT, Range: 'bytes=0-1' }, body: 'abcdef' })
    expect((await demo.send('GET', '/docs/ranged')).text).toBe('abcdef')
  })

  it('refuses an id that is not that of the path, and changes nothing (row H65)', async () => {
    await demo.send('PUT', '/users/103', jsonOf(USER))
    const before = await demo.send('GET', '/users/103')
    for (const id of [104, '103', 103.5, null, [103]]) {
      const answer = await demo.send('PUT', '/users/103', jsonOf({ ...USER, id }))
      expect([answer.status, answer.json().errors[0].pointer]).toEqual([409, '/id'])
    }
    expect((await demo.send('GET', '/users/103')).field('etag')).toBe(before.field('etag'))
  })

  it('refuses a media type that is not taken: 415 with Accept (interface PUT 3, rows H28, H66, H178)', async () => {
    for (const fields of [{ 'Content-Type': 'image/png' }, {}, TEXT]) {
      const answer = await demo.send('PUT', '/users/1', { fields, body: JSON.stringify(USER) })
      expect([answer.status, answer.field('accept')]).toEqual([415, 'application/json'])
    }
    const untyped = await demo.send('PUT', '/docs/untyped', { body: 'x' })
    expect(untyped.status).toBe(201)
    expect((await demo.send('GET', '/docs/untyped')).field('content-type')).toBe('application/octet-stream')
  })

  it('is not allowed on a collection (row H68)', async () => {
    const answer = await demo.send('PUT', '/docs', { fields: TEXT, body: 'x' })
    expect([answer.status, answer.field('allow')]).toEqual([405, 'GET, HEAD, POST, OPTIONS'])
  })

  it.each(['01', '+1', '1.0', '1e0', '0x1', '%201', '9007199254740993', '%D9%A1', '-1'])(
    'knows no user of the name %s (threat 31)',
    async (name) => {
      expect((await demo.send('PUT', `/users/${name}`, jsonOf(USER))).status).toBe(404)
    },
  )

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'a%20b', '%E6%97%A5%22', '%252e%252e', "';drop"])(
    'stores a document called %s, and gives it back (threats 22, 30, 117, 144)',
    async (name) => {
      const created = await demo.send('PUT', `/docs/${name}`, { fields: TEXT, body: name })
      expect(created.status).toBe(201)
      expect((await demo.send('GET', created.field('location')!)).text).toBe(name)
    },
  )

  it('stores only what describes the content, of all the fields of a request (threat 17)', async () => {
    const fields = { ...TEXT, 'Set-Cookie': 'a=b', 'X-Evil': '1', 'Content-Language': 'fr', 'Cache-Control': 'public' }
    await demo.send('PUT', '/docs/fields', { fields, body: 'x' })
    const names = (await demo.send('GET', '/docs/fields')).fields.map(([name]) => name)
    expect(names).not.toContain('set-cookie')
    expect(names).not.toContain('x-evil')
    expect(names).not.toContain('content-language')
  })

  it('refuses a media type that is malformed or overlong (threat 116)', async () => {
    for (const type of [
      'text/html\t; x="',
      `text/${'a'.repeat(300)}`,
      'text',
      'text/',
      '/plain',
      'text/plain;',
      'a b/c',
    ]) {
      const answer = await demo.send('PUT', '/docs/type', { fields: { 'Content-Type': type }, body: 'x' })
      if (type === 'text/plain;') expect(answer.status).toBeLessThan(500)
      else expect([type, answer.status]).toEqual([type, 400])
    }
  })

  it('refuses fields that may be sent once only and were sent twice (row H9, threat 3)', async () => {
    const answer = await demo.send('PUT', '/docs/twice', {
      fields: [
        ['Content-Type', 'text/plain'],
        ['Content-Type', 'text/html'],
      ],
      body: 'x',
    })
    expect(answer.status).toBe(400)
    expect((await demo.send('GET', '/docs/twice')).status).toBe(404)
  })

  it('ignores the query: it is not part of the name (threat 36)', async () => {
    await demo.send('PUT', '/docs/query?x=1', { fields: TEXT, body: 'q' })
    expect((await demo.send('GET', '/docs/query')).text).toBe('q')
  })

  it('stores nothing of content that ends before its declared length (threat 13, row H26)', async () => {
    const whole = demo.send('GET', '/docs/short')
    expect((await whole).status).toBe(404)
    const { connect } = await import('node:net')
    const socket = connect({ port: demo.port, host: '127.0.0.1' })
    socket.end('PUT /docs/short HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nonly this')
    await new Promise((resolve) => socket.once('close', resolve).resume())
    expect((await demo.send('GET', '/docs/short')).status).toBe(404)
  })

  it('takes content of no declared length (row H176)', async () => {
    const options = { fields: TEXT, body: 'chunked', chunked: true }
    const created = await demo.send('PUT', '/docs/chunked', options)
    expect([created.status, (await demo.send('GET', '/docs/chunked')).text]).toEqual([201, 'chunked'])
    const empty = await demo.send('PUT', '/docs/empty', { fields: TEXT, body: '', chunked: true })
    expect([empty.status, (await demo.send('GET', '/docs/empty')).field('content-length')]).toEqual([201, '0'])
  })

  it('refuses JSON that is none, before it is stored and discovered by a reader (row H171)', async () => {
    for (const chunked of [true, false]) {
      const answer = await demo.send('PUT', '/docs/bad.json', {
        fields: JSON_TYPE,
        body: '{"secret":"hunter2',
        chunked,
      })
      expect([answer.status, answer.text.includes('hunter2')]).toEqual([400, false])
    }
    expect((await demo.send('GET', '/docs/bad.json')).status).toBe(404)
  })
})

describe('PUT of the configuration', () => {
  const config = { debug: true, port: 1, logLevel: 'info' }

  it('answers 200 with the representation, under both names (DESIGN §6)', async () => {
    const answer = await demo.send('PUT', '/config/app.json', jsonOf(config))
    expect([answer.status, answer.json(), answer.field('content-location')]).toEqual([200, config, '/config/app.json'])
    const read = await demo.send('GET', '/config/app')
    expect([read.text, read.field('etag')]).toEqual([answer.text, answer.field('etag')])
    expect((await demo.send('PUT', '/config/app', jsonOf(config, { 'If-Match': answer.field('etag')! }))).status).toBe(
      200,
    )
    expect(
      (await demo.send('PUT', '/config/app.json', jsonOf(config, { 'If-Match': answer.field('etag')! }))).status,
    ).toBe(412)
  })

  it('is refused when it is not valid, and changes nothing (row H179)', async () => {
    const before = await demo.send('GET', '/config/app')
    const answer = await demo.send('PUT', '/config/app', jsonOf({ ...config, port: 65536 }))
    expect([answer.status, answer.json().errors[0].pointer]).toEqual([422, '/port'])
    expect((await demo.send('GET', '/config/app')).field('etag')).toBe(before.field('etag'))
  })
})

describe('PUT under conditions', () => {
  it('changes nothing unless they hold (interface PUT 6, rows H104 to H110, H119, H122, threats 40, 42)', async () => {
    const { headers, status } = { headers: TEXT, status: 412 }
    const tag = (await demo.send('PUT', '/docs/cond', { fields: headers, body: 'v1' })).field('etag')!
    const cases: readonly (readonly [Record<string, string>, number])[] = [
      [{ 'If-Match': '"other"' }, status],
      [{ 'If-Match': `W/${tag}` }, status],
      [{ 'If-Match': '"a", "b"' }, status],
      [{ 'If-None-Match': '*' }, status],
      [{ 'If-None-Match': tag }, status],
      [{ 'If-None-Match': `W/${tag}` }, status],
      [{ 'If-Match': tag, 'If-None-Match': tag }, status],
      [{ 'If-Unmodified-Since': 'Sun, 06 Nov 1994 08:49:37 GMT' }, status],
      [{ 'If-Match': 'abc' }, 400],
      [{ 'If-Match': '"a' }, 400],
      [{ 'If-Match': '*, "a"' }, 400],
      [{ 'If-None-Match': 'abc' }, 400],
    ]
    for (const [condition, expected] of cases) {
      const answer = await demo.send('PUT', '/docs/cond', { fields: { ...headers, ...condition }, body: 'v2' })
      expect([condition, answer.status]).toEqual([condition, expected])
      if (expected === 412) expect([answer.text, answer.field('content-length')]).toEqual(['', '0'])
      const read = await demo.send('GET', '/docs/cond')
      expect([read.text, read.field('etag')]).toEqual(['v1', tag])
    }
    const good: readonly Record<string, string>[] = [
      { 'If-Match': '*' },
      { 'If-None-Match': '"other"' },
      { 'If-Unmodified-Since': 'banana' },
      { 'If-Modified-Since': new Date().toUTCString() },
    ]
    for (const condition of good) {
      const answer = await demo.send('PUT', '/docs/cond', { fields: { ...headers, ...condition }, body: 'v2' })
      expect([condition, answer.status]).toEqual([condition, 204])
    }
    const now = (await demo.send('GET', '/docs/cond')).field('etag')!
    const list = { ...headers, 'If-Match': `"a", ,${now}` }
    expect((await demo.send('PUT', '/docs/cond', { fields: list, body: 'v3' })).status).toBe(204)
    expect((await demo.send('PUT', '/docs/cond', { fields: list, body: 'v3' })).status).toBe(412)
  })

  it('creates nothing under If-Match, and creates only under If-None-Match: * (rows H104, H108, H119)', async () => {
    for (const match of ['*', '"abc"']) {
      const answer = await demo.send('PUT', '/docs/absent', { fields: { ...TEXT, 'If-Match': match }, body: 'x' })
      expect(answer.status).toBe(412)
    }
    expect((await demo.send('GET', '/docs/absent')).status).toBe(404)
    const fields = { ...TEXT, 'If-None-Match': '*' }
    expect((await demo.send('PUT', '/docs/absent', { fields, body: 'x' })).status).toBe(201)
    expect((await demo.send('PUT', '/docs/absent', { fields, body: 'y' })).status).toBe(412)
    expect((await demo.send('GET', '/docs/absent')).text).toBe('x')
  })

  it('judges them before the content, and what the fields say before them (rows H100, H102)', async () => {
    await demo.send('PUT', '/users/110', jsonOf(USER))
    const stale = { 'If-Match': '"stale"' }
    const broken = { fields: { ...JSON_TYPE, ...stale }, body: '{' }
    expect((await demo.send('PUT', '/users/110', broken)).status).toBe(412)
    expect((await demo.send('PUT', '/users/110', { fields: { ...stale, ...TEXT }, body: '{' })).status).toBe(415)
    expect(
      (await demo.send('PUT', '/docs/cond', { fields: { ...stale, 'Content-Range': 'bytes 0-1/2' }, body: '{' }))
        .status,
    ).toBe(400)
    const huge = await sendBytes(
      demo.port,
      'PUT /users/110 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\nIf-Match: "stale"\r\n',
      `Content-Length: 1000000000000\r\n\r\n`,
    )
    expect(huge.status).toBe(413)
  })

  it('demands them where the definition does (row S1, threat 47)', async () => {
    const created = await demo.send('PUT', '/strict/a', { fields: TEXT, body: 'x' })
    expect(created.status).toBe(201)
    const bare = await demo.send('PUT', '/strict/a', { fields: TEXT, body: 'y' })
    expect([bare.status, bare.json().detail.includes('If-Match')]).toEqual([428, true])
    const ignored = { ...TEXT, 'If-Unmodified-Since': 'foo 12' }
    expect((await demo.send('PUT', '/strict/a', { fields: ignored, body: 'y' })).status).toBe(428)
    expect((await demo.send('GET', '/strict/a')).text).toBe('x')
    const fields = { ...TEXT, 'If-Match': created.field('etag')! }
    expect((await demo.send('PUT', '/strict/a', { fields, body: 'y' })).status).toBe(204)
    const create = { ...TEXT, 'If-None-Match': '*' }
    expect((await demo.send('PUT', '/strict/b', { fields: create, body: 'y' })).status).toBe(201)
  })
})

describe('the conflict hook of PUT', () => {
  it('sees the current and the proposed state, and refuses with 409 (interface PUT 4, row H174)', async () => {
    const seen: unknown[] = []
    const target = await startService({
      resources: {
        '/a': singleton({
          conflict(proposed, current) {
            seen.push([current?.value, proposed.value])
            const next = proposed.value as { version: number }
            const now = current?.value as { version: number } | undefined
            if (now !== undefined && next.version !== now.version + 1) return 'The version is not the next one.'
            return undefined
          },
        }),
      },
    })
    expect((await target.send('PUT', '/a', jsonOf({ version: 1 }))).status).toBe(201)
    const refused = await target.send('PUT', '/a', jsonOf({ version: 3 }))
    expect([refused.status, refused.json().detail]).toEqual([409, 'The version is not the next one.'])
    expect((await target.send('GET', '/a')).text).toBe('{"version":1}')
    expect((await target.send('PUT', '/a', jsonOf({ version: 2 }))).status).toBe(200)
    expect(seen).toEqual([
      [undefined, { version: 1 }],
      [{ version: 1 }, { version: 3 }],
      [{ version: 1 }, { version: 2 }],
    ])
    await target.close()
  })

  it('decides inside the atomic step: of 20 writers that each saw the state before, each wins once (I7)', async () => {
    const target = await startService({
      resources: {
        '/a': singleton({
          async conflict(proposed, current) {
            await new Promise((resolve) => setImmediate(resolve))
            const next = (proposed.value as { n: number }).n
            const now = (current?.value as { n: number } | undefined)?.n ?? 0
            return next > now ? undefined : 'Something newer is there.'
          },
        }),
      },
    })
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        target.send('PUT', '/a', jsonOf({ n: index + 1 }, index % 2 === 0 ? { 'If-Match': '*' } : {})),
      ),
    )
    const stored = (await target.send('GET', '/a')).json().n
    const won = answers.flatMap((answer, index) => (answer.status < 300 ? [index + 1] : []))
    expect(answers.every(({ status }) => [200, 201, 409, 412].includes(status))).toBe(true)
    expect(stored).toBe(Math.max(...won))
    await target.close()
  })

  it('is not a way around If-Match: a state that came after the condition was judged is judged anew', async () => {
    const store = memoryStore()
    const seen: unknown[] = []
    let meddle = false
    const target = await startService(
      { resources: { '/a/{name}': document({ conflict: (_, current) => void seen.push(current) }) } },
      {
        ...store,
        read(path, options) {
          const state = store.read(path, options)
          if (meddle && options?.metadataOnly === true) {
            meddle = false
            store.write(path, { contentType: 'text/plain', body: 'meddled' }, { expect: 'any' })
          }
          return state
        },
      },
    )
    const tag = (await target.send('PUT', '/a/x', { fields: TEXT, body: 'v1' })).field('etag')!
    meddle = true
    const answer = await target.send('PUT', '/a/x', { fields: { ...TEXT, 'If-Match': tag }, body: 'v2' })
    expect([answer.status, (await target.send('GET', '/a/x')).text]).toEqual([412, 'meddled'])
    // Asked about the creation, and not about a state that the client does not know.
    expect(seen).toEqual([undefined])
    await target.close()
  })

  it('is not a way around authorize: a state that came after authorize was asked is not shown or replaced', async () => {
    const store = memoryStore()
    const seen: unknown[] = []
    let meddle = false
    const target = await startService(
      {
        resources: {
          '/a': singleton({
            authorize: (_principal, _request, current) => (current?.value as { owner?: string })?.owner !== 'bob',
            conflict: (_proposed, current) => void seen.push(current?.value),
          }),
        },
      },
      {
        ...store,
        read(path, options) {
          const state = store.read(path, options)
          if (meddle) {
            meddle = false
            store.write(path, { contentType: 'application/json', body: '{"owner":"bob"}' }, { expect: 'any' })
          }
          return state
        },
      },
    )
    expect((await target.send('PUT', '/a', jsonOf({ owner: 'ann' }))).status).toBe(201)
    meddle = true
    expect((await target.send('PUT', '/a', jsonOf({ owner: 'eve' }))).status).toBe(403)
    // Nor does a condition tell of it.
    store.write('/a', { contentType: 'application/json', body: '{"owner":"ann"}' }, { expect: 'any' })
    const tag = (await target.send('GET', '/a')).field('etag')!
    meddle = true
    expect((await target.send('PUT', '/a', jsonOf({ owner: 'eve' }, { 'If-Match': tag }))).status).toBe(403)
    expect(seen).toEqual([undefined])
    const kept = await store.read('/a')
    expect(kept).toMatchObject({ body: '{"owner":"bob"}' })
    await target.close()
  })
})

describe('PUT to a new member of a collection', () => {
  it('is refused where clients choose no names (DESIGN §3)', async () => {
    const target = await startService({ resources: { '/a': collection({ clientIds: false }) } })
    expect((await target.send('PUT', '/a/5', jsonOf({}))).status).toBe(404)
    expect((await target.send('POST', '/a', jsonOf({}))).status).toBe(201)
    expect((await target.send('PUT', '/a/1', jsonOf({ b: 1 }))).status).toBe(204)
    await target.close()
  })
})
