import type { MaybePromise } from '../../core/maybe-promise.ts'
import type { CollectionIndex, IndexedValues } from '../lists.ts'
import { tryTo } from '../sql/background.ts'
import type { Batch, NewEntry, SqlShared, Swept } from '../sql/dialect.ts'
import {
  advance,
  DONE,
  type EntryKeys,
  encodeEntry,
  entryPlaceOf,
  isAtPosition,
  NOTE_USE_AFTER,
  type Place,
  type PlaceRow,
  type Position,
  toPendingBatch,
  toPlace,
  toWalkedBatch,
  UNUSED_AFTER,
} from '../sql/queries/index-tables.ts'
import { escapeText, LIVE, memberKeyOf, type OpenContent, type RowHead, type StateRow, sortKeyOf } from '../sql/rows.ts'
import type { SqliteClock } from './changes.ts'
import type { SqliteConnection } from './connection.ts'
import type { SqliteValue } from './handle.ts'
import type { SqliteStatements } from './statements.ts'

/** Makes the entry of a member within one transaction. */
type PutEntry = (sortKey: string, values: IndexedValues) => void

export type SqliteIndexes = ReturnType<typeof createSqliteIndexes>

type UsedRow = PlaceRow & { readonly used: number }

/** Members that are indexed in one transaction. */
const BATCH = 50

export function createSqliteIndexes(
  connection: SqliteConnection,
  statements: SqliteStatements,
  { now }: Pick<SqliteClock, 'now'>,
  open: OpenContent,
  { indexMembers }: Pick<SqlShared, 'indexMembers'>,
) {
  /** Those of one transaction: all members that are written in it go to the same place. */
  const prepared = { transaction: 0, entries: new Map<string, PutEntry>() }

  function findRow(collection: string, index: CollectionIndex): UsedRow | undefined {
    return statements.findPlace.get(escapeText(collection), index.version) as UsedRow | undefined
  }

  function hasMembers(collection: string): boolean {
    const key = escapeText(collection)
    return Boolean((statements.hasMembers.get(key, key) as { has: number }).has)
  }

  function createRow(collection: string, index: CollectionIndex): UsedRow {
    const phase = hasMembers(collection) ? LIVE : DONE
    const row = statements.createPlace.get(escapeText(collection), index.version, phase, now()) as { id: number }
    return { id: row.id, phase, walked: '', used: now(), is_pending: 0 }
  }

  function putEntry(place: number, sortKey: string, keys: EntryKeys): void {
    statements.putEntry(keys.length).run(place, sortKey, ...(keys as SqliteValue[]))
  }

  function readWalk(collection: string, row: PlaceRow) {
    const members = statements.walkMembers.all(escapeText(collection), row.phase, row.walked, BATCH)
    return toWalkedBatch(row, members as (StateRow & { readonly sort_key: string })[], open)
  }

  /** Within a transaction: the commit would take a member out that is removed and created again between two reads. */
  function readPending(collection: string, id: number) {
    const rows = statements.readPending.all(id, BATCH) as { sort_key: string }[]
    if (rows.length === 0) return undefined
    const pending = rows.map((row) => row.sort_key)
    const members = pending.map((sortKey) => statements.readState.get(memberKeyOf(collection, sortKey)))
    return toPendingBatch(id, pending, members.filter((row) => row !== undefined) as StateRow[], open)
  }

  return {
    /** The place of an index; `undefined` when it is not known and the collection has no members. */
    find(collection: string, index: CollectionIndex): Place | 'unknown' | undefined {
      const row = findRow(collection, index)
      if (row === undefined) return hasMembers(collection) ? 'unknown' : undefined
      if (row.used < now() - NOTE_USE_AFTER) {
        // Beside the request, which does not wait for it and does not fail with it.
        void tryTo(() => connection.transactLazily(() => statements.usePlace.run(now(), row.id)))
      }
      return toPlace(row)
    },

    /** Within a transaction, before a member is written with values: makes the place for them. */
    prepare(collection: string, index: CollectionIndex): PutEntry {
      if (prepared.transaction !== connection.transactions) {
        prepared.transaction = connection.transactions
        prepared.entries.clear()
      }
      const key = `${index.version} ${collection}`
      const known = prepared.entries.get(key)
      if (known !== undefined) return known
      const { id, used, phase } = findRow(collection, index) ?? createRow(collection, index)
      if (used < now() - NOTE_USE_AFTER) statements.usePlace.run(now(), id)
      if (phase !== DONE) indexMembers(collection, index)
      const put: PutEntry = (sortKey, values) => putEntry(id, sortKey, encodeEntry(index, values))
      prepared.entries.set(key, put)
      return put
    },

    async read(collection: string, index: CollectionIndex): Promise<Batch<Position> | undefined> {
      const found = await connection.attempt(() => findRow(collection, index))
      const create = () => findRow(collection, index) ?? createRow(collection, index)
      const row = found ?? (await connection.transactLazily(create))
      if (row.phase === DONE) return connection.transactLazily(() => readPending(collection, row.id))
      return connection.attempt(() => readWalk(collection, row))
    },

    commit(position: Position, items: readonly NewEntry[]): MaybePromise<number | undefined> {
      const { place, pending } = position
      return connection.transactLazily(() => {
        const row = statements.readPlace.get(place) as { phase: number; walked: string; indexed: number } | undefined
        if (row === undefined || !isAtPosition(row, position)) return undefined
        connection.space.admit(0, items.length, () => 'all')
        const settled = new Set(pending)
        let { indexed } = row
        for (const { item, keys } of items) {
          const current = statements.readHead.get(escapeText(item.path)) as RowHead | undefined
          // What has been written since has its entry, or is pending.
          if (current?.version !== item.version) {
            settled.delete(sortKeyOf(item.path))
            continue
          }
          putEntry(entryPlaceOf(place, current.state), sortKeyOf(item.path), keys)
          indexed++
        }
        for (const sortKey of settled) statements.donePending.run(place, sortKey)
        const { phase, walked } = advance(position, row)
        statements.advancePlace.run(phase, walked, indexed, place)
        return indexed
      })
    },

    /** Within a transaction: one bounded step of clearing away indexes that have not been used for a day. */
    sweep(): Swept {
      const dropped = statements.findDropped.get() as { id: number } | undefined
      if (dropped !== undefined) {
        const entries = statements.sweepEntries.all(dropped.id, -dropped.id) as unknown[]
        const pending = statements.sweepPending.all(dropped.id) as unknown[]
        if (entries.length === 0 && pending.length === 0) statements.sweepPlace.run(dropped.id)
        return 'part'
      }
      const unused = statements.findUnused.all(now() - UNUSED_AFTER) as { id: number; is_needless: number }[]
      for (const { id, is_needless: isNeedless } of unused) {
        if (isNeedless) statements.dropPlace.run(id)
        else statements.usePlace.run(now(), id)
      }
      return unused.length === 0 ? 'all' : 'part'
    },
  }
}
