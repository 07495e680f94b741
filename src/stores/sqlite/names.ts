import { HttpError } from '../../core/errors.ts'
import { encodeText } from '../sql/rows.ts'
import { parseIntegerName } from '../types.ts'
import type { SqliteConnection } from './connection.ts'
import type { SqliteStatements } from './statements.ts'

/** Assigns the names of new members, by a counter for each collection. All of it runs within a transaction. */
export interface SqliteNames {
  /** @throws HttpError 507 when the collection has no names left */
  take(collection: string): string
  /**
   * Keeps a name that a client has written from being assigned.
   * @param collection as it stands in the table
   */
  raiseFor(collection: string, name: string): void
}

export function createSqliteNames(
  connection: Pick<SqliteConnection, 'transactions'>,
  statements: SqliteStatements,
): SqliteNames {
  // The counter is past the name that it has given last, as long as the transaction is not rolled back.
  const last = { transaction: 0, collection: '', id: 0 }

  return {
    take(collection) {
      const key = encodeText(collection)
      const row = statements.nextName.get(key) as { id: number } | undefined
      if (row !== undefined) {
        Object.assign(last, { transaction: connection.transactions, collection: key, id: Number(row.id) })
        return String(row.id)
      }
      throw new HttpError(507, 'ERR_OUT_OF_SPACE', { detail: 'The collection has no names left.' })
    },

    raiseFor(collection, name) {
      const id = parseIntegerName(name)
      if (id === undefined || id <= 0) return
      const isTaken = id === last.id && collection === last.collection && last.transaction === connection.transactions
      if (!isTaken) statements.raiseCounter.run(collection, id + 1)
    },
  }
}
