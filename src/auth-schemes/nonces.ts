import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { createForwardClock } from '../core/forward-clock.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { RECORD, type ValueRule } from '../core/option-values.ts'

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

/** A key of the process is drawn at its first use: Workers may not draw random bytes while a module is loaded. */
export function createKeySource(shared: SharedNonces | undefined): () => Uint8Array {
  let key = shared === undefined ? undefined : Uint8Array.from(shared.key)
  return () => {
    key ??= randomBytes(MIN_KEY)
    return key
  }
}

/**
 * The clock that nonces are made and judged by. Counts are forgotten by it: a nonce must not become young once more when
 * the local clock is put back. Processes that share nonces have no other clock in common than the local one.
 */
export function createNonceClock(shared: SharedNonces | undefined): () => number {
  return shared === undefined ? createForwardClock(() => Date.now()).now : () => Date.now()
}

/** Milliseconds by which the clocks of processes that share nonces may differ. */
export const TOLERANCE = 5000

/**
 * Takes a count of a nonce, which is good for one request (RFC 7616 §5.5).
 * @param time when the nonce was made, in milliseconds since the epoch
 * @returns false when the count has been taken, or when that can no longer be known
 */
type Claim<Result> = (nonce: string, count: number, time: number) => Result

/** What takes the counts of nonces: of this process, or of all that share them. */
export function createClaim(
  shared: SharedNonces | undefined,
  lifetime: number,
  now: () => number = createNonceClock(shared),
): Claim<MaybePromise<boolean>> {
  if (shared !== undefined) return (nonce, count, time) => shared.claim(nonce, count, time + lifetime)
  return createNonceCounts(MAX_NONCES, lifetime, now).claim
}

/** Nonces of which nothing is kept: each carries the time at which it was made, and a proof that we made it. */
interface Nonces {
  create(): string
  /** When a nonce was made, in milliseconds since the epoch; `undefined` for one that this process did not make. */
  readTime(nonce: string): number | undefined
}

const TIME = 6
const RANDOM = 10
const PROOF = 16
const FORM = /^[\w-]{43}$/

/**
 * @param getKey the key, with which anybody can make nonces
 * @param now the clock, in milliseconds since the epoch
 */
export function createNonces(getKey: () => Uint8Array, realm: string, now: () => number = () => Date.now()): Nonces {
  const context = `http-resource-service digest nonce ${realm}`

  function prove(body: Buffer): Buffer {
    return createHmac('sha256', getKey()).update(context).update(body).digest().subarray(0, PROOF)
  }

  return {
    create() {
      const body = randomBytes(TIME + RANDOM)
      body.writeUIntBE(now(), 0, TIME)
      return Buffer.concat([body, prove(body)]).toString('base64url')
    },
    readTime(nonce) {
      if (!FORM.test(nonce)) return undefined
      const bytes = Buffer.from(nonce, 'base64url')
      // The last character has bits to spare: another spelling would be another nonce with counts of its own.
      if (bytes.toString('base64url') !== nonce) return undefined
      const body = bytes.subarray(0, TIME + RANDOM)
      return timingSafeEqual(prove(body), bytes.subarray(TIME + RANDOM)) ? body.readUIntBE(0, TIME) : undefined
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
 * Counts in memory, for at most `limit` nonces. When there are more, the first is forgotten, and with it every nonce that
 * is not younger: a count of it could otherwise be used again.
 * @param lifetime milliseconds after which a nonce is not claimed any more
 */
export function createNonceCounts(
  limit: number,
  lifetime: number,
  now: () => number = () => Date.now(),
): { readonly claim: Claim<boolean> } {
  const windows = new Map<string, Window>()
  let forgottenUntil = Number.NEGATIVE_INFINITY

  function forgetFirst(): void {
    const [nonce, { time }] = windows.entries().next().value as [string, Window]
    windows.delete(nonce)
    if (time > now() - lifetime) forgottenUntil = Math.max(forgottenUntil, time)
  }

  return {
    claim(nonce, count, time) {
      if (time <= forgottenUntil) return false
      const known = windows.get(nonce)
      if (known !== undefined) return claimCount(known, count)
      if (windows.size >= limit) forgetFirst()
      if (time <= forgottenUntil) return false
      const window = { time, highest: 0, used: 0n }
      windows.set(nonce, window)
      return claimCount(window, count)
    },
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
