import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import Koa from 'koa'
import { afterEach } from 'vitest'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import type { Handler } from '../../src/core/handler.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

export interface Answer {
  readonly status: number
  /** The value of a field, several joined by `, `; `undefined` when it is absent. */
  field(name: string): string | undefined
  /** How often a field was sent. */
  count(name: string): number
  readonly body: Buffer
  readonly text: string
}

export type Fields = Readonly<Record<string, string | readonly string[]>>

/** Sends one request to a server. */
export type Send = (method: string, path: string, fields?: Fields, body?: string | Uint8Array) => Promise<Answer>

/** Listens on a free port until the test ends. */
export async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

/** A server for the length of the test, and a way to ask it. */
export async function serve(listener: RequestListener): Promise<Send> {
  const port = await listen(listener)
  return (method, path, fields, body) => ask(port, method, path, fields, body)
}

export async function ask(
  port: number,
  method: string,
  path: string,
  fields?: Fields,
  body?: string | Uint8Array,
): Promise<Answer> {
  const headers = fields as Record<string, string | string[]> | undefined
  const req = request({ host: '127.0.0.1', port, method, path, agent: false, ...(headers && { headers }) })
  req.end(body)
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of res) chunks.push(chunk)
  const content = Buffer.concat(chunks)
  const values = (name: string): string[] =>
    res.rawHeaders.filter((_, i, all) => i % 2 === 1 && all[i - 1]!.toLowerCase() === name.toLowerCase())
  return {
    status: res.statusCode!,
    field: (name) => (values(name).length === 0 ? undefined : values(name).join(', ')),
    count: (name) => values(name).length,
    body: content,
    text: content.toString(),
  }
}

/** A server with pieces before a route that has never heard of them. */
export type Mount = (pieces: readonly Handler[], route?: (req: IncomingMessage) => string) => RequestListener

/** What an Express and a Koa user writes; every piece is tested in both. */
export const HOSTS: readonly (readonly [name: string, mount: Mount])[] = [
  [
    'Express',
    (pieces, route) => {
      const app = express()
      for (const piece of pieces) app.use(piece)
      if (route !== undefined) app.use((req, res) => void res.set('Cache-Control', 'no-cache').send(route(req)))
      return app
    },
  ],
  [
    'Koa',
    (pieces, route) => {
      const app = new Koa()
      app.silent = true
      for (const piece of pieces) app.use(koaMiddleware(piece))
      if (route !== undefined) {
        app.use((context) => {
          context.set('Cache-Control', 'no-cache')
          context.body = route(context.req)
        })
      }
      return app.callback()
    },
  ],
]
