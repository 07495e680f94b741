import { randomBytes } from 'node:crypto'

/**
 * Makes versions. Random per process and counted within it: none comes back, not after a restart either, nor when a
 * backup of the database is restored. 48 random bits: for a version to come back, two processes would have to draw the
 * same ones and write one path at the same count. Short, because every answer carries it, and every state keeps it.
 */
export function createVersions(): () => string {
  // Drawn at the first use: Workers may not draw random bytes while a module is loaded.
  let incarnation: string | undefined
  let count = 0
  return () => {
    incarnation ??= randomBytes(6).toString('base64url')
    return incarnation + (++count).toString(36)
  }
}
