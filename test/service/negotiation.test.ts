import { describe, expect, it } from 'vitest'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { serve, serveFixtures } from './serve.ts'

const json = 'Content-Type: application/json'
const toText = { type: 'text/plain', render: (bytes: Uint8Array) => `text of ${bytes.length} bytes` }
const toCsv = { type: 'text/csv; header=present', render: () => 'id,name\r\n1,Ä\r\n' }

/** A member with three representations: JSON as stored, text and CSV. */
async function serveVariants() {
  const served = await serve(memoryStore(), {
    resources: {
      '/users': collection({ representations: [toText, toCsv] }),
      '/single': document({ types: ['application/json'] }),
      '/any/{name}': document({ representations: [toText] }),
    },
  })
  await served.send('POST', '/users', [json], '{"name":"Ada"}')
  await served.send('PUT', '/single', [json], '{"a":1}')
  await served.send('PUT', '/any/x', ['Content-Type: image/png'], 'bytes')
  return served
}

describe('Accept (RFC 9110 §12.5.1)', () => {
  it.each([
    [undefined, 'application/json'],
    ['', 'application/json'],
    ['*/*', 'application/json'],
    ['application/json', 'application/json'],
    ['APPLICATION/JSON', 'application/json'],
    ['application/*', 'application/json'],
    ['text/plain', 'text/plain'],
    ['text/csv', 'text/csv; header=present'],
    ['text/csv;header=present', 'text/csv; header=present'],
    ['text/*', 'text/plain'],
    ['application/json;q=0.2, text/plain', 'text/plain'],
    ['application/json;q=0.2,text/plain;q=0.3', 'text/plain'],
    ['application/json;q=0, */*', 'text/plain'],
    ['text/*;q=0.1, text/plain;q=0.9, */*;q=0.5', 'text/plain'],
    ['text/plain;q=0.1, text/*;q=0.9, */*;q=0.05', 'text/csv; header=present'],
    ['application/json;q=0.5, text/plain;q=0.5', 'application/json'],
    [',application/json,', 'application/json'],
    ['image/png, text/plain;q=0.001', 'text/plain'],
    ['image/png, */*;q=0.1', 'application/json'],
    // Malformed members do not prevent a response (row H96).
    [';;;', 'application/json'],
    ['text', 'application/json'],
    ['text/plain;q=x, application/json;q=0.1', 'application/json'],
    ['application/json;q=1.5', 'application/json'],
    ['text/plain;q=0.1234, text/csv', 'text/csv; header=present'],
    ['application/json; charset=utf-8', 'application/json'],
  ])('%s selects %s (rows H12, H92 to H94)', async (accept, expected) => {
    const { send } = await serveVariants()
    const fields = accept === undefined ? [] : [`Accept: ${accept}`]
    const answer = await send('GET', '/users/1', fields)
    expect([answer.status, answer.field('Content-Type'), answer.field('Vary')]).toEqual([200, expected, 'Accept'])
    const head = await send('HEAD', '/users/1', fields)
    expect(head.fields.filter(([name]) => name !== 'date')).toEqual(answer.fields.filter(([name]) => name !== 'date'))
  })

  it.each(['image/png', 'application/json;q=0', '*/*;q=0', 'application/xml, image/*', 'text/csv; header=absent'])(
    '%s is answered 406, which tells what there is (row H95)',
    async (accept) => {
      const { send } = await serveVariants()
      for (const target of ['/single', accept === 'application/json;q=0' ? '/single' : '/users/1']) {
        const answer = await send('GET', target, [`Accept: ${accept}`])
        expect([answer.status, answer.field('Vary')]).toEqual([406, 'Accept'])
        expect(answer.text).toContain('application/json')
        expect((await send('HEAD', target, [`Accept: ${accept}`])).status).toBe(406)
      }
    },
  )

  it('judges what only the store knows by the type that is stored', async () => {
    const { send } = await serveVariants()
    expect((await send('GET', '/any/x', ['Accept: image/png'])).field('Content-Type')).toBe('image/png')
    expect((await send('GET', '/any/x', ['Accept: text/plain'])).text).toBe('text of 5 bytes')
    expect((await send('GET', '/any/x', ['Accept: application/json'])).status).toBe(406)
    expect((await send('GET', '/any/none', ['Accept: application/json'])).status).toBe(404)
    const fixtures = await serveFixtures()
    const gzipped = await fixtures.send('GET', '/docs/coded.gz', ['Accept: text/plain'])
    expect(gzipped.field('Content-Type')).toBe('text/plain')
  })

  it('concerns reads only: a write is answered in the type that there is', async () => {
    const { send } = await serveVariants()
    expect((await send('PUT', '/single', [json, 'Accept: image/png'], '{"a":2}')).status).toBe(204)
    expect((await send('POST', '/users', [json, 'Accept: image/png'], '{}')).status).toBe(201)
    expect((await send('OPTIONS', '/users/1', ['Accept: image/png'])).status).toBe(204)
  })
})

describe('Vary (RFC 9110 §12.5.5, row H98)', () => {
  it('names Accept on every answer of a resource with several representations, and on no other', async () => {
    const { send } = await serveVariants()
    const tag = (await send('GET', '/users/1')).field('ETag')
    expect((await send('GET', '/users/1', [`If-None-Match: ${tag}`])).field('Vary')).toBe('Accept')
    expect((await send('GET', '/users/1', ['Range: bytes=0-1'])).field('Vary')).toBe('Accept')
    expect((await send('GET', '/users/1', ['Range: bytes=99-'])).field('Vary')).toBe('Accept')
    expect((await send('GET', '/users/9')).field('Vary')).toBe('Accept')
    // A cache may answer a GET with it (RFC 5789 §2).
    const patched = await send('PATCH', '/users/1', ['Content-Type: application/merge-patch+json'], '{"name":"b"}')
    expect([patched.status, patched.field('Content-Location'), patched.field('Vary')]).toEqual([
      200,
      '/users/1',
      'Accept',
    ])
    expect((await send('GET', '/single')).field('Vary')).toBeUndefined()
    expect((await send('GET', '/single', ['Accept: */*'])).field('Vary')).toBeUndefined()
    expect((await send('GET', '/users')).field('Vary')).toBeUndefined()
  })
})

describe('representations of one state', () => {
  it('have strong tags of their own (RFC 9110 §8.8.3.3, row H41)', async () => {
    const { send } = await serveVariants()
    const tags = new Set<string | undefined>()
    for (const type of ['application/json', 'text/plain', 'text/csv'])
      tags.add((await send('GET', '/users/1', [`Accept: ${type}`])).field('ETag'))
    expect(tags.size).toBe(3)
  })

  it('are not confused by a condition with the tag of another', async () => {
    const { send } = await serveVariants()
    const tag = (await send('GET', '/users/1')).field('ETag')
    const text = 'Accept: text/plain'
    expect((await send('GET', '/users/1', [text, `If-None-Match: ${tag}`])).status).toBe(200)
    expect((await send('GET', '/users/1', [text, `If-Match: ${tag}`])).status).toBe(412)
    const own = (await send('GET', '/users/1', [text])).field('ETag')
    const same = await send('GET', '/users/1', [text, `If-None-Match: ${own}`])
    expect([same.status, same.field('ETag')]).toEqual([304, own])
    expect((await send('GET', '/users/1', [text, 'Range: bytes=0-3', `If-Range: ${own}`])).text).toBe('text')
    expect((await send('GET', '/users/1', [text, 'Range: bytes=0-3', `If-Range: ${tag}`])).status).toBe(200)
  })

  it.each([
    ['a range of types', '/users/1', 'Accept: text/plain, */*;q=0.1'],
    ['a type that only the stored state can offer', '/any/x', 'Accept: text/plain'],
  ])('are not confused where Accept names %s (RFC 9110 §13.1.2)', async (_, target, accept) => {
    const { send } = await serveVariants()
    const tag = (await send('GET', target)).field('ETag')
    const own = (await send('GET', target, [accept])).field('ETag')
    expect(own).not.toBe(tag)
    const other = await send('GET', target, [accept, `If-None-Match: ${tag}`])
    expect([other.status, other.field('Content-Type'), other.field('ETag')]).toEqual([200, 'text/plain', own])
    expect((await send('GET', target, [accept, `If-None-Match: ${own}`])).status).toBe(304)
    expect((await send('GET', target, [accept, `If-Match: ${own}`])).status).toBe(200)
    const part = ['Range: bytes=0-3', `If-Range: ${tag}`]
    expect((await send('GET', target, [accept, ...part])).status).toBe(200)
  })

  it('are not confused where Accept prefers the stored one for its own type (RFC 9110 §13.1.2, §13.1.5)', async () => {
    const resources = { '/a': document({ types: ['application/json'], representations: [toText] }) }
    const { send } = await serve(memoryStore(), { resources })
    await send('PUT', '/a', ['Content-Type: model/gltf+json'], '{}')
    const accept = 'Accept: text/plain;q=0.5, model/*'
    const answer = await send('GET', '/a', [accept])
    expect([answer.status, answer.text]).toEqual([200, '{}'])
    const tag = answer.field('ETag')
    expect((await send('GET', '/a', [accept, `If-None-Match: ${tag}`])).status).toBe(304)
    expect((await send('GET', '/a', [accept, 'Range: bytes=0-0', `If-Range: ${tag}`])).status).toBe(206)
  })

  it('can each be the one that a change is made from (row H44)', async () => {
    for (const type of ['application/json', 'text/plain', 'text/csv']) {
      const { send } = await serveVariants()
      const tag = (await send('GET', '/users/1', [`Accept: ${type}`])).field('ETag')
      const fields = ['Content-Type: application/merge-patch+json', `If-Match: ${tag}`]
      expect((await send('PATCH', '/users/1', fields, '{"role":"admin"}')).status).toBe(200)
      expect((await send('PATCH', '/users/1', fields, '{"role":"user"}')).status).toBe(412)
    }
  })

  it('are sent in ranges like any other', async () => {
    const { send } = await serveVariants()
    const answer = await send('GET', '/users/1', ['Accept: text/csv', 'Range: bytes=-5'])
    expect([answer.status, answer.field('Content-Range')]).toEqual([206, 'bytes 10-14/15'])
    expect(answer.text).toBe(',Ä\r\n')
  })
})

describe('Accept-Encoding, Accept-Charset and Accept-Language', () => {
  it.each([
    ...[
      'Accept-Encoding: gzip',
      'Accept-Encoding: gzip;q=0',
      'Accept-Encoding: identity;q=0, *;q=0',
      'Accept-Encoding: ',
    ],
    ...['Accept-Charset: iso-8859-1', 'Accept-Charset: *;q=0', 'Accept-Language: fr', 'Accept-Language: *;q=0'],
  ])('%s changes nothing, and Vary does not name it (rows H97, H99)', async (field) => {
    const { send } = await serve(memoryStore(), { resources: { '/config': singleton() } })
    await send('PUT', '/config', [json], '{"a":"ä"}')
    const plain = await send('GET', '/config')
    const answer = await send('GET', '/config', [field])
    expect(answer.fields.filter(([name]) => name !== 'date')).toEqual(plain.fields.filter(([name]) => name !== 'date'))
    expect(answer.text).toBe('{"a":"ä"}')
  })
})

describe('HEAD of a representation that is made', () => {
  it('has the length that GET has, whatever the store leaves out for HEAD (RFC 9110 §8.6, row H23)', async () => {
    const { send } = await serveFixtures({ resources: { '/docs/{name}': document({ representations: [toText] }) } })
    const text = 'Accept: text/plain'
    expect((await send('HEAD', '/docs/a.bin', [text])).field('Content-Length')).toBe('16')
    expect((await send('GET', '/docs/a.bin', [text])).text).toBe('text of 26 bytes')
  })

  it.each([[7], [{}], [[1, 2]], [new ArrayBuffer(2)], [new String('x')]])(
    'is 500, as GET is, where render returns neither text nor bytes: %j',
    async (content) => {
      const errors: unknown[] = []
      const odd = { type: 'text/plain', render: () => content as never }
      const resources = { '/docs/{name}': document({ representations: [odd] }) }
      const { send } = await serveFixtures({ resources, onError: (error) => errors.push(error) })
      for (const method of ['HEAD', 'GET']) {
        expect((await send(method, '/docs/a.bin', ['Accept: text/plain'])).status).toBe(500)
      }
      const report = expect.stringContaining('render returns text or a Uint8Array')
      expect(errors.map(String)).toEqual([report, report])
    },
  )
})

describe('content that is large', () => {
  it('is offered as it is stored, and in no other representation, above 64 MiB', async () => {
    const most = 64 * 1024 * 1024
    const store = memoryStore()
    const contentType = 'application/octet-stream'
    await store.write('/docs/most', { contentType, body: new Uint8Array(most) }, { expect: 'any' })
    await store.write('/docs/more', { contentType, body: new Uint8Array(most + 1) }, { expect: 'any' })
    const resources = (accept: 'strict' | 'lenient') => ({
      '/docs/{name}': document({ representations: [toText], accept }),
    })
    const { send } = await serve(store, { resources: resources('strict') })
    const text = 'Accept: text/plain'
    expect((await send('GET', '/docs/most', [text])).text).toBe(`text of ${most} bytes`)
    for (const method of ['GET', 'HEAD']) expect((await send(method, '/docs/more', [text])).status).toBe(406)
    expect((await send('HEAD', '/docs/more', [])).field('Content-Length')).toBe(String(most + 1))
    const lenient = await serve(store, { resources: resources('lenient') })
    const range = await lenient.send('GET', '/docs/more', [text, 'Range: bytes=0-1'])
    expect([range.status, range.field('Content-Type'), range.field('Vary')]).toEqual([
      206,
      contentType,
      expect.stringContaining('Accept'),
    ])
  })
})

describe('Accept that names nothing that there is (RFC 9110 §12.5.1, §15.5.7)', () => {
  const UNMET = 'Accept: application/vnd.x.restic.rest.v2, text/x-none'
  const text = { type: 'text/plain', render: () => 'text' }

  async function serveKinds(accept?: 'strict' | 'lenient') {
    const option = accept === undefined ? {} : { accept }
    const served = await serve(memoryStore(), {
      resources: {
        '/docs/{name}': document(option),
        '/raw': collection({ types: ['*/*'], ...option }),
        '/items': collection({ files: { file: {} }, ...option }),
        '/variants': collection({ types: ['*/*'], representations: [text], ...option }),
        '/config': singleton(option),
      },
    })
    await served.send('PUT', '/docs/a', ['Content-Type: image/png'], 'png')
    await served.send('POST', '/raw', ['Content-Type: image/png'], 'png')
    await served.send('POST', '/variants', ['Content-Type: image/png'], 'png')
    await served.send('PUT', '/config', [json], '{}')
    const form = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\nbytes\r\n--x--\r\n'
    await served.send('POST', '/items', ['Content-Type: multipart/form-data; boundary=x'], form)
    return served
  }

  it.each([
    [
      undefined,
      ['/docs/a', '/raw', '/raw/1', '/items/1/file'],
      ['/items', '/items/1', '/variants', '/variants/1', '/config'],
    ],
    ['lenient', ['/docs/a', '/raw', '/raw/1', '/items/1/file', '/items', '/items/1', '/variants', '/config'], []],
    ['strict', [], ['/docs/a', '/raw', '/raw/1', '/items/1/file', '/items', '/items/1', '/variants/1', '/config']],
  ] as const)(
    'accept: %s decides between the stored representation and 406 (issue 17, 19)',
    async (accept, lenient, strict) => {
      const { send } = await serveKinds(accept)
      for (const path of lenient) {
        const usual = await send('GET', path)
        for (const field of [UNMET, 'Accept: */*;q=0', 'Accept: application/json;q=0, image/png;q=0']) {
          const answer = await send('GET', path, [field])
          expect([path, answer.status, answer.field('Vary')]).toEqual([path, 200, undefined])
          expect([answer.text, answer.field('ETag')]).toEqual([usual.text, usual.field('ETag')])
          expect((await send('HEAD', path, [field])).status).toBe(200)
          const validator = `If-None-Match: ${usual.field('ETag')}`
          expect((await send('GET', path, [field, validator])).status).toBe(304)
        }
      }
      for (const path of strict) {
        const answer = await send('GET', path, [UNMET])
        expect([path, answer.status, answer.field('Vary')]).toEqual([path, 406, 'Accept'])
      }
    },
  )

  it('is a preference in the service without resources (issue 17, 19)', async () => {
    const { send } = await serve(memoryStore(), {})
    await send('PUT', '/data/a', ['Content-Type: application/json'], '{}')
    for (const path of ['/data', '/data/a']) expect((await send('GET', path, [UNMET])).status).toBe(200)
  })

  it('still selects among several representations where it is a preference (RFC 9110 §12.5.1)', async () => {
    const { send } = await serveKinds('lenient')
    const answers = await Promise.all(
      ['text/plain', 'image/png', 'text/x-none'].map((type) => send('GET', '/variants/1', [`Accept: ${type}`])),
    )
    expect(answers.map((answer) => [answer.status, answer.text, answer.field('Vary')])).toEqual([
      [200, 'text', 'Accept'],
      [200, 'png', 'Accept'],
      [200, 'png', 'Accept'],
    ])
  })
})

describe('what is there is what is offered (RFC 9110 §12.5.1, row H92)', () => {
  it('a relative of the usual type is found by its own name', async () => {
    const { send } = await serve(memoryStore(), {
      resources: { '/conf': singleton(), '/x/{name}': document({ types: ['*/*+json'] }) },
    })
    for (const path of ['/conf', '/x/a']) {
      await send('PUT', path, ['Content-Type: application/vnd.x+json'], '{}')
      const statusFor = async (accept: string) => (await send('GET', path, [`Accept: ${accept}`])).status
      expect(await statusFor('application/vnd.x+json')).toBe(200)
      expect(await statusFor('application/json')).toBe(406)
      expect(await statusFor('*/*')).toBe(200)
      expect(await statusFor('image/png')).toBe(406)
    }
  })
})
