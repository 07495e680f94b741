import type { QueryDialect } from '../dialect.ts'
import { toBytes } from '../rows.ts'
import type { Bound, Filter, Range } from './filters.ts'

/** A stretch of one index of the entries, in its order, and which of its rows are wanted. */
export interface Window {
  /** The place of the members; negative for those that are hidden. */
  readonly place: number
  /** The index of the members of one scope. */
  readonly scope: Uint8Array | undefined
  /** The slot whose index is walked; `undefined`: by name. */
  readonly slot: number | undefined
  /** One key of the slot: its members are in the order of their names. */
  readonly equal?: Uint8Array | undefined
  readonly low?: Bound | undefined
  readonly high?: Bound | undefined
  /** Begins behind this position, whatever `low` is; with a key only where the slot ascends. */
  readonly after?: { readonly key?: Uint8Array | undefined; readonly sortKey: string } | undefined
  readonly direction: 'ascending' | 'descending'
  /** Conditions that the index does not settle. */
  readonly filters: readonly Filter[]
  /** Slots whose keys are returned. */
  readonly columns: readonly number[]
  /** Rows of the index to look at. */
  readonly most: number
  /** Rows to return. */
  readonly limit: number
}

/**
 * `rows`: those of the window that meet its filters. `edge`: the last row that the window looks at; none when it ends
 * before. `count`: how many rows of the window meet its filters, in a column `n`.
 */
type WindowKind = 'rows' | 'edge' | 'count'

type WindowValue = Uint8Array | string | number

interface WindowStatement {
  readonly text: string
  readonly values: readonly WindowValue[]
}

/** The statement of a window. Its text has the numbers of slots and nothing of a request. */
export function writeWindow(window: Window, kind: WindowKind, dialect: QueryDialect): WindowStatement {
  const writer = createWriter(dialect)
  const read = (slots: readonly number[]): string =>
    [dialect.readName('sort_key'), ...slots.map((slot) => dialect.readKey(`v${slot}`))].join(', ')
  const walk = (columns: readonly string[], limit: number, offset?: number): string =>
    `SELECT ${columns.join(', ')} FROM ${dialect.entries} AS e${writer.useIndex(window)} ` +
    `WHERE ${writer.bounds(window)} ORDER BY ${orderOf(window)} LIMIT ${writer.number(limit)}` +
    (offset === undefined ? '' : ` OFFSET ${writer.number(offset)}`)

  if (kind === 'edge') {
    return { text: walk([read(edgeColumns(window))], 1, window.most - 1), values: writer.values }
  }
  if (window.filters.length === 0) {
    const rows =
      kind === 'rows'
        ? walk([read(window.columns)], Math.min(window.most, window.limit))
        : `SELECT count(*) AS n FROM (${walk(['sort_key'], window.most)}) AS examined`
    return { text: rows, values: writer.values }
  }
  const slots = new Set([...window.columns, ...window.filters.map(({ slot }) => slot)])
  const examined = walk(['sort_key', ...[...slots].map((slot) => `v${slot}`)], window.most)
  const text =
    `SELECT ${kind === 'rows' ? read(window.columns) : 'count(*) AS n'} FROM (${examined}) AS examined ` +
    `WHERE ${window.filters.map(writer.filter).join(' AND ')}` +
    (kind === 'rows' ? ` LIMIT ${writer.number(window.limit)}` : '')
  return { text, values: writer.values }
}

/** The slots whose keys say where a window ends. */
export function edgeColumns({ slot, equal }: Window): readonly number[] {
  return slot !== undefined && equal === undefined ? [slot] : []
}

/** Whether the entry of a name meets all conditions still. */
export function writeMatch(
  { place, scope, filters }: Pick<Window, 'place' | 'scope' | 'filters'>,
  sortKey: string,
  dialect: QueryDialect,
): WindowStatement {
  const writer = createWriter(dialect)
  const conditions = [
    `place = ${writer.value(place, 'number')}`,
    `sort_key = ${writer.value(sortKey, 'name')}`,
    ...(scope === undefined ? [] : [`scope = ${writer.value(scope, 'key')}`]),
    ...filters.map(writer.filter),
  ]
  return { text: `SELECT 1 FROM ${dialect.entries} WHERE ${conditions.join(' AND ')}`, values: writer.values }
}

function orderOf({ slot, equal, direction }: Window): string {
  // The columns, not what is returned under their names.
  if (slot === undefined || equal !== undefined) return 'e.sort_key'
  return direction === 'ascending' ? `e.v${slot}, e.sort_key` : `e.v${slot} DESC, e.sort_key DESC`
}

/** Gathers the values of a statement while its text is written. */
function createWriter(dialect: QueryDialect) {
  const values: WindowValue[] = []

  function value(value: WindowValue, type: 'key' | 'name' | 'number'): string {
    values.push(value)
    return dialect.placeholder(values.length, type)
  }

  const list = (keys: readonly Uint8Array[]): string => keys.map((key) => value(key, 'key')).join(', ')
  const low = (column: string, { key, isOpen }: Bound): string =>
    `${column} ${isOpen ? '>' : '>='} ${value(key, 'key')}`
  const high = (column: string, { key, isOpen }: Bound): string =>
    `${column} ${isOpen ? '<' : '<='} ${value(key, 'key')}`

  return {
    values,
    value,
    number: (number: number): string => value(number, 'number'),

    useIndex({ slot, scope }: Window): string {
      if (slot === undefined) return ''
      return dialect.useIndex(`${dialect.entries}_${scope === undefined ? 'v' : 's'}${slot}`)
    },

    bounds(window: Window): string {
      const { place, scope, slot, equal, after } = window
      const column = `v${slot}`
      const conditions = [`place = ${value(place, 'number')}`]
      if (scope !== undefined) conditions.push(`scope = ${value(scope, 'key')}`)
      if (slot === undefined || equal !== undefined) {
        if (equal !== undefined) conditions.push(`${column} = ${value(equal, 'key')}`)
        if (after !== undefined) conditions.push(`sort_key > ${value(after.sortKey, 'name')}`)
        return conditions.join(' AND ')
      }
      // The index has no rows without it, and is used only where a statement says so.
      conditions.push(`${column} IS NOT NULL`)
      if (after?.key !== undefined) {
        conditions.push(`(${column}, sort_key) > (${value(after.key, 'key')}, ${value(after.sortKey, 'name')})`)
      } else if (window.low !== undefined) conditions.push(low(column, window.low))
      if (window.high !== undefined) conditions.push(high(column, window.high))
      return conditions.join(' AND ')
    },

    filter(filter: Filter): string {
      const column = `v${filter.slot}`
      const conditions: string[] = []
      if (filter.any !== undefined) conditions.push(`${column} IN (${list(filter.any)})`)
      if (filter.none !== undefined) conditions.push(`${column} NOT IN (${list(filter.none)})`)
      if (filter.low !== undefined) conditions.push(low(column, filter.low))
      if (filter.high !== undefined) conditions.push(high(column, filter.high))
      return conditions.join(' AND ')
    },
  }
}

/** A member that was found: its keys in the order of the list, and the key of its name. */
export interface Found {
  readonly keys: readonly Uint8Array[]
  readonly sortKey: string
}

export interface WindowRequest {
  readonly kind: WindowKind
  readonly window: Window
}

/** Rows, or their number. */
export type Answer = readonly Found[] | number

/** Work that asks for windows one after the other. */
export type Steps<Result> = Generator<WindowRequest, Result, Answer>

export interface OrderSlot {
  readonly slot: number
  readonly direction: 'ascending' | 'descending'
}

/** Where a selection looks, and how much more it may look at. */
export interface Target extends Range {
  readonly place: number
  /** Rows that may be looked at before the page ends early. */
  readonly budget: { left: number }
}

/** A window at the place of a target, ascending where nothing else is said. */
export function createWindow(
  { place, scope }: Target,
  window: Omit<Window, 'place' | 'scope' | 'direction'> & Partial<Pick<Window, 'direction'>>,
): Window {
  return { place, scope, direction: 'ascending', ...window }
}

export function* readRows(window: Window): Steps<readonly Found[]> {
  return (yield { kind: 'rows', window }) as readonly Found[]
}

/** The last row that a window looks at; `undefined` when it ends before. */
export function* readEdge(window: Window): Steps<Found | undefined> {
  return ((yield { kind: 'edge', window }) as readonly Found[])[0]
}

export function* countRows(window: Window): Steps<number> {
  return (yield { kind: 'count', window }) as number
}

export function compareFound(a: Found, b: Found, order: readonly OrderSlot[]): number {
  for (const [i, { direction }] of order.entries()) {
    const compared = Buffer.compare(a.keys[i]!, b.keys[i]!)
    if (compared !== 0) return direction === 'ascending' ? compared : -compared
  }
  return Buffer.compare(Buffer.from(a.sortKey), Buffer.from(b.sortKey))
}

export function readAnswer({ kind, window }: WindowRequest, rows: readonly Record<string, unknown>[]): Answer {
  if (kind === 'count') return rows[0]!['n'] as number
  const columns = kind === 'rows' ? window.columns : edgeColumns(window)
  return rows.map((row) => ({
    keys: columns.map((slot) => toBytes(row[`v${slot}`])),
    sortKey: row['sort_key'] as string,
  }))
}
