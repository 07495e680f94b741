/**
 * A stream from its first byte on, of which some has been read. Not a generator: one that has not begun would not close its
 * source.
 * @param head what has been read, in pieces
 * @param source the rest
 */
export function resumeStream(
  head: { shift(): Uint8Array | undefined },
  source: AsyncIterator<Uint8Array>,
): AsyncIterable<Uint8Array> {
  let isOver = false

  async function next(): Promise<IteratorResult<Uint8Array>> {
    if (isOver) return { done: true, value: undefined }
    const value = head.shift()
    if (value !== undefined) return { done: false, value }
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
    const wasOver = isOver
    isOver = true
    if (!wasOver) await source.return?.()
    return { done: true, value: undefined }
  }

  return { [Symbol.asyncIterator]: () => ({ next, return: close }) }
}
