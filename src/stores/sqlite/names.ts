import { HttpError } from '../../core/errors.ts'
import { encodeText } from '../sql/rows.ts'
import { parseIntegerName } from '../types.ts'
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

export function createSqliteNames(statements: SqliteStatements): SqliteNames {
  return {
    take(collection) {
      const row = statements.nextName.get(encodeText(collection)) as { id: number } | undefined
      if (row !== undefined) return String(row.id)
      throw new HttpError(507, 'ERR_OUT_OF_SPACE', { detail: 'The collection has no names left.' })
    },

    raiseFor(collection, name) {
      const id = parseIntegerName(name)
      if (id !== undefined && id > 0) statements.raiseCounter.run(collection, id + 1)
    },
  }
}
