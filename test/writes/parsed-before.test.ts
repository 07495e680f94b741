import { createServer, type RequestListener, type ServerOptions } from 'node:http'
import express, { type RequestHandler } from 'express'
import { describe, expect, it } from 'vitest'
import { mount } from '../../src/adapters/node.ts'
import { patch } from '../../src/handlers/patch.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Answer } from '../support/answer.ts'
import { listenForTest } from '../support/listen.ts'
import { FORM, JSON_PATCH, JSON_TYPE, MERGE_PATCH, multipartOf, type SendOptions, send } from './support.ts'

const json = express.json({ type: ['application/json', 'application/*+json'] })
const parsers: Readonly<Record<string, RequestHandler>> = {
  'express.json()': json,
  'express.urlencoded({ extended: true })': express.urlencoded({ extended: true }),
  'express.urlencoded({ extended: false })': express.urlencoded({ extended: false }),
  "express.text({ type: '*/*' })": express.text({ type: '*/*' }),
  "express.raw({ type: '*/*' })": express.raw({ type: '*/*' }),
}

describe.each(Object.keys(parsers))('a service behind %s', (name) => {
  it('works all the same, and says nothing of bytes that it has not seen (row K2, threat 19, RFC 9110 §9.3.4)', async () => {
    const errors: unknown[] = []
    const service = createResourceService(memoryStore(), {
      resources: {
        '/c': collection({ formFields: { pri: 'priority' } }),
        '/u': collection({ files: { file: {} } }),
        '/docs': collection({ types: ['*/*'] }),
      },
      onError: (error) => errors.push(error),
    })
    const app = express().disable('x-powered-by')
    app.use(parsers[name]!, service)
    const port = await listenForTest(createServer(app))
    const ask = (method: string, path: string, options?: SendOptions): Promise<Answer> =>
      send(port, method, path, options)

    const created = await ask('POST', '/c', { fields: JSON_TYPE, body: '{"a":1,"__proto__":{"x":1}}' })
    expect([created.status, created.text]).toEqual([201, '{"id":1,"a":1,"__proto__":{"x":1}}'])
    expect((await ask('POST', '/c', { fields: JSON_TYPE, body: '[1]' })).status).toBe(422)
    const form = await ask('POST', '/c', { fields: FORM, body: 'pri=5&a[b]=1&c=1&c=2' })
    expect([form.status, form.json()]).toEqual([201, { id: 2, priority: '5', 'a[b]': '1', c: ['1', '2'] }])
    expect((await ask('PATCH', '/c/1', { fields: MERGE_PATCH, body: '{"a":2,"__proto__":null}' })).json()).toEqual({
      id: 1,
      a: 2,
    })
    const patch = '[{"op":"add","path":"/b","value":3}]'
    expect((await ask('PATCH', '/c/1', { fields: JSON_PATCH, body: patch })).json()).toEqual({ id: 1, a: 2, b: 3 })

    for (const [path, fields, body] of [
      ['/c/1', JSON_TYPE, '{ "id": 1,  "n": 2 }'],
      ['/docs/x', JSON_TYPE, '{ "a" : 1 }'],
      ['/docs/t', { 'Content-Type': 'text/plain' }, 'grün'],
    ] as const) {
      const put = await ask('PUT', path, { fields, body })
      expect([200, 201, 204]).toContain(put.status)
      const read = await ask('GET', path)
      if (fields === JSON_TYPE) expect(read.json()).toEqual(JSON.parse(body))
      if (read.text !== body || name.includes('text')) expect(put.field('etag')).toBeUndefined()
      if (put.field('etag') !== undefined) expect(put.field('etag')).toBe(read.field('etag'))
    }

    const upload = multipartOf([
      { name: 'title', content: 'T' },
      { name: 'file', filename: 'a', content: 'xyz' },
    ])
    const uploaded = await ask('POST', '/u', upload)
    if (name.includes('text')) {
      // The bytes are gone: an error that tells the operator why, and never a hang.
      expect([uploaded.status, String(errors[0]).includes('parsed before')]).toEqual([500, true])
    } else expect(uploaded.json().file.size).toBe(3)
    await service.close()
  })
})

describe('text that a parser has left', () => {
  it('is bounded in bytes', async () => {
    const service = createResourceService(memoryStore(), {
      resources: { '/c': collection() },
      limits: { bodySize: 100 },
    })
    const app = express()
      .disable('x-powered-by')
      .use(express.text({ type: '*/*' }), service)
    const port = await listenForTest(createServer(app))
    const post = async (fields: Readonly<Record<string, string>>, body: string) =>
      (await send(port, 'POST', '/c', { fields, body, chunked: true })).status
    for (const count of [46, 47]) {
      const statuses = [
        await post(JSON_TYPE, JSON.stringify({ a: 'ü'.repeat(count) })),
        await post(FORM, `a=${'%C3%BC'.repeat(15)}${'ü'.repeat(count - 42)}`),
      ]
      expect(statuses).toEqual(count === 46 ? [201, 201] : [413, 413])
    }
    await service.close()
  })
})

describe('content of length 0 behind a parser', () => {
  it.each([
    ['PUT', '/c/1', JSON_TYPE],
    ['POST', '/c', JSON_TYPE],
    ['PUT', '/docs/x', JSON_TYPE],
    ['PATCH', '/c/1', MERGE_PATCH],
    ['PATCH', '/patched', MERGE_PATCH],
  ])('is 400 as without it, and changes nothing: %s %s (RFC 8259 §2)', async (method, path, fields) => {
    const writes: unknown[] = []
    const service = createResourceService(memoryStore(), {
      resources: {
        '/c': collection({ afterCommit: (change) => writes.push(change.path) }),
        '/docs': collection({ types: ['*/*'] }),
      },
    })
    const app = express().disable('x-powered-by').use(json)
    app.use('/patched', patch({ read: () => ({ document: {} }), write: () => void writes.push('/patched') }))
    app.use(service)
    const port = await listenForTest(createServer(app))
    expect((await send(port, 'PUT', '/c/1', { fields: JSON_TYPE, body: '{"a":1}' })).status).toBe(201)
    const answer = await send(port, method, path, { fields: { ...fields, 'Content-Length': '0' } })
    expect([answer.status, answer.json().type, writes]).toEqual([
      400,
      'urn:problem-type:http-resource-service:malformed-body',
      ['/c/1'],
    ])
    expect((await send(port, 'GET', '/c/1')).json()).toEqual({ id: 1, a: 1 })
    await service.close()
  })
})

describe('a request without content', () => {
  it.each([
    ['POST', '/c', JSON_TYPE],
    ['POST', '/c', FORM],
    ['POST', '/u', { 'Content-Type': 'multipart/form-data; boundary=b' }],
    ['PUT', '/c/1', JSON_TYPE],
    ['PUT', '/docs/x', { 'Content-Type': 'text/plain' }],
    ['PATCH', '/patched', MERGE_PATCH],
  ])('has one response, whether or not it was read to its end before: %s %s %o', async (method, path, fields) => {
    const errors: unknown[] = []
    const onError = (error: unknown) => errors.push(error)
    const patched = mount('/patched', patch({ read: () => ({ document: {} }), write: () => {}, onError }))

    async function ask(options: ServerOptions, readBefore: (listener: RequestListener) => RequestListener) {
      const service = createResourceService(memoryStore(), {
        resources: {
          '/c': collection(),
          '/u': collection({ files: { file: {} } }),
          '/docs': collection({ types: ['*/*'] }),
        },
        onError,
      })
      const listener = readBefore((req, res) => patched(req, res, () => service(req, res)))
      const port = await listenForTest(createServer(options, listener))
      const answer = await send(port, method, path, { fields })
      await service.close()
      return [answer.status, answer.text]
    }

    const usual = await ask({}, (listener) => listener)
    const read = await ask({}, (listener) => (req, res) => void req.resume().on('end', () => listener(req, res)))
    // From release 24.12 on Node ends it by itself, before anything has been read.
    const ended = await ask({ optimizeEmptyRequests: true } as ServerOptions, (listener) => listener)
    expect([read, ended, errors]).toEqual([usual, usual, []])
  })
})

describe('content that is gone, where `req.body` holds what is neither JSON nor a form', () => {
  const FORM_DATA = { 'Content-Type': 'multipart/form-data; boundary=b' }
  const TEXT = { 'Content-Type': 'text/plain' }

  it.each([
    ['PUT', '/docs/x', TEXT, {}],
    ['PUT', '/docs/x', { 'Content-Type': 'image/png' }, {}],
    ['PUT', '/docs/x', FORM_DATA, { title: 'T' }],
    ['POST', '/docs', FORM_DATA, { title: 'T' }],
    ['POST', '/notes', TEXT, {}],
    ['POST', '/notes', FORM, new URLSearchParams('text=T')],
  ])('is 500 with an error that says so, and changes nothing: %s %s %o', async (method, path, fields, body) => {
    const errors: unknown[] = []
    const store = memoryStore()
    const service = createResourceService(store, {
      resources: {
        '/docs': collection({ types: ['*/*'] }),
        '/notes': collection({ textProperty: 'text' }),
      },
      onError: (error) => errors.push(error),
    })
    // As in Express 4, whose parsers leave `{}` for the content of every type, before another middleware reads it.
    const server = createServer((req, res) => {
      req.resume().on('end', () => service(Object.assign(req, { body }), res))
    })
    const port = await listenForTest(server)
    const answer = await send(port, method, path, { fields, body: 'text=T' })
    expect([answer.status, String(errors[0])]).toEqual([500, expect.stringContaining('req.body does not hold it')])
    expect([(await store.list('/docs', { limit: 1 })).items, (await store.list('/notes', { limit: 1 })).items]).toEqual(
      [[], []],
    )
    await service.close()
  })
})

describe('content that a host has Node decode with `req.setEncoding`', () => {
  it.each([undefined, {}])('is 500 with an error that says so, and is not stored: beside %o', async (body) => {
    const errors: unknown[] = []
    const service = createResourceService(memoryStore(), {
      resources: { '/docs': collection({ types: ['*/*'] }), '/c': collection({ files: { file: {} } }) },
      onError: (error) => errors.push(error),
    })
    // Parsers of Express 4 leave `{}` where they do not take the type.
    const server = createServer((req, res) => {
      service(Object.assign(req.setEncoding('utf8'), body && { body }), res)
    })
    const port = await listenForTest(server)
    const upload = multipartOf([{ name: 'file', filename: 'a', content: 'xyz' }])
    for (const [method, path, options] of [
      ['PUT', '/docs/a', { fields: { 'Content-Type': 'image/png' }, body: Buffer.from([0x89, 0xff]) }],
      ['PUT', '/docs/a', { fields: { 'Content-Type': 'text/plain' }, body: 'abc', chunked: true }],
      ['POST', '/c', { fields: JSON_TYPE, body: '{}' }],
      ['POST', '/c', { fields: FORM, body: 'a=1' }],
      ['POST', '/c', upload],
    ] as const) {
      expect([method, path, (await send(port, method, path, options)).status]).toEqual([method, path, 500])
      expect(String(errors.pop())).toContain('req.setEncoding was called')
    }
    expect((await send(port, 'GET', '/docs/a')).status).toBe(404)
    expect((await send(port, 'POST', '/c', { fields: FORM })).status).toBe(201)
    await service.close()
  })
})

it('the error for content that a host has read as text and left nowhere names `req.body`', async () => {
  const errors: unknown[] = []
  const service = createResourceService(memoryStore(), { onError: (error) => errors.push(error) })
  const server = createServer((req, res) => {
    req
      .setEncoding('utf8')
      .resume()
      .on('end', () => service(req, res))
  })
  const port = await listenForTest(server)
  expect((await send(port, 'PUT', '/a', { fields: JSON_TYPE, body: '{}' })).status).toBe(500)
  expect(String(errors[0])).toContain('let the parser set req.body')
  await service.close()
})

describe('text that a parser has decoded from another charset', () => {
  it('is stored as UTF-8, and says so (RFC 9110 §8.3.2)', async () => {
    const service = createResourceService(memoryStore(), {
      resources: {
        '/docs': collection({ types: ['*/*'] }),
        '/notes': collection({ textProperty: 'text' }),
        '/u': collection({ files: { file: { replaceable: true } } }),
      },
    })
    const app = express().disable('x-powered-by')
    app.use(express.text({ type: 'text/*' }), service)
    const port = await listenForTest(createServer(app))
    const fields = { 'Content-Type': 'text/plain;Charset="ISO-8859-1"; format=flowed' }
    const body = Buffer.from('grün', 'latin1')
    await send(port, 'POST', '/u', multipartOf([{ name: 'file', filename: 'a', content: 'xyz' }]))
    for (const path of ['/docs/a', '/u/1/file']) {
      const put = await send(port, 'PUT', path, { fields, body })
      expect([put.status < 300, put.field('etag')]).toEqual([true, undefined])
      const read = await send(port, 'GET', path)
      expect([read.field('content-type'), read.text]).toEqual(['text/plain; format=flowed; charset=utf-8', 'grün'])
    }
    expect((await send(port, 'POST', '/notes', { fields, body })).json()).toEqual({ id: 1, text: 'grün' })
    await service.close()
  })

  it('is stored as it came where the host keeps other text in `body`', async () => {
    const service = createResourceService(memoryStore(), { resources: { '/docs': collection({ types: ['*/*'] }) } })
    const server = createServer((req, res) => service(Object.assign(req, { body: 'set by another plugin' }), res))
    const port = await listenForTest(server)
    const fields = { 'Content-Type': 'text/plain; charset=iso-8859-1' }
    await send(port, 'PUT', '/docs/a', { fields, body: Buffer.from('grün', 'latin1') })
    const read = await send(port, 'GET', '/docs/a')
    expect([read.field('content-type'), [...read.body]]).toEqual([
      fields['Content-Type'],
      [...Buffer.from('grün', 'latin1')],
    ])
    await service.close()
  })
})
