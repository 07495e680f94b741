import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Exchange } from '../../src/core/exchange.ts'
import { awaitChunkedEnd, closeAnswered } from '../../src/core/request-content.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate'] }))
afterEach(() => void vi.useRealTimers())

describe('closeAnswered', () => {
  function open() {
    const calls: unknown[] = []
    const stream = Object.assign(new EventEmitter(), { close: (code: number) => calls.push(code) })
    closeAnswered({ resume: () => calls.push('resume') } as never, stream as never)
    return { stream, calls }
  }

  it('asks a client that still sends after its answer to stop, a second later, and drops the rest (RFC 9113 §8.1)', () => {
    const { calls } = open()
    vi.advanceTimersByTime(999)
    expect(calls).toEqual([])
    vi.advanceTimersByTime(1)
    expect(calls).toEqual([0, 'resume'])
  })

  it('keeps no timer for a stream that has closed', () => {
    const { stream } = open()
    stream.emit('close')
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('awaitChunkedEnd', () => {
  function receive() {
    const req = new PassThrough()
    const exchange = {
      req,
      res: { shouldKeepAlive: true },
      isHttp2: false,
      bodyState: 'unread',
      sendContinue: undefined,
      field: () => 'chunked',
    }
    return { req, exchange: exchange as unknown as Exchange }
  }

  it.each(['end', 'close'] as const)(
    'goes on at %j, and leaves neither a timer nor a listener of it',
    async (event) => {
      const { req, exchange } = receive()
      const before = ['end', 'close'].map((name) => req.listenerCount(name))
      const waiting = awaitChunkedEnd(exchange)
      if (event === 'end') req.end('content')
      else req.destroy()
      await waiting
      expect(exchange.bodyState).toBe(event === 'end' ? 'read' : 'reading')
      expect([vi.getTimerCount(), ...['end', 'close'].map((name) => req.listenerCount(name))]).toEqual([0, ...before])
    },
  )
})
