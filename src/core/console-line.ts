const STREAMS = { error: 'stderr', log: 'stdout' } as const

function ignore(): void {}

/**
 * Writes to the console. It never throws, and a console that has been closed (EPIPE) does not end the process: Node emits that
 * as an `error` event of the stream, for a write after the first one without a listener of its own.
 */
export function writeToConsole(method: keyof typeof STREAMS, text: string): void {
  try {
    const stream = process[STREAMS[method]]
    stream.on('error', ignore)
    console[method](text)
    // The event comes after the callback.
    stream.write('', () => setImmediate(() => stream.off('error', ignore)))
  } catch {
    // A console that the program has replaced.
  }
}
