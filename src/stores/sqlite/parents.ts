import { rangeBelow } from '../sql/names.ts'
import { LIVE } from '../sql/rows.ts'
import type { CreateResult } from '../types.ts'
import type { SqliteClock } from './clock.ts'
import type { SqliteContents } from './contents.ts'
import type { SqliteStatements } from './statements.ts'
import type { SqliteStates } from './states.ts'

/** What ties a path to those below it. All of it runs within a transaction. */
export interface SqliteParents {
  /** The conflict with a path that must be present and is not. */
  findMissing(path: string | undefined): Extract<CreateResult, { missing: string }> | undefined
  /** Removes everything below a path, without a trace. */
  dropBelow(path: string): void
}

export function createSqliteParents(
  statements: SqliteStatements,
  states: SqliteStates,
  contents: SqliteContents,
  clock: SqliteClock,
  nextVersion: () => string,
): SqliteParents {
  return {
    findMissing(path) {
      if (path === undefined || states.readHead(path)?.state === LIVE) return undefined
      return { outcome: 'conflict', current: undefined, missing: path }
    },

    dropBelow(path) {
      const range = rangeBelow(path)
      const time = clock.tick()
      const { changed: latest } = statements.latestBelow.get(...range, time) as { changed: number | null }
      if (latest === null) return
      contents.releaseBetween(...range)
      // One date for all of them, so no date goes back; none of them proves anything.
      statements.removeBelow.run(nextVersion(), Math.max(latest, time), 0, time, ...range, time)
    },
  }
}
