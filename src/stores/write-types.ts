/** Writes and removals: the part of the store contract about changes, their conditions and their results. */

import type { Content } from './content-types.ts'
import type { StoredResource, StoredState, Tombstone } from './types.ts'

/**
 * The state in which a write may happen. Hidden resources and tombstones count as absent.
 * A version: only while the current state is still that one.
 */
export type Expectation = 'any' | 'absent' | 'present' | { readonly version: string }

/** What a write needs beside the state of its own path. */
export interface Requirement {
  /**
   * A path that must be present, and not hidden, in the same atomic step: else the outcome is `conflict` with `missing`,
   * and nothing is written. Only with stores that support `parents`.
   */
  readonly requires?: string | undefined
}

export interface WriteOptions extends Requirement {
  readonly expect: Expectation
  /** Further resources to write in the same atomic step. */
  readonly related?: readonly RelatedWrite[]
  /**
   * The same, for resources that name the new state: called before anything is written, at most a few times; only the
   * result of the last call counts. Used only with stores that support `relatedExpect`, and not beside `related`.
   */
  readonly relatedTo?: (state: NewState) => readonly RelatedWrite[]
  /**
   * Ends the call with its reason, at once also while the source of the content is silent; nothing is written then, and
   * the source is closed.
   */
  readonly signal?: AbortSignal
}

export interface RelatedWrite {
  readonly path: string
  readonly content: Content
  /**
   * `any`: written whatever its state. `absent`: nothing of the whole step happens while a resource is there; used only
   * with stores that support `relatedExpect`. Default `any`.
   */
  readonly expect?: 'any' | 'absent'
  /**
   * Milliseconds after which the store may remove the resource, which then needs no place in listings: a hint, for the
   * records that the service keeps of first responses. A store that ignores it lists the resource, and the service removes
   * it. A later write without it keeps the resource. Default: it stays.
   */
  readonly retention?: number
}

/** The names of a state that is about to be written, the same as those of the resource that the write returns. */
export type NewState = Pick<StoredResource, 'version' | 'entityTag'>

/** Nothing was written: the state was not the expected one, or a related path that must be absent has a resource. */
export interface WriteConflict {
  readonly outcome: 'conflict'
  /** The state of the path itself. */
  readonly current: StoredState
  /**
   * The resource at the first related path that must be absent and is not. Such a path is judged before the state of the
   * path itself.
   */
  readonly related?: StoredResource
  /** The path of `requires`, where it is not present; judged first of all. `current` is then not looked at. */
  readonly missing?: string
}

export type WriteResult =
  | { readonly outcome: 'created' | 'replaced'; readonly resource: StoredResource }
  | WriteConflict

/** A creation conflicts only with a related path, or with `requires`. */
export type CreateResult =
  | { readonly outcome: 'created'; readonly resource: StoredResource }
  | (WriteConflict & ({ readonly related: StoredResource } | { readonly missing: string }))

export interface CreateOptions extends Requirement {
  /**
   * Further resources to write in the same atomic step, once the name is known. Stores that support `relatedExpect` pass
   * the names of the new state as well.
   */
  readonly related?: (name: string, state?: NewState) => readonly RelatedWrite[]
  /** As for `write`. */
  readonly signal?: AbortSignal
}

export interface RemoveOptions {
  readonly expect: Exclude<Expectation, 'absent'>
  /**
   * `erase`: nothing stays. `tombstone`: content goes, the fact stays. `hide`: everything stays, but only reads that
   * ask for hidden resources see it.
   */
  readonly mode: 'erase' | 'tombstone' | 'hide'
  /** Milliseconds after which a tombstone may be forgotten. Default: the store's own. */
  readonly retention?: number | undefined
  /** Further paths to remove in the same atomic step, in the same mode, whatever their state. */
  readonly related?: readonly string[]
  /**
   * Resources to write in the same atomic step, as for `write`; none of them is the path, a related one, or below it. Used only with
   * stores that support `relatedExpect`.
   */
  readonly relatedWrites?: readonly RelatedWrite[]
  /**
   * Removes in the same atomic step everything below the path (`/tasks/7/…`), hidden states included, without a trace.
   * Only with stores that support `parents`, and not with the mode `hide`. Default false.
   */
  readonly below?: boolean
  readonly signal?: AbortSignal
}

/** `absent`: there was nothing to remove. */
export type RemoveResult =
  | { readonly outcome: 'removed'; readonly resource: StoredResource }
  | { readonly outcome: 'absent'; readonly current: Tombstone | undefined }
  | Omit<WriteConflict, 'missing'>
