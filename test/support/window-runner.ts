import type { CollectionIndex, IndexedValues } from '../../src/stores/lists.ts'
import type { Bound, Filter } from '../../src/stores/sql/queries/filters.ts'
import { ALL_SLOTS, encodeEntry } from '../../src/stores/sql/queries/index-tables.ts'
import {
  edgeColumns,
  type Found,
  type Steps,
  type Window,
  type WindowRequest,
} from '../../src/stores/sql/queries/window.ts'
import { sortKeyOf } from '../../src/stores/sql/rows.ts'

/** A member of a collection. */
export interface WindowItem {
  readonly name: string
  readonly values: IndexedValues
  readonly hidden: boolean
}

/** An entry; keys are Latin-1 text, which is in the order of the bytes. */
interface Entry {
  readonly place: number
  readonly sortKey: string
  readonly scope: string
  readonly keys: readonly string[]
}

const toText = (key: Uint8Array | null): string => Buffer.from(key ?? []).toString('latin1')
const toKey = (text: string): Uint8Array => Buffer.from(text, 'latin1')
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Answers the windows of a query from arrays, by the description of `Window`, as the statements of a database do. */
export function createWindowRunner(index: CollectionIndex, items: readonly WindowItem[], place = 1) {
  const entries = items.map(({ name, values, hidden }): Entry => {
    const [scope, ...keys] = encodeEntry(index, values)
    return {
      place: hidden ? -place : place,
      sortKey: sortKeyOf(`/${name}`),
      scope: toText(scope!),
      keys: keys.map(toText),
    }
  })
  /** Sorted by place, name and slot. */
  const sorted = new Map<string, readonly Entry[]>()

  function entriesBy(place: number, slot: number | undefined): readonly Entry[] {
    const name = `${place} ${slot}`
    const known = sorted.get(name)
    if (known !== undefined) return known
    const key = slot === undefined ? () => '' : ({ keys }: Entry) => keys[slot - 1]!
    const own = entries.filter((entry) => entry.place === place)
    own.sort((a, b) => compare(key(a), key(b)) || compare(a.sortKey, b.sortKey))
    sorted.set(name, own)
    return own
  }

  /** The rows of the index that the window looks at. */
  function examine({ place, scope, slot, equal, low, high, after, direction, most }: Window): readonly Entry[] {
    const wanted = {
      scope: scope && toText(scope),
      equal: equal && toText(equal),
      after: after?.key && toText(after.key),
    }
    const isWalk = slot !== undefined && equal === undefined
    const isDown = isWalk && direction === 'descending'
    const list = entriesBy(place, slot)
    const keyOf = ({ keys }: Entry): string => (slot === undefined ? '' : keys[slot - 1]!)
    const lowest = wanted.after ?? wanted.equal ?? toText(low?.key ?? null)
    const highest = wanted.equal ?? (high && toText(high.key))
    const rows: Entry[] = []
    const start = isDown
      ? search(list, (entry) => highest === undefined || keyOf(entry) <= highest) - 1
      : search(list, (entry) => keyOf(entry) < lowest)
    for (let i = start; rows.length < most; i += isDown ? -1 : 1) {
      const entry = list[i]
      if (entry === undefined) break
      const key = keyOf(entry)
      if (isDown ? key < lowest : highest !== undefined && key > highest) break
      if (wanted.scope !== undefined && entry.scope !== wanted.scope) continue
      // As the statement has it: behind a member, the low end is left out.
      if (isWalk && !isWithin(key, wanted.after === undefined ? low : undefined, high)) continue
      if (after !== undefined && wanted.after !== undefined && isWalk) {
        if ((compare(key, wanted.after) || compare(entry.sortKey, after.sortKey)) <= 0) continue
      } else if (after !== undefined && entry.sortKey <= after.sortKey) continue
      rows.push(entry)
    }
    return rows
  }

  function answer({ kind, window }: WindowRequest): readonly Found[] | number {
    const rows = examine(window)
    const toFound = ({ keys, sortKey }: Entry, columns: readonly number[]): Found => {
      return { keys: columns.map((slot) => toKey(keys[slot - 1]!)), sortKey }
    }
    if (kind === 'edge') return rows.slice(window.most - 1).map((entry) => toFound(entry, edgeColumns(window)))
    const matching = rows.filter((entry) => window.filters.every((filter) => isMatch(entry, filter)))
    if (kind === 'count') return matching.length
    return matching.slice(0, window.limit).map((entry) => toFound(entry, window.columns))
  }

  return {
    run<Result>(steps: Steps<Result>): Result {
      for (let step = steps.next(); ; step = steps.next(answer(step.value))) if (step.done) return step.value
    },
  }
}

/** How many entries at the beginning of a sorted list are before a place. */
function search(list: readonly Entry[], isBefore: (entry: Entry) => boolean): number {
  let from = 0
  for (let to = list.length; from < to; ) {
    const middle = (from + to) >> 1
    if (isBefore(list[middle]!)) from = middle + 1
    else to = middle
  }
  return from
}

function isWithin(key: string, low: Bound | undefined, high: Bound | undefined): boolean {
  const fromLow = low === undefined ? 1 : compare(key, toText(low.key))
  const toHigh = high === undefined ? 1 : compare(toText(high.key), key)
  return (fromLow > 0 || (fromLow === 0 && !low!.isOpen)) && (toHigh > 0 || (toHigh === 0 && !high!.isOpen))
}

function isMatch({ keys }: Entry, { slot, any, none, low, high }: Filter): boolean {
  if (!ALL_SLOTS.includes(slot)) throw new RangeError(`There is no slot ${slot}.`)
  const key = keys[slot - 1]!
  if (any !== undefined && !any.map(toText).includes(key)) return false
  if (none?.map(toText).includes(key)) return false
  return isWithin(key, low, high)
}
