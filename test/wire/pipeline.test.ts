import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createActivity } from '../../src/core/activity.ts'
import type { Handler } from '../../src/core/handler.ts'
import { createHandler } from '../../src/core/node-handler.ts'
import { contentReply, type Reply } from '../../src/core/reply.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { hosts, type RunningHost, runServer, startHost } from '../support/hosts.ts'
import { countAnswers, get, HTTP1_HOSTS, openSilent } from './connections.ts'
import { openRawClient } from './raw-client.ts'
import { endless, HUGE, recordedSource, sourceReply } from './transports.ts'

async function open(
  name: string,
  handler: Handler,
): Promise<{ host: RunningHost; socket: Awaited<ReturnType<typeof openSilent>> }> {
  const host = await startHost(name, handler)
  closeAfterTest(() => host.close())
  const socket = await openSilent(name, host.port)
  closeAfterTest(() => socket.destroy())
  return { host, socket }
}

/** The value, when it has stayed the same for a while. */
async function settled(read: () => number): Promise<number> {
  for (let before = -1; ; ) {
    const now = read()
    if (now === before) return now
    before = now
    await wait(150)
  }
}

const TEXT = ['Content-Type', 'text/plain']

describe.each(HTTP1_HOSTS)('requests that are pipelined on %s', (name) => {
  it('leave no listeners on their connection, and cause no warning of too many', async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error): number => warnings.push(warning)
    process.on('warning', onWarning)
    closeAfterTest(() => process.off('warning', onWarning))
    let served: Socket | undefined
    const handler = createHandler({
      run({ req }) {
        served = req.socket
        return sourceReply(recordedSource(4, () => [Buffer.from('ab'), Buffer.from('cd')]).source)
      },
      forwardErrors: false,
    })
    const { socket } = await open(name, handler)
    const seen = countAnswers(socket)
    const countListeners = async (): Promise<number> => {
      const expected = seen.count + 14
      socket.write(get('/').repeat(14))
      await expect.poll(() => seen.count).toBe(expected)
      return served!.listenerCount('close')
    }
    expect(await countListeners()).toBe(await countListeners())
    expect(warnings).toEqual([])
  })

  it('have their sources closed when the client leaves before it is their turn', async () => {
    const { source, record, closed } = recordedSource(HUGE, endless)
    const handler = createHandler({
      run: ({ req }) => (req.url === '/source' ? sourceReply(source) : new Promise<never>(() => {})),
      forwardErrors: false,
    })
    const { socket } = await open(name, handler)
    socket.write(get('/silent') + get('/source'))
    await expect.poll(() => record.opened).toBe(1)
    socket.destroy()
    await closed
    expect(record).toEqual({ opened: 1, closed: 1 })
  })

  it('are not taken while 256 KiB of answers wait, and go on when the client reads (issue 16)', async () => {
    let taken = 0
    const body = 'x'.repeat(100_000)
    const handler = createHandler({
      run() {
        taken++
        return contentReply(200, body, TEXT)
      },
      forwardErrors: false,
    })
    const { socket } = await open(name, handler)
    // Node 20 closes a connection when it stops reading it and another TLS record, of 16 KiB, is there already.
    const count = name === 'https' ? 500 : 1000
    socket.write(get('/').repeat(count))
    // The kernel of this machine takes about 4 MB, 6 MB at most.
    expect(await settled(() => taken)).toBeLessThan(70)
    const seen = countAnswers(socket)
    await expect.poll(() => seen.count).toBe(count)
    expect(taken).toBe(count)
  })

  it('have no more of the content before theirs read while the client does not read', async () => {
    let read = 0
    function* counted() {
      for (const chunk of endless()) {
        read++
        yield chunk
      }
    }
    const handler = createHandler({
      run: ({ req }) =>
        req.url === '/source' ? sourceReply(recordedSource(HUGE, counted).source) : contentReply(200, 'x', TEXT),
      forwardErrors: false,
    })
    const { socket } = await open(name, handler)
    socket.write(get('/source'))
    const before = await settled(() => read)
    for (let i = 0; i < 5; i++) {
      socket.write(get('/'))
      await wait(20)
    }
    // The kernel may take a little more.
    expect(await settled(() => read)).toBeLessThan(before + 3)
  })

  it('are not taken while 16 of them are not answered (issue 16)', async () => {
    let taken = 0
    let release = (): void => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const handler = createHandler({
      async run() {
        taken++
        await gate
        return contentReply(200, 'x', TEXT)
      },
      forwardErrors: false,
    })
    const { socket } = await open(name, handler)
    socket.write(get('/').repeat(300))
    await expect.poll(() => taken).toBe(16)
    expect(await settled(() => taken)).toBe(16)
    release()
    const seen = countAnswers(socket)
    await expect.poll(() => seen.count).toBe(300)
  })

  it('are given up when the client leaves (issue 16)', async () => {
    const left: Promise<unknown>[] = []
    const handler = createHandler({
      run({ signal }) {
        const leaving = new Promise((resolve) => signal.addEventListener('abort', resolve))
        left.push(leaving)
        return leaving.then(() => undefined)
      },
      forwardErrors: false,
    })
    const { socket } = await open(name, handler)
    socket.write(get('/').repeat(100))
    await expect.poll(() => left.length).toBe(16)
    socket.destroy()
    await left[0] // Node 20 does not say so to the answers behind it
    await wait(50)
    expect(left).toHaveLength(16)
  })
})

describe('a connection whose requests are not taken', () => {
  it('has room for 16 also where each of them passes a middleware first', async () => {
    const guard = createHandler({ run: () => undefined, forwardErrors: false })
    let taken = 0
    let resolve = (): void => {}
    const promise = new Promise<void>((open) => {
      resolve = open
    })
    const answer = createHandler({
      run() {
        taken++
        return promise.then(() => contentReply(200, 'x', TEXT))
      },
      forwardErrors: false,
    })
    const both = Object.assign((...[req, res]: Parameters<Handler>) => guard(req, res, () => answer(req, res)), guard)
    const { socket } = await open('plain', both)
    socket.write(get('/').repeat(20))
    await expect.poll(() => taken).toBe(16)
    resolve()
    const seen = countAnswers(socket)
    await expect.poll(() => seen.count).toBe(20)
  })

  it('has room for 16 again once they have been answered', async () => {
    const open16: (() => void)[] = []
    const handler = createHandler({
      run: () => new Promise<Reply>((resolve) => open16.push(() => resolve(contentReply(200, 'x', TEXT)))),
      forwardErrors: false,
    })
    const { socket } = await open('plain', handler)
    const seen = countAnswers(socket)
    for (const round of [1, 2, 3]) {
      socket.write(get('/').repeat(60))
      await expect.poll(() => open16.length).toBe(16)
      await expect
        .poll(() => {
          for (const release of open16.splice(0)) release()
          return seen.count
        })
        .toBe(60 * round)
    }
  })

  it('leaves nothing under way when it closes: a service that drains waits for none of them', async () => {
    const activity = createActivity(2 ** 30)
    let taken = 0
    let closed = 0
    const handler = createHandler({
      run({ signal }) {
        taken++
        return new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            closed++
            resolve(undefined)
          })
        })
      },
      activity,
      forwardErrors: false,
    })
    const { socket } = await open('plain', handler)
    socket.write(get('/').repeat(40))
    await expect.poll(() => taken).toBe(16)
    socket.destroy()
    await expect.poll(() => closed).toBe(16)
    await activity.drain()
  })

  it('is not read from: what it sends does not pile up (issue 16)', async () => {
    const handler = createHandler({ run: () => new Promise<undefined>(() => {}), forwardErrors: false })
    const { host, socket } = await open('plain', handler)
    let requests = 0
    host.server.prependListener('request', () => requests++)
    socket.write(get('/').repeat(300_000)) // 10 MB
    expect(await settled(() => requests)).toBeLessThan(10_000)
  })

  it('is read from again once few enough wait', async () => {
    const run = () => Promise.resolve(contentReply(200, 'x', TEXT))
    const { socket } = await open('plain', createHandler({ run, forwardErrors: false }))
    const seen = countAnswers(socket)
    socket.write(get('/').repeat(10_000))
    await expect.poll(() => seen.count).toBe(10_000)
  })

  it('still gives the content of the requests that were taken (RFC 9112 §9.3.2)', async () => {
    const store = memoryStore()
    const slow = {
      ...store,
      async write(...args: Parameters<typeof store.write>) {
        await wait(2)
        return store.write(...args)
      },
    }
    const { host, socket } = await open('plain', createResourceService(slow))
    const body = 'x'.repeat(50_000)
    for (let i = 0; i < 100; i++) {
      socket.write(
        `PUT /docs/${i} HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 50000\r\n\r\n${body}`,
      )
    }
    socket.resume()
    await expect.poll(() => store.read('/docs/99')).toMatchObject({ size: 50_000 })
    expect((await host.send({ path: '/docs/42' })).body.length).toBe(50_000)
  })
})

describe.each(HTTP1_HOSTS)('a pipelined request with Expect on %s', (name) => {
  it('is sent 100 Continue before the head of its answer, also without attach (RFC 9110 §10.1.1)', async () => {
    const bytes = Buffer.alloc(3000, 'x')
    const run = () => contentReply(200, bytes, TEXT)
    const server = await hosts[name]!(createHandler({ run, forwardErrors: false }), '')
    const host = await runServer(server, name === 'https' ? 'https' : 'http')
    closeAfterTest(() => host.close())
    const client = await openRawClient(host.port, name === 'https' ? 'secure' : undefined)
    closeAfterTest(() => client.leave())
    client.send(get('/1') + 'GET /2 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n' + get('/3'))
    expect((await client.read()).body).toEqual(bytes)
    expect((await client.read()).status).toBe(100)
    expect((await client.read()).body).toEqual(bytes)
    expect((await client.read()).body).toEqual(bytes)
  })
})

describe('streams that are pipelined', () => {
  it('leave no listener on a connection that lasts', async () => {
    const bytes = Buffer.alloc(1000, 'x')
    const headers = [...TEXT, 'Content-Length', '1000']
    const source = {
      size: bytes.length,
      async *open() {
        yield bytes
      },
    }
    const host = await startHost(
      'plain',
      createHandler({ run: () => ({ status: 200, headers, body: source }), forwardErrors: false }),
    )
    closeAfterTest(() => host.close())
    const connected = once(host.server, 'connection')
    const socket = await openSilent('plain', host.port)
    closeAfterTest(() => socket.destroy())
    const [served] = (await connected) as [Socket]
    const seen = countAnswers(socket)
    const counts: number[] = []
    for (let round = 1; round <= 3; round++) {
      socket.write(get('/').repeat(20))
      await expect.poll(() => seen.count).toBe(20 * round)
      await wait(20)
      counts.push(served.listenerCount('close'))
    }
    expect(counts).toEqual([counts[0], counts[0], counts[0]])
  })
})
