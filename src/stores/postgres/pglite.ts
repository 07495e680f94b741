import type { PostgresClient, PostgresPool } from './connection.ts'

/** Runs statements in PGlite, outside or inside of a transaction. */
export interface PgliteRunner {
  query(
    text: string,
    values?: unknown[],
    options?: {
      readonly parsers?: Record<number, (value: string) => unknown>
      readonly serializers?: Record<number, (value: unknown) => string>
    },
  ): Promise<unknown>
  exec(text: string): Promise<unknown>
}

/** An instance of PGlite: a Postgres database within the process, with one connection. */
export interface PgliteDatabase extends PgliteRunner {
  transaction<Result>(
    work: (transaction: PgliteRunner & { rollback(): Promise<void> }) => Promise<Result>,
  ): Promise<Result>
}

const BYTEA = 17
/** The types of columns whose values are not used as the text that Postgres sends. */
const PARSED: readonly number[] = [16, 20, 21, 23]

/** PGlite itself takes no text for bytea, and writes hexadecimal digits one by one. */
const serializers = {
  [BYTEA]: (value: unknown): string =>
    typeof value === 'string' ? value : `\\x${Buffer.from(value as Uint8Array).toString('hex')}`,
}

export function isPglite(value: unknown): value is PgliteDatabase {
  const { query, exec, transaction } = (value ?? {}) as Partial<PgliteDatabase>
  return [query, exec, transaction].every((method) => typeof method === 'function')
}

/** A pool of the one connection that PGlite has. Other users of the instance take turns with it. */
export function createPglitePool(database: PgliteDatabase): PostgresPool {
  const waiting: ((client: PostgresClient) => void)[] = []
  let isTaken = false

  function giveOut(): void {
    const next = waiting.shift()
    isTaken = next !== undefined
    // PGlite works in this thread and answers without a turn of the event loop: a full queue would keep IO waiting.
    next?.(createClient(database, () => setImmediate(giveOut)))
  }

  return {
    connect() {
      return new Promise((resolve) => {
        waiting.push(resolve)
        if (!isTaken) giveOut()
      })
    },
    // PGlite has no connection that could break.
    on() {},
  }
}

function createClient(database: PgliteDatabase, giveBack: () => void): PostgresClient {
  let transaction: OpenTransaction | undefined

  async function end(how: 'commit' | 'rollback'): Promise<void> {
    const ending = transaction
    transaction = undefined
    await ending?.end(how)
  }

  return {
    async query({ text, values, types }) {
      // PGlite keeps its other users out of a transaction only if it begins and ends the transaction itself.
      if (text === 'COMMIT') return end('commit')
      if (text === 'ROLLBACK') return end('rollback')
      if (text.startsWith('BEGIN;')) {
        transaction = beginTransaction(database)
        return (await transaction.runner).exec(text.slice('BEGIN;'.length))
      }
      const runner = transaction === undefined ? database : await transaction.runner
      const parsers = types === undefined ? [] : PARSED.map((type) => [type, types.getTypeParser(type)] as const)
      return runner.query(text, values, { serializers, parsers: Object.fromEntries(parsers) })
    },
    release() {
      // Given back within a transaction only when a deadline was missed, which the caller has reported.
      end('rollback').then(giveBack, giveBack)
    },
    on() {},
  }
}

interface OpenTransaction {
  /** Fulfilled when it is the turn of the transaction. */
  readonly runner: Promise<PgliteRunner>
  end(how: 'commit' | 'rollback'): Promise<void>
}

function beginTransaction(database: PgliteDatabase): OpenTransaction {
  let setEnding: (how: 'commit' | 'rollback') => void
  const ending = new Promise<'commit' | 'rollback'>((resolve) => {
    setEnding = resolve
  })
  let done: Promise<void>
  const runner = new Promise<PgliteRunner>((resolve, reject) => {
    done = database.transaction(async (transaction) => {
      resolve(transaction)
      if ((await ending) === 'rollback') await transaction.rollback()
    })
    done.catch(reject)
  })
  return {
    runner,
    end(how) {
      setEnding(how)
      return done
    },
  }
}
