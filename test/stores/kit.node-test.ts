import { memoryStore } from '../../src/stores/memory.ts'
import { testStore } from '../../src/testing.ts'

// Run by kit.test.ts in a process of its own, where node:test is the only runner.
testStore('memoryStore', () => memoryStore())
