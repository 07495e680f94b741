import { type CheckoutOptions, createCheckout, type SendQuery } from './checkout.ts'
import { isConnectionLost, isRepeatable, toHttpError } from './errors.ts'

/** A pool of connections, as `Pool` of `pg` is one. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'connect' | 'acquire', listener: (client: PostgresClient) => void): unknown
  /** The store sets a limit on the time to connect where there is none. */
  readonly options?: { connectionTimeoutMillis?: number | undefined }
}

/** A connection that has been taken from a pool. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<unknown>
  /** Gives it back; `true` closes it instead. */
  release(destroy?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  /** The socket, which is destroyed when the database has fallen silent. */
  readonly connection?: { readonly stream?: { destroy(): unknown } }
}

export interface PostgresQuery {
  readonly text: string
  readonly name?: string
  values?: unknown[]
  readonly types?: { getTypeParser(type: number): (value: string) => unknown }
}

export type PostgresValue = string | number | boolean | Uint8Array | null

/** The result of a transaction that shall change nothing. */
export const ROLL_BACK: unique symbol = Symbol('roll back')

/** SQL text and the name under which connections keep it prepared. */
export interface PostgresStatement {
  readonly name: string
  readonly text: string
}

/** A statement that no connection keeps prepared: it runs once in a while only, or has many texts. */
export function unnamed(text: string): PostgresStatement {
  return { name: '', text }
}

/** @param signal ends the wait for a connection; a statement that was sent runs to its end */
export type RunStatement = <Row>(
  statement: PostgresStatement,
  values: PostgresValue[],
  signal?: AbortSignal,
) => Promise<Row[]>

/**
 * Runs statements on a pool. No connection is held while anything but the database is waited for.
 * Each method throws `HttpError` 503 while the database is away.
 */
export interface PostgresConnection {
  /** Runs a statement that changes nothing, once more if its connection turns out to be dead. */
  readonly read: RunStatement
  /** Runs a statement that changes something. Repeated only when the database says that nothing was changed. */
  readonly run: RunStatement
  /**
   * Runs statements in one transaction; `work` is called again when the database asks for it. When it gives
   * {@link ROLL_BACK}, nothing that it did is kept.
   */
  transact<Result>(work: (run: RunStatement) => Promise<Result>, signal?: AbortSignal): Promise<Result>
  /**
   * Runs statements that change nothing, all of which see the database as it is when the first of them begins. They walk
   * indexes: the database neither sorts nor looks through tables for them.
   */
  view<Result>(work: (run: RunStatement) => Promise<Result>, signal?: AbortSignal): Promise<Result>
}

export interface PostgresConnectionOptions extends CheckoutOptions {
  /** Whether connections keep statements prepared. */
  readonly preparedStatements: boolean
}

const MAX_ATTEMPTS = 12
const LONGEST_PAUSE = 200

const BOOLEAN = 16
const INTEGERS: readonly number[] = [20, 21, 23]

/** The parsers of this store, whatever parsers the program has set. */
const types = {
  getTypeParser(type: number): (value: string) => unknown {
    if (type === BOOLEAN) return (value) => value === 't'
    return INTEGERS.includes(type) ? Number : (value) => value
  },
}

export function createPostgresConnection(
  pool: PostgresPool,
  { preparedStatements, ...limits }: PostgresConnectionOptions,
): PostgresConnection {
  const { statementTimeout, connectTimeout } = limits
  const checkOut = createCheckout(pool, limits)
  const begin =
    `BEGIN; SET LOCAL statement_timeout = ${statementTimeout}; ` +
    `SET LOCAL idle_in_transaction_session_timeout = ${statementTimeout}`
  const beginView =
    `${begin.replace('BEGIN;', 'BEGIN; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;')}; ` +
    ['enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'jit'].map((name) => `SET LOCAL ${name} = off`).join('; ')

  async function execute<Row>(
    send: SendQuery,
    { name, text }: PostgresStatement,
    values: PostgresValue[],
  ): Promise<Row[]> {
    const query = { text, values, types }
    const result = await send(preparedStatements ? { ...query, name } : query)
    return (result as { rows: Row[] }).rows
  }

  async function runTransaction<Result>(
    send: SendQuery,
    work: (run: RunStatement) => Promise<Result>,
    opening: string = begin,
  ): Promise<Result> {
    await send({ text: opening })
    try {
      const result = await work((statement, values) => execute(send, statement, values))
      await send({ text: result === ROLL_BACK ? 'ROLLBACK' : 'COMMIT' })
      return result
    } catch (error) {
      if (isConnectionLost(error)) throw error
      await send({ text: 'ROLLBACK' })
      throw error
    }
  }

  async function attempt<Result>(
    action: () => Promise<Result>,
    whenLost: 'repeat' | 'fail',
    signal: AbortSignal | undefined,
  ): Promise<Result> {
    const start = performance.now()
    for (let count = 1; ; count++) {
      try {
        return await action()
      } catch (error) {
        if (signal?.aborted && error === signal.reason) throw error
        const elapsed = performance.now() - start
        const isWorthwhile = isRepeatable(error)
          ? count < MAX_ATTEMPTS && elapsed < statementTimeout
          : whenLost === 'repeat' && count === 1 && elapsed < connectTimeout / 2 && isConnectionLost(error)
        if (!isWorthwhile) throw toHttpError(error)
        // Without chance in it, those that met would meet again.
        await sleep(Math.random() * Math.min(2 ** count, LONGEST_PAUSE))
      }
    }
  }

  return {
    read: (statement, values, signal) =>
      attempt(() => checkOut((send) => execute(send, statement, values), signal), 'repeat', signal),
    run: (statement, values, signal) =>
      attempt(() => checkOut((send) => execute(send, statement, values), signal), 'fail', signal),
    transact: (work, signal) => attempt(() => checkOut((send) => runTransaction(send, work), signal), 'fail', signal),
    view: (work, signal) =>
      attempt(() => checkOut((send) => runTransaction(send, work, beginView), signal), 'repeat', signal),
  }
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
