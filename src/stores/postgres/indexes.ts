import type { CollectionIndex } from '../lists.ts'
import type { Description } from '../new-state.ts'
import { tryTo } from '../sql/background.ts'
import type { IndexSteps, SqlShared, Swept } from '../sql/dialect.ts'
import {
  advance,
  DONE,
  entryPlaceOf,
  isAtPosition,
  type Place,
  type PlaceRow,
  type Position,
  padEntry,
  toPendingBatch,
  toPlace,
  toWalkedBatch,
} from '../sql/queries/index-tables.ts'
import { memberKeyOf, type OpenContent, placeOf, type StateRow, sortKeyOf } from '../sql/rows.ts'
import { type PostgresConnection, type PostgresValue, ROLL_BACK, type RunStatement } from './connection.ts'
import { writeIndexStatements } from './index-statements.ts'
import { encodeKey } from './statements.ts'

export interface PostgresIndexes extends IndexSteps<Position> {
  /** The place of an index; `undefined` when it is not known and the collection has no members. */
  find(run: RunStatement, collection: string, index: CollectionIndex): Promise<Place | 'unknown' | undefined>
  /** Before content is written with values: makes the places that there are none of. */
  prepare(writes: readonly { readonly path: string; readonly content: Description }[]): Promise<void>
  /** One bounded step of clearing away indexes that have not been used for a day. */
  sweep(): Promise<Swept>
}

type UsedRow = PlaceRow & { readonly is_stale: boolean }

/** Places that this process knows to be there. */
const MOST_KNOWN = 10_000

export function createPostgresIndexes(
  connection: PostgresConnection,
  prefix: string,
  open: OpenContent,
  { indexMembers }: Pick<SqlShared, 'indexMembers'>,
): PostgresIndexes {
  const statements = writeIndexStatements(prefix)
  const known = new Set<string>()

  async function findRow(run: RunStatement, collection: string, index: CollectionIndex): Promise<UsedRow | undefined> {
    const [row] = await run<UsedRow>(statements.findPlace, [encodeKey(collection), index.version])
    if (row !== undefined) known.add(`${index.version} ${collection}`)
    if (known.size > MOST_KNOWN) known.delete(known.values().next().value!)
    return row
  }

  /**
   * The lock waits until all writes that have begun are over: they do not know the place, and what they have written is
   * found by the walk. Those that begin later see it.
   */
  function createRow(collection: string, index: CollectionIndex): Promise<UsedRow> {
    return connection.transact(async (run) => {
      await run(statements.limitLockTime, [])
      await run(statements.lockPlaces, [])
      const existing = await findRow(run, collection, index)
      if (existing !== undefined) return existing
      await run(statements.createPlace, [encodeKey(collection), index.version])
      return (await findRow(run, collection, index))!
    })
  }

  async function readWalk(collection: string, row: PlaceRow) {
    const values = [encodeKey(collection), row.phase, Buffer.from(row.walked)]
    const members = await connection.read<StateRow & { readonly sort_key: string }>(statements.walkMembers, values)
    return toWalkedBatch(row, members, open)
  }

  /** In one view: the commit would take a member out that is removed and created again between two reads. */
  function readPending(collection: string, id: number) {
    return connection.view(async (run) => {
      const rows = await run<{ sort_key: string }>(statements.readPending, [id])
      if (rows.length === 0) return undefined
      const pending = rows.map((row) => row.sort_key)
      const paths = pending.map((sortKey) => Buffer.from(memberKeyOf(collection, sortKey)))
      const members = await run<StateRow>(statements.readMembers(paths.length), paths)
      return toPendingBatch(id, pending, members, open)
    })
  }

  return {
    async find(run, collection, index) {
      const row = await findRow(run, collection, index)
      if (row === undefined) {
        const [found] = await run<{ has: boolean }>(statements.hasMembers, [encodeKey(collection)])
        return found!.has ? 'unknown' : undefined
      }
      // Beside the request, which does not wait for it and does not fail with it.
      if (row.is_stale) void tryTo(() => connection.run(statements.usePlace, [row.id]))
      return toPlace(row)
    },

    async prepare(writes) {
      for (const { path, content } of writes) {
        const index = content.indexed?.index
        const collection = placeOf(path)?.collection
        if (index === undefined || collection === undefined || known.has(`${index.version} ${collection}`)) continue
        const row = (await findRow(connection.read, collection, index)) ?? (await createRow(collection, index))
        if (row.phase !== DONE) indexMembers(collection, index)
      }
    },

    async read(collection, index) {
      const row = (await findRow(connection.read, collection, index)) ?? (await createRow(collection, index))
      return row.phase === DONE ? readPending(collection, row.id) : readWalk(collection, row)
    },

    async commit(position, items) {
      const { place, pending } = position
      const done = await connection.transact(async (run) => {
        const [row] = await run<{ phase: number; walked: string; indexed: number }>(statements.holdPlace, [place])
        if (row === undefined || !isAtPosition(row, position)) return ROLL_BACK
        const unchanged = await holdUnchanged(run, items)
        await putEntries(run, place, unchanged)
        const isLeft = new Set(
          items
            .filter((one) => !unchanged.some(({ item }) => item === one.item))
            .map(({ item }) => sortKeyOf(item.path)),
        )
        // What has been written since has its entry, or stays pending.
        const settled = pending.filter((sortKey) => !isLeft.has(sortKey)).map((sortKey) => Buffer.from(sortKey))
        if (settled.length > 0) await run(statements.donePending(settled.length), [place, ...settled])
        const indexed = row.indexed + unchanged.length
        const { phase, walked } = advance(position, row)
        await run(statements.advancePlace, [place, phase, Buffer.from(walked), indexed])
        return indexed
      })
      return done === ROLL_BACK ? undefined : done
    },

    async sweep() {
      const [dropped] = await connection.read<{ id: number }>(statements.findDropped, [])
      if (dropped !== undefined) {
        for (const statement of [statements.sweepEntries, statements.sweepPending]) {
          if ((await connection.run(statement, [dropped.id])).length > 0) return 'part'
        }
        await connection.run(statements.sweepPlace, [dropped.id])
        return 'part'
      }
      return (await connection.run(statements.dropUnused, [])).length === 0 ? 'all' : 'part'
    },
  }

  /** Those that are still what they were; no write of them goes on before the transaction ends. */
  async function holdUnchanged(run: RunStatement, items: Parameters<PostgresIndexes['commit']>[1]) {
    if (items.length === 0) return []
    const paths = items.map(({ item }) => encodeKey(item.path))
    const rows = await run<{ path: string; version: string; state: number }>(
      statements.holdMembers(paths.length),
      paths,
    )
    const current = new Map(rows.map((row) => [row.path, row]))
    return items.flatMap(({ item, keys }) => {
      const row = current.get(encodeKey(item.path).toString())
      return row?.version === item.version ? [{ item, keys, state: row.state }] : []
    })
  }

  async function putEntries(
    run: RunStatement,
    place: number,
    items: Awaited<ReturnType<typeof holdUnchanged>>,
  ): Promise<void> {
    if (items.length === 0) return
    const values: PostgresValue[] = []
    const add = (value: PostgresValue, type: string) => `$${values.push(value)}::${type}`
    const rows = items.map(({ item, keys, state }) => {
      const at = [add(entryPlaceOf(place, state), 'integer'), add(Buffer.from(sortKeyOf(item.path)), 'bytea')]
      return `(${[...at, ...padEntry(keys).map((key) => (key === null ? 'NULL::bytea' : add(key, 'bytea')))].join(', ')})`
    })
    await run(statements.putEntries(rows), values)
  }
}
