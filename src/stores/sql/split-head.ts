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
  return { head: new Uint8Array(0), size, rest: join(head, source) }
}

/** Not a generator: one that has not begun would not close its source. */
function join(head: Uint8Array[], source: AsyncIterator<Uint8Array>): AsyncIterable<Uint8Array> {
  let isOver = false

  async function next(): Promise<IteratorResult<Uint8Array>> {
    const value = head.shift()
    if (value !== undefined) return { done: false, value }
    if (isOver) return { done: true, value: undefined }
    try {
      const next = await source.next()
      isOver = next.done === true
      return next
    } catch (error) {
      isOver = true
      throw error
    }
  }

  async function close(): Promise<IteratorResult<Uint8Array>> {
    head.length = 0
    const wasOver = isOver
    isOver = true
    if (!wasOver) await source.return?.()
    return { done: true, value: undefined }
  }

  return { [Symbol.asyncIterator]: () => ({ next, return: close }) }
}
