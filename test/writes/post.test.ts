import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import { FORM, JSON_TYPE, jsonOf, send, sendBytes, startDemo, startService, type Target, USER } from './support.ts'

let demo: Target
beforeAll(async () => {
  demo = await startDemo()
})
afterAll(() => demo.close())

/** How many members the collection of users has. */
async function countUsers(): Promise<number> {
  return (await demo.send('GET', '/users?limit=500')).json().length
}

describe('POST to a collection', () => {
  it('creates a member: 201, Location, and the representation with its new id (interface POST 3, row H58)', async () => {
    const answer = await demo.send('POST', '/users', jsonOf({ ...USER, role: 'x' }))
    expect(answer.status).toBe(201)
    const { id } = answer.json()
    expect(Number.isSafeInteger(id)).toBe(true)
    expect(answer.field('location')).toBe(`/users/${id}`)
    expect(answer.json()).toEqual({ id, ...USER, role: 'x' })
    expect(answer.field('content-type')).toBe('application/json')
    const read = await demo.send('GET', answer.field('location')!)
    expect([read.status, read.text, read.field('etag')]).toEqual([200, answer.text, answer.field('etag')])
  })

  it('creates another member for the same request again (interface POST 5, row H59)', async () => {
    const answers = [await demo.send('POST', '/users', jsonOf(USER)), await demo.send('POST', '/users', jsonOf(USER))]
    expect(answers.map((answer) => answer.status)).toEqual([201, 201])
    expect(answers[0]!.field('location')).not.toBe(answers[1]!.field('location'))
  })

  it('is cacheable only where the definition says so (interface POST 6, RFC 9110 §9.3.3)', async () => {
    expect((await demo.send('POST', '/users', jsonOf(USER))).field('cache-control')).toBe('no-store')
    const target = await startService({ resources: { '/a': collection({ postCacheControl: 'max-age=60' }) } })
    const answer = await target.send('POST', '/a', jsonOf({}))
    expect([answer.field('cache-control'), answer.field('content-location')]).toEqual(['max-age=60', '/a/1'])
    await target.close()
  })

  it('keeps other members, whatever their names (row F14, threat 62)', async () => {
    const body = '{"name":"a","email":"a@b.co","constructor":{"prototype":{"x":1}},"toJSON":1,"hasOwnProperty":2}'
    const answer = await demo.send('POST', '/users', { fields: JSON_TYPE, body })
    expect(answer.status).toBe(201)
    expect(answer.json()).toMatchObject({ constructor: { prototype: { x: 1 } }, toJSON: 1, hasOwnProperty: 2 })
    const path = answer.field('location')!
    const patched = await demo.send('PATCH', path, {
      fields: { 'Content-Type': 'application/json-patch+json' },
      body: '[{"op":"test","path":"/hasOwnProperty","value":2},{"op":"replace","path":"/toJSON","value":3}]',
    })
    expect([patched.status, patched.json().toJSON]).toEqual([200, 3])
  })

  it('refuses a member __proto__ that the schema would drop without a word (threat 62)', async () => {
    for (const body of [
      '{"name":"a","email":"a@b.co","__proto__":{"isAdmin":true}}',
      '{"name":"a","email":"a@b.co","\\u005f_proto__":{"isAdmin":true}}',
    ]) {
      const answer = await demo.send('POST', '/users', { fields: JSON_TYPE, body })
      expect([answer.status, answer.json().errors[0].pointer]).toEqual([400, '/__proto__'])
    }
    expect(({} as Record<string, unknown>)['isAdmin']).toBeUndefined()
  })

  it('stores a member __proto__ as data where no schema is in the way (threat 62)', async () => {
    const target = await startService()
    const answer = await target.send('POST', '/a', { fields: JSON_TYPE, body: '{"__proto__":{"isAdmin":true},"a":1}' })
    expect([answer.status, answer.text]).toEqual([201, '{"id":1,"__proto__":{"isAdmin":true},"a":1}'])
    const patched = await target.send('PATCH', '/a/1', {
      fields: { 'Content-Type': 'application/merge-patch+json' },
      body: '{"__proto__":{"isAdmin":false}}',
    })
    expect(patched.text).toBe('{"id":1,"__proto__":{"isAdmin":false},"a":1}')
    expect(({} as Record<string, unknown>)['isAdmin']).toBeUndefined()
    await target.close()
  })

  const refused: readonly (readonly [what: string, status: number, body: string, type?: string | undefined])[] = [
    ['an id, which the server assigns (threat 83)', 422, '{"id":1,"name":"a","email":"a@b.co"}'],
    ['an id that is null (threat 83)', 422, '{"id":null,"name":"a","email":"a@b.co"}'],
    ['an array (threat 82)', 422, '[]'],
    ['null (threat 82)', 422, 'null'],
    ['a string (threat 82)', 422, '"a"'],
    ['a number (threat 82)', 422, '5'],
    ['a missing member (threat 82)', 422, '{"name":"a"}'],
    ['a member of another type (threat 82)', 422, '{"name":5,"email":"a@b.co"}'],
    ['an address that is none', 422, '{"name":"a","email":"a"}'],
    ['a number that is not finite (threat 63)', 422, '{"name":"a","email":"a@b.co","x":1e400}'],
    ['U+0000 (threat 64)', 422, '{"name":"a\\u0000","email":"a@b.co"}'],
    ['a lone surrogate (threat 64)', 422, '{"name":"a\\ud800","email":"a@b.co"}'],
    ['a member name that occurs twice (row U7, threat 61)', 400, '{"name":"a","name":"b","email":"a@b.co"}'],
    ['a name twice, once escaped (threat 61)', 400, '{"name":"a","\\u006eame":"b","email":"a@b.co"}'],
    ['JSON that is cut short (row H171)', 400, '{"name":"hunter2'],
    ['JSON with something after it', 400, '{"name":"a","email":"a@b.co"}x'],
    ['no content (row U8)', 400, ''],
    ['100 000 nested arrays (row U10, threat 60)', 400, '['.repeat(100_000)],
    ['no media type (threat 68)', 415, '{}', ''],
    ['another media type (row H178)', 415, '{}', 'image/png'],
    ['something like JSON (threat 67)', 415, '{}', 'application/jsonx'],
    ['another charset (row U6)', 415, '{}', 'application/json; charset=utf-16'],
    ['utf-7 (threat 65)', 415, '{}', 'application/json; charset=utf-7'],
    ['a list of types (threat 67)', 400, '{}', 'application/json, text/plain'],
    ['no type at all in the field (threat 67)', 400, '{}', ' '],
  ]
  it.each(refused.map(([what, status, body, type = 'application/json']) => [what, status, body, type] as const))(
    'refuses %s with %i and changes nothing (I7)',
    async (_what, status, body, type) => {
      const before = await countUsers()
      const fields = type === '' ? {} : { 'Content-Type': type }
      const answer = await demo.send('POST', '/users', { fields, body })
      expect(answer.status).toBe(status)
      if (status === 415) expect(answer.field('accept-post')).toContain('application/json')
      expect(answer.field('content-type')).toBe('application/problem+json')
      expect(answer.text).not.toContain('hunter2')
      expect(await countUsers()).toBe(before)
    },
  )

  it.each([
    ['Application/JSON'],
    ['application/json\t;x=1'],
    ['application/json ; charset=utf-8'],
    ['application/json; CHARSET="UTF-8"'],
    ['application/vnd.x+json'],
  ])('takes %s for JSON, and validates it (rows H14, H29, U9, threat 67)', async (type) => {
    const fields = { 'Content-Type': type }
    expect((await demo.send('POST', '/users', { fields, body: JSON.stringify(USER) })).status).toBe(201)
    expect((await demo.send('POST', '/users', { fields, body: '{"name":"a"}' })).status).toBe(422)
  })

  it('refuses bytes that are not UTF-8 (threat 65)', async () => {
    const body = Buffer.from('{"name":"\xff","email":"a@b.co"}', 'latin1')
    expect((await demo.send('POST', '/users', { fields: JSON_TYPE, body })).status).toBe(400)
  })

  it('tolerates a byte order mark and does not store it (row U6)', async () => {
    const answer = await demo.send('POST', '/users', { fields: JSON_TYPE, body: `\ufeff${JSON.stringify(USER)}` })
    expect([answer.status, answer.body[0]]).toEqual([201, 0x7b])
  })

  it('refuses a content coding with a hint (rows H33, H178, threat 69)', async () => {
    for (const coding of ['gzip', 'foo', 'gzip, gzip']) {
      const answer = await demo.send('POST', '/users', jsonOf(USER, { 'Content-Encoding': coding }))
      expect([answer.status, answer.field('accept-encoding'), answer.field('accept-post')]).toEqual([
        415,
        'identity',
        undefined,
      ])
    }
    expect((await demo.send('POST', '/users', jsonOf(USER, { 'Content-Encoding': 'identity' }))).status).toBe(201)
  })

  it('ignores Range and chunk trailers (threats 55, 84)', async () => {
    expect((await demo.send('POST', '/users', jsonOf(USER, { Range: 'bytes=0-1' }))).status).toBe(201)
    const text = JSON.stringify(USER)
    const answer = await sendBytes(
      demo.port,
      'POST /users HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n',
      `Transfer-Encoding: chunked\r\n\r\n${text.length.toString(16)};ext=1\r\n${text}\r\n0\r\nIf-None-Match: *\r\n\r\n`,
    )
    expect(answer.status).toBe(201)
  })

  it('never puts a host into Location (threats 5, 7)', async () => {
    const { text } = { text: JSON.stringify(USER) }
    for (const target of ['/users', 'http://evil.example/users']) {
      const answer = await sendBytes(
        demo.port,
        `POST ${target} HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: evil.example\r\nConnection: close\r\n`,
        `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
      )
      expect(answer.status).toBe(201)
      expect(answer.field('location')).toMatch(/^\/users\/\d+$/)
      expect(JSON.stringify(answer.fields)).not.toContain('evil')
    }
  })

  it('is not allowed on a member, and says what is (rows H48, H73)', async () => {
    const path = (await demo.send('POST', '/users', jsonOf(USER))).field('location')!
    const answer = await demo.send('POST', path, jsonOf(USER))
    expect([answer.status, answer.field('allow')]).toEqual([405, 'GET, HEAD, PUT, PATCH, DELETE, OPTIONS'])
  })

  it('ignores X-HTTP-Method-Override unless it is enabled (row H75, threat 113)', async () => {
    const path = (await demo.send('POST', '/users', jsonOf(USER))).field('location')!
    expect((await demo.send('POST', path, { fields: { 'X-HTTP-Method-Override': 'DELETE' } })).status).toBe(405)
    expect((await demo.send('POST', `${path}?_method=DELETE`)).status).toBe(405)
    const answer = await demo.send('POST', '/users', jsonOf(USER, { 'X-HTTP-Method-Override': 'PUT' }))
    expect(answer.status).toBe(201)
    expect((await demo.send('GET', path)).status).toBe(200)
  })

  it('never uses an id again, whatever becomes of its member (interface POST 3)', async () => {
    const target = await startService({ resources: { '/a': collection() } })
    expect((await target.send('POST', '/a', jsonOf({}))).field('location')).toBe('/a/1')
    await target.send('DELETE', '/a/1')
    expect((await target.send('POST', '/a', jsonOf({}))).field('location')).toBe('/a/2')
    expect((await target.send('PUT', '/a/7', jsonOf({}))).status).toBe(201)
    expect((await target.send('POST', '/a', jsonOf({}))).field('location')).toBe('/a/8')
    await target.close()
  })

  it('gives no rounded id when there is none left: 507 (threat 146)', async () => {
    const target = await startService({ resources: { '/a': collection() } })
    expect((await target.send('PUT', '/a/9007199254740990', jsonOf({}))).status).toBe(201)
    expect((await target.send('POST', '/a', jsonOf({}))).text).toBe('{"id":9007199254740991}')
    const answer = await target.send('POST', '/a', jsonOf({}))
    expect(answer.status).toBe(507)
    expect((await target.send('GET', '/a')).json()).toHaveLength(2)
    expect((await target.send('PUT', '/a/9007199254740992', jsonOf({}))).status).toBe(404)
    await target.close()
  })

  it('puts the mount point into Location, percent-encoded as the client sent it (row H167)', async () => {
    const target = await startService({ mountPath: '/api' })
    const answer = await target.send('POST', '/a%20b/%C3%BC', jsonOf({}))
    expect(answer.field('location')).toBe('/api/a%20b/%C3%BC/1')
    expect((await target.send('GET', answer.field('location')!.slice(4))).status).toBe(200)
    await target.close()
  })

  it('makes members of 128 random bits where names must not be guessed (threat 32)', async () => {
    const target = await startService({ resources: { '/a': collection({ ids: 'uuid' }) } })
    const answer = await target.send('POST', '/a', jsonOf({ a: 1 }))
    expect(answer.field('location')).toBe(`/a/${answer.json().id}`)
    expect(answer.json().id).toMatch(/^[0-9a-f-]{36}$/)
    expect((await target.send('PUT', `/a/${crypto.randomUUID()}`, jsonOf({}))).status).toBe(404)
    await target.close()
  })

  it('has no conditions on a collection that was not read (row H133)', async () => {
    const list = await demo.send('GET', '/users')
    expect((await demo.send('POST', '/users', jsonOf(USER, { 'If-Match': list.field('etag')! }))).status).toBe(201)
    const stale = await demo.send('POST', '/users', jsonOf(USER, { 'If-Match': list.field('etag')! }))
    expect([stale.status, stale.text]).toEqual([412, ''])
  })

  it('serves the same resources under a second mount (interface, Resources)', async () => {
    const answer = await send(demo.port, 'POST', '/users', { fields: FORM, body: 'name=A+B&email=a%40b.co' })
    expect([answer.status, answer.json().name, answer.json().email]).toEqual([201, 'A B', 'a@b.co'])
  })
})

describe('POST to a collection of documents', () => {
  it.each([
    ['text/plain', 'hello'],
    ['text/plain; charset=utf-8', 'grüße'],
    ['application/x-www-form-urlencoded', 'a=b'],
    ['image/png', 'no image'],
    ['application/json', ' {"a": 1.0} '],
  ])('keeps content of type %s byte for byte under the next id (DESIGN §6, row U5)', async (type, body) => {
    const answer = await demo.send('POST', '/docs', { fields: { 'Content-Type': type }, body })
    const { id } = answer.json()
    expect([answer.status, answer.text, answer.field('location')]).toEqual([201, `{"id":${id}}`, `/docs/${id}`])
    const read = await demo.send('GET', `/docs/${id}`)
    expect([read.text, read.field('content-type')]).toEqual([body, type])
  })

  it('refuses JSON that is none, and content of no type', async () => {
    expect((await demo.send('POST', '/docs', { fields: JSON_TYPE, body: '{bad' })).status).toBe(400)
    expect((await demo.send('POST', '/docs', { body: 'x' })).status).toBe(415)
  })

  it('serves text as text, whatever it looks like (threat 81)', async () => {
    const fields = { 'Content-Type': 'text/plain' }
    const { id } = (await demo.send('POST', '/docs', { fields, body: '<script>alert(1)</script>' })).json()
    const read = await demo.send('GET', `/docs/${id}`)
    expect([read.field('content-type'), read.field('x-content-type-options')]).toEqual(['text/plain', 'nosniff'])
  })
})
