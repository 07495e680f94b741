import type { ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { connectionOf, decideInOrder, type InFlight, isBehindLast } from '../../src/core/connection.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import { createHandler } from '../../src/core/node-handler.ts'
import { serve } from '../handlers/serve.ts'

it.each(['GET', 'PUT'])(
  'a connection whose %s requests overlap without an end keeps none that are decided',
  (method) => {
    const socket = {}
    let before: Exchange | undefined
    for (let i = 0; i < 100; i++) {
      const exchange = { isHttp2: false, method, req: { socket }, inFlight: undefined } as unknown as Exchange
      void decideInOrder(exchange, () => new Promise(() => {}))
      before?.inFlight?.decided()
      before = exchange
    }
    const kept: InFlight[] = []
    for (let one = connectionOf(socket).inFlight; one !== undefined; one = one.before) kept.push(one)
    expect(kept.length).toBeLessThanOrEqual(2)
    expect(before?.inFlight?.decision).toBeInstanceOf(Promise)
    before?.inFlight?.decided()
    expect(before?.inFlight?.decision).toBeUndefined()
  },
)

it('a request is behind a last answer that is not its own (RFC 9112 §9.6)', () => {
  const socket = { writableEnded: false }
  const last = { socket: null, shouldKeepAlive: false }
  connectionOf(socket).answer = last as ServerResponse
  const isBehind = (res: object): boolean => isBehindLast({ req: { socket }, res } as unknown as Exchange)
  expect(isBehind({ socket: null, shouldKeepAlive: true })).toBe(true)
  // A second handler may answer it, where the first could not.
  expect(isBehind(last)).toBe(false)
  last.shouldKeepAlive = true
  expect(isBehind({ socket: null, shouldKeepAlive: true })).toBe(false)
})

it('an answer to an error that the host does not take is watched for a reader that stalls', async () => {
  const run = () => {
    throw new Error('failed')
  }
  const handler = createHandler({ run, forwardErrors: true, onError: () => {} })
  let isWatched = false
  const send = await serve((req, res) => {
    handler(req, res, () => {})
    isWatched = connectionOf(req.socket).answer === res
  })
  expect([(await send('GET', '/')).status, isWatched]).toEqual([500, true])
})
