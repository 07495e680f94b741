import { setTimeout as sleep } from 'node:timers/promises'
import { HttpError } from '../core/errors.ts'

/** Hashes at a time: more would keep the thread pool, which all of the process shares, from files and names. */
const PARALLEL = 2
/** Hashes that may wait in one lane, and in all lanes together. */
const MAX_IN_LANE = 64
const MAX_WAITING = 256

// One queue for the process, as there is one thread pool.
const lanes = new Map<string, (() => void)[]>()
let running = 0
let waiting = 0
/** Milliseconds that the last hash took. */
let duration = 100

/**
 * Makes a hash when its turn has come. The lanes take turns, so that many requests for one of them do not keep the others
 * waiting.
 * @throws HttpError 503 when too many hashes wait; not at once, which would tell a full lane from a wrong password
 */
export async function hashInTurn<Result>(lane: string, makeHash: () => Promise<Result>): Promise<Result> {
  if (running < PARALLEL) running++
  else await takePlace(lane)
  const start = performance.now()
  try {
    return await makeHash()
  } finally {
    duration = performance.now() - start
    passOn()
  }
}

/** Whether a hash would have to wait behind others of its lane. */
export function isLaneBusy(lane: string): boolean {
  return lanes.has(lane)
}

async function takePlace(lane: string): Promise<void> {
  const places = lanes.get(lane) ?? []
  if (places.length >= MAX_IN_LANE || waiting >= MAX_WAITING) {
    await sleep(duration)
    throw new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '1' } })
  }
  lanes.set(lane, places)
  waiting++
  await new Promise<void>((resolve) => places.push(resolve))
}

/** Gives the place of a hash that is made to the first in the lane whose turn it is. */
function passOn(): void {
  const [turn] = lanes
  if (turn === undefined) {
    running--
    return
  }
  const [lane, places] = turn
  lanes.delete(lane)
  const next = places.shift()
  if (places.length > 0) lanes.set(lane, places) // behind the other lanes
  waiting--
  next?.()
}
