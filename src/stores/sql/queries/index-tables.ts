/**
 * The tables by which members are selected, in every database. A place is a collection under one version of its index. An
 * entry stands under the number of its place, that of a hidden member under the negative number. Pending are members that
 * were written without values, or by other rules.
 *
 * Triggers hold for all writers: a member that is shown has an entry or is pending at every place of its collection, unless
 * the place has not come that far yet; one that is removed has neither.
 */

import { viewOf } from '../../../core/byte-blocks.ts'
import {
  type CollectionIndex,
  encodeValue,
  type IndexedValue,
  type IndexedValues,
  indexedValueOf,
  isValue,
  positionOf,
} from '../../lists.ts'
import type { Batch } from '../dialect.ts'
import { LIVE, type OpenContent, REMOVED, type StateRow, toResource } from '../rows.ts'

const TABLES = ['states', 'counters', 'contents', 'chunks', 'entries', 'places', 'pending'] as const

/** The names of these tables, and of those that they index. */
export function tablesOf(prefix: string): Readonly<Record<(typeof TABLES)[number], string>> {
  return Object.fromEntries(TABLES.map((name) => [name, prefix + name])) as Record<(typeof TABLES)[number], string>
}

/** A collection under one version of its index. */
export interface Place {
  readonly id: number
  /** Whether every member has its entry. */
  readonly isComplete: boolean
}

/** The row of a place: how far the indexing of existing members has come. */
export interface PlaceRow {
  readonly id: number
  /** Live members, then hidden ones, then {@link DONE}. */
  readonly phase: number
  /** The sort key as far as the members of the phase have been indexed. */
  readonly walked: string
  /** Whether members wait for their entries that were written without values, or by other rules. */
  readonly is_pending: boolean | number
}

/** How far the indexing of existing members has come, when a batch of them is read. */
export interface Position {
  readonly place: number
  /** Where the walk stands and where it goes on; left out for members that are pending. */
  readonly walk?: { readonly phase: number; readonly from: string; readonly to: string | undefined }
  /** The sort keys of members that are pending. */
  readonly pending: readonly string[]
}

/** The phase of a place whose walk is over. */
export const DONE = 2

const HOUR = 60 * 60 * 1000
/** Milliseconds after which the use of a place is noted again. */
export const NOTE_USE_AFTER: number = HOUR
/** Milliseconds without use after which a place may be cleared away. */
export const UNUSED_AFTER: number = 24 * HOUR

export function toPlace({ id, phase, is_pending: isPending }: PlaceRow): Place {
  return { id, isComplete: phase === DONE && !isPending }
}

/** The members that follow in the walk of a place. */
export function toWalkedBatch(
  { id, phase, walked }: PlaceRow,
  rows: readonly (StateRow & { readonly sort_key: string })[],
  open: OpenContent,
): Batch<Position> {
  const walk = { phase, from: walked, to: rows.at(-1)?.sort_key }
  return { items: rows.map((row) => toResource(row, open)), position: { place: id, walk, pending: [] } }
}

/** Members of a place that are pending; those that have been removed meanwhile need no entry. */
export function toPendingBatch(
  place: number,
  pending: readonly string[],
  rows: readonly StateRow[],
  open: OpenContent,
): Batch<Position> {
  const items = rows.filter(({ state }) => state !== REMOVED).map((row) => toResource(row, open))
  return { items, position: { place, pending } }
}

type Progress = Pick<PlaceRow, 'phase' | 'walked'>

/** Whether a batch has been read where the place stands now: no other process has gone on from there. */
export function isAtPosition(row: Progress, { walk }: Position): boolean {
  return walk === undefined || (row.phase === walk.phase && row.walked === walk.from)
}

/** Where a place stands once a batch is indexed. */
export function advance({ walk }: Position, { phase, walked }: Progress): Progress {
  if (walk === undefined) return { phase, walked }
  return walk.to === undefined ? { phase: phase + 1, walked: '' } : { phase, walked: walk.to }
}

/** The number under which the entry of a member stands. */
export function entryPlaceOf(place: number, state: number): number {
  return state === LIVE ? place : -place
}

/** Columns for values that a row of the entries has; the columns are `v1` to `v16`. */
const SLOTS = 16

export const ALL_SLOTS: readonly number[] = Array.from({ length: SLOTS }, (_, i) => i + 1)

/** The columns of an entry that hold keys, in the order of {@link EntryKeys}. */
export const KEY_COLUMNS: readonly string[] = ['scope', ...ALL_SLOTS.map((slot) => `v${slot}`)]

/** The keys of one item: of its scope, null without one, then one for each slot that the index uses. */
export type EntryKeys = readonly (Uint8Array | null)[]

export function slotOf(index: CollectionIndex, property: string): number {
  return positionOf(index, property) + 1
}

/** The keys under which an item with these values is found. A value that an index cannot hold counts as absent. */
export function encodeEntry(index: CollectionIndex, values: IndexedValues): EntryKeys {
  const keys: (Uint8Array | null)[] = [null]
  for (const property of index.properties) {
    const value = indexedValueOf(values, property)
    keys.push(encodeValue(isValue(value) ? value : null))
  }
  // A count of all members reads the index of the first slot.
  if (index.properties.length === 0) keys.push(encodeValue(null))
  if (index.scope.length > 0) keys[0] = joinKeys(index.scope.map((property) => keys[slotOf(index, property)]!))
  return keys
}

/** The keys for all columns of an entry; null for a slot that the index does not use. */
export function padEntry(keys: EntryKeys): EntryKeys {
  return KEY_COLUMNS.map((_, i) => keys[i] ?? null)
}

/** Keys end themselves, so those of several properties stand behind each other. */
export function joinKeys(keys: readonly Uint8Array[]): Uint8Array {
  return keys.length === 1 ? keys[0]! : Buffer.concat(keys)
}

export function decodeKey(key: Uint8Array): IndexedValue {
  const bytes = viewOf(key)
  if (bytes[0] === 1) return bytes[1] === 1
  if (bytes[0] === 2) return decodeNumber(Buffer.from(bytes.subarray(1)))
  if (bytes[0] === 3) return bytes.toString('utf8', 1, bytes.length - 1)
  return null
}

function decodeNumber(bytes: Buffer): number {
  if (bytes[0]! >= 0x80) bytes[0]! ^= 0x80
  else for (const [i, byte] of bytes.entries()) bytes[i] = ~byte
  return bytes.readDoubleBE()
}
