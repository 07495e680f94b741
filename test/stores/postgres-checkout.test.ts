import { EventEmitter } from 'node:events'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Checkout, createCheckout, createWaitingCalls } from '../../src/stores/postgres/checkout.ts'
import type { PostgresClient, PostgresPool } from '../../src/stores/postgres/connection.ts'

/** No other test has these limits: their timers are of these tests alone. */
const LIMITS = { statementTimeout: 1234, connectTimeout: 2345 }
const ANY_CALL = {}
const query = { text: 'SELECT 1' }
const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
const createRefusal = (code: string) => Object.assign(new Error('The database has refused.'), { code })
const refused = createRefusal('23505')
const shutDown = createRefusal('57P01')

/** A connection that records how it was given back. `answer` is what it does with a query. */
class FakeClient extends EventEmitter {
  readonly released: (boolean | undefined)[] = []
  readonly connection = { stream: { destroy: vi.fn() } }
  answer: () => Promise<unknown> = async () => ({ rows: [1] })
  query = (): Promise<unknown> => this.answer()
  release(destroy?: boolean): void {
    this.released.push(destroy)
  }
}

/** A pool that gives `client`, unless `connect` does something else. */
class FakePool extends EventEmitter {
  readonly client = new FakeClient()
  readonly connect = vi.fn(async (): Promise<PostgresClient> => this.client as PostgresClient)
}

let pool: FakePool
let checkOut: Checkout
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval', 'performance'] })
  pool = new FakePool()
  checkOut = createCheckout(pool as PostgresPool, LIMITS, createWaitingCalls(3))
})
afterEach(async () => {
  // What still watches something keeps its timer.
  await vi.advanceTimersByTimeAsync(60_000)
  const left = vi.getTimerCount()
  vi.useRealTimers()
  expect(left).toBe(0)
})

const run = (call: { readonly signal?: AbortSignal } = ANY_CALL) => checkOut((send) => send(query), call)

/** The error of a call, once the timers have run. */
async function failureOf(call: Promise<unknown>): Promise<unknown> {
  const failure = call.then(
    () => undefined,
    (error: unknown) => error,
  )
  await vi.advanceTimersByTimeAsync(10_000)
  return failure
}

it('createCheckout limits the time of connecting by the most patient of the stores on a pool', () => {
  const shared = Object.assign(new FakePool(), { options: { connectionTimeoutMillis: 0 } })
  for (const [connectTimeout, expected] of [
    [2000, 2000],
    [5000, 5000],
    [3000, 5000],
  ] as const) {
    createCheckout(shared as unknown as PostgresPool, { ...LIMITS, connectTimeout }, createWaitingCalls(3))
    expect(shared.options.connectionTimeoutMillis).toBe(expected)
  }
})

it('createCheckout leaves the time of connecting to a pool that limits it by itself', () => {
  const limited = Object.assign(new FakePool(), { options: { connectionTimeoutMillis: 50 } })
  createCheckout(limited as unknown as PostgresPool, { ...LIMITS, connectTimeout: 2000 }, createWaitingCalls(3))
  expect(limited.options.connectionTimeoutMillis).toBe(50)
})

describe('createCheckout, how a connection is given back', () => {
  it('gives it back after a success, and after an error that the database has sent', async () => {
    expect(await run()).toEqual([1])
    pool.client.answer = () => Promise.reject(refused)
    expect(await failureOf(run())).toBe(refused)
    expect(pool.client.released.map(Boolean)).toEqual([false, false])
    expect(pool.client.connection.stream.destroy).not.toHaveBeenCalled()
  })

  it.each([
    ['that broke', new Error('Connection terminated unexpectedly')],
    ['that the administrator has ended', shutDown],
    ['that the database has ended for an idle transaction', createRefusal('25P03')],
    ['that the database has ended for a long transaction', createRefusal('25P04')],
    ['to a server that has become a standby', createRefusal('25006')],
    ['to a standby where SERIALIZABLE is the default', createRefusal('0A000')],
    ['in whose transaction a statement of other code has failed', createRefusal('25P02')],
    ['whose prepared statements other code has discarded', createRefusal('26000')],
  ])('closes a connection %s, and leaves the socket to the pool', async (_, error) => {
    pool.client.answer = () => Promise.reject(error)
    expect(await failureOf(run())).toBe(error)
    expect(pool.client.released).toEqual([true])
    expect(pool.client.connection.stream.destroy).not.toHaveBeenCalled()
  })

  it.each(['T', 'E'])(
    'closes a connection that other code has left in a transaction (%s), and sends nothing',
    async (status) => {
      const query = vi.fn(pool.client.query)
      Object.assign(pool.client, { query, getTransactionStatus: () => status })
      expect(await failureOf(run())).toMatchObject({
        message: expect.stringContaining('in the midst of a transaction'),
      })
      expect(query).not.toHaveBeenCalled()
      expect(pool.client.released).toEqual([true])
      Object.assign(pool.client, { getTransactionStatus: () => 'I' })
      expect(await run()).toEqual([1])
    },
  )

  it('closes a connection whose wait for a synchronous standby was canceled, and does not acknowledge the commit', async () => {
    const canceled = { routine: 'SyncRepWaitForLSN' }
    pool.client.answer = async () => {
      pool.client.emit('notice', canceled)
      return { rows: [1] }
    }
    expect(await failureOf(run())).toMatchObject({ message: expect.stringContaining('the standby was canceled') })
    expect(pool.client.released).toEqual([true])
  })

  it('does not take the canceled wait of other code, or another notice, for its own', async () => {
    expect(await run()).toEqual([1])
    pool.client.emit('notice', { routine: 'SyncRepWaitForLSN' })
    pool.client.answer = async () => {
      pool.client.emit('notice', { routine: 'DefineIndex' })
      return { rows: [2] }
    }
    expect(await run()).toEqual([2])
  })

  it('closes a connection whose query throws', async () => {
    pool.client.query = () => {
      throw new TypeError('The client is closed.')
    }
    expect(await failureOf(run())).toBeInstanceOf(TypeError)
    expect(pool.client.released).toEqual([true])
  })

  it('closes a silent connection, and destroys its socket: the end of it would wait for an answer', async () => {
    pool.client.answer = () => new Promise(() => {})
    expect(await failureOf(run())).toMatchObject({ message: expect.stringContaining('did not answer within 1234 ms') })
    expect(pool.client.released).toEqual([true])
    expect(pool.client.connection.stream.destroy).toHaveBeenCalledTimes(1)
  })

  it('closes a silent connection also where the caller turns the failure into an error of the database', async () => {
    pool.client.answer = () => new Promise(() => {})
    const call = checkOut(async (send) => {
      await send(query).catch(() => {})
      throw refused
    }, ANY_CALL)
    expect(await failureOf(call)).toBe(refused)
    expect(pool.client.released).toEqual([true])
    expect(pool.client.connection.stream.destroy).toHaveBeenCalledTimes(1)
  })

  it('keeps a connection whose statements each end in time, however long they take together', async () => {
    pool.client.answer = () => new Promise((resolve) => setTimeout(resolve, 1000, { rows: [] }))
    const call = checkOut(async (send) => {
      for (let i = 0; i < 5; i++) await send(query)
      throw refused
    }, ANY_CALL)
    expect(await failureOf(call)).toBe(refused)
    expect(pool.client.released.map(Boolean)).toEqual([false])
  })

  it('gives a connection back that comes after the call has failed, and does not use it', async () => {
    const use = vi.fn(pool.client.query)
    pool.client.query = use
    pool.connect.mockImplementation(
      () => new Promise((resolve) => setTimeout(resolve, 5000, pool.client as PostgresClient)),
    )
    expect(await failureOf(run())).toMatchObject({ status: 503 })
    expect(use).not.toHaveBeenCalled()
    expect(pool.client.released.map(Boolean)).toEqual([false])
  })
})

describe('createCheckout, the wait for a connection', () => {
  it('ends with 503 when no connection is free in time', async () => {
    pool.connect.mockImplementation(() => new Promise(() => {}))
    expect(await failureOf(run())).toMatchObject({
      status: 503,
      cause: { message: 'No connection was free within 2345 ms.' },
    })
  })

  it('ends with the reason of the signal, and does not begin where the signal has aborted', async () => {
    pool.connect.mockImplementation(() => new Promise(() => {}))
    const controller = new AbortController()
    const call = run({ signal: controller.signal })
    const reason = new Error('The client has left.')
    controller.abort(reason)
    expect(await failureOf(call)).toBe(reason)
    expect(await failureOf(run({ signal: controller.signal }))).toBe(reason)
    expect(pool.connect).toHaveBeenCalledTimes(1)
  })

  it('counts a call until the pool has answered, with a connection or an error', async () => {
    pool.connect.mockRejectedValue(away)
    for (let i = 0; i < 5; i++) expect(await failureOf(run())).toHaveProperty('cause', away)
    pool.connect.mockImplementation(async () => pool.client as PostgresClient)
    for (let i = 0; i < 5; i++) expect(await run()).toEqual([1])
  })

  it('takes a pool that throws for one that rejects', async () => {
    pool.connect.mockImplementation(() => {
      throw away
    })
    for (let i = 0; i < 5; i++) expect(await failureOf(run())).toHaveProperty('cause', away)
  })

  it('fails where a pool gives something that is not a connection', async () => {
    pool.connect.mockResolvedValueOnce(undefined as never)
    expect(await failureOf(run())).toMatchObject({ message: 'The pool gave no connection.' })
    expect(await run()).toEqual([1])
  })

  it('refuses at once what is more than may wait', async () => {
    pool.connect.mockImplementation(() => new Promise(() => {}))
    const waiting = Array.from({ length: 3 }, () => failureOf(run()))
    await expect(run()).rejects.toMatchObject({ cause: { message: '3 calls wait for a connection already.' } })
    await Promise.all(waiting)
  })
})

describe('createCheckout, errors of connections that are not in a query', () => {
  it('listens to a connection once, however often it is taken, and by however many stores', async () => {
    createCheckout(pool as PostgresPool, LIMITS, createWaitingCalls(3))
    for (let i = 0; i < 20; i++) await run()
    expect(pool.client.listenerCount('error')).toBe(1)
    expect(pool.client.emit('error', away)).toBe(true)
    for (const event of ['error', 'connect', 'acquire']) expect(pool.listenerCount(event)).toBe(1)
  })

  it.each(['connect', 'acquire'])('listens from the event %s of the pool on: the pool has stopped by then', (event) => {
    pool.emit(event, pool.client)
    expect(pool.client.emit('error', away)).toBe(true)
    expect(pool.client.listenerCount('error')).toBe(1)
  })

  it('listens to a connection whose call has failed meanwhile', async () => {
    pool.connect.mockImplementation(
      () => new Promise((resolve) => setTimeout(resolve, 5000, pool.client as PostgresClient)),
    )
    await failureOf(run())
    expect(pool.client.listenerCount('error')).toBe(1)
  })

  it('survives an error of the pool', () => {
    expect(pool.emit('error', away)).toBe(true)
  })
})
