import 'reflect-metadata'
import { EventEmitter, once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import fastify from 'fastify'
import { describe, expect, it } from 'vitest'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import type { Handler } from '../../src/core/handler.ts'
import { createResourceService, type ResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { LargeBody, ResourceStore, StoredResource } from '../../src/stores/types.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { hosts } from '../support/hosts.ts'
import { openRawClient } from '../wire/raw-client.ts'

/** A host that listens, and what its documentation says to do on SIGTERM. */
interface Stoppable {
  readonly server: Server
  /** Takes no more connections; fulfilled when the last has closed. */
  stop(): Promise<unknown>
}

type Start = (service: ResourceService) => Stoppable | Promise<Stoppable>

class Application {}
Module({})(Application)

function onServer(name: string): Start {
  return async (service) => {
    const server = (await hosts[name]!(service, '')) as Server
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return { server, stop: () => new Promise((resolve) => server.close(resolve)) }
  }
}

const starts: Readonly<Record<string, Start>> = {
  ...Object.fromEntries(
    ['plain', 'Connect', 'Express 4', 'Express 5', 'Koa 2', 'Koa 3', 'Hono'].map((name) => [name, onServer(name)]),
  ),
  async Fastify(service) {
    const app = fastify()
    await app.register(fastifyPlugin(service))
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { server: app.server, stop: () => app.close() }
  },
  async Nest(service) {
    const app = await NestFactory.create(Application, { logger: false })
    app.use(service as Handler)
    await app.listen(0, '127.0.0.1')
    return { server: app.getHttpServer() as Server, stop: () => app.close() }
  },
}

const createService = () =>
  createResourceService(memoryStore(), {
    resources: { '/files/{name}': document(), '/users': collection() },
    fallthrough: false,
  })

const portOf = (server: Server): number => (server.address() as AddressInfo).port

async function isRefused(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const refused = await Promise.race([
    once(socket, 'error').then(() => true),
    once(socket, 'connect').then(() => false),
  ])
  socket.destroy()
  return refused
}

describe.each(Object.keys(starts))('close of a service on %s', (name) => {
  it('lets an upload end, refuses new connections, and leaves none behind (RFC 9112 §9.6)', async () => {
    const service = createService()
    const { server, stop } = await starts[name]!(service)
    closeAfterTest(() => server.closeAllConnections())
    const port = portOf(server)
    const idle = await openRawClient(port)
    idle.send('GET /files/a HTTP/1.1\r\nHost: a\r\n\r\n')
    expect((await idle.read()).status).toBe(404)

    const upload = await openRawClient(port)
    const arrived = once(server, 'request')
    upload.send('PUT /files/a HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\nhalf')
    await arrived
    const events: string[] = []
    const stopped = stop().then(() => void events.push('stopped'))
    const closed = service.close().then(() => void events.push('closed'))
    await idle.closed
    expect(await isRefused(port)).toBe(true)
    expect(events).toEqual([])

    upload.send('half')
    const answer = await upload.read('PUT')
    expect([answer.status, answer.values('connection')]).toEqual([201, ['close']])
    await Promise.all([upload.closed, stopped, closed])
    expect(events.sort()).toEqual(['closed', 'stopped'])
  })

  it('does not wait for a connection whose last response had begun before', async () => {
    const store = memoryStore()
    const content = Buffer.alloc(16 * 1024 * 1024, 'x')
    await store.write('/files/a', { contentType: 'text/plain', body: content }, { expect: 'any' })
    const service = createResourceService(store, { resources: { '/files/{name}': document() } })
    const { server, stop } = await starts[name]!(service)
    closeAfterTest(() => server.closeAllConnections())
    const reader = await openRawClient(portOf(server))
    reader.send('GET /files/a HTTP/1.1\r\nHost: a\r\n\r\n')
    await reader.firstBytes()
    reader.pause()
    const closed = Promise.all([service.close(), stop()]).then(() => 'closed')
    reader.resume()
    expect((await reader.read()).body.length).toBe(content.length)
    const late = new Promise((resolve) => setTimeout(resolve, 4000, 'waits'))
    expect(await Promise.race([closed, late])).toBe('closed')
  }, 20_000)

  it.each([0, 1])(
    'does not wait for a connection whose last response waited for its content, with %i behind it',
    async (count) => {
      const store = memoryStore()
      await store.write('/files/a', { contentType: 'text/plain', body: 'abc' }, { expect: 'any' })
      const source = new EventEmitter()
      const late: LargeBody = {
        async *open() {
          setImmediate(() => source.emit('asked'))
          await once(source, 'there')
          yield Buffer.from('abc')
        },
      }
      const read = async (path: string) => ({ ...((await store.read(path)) as StoredResource), body: late })
      const service = createResourceService({ ...store, read }, { resources: { '/files/{name}': document() } })
      const { server, stop } = await starts[name]!(service)
      closeAfterTest(() => server.closeAllConnections())
      const reader = await openRawClient(portOf(server))
      reader.send(
        'GET /files/a HTTP/1.1\r\nHost: a\r\n\r\n' + 'HEAD /files/a HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(count),
      )
      await once(source, 'asked')
      const closed = Promise.all([stop(), service.close()]).then(() => 'closed')
      source.emit('there')
      expect((await reader.read()).body.toString()).toBe('abc')
      const end = new Promise((resolve) => setTimeout(resolve, 4000, 'waits'))
      expect(await Promise.race([closed, end])).toBe('closed')
    },
    20_000,
  )
})

async function checkSlowReader(name: string, store: ResourceStore, size: number): Promise<void> {
  const content = Buffer.alloc(size, 'x')
  await store.write('/files/a', { contentType: 'application/octet-stream', body: content }, { expect: 'any' })
  const service = createResourceService(store, { resources: { '/files/{name}': document() } })
  const { server, stop } = await starts[name]!(service)
  closeAfterTest(() => server.closeAllConnections())
  const reader = await openRawClient(portOf(server))
  reader.pause()
  // As many as fill what the kernel takes, whatever that is: one of them waits.
  reader.send('GET /files/a HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(40_000_000 / size))
  await new Promise((resolve) => setTimeout(resolve, 500))
  const closed = Promise.all([stop(), service.close()])
  reader.resume()
  let answer = await reader.read()
  for (; !answer.values('connection').includes('close'); answer = await reader.read()) {
    expect(answer.body.length).toBe(content.length)
  }
  expect(answer.body.length).toBe(content.length)
  expect((await reader.rest()).length).toBe(0)
  await closed
}

// Koa, Fastify and Hono send content up to 1 MiB themselves.
const writtenByService = Object.keys(starts).filter((name) => !/Koa|Fastify|Hono/.test(name))

describe('close of a service', () => {
  it.each(writtenByService)(
    'cuts no response whose end waits for a client that reads slowly: %s',
    (name) => checkSlowReader(name, memoryStore(), 1_000_000),
    20_000,
  )

  // Such content is written by the service on every host.
  it.each(Object.keys(starts))(
    'cuts no response whose last chunk waits for a client that reads slowly: %s',
    async (name) => {
      const store = memoryStore()
      const inTwoChunks = async (path: string) => {
        const resource = (await store.read(path)) as StoredResource
        const bytes = resource.body as Uint8Array
        const body: LargeBody = {
          async *open() {
            yield bytes.subarray(0, 1)
            yield bytes.subarray(1)
          },
        }
        return { ...resource, body, size: bytes.length }
      }
      // The chunk of 64 KiB alone would be short.
      await checkSlowReader(name, { ...store, read: inTwoChunks }, 65_537)
    },
    20_000,
  )

  /** Large content at /files/a, and responses after 2.5 seconds below /slow. */
  async function serveLargeAndSlow() {
    const store = memoryStore()
    const content = Buffer.alloc(16 * 1024 * 1024, 'x')
    await store.write('/files/a', { contentType: 'text/plain', body: content }, { expect: 'any' })
    const authorize = () => new Promise<true>((resolve) => setTimeout(resolve, 2500, true))
    const service = createResourceService(store, {
      resources: { '/files/{name}': document(), '/slow/{name}': document({ authorize }) },
    })
    const { server } = await starts['plain']!(service)
    closeAfterTest(() => server.closeAllConnections())
    return { service, server, size: content.length }
  }

  it('lets the response to a pipelined request take its time, behind one that had begun before', async () => {
    const { service, server, size } = await serveLargeAndSlow()
    const client = await openRawClient(portOf(server))
    client.send('GET /files/a HTTP/1.1\r\nHost: a\r\n\r\nGET /slow/a HTTP/1.1\r\nHost: a\r\n\r\n')
    await client.firstBytes()
    client.pause()
    const closed = service.close()
    client.resume()
    expect((await client.read()).body.length).toBe(size)
    const answer = await client.read()
    expect([answer.status, answer.values('connection')]).toEqual([404, ['close']])
    await closed
  }, 20_000)

  it('gives the next request its time on a connection for which the host has no limit', async () => {
    const { service, server, size } = await serveLargeAndSlow()
    server.keepAliveTimeout = 0
    const client = await openRawClient(portOf(server))
    client.send('GET /files/a HTTP/1.1\r\nHost: a\r\n\r\n')
    await client.firstBytes()
    client.pause()
    const closed = service.close()
    client.resume()
    expect((await client.read()).body.length).toBe(size)
    client.send('GET /slow/a HTTP/1.1\r\nHost: a\r\n\r\n')
    expect((await client.read()).status).toBe(404)
    await closed
  }, 20_000)

  it('waits for content that is being sent, and ends with its client', async () => {
    const service = createService()
    const { server, stop } = await starts['plain']!(service)
    const port = portOf(server)
    const large = Buffer.alloc(32 * 1024 * 1024, 'x')
    const put = await openRawClient(port)
    put.send(`PUT /files/a HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: ${large.length}\r\n\r\n`)
    put.send(large)
    expect((await put.read('PUT')).status).toBe(201)
    put.socket.destroy()

    const reader = connect(port, '127.0.0.1')
    reader.write('GET /files/a HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(reader, 'readable')
    let isClosed = false
    const closed = service.close().then(() => {
      isClosed = true
    })
    const stopped = stop()
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(isClosed).toBe(false)
    reader.destroy()
    await Promise.all([closed, stopped])
  })

  it('does not wait for content of one piece whose client has left', async () => {
    const store = memoryStore()
    await store.write('/files/a', { contentType: 'text/plain', body: Buffer.alloc(1_000_000) }, { expect: 'any' })
    const service = createResourceService(store, { resources: { '/files/{name}': document() } })
    const { server } = await starts['plain']!(service)
    closeAfterTest(() => server.closeAllConnections())
    const connected = once(server, 'connection')
    const reader = connect(portOf(server), '127.0.0.1').on('error', () => {})
    reader.write('GET /files/a HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(20))
    await once(reader, 'readable')
    const [socket] = await connected
    const left = new Promise((resolve) => socket.once('close', resolve))
    reader.destroy()
    await left
    const since = performance.now()
    await service.close()
    // One that has left is not waited for longer than 5 seconds.
    expect(performance.now() - since).toBeLessThan(4000)
  })

  it('ends once content has been sent to its end, before or meanwhile', async () => {
    const service = createService()
    const { server } = await starts['plain']!(service)
    closeAfterTest(() => server.closeAllConnections())
    const content = 'x'.repeat(8 * 1024 * 1024)
    const url = `http://127.0.0.1:${portOf(server)}/files/a`
    await fetch(url, { method: 'PUT', headers: { 'Content-Type': 'text/plain' }, body: content })
    expect(await (await fetch(url)).text()).toHaveLength(content.length)
    const answer = await fetch(url)
    const closed = service.close().then(() => 'closed')
    expect(await answer.text()).toHaveLength(content.length)
    const late = new Promise((resolve) => setTimeout(resolve, 20_000, 'waits'))
    expect(await Promise.race([closed, late])).toBe('closed')
  })

  it('ends sessions of HTTP/2 when their streams have ended (RFC 9113 §6.8)', async () => {
    const service = createService()
    const { server } = await onServer('http2')(service)
    const session: ClientHttp2Session = connectHttp2(`http://127.0.0.1:${portOf(server)}`)
    const stream = session.request({ ':method': 'PUT', ':path': '/files/a', 'content-type': 'text/plain' })
    stream.write('half')
    await once(server, 'request')
    const stopped = new Promise((resolve) => server.close(resolve))
    const closed = service.close()
    stream.end('half')
    const [head] = await once(stream, 'response')
    expect(head[':status']).toBe(201)
    stream.resume()
    await Promise.all([once(session, 'close'), stopped, closed])
  })

  it('tells a client of HTTP/2 with its next request that the connection ends, before that is decided', async () => {
    const judged = new EventEmitter()
    const authorize = () => once(judged, 'allowed').then(() => true as const)
    const service = createResourceService(memoryStore(), { resources: { '/files/{name}': document({ authorize }) } })
    const server = createHttp2Server(service).listen(0)
    await once(server, 'listening')
    const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    closeAfterTest(() => {
      judged.emit('allowed')
      session.destroy()
      server.close()
    })
    await once(session, 'connect')
    await service.close()
    const stream = session.request({ ':path': '/files/a' })
    await once(session, 'goaway')
    judged.emit('allowed')
    const [head] = await once(stream, 'response')
    expect(head[':status']).toBe(404)
  }, 5000)

  it.each(['authorize', 'store'] as const)(
    'ends though a call never settles, once its client has left: %s',
    async (which) => {
      const never = () => new Promise<never>(() => {})
      const store = memoryStore()
      const service = createResourceService(which === 'store' ? { ...store, read: never } : store, {
        resources: { '/a': collection(which === 'authorize' ? { authorize: never } : {}) },
      })
      const server = createServer(service).listen(0)
      await once(server, 'listening')
      const socket = connect((server.address() as AddressInfo).port)
      socket.on('error', () => {}).write('GET /a/1 HTTP/1.1\r\nHost: a\r\n\r\n')
      await once(server, 'request')
      server.close()
      server.closeAllConnections()
      const late = new Promise((resolve) => setTimeout(resolve, 15_000, 'waits'))
      expect(await Promise.race([service.close().then(() => 'closed'), late])).toBe('closed')
    },
    20_000,
  )

  it('is done at once where nothing is under way, and can be asked for twice', async () => {
    const service = createService()
    await Promise.all([service.close(), service.close()])
    await service[Symbol.asyncDispose]()
  })
})
