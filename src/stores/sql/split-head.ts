import { resumeStream } from '../../core/resume-stream.ts'

/** The beginning of a stream, and the stream itself unless that was all of it. */
export interface SplitHead {
  readonly head: Uint8Array
  /** Length of the head in bytes. */
  readonly size: number
  /** The whole stream from its first byte on; `undefined` when it has ended within the limit. Read or close it. */
  readonly rest: AsyncIterable<Uint8Array> | undefined
}

/** Reads a stream until it ends or is longer than a limit. */
export async function splitHead(stream: AsyncIterable<Uint8Array>, limit: number): Promise<SplitHead> {
  const source = stream[Symbol.asyncIterator]()
  const head: Uint8Array[] = []
  let size = 0
  while (size <= limit) {
    const next = await source.next()
    if (next.done === true) return { head: Buffer.concat(head, size), size, rest: undefined }
    size += next.value.length
    // Its buffer may change when the next chunk is asked for; the chunk beyond the limit has been passed on by then.
    head.push(size > limit ? next.value : Buffer.from(next.value))
  }
  return { head: new Uint8Array(0), size, rest: resumeStream(head, source) }
}
