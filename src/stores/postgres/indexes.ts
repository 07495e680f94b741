import type { CollectionIndex } from '../lists.ts'
import type { Description } from '../rules.ts'
import { tryTo } from '../sql/background.ts'
import type { Batch, NewEntry, SqlShared, Swept } from '../sql/dialect.ts'
import {
  advance,
  DONE,
  entryPlaceOf,
  isAtPosition,
  KEY_COLUMNS,
  NOTE_USE_AFTER,
  type Place,
  type PlaceRow,
  type Position,
  padEntry,
  tablesOf,
  toPendingBatch,
  toPlace,
  toWalkedBatch,
  UNUSED_AFTER,
} from '../sql/queries/index-tables.ts'
import { HIDDEN, LIVE, memberKeyOf, type OpenContent, placeOf, type StateRow, sortKeyOf } from '../sql/rows.ts'
import { type PostgresConnection, type PostgresValue, ROLL_BACK, type RunStatement } from './connection.ts'
import { encodeKey } from './statements.ts'
import { CONTENT, FACTS, NOW } from './write-statements.ts'

export type PostgresIndexes = ReturnType<typeof createPostgresIndexes>

type UsedRow = PlaceRow & { readonly is_stale: boolean }

/** Milliseconds that a new place waits for the writes that have begun before it. */
const LOCK_TIMEOUT = 2000
/** Members that are indexed in one transaction. */
const BATCH = 100
/** Places that this process knows to be there. */
const MOST_KNOWN = 10_000

export function createPostgresIndexes(
  connection: PostgresConnection,
  prefix: string,
  open: OpenContent,
  { indexMembers }: Pick<SqlShared, 'indexMembers'>,
) {
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
    /** The place of an index; `undefined` when it is not known and the collection has no members. */
    async find(run: RunStatement, collection: string, index: CollectionIndex): Promise<Place | 'unknown' | undefined> {
      const row = await findRow(run, collection, index)
      if (row === undefined) {
        const [found] = await run<{ has: boolean }>(statements.hasMembers, [encodeKey(collection)])
        return found!.has ? 'unknown' : undefined
      }
      // Beside the request, which does not wait for it and does not fail with it.
      if (row.is_stale) void tryTo(() => connection.run(statements.usePlace, [row.id]))
      return toPlace(row)
    },

    /** Before content is written with values: makes the places that there are none of. */
    async prepare(writes: readonly { readonly path: string; readonly content: Description }[]): Promise<void> {
      for (const { path, content } of writes) {
        const index = content.indexed?.index
        const collection = placeOf(path)?.collection
        if (index === undefined || collection === undefined || known.has(`${index.version} ${collection}`)) continue
        const row = (await findRow(connection.read, collection, index)) ?? (await createRow(collection, index))
        if (row.phase !== DONE) indexMembers(collection, index)
      }
    },

    async read(collection: string, index: CollectionIndex): Promise<Batch<Position> | undefined> {
      const row = (await findRow(connection.read, collection, index)) ?? (await createRow(collection, index))
      if (row.phase === DONE) return readPending(collection, row.id)
      const values = [encodeKey(collection), row.phase, Buffer.from(row.walked)]
      const members = await connection.read<StateRow & { readonly sort_key: string }>(statements.walkMembers, values)
      return toWalkedBatch(row, members, open)
    },

    async commit(position: Position, items: readonly NewEntry[]): Promise<number | undefined> {
      const { place, pending } = position
      const done = await connection.transact(async (run) => {
        const [row] = await run<{ phase: number; walked: string; indexed: number }>(statements.holdPlace, [place])
        if (row === undefined || !isAtPosition(row, position)) return ROLL_BACK
        const unchanged = await holdUnchanged(run, items)
        await putEntries(run, place, unchanged)
        const changed = items.filter((one) => !unchanged.some(({ item }) => item === one.item))
        // What has been written since has its entry, or stays pending.
        const left = new Set(changed.map(({ item }) => sortKeyOf(item.path)))
        const settled = pending.filter((sortKey) => !left.has(sortKey)).map((sortKey) => Buffer.from(sortKey))
        if (settled.length > 0) await run(statements.donePending(settled.length), [place, ...settled])
        const indexed = row.indexed + unchanged.length
        const { phase, walked } = advance(position, row)
        await run(statements.advancePlace, [place, phase, Buffer.from(walked), indexed])
        return indexed
      })
      return done === ROLL_BACK ? undefined : done
    },

    /** One bounded step of clearing away indexes that have not been used for a day. */
    async sweep(): Promise<Swept> {
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
  async function holdUnchanged(run: RunStatement, items: readonly NewEntry[]) {
    if (items.length === 0) return []
    const paths = items.map(({ item }) => encodeKey(item.path))
    const statement = statements.holdMembers(paths.length)
    const rows = await run<{ path: string; version: string; state: number }>(statement, paths)
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

/** Connections keep none of these prepared: they run once in a while, or have many texts. */
function writeIndexStatements(prefix: string) {
  const { states, entries, places, pending } = tablesOf(prefix)
  const hasMembers = (collection: string) => `(
    EXISTS (SELECT 1 FROM ${states} WHERE collection = ${collection} AND state = ${LIVE}) OR
    EXISTS (SELECT 1 FROM ${states} WHERE collection = ${collection} AND state = ${HIDDEN}))`
  const sweepOf = (table: string) => `DELETE FROM ${table} WHERE (place, sort_key) IN
    (SELECT place, sort_key FROM ${table} WHERE place IN ($1::integer, -$1::integer) LIMIT 500) RETURNING 1`
  // Not needed: its collection has another index that is used, or no member.
  const isNeedless = `EXISTS (SELECT 1 FROM ${places} AS q WHERE q.collection = p.collection AND q.used > p.used)
    OR NOT ${hasMembers('p.collection')}`

  return {
    findPlace: `SELECT id, phase, convert_from(walked, 'UTF8') AS walked, used < ${NOW} - ${NOTE_USE_AFTER} AS is_stale,
      EXISTS (SELECT 1 FROM ${pending} WHERE place = p.id) AS is_pending FROM ${places} AS p
      WHERE collection = $1::bytea AND index_version = $2::text`,
    hasMembers: `SELECT ${hasMembers('$1::bytea')} AS has`,
    limitLockTime: `SET LOCAL lock_timeout = ${LOCK_TIMEOUT}`,
    lockPlaces: `LOCK TABLE ${places} IN ACCESS EXCLUSIVE MODE`,
    createPlace: `INSERT INTO ${places} (collection, index_version, phase, walked, indexed, used) VALUES ($1::bytea,
      $2::text, CASE WHEN ${hasMembers('$1::bytea')} THEN ${LIVE} ELSE ${DONE} END, ''::bytea, 0, ${NOW})`,
    /** The process that holds this row indexes; another process goes on from where it has come to. */
    holdPlace: `SELECT phase, convert_from(walked, 'UTF8') AS walked, indexed FROM ${places}
      WHERE id = $1::integer AND collection IS NOT NULL FOR UPDATE`,
    advancePlace: `UPDATE ${places} SET phase = $2::smallint, walked = $3::bytea, indexed = $4::bigint
      WHERE id = $1::integer`,
    usePlace: `UPDATE ${places} SET used = ${NOW} WHERE id = $1::integer`,
    /** Drops places that are unused and not needed; other unused ones count as used now. */
    dropUnused: `WITH unused AS (SELECT id, ${isNeedless} AS is_needless FROM ${places} AS p
      WHERE used < ${NOW} - ${UNUSED_AFTER} AND collection IS NOT NULL ORDER BY used LIMIT 20)
      UPDATE ${places} AS p SET used = ${NOW}, collection = CASE WHEN is_needless THEN NULL ELSE collection END
      FROM unused WHERE p.id = unused.id AND p.used < ${NOW} - ${UNUSED_AFTER} RETURNING 1`,
    findDropped: `SELECT id FROM ${places} WHERE collection IS NULL LIMIT 1`,
    sweepEntries: sweepOf(entries),
    sweepPending: sweepOf(pending),
    // Not once the two before find nothing: that may be because another process removes some at the same moment, and leaves the rest.
    sweepPlace: `DELETE FROM ${places} WHERE id = $1::integer AND NOT EXISTS
      (SELECT 1 FROM ${entries} WHERE place IN ($1, -$1)) AND NOT EXISTS (SELECT 1 FROM ${pending} WHERE place = $1)`,
    walkMembers: `SELECT ${FACTS}, ${CONTENT}, convert_from(sort_key, 'UTF8') AS sort_key FROM ${states}
      WHERE collection = $1::bytea AND state = $2::smallint AND sort_key > $3::bytea
      ORDER BY ${states}.sort_key LIMIT ${BATCH}`,
    readPending: `SELECT convert_from(sort_key, 'UTF8') AS sort_key
      FROM ${pending} WHERE place = $1::integer LIMIT ${BATCH}`,

    readMembers: (count: number) => `SELECT ${FACTS}, ${CONTENT} FROM ${states} WHERE path IN (${list(count, 1)})`,
    /** The same; no write of them goes on before the transaction ends. */
    holdMembers: (count: number) => `SELECT convert_from(path, 'UTF8') AS path, version, state
      FROM ${states} WHERE path IN (${list(count, 1)}) ORDER BY ${states}.path FOR SHARE`,
    /** $1 place, $2 and further ones: sort keys. */
    donePending: (count: number) =>
      `DELETE FROM ${pending} WHERE place = $1::integer AND sort_key IN (${list(count, 2)})`,
    /** @param rows for each entry the text of its place, its sort key and its keys */
    putEntries: (rows: readonly string[]) => `INSERT INTO ${entries} (place, sort_key, ${KEY_COLUMNS.join(', ')})
      VALUES ${rows.join(', ')} ON CONFLICT (place, sort_key)
      DO UPDATE SET ${KEY_COLUMNS.map((column) => `${column} = excluded.${column}`).join(', ')}`,
  }
}

/** Places for keys in a statement. */
function list(count: number, first: number): string {
  return Array.from({ length: count }, (_, i) => `$${first + i}::bytea`).join(', ')
}
