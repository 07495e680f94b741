import { stopWatch, watchIdle } from '../../core/idle-watch.ts'
import type { PostgresClient, PostgresQuery, PostgresStatement, PostgresValue } from './connection.ts'
import { DirectQuery, takesDirectQueries, takesQueriesAhead } from './direct-query.ts'
import { isConnectionIntact } from './errors.ts'

/** Sends a query on a connection. @returns its rows. Fails when its deadline is over. */
export type SendQuery = (query: PostgresQuery) => Promise<unknown[]>

/** One statement, which is a transaction of its own. */
export interface Single {
  readonly statement: PostgresStatement
  readonly values: PostgresValue[]
  readonly resolve: (rows: unknown[]) => void
  readonly reject: (error: unknown) => void
}

export interface TurnOptions {
  /** Milliseconds that a statement may take. */
  readonly statementTimeout: number
  /** Whether connections keep statements prepared. */
  readonly preparedStatements: boolean
}

const BOOLEAN = 16
const INTEGERS: readonly number[] = [20, 21, 23]

/** The parsers of this store, whatever parsers the program has set. */
const types = {
  getTypeParser(type: number): (value: string) => unknown {
    if (type === BOOLEAN) return (value) => value === 't'
    return INTEGERS.includes(type) ? Number : (value) => value
  },
}

export function createQuery(
  client: PostgresClient,
  { name, text, decode }: PostgresStatement,
  values: PostgresValue[],
  { preparedStatements }: Pick<TurnOptions, 'preparedStatements'>,
): PostgresQuery | DirectQuery<unknown> {
  if (decode !== undefined && takesDirectQueries(client)) {
    return new DirectQuery({ text, decode }, preparedStatements ? name : '', values)
  }
  return preparedStatements ? { text, values, types, name } : { text, values, types }
}

/** Whether statements can be sent ahead of the answers to others. */
export function canRunAhead(
  client: PostgresClient,
  { name, decode }: PostgresStatement,
  { preparedStatements }: TurnOptions,
): boolean {
  if (decode === undefined || !preparedStatements || !takesDirectQueries(client)) return false
  return takesQueriesAhead(client, name)
}

/** Runs statements on a connection, one behind the other, and gives it back. Each has its own result. */
export function runSingles(client: PostgresClient, singles: readonly Single[], options: TurnOptions): void {
  let left = singles.length
  let condition: Condition = 'intact'
  const watch = watchIdle(options.statementTimeout, () => {
    condition = 'silent'
    failAll(createSilenceError(options.statementTimeout))
  })

  function end(): void {
    stopWatch(watch)
    giveBack(client, condition)
  }

  function failAll(error: unknown): void {
    left = 0
    for (const { reject } of singles) reject(error)
    end()
  }

  function receive({ resolve, reject }: Single, answer: PromiseLike<unknown>): void {
    answer.then(
      (result) => {
        resolve(rowsOf(result))
        settle()
      },
      (error) => {
        if (!isConnectionIntact(error) && condition === 'intact') condition = 'broken'
        reject(error)
        settle()
      },
    )
  }

  function settle(): void {
    watch.moved = true
    if (--left === 0) end()
  }

  const queries = singles.map(({ statement, values }) => createQuery(client, statement, values, options))
  try {
    for (let i = 1; i < queries.length; i++) {
      const query = queries[i] as DirectQuery<unknown>
      ;(queries[i - 1] as DirectQuery<unknown>).follow(client, query)
      receive(singles[i]!, query)
    }
    receive(singles[0]!, client.query(queries[0]!))
  } catch (error) {
    condition = 'broken'
    failAll(error)
  }
}

/** Lends a connection and gives it back. */
export async function runUse<Result>(
  client: PostgresClient,
  use: (send: SendQuery, client: PostgresClient) => Promise<Result>,
  { statementTimeout }: TurnOptions,
): Promise<Result> {
  let isSilent = false

  function send(query: PostgresQuery): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      const watch = watchIdle(statementTimeout, () => {
        isSilent = true
        fail(createSilenceError(statementTimeout))
      })

      function fail(error: unknown): void {
        stopWatch(watch)
        reject(error)
      }

      try {
        client.query(query).then((result) => {
          stopWatch(watch)
          resolve(rowsOf(result))
        }, fail)
      } catch (error) {
        fail(error)
      }
    })
  }

  try {
    const result = await use(send, client)
    client.release()
    return result
  } catch (error) {
    giveBack(client, isSilent ? 'silent' : isConnectionIntact(error) ? 'intact' : 'broken')
    throw error
  }
}

/** Whether a connection can serve further statements; a silent one does not even say goodbye. */
type Condition = 'intact' | 'broken' | 'silent'

function giveBack(client: PostgresClient, condition: Condition): void {
  client.release(condition !== 'intact')
  // A graceful end would wait for an answer to its goodbye, and with it the next caller for its place in the pool.
  if (condition === 'silent') client.connection?.stream?.destroy()
}

function rowsOf(result: unknown): unknown[] {
  return (result as { readonly rows?: unknown[] } | undefined)?.rows ?? []
}

function createSilenceError(statementTimeout: number): Error {
  return new Error(`The database did not answer within ${statementTimeout} ms.`)
}
