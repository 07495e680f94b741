import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { honoMiddleware } from '../../src/adapters/hono.ts'
import { attach, mount } from '../../src/adapters/node.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import type { Handler } from '../../src/core/handler.ts'
import { auth } from '../../src/handlers/auth.ts'
import { requireHttps } from '../../src/handlers/require-https.ts'
import { listen } from '../adapters/raw.ts'
import type { GuardedHost } from './guard-hosts.ts'

const schemes = [basic({ realm: 'test', accounts: { ada: 'lovelace' } })]
const guard = (): Handler => auth({ schemes })
const guardOfSecret = (): Handler => auth({ schemes, requireAuth: ({ path }) => path.startsWith('/api') })

/** A program that puts Host before the target, as many do, and answers 200 for the secret. */
function answerByUrl({ headers, url }: IncomingMessage, res: ServerResponse): void {
  const target = `http://${headers.host}${url}`
  const isSecret = URL.canParse(target) && new URL(target).pathname === '/api/secret'
  res.writeHead(isSecret ? 200 : 404, { 'Content-Length': 0 }).end()
}

function behind(handler: Handler): ReturnType<GuardedHost['create']> {
  return createServer((req, res) => handler(req, res, () => answerByUrl(req, res)))
}

function onHono(handler: Handler, prefix: string, route: string): ReturnType<GuardedHost['create']> {
  const app = new Hono()
  app.use(route, honoMiddleware(handler, { prefix }))
  app.get('/api/secret', (context) => context.text('reached'))
  return createAdaptorServer({ fetch: app.fetch }) as ReturnType<typeof createServer>
}

function attached(): ReturnType<GuardedHost['create']> {
  const server = createServer(answerByUrl)
  attach(server, guard(), { direct: '/api' })
  return server
}

function ask(port: number, path: string, host: string, fields: Readonly<Record<string, string>> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    get({ port, path, headers: { Host: host, ...fields }, agent: false, setHost: false }, (response) => {
      response.resume()
      resolve(response.statusCode!)
    }).on('error', reject)
  })
}

/** The last is as long as the host that Hono makes of it. */
const HOSTS = ['host/api/secret?', 'host\\api\\secret#', 'user@host/api/secret?', '\xff.\xff/api/secret?']

describe('a guard', () => {
  it.each([
    ['on a server', () => behind(mount('/api', guard()))],
    ['by a function of the path', () => behind(guardOfSecret())],
    ['attached with direct', attached],
    ['on Hono', () => onHono(guard(), '/api', '*')],
    ['on Hono, on the route of its prefix', () => onHono(guard(), '/api', '/api/*')],
    ['on Hono, by a function of the path', () => onHono(guardOfSecret(), '', '*')],
  ])('refuses a Host with a path, which is the path of the request for some (RFC 9112 §3.2): %s', async (_, create) => {
    const port = await listen(create())
    const statuses: number[] = []
    for (const host of HOSTS) statuses.push(await ask(port, '/other', host))
    // Behind an empty Host, the path begins after the first segment.
    statuses.push(await ask(port, '/x/api/secret', ''))
    expect(statuses).toEqual([400, 400, 400, 400, 400])
    expect(await ask(port, '/other', '[::1]:80')).toBe(404)
  })

  it('decides all the same where it does not look at the path', async () => {
    const port = await listen(behind(mount('/api', requireHttps())))
    expect(await ask(port, '/other', HOSTS[0]!, { 'X-Forwarded-For': '192.0.2.1' })).toBe(403)
  })
})
