import { describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Answer } from '../support/answer.ts'
import { formatRequest } from '../support/ask.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { basicCredentials, bearerCredentials, startDemo } from '../support/demo.ts'
import { openRawClient } from '../wire/raw-client.ts'
import { senderTo, serve } from './serve.ts'

const text = 'Content-Type: text/plain'
const json = 'Content-Type: application/json'
const credentials = (user: string): string => `Authorization: Basic ${btoa(`${user}:${user}`)}`
const schemes = [basic({ realm: 'test', accounts: { ada: 'ada', eve: 'eve' } })]

/** Everything that a client could tell two answers apart by. */
const shown = ({ status, fields, text }: Answer) => ({
  status,
  fields: fields.filter(([name]) => name !== 'date').map(([name, value]) => [name, value.replace(/nonce="[^"]+"/, '')]),
  text,
})

describe("what belongs to somebody else, where authorize says 'not-found' (row H87, threats 32, 49)", () => {
  it('looks exactly like what is not there', async () => {
    const { send } = await serve(memoryStore(), {
      resources: {
        '/notes': collection({
          clientIds: false,
          idempotency: 'optional',
          representations: [{ type: 'text/plain', render: () => 'text' }],
          authorize: (principal, _request, current) => {
            if (current === undefined) return true
            return (current.value as { owner?: string }).owner === principal?.id || 'not-found'
          },
        }),
      },
      auth: { schemes },
    })
    const created = await send('POST', '/notes', [json, credentials('ada')], '{"owner":"ada"}')
    expect(created.status).toBe(201)
    const tag = created.field('ETag')
    expect((await send('GET', '/notes/1', [credentials('ada')])).status).toBe(200)
    for (const [method, fields, body] of [
      ['GET', []],
      ['HEAD', []],
      ['GET', [`If-None-Match: ${tag}`]],
      ['GET', ['If-Match: "x"']],
      ['GET', ['Range: bytes=99-']],
      ['DELETE', []],
      ['DELETE', ['If-Match: "x"']],
      ['DELETE', [`If-Match: ${tag}`]],
      ['PATCH', ['Content-Type: application/merge-patch+json'], '{}'],
    ] as const) {
      const hidden = await send(method, '/notes/1', [...fields, credentials('eve')], body)
      expect(hidden.status).toBe(404)
      expect(shown(hidden)).toEqual(shown(await send(method, '/notes/2', [...fields, credentials('eve')], body)))
    }
    // Another fault counts first, as it does for what is not there.
    for (const [method, fields, body] of [
      ['GET', ['Accept: image/png']],
      ['HEAD', ['Accept: image/png']],
      ['PATCH', [text], 'x'],
      ['PATCH', [], '{}'],
      ['PATCH', ['Content-Type: a b'], '{}'],
      ['PATCH', ['Content-Type: application/merge-patch+json', 'Content-Encoding: zstd'], '{}'],
      ['PATCH', ['Content-Type: application/merge-patch+json', 'Repr-Digest: x'], '{}'],
      ['PATCH', ['Content-Type: application/merge-patch+json', 'Idempotency-Key: x'], '{}'],
      ['PUT', [json], '{'],
      ['PUT', [text], 'x'],
      ['PUT', [json, 'Content-Range: bytes 0-1/2'], '{}'],
      ['DELETE', ['Repr-Digest: x']],
    ] as const) {
      const hidden = await send(method, '/notes/1', [...fields, credentials('eve')], body)
      expect(hidden.status).not.toBe(200)
      expect(shown(hidden)).toEqual(shown(await send(method, '/notes/2', [...fields, credentials('eve')], body)))
    }
    expect((await send('GET', '/notes/1', [credentials('ada')])).text).toBe('{"id":1,"owner":"ada"}')
  })
})

describe('what is not shown without credentials (rows H88, H91, threats 33, 48, 109)', () => {
  it('is 401 in every method and state, with the same words', async () => {
    const { send } = await serve(memoryStore(), { resources: { '/docs/{name}': document() }, auth: { schemes } })
    await send('PUT', '/docs/here', [text, credentials('ada')], 'x')
    await send('PUT', '/docs/gone', [text, credentials('ada')], 'x')
    await send('DELETE', '/docs/gone', [credentials('ada')])
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']) {
      for (const fields of [[], ['If-None-Match: *'], ['If-Match: "x"'], ['Range: bytes=99-'], ['Accept: image/png']]) {
        const [here, ...others] = await Promise.all(
          ['/docs/here', '/docs/gone', '/docs/missing'].map((target) => send(method, target, fields)),
        )
        expect(here!.status).toBe(401)
        for (const other of others) expect(shown(other)).toEqual(shown(here!))
      }
    }
    expect((await send('OPTIONS', '/docs/here')).status).toBe(204)
  })
})

describe('softly removed resources of the demo (threat 143)', () => {
  it('are shown only to an admin who asks for them', async () => {
    const demo = await startDemo()
    closeAfterTest(() => demo.close())
    const send = senderTo(demo.port)
    const admin = `Authorization: ${basicCredentials}`
    const user = `Authorization: ${bearerCredentials({ role: 'user' })}`
    expect((await send('POST', '/articles', [json], '{"title":"secret"}')).status).toBe(201)
    expect((await send('DELETE', '/articles/1', [admin])).status).toBe(204)
    for (const method of ['GET', 'HEAD']) {
      expect((await send(method, '/articles/1')).status).toBe(410)
      expect((await send(method, '/articles/1', [admin])).status).toBe(410)
      expect((await send(method, '/articles/1?deleted=1', [admin])).status).toBe(410)
      expect((await send(method, '/articles/1?deleted=true')).status).toBe(401)
      expect((await send(method, '/articles/1?deleted=true', [user])).status).toBe(403)
      const seen = await send(method, '/articles/1?deleted=true', [admin])
      expect([seen.status, seen.field('Cache-Control')]).toEqual([200, 'private, no-cache'])
    }
    expect((await send('GET', '/articles', [admin])).text).toBe('[]')
    expect((await send('GET', '/articles?deleted=true', [user])).status).toBe(403)
    expect((await send('GET', '/articles?deleted=true', [admin])).text).toContain('secret')
  })
})

describe('a resource that is replaced while it is read (threat 56)', () => {
  it('is read to its end as it was', async () => {
    const { port, send } = await serve(memoryStore(), {})
    const old = Buffer.alloc(8_000_000, 'old')
    await send('PUT', '/big', ['Content-Type: text/x'], old)
    const client = await openRawClient(port)
    client.send(formatRequest({ target: '/big' }))
    await new Promise((resolve) => client.socket.once('data', resolve))
    client.socket.pause()
    await send('PUT', '/big', ['Content-Type: text/x'], 'new')
    await send('DELETE', '/big')
    client.socket.resume()
    expect((await client.read()).body.equals(old)).toBe(true)
    client.socket.destroy()
  })
})
