import { existsSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

const MEMORY = '/dev/shm'
/** Suites that run at once take a few hundred megabytes. */
const ENOUGH = 2 * 2 ** 30

/**
 * Where databases of tests lie. Commits wait for the disk; a file system in memory spares the tests that wait, and a
 * kill harms neither.
 */
export const scratchFolder = hasRoom() ? MEMORY : tmpdir()

function hasRoom(): boolean {
  if (!existsSync(MEMORY)) return false
  const { bavail, bsize } = statfsSync(MEMORY)
  return bavail * bsize > ENOUGH
}
