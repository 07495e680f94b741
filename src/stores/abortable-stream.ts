/**
 * The chunks of a stream until a signal aborts.
 * A check at every chunk would not do: a source that has fallen silent would hold the call for ever.
 * @throws the reason of the signal
 */
export function untilAborted(
  stream: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncIterable<Uint8Array> {
  return signal === undefined ? stream : readUntilAborted(stream, signal)
}

async function* readUntilAborted(
  stream: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  signal.throwIfAborted()
  const iterator = stream[Symbol.asyncIterator]()
  let abort: (reason: unknown) => void = () => {}
  // One listener and one promise a chunk: racing every chunk against one lasting promise would keep them all.
  const onAbort = (): void => abort(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  let isOver = false
  try {
    for (;;) {
      const next = await new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
        abort = reject
        iterator.next().then(resolve, reject)
      })
      signal.throwIfAborted()
      if (next.done === true) {
        isOver = true
        return
      }
      yield next.value
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    // Not awaited: a source that is silent does not close before it speaks again.
    if (!isOver) void closeIterator(iterator)
  }
}

async function closeIterator(iterator: AsyncIterator<Uint8Array>): Promise<void> {
  try {
    await iterator.return?.()
  } catch {
    // The call has failed already, and with the error that matters.
  }
}
