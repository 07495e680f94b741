import { expect, it } from 'vitest'
import { connectionOf, decideInOrder, type InFlight } from '../../src/core/connection.ts'
import type { Exchange } from '../../src/core/exchange.ts'

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
