import { SHORT } from './reply.ts'

/** Buffers that are kept: 2 MiB. */
const MOST = 32

const free: Uint8Array[] = []

/**
 * Memory that a short range is read into and sent from. Used again, because fresh memory costs more than the range: 64 KiB
 * of a file took 80 us with it, and takes 50.
 */
export function takeBuffer(): Uint8Array {
  return free.pop() ?? Buffer.allocUnsafeSlow(SHORT)
}

/** Only of a buffer that is neither sent from nor read into any more. */
export function giveBack(buffer: Uint8Array): void {
  if (free.length < MOST) free.push(buffer)
}
