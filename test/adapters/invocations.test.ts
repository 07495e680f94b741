import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import serverless from 'serverless-http'
import { describe, expect, it, vi } from 'vitest'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import type { RequestEvent } from '../../src/core/diagnostics.ts'
import type { Handler } from '../../src/core/handler.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'

/** Requests that no connection carried: events of AWS Lambda, and those that tests of Fastify inject. */

interface Invocation {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}
interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}
type Send = (invocation: Invocation) => Promise<Answer>

/** An event of API Gateway, payload format 2.0. */
function toEvent({ method, path, headers, body }: Invocation): object {
  return {
    version: '2.0',
    rawPath: path,
    rawQueryString: '',
    headers: { host: 'api.example', ...headers },
    requestContext: { http: { method, path, sourceIp: '192.0.2.1' } },
    ...(body !== undefined && { body: Buffer.from(body).toString('base64'), isBase64Encoded: true }),
  }
}

function onLambda(app: unknown): Send {
  const invoke = serverless(app as Parameters<typeof serverless>[0], { binary: ['*/*'] })
  return async (invocation) => {
    const { statusCode, headers, body } = (await invoke(toEvent(invocation), {})) as {
      statusCode: number
      headers: Record<string, unknown>
      body: string
    }
    return { status: statusCode, headers, body: Buffer.from(body, 'base64').toString() }
  }
}

const hosts: Readonly<Record<string, (service: Handler) => Send>> = {
  'AWS Lambda, with serverless-http': (service) => onLambda(service),
  'Express on AWS Lambda': (service) => onLambda(express().use(service as express.RequestHandler)),
  'Koa on AWS Lambda': (service) => onLambda(new Koa().use(koaMiddleware(service))),
  'inject of Fastify': (service) => {
    const app = fastify()
    app.register(fastifyPlugin(service))
    return async ({ method, path, headers, body }) => {
      const answer = await app.inject({
        method: method as 'GET',
        url: path,
        headers: headers ?? {},
        payload: body ?? '',
      })
      return { status: answer.statusCode, headers: answer.headers, body: answer.body }
    }
  },
}

const JSON_TYPE = { 'content-type': 'application/json' }
const TEXT = 'abcdefghij'.repeat(50_000)

describe.each(Object.keys(hosts))('a request without a connection, on %s', (name) => {
  const resources = { '/notes': collection(), '/texts/{name}': document() }
  const send = hosts[name]!(createResourceService(memoryStore(), { resources }))

  it('is created, read, changed and removed under conditions', async () => {
    const created = await send({ method: 'POST', path: '/notes', headers: JSON_TYPE, body: '{"title":"a"}' })
    expect([created.status, created.headers['location']]).toEqual([201, '/notes/1'])
    expect(Object.keys(created.headers).filter((name) => !/^[a-z-]+$/.test(name))).toEqual([])
    const read = await send({ method: 'GET', path: '/notes/1' })
    expect([read.status, read.body]).toEqual([200, '{"id":1,"title":"a"}'])
    const tag = read.headers['etag'] as string
    expect(await send({ method: 'GET', path: '/notes/1', headers: { 'if-none-match': tag } })).toMatchObject({
      status: 304,
      body: '',
    })
    const replace = {
      method: 'PUT',
      path: '/notes/1',
      headers: { ...JSON_TYPE, 'if-match': tag },
      body: '{"title":"b"}',
    }
    expect((await send(replace)).status).toBe(204)
    expect((await send(replace)).status).toBe(412)
    const patched = await send({
      method: 'PATCH',
      path: '/notes/1',
      headers: { 'content-type': 'application/merge-patch+json' },
      body: '{"done":true}',
    })
    expect([patched.status, patched.body]).toEqual([200, '{"id":1,"title":"b","done":true}'])
    expect((await send({ method: 'DELETE', path: '/notes/1' })).status).toBe(204)
    expect((await send({ method: 'GET', path: '/notes/1' })).status).toBe(410)
  })

  it('is judged by dates as well (RFC 9110 §13.1.3, §13.1.4)', async () => {
    const path = '/texts/dated'
    const headers = { 'content-type': 'application/json' }
    expect((await send({ method: 'PUT', path, headers, body: '{}' })).status).toBe(201)
    const since = { 'if-modified-since': 'Fri, 01 Jan 2100 00:00:00 GMT' }
    expect((await send({ method: 'GET', path, headers: since })).status).toBe(304)
    const patch = {
      'content-type': 'application/merge-patch+json',
      'if-unmodified-since': 'Sun, 06 Nov 1994 08:49:37 GMT',
    }
    expect((await send({ method: 'PATCH', path, headers: patch, body: '{"a":1}' })).status).toBe(412)
  })

  it('gets large content whole and in ranges', async () => {
    const headers = { 'content-type': 'text/plain' }
    expect((await send({ method: 'PUT', path: '/texts/a', headers, body: TEXT })).status).toBe(201)
    const whole = await send({ method: 'GET', path: '/texts/a' })
    expect(whole.body === TEXT).toBe(true)
    const part = await send({ method: 'GET', path: '/texts/a', headers: { range: 'bytes=5-14' } })
    expect([part.status, part.body]).toEqual([206, 'fghijabcde'])
    const parts = await send({ method: 'GET', path: '/texts/a', headers: { range: 'bytes=0-1,100-101' } })
    expect([parts.status, parts.headers['content-type']]).toEqual([
      206,
      expect.stringContaining('multipart/byteranges'),
    ])
    expect((await send({ method: 'HEAD', path: '/texts/a' })).headers['content-length']).toBe(String(TEXT.length))
  })

  it('that is refused with much content unread keeps the process alive until it is answered', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout')
    const headers = { 'content-type': 'text/plain', 'content-length': '600000', 'if-match': '"a"' }
    const answer = send({ method: 'PUT', path: '/texts/b', headers, body: 'a'.repeat(600_000) })
    const findLinger = (): number => timers.mock.calls.findIndex(([, time]) => time === 1000)
    await vi.waitUntil(() => findLinger() >= 0)
    const [end] = timers.mock.calls[findLinger()]!
    const timer = timers.mock.results[findLinger()]!.value as NodeJS.Timeout
    timers.mockRestore()
    expect(timer.hasRef()).toBe(true)
    end()
    expect((await answer).status).toBe(412)
  })

  it('is refused where it is malformed', async () => {
    expect((await send({ method: 'POST', path: '/notes', headers: JSON_TYPE, body: '{' })).status).toBe(400)
    expect(
      (await send({ method: 'POST', path: '/notes', headers: { 'content-type': 'text/x' }, body: 'a' })).status,
    ).toBe(415)
    expect((await send({ method: 'POST', path: '/notes/1', headers: JSON_TYPE, body: '{}' })).status).toBe(405)
  })

  it('is not held on to once it is answered', async () => {
    const sockets: WeakRef<object>[] = []
    const note = (event: unknown): void => void sockets.push(new WeakRef((event as RequestEvent).exchange.req.socket))
    subscribe('http-resource-service:request', note)
    for (let i = 0; i < 10; i++) expect((await send({ method: 'GET', path: '/notes' })).status).toBe(200)
    unsubscribe('http-resource-service:request', note)
    expect(sockets).toHaveLength(10)
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    // A host, or the engine, may keep the last.
    await vi.waitFor(() => {
      collect()
      expect(sockets.filter((socket) => socket.deref() !== undefined).length).toBeLessThan(3)
    }, 10_000)
  })
})
