import { createServer, type Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import express4 from 'express4'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, it } from 'vitest'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import { honoMiddleware } from '../../src/adapters/hono.ts'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import type { Handler } from '../../src/core/handler.ts'
import { auth } from '../../src/handlers/auth.ts'
import { conditional } from '../../src/handlers/conditional.ts'
import { patch } from '../../src/handlers/patch.ts'
import { preflight } from '../../src/handlers/preflight.ts'
import { range } from '../../src/handlers/range.ts'
import { listen, send } from './raw.ts'

/** Targets that are not for one path alone, and that a host may have a route for. */
const TARGETS = ['/@scope%2Fname', '/a%5Cb', '//a//b', '/a/../b', '/a%zz', '/a\\b', '/a%00']

/** What a host refuses itself, before its routes. */
const REFUSED: Readonly<Record<string, string>> = { Fastify: '/a%zz', Hono: '/a\\b' }

type Serve = (pieces: readonly Handler[]) => Server | Promise<Server>

function onExpress(create: typeof express): Serve {
  return (pieces) => {
    const app = create()
    app.use(...pieces)
    app.use((req, res) => void res.send(`host ${req.url}`))
    return createServer(app)
  }
}

const hosts: Readonly<Record<string, Serve>> = {
  'Express 4': onExpress(express4 as unknown as typeof express),
  'Express 5': onExpress(express),
  Koa(pieces) {
    const app = new Koa()
    for (const piece of pieces) app.use(koaMiddleware(piece))
    app.use((context) => {
      context.body = `host ${context.url}`
    })
    return createServer(app.callback())
  },
  async Fastify(pieces) {
    const app = fastify()
    for (const piece of pieces) await app.register(fastifyPlugin(piece))
    app.all('/*', ({ raw }) => `host ${raw.url}`)
    await app.ready()
    return app.server
  },
  Hono(pieces) {
    const app = new Hono<{ Bindings: { incoming: { url: string } } }>()
    for (const piece of pieces) app.use(honoMiddleware(piece))
    app.all('*', ({ text, env }) => text(`host ${env.incoming.url}`))
    return createAdaptorServer({ fetch: app.fetch }) as Server
  },
}

const ORIGIN = 'https://app.example'
const token = ['Authorization: Bearer token']
const ada = [`Authorization: Basic ${btoa('ada:lovelace')}`]
const verify = () => ({ id: 'ada', claims: { scope: 'read' } })

interface Row {
  readonly name: string
  readonly piece: Handler
  readonly method?: string
  readonly fields?: readonly string[]
  /** A status, or 200 of the host's own route. */
  readonly status: number | 'host'
}

const schemes = [basic({ realm: 'test', accounts: { ada: 'lovelace' } })]
const state = () => ({ entityTag: '"1"' })
const rows: readonly Row[] = [
  { name: 'auth', piece: auth({ schemes }), status: 401 },
  { name: 'auth with credentials', piece: auth({ schemes }), fields: ada, status: 'host' },
  {
    name: 'auth of an open path',
    piece: auth({ schemes, requireAuth: ({ path }) => path.startsWith('/x') }),
    status: 'host',
  },
  {
    name: 'bearer without the scope',
    piece: auth({ schemes: [bearer(verify, { scope: () => ['write'] })] }),
    fields: token,
    status: 403,
  },
  {
    name: 'bearer with the scope',
    piece: auth({ schemes: [bearer(verify, { scope: () => ['read'] })] }),
    fields: token,
    status: 'host',
  },
  {
    name: 'preflight',
    piece: preflight({ origins: [ORIGIN] }),
    method: 'OPTIONS',
    fields: [`Origin: ${ORIGIN}`, 'Access-Control-Request-Method: GET'],
    status: 204,
  },
  { name: 'preflight of another request', piece: preflight({ origins: [ORIGIN] }), status: 'host' },
  { name: 'conditional', piece: conditional(state), fields: ['If-None-Match: "1"'], status: 304 },
  {
    name: 'conditional with required',
    piece: conditional(state, { preconditions: 'required' }),
    method: 'PUT',
    status: 428,
  },
]

/** Answers of pieces that are routes, and on Fastify have a plugin of their own. */
const routes: readonly Row[] = [
  { name: 'range', piece: range(() => ({ contentType: 'text/plain', content: 'text' })), status: 200 },
  {
    name: 'patch',
    piece: patch({ read: () => ({ document: {} }), write: () => undefined }),
    method: 'PATCH',
    fields: ['Content-Type: application/merge-patch+json', 'Content-Length: 2'],
    status: 204,
  },
]

describe.each(Object.keys(hosts))('a target of %s that is not for one path alone', (host) => {
  const known = host === 'Fastify' ? rows : [...rows, ...routes]

  it.each(known)('gets the decision of one path: $name', async ({ piece, method = 'GET', fields = [], status }) => {
    const port = await listen(hosts[host]!([piece]))
    for (const target of TARGETS.filter((target) => target !== REFUSED[host])) {
      const body = method === 'PATCH' ? { body: '{}' } : {}
      const answer = await send(port, { method, target, fields, ...body })
      if (status === 'host') expect([target, answer.text]).toEqual([target, `host ${target}`])
      else expect([target, answer.status]).toEqual([target, status])
    }
  })
})
