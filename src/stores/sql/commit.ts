import { andThen, type MaybePromise } from '../../core/handler.ts'
import type { Content, CreateResult, RelatedWrite } from '../types.ts'
import type { Intake, Taken } from './intake.ts'

/** A resource to be written, and those that go with it. */
export interface Written {
  readonly content: Content
  readonly related: readonly RelatedWrite[]
}

/** The content of all resources of a write; its own comes first. */
export function contentsOf({ content, related }: Written): readonly Content[] {
  return related.length === 0 ? [content] : [content, ...related.map((write) => write.content)]
}

/**
 * Runs a commit with its content taken in: at once when all of it is there. Content that the commit did not use, because
 * it failed or found a conflict, is given up.
 */
export function commitContents<Result extends { readonly outcome: string }>(
  intake: Intake,
  contents: readonly Content[],
  signal: AbortSignal | undefined,
  commit: (taken: readonly Taken[]) => MaybePromise<Result>,
): MaybePromise<Result> {
  signal?.throwIfAborted()
  const held = intake.held(contents)
  return held === undefined ? takeAndCommit(intake, contents, signal, commit) : commit(held)
}

async function takeAndCommit<Result extends { readonly outcome: string }>(
  intake: Intake,
  contents: readonly Content[],
  signal: AbortSignal | undefined,
  commit: (taken: readonly Taken[]) => MaybePromise<Result>,
): Promise<Result> {
  let used: readonly Taken[] = []
  try {
    const taken = await intake.take(contents, signal)
    const result = await commit(taken)
    if (result.outcome !== 'conflict') used = taken
    return result
  } finally {
    intake.close(used)
  }
}

/** A new member, once it has a name. */
export interface Draft extends Written {
  readonly name: string
  readonly version: string
}

/** The content of a draft; `undefined` while some of it has to be taken in. */
export type FindTaken = (draft: Draft) => readonly Taken[] | undefined

/**
 * Writes a new member. Its name is assigned in the first attempt, which is the only one where all content is small.
 * @param attempt writes the member, or returns a draft whose content is taken in before the next attempt. It makes another
 *   draft where the name of the one that it is called with is not free any more
 */
export function commitDraft(
  intake: Intake,
  signal: AbortSignal | undefined,
  attempt: (drafted: Draft | undefined, findTaken: FindTaken) => MaybePromise<CreateResult | Draft>,
): MaybePromise<CreateResult> {
  let last: readonly Taken[] = []

  function findTaken(draft: Draft): readonly Taken[] | undefined {
    const taken = intake.held(contentsOf(draft))
    if (taken !== undefined) last = taken
    return taken
  }

  async function takeAndAttempt(draft: Draft): Promise<CreateResult> {
    let used: readonly Taken[] = []
    try {
      for (;;) {
        await intake.take(contentsOf(draft), signal)
        const result = await attempt(draft, findTaken)
        if ('outcome' in result) {
          if (result.outcome === 'created') used = last
          return result
        }
        draft = result
      }
    } finally {
      intake.close(used)
    }
  }

  return andThen(attempt(undefined, findTaken), (result) => ('outcome' in result ? result : takeAndAttempt(result)))
}
