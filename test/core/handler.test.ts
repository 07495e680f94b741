import { connect } from 'node:net'
import express from 'express'
import { describe, expect, it } from 'vitest'
import { HttpError, RequestAborted } from '../../src/core/errors.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Step } from '../../src/core/handler.ts'
import { andThen, isPromise } from '../../src/core/maybe-promise.ts'
import { createHandler, PASS } from '../../src/core/node-handler.ts'
import { type ContentSource, contentReply, emptyReply, keepFields, type Reply } from '../../src/core/reply.ts'
import { addVary } from '../../src/core/write-head.ts'
import { sequence } from '../../src/service/create-resource-service.ts'
import { listen, serve } from '../handlers/serve.ts'

const REPLY = emptyReply(204, [])
const exchange = {} as Exchange

describe('isPromise and andThen', () => {
  it('take whatever has a "then", and wait for nothing else', async () => {
    expect(isPromise(Promise.resolve())).toBe(true)
    expect([isPromise(undefined), isPromise(null), isPromise('then'), isPromise({})]).toEqual([
      false,
      false,
      false,
      false,
    ])
    expect(andThen(1, (n) => n + 1)).toBe(2)
    expect(await andThen(Promise.resolve(1), (n) => n + 1)).toBe(2)
  })
})

describe('sequence', () => {
  const record = (ran: string[], replies: Record<string, ReturnType<Step>>): Record<string, Step> =>
    Object.fromEntries(
      Object.entries(replies).map(([name, reply]) => [
        name,
        () => {
          ran.push(name)
          return reply
        },
      ]),
    )

  it('ends with the first reply, in one turn while nothing has to be awaited', () => {
    const ran: string[] = []
    expect(sequence(record(ran, { a: undefined, b: REPLY, c: REPLY }))(exchange)).toBe(REPLY)
    expect(ran).toEqual(['a', 'b'])
  })

  it('awaits a step before the next begins', async () => {
    const ran: string[] = []
    const steps = record(ran, { a: Promise.resolve(undefined), b: undefined, c: Promise.resolve(REPLY), d: REPLY })
    const result = sequence(steps)(exchange)
    expect(ran).toEqual(['a'])
    expect(await result).toBe(REPLY)
    expect(ran).toEqual(['a', 'b', 'c'])
  })

  it('gives nothing when no step replies', () => {
    const ran: string[] = []
    expect(sequence(record(ran, { a: undefined, b: undefined }))(exchange)).toBeUndefined()
    expect(ran).toEqual(['a', 'b'])
  })

  it.each([0, 1, 5, 21, 22, 23, 50])(
    'runs every step of %i once and in order, whichever of them waits',
    async (length) => {
      const names = Array.from({ length }, (_, index) => `step ${index}`)
      for (const waiting of [undefined, ...names]) {
        for (const last of [undefined, REPLY]) {
          const ran: string[] = []
          const replies = Object.fromEntries(names.map((name) => [name, undefined as ReturnType<Step>]))
          if (length > 0) replies[names.at(-1)!] = last
          if (waiting !== undefined) replies[waiting] = Promise.resolve(replies[waiting])
          expect(await sequence(record(ran, replies))(exchange)).toBe(length > 0 ? last : undefined)
          expect(ran).toEqual(names)
        }
      }
    },
  )

  it('passes on what a step throws, now or later', async () => {
    const fail = (): never => {
      throw new Error('broken')
    }
    expect(() => sequence({ first: () => undefined, fail })(exchange)).toThrow('broken')
    await expect(sequence({ first: async () => undefined, fail, last: () => REPLY })(exchange)).rejects.toThrow(
      'broken',
    )
  })

  it('notes the steps while somebody listens', () => {
    const trace: string[] = []
    const steps = { checkTarget: () => undefined, checkHost: undefined, findRoute: () => REPLY }
    expect(sequence(steps)({ trace } as never)).toBe(REPLY)
    expect(trace).toEqual(['checkTarget', 'findRoute'])
  })
})

describe('createHandler', () => {
  const outcomes: Readonly<Record<string, () => Reply | undefined>> = {
    '/reply': () => contentReply(200, 'here', []),
    '/nothing': () => undefined,
    '/pass': () => PASS,
    '/refuse': () => {
      throw new HttpError(409, 'ERR_CONFLICT', { detail: 'Twice.', headers: { 'X-Why': 'twice' } })
    },
    '/fail': () => {
      throw new Error('secret path')
    },
  }
  const run = ({ req }: Exchange) => outcomes[req.url!]!()
  const later = async (exchange: Exchange) => run(exchange)

  it.each([
    ['at once', run],
    ['later', later],
  ])('answers, refuses and fails on its own: %s', async (_when, run) => {
    const errors: unknown[] = []
    const send = await serve(createHandler({ run, forwardErrors: false, onError: (error) => errors.push(error) }))
    expect((await send('GET', '/reply')).text).toBe('here')
    for (const path of ['/nothing', '/pass']) expect((await send('GET', path)).status).toBe(404)
    const refused = await send('GET', '/refuse')
    expect([refused.status, refused.field('x-why'), JSON.parse(refused.text).detail]).toEqual([409, 'twice', 'Twice.'])
    expect(errors).toEqual([])
    const failed = await send('GET', '/fail')
    expect([failed.status, failed.text.includes('secret'), failed.field('cache-control')]).toEqual([
      500,
      false,
      'no-store',
    ])
    expect(errors).toEqual([new Error('secret path')])
  })

  it.each([
    ['at once', run],
    ['later', later],
  ])('leaves to the host what is the host’s: %s', async (_when, run) => {
    const app = express()
    app.use(createHandler({ run, forwardErrors: true }))
    app.use((_req, res) => void res.send('the host'))
    app.use(
      ((error: Error, _req, res, _next) => void res.status(503).send(error.message)) as express.ErrorRequestHandler,
    )
    const send = await serve(app)
    for (const path of ['/nothing', '/pass']) expect((await send('GET', path)).text).toBe('the host')
    expect((await send('GET', '/refuse')).status).toBe(409)
    expect([(await send('GET', '/fail')).status, (await send('GET', '/fail')).text]).toEqual([503, 'secret path'])
  })

  it('answers 500 itself where the host takes no errors', async () => {
    const errors: unknown[] = []
    const send = await serve(createHandler({ run, forwardErrors: true, onError: (error) => errors.push(error) }))
    expect((await send('GET', '/fail')).status).toBe(500)
    expect(errors).toHaveLength(1)
  })

  it('lets the error reply be chosen, and survives a choice that fails', async () => {
    const errors: unknown[] = []
    const onError = (error: unknown) => void errors.push(error)
    const own = await serve(
      createHandler({
        run,
        forwardErrors: false,
        onError,
        formatError: ({ status }) => contentReply(status, 'own', []),
      }),
    )
    expect((await own('GET', '/refuse')).text).toBe('own')
    const broken = await serve(
      createHandler({
        run,
        forwardErrors: false,
        onError,
        formatError() {
          throw new Error('broken')
        },
      }),
    )
    expect((await broken('GET', '/refuse')).status).toBe(500)
    expect(errors).toEqual([new Error('broken')])
  })

  it('closes the connection of a client that went away, and calls that no failure', async () => {
    const errors: unknown[] = []
    const send = await serve(
      createHandler({
        run() {
          throw new RequestAborted('gone')
        },
        forwardErrors: true,
        onError: (error) => errors.push(error),
      }),
    )
    await expect(send('GET', '/')).rejects.toThrow('socket hang up')
    expect(errors).toEqual([])
  })

  it('reports no error that chooses its answer, also of 500 and above', async () => {
    const errors: unknown[] = []
    const run = (): never => {
      throw new HttpError(503, 'ERR_UNAVAILABLE', { cause: new Error('busy') })
    }
    const send = await serve(createHandler({ run, forwardErrors: false, onError: (error) => errors.push(error) }))
    expect((await send('GET', '/')).status).toBe(503)
    expect(errors).toEqual([])
  })

  it('reports no error of content before its first byte that is the fault of the client', async () => {
    const errors: unknown[] = []
    const body: ContentSource = {
      size: 1,
      // biome-ignore lint/correctness/useYield: it fails before its first byte
      async *open() {
        throw new HttpError(410, 'ERR_GONE', { cause: new Error('gone') })
      },
    }
    const run = () => ({ status: 200, headers: ['Content-Length', '1'], body })
    const send = await serve(createHandler({ run, forwardErrors: false, onError: (error) => errors.push(error) }))
    expect((await send('GET', '/')).status).toBe(410)
    expect(errors).toEqual([])
  })

  it('lets no request go on whose answer has been ended meanwhile', async () => {
    const passed: unknown[] = []
    const handler = createHandler({
      async run({ res }) {
        await new Promise((resolve) => setImmediate(resolve))
        res.end('in time')
        return undefined
      },
      forwardErrors: false,
    })
    const send = await serve((req, res) => handler(req, res, () => passed.push(req.url)))
    expect((await send('GET', '/')).text).toBe('in time')
    expect(passed).toEqual([])
  })

  it('takes the AbortError of whatever the signal stops for no failure', async () => {
    const errors: unknown[] = []
    let hasEnded = (): void => {}
    const ended = new Promise<void>((resolve) => {
      hasEnded = resolve
    })
    const handler = createHandler({
      async run({ signal }) {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        setImmediate(() => setImmediate(hasEnded))
        throw Object.assign(new Error('stopped'), { name: 'AbortError' })
      },
      forwardErrors: false,
      onError: (error) => errors.push(error),
    })
    const port = await listen(handler)
    const socket = connect(port, '127.0.0.1', () => {
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n', () => setTimeout(() => socket.destroy(), 20))
    })
    await ended
    expect(errors).toEqual([])
  })

  it('sends fields that are kept with the Vary and the pending fields of each request', async () => {
    const kept = keepFields(['Content-Length', '1'])
    const handler = createHandler({
      run(exchange) {
        if (exchange.req.url !== '/plain') addVary(exchange, exchange.req.url!.slice(1))
        return { status: 200, headers: kept.headers, body: 'x', kept }
      },
      forwardErrors: false,
    })
    const send = await serve(handler)
    for (const name of ['Accept', 'Origin']) expect((await send('GET', `/${name}`)).field('vary')).toBe(name)
    expect((await send('GET', '/plain')).field('vary')).toBeUndefined()
  })
})
