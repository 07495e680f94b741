import { once } from 'node:events'
import { type Agent, createServer, request as httpRequest, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Principal } from '../../src/core/request-view.ts'
import { type AuthOptions, auth, principalOf } from '../../src/handlers/auth.ts'

export interface Sent {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly agent?: Agent
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Every WWW-Authenticate field line. */
  readonly challenges: readonly string[]
  readonly body: string
  readonly principal: Principal | undefined
}

/** A plain server whose every request passes one guard, and is answered with its principal. */
export interface GuardedServer {
  readonly server: Server
  readonly origin: string
  readonly port: number
  /** What went wrong unexpectedly. */
  readonly failures: readonly unknown[]
  send(sent?: Sent): Promise<Answer>
  close(): Promise<void>
}

export async function serveGuarded(options: AuthOptions): Promise<GuardedServer> {
  const failures: unknown[] = []
  const guard = auth({ onError: (error) => failures.push(error), ...options })
  const server = createServer((req, res) => {
    guard(req, res, (error) => {
      if (error !== undefined) failures.push(error)
      res.statusCode = error === undefined ? 200 : 500
      res.setHeader('Content-Type', 'application/json')
      res.end(JSON.stringify({ principal: principalOf(req) }))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    server,
    origin: `http://127.0.0.1:${port}`,
    port,
    failures,
    send: (sent) => send(port, sent),
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Sends one request, on a connection of its own unless there is an agent. */
export async function send(
  port: number,
  { method = 'GET', path = '/', headers = {}, agent }: Sent = {},
): Promise<Answer> {
  const request = httpRequest({
    ...{ host: '127.0.0.1', port, method, path },
    headers: headers as Record<string, string | string[]>,
    ...(agent === undefined ? { agent: false } : { agent }),
  })
  request.end()
  const [response] = await once(request, 'response')
  let body = ''
  response.setEncoding('utf8')
  for await (const chunk of response) body += chunk
  return {
    status: response.statusCode,
    headers: response.headers,
    challenges: response.headersDistinct['www-authenticate'] ?? [],
    body,
    principal: response.statusCode === 200 && body !== '' ? JSON.parse(body).principal : undefined,
  }
}

export function basicCredentials(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
}
