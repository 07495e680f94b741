import { randomBytes } from 'node:crypto'

/**
 * Makes versions. Random per process and counted within it: none comes back, not after a restart either, nor when a
 * backup of the database is restored.
 */
export function createVersions(): () => string {
  const incarnation = randomBytes(12).toString('base64url')
  let count = 0
  return () => incarnation + (++count).toString(36)
}
