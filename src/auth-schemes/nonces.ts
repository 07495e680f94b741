import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { RECORD, type ValueRule } from '../core/option-values.ts'
import { createForwardClock, isWithin, localTime } from '../core/time.ts'

/** Nonces that several processes take from each other. */
export interface SharedNonces {
  /** 32 bytes at least, secret, the same in every process. */
  readonly key: Uint8Array
  /**
   * Takes a count of a nonce, atomically for all processes: a request that was sent to one could be sent again to another.
   * @param expires milliseconds since the epoch; nothing need be kept longer
   * @returns whether the count was still free
   */
  readonly claim: (nonce: string, count: number, expires: number) => MaybePromise<boolean>
}

const MIN_KEY = 32
/** Nonces whose counts are kept; only those that a right password was used with take a place. */
const MAX_NONCES = 10_000

export const SHARED_NONCES: ValueRule = {
  accepts(value) {
    if (!RECORD.accepts(value)) return false
    const { key, claim } = value as Partial<SharedNonces>
    return key instanceof Uint8Array && key.length >= MIN_KEY && typeof claim === 'function'
  },
  text: `{ key, claim }, a secret of at least ${MIN_KEY} bytes and a function`,
}

/** Milliseconds by which the clocks of processes that share nonces may differ. */
const TOLERANCE = 5000
const TIME = 6
const RANDOM = 10
const PROOF = 16
const FORM = /^[\w-]{43}$/

/**
 * Nonces of which nothing is kept: each carries the time at which it was made, and a proof that we made it.
 * @param lifetime milliseconds for which a nonce is good
 */
export function createNonces(realm: string, lifetime: number, shared?: SharedNonces) {
  const context = `http-resource-service digest nonce ${realm}`
  let key = shared && Uint8Array.from(shared.key)
  // A nonce must not become young once more when the local clock is put back: its counts may be forgotten. Processes that
  // share nonces have no other clock in common.
  const now = shared === undefined ? createForwardClock(localTime).now : localTime
  const counts = createNonceCounts(MAX_NONCES, lifetime, now)

  function prove(body: Buffer): Buffer {
    // Drawn at its first use: Workers may not draw random bytes while a module is loaded.
    key ??= randomBytes(MIN_KEY)
    return createHmac('sha256', key).update(context).update(body).digest().subarray(0, PROOF)
  }

  /**
   * A nonce, and when it was made, in milliseconds since the epoch; `undefined` for one that was not made with the key.
   * @returns the nonce as a text of its own: one that is cut out of a field keeps all of the field in memory
   */
  function readNonce(text: string): { nonce: string; time: number } | undefined {
    if (!FORM.test(text)) return undefined
    const bytes = Buffer.from(text, 'base64url')
    const nonce = bytes.toString('base64url')
    // The last character has bits to spare: another spelling would be another nonce with counts of its own.
    if (nonce !== text) return undefined
    const body = bytes.subarray(0, TIME + RANDOM)
    return timingSafeEqual(prove(body), bytes.subarray(TIME + RANDOM))
      ? { nonce, time: body.readUIntBE(0, TIME) }
      : undefined
  }

  return {
    create(): string {
      const body = randomBytes(TIME + RANDOM)
      body.writeUIntBE(now(), 0, TIME)
      return Buffer.concat([body, prove(body)]).toString('base64url')
    },
    /**
     * Takes a count of a nonce, which is good for one request (RFC 7616 §5.5).
     * @returns false for a nonce that is too old or was not made with the key, and for a count that has been taken, or may have been
     */
    claim(text: string, count: number): MaybePromise<boolean> {
      const read = readNonce(text)
      if (read === undefined || !isWithin(read.time - TOLERANCE, lifetime + TOLERANCE, now())) return false
      const { nonce, time } = read
      return shared === undefined ? counts(nonce, count, time) : shared.claim(nonce, count, time + lifetime + TOLERANCE)
    },
  }
}

/** Requests overtake each other on several connections: this far back counts may come late. */
const WINDOW = 128

interface Window {
  readonly time: number
  highest: number
  /** One bit a count: the first for the highest, the next for the one before it. */
  used: bigint
}

/**
 * Makes what takes counts in memory, for at most `limit` nonces. When there are more, the first is forgotten, and with it
 * every nonce that is not younger: a count of it could otherwise be used again.
 * @param lifetime milliseconds after which a nonce is not claimed any more
 */
export function createNonceCounts(
  limit: number,
  lifetime: number,
  now: () => number,
): (nonce: string, count: number, time: number) => boolean {
  const windows = new Map<string, Window>()
  let forgottenUntil = Number.NEGATIVE_INFINITY

  function forgetFirst(): void {
    const [nonce, { time }] = windows.entries().next().value as [string, Window]
    windows.delete(nonce)
    if (time > now() - lifetime) forgottenUntil = Math.max(forgottenUntil, time)
  }

  return (nonce, count, time) => {
    if (time <= forgottenUntil) return false
    const known = windows.get(nonce)
    if (known !== undefined) return claimCount(known, count)
    if (windows.size >= limit) forgetFirst()
    if (time <= forgottenUntil) return false
    const window = { time, highest: 0, used: 0n }
    windows.set(nonce, window)
    return claimCount(window, count)
  }
}

function claimCount(window: Window, count: number): boolean {
  const ahead = count - window.highest
  if (count < 1 || ahead <= -WINDOW) return false
  if (ahead > 0) {
    window.used = ahead < WINDOW ? BigInt.asUintN(WINDOW, window.used << BigInt(ahead)) | 1n : 1n
    window.highest = count
    return true
  }
  const bit = 1n << BigInt(-ahead)
  if ((window.used & bit) !== 0n) return false
  window.used |= bit
  return true
}
