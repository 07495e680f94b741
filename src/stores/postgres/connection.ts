import { publishFailure } from '../../core/diagnostics.ts'
import { createUnavailableError, isConnectionIntact, isConnectionLost, isRepeatable, toHttpError } from './errors.ts'

/** A pool of connections, as `Pool` of `pg` is one. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** A connection that has been taken from a pool. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<unknown>
  /** Gives it back; `true` closes it instead. */
  release(destroy?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
}

export interface PostgresQuery {
  readonly text: string
  readonly name?: string
  values?: unknown[]
  readonly types?: { getTypeParser(type: number): (value: string) => unknown }
  readonly query_timeout?: number
}

export type PostgresValue = string | number | boolean | Uint8Array | null

/** SQL text and the name under which connections keep it prepared. */
export interface PostgresStatement {
  readonly name: string
  readonly text: string
}

export type RunStatement = <Row>(statement: PostgresStatement, values: PostgresValue[]) => Promise<Row[]>

/**
 * Runs statements on a pool. No connection is held while anything but the database is waited for.
 * Each method throws `HttpError` 503 while the database is away.
 */
export interface PostgresConnection {
  /** Runs a statement that changes nothing, once more if its connection turns out to be dead. */
  readonly read: RunStatement
  /** Runs a statement that changes something. Repeated only when the database says that nothing was changed. */
  readonly run: RunStatement
  /** Runs statements in one transaction; `work` is called again when the database asks for it. */
  transact<Result>(work: (run: RunStatement) => Promise<Result>): Promise<Result>
}

export interface PostgresConnectionOptions {
  /** Milliseconds that a statement may take. */
  readonly statementTimeout: number
  /** Milliseconds to wait for a connection. */
  readonly connectTimeout: number
  /** Whether connections keep statements prepared. */
  readonly preparedStatements: boolean
}

const MAX_ATTEMPTS = 12
const LONGEST_PAUSE = 200

const BOOLEAN = 16
const INTEGERS: readonly number[] = [20, 21, 23]

/** Whatever parsers the program has set for its own use: ours. */
const types = {
  getTypeParser(type: number): (value: string) => unknown {
    if (type === BOOLEAN) return (value) => value === 't'
    return INTEGERS.includes(type) ? Number : (value) => value
  },
}

const guarded = new WeakSet<object>()

/** An `error` event that nobody listens to would end the process. */
function guardAgainstErrorEvents(emitter: PostgresPool | PostgresClient, listener: (error: Error) => void): void {
  if (guarded.has(emitter)) return
  guarded.add(emitter)
  emitter.on('error', listener)
}

export function createPostgresConnection(
  pool: PostgresPool,
  { statementTimeout, connectTimeout, preparedStatements }: PostgresConnectionOptions,
): PostgresConnection {
  guardAgainstErrorEvents(pool, (error) => publishFailure({ error, stage: 'background' }))
  const begin =
    `BEGIN; SET LOCAL statement_timeout = ${statementTimeout}; ` +
    `SET LOCAL idle_in_transaction_session_timeout = ${statementTimeout}`

  /** The pool's own time limit is the program's; without one it waits for ever. */
  function connect(): Promise<PostgresClient> {
    return new Promise((resolve, reject) => {
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        reject(createUnavailableError(new Error(`No connection was free within ${connectTimeout} ms.`)))
      }, connectTimeout)
      pool.connect().then(
        (client) => {
          clearTimeout(timer)
          // The pool listens only while nobody has the connection. The query that fails tells of the loss.
          guardAgainstErrorEvents(client, () => {})
          if (isLate) client.release()
          else resolve(client)
        },
        (error) => {
          clearTimeout(timer)
          reject(error)
        },
      )
    })
  }

  async function withClient<Result>(use: (client: PostgresClient) => Promise<Result>): Promise<Result> {
    const client = await connect()
    try {
      const result = await use(client)
      client.release()
      return result
    } catch (error) {
      client.release(!isConnectionIntact(error))
      throw error
    }
  }

  async function execute<Row>(
    client: PostgresClient,
    { name, text }: PostgresStatement,
    values: PostgresValue[],
  ): Promise<Row[]> {
    const query = { text, values, types, query_timeout: statementTimeout }
    const result = await client.query(preparedStatements ? { ...query, name } : query)
    return (result as { rows: Row[] }).rows
  }

  async function runTransaction<Result>(
    client: PostgresClient,
    work: (run: RunStatement) => Promise<Result>,
  ): Promise<Result> {
    await client.query({ text: begin, query_timeout: statementTimeout })
    try {
      const result = await work((statement, values) => execute(client, statement, values))
      await client.query({ text: 'COMMIT', query_timeout: statementTimeout })
      return result
    } catch (error) {
      if (isConnectionLost(error)) throw error
      await client.query({ text: 'ROLLBACK', query_timeout: statementTimeout })
      throw error
    }
  }

  async function attempt<Result>(action: () => Promise<Result>, whenLost: 'repeat' | 'fail'): Promise<Result> {
    const start = performance.now()
    for (let count = 1; ; count++) {
      try {
        return await action()
      } catch (error) {
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
    read: (statement, values) => attempt(() => withClient((client) => execute(client, statement, values)), 'repeat'),
    run: (statement, values) => attempt(() => withClient((client) => execute(client, statement, values)), 'fail'),
    transact: (work) => attempt(() => withClient((client) => runTransaction(client, work)), 'fail'),
  }
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
