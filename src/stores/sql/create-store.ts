import { andThen, type MaybePromise } from '../../core/maybe-promise.ts'
import type { ListOptions, Page } from '../lists.ts'
import {
  type Abortable,
  type Content,
  type CreateResult,
  type RelatedWrite,
  type RemoveOptions,
  type RemoveResult,
  type ResourceStore,
  throwIfAborted,
  type WriteOptions,
  type WriteResult,
} from '../types.ts'
import { supportOf } from './beside.ts'
import { createIntakeFactory, type Intake, type IntakeFactory, type Taken } from './intake.ts'
import type { SqlContents } from './large-body.ts'
import { moveChunks, type SqlStore } from './move.ts'
import type { SqlSettings, SqlStoreOptions } from './options.ts'
import type { Indexer } from './queries/indexer.ts'
import type { SqlQueries } from './queries/list.ts'
import type { Sweeper } from './sweeper.ts'

/** A resource to be written, and those that go with it. */
export interface Written {
  readonly content: Content
  readonly related: readonly RelatedWrite[]
}

/** A write of one path and those that go with it, all or nothing. */
export interface WriteStep extends Written {
  readonly path: string
  readonly version: string
  readonly expect: WriteOptions['expect']
  /** A path that must be present. */
  readonly requires: string | undefined
}

/** A new member, once it has a name. */
export interface Draft extends Written {
  readonly name: string
  readonly version: string
}

/** The content of a draft; `undefined` while some of it has to be taken in. */
export type FindTaken = (draft: Draft) => readonly Taken[] | undefined

/** A new member of a collection. */
export interface Creation {
  readonly collection: string
  /** A path that must be present. */
  readonly requires: string | undefined
  /** The content for a name. Each call makes another version. */
  readonly draft: (name: string) => Draft
}

/** A removal of one path, with others that are removed or written, all or nothing. */
export interface RemoveStep {
  readonly mode: RemoveOptions['mode']
  readonly expect: RemoveOptions['expect']
  /** Milliseconds for which a tombstone stays. */
  readonly keep: number
  readonly related: readonly string[]
  readonly writes: readonly RelatedWrite[]
  /** Whether everything below the path goes with it. */
  readonly below: boolean
}

/** Changes of the states of one database. Each call is atomic; its content has been taken in. */
export interface SqlChanges {
  write(step: WriteStep, taken: readonly Taken[], call: Abortable): MaybePromise<WriteResult>
  /**
   * One attempt of `commitDraft`. A name is assigned once only, whether it is used or not.
   * @returns the result; or a draft whose content has to be taken in first
   */
  create(
    creation: Creation,
    drafted: Draft | undefined,
    findTaken: FindTaken,
    call: Abortable,
  ): MaybePromise<CreateResult | Draft>
  /** @param taken the content of `writes` */
  remove(path: string, step: RemoveStep, taken: readonly Taken[], call: Abortable): MaybePromise<RemoveResult>
}

/** The parts of a store in which databases differ. */
export interface SqlParts {
  /** The public name of the store. */
  readonly owner: string
  readonly settings: SqlSettings<SqlStoreOptions>
  readonly nextVersion: () => string
  readonly read: ResourceStore['read']
  readonly changes: SqlChanges
  /** A page without a query. */
  readonly list: (collection: string, options: ListOptions) => MaybePromise<Page>
  readonly queries: SqlQueries
  readonly contents: SqlContents
  /** Bytes that are appended to large content at once. */
  readonly batchSize: number
  readonly sweeper: Sweeper
  readonly indexer: Indexer
}

/** Makes the store of a database from the parts in which databases differ. */
export function createSqlStore(parts: SqlParts): SqlStore {
  const { owner, settings, nextVersion, changes, queries, contents, sweeper, indexer } = parts
  const { inlineLimit, retention } = settings
  const { beside } = contents
  const intakes = createIntakeFactory(contents, { inlineLimit, batchSize: parts.batchSize, beside })

  return {
    supports: {
      relatedExpect: true,
      queries: true,
      parents: true,
      tagsAreVersions: true,
      ...supportOf(settings.contents),
    },

    read: parts.read,

    write(path, content, options) {
      const { expect, related: given = [], relatedTo, requires } = options
      const version = nextVersion()
      const related = relatedTo === undefined ? given : relatedTo({ version })
      const step: WriteStep = { path, version, content, expect, related, requires }
      return commitContents(intakes, contentsOf(step), options, (taken) => changes.write(step, taken, options))
    },

    create(collection, content, options = {}) {
      throwIfAborted(options)
      const { related, requires } = options
      function draft(name: string): Draft {
        const version = nextVersion()
        const own: Content = typeof content === 'function' ? content(name) : content
        return { name, version, content: own, related: related?.(name, { version }) ?? [] }
      }
      const creation: Creation = { collection, requires, draft }
      return commitDraft(intakes, options, (drafted, findTaken) =>
        changes.create(creation, drafted, findTaken, options),
      )
    },

    remove(path, options) {
      const { expect, mode, retention: keep = retention, related = [], relatedWrites = [], below = false } = options
      const step: RemoveStep = { mode, expect, keep, related, writes: relatedWrites, below }
      const written = relatedWrites.map((write) => write.content)
      return commitContents(intakes, written, options, (taken) => changes.remove(path, step, taken, options))
    },

    list: (collection, options) =>
      options.query === undefined ? parts.list(collection, options) : queries.list(collection, options, options.query),

    stage: (body, { signal } = {}) => intakes.stage(body, signal),

    moveContents: (options) => moveChunks(owner, contents.chunkSource, beside, options),

    close: () => andThen(sweeper.close(), () => andThen(indexer.close(), () => beside?.close())),
  }
}

/** The content of all resources of a write; its own comes first. */
function contentsOf({ content, related }: Written): readonly Content[] {
  return related.length === 0 ? [content] : [content, ...related.map((write) => write.content)]
}

/**
 * Runs a commit with its content taken in: at once when all of it is there. Content that the commit did not use, because
 * it failed or found a conflict, is given up.
 */
function commitContents<Result extends { readonly outcome: string }>(
  intakes: IntakeFactory,
  contents: readonly Content[],
  call: Abortable,
  commit: (taken: readonly Taken[]) => MaybePromise<Result>,
): MaybePromise<Result> {
  throwIfAborted(call)
  const held = intakes.held(contents)
  return held === undefined ? takeAndCommit(intakes.createIntake(), contents, call, commit) : commit(held)
}

async function takeAndCommit<Result extends { readonly outcome: string }>(
  intake: Intake,
  contents: readonly Content[],
  call: Abortable,
  commit: (taken: readonly Taken[]) => MaybePromise<Result>,
): Promise<Result> {
  let used: readonly Taken[] = []
  try {
    const taken = await intake.take(contents, call.signal)
    const result = await commit(taken)
    if (result.outcome !== 'conflict') used = taken
    return result
  } finally {
    intake.close(used)
  }
}

/**
 * Writes a new member. Its name is assigned in the first attempt, which is the only one where all content is small.
 * @param attempt writes the member, or returns a draft whose content is taken in before the next attempt. It makes another
 *   draft where the name of the one that it is called with is not free any more
 */
function commitDraft(
  intakes: IntakeFactory,
  call: Abortable,
  attempt: (drafted: Draft | undefined, findTaken: FindTaken) => MaybePromise<CreateResult | Draft>,
): MaybePromise<CreateResult> {
  let last: readonly Taken[] = []
  /** From the first draft on whose content is not there. */
  let intake: Intake | undefined

  function findTaken(draft: Draft): readonly Taken[] | undefined {
    const taken = (intake ?? intakes).held(contentsOf(draft))
    if (taken !== undefined) last = taken
    return taken
  }

  async function takeAndAttempt(draft: Draft): Promise<CreateResult> {
    let used: readonly Taken[] = []
    intake = intakes.createIntake()
    try {
      for (;;) {
        await intake.take(contentsOf(draft), call.signal)
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
