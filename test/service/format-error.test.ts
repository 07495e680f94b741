import { afterEach, describe, expect, it } from 'vitest'
import type { HttpError } from '../../src/core/errors.ts'
import type { Reply } from '../../src/core/reply.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { hosts, type RunningHost, startHost } from '../support/hosts.ts'
import { serve } from './serve.ts'

const running: RunningHost[] = []
afterEach(async () => {
  for (const host of running.splice(0)) await host.close()
})

const TEXT = 'Žluťoučký kůň — 日本 😀'

async function start(host: string, formatError: (error: HttpError) => Reply): Promise<RunningHost> {
  const service = createResourceService(memoryStore(), { formatError, fallthrough: false, https: 'optional' })
  const server = await startHost(host, service)
  running.push(server)
  return server
}

describe('formatError', () => {
  it.each(Object.keys(hosts))(
    'sends text beyond ASCII as UTF-8, with its length in bytes, on %s (RFC 9110 §8.6, §8.3.2)',
    async (host) => {
      const types = ['text/html', 'text/plain; charset=iso-8859-1', 'application/json', 'TEXT/plain; charset="UTF-8"']
      let headers: readonly string[] = []
      const server = await start(host, ({ status }) => ({ status, headers, body: TEXT }))
      const sent = ['text/html; charset=utf-8', 'text/plain; charset=utf-8', types[2], types[3]]
      for (const [i, type] of types.entries()) {
        // The length that a function counts in characters is not what is sent.
        for (const length of [[], ['content-length', String(TEXT.length)]]) {
          headers = ['Content-Type', type, ...length]
          for (const method of ['GET', 'HEAD']) {
            const answer = await server.send({ method, path: '/nothing' })
            expect([answer.status, answer.headers['content-type'], answer.headers['content-length']]).toEqual([
              ...[404, sent[i], String(Buffer.byteLength(TEXT))],
            ])
            expect(answer.body.toString()).toBe(method === 'GET' ? TEXT : '')
          }
        }
      }
    },
  )

  it.each<[string, Reply, readonly [type: string | undefined, length: string, body: string]]>([
    ['ASCII text', { status: 400, headers: ['Content-Type', 'text/html'], body: 'abc' }, ['text/html', '3', 'abc']],
    ['text without a type', { status: 400, headers: [], body: 'ü' }, ['text/plain; charset=utf-8', '2', 'ü']],
    [
      'a type with further parameters',
      { status: 400, headers: ['Content-Type', 'text/html; a="b c"; charset=latin1'], body: 'ü' },
      ['text/html; a="b c"; charset=utf-8', '2', 'ü'],
    ],
    ['bytes', { status: 400, headers: ['Content-Type', 'a/b'], body: Buffer.from('ü') }, ['a/b', '2', 'ü']],
    ['no content', { status: 400, headers: [] }, [undefined, '0', '']],
    ['empty text', { status: 400, headers: ['Content-Length', '9'], body: '' }, [undefined, '0', '']],
    [
      'a source',
      {
        status: 400,
        headers: ['Content-Type', 'text/plain; charset=utf-8'],
        body: {
          size: 2,
          open: async function* () {
            yield Buffer.from('ü')
          },
        },
      },
      ['text/plain; charset=utf-8', '2', 'ü'],
    ],
  ])('completes a reply with %s', async (_, reply, [type, length, body]) => {
    const headers = [...reply.headers, 'Cache-Control', 'no-store']
    const { send } = await serve(memoryStore(), { formatError: () => ({ ...reply, headers }) })
    for (const target of ['/nothing', '/%zz']) {
      const answer = await send('GET', target)
      expect([answer.field('content-type'), answer.field('content-length'), answer.text]).toEqual([type, length, body])
    }
  })

  it('answers 500, and reports it, for a reply that cannot be sent', async () => {
    const errors: unknown[] = []
    const onError = (error: unknown) => void errors.push(error)
    const wrong = { status: 404, headers: [], body: { message: 'ü' } } as unknown as Reply
    const { send } = await serve(memoryStore(), { formatError: () => wrong, onError })
    expect((await send('GET', '/nothing')).status).toBe(500)
    expect(errors.map(String)).toEqual([
      'TypeError: formatError: the body of a reply must be a string, a Uint8Array or a ContentSource.',
    ])
  })
})
