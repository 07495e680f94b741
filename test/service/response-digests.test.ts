import { describe, expect, it, vi } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { LargeBody, ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { digestOf } from '../support/digests.ts'
import { ALPHABET } from '../support/fixture-store.ts'
import { createDatabaseFile } from '../support/sqlite.ts'
import { serve, serveFixtures } from './serve.ts'

const A = '/docs/a.bin'
const BOTH = ['Want-Repr-Digest: sha-256=1', 'Want-Content-Digest: sha-256=1']

const fieldsOf = (answer: Answer): readonly (string | undefined)[] => [
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

  it('get the algorithm that each request wants, whichever was wanted before', async () => {
    const { send } = await serveFixtures()
    for (const algorithm of ['sha-256', 'sha-512', 'sha-256'] as const) {
      const answer = await send('GET', A, [`Want-Repr-Digest: ${algorithm}=1`])
      expect(fieldsOf(answer)).toEqual([digestOf(ALPHABET, algorithm), undefined])
    }
  })

  it('get the digest of what render gives, also where it fills one buffer for every response', async () => {
    const buffer = Buffer.alloc(1)
    const render = (content: Uint8Array) => buffer.fill(content[0]!)
    const resources = { '/docs/{name}': document({ representations: [{ type: 'application/x-first', render }] }) }
    const store = memoryStore()
    const { send } = await serve(store, { resources })
    for (const text of ['a', 'b']) {
      await store.write(`/docs/${text}`, { contentType: 'text/plain', body: text }, { expect: 'any' })
      const answer = await send('GET', `/docs/${text}`, [...BOTH, 'Accept: application/x-first'])
      expect(fieldsOf(answer)).toEqual([digestOf(text), digestOf(text)])
    }
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
    const { send } = await serve(memoryStore(), {
      resources: { '/users': collection({ putResponse: 'representation' }) },
    })
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

  it('are right where a store fills one buffer for every chunk', async () => {
    const store = memoryStore()
    const reusing = {
      ...store,
      read(path: string) {
        const state = makeLarge(store, path, () => undefined) as { body: LargeBody }
        const { open } = state.body
        const buffer = Buffer.alloc(10)
        const body: LargeBody = {
          async *open(first, last) {
            for (let at = first; at <= last; at += buffer.length) {
              const end = Math.min(at + buffer.length - 1, last)
              for await (const chunk of open(at, end)) yield buffer.subarray(0, Buffer.from(chunk).copy(buffer))
            }
          },
        }
        return { ...state, body }
      },
    } as unknown as ResourceStore
    await store.write('/docs/a', { contentType: 'application/x-test', body: Buffer.from(ALPHABET) }, { expect: 'any' })
    const { send } = await serve(reusing, { resources: { '/docs/{name}': document() } })
    const part = await send('GET', '/docs/a', [...BOTH, 'Range: bytes=0-24'])
    expect([part.body.toString(), fieldsOf(part)[1]]).toEqual([ALPHABET.slice(0, 25), digestOf(ALPHABET.slice(0, 25))])
  })
})

describe('Want-* on large content that a store keeps', () => {
  const bytes = Buffer.alloc(3_000_000, 'large content ')

  async function serveLarge(store: ResourceStore) {
    const served = await serve(store, { resources: { '/docs/{name}': document(), '/items': collection() } })
    await served.send('PUT', '/docs/large', ['Content-Type: application/x-test'], bytes)
    return served
  }

  it.each(['memory', 'sqlite'])(
    'is answered with the digest that was made while it was written: %s (RFC 9530 §3)',
    async (kind) => {
      const file = await createDatabaseFile()
      closeAfterTest(() => file.remove())
      const store = kind === 'memory' ? memoryStore() : sqliteStore(file.open(), { sweepInterval: 0 })
      const { send } = await serveLarge(store)
      const digest = digestOf(bytes)
      expect(fieldsOf(await send('GET', '/docs/large', BOTH))).toEqual([digest, digest])
      expect(fieldsOf(await send('HEAD', '/docs/large', BOTH))).toEqual([digest, undefined])
      const part = await send('GET', '/docs/large', [...BOTH, 'Range: bytes=0-99'])
      expect(fieldsOf(part)).toEqual([digest, digestOf(bytes.subarray(0, 100))])
      const wide = await send('GET', '/docs/large', [...BOTH, 'Range: bytes=0-65536'])
      expect(fieldsOf(wide)).toEqual([digest, undefined])
      const weights = ['Want-Repr-Digest: sha-512=10, sha-256=1', 'Want-Content-Digest: sha-512=10, sha-256=0']
      expect(fieldsOf(await send('GET', '/docs/large', weights))).toEqual([digest, undefined])
      const json = (subtype: string) => [`Content-Type: application/${subtype}`, ...BOTH]
      const written = [
        await send('POST', '/items', json('json'), JSON.stringify({ text: 'x'.repeat(100_000) })),
        await send('PATCH', '/items/1', json('merge-patch+json'), '{"a":1}'),
      ]
      for (const answer of written) {
        expect(answer.body.length).toBeGreaterThan(100_000)
        expect(fieldsOf(answer)).toEqual([digestOf(answer.body), digestOf(answer.body)])
      }
      await store.close?.()
    },
  )

  it('is 500 where a store gives anything but 32 bytes', async () => {
    const sound = memoryStore()
    const read: ResourceStore['read'] = async (path, options) =>
      ({ ...(await sound.read(path, options)), sha256: 'none' }) as never
    const { send } = await serveLarge({ ...sound, read })
    vi.spyOn(console, 'error').mockReturnValue()
    expect((await send('GET', '/docs/large', BOTH)).status).toBe(500)
    vi.restoreAllMocks()
  })

  it('is of the coded bytes where Content-Encoding is part of the representation (RFC 9530 §3, Appendix B.4)', async () => {
    const store = memoryStore()
    const body = Buffer.from('0b09807b2268656c6c6f223a2022776f726c64227d0a03', 'hex')
    const content = { contentType: 'application/json', contentEncoding: 'br', body }
    await store.write('/docs/x', content, { expect: 'any' })
    const { send } = await serve(store, { resources: { '/docs/{name}': document() } })
    const answer = await send('GET', '/docs/x', [...BOTH, 'Accept-Encoding: br'])
    const digest = 'sha-256=:d435Qo+nKZ+gLcUHn7GQtQ72hiBVAgqoLsZnZPiTGPk=:'
    expect([answer.field('Content-Encoding'), ...fieldsOf(answer)]).toEqual(['br', digest, digest])
  })

  it('has the values of the examples: whole, and bytes 10 to 18 (RFC 9530 Appendix B.1, B.5)', async () => {
    const store = memoryStore()
    await store.write('/docs/x', { contentType: 'application/json', body: '{"hello": "world"}\n' }, { expect: 'any' })
    const { send } = await serve(store, { resources: { '/docs/{name}': document() } })
    const whole = 'sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:'
    expect(fieldsOf(await send('GET', '/docs/x', BOTH))).toEqual([whole, whole])
    expect(fieldsOf(await send('GET', '/docs/x', [...BOTH, 'Range: bytes=10-18']))).toEqual([
      whole,
      'sha-256=:jjcgBDWNAtbYUXI37CVG3gRuGOAjaaDRGpIUFsdyepQ=:',
    ])
  })

  it('is left out of a page that is too large to be one value', async () => {
    const { send, store } = await (async () => {
      const store = memoryStore()
      return { store, ...(await serve(store, { resources: { '/users': collection() } })) }
    })()
    const body = JSON.stringify({ text: 'x'.repeat(60_000) })
    for (let i = 0; i < 6; i++) await store.create('/users', { contentType: 'application/json', body })
    const page = await send('GET', '/users', BOTH)
    expect([page.status, ...fieldsOf(page)]).toEqual([200, undefined, undefined])
    expect(fieldsOf(await send('HEAD', '/users', BOTH))).toEqual([undefined, undefined])
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
