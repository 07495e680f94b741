import { EventEmitter } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, expect, it } from 'vitest'
import { RequestAborted } from '../../src/core/errors.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import { SHORT } from '../../src/core/reply.ts'
import { countAnswer, waitInSession } from '../../src/core/session-load.ts'

const MEBIBYTE = 1024 * 1024
/** Bytes of answers from which on a session takes no more. */
const MOST = 4 * MEBIBYTE

let session: object
beforeEach(() => {
  session = {}
})

/** A request on a stream of the session. */
function ask(method = 'GET') {
  const stream = Object.assign(new EventEmitter(), { session, destroyed: false })
  const exchange = { method, res: { stream } } as unknown as Exchange
  return {
    exchange,
    take: () => waitInSession(exchange),
    answer: (body: Parameters<typeof countAnswer>[1]) => countAnswer(exchange, body),
    close: () => stream.emit('close'),
    stream,
  }
}

/** A request that has been taken and answered. */
function answered(body: Parameters<typeof countAnswer>[1], method = 'GET') {
  const request = ask(method)
  expect(request.take()).toBeUndefined()
  request.answer(body)
  return request
}

/** Fills the session with answers that are not read. */
const fill = () => Array.from({ length: MOST / (256 * 1024) }, () => answered('x'.repeat(256 * 1024)))

it('a session takes so many requests as their expected answers have room, and the next ones in their order', async () => {
  const taken = Array.from({ length: MOST / SHORT }, () => ask())
  for (const { take } of taken) expect(take()).toBeUndefined()
  const order: string[] = []
  const wait = (name: string) =>
    ask()
      .take()!
      .then(() => order.push(name))
  const waiting = [wait('first'), wait('second')]
  await turn()
  expect(order).toEqual([])
  taken[0]!.close()
  // There is room again, and another one was there before.
  waiting.push(wait('third'))
  taken[1]!.close()
  taken[2]!.close()
  await Promise.all(waiting)
  expect(order).toEqual(['first', 'second', 'third'])
})

it('a session is full with 4 MiB, not with more', async () => {
  const [first, ...others] = fill()
  const request = ask()
  const waiting = request.take()!
  // A turn of the session that leaves it as full as it was.
  others[0]!.answer('x'.repeat(256 * 1024))
  await turn()
  let isTaken = false
  void waiting.then(() => (isTaken = true))
  await turn()
  expect(isTaken).toBe(false)
  first!.answer('x'.repeat(256 * 1024 - 1))
  await waiting
})

it('requests that change something count nothing before they are answered', () => {
  for (let i = 0; i < 100; i++) expect(ask('POST').take()).toBeUndefined()
})

it.each<[string, string, Parameters<typeof countAnswer>[1]]>([
  ['to HEAD count nothing', 'HEAD', 'x'.repeat(256 * 1024)],
  ['without content count nothing', 'GET', undefined],
  ['of content that is read while it is sent count 16 KiB', 'GET', { size: MEBIBYTE, async *open() {} }],
])('answers %s', (_, method, body) => {
  for (let i = 0; i < 255; i++) answered(body, method)
  expect(ask().take()).toBeUndefined()
})

it('answers of large content count 256 KiB: the rest is memory of the store', () => {
  for (let i = 0; i < 15; i++) answered(new Uint8Array(MEBIBYTE))
  expect(ask().take()).toBeUndefined()
})

it('answers of streams that have been closed count nothing, also where they are decided afterwards', () => {
  for (let i = 0; i < 100; i++) {
    const request = ask()
    expect(request.take()).toBeUndefined()
    request.close()
    request.answer('x'.repeat(256 * 1024))
  }
})

it('a request counts once, however many handlers it passes', () => {
  for (let i = 0; i < 100; i++) {
    const request = ask()
    for (let handler = 0; handler < 2; handler++) expect(request.take()).toBeUndefined()
    request.close()
  }
})

it('a stream that is over is not waited for, and counts nothing: it does not close once more', () => {
  for (let i = 0; i < 100; i++) {
    const request = ask()
    request.stream.destroyed = true
    expect(request.take()).toBeUndefined()
  }
  expect(ask().take()).toBeUndefined()
})

it('a request that waits is given up with its stream, and its place is free', async () => {
  const full = fill()
  const [gone, next] = [ask(), ask()]
  const waiting = [gone.take()!, next.take()!]
  gone.close()
  await expect(waiting[0]).rejects.toBeInstanceOf(RequestAborted)
  full[0]!.close()
  await waiting[1]
})
