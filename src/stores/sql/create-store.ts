import { createRecentCache } from '../../core/caches.ts'
import { andThen, type MaybePromise } from '../../core/maybe-promise.ts'
import { createIndexingError, createVersions, isStaged, sizeOf, throwIfAborted } from '../rules.ts'
import { toStream } from '../streams.ts'
import type { Abortable, Content, Page, StagedBody } from '../types.ts'
import { createIndexer, createSweeper, tryTo } from './background.ts'
import { abandonLater, createCollector, type IntakeSink, moveChunks } from './chunks.ts'
import type { ContentId, Creation, FindTaken, RemoveStep, SqlParts, SqlShared, Taken, WriteStep } from './dialect.ts'
import type { SqlSettings, SqlStore, SqlStoreOptions } from './options.ts'

const NOTHING: WriteStep['related'] = []
/** Postgres takes a number of 32 bits, of which the rows beyond the page are a few. No collection has as many members. */
const MOST_LISTED = 2 ** 31 - 10

/** Makes the store of a database. @param open makes the parts in which databases differ */
export function createSqlStore(
  owner: string,
  settings: SqlSettings<SqlStoreOptions>,
  open: (shared: SqlShared) => SqlParts,
): SqlStore {
  const nextVersion = createVersions()
  const sweeper = createSweeper(async () => {
    if ((await parts.sweep()) === 'part') return 'part'
    return beside?.sweep() ?? 'all'
  }, settings.sweepInterval)
  const parts = open({
    owner,
    settings,
    nextVersion,
    cache: createRecentCache(settings.cacheSize),
    startSweep: sweeper.start,
    sweepSoon: sweeper.hurry,
    indexMembers: (collection, index) => void indexer.run(collection, index),
  })
  const { changes } = parts
  const { beside, chunkSource } = parts.contents
  const indexer = createIndexer(parts.indexes)
  const intake = createIntake(parts.contents, settings.inlineLimit)

  return {
    supports: {
      relatedExpect: true,
      queries: true,
      parents: true,
      tagsAreVersions: true,
      ...(settings.contents?.locate !== undefined && { redirects: true }),
    },

    read: parts.read,

    write(path, content, options) {
      throwIfAborted(options)
      const { expect, related: given = NOTHING, relatedTo, requires } = options
      const version = nextVersion()
      const related = relatedTo === undefined ? given : relatedTo({ version })
      const step: WriteStep = { path, version, content, expect, related, requires }
      const contents = intake.contentsOf(content, related)
      const taken = intake.held(contents)
      if (taken !== undefined) return changes.write(step, taken, options)
      return intake.takeAndCommit(contents, options, (held) => changes.write(step, held(contents)!, options))
    },

    create(collection, content, options = {}) {
      throwIfAborted(options)
      const { related: relatedTo, requires } = options
      const creation: Creation = {
        collection,
        requires,
        draft(name) {
          const version = nextVersion()
          const own: Content = typeof content === 'function' ? content(name) : content
          const related = relatedTo?.(name, { version }) ?? NOTHING
          return { name, version, content: own, related, contents: intake.contentsOf(own, related) }
        },
      }
      // The name is assigned in the first attempt, which is the only one where all content is small.
      return andThen(changes.create(creation, undefined, intake.held, options), (first) => {
        if ('outcome' in first) return first
        let draft = first
        return intake.takeAndCommit(draft.contents, options, (held) =>
          andThen(changes.create(creation, draft, held, options), (result) => {
            if ('outcome' in result) return result
            // The name of the draft is not free any more.
            draft = result
            return draft.contents
          }),
        )
      })
    },

    remove(path, options) {
      throwIfAborted(options)
      const { expect, mode, related = [], relatedWrites = NOTHING, below = false } = options
      const { retention = settings.retention } = options
      const step: RemoveStep = { mode, expect, retention, related, relatedWrites, below }
      const contents = intake.contentsOf(undefined, relatedWrites)
      const taken = intake.held(contents)
      if (taken !== undefined) return changes.remove(path, step, taken, options)
      return intake.takeAndCommit(contents, options, (held) => changes.remove(path, step, held(contents)!, options))
    },

    list(collection, given) {
      const options = given.limit <= MOST_LISTED ? given : { ...given, limit: MOST_LISTED }
      const { query } = options
      if (query === undefined) return parts.list(collection, options)
      const list = () => parts.select(collection, options, query)
      // Once more after the indexer has had some time.
      const listAgain = async (): Promise<Page> => {
        await indexer.run(collection, query.index)
        const page = await list()
        if (page !== 'incomplete') return page
        throw createIndexingError()
      }
      return andThen(list(), (page) => (page === 'incomplete' ? listAgain() : page))
    },

    stage: (body, { signal } = {}) => intake.stage(body, signal),

    moveContents: (options) => moveChunks(owner, chunkSource, beside, options),

    close: () => andThen(sweeper.close(), () => andThen(indexer.close(), () => beside?.close())),
  }
}

/** Takes in the content of calls. */
interface Intake {
  /** The content of all resources of a write; its own comes first. Each that is taken in has a body of its own. */
  contentsOf(own: Content | undefined, related: WriteStep['related']): readonly Content[]
  /** Content that is there already; `undefined` when some of it has to be taken in first. */
  held: FindTaken
  stage(body: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): Promise<StagedBody>
  /**
   * Takes content in, each body once, and commits what is written with it. Content that the commit did not use, because it
   * failed or found a conflict, is given up.
   * @param commit returns its result; or further content that has to be taken in first, and is called again then
   */
  takeAndCommit<Result extends { readonly outcome: string }>(
    contents: readonly Content[],
    call: Abortable,
    commit: (held: FindTaken) => MaybePromise<Result | readonly Content[]>,
  ): Promise<Result>
}

export function createIntake(sink: IntakeSink, inlineLimit: number): Intake {
  const collect = createCollector(sink, inlineLimit)
  const stagedContent = new WeakMap<StagedBody, Taken>()
  /** What each request has staged, by its signal. */
  const earlier = new WeakMap<AbortSignal, ContentId[]>()

  function heldBody(body: Content['body']): Taken | undefined {
    if (typeof body === 'string' || body instanceof Uint8Array) {
      const size = sizeOf(body)
      return size > inlineLimit ? undefined : { size, body, id: undefined }
    }
    if (!isStaged(body)) return undefined
    const taken = stagedContent.get(body)
    if (taken === undefined) throw new TypeError('The staged content belongs to another store.')
    return taken
  }

  function held(contents: readonly Content[], taken?: ReadonlyMap<Content['body'], Taken>): Taken[] | undefined {
    const found: Taken[] = []
    for (const { body } of contents) {
      const one = taken?.get(body) ?? heldBody(body)
      if (one === undefined) return undefined
      found.push(one)
    }
    return found
  }

  /** Content is taken in by the identity of its body: of equal values, a later one becomes another. */
  function separate(content: Content, seen: Set<Content['body']>): Content {
    const { body } = content
    const isTakenIn = (typeof body === 'string' || body instanceof Uint8Array) && sizeOf(body) > inlineLimit
    if (!isTakenIn) return content
    if (seen.has(body)) return { ...content, body: Buffer.from(body) }
    seen.add(body)
    return content
  }

  return {
    held,

    contentsOf(own, related) {
      const first = own === undefined ? [] : [own]
      if (related.length === 0) return first
      const seen = new Set<Content['body']>()
      return [...first, ...related.map((write) => write.content)].map((content) => separate(content, seen))
    },

    async takeAndCommit(contents, { signal }, commit) {
      const taking = new Map<Content['body'], Promise<Taken>>()
      const taken = new Map<Content['body'], Taken>()
      let last: readonly Taken[] = []
      let used: readonly Taken[] = []

      function findTaken(contents: readonly Content[]): readonly Taken[] | undefined {
        const found = held(contents, taken)
        if (found !== undefined) last = found
        return found
      }

      try {
        for (;;) {
          // All are looked at before the first is read: a failure here must leave no stream under way.
          const missing = contents.filter(({ body }) => !taking.has(body) && heldBody(body) === undefined)
          for (const { body } of missing) {
            if (!taking.has(body)) taking.set(body, collect(toStream(body), signal))
          }
          await Promise.all([...taking].map(async ([body, one]) => taken.set(body, await one)))
          const result = await commit(findTaken)
          if ('outcome' in result) {
            if (result.outcome !== 'conflict') used = last
            return result
          }
          contents = result
        }
      } finally {
        // Also what comes in later than the failure of other content of the same call.
        for (const body of taking.values()) {
          void tryTo(async () => {
            const one = await body
            if (!used.includes(one)) await abandonLater(sink, one.id)
          })
        }
      }
    },

    async stage(stream, signal) {
      const ids = (signal && earlier.get(signal)) ?? []
      if (signal) earlier.set(signal, ids)
      // The parts of a form come one after the other, and all of them are written with the last.
      const timer = ids.length === 0 ? undefined : sink.keep(ids)
      const taken = await collect(stream, signal).finally(() => clearInterval(timer))
      if (taken.id !== undefined) ids.push(taken.id)
      const staged: StagedBody = { staged: true, size: taken.size, discard: () => abandonLater(sink, taken.id) }
      stagedContent.set(staged, taken)
      return staged
    },
  }
}
