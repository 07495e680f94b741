import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import { createServer as createHttpsServer, request as httpsRequest } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import type { NextHandleFunction } from 'connect'
import type express from 'express'
import type Koa from 'koa'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import { honoMiddleware } from '../../src/adapters/hono.ts'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { type AnyServer, attach, mount } from '../../src/adapters/node.ts'
import type { Handler } from '../../src/core/handler.ts'
import { Answer, pairFields } from './answer.ts'

/** For servers of `node:https`. */
export const TLS = {
  key: readFileSync(new URL('./tls/key.pem', import.meta.url)),
  cert: readFileSync(new URL('./tls/cert.pem', import.meta.url)),
}

export interface Request {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string | Uint8Array
}

/** A server of one kind with a handler mounted on it. */
export interface RunningHost {
  readonly port: number
  readonly server: Server
  send(request: Request): Promise<Answer>
  close(): Promise<void>
}

// Frameworks are loaded by the hosts that need them: loading all of them takes longer than most test files.
type Create = (handler: Handler, prefix: string) => Server | Promise<Server>

async function createFastify(handler: Handler, prefix: string): Promise<Server> {
  const { fastify } = await import('fastify')
  const app = fastify()
  await app.register(fastifyPlugin(handler), { prefix })
  await app.ready()
  return app.server
}

function createKoa(load: () => Promise<{ readonly default: unknown }>): Create {
  return async (handler, prefix) => {
    const App = (await load()).default as typeof Koa
    const { default: koaMount } = await import('koa-mount')
    const app = new App()
    const middleware = koaMiddleware(handler) as unknown as Koa.Middleware
    app.use(prefix === '' ? middleware : koaMount(prefix, middleware))
    return createServer(app.callback())
  }
}

function createExpress(load: () => Promise<{ readonly default: unknown }>): Create {
  return async (handler, prefix) => {
    const app = ((await load()).default as typeof express)()
    app.disable('x-powered-by')
    app.use(prefix === '' ? '/' : prefix, handler as unknown as express.RequestHandler)
    return createServer(app)
  }
}

async function createHono(handler: Handler, prefix: string): Promise<Server> {
  const [{ Hono }, { createAdaptorServer }] = await Promise.all([import('hono'), import('@hono/node-server')])
  const app = new Hono()
  app.use(`${prefix}/*`, honoMiddleware(handler, { prefix }))
  return createAdaptorServer({ fetch: app.fetch }) as Server
}

async function createConnect(handler: Handler, prefix: string): Promise<Server> {
  const { default: connectApp } = await import('connect')
  const app = connectApp()
  app.use(prefix === '' ? '/' : prefix, handler as unknown as NextHandleFunction)
  return createServer(app)
}

async function createNest(handler: Handler, prefix: string): Promise<Server> {
  await import('reflect-metadata')
  const [{ Module }, { NestFactory }] = await Promise.all([import('@nestjs/common'), import('@nestjs/core')])
  class NestApplication {}
  Module({})(NestApplication)
  const app = await NestFactory.create(NestApplication, { logger: false })
  app.getHttpAdapter().getInstance().disable('x-powered-by')
  app.use(prefix === '' ? '/' : prefix, handler)
  await app.init()
  return app.getHttpServer() as Server
}

/** Every kind of host that the package supports. */
export const hosts: Readonly<Record<string, Create>> = {
  plain: (handler, prefix) => createServer(mount(prefix, handler)),
  https: (handler, prefix) => createHttpsServer(TLS, mount(prefix, handler)),
  http2: (handler, prefix) => createHttp2Server(mount(prefix, handler)),
  Connect: createConnect,
  'Express 4': createExpress(() => import('express4')),
  'Express 5': createExpress(() => import('express')),
  Nest: createNest,
  'Koa 2': createKoa(() => import('koa2')),
  'Koa 3': createKoa(() => import('koa')),
  Fastify: createFastify,
  Hono: createHono,
}

/** How a hook gets from `hostContext` to the request of Node, on hosts that have a context. */
export const contexts: Readonly<Record<string, (context: never) => unknown>> = {
  'Koa 2': ({ req }: { req: unknown }) => req,
  'Koa 3': ({ req }: { req: unknown }) => req,
  Fastify: ({ raw }: { raw: unknown }) => raw,
  Hono: ({ env }: { env: { incoming: unknown } }) => env.incoming,
}

/** Starts one kind of host, with the service attached to its server. */
export async function startHost(name: string, handler: Handler, prefix = ''): Promise<RunningHost> {
  const server = await hosts[name]!(handler, prefix)
  attach(server as unknown as AnyServer, handler)
  return runServer(server, name === 'https' ? 'https' : name === 'http2' ? 'http2' : 'http')
}

/** Listens on a free port. */
export async function runServer(server: Server, protocol: 'http' | 'https' | 'http2' = 'http'): Promise<RunningHost> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const send = { http: sendHttp, https: sendHttps, http2: sendHttp2 }[protocol]
  return {
    port,
    server,
    send: (request) => send(port, request),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      if ('closeAllConnections' in server) (server as { closeAllConnections(): void }).closeAllConnections()
      await closed
    },
  }
}

/** A plain server with a listener; for pieces. */
export function runListener(listener: (req: IncomingMessage, res: ServerResponse) => unknown): Promise<RunningHost> {
  return runServer(createServer(listener))
}

export function sendHttp(port: number, request: Request): Promise<Answer> {
  return exchange(httpRequest({ port, host: '127.0.0.1', agent: false, ...targetOf(request) }), request)
}

function sendHttps(port: number, request: Request): Promise<Answer> {
  const options = { port, host: '127.0.0.1', agent: false, rejectUnauthorized: false, ...targetOf(request) }
  return exchange(httpsRequest(options), request)
}

function targetOf({ method = 'GET', path, headers }: Request) {
  return { method, path, headers: headers as Record<string, string | string[]> }
}

async function exchange(outgoing: ReturnType<typeof httpRequest>, { body }: Request): Promise<Answer> {
  // A server that refuses content may reset the connection while the rest of it is still being sent.
  outgoing.on('error', () => {})
  outgoing.end(body)
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  return new Answer({
    status: incoming.statusCode!,
    phrase: incoming.statusMessage!,
    fields: pairFields(incoming.rawHeaders),
    body: Buffer.concat(chunks),
  })
}

async function sendHttp2(port: number, { method = 'GET', path, headers = {}, body }: Request): Promise<Answer> {
  const session = connect(`http://127.0.0.1:${port}`)
  try {
    const names = Object.entries(headers).filter(([name]) => !/^(?:host|connection)$/i.test(name))
    const stream = session.request({ ':method': method, ':path': path, ...Object.fromEntries(names) })
    stream.end(body)
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    const [fields] = (await once(stream, 'response')) as [Record<string, string | string[]>]
    if (!stream.readableEnded) await once(stream, 'end')
    const { ':status': status, ...rest } = fields
    const pairs = Object.entries(rest).flatMap(([name, value]) => [value].flat().map((one) => [name, one] as const))
    return new Answer({ status: Number(status), phrase: '', fields: pairs, body: Buffer.concat(chunks) })
  } finally {
    session.close()
  }
}
