import { createUnavailableError } from '../../core/unavailable.ts'
import {
  type Description,
  isExpected,
  isResource,
  memberPath,
  nameOf,
  parseIntegerName,
  throwIfAborted,
} from '../rules.ts'
import type { Draft, RemoveStep, SqlChanges, Taken, WriteStep } from '../sql/dialect.ts'
import { type OpenContent, refuseRemoval, shownVersion, toResource } from '../sql/rows.ts'
import type { Abortable, CreateResult, RelatedWrite, RemoveResult, WriteConflict, WriteResult } from '../types.ts'
import { type PostgresConnection, ROLL_BACK, type RunStatement } from './connection.ts'
import type { PostgresIndexes } from './indexes.ts'
import type { NameSource } from './names.ts'
import type { DatedRow } from './statements.ts'
import type { NewRow, PostgresStates, PutExpectation, PutResult } from './states.ts'

/** A write, also of a path that no row may be there for. */
type Step = Omit<WriteStep, 'content' | 'expect'> & {
  readonly content: Description
  readonly expect: PutExpectation
}

/** Where the state of a path was not the expected one. */
interface Unexpected {
  readonly unexpected: string
  /** Whether it is the path of `requires`. */
  readonly isMissing?: boolean
}

const MAX_ATTEMPTS = 10

/** Changes of the states: each is tried without a look at the rows, which are read only to explain why it was refused. */
export function createPostgresChanges(
  connection: PostgresConnection,
  states: PostgresStates,
  names: NameSource,
  indexes: PostgresIndexes,
  open: OpenContent,
): SqlChanges {
  /** Statements that change something, and wait for a connection only until the call is given up. */
  function runUntil(call: Abortable): RunStatement {
    return (statement, values) => connection.run(statement, values, call)
  }

  /** Writes those of the related paths that expect the same. @returns the path whose state was not the expected one */
  async function putRelated(
    run: RunStatement,
    writes: readonly RelatedWrite[],
    taken: readonly Taken[],
    which: 'any' | 'absent',
    results: PutResult[],
  ): Promise<string | undefined> {
    const own = new Set<string>()
    for (const [index, { path, content, expect = 'any' }] of writes.entries()) {
      if (expect !== which) continue
      // What this step itself has written there is not in its way.
      const result = await states.put(run, path, content, taken[index]!, own.has(path) ? 'any' : expect)
      if (result === undefined) return path
      own.add(path)
      results.push(result)
    }
    return undefined
  }

  /** Once they are committed. */
  function learnCounters(results: readonly PutResult[]): void {
    for (const { counter } of results) if (counter !== undefined) names.learn(counter.collection, counter.next)
  }

  async function put(step: Step, taken: readonly Taken[], call: Abortable): Promise<PutResult | Unexpected> {
    const { path, version, content, expect, related, requires } = step
    const [first, ...others] = taken
    await indexes.prepare([{ path, content }, ...related])
    // One statement is atomic by itself, and costs one round trip.
    if (requires === undefined && related.length === 0 && first!.id === undefined) {
      const run = runUntil(call)
      const result =
        expect === 'vacant'
          ? await states.create(run, { path, version, content, taken: first! })
          : await states.put(run, path, content, first!, expect, version)
      if (result === undefined) return { unexpected: path }
      learnCounters([result])
      return result
    }
    const beside = expect === 'vacant' && requires === undefined ? findBeside(related, others) : undefined
    if (beside !== undefined && first!.id === undefined) {
      const own = { path, version, content, taken: first! }
      const result = await states.createBeside(runUntil(call), beside, own)
      if (result !== undefined) return result
    }
    let refused: Unexpected = { unexpected: path }
    const written = await connection.transact(async (run) => {
      if (requires !== undefined && !(await states.hold(run, requires))) {
        refused = { unexpected: requires, isMissing: true }
        return ROLL_BACK
      }
      const results: PutResult[] = []
      // Those that must be absent come first: calls that race for one wait here, before they have locked anything else.
      const occupied = await putRelated(run, related, others, 'absent', results)
      refused = { unexpected: occupied ?? path }
      if (occupied !== undefined) return ROLL_BACK
      const own = await states.put(run, path, content, first!, expect, version)
      if (own === undefined) return ROLL_BACK
      await putRelated(run, related, others, 'any', results)
      return { own, results }
    }, call)
    if (written === ROLL_BACK) return refused
    learnCounters([written.own, ...written.results])
    return written.own
  }

  /** What stood in the way of a write; `undefined` when it does not any more. */
  async function explain(step: Step, refused: Unexpected, call: Abortable): Promise<WriteConflict | undefined> {
    const { path, expect } = step
    const { unexpected, isMissing } = refused
    if (isMissing) return { outcome: 'conflict', current: undefined, missing: unexpected }
    const row = await states.readRow(path, call)
    if (unexpected !== path) return explainRelated(row, unexpected, call)
    if (expect !== 'vacant' && isExpected(shownVersion(row), expect)) return undefined
    return { outcome: 'conflict', current: states.toFoundState(row) }
  }

  async function explainRelated(row: DatedRow | undefined, path: string, call: Abortable) {
    const related = states.toFoundState(await states.readRow(path, call))
    if (!isResource(related)) return undefined
    return { outcome: 'conflict', current: states.toFoundState(row), related } as const
  }

  /** Removes paths and writes others; `undefined` or a path where a state was not the expected one. */
  async function remove(
    path: string,
    { related, relatedWrites: writes, below, ...options }: RemoveStep,
    taken: readonly Taken[],
    call: Abortable,
  ): Promise<DatedRow | Unexpected | undefined> {
    const own = { ...options, reach: 'live' } as const
    if (related.length === 0 && writes.length === 0 && !below) return states.drop(runUntil(call), path, own)
    const other = { ...options, expect: 'any', reach: 'live-and-hidden' } as const
    let occupied: string | undefined
    const removed = await connection.transact(async (run) => {
      const results: PutResult[] = []
      // Those that must be absent come first, as in a write.
      occupied = await putRelated(run, writes, taken, 'absent', results)
      if (occupied !== undefined) return ROLL_BACK
      const row = await states.drop(run, path, own)
      if (row === undefined) return ROLL_BACK
      for (const path of related) await states.drop(run, path, other)
      if (below) await states.dropBelow(run, path)
      await putRelated(run, writes, taken, 'any', results)
      return { row, results }
    }, call)
    if (removed === ROLL_BACK) return occupied === undefined ? undefined : { unexpected: occupied }
    learnCounters(removed.results)
    return removed.row
  }

  return {
    write: (step, taken, call) =>
      attempt(async (): Promise<WriteResult | undefined> => {
        const written = await put(step, taken, call)
        if ('outcome' in written) return { outcome: written.outcome, resource: written.resource }
        return explain(step, written, call)
      }),

    create({ collection, requires, draft: draftFor }, drafted, findTaken, call) {
      let draft = drafted
      return attempt(async (): Promise<CreateResult | Draft | undefined> => {
        for (;;) {
          draft ??= draftFor(await names.take(collection))
          const taken = findTaken(draft.contents)
          if (taken === undefined) return draft
          const path = memberPath(collection, draft.name)
          const step = { ...draft, path, expect: 'vacant', requires } as const
          const written = await put(step, taken, call)
          if ('outcome' in written) return { outcome: 'created', resource: written.resource }
          draft = undefined
          if (written.unexpected !== path) return (await explain(step, written, call)) as CreateResult | undefined
          // A client has written the name: the next one. Without a row, a trigger drops it, as it would the next one.
          if ((await states.readRow(path, call)) === undefined) return undefined
        }
      })
    },

    async remove(path, step, taken, call) {
      throwIfAborted(call)
      return attempt(async (): Promise<RemoveResult | undefined> => {
        const removed = await remove(path, step, taken, call)
        if (removed !== undefined && !('unexpected' in removed)) {
          return { outcome: 'removed', resource: toResource(removed, open) }
        }
        const row = await states.readRow(path, call)
        if (removed !== undefined) return explainRelated(row, removed.unexpected, call)
        return refuseRemoval(row, step.expect, states.toFoundState(row))
      })
    },
  }
}

/** Tries a change until it has a result: what stood in its way may have gone before it was looked at. */
async function attempt<Result>(change: () => Promise<Result | undefined>): Promise<Result> {
  for (let count = 0; count < MAX_ATTEMPTS; count++) {
    const result = await change()
    if (result !== undefined) return result
  }
  throw createUnavailableError(new Error('The state changed at every attempt.'))
}

/** The related write that can be made in one round trip with a creation: the only one, small, of what must be absent. */
function findBeside(related: readonly RelatedWrite[], others: readonly Taken[]): Omit<NewRow, 'version'> | undefined {
  const [write] = related
  if (write === undefined || related.length > 1 || write.expect !== 'absent') return undefined
  const { path, content } = write
  const taken = others[0]!
  // A name that is an integer raises the counter of its collection, and values make an entry.
  const isMore = content.indexed !== undefined || parseIntegerName(nameOf(path)) !== undefined
  return taken.id !== undefined || isMore ? undefined : { path, content, taken }
}
