import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { digestOf, flipBit } from '../support/digests.ts'
import { FORM, JSON_TYPE, MERGE_PATCH, multipartOf, type SendOptions, startService, type Target } from './support.ts'

const PROBLEMS = 'https://iana.org/assignments/http-problem-types#'
const BYTES = { 'Content-Type': 'application/octet-stream' }
const ITEM = '{"hello": "world"}\n'
const LARGE = Buffer.alloc(300_000, 'large content ')

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function start(options: ServiceOptions = {}, store?: ResourceStore): Promise<Target> {
  const target = await startService(options, store)
  closers.push(target.close)
  return target
}

const resources: NonNullable<ServiceOptions['resources']> = {
  '/docs/{name}': document(),
  '/items': collection(),
  '/blobs': collection({ types: ['*/*'] }),
  '/photos': collection({ files: { photo: {} } }),
  '/jobs': collection({ create: 'accepted', files: { file: {} } }),
}

/** Every kind of content that a request can carry, and how the request ends without a fault. */
const WRITES: readonly (readonly [string, string, string, number, SendOptions])[] = [
  ['a document', 'PUT', '/docs/1', 201, { fields: BYTES, body: 'small' }],
  ['a stream', 'PUT', '/docs/1', 201, { fields: BYTES, body: LARGE, chunked: true }],
  ['large content of a known length', 'PUT', '/docs/1', 201, { fields: BYTES, body: LARGE }],
  ['empty content', 'PUT', '/docs/1', 201, { fields: BYTES, body: '' }],
  ['an empty stream', 'PUT', '/docs/1', 201, { fields: BYTES, body: '', chunked: true }],
  ['a JSON item', 'PUT', '/items/1', 201, { fields: JSON_TYPE, body: '{ "n": 1 }' }],
  ['a JSON item that is new', 'POST', '/items', 201, { fields: JSON_TYPE, body: '{ "n": 1 }' }],
  ['a form', 'POST', '/items', 201, { fields: FORM, body: 'n=1' }],
  ['raw content', 'POST', '/blobs', 201, { fields: BYTES, body: LARGE, chunked: true }],
  ['multipart', 'POST', '/photos', 201, multipartOf([{ name: 'photo', filename: 'a', content: 'a' }])],
  ['large multipart', 'POST', '/photos', 201, multipartOf([{ name: 'photo', filename: 'a', content: LARGE }])],
  ['accepted work', 'POST', '/jobs', 202, multipartOf([{ name: 'file', filename: 'a', content: LARGE }])],
  ['a merge patch', 'PATCH', '/items/7', 200, { fields: MERGE_PATCH, body: '{"n":2}' }],
]

function withField({ fields, ...rest }: SendOptions, name: string, value: string): SendOptions {
  return { ...rest, fields: [...Object.entries(fields as Readonly<Record<string, string>>), [name, value]] }
}

async function listAll({ store }: Target): Promise<string> {
  const pages = await Promise.all(
    ['/docs', '/items', '/blobs', '/photos', '/jobs'].map((path) => store.list(path, { limit: 9 })),
  )
  return JSON.stringify(pages.map(({ items }) => items.map(({ path, version }) => [path, version])))
}

describe.each(WRITES)('a digest of %s', (_, method, path, status, options) => {
  it.each(['Content-Digest', 'Repr-Digest'])(
    'is compared before anything is stored: %s (RFC 9530 §2, §3)',
    async (name) => {
      const target = await start({ resources })
      await target.store.write('/items/7', { contentType: 'application/json', body: '{"id":7}' }, { expect: 'any' })
      const before = await listAll(target)
      const wrong = await target.send(method, path, withField(options, name, digestOf('other')))
      expect([wrong.status, wrong.json()]).toEqual([
        400,
        expect.objectContaining({
          type: `${PROBLEMS}digest-mismatched-values`,
          'mismatched-digests': [
            { algorithm: 'sha-256', 'provided-digest': digestOf('other').slice('sha-256='.length), header: name },
          ],
        }),
      ])
      expect(await listAll(target)).toBe(before)
      const right = await target.send(method, path, withField(options, name, digestOf(options.body!, 'sha-512')))
      expect(right.status).toBe(status)
    },
  )
})

describe('Content-Digest of a request', () => {
  it('has the values of the examples (RFC 9530 §2, Appendix B.1, B.2 and B.8)', async () => {
    const { send } = await start({ resources })
    for (const [body, digest] of [
      [ITEM, 'sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:'],
      [ITEM, 'sha-512=:YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg==:'],
      ['{"title": "New Title"}\n', 'sha-256=:mEkdbO7Srd9LIOegftO0aBX+VPTVz7/CSHes2Z27gc4=:'],
      ['', 'sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:'],
    ] as const) {
      const fields = { 'Content-Digest': digest, 'Repr-Digest': digest }
      expect((await send('PUT', '/docs/x', { fields: { ...BYTES, ...fields }, body })).status).toBeLessThan(300)
      const other = await send('PUT', '/docs/x', { fields: { ...BYTES, ...fields }, body: `${body} ` })
      expect(other.status).toBe(400)
    }
  })

  it('must match by every algorithm that is supported; others are ignored (RFC 9530 §5)', async () => {
    const { send } = await start({ resources })
    const put = async (digest: string): Promise<number> =>
      (await send('PUT', '/docs/x', { fields: { ...BYTES, 'Content-Digest': digest }, body: 'x' })).status
    expect(await put(`${digestOf('x')}, ${digestOf('x', 'sha-512')}`)).toBe(201)
    expect(await put(`${digestOf('x')}, ${digestOf('y', 'sha-512')}`)).toBe(400)
    expect(await put('md5=:AAAA:')).toBe(204)
    expect(await put(`md5=:AAAA:, ${digestOf('x')}`)).toBe(204)
    expect(await put(`md5=:AAAA:, ${digestOf('y')}`)).toBe(400)
  })

  it.each(['', 'sha-256', 'sha-256=x', 'sha-256=:AAAA', 'sha-256="a"', `${digestOf('x')},`, 'SHA-256=:AAAA:'])(
    'is 400 where it is malformed, on every request that changes state: %j (RFC 9530 §2)',
    async (value) => {
      const { send } = await start({ resources })
      for (const [method, path] of [
        ['PUT', '/docs/x'],
        ['POST', '/items'],
        ['PATCH', '/items/1'],
        ['DELETE', '/items/1'],
      ] as const) {
        const type = method === 'PATCH' ? MERGE_PATCH : JSON_TYPE
        const answer = await send(method, path, { fields: { ...type, 'Content-Digest': value }, body: '{}' })
        expect([method, answer.status, answer.json().detail]).toEqual([method, 400, 'Content-Digest is malformed.'])
      }
      const read = await send('GET', '/items', { fields: { 'Content-Digest': value } })
      expect(read.status).toBe(200)
    },
  )

  it('is 400 where a known algorithm has a value of another length', async () => {
    const { send } = await start({ resources })
    const answer = await send('PUT', '/docs/x', { fields: { ...BYTES, 'Repr-Digest': 'sha-256=:AAAA:' }, body: 'x' })
    expect([answer.status, answer.json()]).toEqual([
      400,
      expect.objectContaining({
        type: `${PROBLEMS}digest-invalid-values`,
        'invalid-digests': [expect.objectContaining({ algorithm: 'sha-256', header: 'Repr-Digest' })],
      }),
    ])
  })

  it('is of the bytes as they came, before a content coding is decoded (RFC 9530 §2)', async () => {
    const { send } = await start({ resources, contentCodings: ['gzip'] })
    const body = gzipSync('{"n":1}')
    const fields = { ...JSON_TYPE, 'Content-Encoding': 'gzip' }
    const put = async (digest: string): Promise<number> =>
      (await send('PUT', '/items/1', { fields: { ...fields, 'Content-Digest': digest }, body })).status
    expect(await put(digestOf('{"n":1}'))).toBe(400)
    expect(await put(digestOf(body))).toBe(201)
  })

  it('is looked at before the state, and compared after the conditions', async () => {
    const { send } = await start({ resources })
    const put = (digest: string): SendOptions => ({
      fields: { ...BYTES, 'If-Match': '"none"', 'Content-Digest': digest },
      body: 'x',
    })
    expect((await send('PUT', '/docs/x', put('?'))).status).toBe(400)
    expect((await send('PUT', '/docs/x', put(digestOf('y')))).status).toBe(412)
  })
})

describe('Content-Digest in a trailer', () => {
  const chunked = (announced: string, trailer: string): string =>
    `PUT /docs/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: text/plain\r\n${announced}` +
    `Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n${trailer}\r\n`

  it('counts where Trailer has announced it (RFC 9530 §2, RFC 9110 §6.6.2)', async () => {
    const { port } = await start({ resources: { '/docs/{name}': document() } })
    const { sendBytes } = await import('./support.ts')
    const put = async (announced: string, trailer: string): Promise<number> =>
      (await sendBytes(port, chunked(announced, trailer))).status
    const announced = 'Trailer: content-digest\r\n'
    expect(await put(announced, `Content-Digest: ${digestOf('HELLO')}\r\n`)).toBe(400)
    expect(await put(announced, 'Content-Digest: ?\r\n')).toBe(400)
    expect(await put(announced, `Content-Digest: ${digestOf('hello')}\r\n`)).toBe(201)
    expect(await put(announced, '')).toBe(204)
    // Neither place excuses the other.
    const wrong = `${announced}Content-Digest: ${digestOf('HELLO')}\r\n`
    expect(await put(wrong, `Content-Digest: ${digestOf('hello')}\r\n`)).toBe(400)
    expect(await put('', `Content-Digest: ${digestOf('HELLO')}\r\n`)).toBe(204)
    expect(await put('Trailer: Repr-Digest\r\n', `Content-Digest: ${digestOf('HELLO')}\r\n`)).toBe(204)
  })

  it('is enough where a digest is required', async () => {
    const { port } = await start({ resources: { '/docs/{name}': document({ digests: 'required' }) } })
    const { sendBytes } = await import('./support.ts')
    const announced = 'Trailer: Content-Digest\r\n'
    expect((await sendBytes(port, chunked(announced, ''))).status).toBe(400)
    expect((await sendBytes(port, chunked(announced, `Content-Digest: ${digestOf('hello')}\r\n`))).status).toBe(201)
  })
})

describe("digests: 'required'", () => {
  it('refuses content without a digest that can be verified, and says which it takes (RFC 9530 §4)', async () => {
    const { send } = await start({ resources: { '/docs/{name}': document({ digests: 'required' }) } })
    const put = (fields: Readonly<Record<string, string>>) =>
      send('PUT', '/docs/x', { fields: { ...BYTES, ...fields }, body: 'x' })
    const missing = await put({})
    expect([missing.status, missing.field('Want-Content-Digest')]).toEqual([400, 'sha-256=10, sha-512=9'])
    expect(missing.json().type).toBe('urn:problem-type:http-resource-service:digest-required')
    const unknown = await put({ 'Content-Digest': 'md5=:AAAA:' })
    expect([unknown.status, unknown.field('Want-Content-Digest')]).toEqual([400, 'sha-256=10, sha-512=9'])
    expect(unknown.json()).toMatchObject({
      type: `${PROBLEMS}digest-unsupported-algorithms`,
      'unsupported-algorithms': [{ algorithm: 'md5', header: 'Content-Digest' }],
    })
    expect((await put({ 'Repr-Digest': digestOf('x') })).status).toBe(201)
    expect((await send('GET', '/docs/x')).status).toBe(200)
    expect((await send('DELETE', '/docs/x')).status).toBe(204)
  })

  it('demands none of a query, which is not stored (RFC 10008)', async () => {
    const { send } = await start({
      resources: { '/docs': collection({ digests: 'required', query: { n: { type: 'string' } } }) },
    })
    const query = await send('QUERY', '/docs', { fields: FORM, body: 'limit=1' })
    expect([query.status, query.text]).toEqual([200, '[]'])
  })

  it('lets scripts of other origins read which digests it takes, and only where it is required', async () => {
    for (const digests of ['required', 'optional'] as const) {
      const cors = { origins: 'https://app.example' }
      const { send } = await start({ resources: { '/docs/{name}': document({ digests }) }, cors })
      const answer = await send('PUT', '/docs/x', { fields: { ...BYTES, Origin: cors.origins }, body: 'x' })
      const exposed = String(answer.field('Access-Control-Expose-Headers')).split(', ')
      expect(exposed.includes('Want-Content-Digest')).toBe(digests === 'required')
      expect(exposed).toEqual(expect.arrayContaining(['Content-Digest', 'Repr-Digest']))
    }
  })

  it('is optional or required, nothing else', () => {
    expect(() => document({ digests: 'always' as 'required' })).toThrow(TypeError)
  })
})

/** More by hand and in the soak: `DIGEST_UPLOADS=10000 npx vitest run test/writes/digests.test.ts`. */
const UPLOADS = Number(process.env['DIGEST_UPLOADS'] ?? 1000)

describe(`${UPLOADS} uploads with one flipped bit`, () => {
  it('are refused one and all, and the store is as it was', { timeout: 600_000 }, async () => {
    const calls: string[] = []
    const sound = memoryStore()
    const store: ResourceStore = {
      ...sound,
      create(...given) {
        calls.push('create')
        return sound.create(...given)
      },
    }
    const target = await start({ resources }, store)
    const body = createHash('sha512').update('seed').digest()
    const fields = { ...BYTES, 'Content-Digest': digestOf(body) }
    expect((await target.send('PUT', '/docs/x', { fields, body })).status).toBe(201)
    const before = await listAll(target)
    const statuses = new Map<number, number>()
    for (let i = 0; i < UPLOADS; i++) {
      const chunked = i % 2 === 0
      const { status } = await target.send('PUT', '/docs/x', {
        fields,
        body: flipBit(body, i % (body.length * 8)),
        chunked,
      })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    expect([...statuses]).toEqual([[400, UPLOADS]])
    expect(await listAll(target)).toBe(before)
    expect(calls).toEqual([])
  })
})
