import { randomBytes } from 'node:crypto'

/** Milliseconds of the last id, and how many ids were made in them. */
let last = 0
let count = 0
/** 12 bits. */
const MOST = 0x1000

/**
 * A UUID of version 7 (RFC 9562 §5.7): unique, and greater than every one that this process has made before, also when the
 * clock goes back. Module state, because ids ascend across all services of a process.
 */
export function createEventId(now: number = Date.now()): string {
  if (now > last) {
    last = now
    count = 0
  } else if (++count === MOST) {
    last++
    count = 0
  }
  const time = last.toString(16).padStart(12, '0')
  const bytes = randomBytes(8)
  bytes[0] = (bytes[0]! & 0x3f) | 0x80
  const random = bytes.toString('hex')
  const order = (0x7000 | count).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-${order}-${random.slice(0, 4)}-${random.slice(4)}`
}
