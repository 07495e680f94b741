import { memberPath } from '../paths.ts'
import type { Draft } from '../sql/commit.ts'
import type { SqlChanges } from '../sql/create-store.ts'
import { isExpected, LIVE, refuseRemoval } from '../sql/rows.ts'
import type { CreateResult, RemoveResult, StoredResource, WriteResult } from '../types.ts'
import type { SqliteConnection } from './handle.ts'
import type { SqliteNames } from './names.ts'
import type { SqliteParents } from './parents.ts'
import type { SqliteStates } from './states.ts'

/** Changes of the states: each is one transaction that looks at the rows first. */
export function createSqliteChanges(
  connection: SqliteConnection,
  states: SqliteStates,
  names: SqliteNames,
  parents: SqliteParents,
): SqlChanges {
  /** A client may have written the name while the content came in. */
  function isFree(collection: string, { name }: Draft): boolean {
    return states.readHead(memberPath(collection, name)) === undefined
  }

  return {
    write({ path, version, content, expect, related, requires }, taken) {
      return connection.transact((): WriteResult => {
        const missing = parents.findMissing(requires)
        if (missing !== undefined) return missing
        const row = states.readHead(path)
        if (!isExpected(row, expect)) {
          return states.findConflict(path, related) ?? { outcome: 'conflict', current: states.read(path, 'not-shown') }
        }
        const resource = states.put({ path, row, content, version }, related, taken)
        if ('outcome' in resource) return resource
        return { outcome: row?.state === LIVE ? 'replaced' : 'created', resource }
      })
    },

    create({ collection, requires, draft: draftFor }, drafted, findTaken) {
      return connection.transact((): CreateResult | Draft => {
        const isUsable = drafted !== undefined && isFree(collection, drafted)
        const draft = isUsable ? drafted : draftFor(names.take(collection))
        const taken = findTaken(draft)
        if (taken === undefined) return draft
        const missing = parents.findMissing(requires)
        if (missing !== undefined) return missing
        const path = memberPath(collection, draft.name)
        const resource = states.put({ ...draft, path, row: undefined }, draft.related, taken)
        return 'outcome' in resource ? resource : { outcome: 'created', resource }
      })
    },

    remove(path, { mode, expect, keep, related, writes, below }, taken) {
      return connection.transact((): RemoveResult => {
        const conflict = states.findConflict(path, writes)
        if (conflict !== undefined) return conflict
        const row = states.readHead(path)
        const current = states.read(path, 'not-shown')
        const refused = refuseRemoval(row, expect, current)
        if (refused !== undefined) return refused
        states.drop(row!, mode, keep)
        states.dropRelated(related, mode, keep)
        if (below) parents.dropBelow(path)
        for (const [index, write] of writes.entries()) {
          states.put({ ...write, row: states.readHead(write.path) }, [], [taken[index]!])
        }
        return { outcome: 'removed', resource: current as StoredResource }
      })
    },
  }
}
