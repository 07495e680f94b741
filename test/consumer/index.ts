// A user's project: compiled against the packed library by scripts/check-consumers.js, never run.
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import type BetterSqlite from 'better-sqlite3'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import {
  attach,
  basic,
  bearer,
  collection,
  createResourceService,
  document,
  type ErrorHook,
  type Exchange,
  HttpError,
  type HttpErrorCode,
  jwt,
  type Method,
  memoryStore,
  mount,
  type Reply,
  type ResourceStore,
  singleton,
} from 'http-resource-service'
import { auth, digest, hashPassword, negotiate, principalOf } from 'http-resource-service/auth'
import { bodyParse, type FormPart, type MultipartBody } from 'http-resource-service/body-parse'
import { createResourceClient } from 'http-resource-service/client'
import { conditional } from 'http-resource-service/conditional'
import { digestFields } from 'http-resource-service/digest-fields'
import { fastifyPlugin } from 'http-resource-service/fastify'
import { honoMiddleware } from 'http-resource-service/hono'
import { koaMiddleware } from 'http-resource-service/koa'
import { methodOverride } from 'http-resource-service/method-override'
import { type OpenApiOptions, openapi } from 'http-resource-service/openapi'
import { patch } from 'http-resource-service/patch'
import { preflight } from 'http-resource-service/preflight'
import { matchEntityTags, parseHttpDate } from 'http-resource-service/protocol'
import { range } from 'http-resource-service/range'
import { requireHttps } from 'http-resource-service/require-https'
import { postgresStore } from 'http-resource-service/stores/postgres'
import { sqliteStore } from 'http-resource-service/stores/sqlite'
import { testStore } from 'http-resource-service/testing'
import Koa from 'koa'
import Libsql from 'libsql'
import pg from 'pg'

const store: ResourceStore = memoryStore()
export const resources = {
  '/users': collection({ formFields: { pri: 'priority' }, deletion: 'soft' }),
  '/docs/{name}': document({ preconditions: 'required' }),
  '/config': singleton({ aliases: ['/config.json'] }),
}
const service = createResourceService(store, {
  resources,
  cors: { origins: ['https://app.example'], credentials: true },
  auth: {
    schemes: [
      bearer(jwt({ jwks: 'https://issuer.example/jwks', issuer: 'https://issuer.example', audience: 'api' })),
      basic({ realm: 'api', accounts: { ada: await hashPassword('lovelace') } }),
      digest({ realm: 'api', accounts: { ada: 'lovelace' } }),
    ],
    requireAuth: 'writes',
    authorize: (principal, request) => request.method !== 'DELETE' || principal?.id === 'ada',
  },
})

createServer(service)
createServer(mount('/api', service))
createHttpsServer(service)
createHttp2Server(service)
attach(createServer(), service, { direct: '/api' })

const app = express()
app.use('/api', service)
app.use(requireHttps(), methodOverride(), preflight({ origins: '*' }), digestFields(), bodyParse())
app.get(
  '/a',
  conditional(() => ({ entityTag: '"1"' })),
  range(() => ({ contentType: 'text/plain', content: 'text' })),
)
app.patch('/a', patch({ read: () => ({ document: {}, entityTag: '"1"' }), write: () => undefined }))
app.post('/a', auth({ schemes: [basic({ realm: 'a', accounts: {} })] }), async (req, res) => {
  for await (const part of req.body as MultipartBody) {
    if (part.kind === 'file') for await (const chunk of part.content) res.write(chunk)
  }
  res.end(principalOf(req)?.id)
})

new Koa().use(koaMiddleware(service))
await fastify().register(fastifyPlugin(service), { prefix: '/api' })
new Hono().use('/api/*', honoMiddleware(service, { prefix: '/api' }))

createResourceService(postgresStore({ pool: new pg.Pool() }))
createResourceService(sqliteStore(new Libsql(':memory:')))
declare const betterSqlite: BetterSqlite.Database
createResourceService(sqliteStore(betterSqlite))
const client = createResourceClient<typeof resources>('https://api.example', { fetch })
export const read = await client.read('/docs/{name}', { name: 'a' })

const code: HttpErrorCode = new HttpError(409, 'ERR_CONFLICT').code
const date: number | undefined = parseHttpDate('Sun, 06 Nov 1994 08:49:37 GMT', Date.now())

export { code, date, matchEntityTags, negotiate, testStore }

// What hooks and parsers are given can be named.
export const onError: ErrorHook = (error, exchange) => void [error, exchange.method]
export const formatError = (error: HttpError, _exchange: Exchange): Reply => ({ status: error.status, headers: [] })
export const safeMethods: readonly Method[] = ['GET', 'HEAD', 'OPTIONS']
export const nameOfPart = (part: FormPart): string => part.name

const described: OpenApiOptions = { info: { title: 'Users', version: '1.0.0' }, servers: [{ url: '/api' }] }
export const description: unknown = openapi(
  createResourceService(memoryStore(), {
    resources: { '/users': collection({ title: 'User', deprecated: '2026-01-01', jsonSchema: { type: 'object' } }) },
    openapi: { path: '/openapi.json', ...described },
  }),
  described,
)
