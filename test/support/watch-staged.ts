import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore, StagedBody } from '../../src/stores/types.ts'

/** A store in memory, and the content that it has staged and that was not given up. */
export function watchStaged(): { readonly store: ResourceStore; readonly open: ReadonlySet<StagedBody> } {
  const sound = memoryStore()
  const open = new Set<StagedBody>()
  const stage: NonNullable<ResourceStore['stage']> = async (body, options) => {
    const staged = await sound.stage!(body, options)
    open.add(staged)
    const { discard } = staged
    return Object.assign(staged, {
      discard() {
        open.delete(staged)
        return discard.call(staged)
      },
    })
  }
  return { store: { ...sound, stage }, open }
}
