import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { numberThat, type ValueRule, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { createUnavailableError } from '../core/unavailable.ts'
import { describeSecret, normalizeText } from './accounts.ts'

/** The lane of accounts that do not exist. */
const STRANGERS = 'strangers'
/** The lane of all that are compared, in the order in which they came. */
const ALL = 'all'
const KEY_LENGTH = 32
const SALT_LENGTH = 16

interface ScryptHash {
  readonly options: ScryptOptions
  readonly salt: Buffer
  readonly key: Buffer
}

/** How expensive a hash is to make, and so to guess. It may take 1 GiB of memory. */
export interface PasswordCost {
  /** The power of two of blocks in memory (scrypt's ln), 1 to 20. Default: 15. */
  readonly log2n?: number
  /** The size of a block (scrypt's r), 1 to 32. Default: 8. */
  readonly blockSize?: number
  /** How often it is done (scrypt's p), 1 to 16. Default: 3. */
  readonly parallelization?: number
}

const COST = {
  log2n: withDefault(upTo(20), 15),
  blockSize: withDefault(upTo(32), 8),
  parallelization: withDefault(upTo(16), 3),
} satisfies OptionTable<PasswordCost>

/** The most bytes of memory that a hash may take. */
const MOST_MEMORY = 2 ** 30

function upTo(most: number): ValueRule {
  return numberThat((value) => Number.isInteger(value) && value >= 1 && value <= most, `an integer from 1 to ${most}`)
}

/**
 * Hashes a password with scrypt (RFC 7914) for keeping: `$scrypt$ln=15,r=8,p=3$salt$hash`. The default takes 32 MiB
 * and some tenths of a second.
 * @param cost see {@link PasswordCost}
 * @throws HttpError 503 when too many hashes are waiting
 * @throws TypeError for a cost that is out of bounds: {@link verifyPassword} refuses such a hash as well
 * @example
 * const accounts = { ada: await hashPassword('correct horse') }
 */
export async function hashPassword(password: string, cost?: PasswordCost): Promise<string> {
  if (typeof password !== 'string') {
    throw new TypeError(`hashPassword takes a password as text, not ${describeSecret(password)}.`)
  }
  const { log2n, blockSize, parallelization } = resolveOptions('hashPassword', cost, COST)
  const options = toScryptOptions(log2n, blockSize, parallelization)
  if (options === undefined) {
    throw new TypeError(
      'hashPassword takes as log2n: less than 16 with a blockSize of 1, and with a larger one what takes 1 GiB at most.',
    )
  }
  const salt = randomBytes(SALT_LENGTH)
  const key = await hashInTurn('', () => deriveKey(password, { options, salt, key: Buffer.alloc(KEY_LENGTH) }))
  const parameters = `ln=${log2n},r=${blockSize},p=${parallelization}`
  // Base64 without padding, as in the PHC string format.
  const [saltText, keyText] = [salt, key].map((bytes) => bytes.toString('base64').replace(/=+$/, ''))
  return `$scrypt$${parameters}$${saltText}$${keyText}`
}

/**
 * Compares a password with a hash that {@link hashPassword} made.
 *
 * At most two hashes are made at a time. The others wait, those for each `hash` in a line of their own, and the lines take
 * turns: guesses at one account, or at one hash that stands in for all accounts that do not exist, do not keep other users
 * out.
 * @throws TypeError when `hash` is not such a hash
 * @throws HttpError 503 when too many hashes are waiting
 */
export function verifyPassword(password: string, hash: string): Promise<boolean> {
  return hashInTurn(hash, () => isPasswordOf(password, hash))
}

/**
 * Compares a password with the hash of an account; without one, does the same work with a decoy. A wrong password is
 * answered at its turn among all that are compared, and takes its time there, whether or not the account exists: neither
 * its own answer nor that of another tells. The lane of the account only makes the answer to a right one come sooner.
 */
export async function verifyLikeStranger(password: string, hash: string | undefined, decoy: string): Promise<boolean> {
  const lane = hash ?? STRANGERS
  let comparing: Promise<{ readonly isRight: boolean; readonly time: number }> | undefined
  const compare = async () => {
    const start = performance.now()
    const isEqual = await isPasswordOf(password, hash ?? decoy)
    return { isRight: isEqual && hash !== undefined, time: performance.now() - start }
  }
  const late = hashInTurn(ALL, async () => {
    const start = performance.now()
    const { isRight, time } = await (comparing ??= compare())
    if (!isRight) await sleep(Math.max(0, time - (performance.now() - start)))
    return isRight
  })
  if (comparing !== undefined) return late
  const early = hashInTurn(lane, async () => {
    if (comparing !== undefined) return false
    return (await (comparing = compare())).isRight
  }).catch(() => false)
  return Promise.race([early.then((isRight) => isRight || late), late])
}

async function isPasswordOf(password: string, hash: string): Promise<boolean> {
  const parsed = parsePasswordHash(hash)
  if (parsed === undefined) {
    throw new TypeError(`verifyPassword takes as hash: what hashPassword returned, not ${describeSecret(hash)}.`)
  }
  return timingSafeEqual(await deriveKey(password, parsed), parsed.key)
}

const HASH = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]{16,128})\$([A-Za-z0-9+/]{22,128})$/

/** Reads a hash; `undefined` for other text, and for costs that no request should be able to cause. */
export function parsePasswordHash(text: string): ScryptHash | undefined {
  const match = HASH.exec(text)
  if (match === null) return undefined
  const options = toScryptOptions(Number(match[1]), Number(match[2]), Number(match[3]))
  if (options === undefined) return undefined
  return { options, salt: Buffer.from(match[4]!, 'base64'), key: Buffer.from(match[5]!, 'base64') }
}

function toScryptOptions(log2n: number, blockSize: number, parallelization: number): ScryptOptions | undefined {
  const { log2n: ln, blockSize: r, parallelization: p } = COST
  const isBounded = ln.accepts(log2n) && r.accepts(blockSize) && p.accepts(parallelization)
  const cost = 2 ** log2n
  // RFC 7914 §2: N is less than 2 ^ (128 * r / 8).
  if (!isBounded || 128 * blockSize * cost > MOST_MEMORY || log2n >= 16 * blockSize) return undefined
  return { cost, blockSize, parallelization, maxmem: 128 * blockSize * (cost + parallelization) + 1024 * 1024 }
}

function deriveKey(password: string, { options, salt, key }: ScryptHash): Promise<Buffer> {
  const start = performance.now()
  return new Promise((resolve, reject) => {
    scrypt(normalizeText(password), salt, key.length, options, (error, derived) => {
      duration = performance.now() - start
      if (error === null) resolve(derived)
      else reject(error)
    })
  })
}

/** Hashes at a time: more would keep the thread pool, which all of the process shares, from files and names. */
const PARALLEL = 2
/** Hashes that may wait in the lane of an account. */
const MAX_IN_LANE = 64
/** Hashes that may wait in the lanes of accounts together, and in that of all, whatever waits in the others. */
const MAX_WAITING = 256

// One queue for the process, as there is one thread pool.
const lanes = new Map<string, (() => void)[]>()
let running = 0
let isAllRunning = false
/** Milliseconds that the last hash took. */
let duration = 100

/**
 * Makes a hash when its turn has come. The lanes take turns, so that many requests for one of them do not keep the others
 * waiting. That of all has one place of its own, whose pace does not depend on the others.
 * @throws HttpError 503 when too many hashes wait; not at once, which would tell a full lane from a wrong password
 */
export async function hashInTurn<Result>(lane: string, makeHash: () => Promise<Result>): Promise<Result> {
  if (mayBegin(lane)) begin(lane)
  else await takePlace(lane)
  try {
    return await makeHash()
  } finally {
    running--
    if (lane === ALL) isAllRunning = false
    passOn()
  }
}

function mayBegin(lane: string): boolean {
  return running < PARALLEL && !(lane === ALL && isAllRunning)
}

function begin(lane: string): void {
  running++
  if (lane === ALL) isAllRunning = true
}

async function takePlace(lane: string): Promise<void> {
  const places = lanes.get(lane) ?? []
  const isAll = lane === ALL
  if (isAll ? places.length >= MAX_WAITING : places.length >= MAX_IN_LANE || countWaiting() >= MAX_WAITING) {
    // In the lane of all as long as a right password may take in that of its account. A wrong one waits as long without one.
    await sleep(isAll ? 250 + 8 * duration : duration)
    throw createUnavailableError()
  }
  lanes.set(lane, places)
  await new Promise<void>((resolve) => places.push(resolve))
}

function countWaiting(): number {
  let count = 0
  for (const [lane, places] of lanes) if (lane !== ALL) count += places.length
  return count
}

/** Gives the place of a hash that is made to the first in the lane whose turn it is: that of all, or the next of the others. */
function passOn(): void {
  for (const lane of [ALL, ...lanes.keys()]) {
    const places = lanes.get(lane)
    if (places === undefined || !mayBegin(lane)) continue
    lanes.delete(lane)
    const next = places.shift()!
    if (places.length > 0) lanes.set(lane, places) // behind the other lanes
    begin(lane)
    next()
  }
}
