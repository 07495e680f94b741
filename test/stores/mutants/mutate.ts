import { memoryStore } from '../../../src/stores/memory.ts'
import { isResource } from '../../../src/stores/rules.ts'
import type { Expectation, ResourceStore, StoredState } from '../../../src/stores/types.ts'

/** A store that is right but for some of its methods. */
export function mutate(change: (sound: ResourceStore) => Partial<ResourceStore>): () => ResourceStore {
  return () => {
    const sound = memoryStore()
    return { ...sound, ...change(sound) }
  }
}

export const pause = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export function fits(state: StoredState, expect: Expectation): boolean {
  if (expect === 'any') return true
  if (expect === 'absent') return !isResource(state)
  return isResource(state) && (expect === 'present' || state.version === expect.version)
}
