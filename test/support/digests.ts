import { createHash } from 'node:crypto'

/** A digest as a field has it (RFC 9530 §2). */
export function digestOf(content: string | Uint8Array, algorithm: 'sha-256' | 'sha-512' = 'sha-256'): string {
  return `${algorithm}=:${createHash(algorithm.replace('-', '')).update(content).digest('base64')}:`
}

/** The same bytes but for one bit. */
export function flipBit(bytes: Uint8Array, bit: number): Buffer {
  const flipped = Buffer.from(bytes)
  flipped[bit >> 3]! ^= 1 << (bit & 7)
  return flipped
}
