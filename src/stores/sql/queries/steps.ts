import type { Filter, Filters, Range } from './filters.ts'
import type { Window, WindowKind } from './window.ts'

/** A member that was found: its keys in the order of the list, and the key of its name. */
export interface Found {
  readonly keys: readonly Uint8Array[]
  readonly sortKey: string
}

/** A statement that the selection needs. */
export interface WindowRequest {
  readonly kind: WindowKind
  readonly window: Window
}

/** Work that asks for windows one after the other; the caller answers each with rows, or with a number. */
export type Steps<Result> = Generator<WindowRequest, Result, readonly Found[] | number>

/** One key of an order. */
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

/** The conditions beside those on one slot. */
export function filtersBeside(filters: Filters, slot: number | undefined): readonly Filter[] {
  return [...filters.values()].filter((filter) => filter.slot !== slot)
}

/** Compares two members in an order. */
export function compareFound(a: Found, b: Found, order: readonly OrderSlot[]): number {
  for (const [i, { direction }] of order.entries()) {
    const compared = Buffer.compare(a.keys[i]!, b.keys[i]!)
    if (compared !== 0) return direction === 'ascending' ? compared : -compared
  }
  return Buffer.compare(Buffer.from(a.sortKey), Buffer.from(b.sortKey))
}
