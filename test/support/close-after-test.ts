import { onTestFinished } from 'vitest'

/**
 * Ends what the test that runs has started: the last first, after the hooks of its file. A hook in a module that test files
 * share would be that of one file only, where they share a process.
 */
export function closeAfterTest(close: () => unknown): void {
  onTestFinished(async () => {
    await close()
  })
}
