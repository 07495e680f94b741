import type { ContentStore } from '../../contents/types.ts'
import type { BesideContents } from './beside.ts'
import type { ChunkSink } from './intake.ts'
import type { ChunkCache } from './large-body.ts'
import type { ChunkSource } from './move.ts'

/** Large content that never changes: in chunks, or in a content store. */
export interface SqlContents extends ChunkSink {
  /** Content in the content store; `undefined` without one. */
  readonly beside: BesideContents | undefined
  /** Chunks to move to the content store. */
  readonly chunkSource: ChunkSource
}

export interface SqlContentsOptions {
  /** Milliseconds for which content that no path shows is kept: for readers that are still on it, and for slow uploads. */
  readonly grace: number
  readonly chunks: ChunkCache
  /** Where content lies that has a key. */
  readonly contentStore: ContentStore | undefined
  /** Called when content was given up. */
  readonly onRelease: () => void
}
