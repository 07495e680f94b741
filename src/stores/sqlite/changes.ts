import { HttpError } from '../../core/errors.ts'
import { createForwardClock } from '../../core/time.ts'
import { isExpected, memberPath, parseIntegerName } from '../rules.ts'
import type { Draft, SqlChanges, Taken } from '../sql/dialect.ts'
import { escapeText, LIVE, REMOVED, type RowHead, rangeBelow, refuseRemoval, shownVersion } from '../sql/rows.ts'
import type { CreateResult, RelatedWrite, RemoveResult, StoredResource, WriteResult } from '../types.ts'
import type { SqliteConnection } from './connection.ts'
import type { SqliteContents } from './contents.ts'
import type { SqliteStates } from './reads.ts'
import type { KnownStates, SqliteRows, StateWrite } from './row-writes.ts'
import type { SqliteStatements } from './statements.ts'

type RelatedConflict = Extract<CreateResult, { related: StoredResource }>

interface SqliteChangesOptions {
  readonly states: SqliteStates
  readonly rows: SqliteRows
  readonly known: KnownStates
  readonly names: SqliteNames
  readonly contents: SqliteContents
  readonly clock: SqliteClock
  readonly nextVersion: () => string
}

/** Changes of the states: each is one transaction that looks at the rows first. */
export function createSqliteChanges(
  connection: SqliteConnection,
  statements: SqliteStatements,
  { states, rows, known, names, contents, clock, nextVersion }: SqliteChangesOptions,
): SqlChanges {
  const { space } = connection

  /** The conflict with a path that must be present and is not. */
  function findMissing(path: string | undefined): Extract<CreateResult, { missing: string }> | undefined {
    if (path === undefined || states.readHead(path)?.state === LIVE) return undefined
    return { outcome: 'conflict', current: undefined, missing: path }
  }

  /**
   * The rows of related paths, in the order of their writes; or the conflict with one that must be absent and is not.
   * @param added one that need not be read
   */
  function readRelated(
    path: string,
    related: readonly RelatedWrite[],
    added?: number,
  ): RelatedConflict | readonly (RowHead | undefined)[] {
    const found: (RowHead | undefined)[] = []
    for (const [index, write] of related.entries()) {
      const row = index === added ? undefined : states.readHead(write.path)
      if (write.expect === 'absent' && row?.state === LIVE) {
        const resource = states.find(write.path) as StoredResource
        return { outcome: 'conflict', current: states.find(path), related: resource }
      }
      found.push(row)
    }
    return found
  }

  /** Writes a path whose row, if any, has been read in the same transaction, and those that go with it. */
  function put(
    own: StateWrite,
    row: RowHead | undefined,
    related: readonly RelatedWrite[],
    taken: readonly Taken[],
  ): StoredResource | RelatedConflict {
    let bytes = 0
    for (const { id, size } of taken) if (id === undefined) bytes += size
    space.admit(bytes, taken.length, contents.reclaim)
    const time = clock.tick()
    if (related.length === 0) return rows.put(own, row, taken[0]!, time)
    const added = rows.addRecord(related, taken, time)
    const others = readRelated(own.path, related, added)
    if ('outcome' in others) return others
    const resource = rows.put(own, row, taken[0]!, time)
    for (const [index, write] of related.entries()) {
      if (index === added) continue
      rows.put({ ...write, version: nextVersion() }, others[index], taken[index + 1]!, time)
    }
    return resource
  }

  /** Removes everything below a path, without a trace. */
  function dropBelow(path: string): void {
    const range = rangeBelow(path)
    const time = clock.tick()
    contents.releaseBetween(...range)
    // None of the dates counts as strong: which of them are is not looked at.
    statements.removeBelow.run(nextVersion(), time, 0, time, ...range, time)
  }

  return {
    write({ path, version, content, expect, related, requires }, taken) {
      return connection.transact((): WriteResult => {
        const missing = findMissing(requires)
        if (missing !== undefined) return missing
        const own = { path, content, version }
        const last = related.length === 0 ? known.find(path) : undefined
        // A conflict comes before a full disk: where there may be no room, the row is read first.
        if (last !== undefined && isExpected(last.version, expect) && (space.isKnownWhole || space.isWhole())) {
          const resource = rows.replace(own, last, taken[0]!, clock.tick())
          if (resource !== undefined) return { outcome: 'replaced', resource }
        }
        const row = states.readHead(path)
        if (!isExpected(shownVersion(row), expect)) {
          const others = readRelated(path, related)
          return 'outcome' in others ? others : { outcome: 'conflict', current: states.find(path) }
        }
        const resource = put(own, row, related, taken)
        if ('outcome' in resource) return resource
        return { outcome: row?.state === LIVE ? 'replaced' : 'created', resource }
      })
    },

    async create({ collection, requires, draft: draftFor }, drafted, findTaken) {
      const result = await connection.transact((): CreateResult | Draft | { readonly refusal: unknown } => {
        const row = drafted && states.readHead(memberPath(collection, drafted.name))
        let draft = drafted
        // A client may have written the name while the content came in.
        if (draft === undefined || row !== undefined) {
          const name = names.take(collection)
          try {
            draft = draftFor(name)
          } catch (refusal) {
            // Not thrown here: with the transaction the name would come back, and be refused to every later item as well.
            return { refusal }
          }
        }
        const taken = findTaken(draft.contents)
        if (taken === undefined) return draft
        const missing = findMissing(requires)
        if (missing !== undefined) return missing
        const path = memberPath(collection, draft.name)
        const resource = put({ ...draft, path }, undefined, draft.related, taken)
        return 'outcome' in resource ? resource : { outcome: 'created', resource }
      })
      if ('refusal' in result) throw result.refusal
      return result
    },

    remove(path, { mode, expect, retention, related, relatedWrites: writes, below }, taken) {
      return connection.transact((): RemoveResult => {
        const others = readRelated(path, writes)
        if ('outcome' in others) return others
        const row = states.readHead(path)
        const current = states.find(path)
        const refused = refuseRemoval(row, expect, current)
        if (refused !== undefined) return refused
        rows.drop(row!, mode, retention, clock.tick())
        for (const other of related) {
          const row = states.readHead(other)
          if (row !== undefined && row.state !== REMOVED) rows.drop(row, mode, retention, clock.tick())
        }
        if (below) dropBelow(path)
        for (const [index, write] of writes.entries()) {
          put({ ...write, version: nextVersion() }, states.readHead(write.path), [], [taken[index]!])
        }
        return { outcome: 'removed', resource: current as StoredResource }
      })
    },
  }
}

export type SqliteClock = ReturnType<typeof createSqliteClock>

/**
 * The clock of the processes that share a file: the local one, but never behind the latest second in which any of them
 * has written. A process whose clock is hours behind would otherwise date a new state like one that was removed, and
 * whose row another process has swept.
 */
export function createSqliteClock(statements: SqliteStatements, now: () => number) {
  const clock = createForwardClock(now)

  /** The latest second of the file. The file keeps seconds: a date has no more, and one write a second is enough. */
  function readSecond(): number {
    const { second } = statements.readClock.get() as { second: number }
    clock.raise(second * 1000)
    return second
  }

  readSecond()
  return {
    /** The time as this process knows it, without a look at the file. */
    now: (): number => clock.now(),

    /** Within a transaction: the time by the file. */
    read(): number {
      readSecond()
      return clock.now()
    },

    /** Within a transaction: the time by the file, for what is written now; no process writes an earlier one afterwards. */
    tick(): number {
      const known = readSecond()
      const time = clock.now()
      const second = Math.floor(time / 1000)
      if (second > known) statements.setClock.run(second)
      return time
    },
  }
}

export type SqliteNames = ReturnType<typeof createSqliteNames>

/** Assigns the names of new members, by a counter for each collection. All of it runs within a transaction. */
export function createSqliteNames(connection: SqliteConnection, statements: SqliteStatements) {
  // The counter is past the name that it has given last, as long as the transaction is not rolled back.
  const last = { transaction: 0, collection: '', id: 0 }

  return {
    /** @throws HttpError 507 when the collection has no names left */
    take(collection: string): string {
      const key = escapeText(collection)
      const row = statements.nextName.get(key) as { id: number } | undefined
      if (row !== undefined) {
        Object.assign(last, { transaction: connection.transactions, collection: key, id: Number(row.id) })
        return String(row.id)
      }
      throw new HttpError(507, 'ERR_OUT_OF_SPACE', { detail: 'The collection has no names left.' })
    },

    /** Keeps a name that a client has written from being assigned. @param collection as it stands in the table */
    raiseFor(collection: string, name: string): void {
      const id = parseIntegerName(name)
      if (id === undefined || id <= 0) return
      const isTaken = id === last.id && collection === last.collection && last.transaction === connection.transactions
      if (!isTaken) statements.raiseCounter.run(collection, id + 1)
    },
  }
}
