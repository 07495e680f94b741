import { describe, expect, it } from 'vitest'
import { parseDigestField } from '../../src/protocol/digest-fields.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { serve } from './serve.ts'

// The values of RFC 9530 Appendices B, C and D that other files do not have.

const BROTLI = Buffer.from('0b09807b2268656c6c6f223a2022776f726c64227d0a03', 'hex')
const BOOK = '{\n  "id": "123",\n  "title": "New Title"\n}\n'
const STATUS = '{\n  "status": "created",\n  "id": "123",\n  "ts": 1569327729,\n  "instance": "/books/123"\n}\n'
const ERROR = '{\n  "title": "Not Found",\n  "detail": "Cannot PATCH a non-existent resource",\n  "status": 404\n}\n'

const serveDocs = () => serve(memoryStore(), { resources: { '/items/{name}': document(), '/books': collection() } })

describe('the digests of RFC 9530 Appendix B', () => {
  it.each([
    [
      'B.6',
      BROTLI,
      'sha-512',
      'db7fdBbgZMgX1Wb2MjA8zZj+rSNgfmDCEEXM8qLWfpfoNY0sCpHAzZbj09X1/7HAb7Od5Qfto4QpuBsFbUO3dQ==',
    ],
    ['B.7 and B.9', BOOK, 'sha-256', 'uVSlinTTdQUwm2On4k8TJUikGN1bf/Ds8WPX4oe0h9I='],
    ['B.8', STATUS, 'sha-256', 'yXIGDTN5VrfoyisKlXgRKUHHMs35SNtyC3szSz1dbO8='],
    ['B.10', ERROR, 'sha-256', 'EXB0S2VF2H7ijkAVJkH1Sm0pBho0iDZcvVUHHXTTZSA='],
  ])('are those that an upload is compared with, and that a response states: %s', async (_, body, algorithm, value) => {
    const { send } = await serveDocs()
    const digest = `${algorithm}=:${value}:`
    const type = 'Content-Type: application/octet-stream'
    expect((await send('PUT', '/items/1', [type, `Repr-Digest: ${digest}`], body)).status).toBe(201)
    expect((await send('PUT', '/items/1', [type, `Repr-Digest: ${digest}`], `${body} `)).status).toBe(400)
    const answer = await send('GET', '/items/1', [`Want-Repr-Digest: ${algorithm}=1`])
    expect(answer.field('Repr-Digest')).toBe(digest)
  })

  it.each(['POST', 'PATCH'])('of a request are those of its content: %s (B.7 to B.9)', async (method) => {
    const { send } = await serveDocs()
    await send('POST', '/books', ['Content-Type: application/json'], '{"title":"Old Title"}')
    const type = method === 'POST' ? 'application/json' : 'application/merge-patch+json'
    const fields = [`Content-Type: ${type}`, 'Repr-Digest: sha-256=:mEkdbO7Srd9LIOegftO0aBX+VPTVz7/CSHes2Z27gc4=:']
    const path = method === 'POST' ? '/books' : '/books/1'
    expect((await send(method, path, fields, '{"title": "New Title"}')).status).toBe(400)
    const status = (await send(method, path, fields, '{"title": "New Title"}\n')).status
    expect(status).toBe(method === 'POST' ? 201 : 200)
  })

  it('are not sent with an error, which B.10 permits: the resource has none', async () => {
    const { send } = await serveDocs()
    const answer = await send('GET', '/items/none', ['Want-Repr-Digest: sha-256=1'])
    expect([answer.status, answer.field('Repr-Digest')]).toEqual([404, undefined])
  })
})

describe('the wishes of RFC 9530 Appendix C', () => {
  it.each([
    ['C.1', 'sha-256=3, sha=10', 'sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:'],
    [
      'C.2 and C.3, where a server may answer by any algorithm, or 400; here the field is left out',
      'sha=10',
      undefined,
    ],
  ])('get the digest by an algorithm that is supported: %s', async (_, wanted, digest) => {
    const { send } = await serveDocs()
    await send('PUT', '/items/1', ['Content-Type: application/json'], '{"hello": "world"}\n')
    const answer = await send('GET', '/items/1', [`Want-Repr-Digest: ${wanted}`])
    expect([answer.status, answer.field('Repr-Digest')]).toEqual([200, digest])
  })
})

describe('the sample values of RFC 9530 Appendix D', () => {
  const SHA_256 = 'sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:'
  const SHA_512 = 'sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:'
  const OTHERS =
    'md5=:Sd/dVLAcvNLSq16eXua5uQ==:, sha=:07CavjDP4u3/TungoUHJO/Wzr4c=:, unixsum=:GQU=:, unixcksum=:7zsHAA==:, ' +
    'adler=:OZkGFw==:, crc32c=:Q3lHIA==:'

  it.each([SHA_256, SHA_512, `${OTHERS}, ${SHA_256}, ${SHA_512}`])('are those of the content: %s', async (digest) => {
    const { send } = await serveDocs()
    const put = async (body: string): Promise<number> =>
      (await send('PUT', '/items/1', ['Content-Type: application/json', `Content-Digest: ${digest}`], body)).status
    expect([await put('{"hello": "world"}\n'), await put('{"hello": "world"}')]).toEqual([400, 201])
  })

  it('by other algorithms are read and not compared', () => {
    expect(parseDigestField(OTHERS)).toEqual({
      digests: [],
      invalid: [],
      unknown: ['md5', 'sha', 'unixsum', 'unixcksum', 'adler', 'crc32c'],
    })
  })
})
