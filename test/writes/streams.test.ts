import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type SqliteHandle, sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { MEASURED } from '../support/measured.ts'
import {
  JSON_TYPE,
  jsonOf,
  MERGE_PATCH,
  multipartOf,
  sendBytes,
  startDemo,
  startService,
  type Target,
  uploadOf,
} from './support.ts'

const MIB = 1024 * 1024

/** A store that counts bytes and keeps none of large content: what is tested is everything before it. */
function createSink(): { readonly store: ResourceStore; readonly sizes: number[] } {
  const store = memoryStore()
  const sizes: number[] = []
  const count = async (body: AsyncIterable<Uint8Array>): Promise<number> => {
    let size = 0
    for await (const chunk of body) size += chunk.length
    sizes.push(size)
    return size
  }
  const isStream = (body: unknown): body is AsyncIterable<Uint8Array> =>
    typeof body === 'object' && body !== null && Symbol.asyncIterator in body
  return {
    sizes,
    store: {
      ...store,
      async write(path, content, options) {
        const { body } = content
        return store.write(path, isStream(body) ? { ...content, body: String(await count(body)) } : content, options)
      },
      async stage(body) {
        const size = await count(body)
        const staged = await store.stage!(
          (async function* () {
            yield Buffer.from(String(size))
          })(),
        )
        return Object.defineProperty(staged, 'size', { value: size })
      },
    },
  }
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Bytes that are held on to, buffers included; garbage that waits to be collected is not. */
function measureHeld(): number {
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Sends a request of many equal pieces, with back-pressure, and watches the memory of this process. */
async function pour(
  port: number,
  head: string,
  total: number,
  tail = '',
  wrap = (piece: Buffer): Buffer => piece,
): Promise<{ text: string; growth: number }> {
  const socket = connect({ port, host: '127.0.0.1' })
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.write(head)
  const piece = wrap(Buffer.alloc(MIB, 'x'))
  const before = measureHeld()
  let peak = before
  for (let sent = 0; sent < total; sent += MIB) {
    if (!socket.write(piece)) await once(socket, 'drain')
    if (sent % (16 * MIB) === 0) peak = Math.max(peak, measureHeld())
  }
  socket.write(tail)
  await once(socket, 'close')
  return { text, growth: peak - before }
}

describe('large content', () => {
  const size = process.env['LARGE'] === '1' ? 1024 * MIB : 128 * MIB

  it('is stored by PUT in bounded memory, with a declared length and without (threat 58)', MEASURED, async () => {
    const { store, sizes } = createSink()
    const target = await startService({}, store)
    const head = 'PUT /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: text/plain\r\n'
    const declared = await pour(target.port, `${head}Content-Length: ${size}\r\n\r\n`, size)
    expect([declared.text.slice(0, 12), sizes]).toEqual(['HTTP/1.1 201', [size]])
    expect(declared.growth).toBeLessThan(32 * MIB)
    const inChunk = (piece: Buffer): Buffer =>
      Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
    const chunked = await pour(target.port, `${head}Transfer-Encoding: chunked\r\n\r\n`, size, '0\r\n\r\n', inChunk)
    expect([chunked.text.slice(0, 12), sizes]).toEqual(['HTTP/1.1 204', [size, size]])
    expect(chunked.growth).toBeLessThan(32 * MIB)
    await target.close()
  })

  it('is stored by multipart POST in bounded memory (row F11)', MEASURED, async () => {
    const { store, sizes } = createSink()
    const target = await startDemo(store)
    const part = (name: string): string => `--b\r\nContent-Disposition: form-data; name="${name}"`
    const start = `${part('title')}\r\n\r\nT\r\n${part('file')}; filename="a"\r\n\r\n`
    const end = '\r\n--b--\r\n'
    const head = `POST /uploads HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: ${size + start.length + end.length}\r\n\r\n`
    const { text, growth } = await pour(target.port, head + start, size, end)
    expect([text.slice(0, 12), sizes]).toEqual(['HTTP/1.1 202', [size]])
    expect(growth).toBeLessThan(32 * MIB)
    const location = /location: (\S+)/i.exec(text)![1]!
    expect((await target.send('GET', location)).json().file.size).toBe(size)
    await target.close()
  })

  it('is given up where a later part of its form is refused', async () => {
    const given: boolean[] = []
    const store = memoryStore()
    const stage: ResourceStore['stage'] = async (body, options) => {
      const staged = await store.stage!(body, options)
      const index = given.push(false) - 1
      return { ...staged, discard: () => void (given[index] = true) }
    }
    const resources = { '/docs': collection({ files: { a: {}, b: {} } }) }
    const target = await startService({ resources }, { ...store, stage })
    const content = 'x'.repeat(200_000)
    const form = multipartOf(['a', 'b', 'c'].map((name) => ({ name, filename: name, content })))
    expect((await target.send('POST', '/docs', form)).status).toBe(422)
    expect(given).toEqual([true, true])
    await target.close()
  })

  it('may be written under a condition: it is taken in first, and given up where the condition fails', async () => {
    let discarded = 0
    const store = memoryStore()
    const target = await startService(
      {},
      {
        ...store,
        async stage(body, options) {
          const staged = await store.stage!(body, options)
          const { discard } = staged
          return Object.assign(staged, {
            discard() {
              discarded++
              return discard()
            },
          })
        },
      },
    )
    const big = 'b'.repeat(200_000)
    const tag = (await target.send('PUT', '/a', { body: 'v1' })).field('etag')!
    const fields = { 'If-Match': tag }
    const answers = await Promise.all([1, 2, 3].map((n) => target.send('PUT', '/a', { fields, body: big + n })))
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 412, 412])
    const winner = answers.findIndex(({ status }) => status === 204) + 1
    expect((await target.send('GET', '/a')).text).toBe(big + winner)
    expect(discarded).toBeLessThanOrEqual(2)
    await target.close()
  })

  it('may be written under a condition where the store cannot stage, up to the limit', async () => {
    const { stage: _, ...store } = memoryStore()
    const target = await startService({ limits: { bodySize: 300_000 } }, store)
    const tag = (await target.send('PUT', '/a', { body: 'v1' })).field('etag')!
    const body = 'b'.repeat(300_001)
    expect((await target.send('PUT', '/a', { fields: { 'If-Match': tag }, body })).status).toBe(413)
    expect((await target.send('PUT', '/a', { fields: { 'If-Match': tag }, body: body.slice(1) })).status).toBe(204)
    await target.close()
  })
})

describe('limits', () => {
  it('of parsed content are exact, however the content comes (row H177, threat 58)', async () => {
    const target = await startService({ limits: { bodySize: 100_000 } })
    const json = (size: number): string => JSON.stringify({ a: 'x'.repeat(size - 8) })
    await target.send('PUT', '/p', jsonOf({}))
    for (const chunked of [false, true]) {
      for (const [method, path, fields] of [
        ['POST', '/c', JSON_TYPE],
        ['PATCH', '/p', MERGE_PATCH],
      ] as const) {
        const full = await target.send(method, path, { fields, body: json(100_000), chunked })
        expect([method, chunked, full.status]).toEqual([method, chunked, method === 'POST' ? 201 : chunked ? 204 : 200])
        expect((await target.send(method, path, { fields, body: json(100_001), chunked })).status).toBe(413)
      }
      // JSON that is kept as it comes has no limit, and is checked where it could be parsed.
      const large = await target.send('PUT', '/large', { fields: JSON_TYPE, body: json(100_001), chunked })
      expect([chunked, large.status]).toEqual([chunked, chunked ? 204 : 201])
      expect((await target.send('GET', '/large')).text).toBe(json(100_001))
      const broken = { fields: JSON_TYPE, body: json(90_000).slice(0, -1), chunked }
      expect((await target.send('PUT', '/broken', broken)).status).toBe(400)
    }
    await target.close()
  })

  it('of stored content are exact', async () => {
    const target = await startService({ resources: { '/a/{n}': document({ maxSize: 100_000 }) } })
    for (const chunked of [false, true]) {
      const body = 'x'.repeat(100_001)
      expect((await target.send('PUT', `/a/${chunked}`, { body, chunked })).status).toBe(413)
      expect((await target.send('GET', `/a/${chunked}`)).status).toBe(404)
      expect((await target.send('PUT', `/a/${chunked}`, { body: body.slice(1), chunked })).status).toBe(201)
    }
    await target.close()
  })

  it('refuse by the declared length alone, at once (row H177)', async () => {
    const target = await startService()
    const head =
      'POST /a HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000000000000\r\n\r\n'
    expect((await sendBytes(target.port, head)).status).toBe(413)
    await target.close()
  })
})

describe('uploads that are broken off', () => {
  /** Sends the first bytes of a request and goes away. */
  async function breakOff(port: number, bytes: Buffer | string): Promise<void> {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.write(bytes)
    await sleep(Math.random() * 10)
    if (Math.random() < 0.5) socket.resetAndDestroy()
    else socket.destroy()
  }

  it('leave no resource and no descriptor: 200 of them (row F12, threat 11, I5)', async () => {
    const demo: Target = await startDemo()
    await demo.send('PUT', '/docs/kept', { body: 'kept' })
    const descriptors = (): number => readdirSync('/proc/self/fd').length
    const before = descriptors()
    const { body, fields } = uploadOf('x'.repeat(200_000))
    const type = (fields as Record<string, string>)['Content-Type']
    const multipart = Buffer.concat([
      Buffer.from(
        `POST /uploads HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\nContent-Length: ${body!.length}\r\n\r\n`,
      ),
      Buffer.from(body!),
    ])
    const put = (path: string): string =>
      `PUT ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\n${'y'.repeat(300_000)}`
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        Array.from({ length: 10 }, (_, index) => {
          const cut = 100 + Math.floor(Math.random() * (multipart.length - 200))
          if (index % 2 === 0) return breakOff(demo.port, multipart.subarray(0, cut))
          return breakOff(demo.port, put(index % 4 === 1 ? '/docs/kept' : `/docs/new${round}${index}`))
        }),
      )
    }
    await expect.poll(descriptors).toBeLessThanOrEqual(before + 2)
    expect((await demo.store.list('/uploads', { limit: 10 })).items).toEqual([])
    expect((await demo.store.list('work', { limit: 10 })).items).toEqual([])
    expect((await demo.store.list('/docs', { limit: 10 })).items.map(({ path }) => path)).toEqual(['/docs/kept'])
    expect((await demo.send('GET', '/docs/kept')).text).toBe('kept')
    await demo.close()
  })

  it('and uploads that are refused at their end leave no content in a SQLite file (threat 11, F12, I5)', async () => {
    const Database = createRequire(import.meta.url)('libsql') as new (file: string) => SqliteHandle
    const database = new Database(':memory:')
    const store = sqliteStore(database)
    const demo = await startDemo(store)
    const count = (table: string): number =>
      (database.prepare(`SELECT count(*) AS n FROM resource_${table}`).get() as { n: number }).n
    const tag = (await demo.send('PUT', '/docs/kept', { body: 'k'.repeat(400_000) })).field('etag')!
    const [states, contents] = [count('states'), count('contents')]
    const { body, fields } = uploadOf('x'.repeat(600_000))
    const type = (fields as Record<string, string>)['Content-Type']
    const head = `POST /uploads HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\nContent-Length: ${body!.length}\r\n\r\n`
    const whole = Buffer.concat([Buffer.from(head), Buffer.from(body!)])
    for (let round = 0; round < 10; round++) {
      await Promise.all(
        Array.from({ length: 4 }, () =>
          breakOff(demo.port, whole.subarray(0, 1000 + Math.floor(Math.random() * 500_000))),
        ),
      )
    }
    const untitled = Buffer.from(Buffer.from(body!).toString().replace('name="title"', 'name="other"'))
    expect((await demo.send('POST', '/uploads', { fields: fields!, body: untitled })).status).toBe(422)
    const stale = { 'If-Match': tag }
    const rivals = [1, 2, 3].map((n) => demo.send('PUT', '/docs/kept', { fields: stale, body: `${n}`.repeat(400_000) }))
    expect((await Promise.all(rivals)).map(({ status }) => status).sort()).toEqual([204, 412, 412])
    // What the winner replaced stays for a while, for those who are still reading it.
    await expect.poll(() => count('contents')).toBe(contents + 1)
    expect(count('states')).toBe(states)
    await demo.close()
    await store.close?.()
  })

  it('do not block others: a slow writer keeps no lock (threat 141)', async () => {
    const demo = await startDemo()
    await demo.send('PUT', '/docs/slow', { body: 'v0' })
    const slow = connect({ port: demo.port, host: '127.0.0.1' })
    slow.write('PUT /docs/slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 200000\r\n\r\nxxx')
    expect((await demo.send('PUT', '/docs/slow', { body: 'v1' })).status).toBe(204)
    expect((await demo.send('GET', '/docs/slow')).text).toBe('v1')
    slow.write('x'.repeat(200_000 - 3))
    const [answer] = (await once(slow, 'data')) as [Buffer]
    expect(answer.toString()).toContain('HTTP/1.1 204')
    expect((await demo.send('GET', '/docs/slow')).text).toHaveLength(200_000)
    await demo.close()
  })

  it('time out where nothing comes any more: 408, and nothing is stored (row H173, threat 9)', async () => {
    const target = await startService({ idleTimeout: 100 })
    const head = 'PUT /a HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n'
    expect((await sendBytes(target.port, head, 'abc')).status).toBe(408)
    expect((await target.send('GET', '/a')).status).toBe(404)
    await target.close()
  })
})
