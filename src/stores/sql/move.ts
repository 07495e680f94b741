import type { MaybePromise } from '../../core/maybe-promise.ts'
import type { LargeBody, ResourceStore } from '../types.ts'
import type { BesideContents } from './beside.ts'
import type { ContentId, Taken } from './intake.ts'

export interface MoveOptions {
  /** Ends the move with its reason. Content that has moved stays moved. */
  readonly signal?: AbortSignal
}

/** A store that can move large content from its tables to its content store. */
export interface MovableContents {
  /**
   * Moves content that lies in the tables to the content store, one after the other, while the store serves requests.
   * Versions and dates stay. It may be ended and begun again at any time, and is run by one process.
   * @returns the number of contents that have moved
   * @throws TypeError when the store has no option `contents`
   */
  moveContents(options?: MoveOptions): Promise<number>
}

/** What `sqliteStore` and `postgresStore` return. */
export interface SqlStore extends ResourceStore, MovableContents {
  /** Ends the sweep and the indexing, and closes the content store; never the handle or the pool that the program passed. */
  close(): MaybePromise<void>
}

/** Content in chunks that a state names. */
export interface ChunkedContent {
  /** The path as the database has it. */
  readonly path: string
  readonly id: ContentId
  readonly size: number
  readonly body: LargeBody
}

export interface ChunkSource {
  /** The first state behind a path whose content lies in chunks. */
  findNext(after: string): MaybePromise<ChunkedContent | undefined>
  /** Whether the state still names that content. */
  isCurrent(content: ChunkedContent): MaybePromise<boolean>
  /** Lets the state name the content that was put; `false` when it has changed meanwhile: the sweep takes what was put. */
  swap(content: ChunkedContent, taken: Taken): MaybePromise<boolean>
}

export async function moveChunks(
  owner: string,
  source: ChunkSource,
  beside: BesideContents | undefined,
  { signal }: MoveOptions = {},
): Promise<number> {
  if (beside === undefined) throw new TypeError(`${owner}: moveContents needs the option contents.`)
  let moved = 0
  for (let last = ''; ; ) {
    signal?.throwIfAborted()
    const next = await source.findNext(last)
    if (next === undefined) return moved
    last = next.path
    try {
      const taken = await beside.put(next.body.open(0, next.size - 1), signal)
      if (await source.swap(next, taken)) moved++
    } catch (error) {
      // Replaced and swept while it was read: there is nothing left to move.
      if (await source.isCurrent(next)) throw error
    }
  }
}
