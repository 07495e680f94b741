import type { MaybePromise } from '../../core/maybe-promise.ts'
import { decideChange, isExpected, type SqliteClock } from '../new-state.ts'
import type { KnownState, KnownStates } from '../recent-cache.ts'
import type { Taken } from '../sql/dialect.ts'
import { encodeText, LIVE, type RowHead, type Shown, type StateRow, toState } from '../sql/rows.ts'
import type {
  CreateResult,
  Expectation,
  ReadOptions,
  RelatedWrite,
  RemoveOptions,
  StoredResource,
  StoredState,
} from '../types.ts'
import type { SqliteConnection } from './connection.ts'
import type { SqliteContents } from './contents.ts'
import type { SqliteIndexes } from './indexes.ts'
import type { SqliteNames } from './names.ts'
import { createSqliteRows, expiryOf, type StateWrite } from './row-writes.ts'
import type { SqliteStatements } from './statements.ts'

type RelatedConflict = Extract<CreateResult, { related: StoredResource }>

/** The rows of the paths. Whatever changes them runs within a transaction. */
export interface SqliteStates {
  /** As the store's own: waits, without blocking the process, while another process writes. */
  read(path: string, options?: ReadOptions): MaybePromise<StoredState>
  /** The state that a reader finds. With `without-content` its body may be empty. */
  find(path: string, hidden: Shown, content?: 'with-content' | 'without-content'): StoredState
  readHead(path: string): RowHead | undefined
  /** The conflict with a related path that must be absent and is not. */
  findConflict(path: string, related: readonly RelatedWrite[]): RelatedConflict | undefined
  /**
   * Replaces the state that is known of a path, where it is expected and still there: one statement instead of two.
   * @returns `undefined` where the row has to be read
   */
  replaceKnown(own: StateWrite, expect: Expectation, taken: Taken): StoredResource | undefined
  /** Writes a path whose row, if any, has been read in the same transaction, and those that go with it. */
  put(
    own: StateWrite,
    row: RowHead | undefined,
    related: readonly RelatedWrite[],
    taken: readonly Taken[],
  ): StoredResource | RelatedConflict
  /** @param keep milliseconds for which a tombstone stays */
  drop(row: RowHead, mode: RemoveOptions['mode'], keep: number): void
}

export interface SqliteStatesOptions {
  readonly contents: SqliteContents
  readonly known: KnownStates
  readonly clock: SqliteClock
  readonly names: SqliteNames
  readonly indexes: SqliteIndexes
  readonly nextVersion: () => string
}

export function createSqliteStates(
  connection: SqliteConnection,
  statements: SqliteStatements,
  { contents, known, clock, names, indexes, nextVersion }: SqliteStatesOptions,
): SqliteStates {
  const rows = createSqliteRows(statements, { contents, known, names, indexes, nextVersion })

  /** A state that is known and still there. */
  function recall(path: string): KnownState | undefined {
    const state = known.find(path)
    if (state === undefined) return undefined
    return statements.versionOf(state.head.path) === state.head.version ? state : undefined
  }

  function readHead(path: string): RowHead | undefined {
    return recall(path)?.head ?? (statements.readHead.get(encodeText(path)) as RowHead | undefined)
  }

  function find(path: string, hidden: Shown, content = 'with-content'): StoredState {
    const state = recall(path)
    if (state !== undefined) return state.resource
    const isWhole = content === 'with-content'
    const row = (isWhole ? statements.readState : statements.readFacts).get(encodeText(path)) as StateRow | undefined
    const found = toState(row, hidden, clock.now(), contents.open)
    if (isWhole && row?.state === LIVE) known.offer(row, found as StoredResource)
    return found
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
      const row = index === added ? undefined : readHead(write.path)
      if (write.expect === 'absent' && row?.state === LIVE) {
        const resource = find(write.path, 'not-shown') as StoredResource
        return { outcome: 'conflict', current: find(path, 'not-shown'), related: resource }
      }
      found.push(row)
    }
    return found
  }

  function admit(taken: readonly Taken[]): void {
    let bytes = 0
    for (const { id, size } of taken) if (id === undefined) bytes += size
    connection.space.admit(bytes, taken.length, contents.reclaim)
  }

  function drop(row: RowHead, mode: RemoveOptions['mode'], keep: number): void {
    const time = clock.tick()
    const { changed, strong } = decideChange(Number(row.changed), time)
    if (mode === 'hide') {
      statements.hideState.run(nextVersion(), changed, strong ? 1 : 0, row.path)
      return
    }
    const expires = mode === 'erase' ? time : expiryOf(time, keep)
    statements.removeState.run(nextVersion(), changed, strong ? 1 : 0, expires, row.path)
    rows.release(row)
  }

  return {
    read(path, { hidden = false, metadataOnly = false } = {}) {
      return connection.attempt(() =>
        find(path, hidden ? 'shown' : 'not-shown', metadataOnly ? 'without-content' : 'with-content'),
      )
    },

    find,
    readHead,

    findConflict(path, related) {
      const found = readRelated(path, related)
      return 'outcome' in found ? found : undefined
    },

    replaceKnown(own, expect, taken) {
      const row = known.find(own.path)?.head
      // A conflict comes before a full disk: where there may be no room, the row is read first.
      if (row === undefined || !isExpected(row.version, expect) || !connection.space.isWhole()) return undefined
      return rows.replace(own, row, taken, clock.tick())
    },

    put(own, row, related, taken) {
      admit(taken)
      const time = clock.tick()
      if (related.length === 0) return rows.put(own, row, taken[0]!, time)
      const added = rows.addRecord(related, taken, time)
      const others = readRelated(own.path, related, added)
      if ('outcome' in others) return others
      const resource = rows.put(own, row, taken[0]!, time)
      for (const [index, write] of related.entries()) {
        if (index !== added) rows.put(write, others[index], taken[index + 1]!, time)
      }
      return resource
    },

    drop,
  }
}
