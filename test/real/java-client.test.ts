import { createServer } from 'node:http'
import { createSecureServer } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import type { Server } from 'node:net'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { type AnyServer, attach } from '../../src/adapters/node.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { runServer, TLS } from '../support/hosts.ts'
import { findProgram, run } from './programs.ts'

// To run a file of source, Java needs its compiler.
const java = findProgram('javac') && findProgram('java')
const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

const JSON_TYPE = 'Content-Type: application/json'
const TEXT = 'Content-Type: text/plain'
const MERGE = 'Content-Type: application/merge-patch+json'
const ADA = `Authorization: Basic ${btoa('ada:lovelace')}`

/** What is sent, and the status; the length of the content, where it matters. */
const TABLE: readonly (readonly [string, string, string, readonly string[], number, number?])[] = [
  ['POST', '/items', '{"a":1}', [JSON_TYPE], 201],
  ['GET', '/items/1', '-', [], 200, 14],
  ['HEAD', '/items/1', '-', [], 200, 0],
  ['GET', '/items/1', '-', ['If-None-Match: {etag}'], 304, 0],
  ['PUT', '/items/1', '{"a":2}', [JSON_TYPE, 'If-Match: {etag}'], 204, 0],
  ['PUT', '/items/1', '{"a":3}', [JSON_TYPE, 'If-Match: "other"'], 412, 0],
  ['PUT', '/items/1', '{"a":3}', [JSON_TYPE, 'Expect: yes'], 204, 0],
  ['PATCH', '/items/1', '{"b":2}', [MERGE], 200, 20],
  ['PATCH', '/items/1', '[{"op":"remove","path":"/b"}]', ['Content-Type: application/json-patch+json'], 200, 14],
  ['PATCH', '/items/1', 'x', [TEXT], 415],
  ['POST', '/items', '{"a":', [JSON_TYPE], 400],
  ['POST', '/items', 'a=1', ['Content-Type: application/x-www-form-urlencoded'], 201],
  ['POST', '/items', 'x', ['Content-Type: image/png'], 415],
  ['POST', '/items', 'stream 9000000', [JSON_TYPE], 413],
  ['GET', '/items?limit=1', '-', [], 200, 16],
  ['QUERY', '/items', 'limit=1', ['Content-Type: application/x-www-form-urlencoded'], 200, 16],
  ['OPTIONS', '/items', '-', [], 204, 0],
  ['DELETE', '/items', '-', [], 405],
  ['PUT', '/docs/a', 'bytes 100000', [TEXT], 201, 0],
  ['GET', '/docs/a', '-', [], 200, 100_000],
  ['GET', '/docs/a', '-', ['Range: bytes=5-9'], 206, 5],
  ['GET', '/docs/a', '-', ['Range: bytes=5-9', 'If-Range: {etag}'], 206, 5],
  ['GET', '/docs/a', '-', ['Range: bytes=5-9', 'If-Range: "other"'], 200, 100_000],
  ['GET', '/docs/a', '-', ['Range: bytes=100000-'], 416],
  ['PUT', '/docs/b', 'stream 3000000', [TEXT], 201, 0],
  ['GET', '/docs/b', '-', [], 200, 3_000_000],
  ['HEAD', '/docs/b', '-', [], 200, 0],
  ['PUT', '/docs/c', 'bytes 0', [TEXT], 201, 0],
  ['GET', '/docs/c', '-', [], 200, 0],
  ['PUT', '/docs/d', 'stream 0', [TEXT], 201, 0],
  ['PUT', '/docs/d', 'stream 100000', [TEXT, 'Expect: yes'], 204, 0],
  ['GET', '/docs/d', '-', ['Accept-Encoding: gzip'], 200, 100_000],
  ['POST', '/secrets', '{}', [JSON_TYPE], 401],
  ['POST', '/secrets', '{}', [JSON_TYPE, ADA, 'Expect: yes'], 201],
  ['GET', '/secrets/1', '-', [ADA], 200, 8],
  ['GET', '/secrets/1', '-', [], 401],
  ['DELETE', '/docs/a', 'bytes 5', [TEXT], 204, 0],
  ['DELETE', '/docs/a', '-', [], 410],
  ['GET', '/items/%2e%2e/1', '-', [], 400],
  ['GET', '/other', '-', [], 404],
]

// A client that prefers HTTP/2 asks for it by `Upgrade: h2c` over cleartext, with each request: Node goes on with HTTP/1.1.
describe.runIf(java).each([
  ['HTTP/1.1', 'http', 'HTTP_1_1', 'HTTP_1_1', () => createServer()],
  ['HTTP/1.1, which asks for h2c', 'http', 'HTTP_2', 'HTTP_1_1', () => createServer()],
  ['HTTP/1.1 over TLS', 'https', 'HTTP_2', 'HTTP_1_1', () => createHttpsServer(TLS)],
  ['HTTP/2 over TLS', 'https', 'HTTP_2', 'HTTP_2', () => createSecureServer(TLS)],
])('the HttpClient of Java, %s', (_, scheme, preferred, version, create) => {
  it('gets the responses of a table of 40 requests', async () => {
    const service = createResourceService(memoryStore(), {
      resources: {
        '/items': collection({ count: true }),
        '/docs/{name}': document(),
        '/secrets': collection({ requireAuth: 'all' }),
      },
      auth: { schemes: [basic({ realm: 'java', accounts: { ada: 'lovelace' } })], requireAuth: 'none' },
      fallthrough: false,
    })
    const server = create() as Server
    attach(server as AnyServer, service)
    const host = await runServer(server)
    try {
      const input = TABLE.map(([method, path, content, fields]) => [method, path, content, ...fields].join('\t'))
      const outcome = await run(
        java!,
        [pathOf('JavaClient.java'), `${scheme}://127.0.0.1:${host.port}`, preferred, pathOf('../support/tls/cert.pem')],
        { input: `${input.join('\n')}\n`, limit: 60_000 },
      )
      expect(outcome.stderr).toBe('')
      const lines = outcome.stdout.trim().split('\n')
      const seen = TABLE.map(([method, path, , , , length], i) => {
        const [by, status, size] = lines[i]?.split(' ') ?? []
        return [method, path, by, Number(status), length === undefined ? undefined : Number(size)]
      })
      expect(seen).toEqual(TABLE.map(([method, path, , , status, length]) => [method, path, version, status, length]))
    } finally {
      await host.close()
    }
  }, 90_000)
})
