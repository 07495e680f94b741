import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { startHost } from '../support/hosts.ts'
import { openRawClient } from './raw-client.ts'

const JSON_TYPE = 'Content-Type: application/json\r\n'
const put = (fields: string, content: string): string =>
  `PUT /docs/a HTTP/1.1\r\nHost: a.test\r\n${JSON_TYPE}${fields}\r\n${content}`
const POST = `POST /users HTTP/1.1\r\nHost: a.test\r\n${JSON_TYPE}Content-Length: 2\r\n\r\n{}`

const get = (version: string, content: string): string =>
  `GET /nowhere HTTP/${version}\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${content}`

const LONG = 'x'.repeat(10_000)

describe.each(['plain', 'Express 5', 'Koa 3', 'Fastify', 'Hono'])(
  'a request behind the last answer of its connection, on %s',
  (name) => {
    async function open(authorize: () => Promise<boolean> = async () => true) {
      const created: string[] = []
      const service = createResourceService(memoryStore(), {
        resources: {
          '/docs/{name}': document({ types: ['application/json'], authorize }),
          '/users': collection({ afterCommit: ({ path }) => void created.push(path) }),
        },
        limits: { bodySize: 5000 },
      })
      const host = await startHost(name, service)
      closeAfterTest(() => host.close())
      const client = await openRawClient(host.port)
      return { created, service, client }
    }

    it.each<[string, number, string]>([
      ['content over the limit', 413, put('Transfer-Encoding: chunked\r\n', `2710\r\n${LONG}\r\n0\r\n\r\n`)],
      ['content that is long', 413, put('If-Match: "x"\r\nContent-Length: 600000\r\n', 'x'.repeat(600_000))],
      ['content that waits for 100', 412, put('Expect: 100-continue\r\nIf-Match: "x"\r\nContent-Length: 3\r\n', '"x"')],
      [
        'content of HTTP/1.0 in chunks',
        400,
        put('Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n', '3\r\n"x"\r\n0\r\n\r\n').replace(
          '/1.1',
          '/1.0',
        ),
      ],
    ])('changes nothing: %s (RFC 9112 §9.6)', async (_, status, refused) => {
      const { created, client } = await open()
      client.send(refused + POST)
      const answer = await client.read()
      expect([answer.status, answer.values('connection')]).toEqual([status, ['close']])
      expect(String(await client.rest())).toBe('')
      await wait(20)
      expect(created).toEqual([])
    })

    it.each<[string, string]>([
      ['what follows is a request', get('1.1', `0\r\n\r\n${POST}`)],
      ['a chunk is malformed', get('1.0', '5g\r\nhello\r\n0\r\n\r\n')],
    ])('gets a response where Node ends the connection at once: %s', async (_, request) => {
      const { created, client } = await open()
      client.send(request)
      // Of the service, or that of Node where the host decides later.
      expect(String(await client.readToEnd())).toMatch(/^HTTP\/1\.1 40[04] /)
      expect(created).toEqual([])
    })

    it('changes nothing where it has arrived before that answer is decided (RFC 9112 §9.6)', async () => {
      const { created, client } = await open(() => wait(5, true))
      const waiting = put('Expect: 100-continue\r\nIf-Match: "x"\r\nContent-Length: 3\r\n', '"x"')
      client.send(waiting + POST)
      const answer = await client.read()
      expect([answer.status, answer.values('connection')]).toEqual([412, ['close']])
      await client.rest()
      await wait(20)
      expect(created).toEqual([])
    })

    it('changes nothing where the service closes (RFC 9112 §9.6)', async () => {
      const { created, service, client } = await open()
      await service.close()
      client.send(put('Content-Length: 3\r\n', '"x"') + POST)
      const answer = await client.read()
      expect([answer.status, answer.values('connection')]).toEqual([201, ['close']])
      expect(String(await client.rest())).toBe('')
      await wait(20)
      expect(created).toEqual([])
    })
  },
)
