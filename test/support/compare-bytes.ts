import { expect } from 'vitest'

/** vitest compares bytes one property at a time: seconds for the content of some tests. This takes microseconds. */
expect.addEqualityTesters([
  (left: unknown, right: unknown): boolean | undefined =>
    left instanceof Uint8Array && right instanceof Uint8Array && left.constructor === right.constructor
      ? Buffer.compare(left, right) === 0
      : undefined,
])
