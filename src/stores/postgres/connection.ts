import { setTimeout as sleep } from 'node:timers/promises'
import type { PostgresStoreOptions } from '../postgres.ts'
import type { Abortable } from '../types.ts'
import {
  type CheckoutLimits,
  createCheckout,
  createWaitingCalls,
  isConnectionLost,
  isReasonOf,
  isRepeatable,
  type SendQuery,
  toHttpError,
  UNENDING,
} from './checkout.ts'
import { DirectQuery, type DirectStatement, type Fields, takesDirectQueries } from './direct-query.ts'
import { createSharedTrips } from './shared-trips.ts'

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
  query(query: PostgresQuery): PromiseLike<unknown>
  /** Gives it back; `true` closes it instead. */
  release(destroy?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'notice', listener: (notice: { readonly routine?: string | undefined }) => void): unknown
  /** `I`, `T` or `E`: idle, in a transaction, or in one that has failed. */
  getTransactionStatus?(): unknown
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
  /** Makes a row of what the database sends, where the statement is run often; it then takes the shorter way. */
  readonly decode?: ((fields: Fields) => unknown) | undefined
  /** Whether several runs may share a transaction, in the order of their first values. */
  readonly isShared?: boolean | undefined
}

/** As a text alone, no connection keeps it prepared: it runs once in a while only, or has many texts. */
type AnyStatement = PostgresStatement | string

/** @param call ends the wait for a connection when it is given up; a statement that was sent runs to its end */
export type RunStatement = <Row>(statement: AnyStatement, values: PostgresValue[], call?: Abortable) => Promise<Row[]>

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
  transact<Result>(work: (run: RunStatement) => Promise<Result>, call?: Abortable): Promise<Result>
  /**
   * Runs statements that change nothing, all of which see the database as it is when the first of them begins. They walk
   * indexes: the database neither sorts nor looks through tables for them.
   */
  view<Result>(work: (run: RunStatement) => Promise<Result>, call?: Abortable): Promise<Result>
}

type PostgresConnectionOptions = CheckoutLimits &
  Required<Pick<PostgresStoreOptions, 'maxWaiting' | 'preparedStatements'>>

const MAX_ATTEMPTS = 12
const LONGEST_PAUSE = 200

const BOOLEAN = 16
const INTEGERS: readonly number[] = [20, 21, 23]

/** The parsers of this store, whatever parsers, and whichever format, the program has set. */
const types = {
  getTypeParser(type: number, format?: string): (value: string) => unknown {
    if (format === 'binary') return (value) => parseBinary(type, value as unknown as Buffer)
    if (type === BOOLEAN) return (value) => value === 't'
    return INTEGERS.includes(type) ? Number : (value) => value
  },
}

function parseBinary(type: number, bytes: Buffer): unknown {
  if (type === BOOLEAN) return bytes[0] === 1
  // None of the store is negative.
  return INTEGERS.includes(type) ? Number(`0x${bytes.toString('hex')}`) : bytes.toString()
}

export function createPostgresConnection(pool: PostgresPool, limits: PostgresConnectionOptions): PostgresConnection {
  const { statementTimeout, connectTimeout, preparedStatements } = limits
  const waiting = createWaitingCalls(limits.maxWaiting)
  const checkOut = createCheckout(pool, limits, waiting)
  const runShared = createSharedTrips({ checkOut, waiting, runAlone, preparedStatements })
  const begin =
    `BEGIN; SET LOCAL statement_timeout = ${statementTimeout}; ` +
    `SET LOCAL idle_in_transaction_session_timeout = ${statementTimeout}`
  const beginView =
    `${begin.replace('BEGIN;', 'BEGIN; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;')}; ` +
    ['enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'jit'].map((name) => `SET LOCAL ${name} = off`).join('; ')

  function execute<Row>(
    send: SendQuery,
    client: PostgresClient,
    statement: AnyStatement,
    values: PostgresValue[],
  ): Promise<Row[]> {
    const { name, text, decode }: PostgresStatement =
      typeof statement === 'string' ? { name: '', text: statement } : statement
    const rows =
      decode !== undefined && takesDirectQueries(client)
        ? send(new DirectQuery({ name, text, decode }, preparedStatements ? name : '', [values]))
        : send(preparedStatements ? { text, values, types, name } : { text, values, types })
    return rows as Promise<Row[]>
  }

  function runAlone<Row>(statement: AnyStatement, values: PostgresValue[], call: Abortable): Promise<Row[]> {
    return checkOut((send, client) => execute(send, client, statement, values), call)
  }

  function runSingle<Row>(statement: AnyStatement, values: PostgresValue[], call: Abortable): Promise<Row[]> {
    if (typeof statement === 'string' || !statement.isShared) return runAlone(statement, values, call)
    return runShared(statement as DirectStatement, values, call) as Promise<Row[]>
  }

  function runTransaction<Result>(
    opening: string,
    work: (run: RunStatement) => Promise<Result>,
    call: Abortable,
  ): Promise<Result> {
    return checkOut(async (send, client) => {
      try {
        await send({ text: opening })
        const result = await work((statement, values) => execute(send, client, statement, values))
        await send({ text: result === ROLL_BACK ? 'ROLLBACK' : 'COMMIT' })
        return result
      } catch (error) {
        if (isConnectionLost(error) && !isReasonOf(call, error)) throw error
        await send({ text: 'ROLLBACK' })
        throw error
      }
    }, call)
  }

  async function attempt<Result>(
    action: () => Promise<Result>,
    whenLost: 'repeat' | 'fail',
    call: Abortable,
  ): Promise<Result> {
    const start = performance.now()
    for (let count = 1; ; count++) {
      try {
        return await action()
      } catch (error) {
        if (isReasonOf(call, error)) throw error
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
    read: (statement, values, call = UNENDING) => attempt(() => runSingle(statement, values, call), 'repeat', call),
    run: (statement, values, call = UNENDING) => attempt(() => runSingle(statement, values, call), 'fail', call),
    transact: (work, call = UNENDING) => attempt(() => runTransaction(begin, work, call), 'fail', call),
    view: (work, call = UNENDING) => attempt(() => runTransaction(beginView, work, call), 'repeat', call),
  }
}

/**
 * A connection whose first statement waits until the tables are there; after a failure the next one tries again.
 * @param maxWaiting calls that may wait for the tables at the same time
 * @param migrate makes the tables; fulfilled when they are there
 */
export function connectWhenMigrated(
  connection: PostgresConnection,
  maxWaiting: number,
  migrate: () => Promise<void>,
): PostgresConnection {
  const waiting = createWaitingCalls(maxWaiting, 'the tables')
  let migration: Promise<void> | undefined

  async function makeTables(): Promise<void> {
    try {
      await migrate()
    } catch (error) {
      migration = undefined
      throw error
    }
    // Later calls need no look at this.
    Object.assign(own, connection)
  }

  async function waitForTables(): Promise<void> {
    waiting.enter()
    try {
      await (migration ??= makeTables())
    } finally {
      waiting.leave()
    }
  }

  const own: PostgresConnection = {
    read: (statement, values, call) => waitForTables().then(() => connection.read(statement, values, call)),
    run: (statement, values, call) => waitForTables().then(() => connection.run(statement, values, call)),
    transact: (work, call) => waitForTables().then(() => connection.transact(work, call)),
    view: (work, call) => waitForTables().then(() => connection.view(work, call)),
  }
  return own
}
