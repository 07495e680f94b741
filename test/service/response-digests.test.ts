import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { LargeBody, ResourceStore } from '../../src/stores/types.ts'
import type { RawAnswer } from '../support/ask.ts'
import { ALPHABET } from '../support/fixture-store.ts'
import { serve, serveFixtures } from './serve.ts'

const A = '/docs/a.bin'
const BOTH = ['Want-Repr-Digest: sha-256=1', 'Want-Content-Digest: sha-256=1']

function digestOf(content: string | Uint8Array, algorithm = 'sha-256'): string {
  const hash = createHash(algorithm.replace('-', '')).update(content).digest('base64')
  return `${algorithm}=:${hash}:`
}

const fieldsOf = (answer: RawAnswer): readonly (string | undefined)[] => [
  answer.field('Repr-Digest'),
  answer.field('Content-Digest'),
]

describe('Want-Repr-Digest and Want-Content-Digest', () => {
  it('are answered on a whole representation with equal digests, and no-transform (RFC 9530 §2, §3)', async () => {
    const { send } = await serveFixtures()
    const answer = await send('GET', A, BOTH)
    expect(fieldsOf(answer)).toEqual([digestOf(ALPHABET), digestOf(ALPHABET)])
    expect(answer.field('Cache-Control')).toBe('no-cache, no-transform')
    const plain = await send('GET', A)
    expect([...fieldsOf(plain), plain.field('Cache-Control')]).toEqual([undefined, undefined, 'no-cache'])
  })

  it('select the algorithm of the highest weight (RFC 9530 §4)', async () => {
    const { send } = await serveFixtures()
    const answer = await send('GET', A, [
      'Want-Repr-Digest: sha-256=3, sha-512=5, md5=10',
      'Want-Content-Digest: md5=1',
    ])
    expect(fieldsOf(answer)).toEqual([digestOf(ALPHABET, 'sha-512'), undefined])
  })

  it('get the digest of the whole and that of the part on a 206 (RFC 9530 §3, Appendix B.5)', async () => {
    const { send } = await serveFixtures()
    const one = await send('GET', A, [...BOTH, 'Range: bytes=0-4'])
    expect([one.status, ...fieldsOf(one)]).toEqual([206, digestOf(ALPHABET), digestOf('abcde')])
    const several = await send('GET', A, [...BOTH, 'Range: bytes=0-0,9-9'])
    expect([several.status, ...fieldsOf(several)]).toEqual([206, digestOf(ALPHABET), digestOf(several.body)])
  })

  it('get Repr-Digest alone on a HEAD, of what a GET would send (RFC 9530 §3, Appendix B.2)', async () => {
    const { send } = await serveFixtures()
    expect(fieldsOf(await send('HEAD', A, BOTH))).toEqual([digestOf(ALPHABET), undefined])
  })

  it('get nothing on 304, 404 and 416', async () => {
    const { send } = await serveFixtures()
    const tag = (await send('GET', A)).field('ETag')
    for (const [target, field, status] of [
      [A, `If-None-Match: ${tag}`, 304],
      ['/docs/none', 'Accept: */*', 404],
      [A, 'Range: bytes=99-', 416],
    ] as const) {
      const answer = await send('GET', target, [...BOTH, field])
      expect([answer.status, ...fieldsOf(answer)]).toEqual([status, undefined, undefined])
    }
  })

  it('are answered on listings, and on writes that carry a representation', async () => {
    const { send } = await serve(memoryStore(), { resources: { '/users': collection({ replaced: 'representation' }) } })
    const json = 'Content-Type: application/json'
    const created = await send('POST', '/users', [json, ...BOTH], '{"name":"Ada"}')
    expect([created.status, ...fieldsOf(created)]).toEqual([201, digestOf(created.body), digestOf(created.body)])
    const put = await send('PUT', '/users/1', [json, ...BOTH], '{"name":"Grace"}')
    expect([put.status, ...fieldsOf(put)]).toEqual([200, digestOf(put.body), digestOf(put.body)])
    const patch = ['Content-Type: application/merge-patch+json', ...BOTH]
    const patched = await send('PATCH', '/users/1', patch, '{"name":"Edsger"}')
    expect([patched.status, ...fieldsOf(patched)]).toEqual([200, digestOf(patched.body), digestOf(patched.body)])
    const page = await send('GET', '/users', BOTH)
    expect([page.status, ...fieldsOf(page)]).toEqual([200, digestOf(page.body), digestOf(page.body)])
  })

  it('are ignored where they are malformed (RFC 9530 §4)', async () => {
    const { send } = await serveFixtures()
    expect(fieldsOf(await send('GET', A, ['Want-Repr-Digest: sha-256=1,', 'Want-Content-Digest: ?']))).toEqual([
      undefined,
      undefined,
    ])
  })

  it('never have large content read: only a short range of it gets a digest', async () => {
    const store = memoryStore()
    let read = 0
    const large = {
      ...store,
      read: (path: string) => makeLarge(store, path, (size) => (read += size)),
    } as ResourceStore
    const { send } = await serve(large, { resources: { '/docs/{name}': document() } })
    await send('PUT', '/docs/large', ['Content-Type: application/x-test'], Buffer.alloc(300_000, 'x'))
    read = 0
    const head = await send('HEAD', '/docs/large', BOTH)
    expect([...fieldsOf(head), read]).toEqual([undefined, undefined, 0])
    const whole = await send('GET', '/docs/large', BOTH)
    expect([...fieldsOf(whole), read]).toEqual([undefined, undefined, 300_000])
    const part = await send('GET', '/docs/large', [...BOTH, 'Range: bytes=0-99'])
    expect(fieldsOf(part)).toEqual([undefined, digestOf('x'.repeat(100))])
  })
})

/** A state as a store of large content gives it. */
function makeLarge(store: ResourceStore, path: string, onRead: (size: number) => void): unknown {
  const state = store.read(path) as { body: Uint8Array; size: number } | undefined
  if (state === undefined || !('body' in state)) return state
  const bytes = Buffer.from(state.body)
  const body: LargeBody = {
    async *open(first, last) {
      onRead(last - first + 1)
      yield bytes.subarray(first, last + 1)
    },
  }
  return { ...state, body }
}
