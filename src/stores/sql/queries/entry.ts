import {
  type CollectionIndex,
  encodeValue,
  type IndexedValue,
  type IndexedValues,
  indexedValueOf,
  isValue,
} from '../../lists.ts'

/** Columns for values that a row of the entries has; the columns are `v1` to `v16`. */
const SLOTS = 16

/** The numbers of all slots: 1 to 16. */
export const ALL_SLOTS: readonly number[] = Array.from({ length: SLOTS }, (_, i) => i + 1)

/** The columns of an entry that hold keys, in the order of {@link EntryKeys}. */
export const KEY_COLUMNS: readonly string[] = ['scope', ...ALL_SLOTS.map((slot) => `v${slot}`)]

/** The keys of one item: of its scope, null without one, then one for each slot that the index uses. */
export type EntryKeys = readonly (Uint8Array | null)[]

/** The slot of a property. */
export function slotOf(index: CollectionIndex, property: string): number {
  const at = index.properties.indexOf(property)
  if (at === -1) throw new TypeError(`The index has no property ${JSON.stringify(property)}.`)
  return at + 1
}

/** The keys under which an item with these values is found. A value that an index cannot hold counts as absent. */
export function encodeEntry(index: CollectionIndex, values: IndexedValues): EntryKeys {
  const keys: (Uint8Array | null)[] = [null]
  for (const property of index.properties) keys.push(keyOf(indexedValueOf(values, property)))
  if (index.scope.length > 0) keys[0] = joinKeys(index.scope.map((property) => keys[slotOf(index, property)]!))
  return keys
}

/** The keys for all columns of an entry; null for a slot that the index does not use. */
export function padEntry(keys: EntryKeys): EntryKeys {
  return KEY_COLUMNS.map((_, i) => keys[i] ?? null)
}

function keyOf(value: IndexedValue): Uint8Array {
  return encodeValue(isValue(value) ? value : null)
}

/** Keys end themselves, so those of several properties stand behind each other. */
export function joinKeys(keys: readonly Uint8Array[]): Uint8Array {
  return keys.length === 1 ? keys[0]! : Buffer.concat(keys)
}

/** The value that a key was made of. */
export function decodeKey(key: Uint8Array): IndexedValue {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.byteLength)
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
