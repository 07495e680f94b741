/** Which counts of a nonce have been used: each is good for one request (RFC 7616 §5.5). */
export interface NonceCounts {
  /**
   * Takes a count.
   * @param time when the nonce was made, in milliseconds since the epoch
   * @returns false when the count has been taken, or when that can no longer be known
   */
  claim(nonce: string, count: number, time: number): boolean
}

/** Requests overtake each other on several connections: this far back counts may come late. */
const WINDOW = 128
const WORD = 32

interface Window {
  readonly time: number
  highest: number
  /** One bit a count, at the count modulo the window. */
  readonly used: Uint32Array
}

/**
 * Counts in memory, for at most `limit` nonces. When there are more, the first is forgotten, and with it every nonce that
 * is not younger: a count of it could otherwise be used again.
 * @param lifetime milliseconds after which a nonce is not claimed any more
 */
export function createNonceCounts(limit: number, lifetime: number): NonceCounts {
  const windows = new Map<string, Window>()
  let forgottenUntil = Number.NEGATIVE_INFINITY

  function forgetFirst(): void {
    const [nonce, { time }] = windows.entries().next().value as [string, Window]
    windows.delete(nonce)
    if (time > Date.now() - lifetime) forgottenUntil = Math.max(forgottenUntil, time)
  }

  return {
    claim(nonce, count, time) {
      if (time <= forgottenUntil) return false
      const known = windows.get(nonce)
      if (known !== undefined) return claimCount(known, count)
      if (windows.size >= limit) forgetFirst()
      if (time <= forgottenUntil) return false
      const window = { time, highest: 0, used: new Uint32Array(WINDOW / WORD) }
      windows.set(nonce, window)
      return claimCount(window, count)
    },
  }
}

function claimCount(window: Window, count: number): boolean {
  const { highest, used } = window
  if (count < 1 || count <= highest - WINDOW) return false
  if (count > highest) {
    // What the window moves over was not used yet.
    for (let next = Math.max(highest + 1, count - WINDOW + 1); next <= count; next++) setBit(used, next, false)
    window.highest = count
  } else if (hasBit(used, count)) return false
  setBit(used, count, true)
  return true
}

function hasBit(bits: Uint32Array, count: number): boolean {
  const at = count % WINDOW
  return (bits[Math.floor(at / WORD)]! & (1 << (at % WORD))) !== 0
}

function setBit(bits: Uint32Array, count: number, value: boolean): void {
  const at = count % WINDOW
  const word = Math.floor(at / WORD)
  const mask = 1 << (at % WORD)
  bits[word] = value ? bits[word]! | mask : bits[word]! & ~mask
}
