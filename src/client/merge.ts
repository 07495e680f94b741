import { defineMember, equalJson, formatPointerStep, isJsonObject, type JsonValue, readMember } from '../core/json.ts'

/** A place that both sides changed, each in its own way. `undefined`: the property is not there. */
export interface Conflict {
  /** JSON Pointer (RFC 6901) of the property; empty for the whole document. */
  readonly pointer: string
  readonly base: JsonValue | undefined
  readonly mine: JsonValue | undefined
  readonly theirs: JsonValue | undefined
}

export interface Merge {
  /** Both changes together; at the conflicts, theirs. */
  readonly value: JsonValue
  readonly conflicts: readonly Conflict[]
}

/**
 * Combines two changes of one document. Changes of different properties combine, equal changes count once, and all
 * others are conflicts. An array counts as one value.
 * @param base the document that both sides began with
 * @example
 * merge({ a: 1, b: 1 }, { a: 2, b: 1 }, { a: 1, b: 3 }) // { value: { a: 2, b: 3 }, conflicts: [] }
 */
export function merge(base: JsonValue, mine: JsonValue, theirs: JsonValue): Merge {
  const conflicts: Conflict[] = []
  // Only properties can be left out: the document itself is always there.
  const value = mergeValues(base, mine, theirs, '', conflicts) as JsonValue
  return { value, conflicts }
}

type Value = JsonValue | undefined

function mergeValues(base: Value, mine: Value, theirs: Value, pointer: string, conflicts: Conflict[]): Value {
  if (equalJson(mine, theirs) || equalJson(mine, base)) return theirs
  if (equalJson(theirs, base)) return mine
  if (!isJsonObject(base) || !isJsonObject(mine) || !isJsonObject(theirs)) {
    conflicts.push({ pointer, base, mine, theirs })
    return theirs
  }
  const merged: Record<string, JsonValue> = {}
  for (const name of new Set([...Object.keys(theirs), ...Object.keys(mine)])) {
    const member = mergeValues(
      readMember(base, name),
      readMember(mine, name),
      readMember(theirs, name),
      pointer + formatPointerStep(name),
      conflicts,
    )
    if (member !== undefined) defineMember(merged, name, member)
  }
  return merged
}
