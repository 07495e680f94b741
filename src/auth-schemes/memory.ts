import { hash } from 'node:crypto'

/** What has been verified, by the exact credentials. Bounded; what has long not been asked for goes first. */
export interface Memory<Value> {
  /** The key of credentials: their SHA-256, so that nothing which could be replayed stays in memory. */
  keyOf(credentials: string): string
  get(key: string): Value | undefined
  set(key: string, value: Value): void
}

/**
 * Makes a memory for at least `limit / 2` and at most `limit` entries. Two generations: a hit costs one look-up, and
 * when the young one is full the old one goes at once.
 */
export function createMemory<Value>(limit: number): Memory<Value> {
  const half = Math.max(1, Math.floor(limit / 2))
  let young = new Map<string, Value>()
  let old = new Map<string, Value>()

  function set(key: string, value: Value): void {
    if (limit === 0) return
    if (young.size >= half && !young.has(key)) {
      old = young
      young = new Map()
    }
    young.set(key, value)
  }

  return {
    keyOf: (credentials) => hash('sha256', credentials, 'base64'),
    get(key) {
      const value = young.get(key)
      if (value !== undefined) return value
      const older = old.get(key)
      if (older !== undefined) set(key, older)
      return older
    },
    set,
  }
}
