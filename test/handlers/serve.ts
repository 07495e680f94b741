import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import express from 'express'
import Koa from 'koa'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import type { Handler } from '../../src/core/handler.ts'
import type { Answer } from '../support/answer.ts'
import { sendHttp } from '../support/hosts.ts'
import { listenForTest } from '../support/listen.ts'

export type Fields = Readonly<Record<string, string | readonly string[]>>

/** Sends one request to a server. */
export type Send = (method: string, path: string, fields?: Fields, body?: string | Uint8Array) => Promise<Answer>

/** Listens on a free port until the test ends. */
export function listen(listener: RequestListener): Promise<number> {
  return listenForTest(createServer(listener))
}

/** A server for the length of the test, and a way to ask it. */
export async function serve(listener: RequestListener): Promise<Send> {
  const port = await listen(listener)
  return (method, path, fields, body) => ask(port, method, path, fields, body)
}

/** Sends one request. */
export function ask(
  port: number,
  method: string,
  path: string,
  fields?: Fields,
  body?: string | Uint8Array,
): Promise<Answer> {
  const headers = fields as Record<string, string | string[]> | undefined
  return sendHttp(port, { method, path, ...(headers && { headers }), ...(body !== undefined && { body }) })
}

/** A server with standalone middleware before a route that does not know of it. */
export type Mount = (pieces: readonly Handler[], route?: (req: IncomingMessage) => string) => RequestListener

/** What an Express and a Koa user writes; every middleware is tested in both. */
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
