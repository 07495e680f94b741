import { describe, expect, it, vi } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { LargeBody, ResourceStore } from '../../src/stores/types.ts'
import { serve } from './serve.ts'

const text = 'Content-Type: text/plain'

describe('hooks that fail', () => {
  it('leave no request without its answer: onError, at once or later', async () => {
    const store: ResourceStore = {
      ...memoryStore(),
      read: () => {
        throw new Error('broken')
      },
    }
    for (const onError of [
      () => Promise.reject(new Error('hook')),
      () => {
        throw new Error('hook')
      },
    ]) {
      const { send } = await serve(store, { onError: onError as () => void })
      expect((await send('GET', '/x')).status).toBe(500)
    }
    const formatError = () => {
      throw new Error('format')
    }
    const onError = () => {
      throw new Error('hook')
    }
    const { send } = await serve(memoryStore(), { formatError, onError })
    expect((await send('GET', '/x')).status).toBe(500)
  })
})

describe('a log that cannot be written (issue 17: "die, fall silent, or fill up")', () => {
  it('costs no request its answer, and does not end the process', async () => {
    const uncaught: unknown[] = []
    const onUncaught = (error: unknown): void => void uncaught.push(error)
    process.on('uncaughtException', onUncaught).on('unhandledRejection', onUncaught)
    const log = vi.spyOn(console, 'error').mockImplementation(() => {
      throw Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
    })
    try {
      const read = () => {
        throw new Error('broken')
      }
      for (const explain of [
        () => {
          throw new Error('no log')
        },
        () => Promise.reject(new Error('no log')),
      ]) {
        const { send } = await serve({ ...memoryStore(), read }, { explain: explain as () => void })
        expect((await send('GET', '/x')).status).toBe(500)
        expect((await send('POST', '/x')).status).toBe(415)
      }
      expect(log).toHaveBeenCalledTimes(2)
      await new Promise((resolve) => setTimeout(resolve, 20))
      expect(uncaught).toEqual([])
    } finally {
      log.mockRestore()
      process.off('uncaughtException', onUncaught).off('unhandledRejection', onUncaught)
    }
  })
})

describe('a store that says another size than its content has (threat 149)', () => {
  const faulty = (size: number, body: string | Uint8Array): ResourceStore => ({
    ...memoryStore(),
    read: (path) => ({ path, version: '1', contentType: 'text/plain', size, body }),
  })

  it.each([
    ['characters for bytes', 3, Buffer.from('ééé')],
    ['characters for bytes of text', 3, 'ééé'],
    ['more than there is', 6, 'x'],
    ['less than nothing', -1, 'x'],
  ])('is answered 500, and the connection stays in step: %s', async (_, size, body) => {
    const { send } = await serve(faulty(size, body), { onError: () => {} })
    expect((await send('GET', '/x')).status).toBe(500)
    expect((await send('GET', '/x', ['Range: bytes=0-1'])).status).toBe(500)
  })

  it('ends the connection where it gives something that is not bytes', async () => {
    const body = {
      async *open() {
        yield 5 as unknown as Uint8Array
      },
    }
    const store = {
      ...memoryStore(),
      read: (path: string) => ({ path, version: '1', contentType: 'text/plain', size: 9, body }),
    }
    const told: unknown[] = []
    const { send } = await serve(store, { onError: (error) => told.push(error) })
    await expect(send('GET', '/x')).rejects.toThrow('The connection ended')
    expect(told).toEqual([expect.any(TypeError)])
  })
})

describe('a store that gives content in pieces (threat 149)', () => {
  /** @param body of a document that has 20 bytes, as the store says */
  const storeOf = (body: object): ResourceStore => ({
    ...memoryStore(),
    read: (path) => ({ path, version: '1', contentType: 'application/json', size: 20, body: body as LargeBody }),
  })

  const pieces: readonly (readonly [string, unknown])[] = [
    ['a part of it that is JSON too', Buffer.from('{"a":1}')],
    ['more than there is', Buffer.from('{"a":1,"b":2,"c":123}')],
    ['text', '{"a":1,"b":2,"c":12}'],
    ['a number', 7],
  ]
  it.each(pieces)('changes nothing where that is not its content: %s', async (_, piece) => {
    let written = 0
    const store = storeOf({
      open: async function* () {
        yield piece
      },
    })
    const write = (): never => {
      written++
      throw new Error('written')
    }
    const errors: unknown[] = []
    const { send } = await serve({ ...store, write }, { onError: (error) => errors.push(error) })
    const patched = await send('PATCH', '/x', ['Content-Type: application/merge-patch+json'], '{"b":2}')
    expect([patched.status, written, errors]).toEqual([500, 0, [expect.any(TypeError)]])
  })

  it('is answered 500 where it reads a short range as text', async () => {
    const store = storeOf({ open: () => expect.fail(), read: () => ['x'.repeat(10)] })
    const { send } = await serve(store, { onError: () => {} })
    expect((await send('GET', '/x', ['Range: bytes=0-9'])).status).toBe(500)
  })

  it('holds up no other request with empty chunks without an end', async () => {
    let opened = 0
    let isOver = false
    const open = async function* () {
      opened++
      for (let count = 0; count < 300_000; count++) yield new Uint8Array(0)
      isOver = true
    }
    const store = storeOf({ open })
    const { port, send } = await serve(store, { onError: () => {} })
    const client = new AbortController()
    const waiting = ['GET', 'PATCH'].map((method) =>
      fetch(`http://127.0.0.1:${port}/x`, {
        ...{ method, signal: client.signal, headers: { 'Content-Type': 'application/merge-patch+json' } },
        ...(method === 'PATCH' && { body: '{}' }),
      }).catch((error) => error.name),
    )
    await vi.waitFor(() => expect(opened).toBe(2))
    expect((await send('OPTIONS', '/x')).status).toBe(204)
    expect(isOver).toBe(false)
    client.abort()
    expect(await Promise.all(waiting)).toEqual(['AbortError', 'AbortError'])
  })
})

describe('a store that names its states by what is not text (RFC 9110 §8.8.1)', () => {
  const notText: readonly (readonly [string, unknown])[] = [
    ['a Date', new Date()],
    ['an object', {}],
    ['a number', 7],
    ['nothing', undefined],
  ]
  it.each(notText)('is answered 500: one tag would stand for several states: %s', async (_, version) => {
    const state = { version: version as string, contentType: 'application/json', size: 2, body: '{}' }
    const store: ResourceStore = {
      ...memoryStore(),
      read: (path) => ({ path, ...state }),
      list: () => ({ items: [{ path: '/notes/1', ...state }] }),
    }
    const told: unknown[] = []
    const resources = { '/notes': collection() }
    const { send } = await serve(store, { resources, onError: (error) => told.push(error) })
    for (const target of ['/notes/1', '/notes']) expect((await send('GET', target)).status).toBe(500)
    expect(told).toEqual([new TypeError('The store gave a version that is not text.'), told[0]])
  })
})

describe('a store that describes content by what is not text', () => {
  it.each(['contentType', 'contentEncoding', 'contentLanguage', 'filename'])('is answered 500: %s', async (name) => {
    const state = { version: '1', contentType: 'text/plain', size: 1, body: 'x', [name]: null as unknown as undefined }
    const errors: unknown[] = []
    const store: ResourceStore = { ...memoryStore(), read: (path) => ({ path, ...state }) }
    const { send } = await serve(store, { onError: (error) => errors.push(error) })
    expect((await send('GET', '/x')).status).toBe(500)
    expect(errors).toEqual([expect.any(TypeError)])
  })
})

describe('a store that gives a date which is none (RFC 9110 §13.1.4)', () => {
  const noDates: readonly (readonly [string, unknown])[] = [
    ['an invalid one', Number.NaN],
    ['text', '2026-01-01'],
    ['a Date', new Date()],
  ]
  it.each(noDates)('is answered 500, and If-Unmodified-Since lets no write pass: %s', async (_, lastModified) => {
    let written = 0
    const plain = memoryStore()
    const store: ResourceStore = {
      ...plain,
      read: (path) => ({
        path,
        version: '1',
        contentType: 'text/plain',
        size: 1,
        body: 'x',
        lastModified: lastModified as number,
      }),
      write: (...args) => {
        written++
        return plain.write(...args)
      },
    }
    const { send } = await serve(store, { onError: () => {} })
    expect((await send('GET', '/x')).status).toBe(500)
    const since = 'If-Unmodified-Since: Thu, 01 Jan 2015 00:00:00 GMT'
    expect((await send('PUT', '/x', [text, since], 'y')).status).toBe(500)
    expect(written).toBe(0)
  })
})

describe('a store whose clock is ahead (RFC 9110 §8.8.2, rows H37, H45)', () => {
  it('gives no date that names two states', async () => {
    let now = Date.UTC(2026, 0, 1, 12, 0, 0, 600)
    const { send } = await serve(memoryStore({ now: () => now + 500 }), { now: () => now })
    await send('PUT', '/x', [text], 'AAAAAAAAAA')
    const date = (await send('GET', '/x')).field('Last-Modified')!
    now += 300
    await send('PUT', '/x', [text], 'BBBBBBBBBB')
    expect((await send('GET', '/x', ['Range: bytes=5-', `If-Range: ${date}`])).status).toBe(200)
    expect((await send('GET', '/x', [`If-Modified-Since: ${date}`])).status).toBe(200)
    expect((await send('PUT', '/x', [text, `If-Unmodified-Since: ${date}`], 'C')).status).toBe(412)
    now += 2000
    expect((await send('GET', '/x')).field('Last-Modified')).not.toBe(date) // that of the store, which is past by now
  })
})
