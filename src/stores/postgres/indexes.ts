import type { CollectionIndex } from '../index-types.ts'
import { memberKeyOf, sortKeyOf } from '../sql/names.ts'
import { KEY_COLUMNS } from '../sql/queries/entry.ts'
import type { IndexSteps } from '../sql/queries/indexer.ts'
import { HIDDEN, LIVE, placeOf, REMOVED, type StateRow, toResource } from '../sql/rows.ts'
import type { Swept } from '../sql/sweeper.ts'
import type { LargeBody } from '../types.ts'
import { CONTENT, FACTS, NOW } from './columns.ts'
import { type PostgresConnection, type PostgresValue, ROLL_BACK, type RunStatement, unnamed } from './connection.ts'
import { type Description, encodeKey } from './states.ts'

/** A collection under one version of its index. */
export interface Place {
  readonly id: number
  /** Whether every member has its entry. */
  readonly isComplete: boolean
}

/** How far the indexing of existing members has come, when a batch of them is read. */
interface Position {
  readonly place: number
  /** Where the walk stands and where it goes on; left out for members that are pending. */
  readonly walk?: { readonly phase: number; readonly from: string; readonly to: string | undefined }
  /** The names of members that are pending. */
  readonly pending: readonly string[]
}

export interface PostgresIndexes extends IndexSteps<Position> {
  /** The place of an index; `undefined` when it is not known and the collection has no members. */
  find(run: RunStatement, collection: string, index: CollectionIndex): Promise<Place | 'unknown' | undefined>
  /** Before content is written with values: makes the places that there are none of. */
  prepare(writes: readonly { readonly path: string; readonly content: Description }[]): Promise<void>
  /** One bounded step of clearing away indexes that have not been used for a day. */
  sweep(): Promise<Swept>
}

export interface PostgresIndexesOptions {
  readonly prefix: string
  readonly open: (id: number | string, size: number) => LargeBody
  /** Notified when members of a collection wait for their entries. */
  readonly onIncomplete: (collection: string, index: CollectionIndex) => void
}

interface PlaceRow {
  readonly id: number
  readonly phase: number
  readonly walked: string
  readonly is_pending: boolean
  readonly is_stale: boolean
}

/** Live members, then hidden ones; then the walk is over. */
const DONE = 2
/** Members that are indexed in one transaction. */
const BATCH = 100
const HOUR = 60 * 60 * 1000
const DAY = 24 * HOUR
/** Milliseconds that a new place waits for the writes that have begun before it. */
const LOCK_TIMEOUT = 2000
/** Places that this process knows to be there. */
const MOST_KNOWN = 10_000

export function createPostgresIndexes(
  connection: PostgresConnection,
  { prefix, open, onIncomplete }: PostgresIndexesOptions,
): PostgresIndexes {
  const states = `${prefix}states`
  const entries = `${prefix}entries`
  const places = `${prefix}places`
  const pending = `${prefix}pending`
  const known = new Set<string>()
  const hasMembers = (collection: string) =>
    `(EXISTS (SELECT 1 FROM ${states} WHERE collection = ${collection} AND state = ${LIVE}) OR ` +
    `EXISTS (SELECT 1 FROM ${states} WHERE collection = ${collection} AND state = ${HIDDEN}))`
  const findPlace = unnamed(
    `SELECT id, phase, convert_from(walked, 'UTF8') AS walked, used < ${NOW} - ${HOUR} AS is_stale, ` +
      `EXISTS (SELECT 1 FROM ${pending} WHERE place = p.id) AS is_pending FROM ${places} AS p ` +
      'WHERE collection = $1::bytea AND index_version = $2::text',
  )

  function learn(collection: string, index: CollectionIndex): void {
    known.add(`${index.version} ${collection}`)
    if (known.size > MOST_KNOWN) known.delete(known.values().next().value!)
  }

  async function findRow(run: RunStatement, collection: string, index: CollectionIndex): Promise<PlaceRow | undefined> {
    const [row] = await run<PlaceRow>(findPlace, [encodeKey(collection), index.version])
    if (row !== undefined) learn(collection, index)
    return row
  }

  /**
   * The lock waits until all writes that have begun are over: they do not know the place, and what they have written is
   * found by the walk. Those that begin later see it.
   */
  function createRow(collection: string, index: CollectionIndex): Promise<PlaceRow> {
    return connection.transact(async (run) => {
      await run(unnamed(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT}`), [])
      await run(unnamed(`LOCK TABLE ${places} IN ACCESS EXCLUSIVE MODE`), [])
      const existing = await findRow(run, collection, index)
      if (existing !== undefined) return existing
      const create =
        `INSERT INTO ${places} (collection, index_version, phase, walked, indexed, used) VALUES ($1::bytea, $2::text, ` +
        `CASE WHEN ${hasMembers('$1::bytea')} THEN ${LIVE} ELSE ${DONE} END, ''::bytea, 0, ${NOW})`
      await run(unnamed(create), [encodeKey(collection), index.version])
      return (await findRow(run, collection, index))!
    })
  }

  /** Beside a request, which does not wait for it and does not fail with it. */
  async function keepUsed(place: number): Promise<void> {
    try {
      await connection.run(unnamed(`UPDATE ${places} SET used = ${NOW} WHERE id = $1::integer`), [place])
    } catch {}
  }

  async function readWalk(collection: string, { id, phase, walked }: PlaceRow) {
    const text =
      `SELECT ${FACTS}, ${CONTENT}, convert_from(sort_key, 'UTF8') AS sort_key FROM ${states} ` +
      `WHERE collection = $1::bytea AND state = $2::smallint AND sort_key > $3::bytea ORDER BY ${states}.sort_key LIMIT ${BATCH}`
    const values = [encodeKey(collection), phase, Buffer.from(walked)]
    const rows = await connection.read<StateRow & { readonly sort_key: string }>(unnamed(text), values)
    const walk = { phase, from: walked, to: rows.at(-1)?.sort_key }
    return { items: rows.map((row) => toResource(row, open)), position: { place: id, walk, pending: [] } }
  }

  async function readPending(collection: string, id: number) {
    const rows = await connection.read<{ sort_key: string }>(
      unnamed(
        `SELECT convert_from(sort_key, 'UTF8') AS sort_key FROM ${pending} WHERE place = $1::integer LIMIT ${BATCH}`,
      ),
      [id],
    )
    if (rows.length === 0) return undefined
    const waiting = rows.map((row) => row.sort_key)
    const paths = waiting.map((sortKey) => Buffer.from(memberKeyOf(collection, sortKey)))
    const found = await connection.read<StateRow>(
      unnamed(`SELECT ${FACTS}, ${CONTENT} FROM ${states} WHERE path IN (${list(paths, 'bytea')})`),
      paths,
    )
    const items = found.filter(({ state }) => state !== REMOVED).map((row) => toResource(row, open))
    return { items, position: { place: id, pending: waiting } }
  }

  return {
    async find(run, collection, index) {
      const row = await findRow(run, collection, index)
      if (row === undefined) {
        const [found] = await run<{ has: boolean }>(unnamed(`SELECT ${hasMembers('$1::bytea')} AS has`), [
          encodeKey(collection),
        ])
        return found!.has ? 'unknown' : undefined
      }
      if (row.is_stale) void keepUsed(row.id)
      return { id: row.id, isComplete: row.phase === DONE && !row.is_pending }
    },

    async prepare(writes) {
      for (const { path, content } of writes) {
        const index = content.indexed?.index
        const collection = placeOf(path)?.collection
        if (index === undefined || collection === undefined || known.has(`${index.version} ${collection}`)) continue
        const row = (await findRow(connection.read, collection, index)) ?? (await createRow(collection, index))
        if (row.phase !== DONE) onIncomplete(collection, index)
      }
    },

    async read(collection, index) {
      const row = (await findRow(connection.read, collection, index)) ?? (await createRow(collection, index))
      return row.phase === DONE ? readPending(collection, row.id) : readWalk(collection, row)
    },

    async commit({ place, walk, pending: waiting }, items) {
      const done = await connection.transact(async (run) => {
        // The process that holds this row indexes; another process goes on from where it has come to.
        const [row] = await run<{ phase: number; walked: string; indexed: number }>(
          unnamed(
            `SELECT phase, convert_from(walked, 'UTF8') AS walked, indexed FROM ${places} ` +
              'WHERE id = $1::integer AND collection IS NOT NULL FOR UPDATE',
          ),
          [place],
        )
        if (row === undefined) return ROLL_BACK
        if (walk !== undefined && (row.phase !== walk.phase || row.walked !== walk.from)) return ROLL_BACK
        const unchanged = await holdUnchanged(run, items)
        await putEntries(run, place, unchanged)
        const isLeft = new Set(items.filter((one) => !unchanged.some(({ item }) => item === one.item)).map(nameItem))
        // What has been written since has its entry, or stays pending.
        const settled = waiting.filter((sortKey) => !isLeft.has(sortKey)).map((sortKey) => Buffer.from(sortKey))
        if (settled.length > 0) {
          const text = `DELETE FROM ${pending} WHERE place = $1::integer AND sort_key IN (${list(settled, 'bytea', 2)})`
          await run(unnamed(text), [place, ...settled])
        }
        const indexed = row.indexed + unchanged.length
        const phase = walk === undefined || walk.to !== undefined ? row.phase : row.phase + 1
        const walked = Buffer.from(walk === undefined ? row.walked : (walk.to ?? ''))
        await run(
          unnamed(
            `UPDATE ${places} SET phase = $2::smallint, walked = $3::bytea, indexed = $4::bigint WHERE id = $1::integer`,
          ),
          [place, phase, walked, indexed],
        )
        return indexed
      })
      return done === ROLL_BACK ? undefined : done
    },

    async sweep() {
      const [dropped] = await connection.read<{ id: number }>(
        unnamed(`SELECT id FROM ${places} WHERE collection IS NULL LIMIT 1`),
        [],
      )
      if (dropped !== undefined) {
        for (const table of [entries, pending]) {
          const text =
            `DELETE FROM ${table} WHERE (place, sort_key) IN (SELECT place, sort_key FROM ${table} ` +
            'WHERE place IN ($1::integer, -$1::integer) LIMIT 500) RETURNING 1'
          if ((await connection.run(unnamed(text), [dropped.id])).length > 0) return 'part'
        }
        await connection.run(unnamed(`DELETE FROM ${places} WHERE id = $1::integer`), [dropped.id])
        return 'part'
      }
      // Not needed: its collection has another index that is used, or no member.
      const isNeedless =
        `EXISTS (SELECT 1 FROM ${places} AS q WHERE q.collection = p.collection AND q.used > p.used) ` +
        `OR NOT ${hasMembers('p.collection')}`
      const looked = await connection.run(
        unnamed(
          `WITH unused AS (SELECT id, ${isNeedless} AS is_needless FROM ${places} AS p WHERE used < ${NOW} - ${DAY} ` +
            'AND collection IS NOT NULL ORDER BY used LIMIT 20) ' +
            `UPDATE ${places} AS p SET used = ${NOW}, collection = CASE WHEN is_needless THEN NULL ELSE collection END ` +
            `FROM unused WHERE p.id = unused.id AND p.used < ${NOW} - ${DAY} RETURNING 1`,
        ),
        [],
      )
      return looked.length === 0 ? 'all' : 'part'
    },
  }

  /** Those that are still what they were; no write of them goes on before the transaction ends. */
  async function holdUnchanged(run: RunStatement, items: Parameters<PostgresIndexes['commit']>[1]) {
    if (items.length === 0) return []
    const paths = items.map(({ item }) => encodeKey(item.path))
    const rows = await run<{ path: string; version: string; state: number }>(
      unnamed(
        `SELECT convert_from(path, 'UTF8') AS path, version, state FROM ${states} ` +
          `WHERE path IN (${list(paths, 'bytea')}) ORDER BY ${states}.path FOR SHARE`,
      ),
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
      const at = [add(state === LIVE ? place : -place, 'integer'), add(Buffer.from(sortKeyOf(item.path)), 'bytea')]
      return `(${[...at, ...keys.map((key) => (key === null ? 'NULL::bytea' : add(key, 'bytea')))].join(', ')})`
    })
    const text =
      `INSERT INTO ${entries} (place, sort_key, ${KEY_COLUMNS.join(', ')}) VALUES ${rows.join(', ')} ` +
      `ON CONFLICT (place, sort_key) DO UPDATE SET ${KEY_COLUMNS.map((column) => `${column} = excluded.${column}`).join(', ')}`
    await run(unnamed(text), values)
  }
}

function nameItem({ item }: { readonly item: { readonly path: string } }): string {
  return sortKeyOf(item.path)
}

/** Places for values of one type. */
function list(values: readonly unknown[], type: string, first = 1): string {
  return values.map((_, i) => `$${first + i}::${type}`).join(', ')
}
