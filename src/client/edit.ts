import { defineMember, equalJson, formatPointerStep, isJsonObject, type JsonValue, readMember } from '../core/json.ts'
import { type Answer, conditionOn, refuse, throwAfterWrite } from './answers.ts'
import { createPatch } from './create-patch.ts'
import { type Call, readDocument, readWritten } from './read.ts'
import { formatJson } from './request-content.ts'
import type { ChangeConflict, Conflict, Failure, ResourceDocument, Success } from './results.ts'
import { pause, type RequestOptions, untilAborted } from './transport.ts'
import { CHANGING } from './write.ts'

/** Options of `edit`. */
export interface EditOptions extends RequestOptions {
  /**
   * What happens to a change by a function when others were faster. `'rerun'`: the function is called with their
   * document. `'merge'`: its result is merged with theirs, and where both changed one property it is a conflict. Default
   * `'rerun'`, which counts correctly: a merge takes two equal increments for one.
   */
  readonly whenChanged?: 'rerun' | 'merge'
  /** How often the edit is tried while others change the document. Default: that of the client. */
  readonly maxAttempts?: number | undefined
}

export type EditResult<Value, Path extends string> =
  | Success<200, { readonly document: ResourceDocument<Value, Path> }>
  | Failure<Exclude<(typeof CHANGING)[number], 412>>
  | ChangeConflict<Value, Path>

type Result = EditResult<JsonValue, string>
type Change = JsonValue | ((value: JsonValue) => JsonValue | PromiseLike<JsonValue>)

/** Reads where nothing was read, sends the difference, and settles with others who were faster. */
export async function editDocument(
  call: Call<EditOptions>,
  known: ResourceDocument | undefined,
  change: Change,
): Promise<Result> {
  const { signal, whenChanged, maxAttempts = call.maxAttempts } = call.options ?? {}
  let base = known
  if (!base) {
    const read = await readDocument(call)
    if (!read.ok) return read
    base = read.document
  }
  let intended = change
  for (let attempts = 1; ; attempts++) {
    // The bytes that were read: the caller may have changed the value.
    const before = JSON.parse(base.text) as JsonValue
    // A copy of its own for the function. What JSON cannot hold, such as `undefined`, is not sent either.
    const result =
      typeof intended === 'function'
        ? await untilAborted(Promise.resolve(intended(JSON.parse(base.text))), signal)
        : intended
    const after = JSON.parse(formatJson(result)) as JsonValue
    const difference = createPatch(before, after, call.prefer)
    if (!difference) return { ok: true, status: 200, document: base }
    const { contentType, patch } = difference
    const condition = conditionOn(base)
    const answer = await call.send(call, {
      method: 'PATCH',
      headers: { 'Content-Type': contentType, ...condition },
      content: { body: JSON.stringify(patch) },
      // A date holds on for the rest of its second: an operation on an array would take effect twice.
      isRepeatable: 'If-Match' in condition || contentType === 'application/merge-patch+json',
    })
    const { status } = answer
    if (status === 200 || status === 204) {
      return { ok: true, status: 200, document: await readWritten(call, answer) }
    }
    if (status !== 412) return refuse(answer, CHANGING) as Result
    // Before the read: what is read before a pause has changed after it while others write all the time.
    await pause(Math.random() * Math.min(attempts, 20) * 10, signal)
    const read = await readDocument(call).catch(answer.isRepeated ? throwAfterWrite : undefined)
    if (!read.ok) return read
    const theirs = read.document
    // The attempt whose answer was lost may be what changed the state.
    if (answer.isRepeated && equalJson(theirs.value, after)) return read
    // Where it may have had its effect below the changes of others, to run it again could apply it twice.
    if (typeof intended !== 'function' || whenChanged === 'merge' || answer.isRepeated) {
      const { value, conflicts } = merge(before, after, theirs.value)
      if (conflicts.length > 0) return conflict(answer, theirs, conflicts)
      intended = value
    }
    if (!(attempts < maxAttempts)) return conflict(answer, theirs, [])
    base = theirs
  }
}

function conflict(answer: Answer, theirs: ResourceDocument, conflicts: readonly Conflict[]): Result {
  return { ...(refuse(answer, CHANGING) as Failure<412>), conflicts, theirs }
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
