import type { FileHandle } from 'node:fs/promises'

/** Closes files whose reader or source was given up without a word. Node 26 ends the process when an open file is collected. */
const abandoned = new FinalizationRegistry((file: FileHandle) => void file.close().catch(() => {}))

/** @returns what closes the file. It is closed as well once nothing refers to that any more. */
export function hold(file: FileHandle): () => Promise<void> {
  const close = (): Promise<void> => {
    abandoned.unregister(close)
    return file.close()
  }
  abandoned.register(close, file, close)
  return close
}
