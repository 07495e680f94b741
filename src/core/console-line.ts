const STREAMS = { error: 'stderr', log: 'stdout' } as const
/** Lines that have not been written yet. They share one listener: Node warns of more than ten. */
const unwritten = { error: 0, log: 0 }

function ignore(): void {}

/**
 * Writes to the console. It never throws, and a console that has been closed (EPIPE) does not end the process: Node emits that
 * as an `error` event of the stream, for a write after the first one without a listener of its own.
 */
export function writeToConsole(method: keyof typeof STREAMS, text: string): void {
  try {
    const stream = process[STREAMS[method]]
    const end = (): void => {
      if (--unwritten[method] === 0) stream.off('error', ignore)
    }
    if (++unwritten[method] === 1) stream.on('error', ignore)
    try {
      console[method](text)
    } finally {
      // The event comes after the callback.
      stream.write('', () => setImmediate(end))
    }
  } catch {
    // A console that the program has replaced.
  }
}

/**
 * Controls (C0, DEL, C1), format characters such as those that change the direction of text, line and paragraph separators,
 * and lone surrogates: a client's text must neither forge a line of a log nor command the terminal that shows it.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** Text for one line of a log, with everything that is not plainly visible written as `\u{9b}`. */
export function formatLogText(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)
}
