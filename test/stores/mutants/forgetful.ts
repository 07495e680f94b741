import { memoryStore } from '../../../src/stores/memory.ts'
import type { StoreFixture } from '../../../src/testing.ts'

/** Says that it is durable, and begins with nothing every time. */
export function forgetful(): StoreFixture {
  return { store: memoryStore(), reopen: () => memoryStore() }
}
