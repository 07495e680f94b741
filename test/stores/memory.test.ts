import { describe, it } from 'vitest'
import { memoryStore } from '../../src/stores/memory.ts'
import { describeStore } from '../../src/testing.ts'

describeStore('memoryStore', () => memoryStore(), { describe, it, durable: false })
