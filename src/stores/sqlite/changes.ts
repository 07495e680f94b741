import { isExpected, type SqliteClock } from '../new-state.ts'
import type { Draft, SqlChanges } from '../sql/dialect.ts'
import { LIVE, REMOVED, rangeBelow, refuseRemoval, shownVersion } from '../sql/rows.ts'
import { type CreateResult, memberPath, type RemoveResult, type StoredResource, type WriteResult } from '../types.ts'
import type { SqliteConnection } from './connection.ts'
import type { SqliteContents } from './contents.ts'
import type { SqliteNames } from './names.ts'
import type { SqliteStatements } from './statements.ts'
import type { SqliteStates } from './states.ts'

export interface SqliteChangesOptions {
  readonly states: SqliteStates
  readonly names: SqliteNames
  readonly contents: SqliteContents
  readonly clock: SqliteClock
  readonly nextVersion: () => string
}

/** Changes of the states: each is one transaction that looks at the rows first. */
export function createSqliteChanges(
  connection: SqliteConnection,
  statements: SqliteStatements,
  { states, names, contents, clock, nextVersion }: SqliteChangesOptions,
): SqlChanges {
  /** The conflict with a path that must be present and is not. */
  function findMissing(path: string | undefined): Extract<CreateResult, { missing: string }> | undefined {
    if (path === undefined || states.readHead(path)?.state === LIVE) return undefined
    return { outcome: 'conflict', current: undefined, missing: path }
  }

  /** Removes everything below a path, without a trace. */
  function dropBelow(path: string): void {
    const range = rangeBelow(path)
    const time = clock.tick()
    const { changed: latest } = statements.latestBelow.get(...range, time) as { changed: number | null }
    if (latest === null) return
    contents.releaseBetween(...range)
    // One date for all of them, so no date goes back; none of them proves anything.
    statements.removeBelow.run(nextVersion(), Math.max(latest, time), 0, time, ...range, time)
  }

  /** A client may have written the name while the content came in. */
  function isFree(collection: string, { name }: Draft): boolean {
    return states.readHead(memberPath(collection, name)) === undefined
  }

  return {
    write({ path, version, content, expect, related, requires }, taken) {
      return connection.transact((): WriteResult => {
        const missing = findMissing(requires)
        if (missing !== undefined) return missing
        const own = { path, content, version }
        const replaced = related.length === 0 ? states.replaceKnown(own, expect, taken[0]!) : undefined
        if (replaced !== undefined) return { outcome: 'replaced', resource: replaced }
        const row = states.readHead(path)
        if (!isExpected(shownVersion(row), expect)) {
          return states.findConflict(path, related) ?? { outcome: 'conflict', current: states.find(path, 'not-shown') }
        }
        const resource = states.put(own, row, related, taken)
        if ('outcome' in resource) return resource
        return { outcome: row?.state === LIVE ? 'replaced' : 'created', resource }
      })
    },

    create({ collection, requires, draft: draftFor }, drafted, findTaken) {
      return connection.transact((): CreateResult | Draft => {
        const isUsable = drafted !== undefined && isFree(collection, drafted)
        const draft = isUsable ? drafted : draftFor(names.take(collection))
        const taken = findTaken(draft.contents)
        if (taken === undefined) return draft
        const missing = findMissing(requires)
        if (missing !== undefined) return missing
        const path = memberPath(collection, draft.name)
        const resource = states.put({ ...draft, path }, undefined, draft.related, taken)
        return 'outcome' in resource ? resource : { outcome: 'created', resource }
      })
    },

    remove(path, { mode, expect, keep, related, writes, below }, taken) {
      return connection.transact((): RemoveResult => {
        const conflict = states.findConflict(path, writes)
        if (conflict !== undefined) return conflict
        const row = states.readHead(path)
        const current = states.find(path, 'not-shown')
        const refused = refuseRemoval(row, expect, current)
        if (refused !== undefined) return refused
        states.drop(row!, mode, keep)
        for (const other of related) {
          const row = states.readHead(other)
          if (row !== undefined && row.state !== REMOVED) states.drop(row, mode, keep)
        }
        if (below) dropBelow(path)
        for (const [index, write] of writes.entries()) {
          states.put(write, states.readHead(write.path), [], [taken[index]!])
        }
        return { outcome: 'removed', resource: current as StoredResource }
      })
    },
  }
}
