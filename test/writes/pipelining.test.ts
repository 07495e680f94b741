import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { memoryStore } from '../../src/stores/memory.ts'
import { startService, type Target } from './support.ts'

let target: Target
beforeAll(async () => {
  const store = memoryStore()
  // A store that takes its time, and less for what comes later.
  let pause = 20
  const late = async <Value>(value: () => Value): Promise<Value> => {
    pause = Math.max(0, pause - 2)
    await new Promise((resolve) => setTimeout(resolve, pause))
    return value()
  }
  target = await startService(
    {},
    {
      ...store,
      read: (...args) => late(() => store.read(...args)) as Promise<never>,
      write: (...args) => late(() => store.write(...args)) as Promise<never>,
      remove: (...args) => late(() => store.remove(...args)) as Promise<never>,
    },
  )
})
afterAll(() => target.close())

const put = (path: string, body: string): string =>
  `PUT ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n${body}`
const request = (method: string, path: string): string => `${method} ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const last = 'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'

/** Sends requests in one piece; the status of each answer, with the body of those that say 200. */
async function pipeline(...requests: readonly string[]): Promise<string[]> {
  const socket = connect({ port: target.port, host: '127.0.0.1' })
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  socket.write([...requests, last].join(''))
  await new Promise((resolve) => socket.once('close', resolve))
  const answers = text.split(/(?=HTTP\/1\.1 )/).slice(0, -1)
  return answers.map((answer) => {
    const status = answer.slice(9, 12)
    return status === '200' ? `200 ${answer.split('\r\n\r\n')[1]}` : status
  })
}

describe('requests that are pipelined on one connection', () => {
  it('see what those before them have done (RFC 9112 §9.3.2, row K4)', async () => {
    const answers = await pipeline(
      request('GET', '/docs/a'),
      put('/docs/a', 'v1'),
      request('GET', '/docs/a'),
      request('GET', '/docs/a'),
      put('/docs/a', 'v2'),
      put('/docs/a', 'v3'),
      request('GET', '/docs/a'),
      request('DELETE', '/docs/a'),
      request('GET', '/docs/a'),
      put('/docs/a', 'v4'),
      request('GET', '/docs/a'),
    )
    expect(answers).toEqual([
      ...['404', '201', '200 v1', '200 v1', '204', '204', '200 v3', '204', '410', '201', '200 v4'],
    ])
  })

  it('are answered in their order, a hundred of them', async () => {
    const requests = Array.from({ length: 50 }, (_, index) => [put('/docs/b', `v${index}`), request('GET', '/docs/b')])
    const answers = await pipeline(...requests.flat())
    expect(answers.filter((_, index) => index % 2 === 1)).toEqual(
      Array.from({ length: 50 }, (_, index) => `200 v${index}`),
    )
  })

  it('do not wait for one another while all of them are safe', async () => {
    await target.send('PUT', '/docs/c', { body: 'x' })
    expect(await pipeline(...Array.from({ length: 20 }, () => request('GET', '/docs/c')))).toEqual(
      Array.from({ length: 20 }, () => '200 x'),
    )
  })

  it('change nothing before the safe ones before them are decided, the slowest included', async () => {
    const decided: string[] = []
    let release = (): void => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const store = memoryStore()
    const slow = await startService({}, {
      ...store,
      async read(...args: Parameters<typeof store.read>) {
        if (args[0] === '/docs/slow') await gate
        const found = await store.read(...args)
        decided.push(args[0])
        return found
      },
      async write(...args: Parameters<typeof store.write>) {
        decided.push('write')
        return store.write(...args)
      },
    } as typeof store)
    const socket = connect({ port: slow.port, host: '127.0.0.1' })
    try {
      socket.write(request('GET', '/docs/slow') + request('GET', '/docs/fast'))
      await expect.poll(() => decided).toContain('/docs/fast')
      socket.write(put('/docs/new', 'v1'))
      await new Promise((resolve) => setTimeout(resolve, 300))
      expect(decided).toEqual(['/docs/fast'])
      release()
      await expect.poll(() => decided).toContain('write')
      expect(decided[1]).toBe('/docs/slow')
    } finally {
      release()
      socket.destroy()
      await slow.close()
    }
  })
})
