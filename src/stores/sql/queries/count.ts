import type { Filters } from './filters.ts'
import { findSelective, MOST_FETCHED } from './selective.ts'
import { countRows, createWindow, filtersBeside, readEdge, type Steps, type Target } from './steps.ts'
import type { Window } from './window.ts'

/** Rows that one statement counts, in the index alone and with a look at each entry. */
export interface CountSteps {
  readonly inIndex: number
  readonly byEntry: number
}

/** Counts the members that meet the conditions: those that one of them selects, with the others beside it. */
export function* countMembers(target: Target, filters: Filters, steps: CountSteps): Steps<number> {
  const all = [...filters.values()]
  const selects = all.filter(({ any, low, high }) => any !== undefined || low !== undefined || high !== undefined)
  const few = selects.length < 2 ? undefined : yield* findSelective(target, filters, MOST_FETCHED)
  const chosen = few ?? selects.find(({ any }) => any !== undefined) ?? selects[0] ?? all[0]
  const slot = chosen?.slot ?? 1
  const own = chosen?.none !== undefined ? [{ slot, none: chosen.none }] : []
  const beside = [...own, ...filtersBeside(filters, slot)]
  const most = beside.length === 0 ? steps.inIndex : steps.byEntry
  const { low, high } = chosen ?? {}
  const base = createWindow(target, { slot, low, high, filters: beside, columns: [], most, limit: most })
  const windows = chosen?.any?.map((equal): Window => ({ ...base, equal })) ?? [base]
  let total = 0
  for (let window of windows) {
    for (;;) {
      const count = yield* countRows(window)
      total += count
      if (beside.length === 0 && count < most) break
      const edge = yield* readEdge(window)
      if (edge === undefined) break
      window = { ...window, low: undefined, after: { key: edge.keys[0], sortKey: edge.sortKey } }
    }
  }
  return total
}
