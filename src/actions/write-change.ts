import { HttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import type {
  Content,
  NewState,
  RelatedWrite,
  RemoveOptions,
  RemoveResult,
  ResourceStore,
  StoredResource,
  WriteConflict,
  WriteOptions,
  WriteResult,
} from '../stores/types.ts'
import type { PendingChange } from './changes.ts'
import { foresee } from './foreseen-state.ts'

/** What is written beside a change, for another reason than its outbox. */
export interface Beside {
  readonly writes: (state: NewState) => readonly RelatedWrite[]
  /** The one of these paths that must be absent; a conflict with it is the caller's to deal with. */
  readonly absent: string
}

/**
 * Writes a path and what its outbox gives in one atomic step, and announces the change once it is committed.
 * @param change `undefined` where no hook sees changes
 * @throws HttpError 409 where a path of the outbox must be absent and is not
 */
export function writeChange(
  store: ResourceStore,
  path: string,
  content: Content,
  options: WriteOptions,
  change: PendingChange | undefined,
  beside?: Beside,
): MaybePromise<WriteResult> {
  const outbox = change?.writes
  if (outbox === undefined && beside === undefined) return settle(store.write(path, content, options))
  const { related = [], expect, requires, signal } = options
  const relatedTo = (state: NewState): readonly RelatedWrite[] => {
    const own = beside === undefined ? related : [...related, ...beside.writes(state)]
    return outbox === undefined ? own : [...own, ...outbox(path, foresee(path, content, state))]
  }
  return settle(store.write(path, content, { expect, requires, relatedTo, ...(signal && { signal }) }))

  function settle(written: MaybePromise<WriteResult>): MaybePromise<WriteResult> {
    if (change === undefined) return written
    return andThen(written, (result) => {
      if (result.outcome !== 'conflict') change.commit(path, result.resource)
      else refuseOutboxConflict(result, beside?.absent)
      return result
    })
  }
}

/**
 * Removes the state that the hooks are shown, and writes what the outbox gives in the same atomic step.
 * @throws HttpError 409 where a path of the outbox must be absent and is not
 */
export function removeChange(
  store: ResourceStore,
  { path, version }: StoredResource,
  options: RemoveOptions,
  change: PendingChange,
): MaybePromise<RemoveResult> {
  const relatedWrites = change.writes?.(path, undefined) ?? []
  const { related = [], mode, retention, below = false, signal } = options
  const own = { expect: { version }, related, mode, retention, below, relatedWrites, ...(signal && { signal }) }
  return andThen(store.remove(path, own), (result) => {
    if (result.outcome === 'removed') change.commit(path, undefined)
    else if (result.outcome === 'conflict') refuseOutboxConflict(result, undefined)
    return result
  })
}

/**
 * @param other the path that must be absent for another reason than the outbox
 * @throws HttpError 409 where a path of the outbox must be absent and is not
 */
export function refuseOutboxConflict({ related }: WriteConflict, other: string | undefined): void {
  if (related === undefined || related.path === other) return
  throw new HttpError(409, 'ERR_CONFLICT', { detail: 'Another resource is in the way of the change.' })
}
