import type { SqlChanges } from '../sql/create-store.ts'
import { type OpenContent, refuseRemoval, toResource } from '../sql/rows.ts'
import {
  isResource,
  memberPath,
  type RemoveResult,
  type StoredState,
  throwIfAborted,
  type WriteResult,
} from '../types.ts'
import type { DatedRow } from './columns.ts'
import { createUnavailableError } from './errors.ts'
import type { NameSource } from './names.ts'
import type { PostgresStates } from './states.ts'
import type { PostgresSteps } from './steps.ts'

const MAX_ATTEMPTS = 10

/** Changes of the states: each is tried without a look at the rows, which are read only to explain why it was refused. */
export function createPostgresChanges(
  states: PostgresStates,
  steps: PostgresSteps,
  names: NameSource,
  open: OpenContent,
  toFoundState: (row: DatedRow | undefined) => StoredState,
): SqlChanges {
  return {
    async write(step, taken, call): Promise<WriteResult> {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const written = await steps.put(step, taken, call)
        if ('outcome' in written) return { outcome: written.outcome, resource: written.resource }
        const conflict = await steps.explain(step, written, call)
        if (conflict !== undefined) return conflict
        // It has become the expected one in between.
      }
      throw createUnavailableError(new Error('The state changed at every attempt.'))
    },

    async create({ collection, requires, draft: draftFor }, drafted, findTaken, call) {
      let draft = drafted
      for (let attempt = 0; attempt < MAX_ATTEMPTS; draft = undefined) {
        draft ??= draftFor(await names.take(collection))
        const taken = findTaken(draft)
        if (taken === undefined) return draft
        const path = memberPath(collection, draft.name)
        const step = { ...draft, path, expect: 'vacant', requires } as const
        const written = await steps.put(step, taken, call)
        if ('outcome' in written) return { outcome: 'created', resource: written.resource }
        // A client has written the name: the next one.
        if (written.unexpected === path) continue
        const conflict = await steps.explain(step, written, call)
        if (conflict?.missing !== undefined) return { ...conflict, missing: conflict.missing }
        if (conflict?.related !== undefined) return { ...conflict, related: conflict.related }
        attempt++
      }
      throw createUnavailableError(new Error('The state changed at every attempt.'))
    },

    async remove(path, step, taken, call): Promise<RemoveResult> {
      throwIfAborted(call)
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const removed = await steps.remove(path, step, taken, call)
        if (removed !== undefined && !('unexpected' in removed)) {
          return { outcome: 'removed', resource: toResource(removed, open) }
        }
        const row = await states.read(path, 'with-content', call)
        const current = toFoundState(row)
        if (removed !== undefined) {
          const related = toFoundState(await states.read(removed.unexpected, 'with-content', call))
          if (isResource(related)) return { outcome: 'conflict', current, related }
          continue
        }
        const refused = refuseRemoval(row, step.expect, current)
        if (refused !== undefined) return refused
      }
      throw createUnavailableError(new Error('The state changed at every attempt.'))
    },
  }
}
