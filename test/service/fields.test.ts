import { describe, expect, it } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { serve } from './serve.ts'

const text = 'Content-Type: text/plain'

describe('fields', () => {
  it('of one answer count before those of all: Cross-Origin-Resource-Policy is sent once', async () => {
    const cors = { origins: ['https://a.example'], resourcePolicy: 'cross-origin' } as const
    const { send } = await serve(memoryStore(), { cors, resources: { '/d/{name}': document() } })
    await send('PUT', '/d/h', ['Content-Type: text/html'], '<p>')
    await send('PUT', '/d/t', [text], 'text')
    expect((await send('GET', '/d/h')).field('Cross-Origin-Resource-Policy')).toBe('same-origin')
    expect((await send('GET', '/d/t')).field('Cross-Origin-Resource-Policy')).toBe('cross-origin')
    // A path that names nothing tells scripts so (row X15).
    const missing = await send('GET', '/d', ['Origin: https://a.example'])
    expect([missing.status, missing.field('Access-Control-Allow-Origin')]).toEqual([404, 'https://a.example'])
  })

  it('keep XML that calls itself audio from acting as a page (threat 114)', async () => {
    const { send } = await serve(memoryStore(), { resources: { '/d/{name}': document() } })
    await send('PUT', '/d/a', ['Content-Type: audio/x+xml'], '<x/>')
    expect((await send('GET', '/d/a')).field('Content-Security-Policy')).toContain('sandbox')
  })

  it('that say of a form too little to read it are refused before it is asked for (row H76)', async () => {
    const { send } = await serve(memoryStore(), { resources: { '/users': collection() } })
    const answer = await send('POST', '/users', [
      'Content-Type: multipart/form-data',
      'Expect: 100-continue',
      'Content-Length: 10',
    ])
    expect(answer.status).toBe(400)
  })

  it('that say a language which could not be sent again are refused before the content is asked for (row H76)', async () => {
    const { send } = await serve(memoryStore(), {
      resources: { '/d/{name}': document({ storedHeaders: ['Content-Language'] }) },
    })
    const more = ['Content-Language: <script>', 'Expect: 100-continue', 'Content-Length: 10']
    expect((await send('PUT', '/d/a', [text, ...more])).status).toBe(400)
  })

  it('may say a boundary of 70 characters, and of no more (RFC 2046 §5.1.1)', async () => {
    const { send } = await serve(memoryStore(), { resources: { '/users': collection() } })
    const post = async (boundary: string): Promise<number> => {
      const type = `Content-Type: multipart/form-data; boundary=${boundary}`
      const part = `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--${boundary}--\r\n`
      return (await send('POST', '/users', [type], part)).status
    }
    expect([await post('b'.repeat(70)), await post('b'.repeat(71)), await post('b')]).toEqual([201, 400, 201])
  })

  it('come after a target of 2048 characters, and of no more', async () => {
    const { send } = await serve(memoryStore(), {})
    const target = (length: number): string => `/x?${'a'.repeat(length - 3)}`
    expect([(await send('GET', target(2048))).status, (await send('GET', target(2049))).status]).toEqual([404, 414])
  })

  it('that name a transfer coding that is not decoded are refused (RFC 9112 §6.1)', async () => {
    const { send } = await serve(memoryStore(), {})
    const answer = await send('PUT', '/x', [text, 'Transfer-Encoding: gzip, chunked'], '1\r\nx\r\n0\r\n\r\n')
    expect(answer.status).toBe(501)
    expect((await send('GET', '/x')).status).toBe(404)
  })

  it('name no tag of a rendition where the state has none', async () => {
    const store: ResourceStore = {
      ...memoryStore(),
      read: (path) => ({
        path,
        version: '1',
        entityTag: '',
        contentType: 'application/json',
        size: 2,
        body: '{}',
        lastModified: 1e12,
      }),
    }
    const toText = { type: 'text/plain', render: () => 'text' }
    const { send } = await serve(store, {
      resources: { '/x': document({ types: ['application/json'], representations: [toText] }) },
    })
    const answer = await send('GET', '/x', ['Accept: text/plain'])
    expect([answer.text, answer.field('ETag')]).toEqual(['text', undefined])
    const date = answer.field('Last-Modified')
    expect((await send('GET', '/x', ['Accept: text/plain', `If-Modified-Since: ${date}`])).status).toBe(304)
  })
})
