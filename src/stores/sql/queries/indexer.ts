import { publishFailure } from '../../../core/diagnostics.ts'
import type { MaybePromise } from '../../../core/maybe-promise.ts'
import type { CollectionIndex } from '../../lists.ts'
import type { StoredResource } from '../../types.ts'
import { type EntryKeys, encodeEntry } from './entry.ts'

/** Members that have no entry yet, a few of them. */
export interface Batch<Position> {
  readonly items: readonly StoredResource[]
  /** Where the batch stands; nothing is committed when another process has gone on from there meanwhile. */
  readonly position: Position
}

/** The steps of one database. */
export interface IndexSteps<Position> {
  /** The next members to be indexed, none when that was not known yet; `undefined` when all of them are. */
  read(collection: string, index: CollectionIndex): MaybePromise<Batch<Position> | undefined>
  /**
   * Makes the entries of those members that are unchanged since they were read, and keeps how far the work has come.
   * @returns how many members have been indexed so far; `undefined` when another process has done it meanwhile
   */
  commit(
    position: Position,
    items: readonly { readonly item: StoredResource; readonly keys: EntryKeys }[],
  ): MaybePromise<number | undefined>
}

/** Makes the entries of members that were written before their collection had its index, or by other rules. */
export interface Indexer {
  /** Begins, unless it has begun; fulfilled once all members are indexed, or after a failure, or when time is over. */
  run(collection: string, index: CollectionIndex): Promise<void>
  /** Ends the work; fulfilled once the step that is running is done. */
  close(): MaybePromise<void>
}

/** How long a list waits for the work: most collections are indexed by then. */
const PATIENCE = 250
/** Between two steps: requests come first. */
const PAUSE = 2
/** After another process has done a step: it works, and the same work twice gains nothing. */
const PAUSE_FOR_OTHERS = 100
/** After a failure a list begins the work anew, but not at once. */
const REST = 1000

export function createIndexer<Position>(steps: IndexSteps<Position>): Indexer {
  const running = new Map<string, Promise<void>>()
  const failed = new Map<string, number>()
  let isClosed = false

  async function work(collection: string, index: CollectionIndex): Promise<void> {
    let indexed = 0
    for (;;) {
      const batch = await steps.read(collection, index)
      if (isClosed) return
      if (batch === undefined) break
      const entries: { item: StoredResource; keys: EntryKeys }[] = []
      for (const item of batch.items) {
        const isWritten = item.indexed?.index.version === index.version
        const values = isWritten ? item.indexed!.values : await index.valuesOf(item)
        entries.push({ item, keys: encodeEntry(index, values) })
      }
      if (isClosed) return
      const count = await steps.commit(batch.position, entries)
      if (count !== undefined) index.report?.({ indexed: (indexed = count), isDone: false })
      await pause(count === undefined ? PAUSE_FOR_OTHERS * (0.5 + Math.random()) : PAUSE)
      if (isClosed) return
    }
    index.report?.({ indexed, isDone: true })
  }

  async function workAndReport(key: string, collection: string, index: CollectionIndex): Promise<void> {
    try {
      await work(collection, index)
      failed.delete(key)
    } catch (error) {
      failed.set(key, performance.now())
      if (failed.size > 1000) failed.delete(failed.keys().next().value!)
      publishFailure({ error, stage: 'background' })
    } finally {
      running.delete(key)
    }
  }

  return {
    async run(collection, index) {
      const key = `${index.version} ${collection}`
      if (isClosed || performance.now() < (failed.get(key) ?? Number.NEGATIVE_INFINITY) + REST) return
      let current = running.get(key)
      if (current === undefined) {
        current = workAndReport(key, collection, index)
        running.set(key, current)
      }
      await waitFor(current)
    },

    close() {
      isClosed = true
      if (running.size === 0) return
      return Promise.all(running.values()).then(() => {})
    },
  }
}

function waitFor(work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, PATIENCE)
    void work.finally(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** Does not keep the process alive: the work goes on when it is needed. */
function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds).unref())
}
