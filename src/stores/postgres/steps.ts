import { parseIntegerName, splitPath } from '../paths.ts'
import type { Taken } from '../sql/intake.ts'
import { isExpected } from '../sql/rows.ts'
import { isResource, type RelatedWrite, type StoredState, type WriteConflict } from '../types.ts'
import { type PostgresConnection, ROLL_BACK, type RunStatement } from './connection.ts'
import type { PostgresIndexes } from './indexes.ts'
import type { NameSource } from './names.ts'
import type { DatedRow, Description, NewRow, PostgresStates, PutExpectation, PutResult } from './states.ts'

/** A write of one path and those that go with it, all or nothing. */
export interface Step {
  readonly path: string
  readonly version: string
  readonly content: Description
  readonly expect: PutExpectation
  readonly related: readonly RelatedWrite[]
  /** A path that must be present. */
  readonly requires?: string | undefined
}

/** Where the state of a path was not the expected one. */
export interface Unexpected {
  readonly unexpected: string
  /** Whether it is the path of `requires`. */
  readonly isMissing?: boolean
}

/** Writes of several paths, all or nothing. */
export interface PostgresSteps {
  /** Writes content that has been taken in; a path instead of a result where its state was not the expected one. */
  put(step: Step, taken: readonly Taken[], signal: AbortSignal | undefined): Promise<PutResult | Unexpected>
  /** What stood in the way of a step; `undefined` when it does not any more. */
  explain(step: Step, place: Unexpected, signal: AbortSignal | undefined): Promise<WriteConflict | undefined>
}

export interface StepOptions {
  readonly nextVersion: () => string
  readonly runUntil: (signal: AbortSignal | undefined) => RunStatement
  readonly toFoundState: (row: DatedRow | undefined) => StoredState
}

export function createPostgresSteps(
  connection: PostgresConnection,
  states: PostgresStates,
  names: NameSource,
  indexes: PostgresIndexes,
  { nextVersion, runUntil, toFoundState }: StepOptions,
): PostgresSteps {
  return {
    async put(
      { path, version, content, expect, related, requires }: Step,
      [first, ...others]: readonly Taken[],
      signal: AbortSignal | undefined,
    ): Promise<PutResult | Unexpected> {
      if (isAnyIndexed(content, related)) await indexes.prepare([{ path, content }, ...related])
      // One statement is atomic by itself, and costs one round trip.
      if (requires === undefined && related.length === 0 && first!.id === undefined) {
        const result = await states.put(runUntil(signal), path, content, first!, expect, version)
        if (result === undefined) return { unexpected: path }
        if (result.counter !== undefined) names.learn(result.counter.collection, result.counter.next)
        return result
      }
      const beside = expect === 'vacant' && requires === undefined ? findBeside(related, others) : undefined
      if (beside !== undefined && first!.id === undefined) {
        const own = { path, version, content, taken: first! }
        const result = await states.createBeside(runUntil(signal), { ...beside, version: nextVersion() }, own)
        if (result !== undefined) return result
      }
      let unexpected = path
      let isMissing = false
      const results = await connection.transact(async (run) => {
        const results: PutResult[] = []
        if (requires !== undefined && !(await states.hold(run, requires))) {
          unexpected = requires
          isMissing = true
          return ROLL_BACK
        }
        isMissing = false
        async function putRelated(which: 'any' | 'absent'): Promise<boolean> {
          for (const [index, { path, content, expect = 'any' }] of related.entries()) {
            if (expect !== which) continue
            const result = await states.put(run, path, content, others[index]!, expect)
            unexpected = path
            if (result === undefined) return false
            results.push(result)
          }
          return true
        }
        // Those that must be absent come first: calls that race for one wait here, before they have locked anything else.
        if (!(await putRelated('absent'))) return ROLL_BACK
        const own = await states.put(run, path, content, first!, expect, version)
        unexpected = path
        if (own === undefined) return ROLL_BACK
        await putRelated('any')
        return [own, ...results]
      }, signal)
      if (results === ROLL_BACK) return { unexpected, isMissing }
      for (const { counter } of results) if (counter !== undefined) names.learn(counter.collection, counter.next)
      return results[0]!
    },

    async explain(
      { path, expect }: Step,
      { unexpected, isMissing }: Unexpected,
      signal: AbortSignal | undefined,
    ): Promise<WriteConflict | undefined> {
      if (isMissing) return { outcome: 'conflict', current: undefined, missing: unexpected }
      const row = await states.read(path, 'with-content', signal)
      const current = toFoundState(row)
      if (unexpected === path) {
        return expect !== 'vacant' && isExpected(row, expect) ? undefined : { outcome: 'conflict', current }
      }
      const related = toFoundState(await states.read(unexpected, 'with-content', signal))
      return isResource(related) ? { outcome: 'conflict', current, related } : undefined
    },
  }
}

/** The related write that can be made in one round trip with a creation: the only one, small, of what must be absent. */
function findBeside(related: readonly RelatedWrite[], others: readonly Taken[]): Omit<NewRow, 'version'> | undefined {
  const [write] = related
  if (write === undefined || related.length > 1 || write.expect !== 'absent') return undefined
  const taken = others[0]!
  // A name that is an integer raises the counter of its collection.
  if (taken.id !== undefined || parseIntegerName(splitPath(write.path).name) !== undefined) return undefined
  return { path: write.path, content: write.content, taken }
}

function isAnyIndexed(content: Description, related: readonly RelatedWrite[]): boolean {
  return content.indexed !== undefined || related.some((write) => write.content.indexed !== undefined)
}
