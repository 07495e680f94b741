import type { ResourceStore } from '../../src/stores/types.ts'
import { contentOf, indexByStatus, queryByStatus } from './statuses.ts'

const STATUSES = ['open', 'done', 'late']

/**
 * Changes items until the process is killed: with values, without, by hiding, by removal; names of its own and names that
 * other processes change as well. Lists now and then, which begins the indexing of what is there.
 */
export async function changeIndexed(
  store: ResourceStore,
  writer: number,
  version: string,
  tell: (line: string) => void,
): Promise<void> {
  const index = indexByStatus(version)
  for (let step = 0; ; step++) {
    const name = step % 3 === 0 ? `shared-${step % 40}` : String(writer * 10_000 + (step % 200))
    const path = `/tasks/${name}`
    const values = { status: STATUSES[(step + writer) % 3]!, n: step }
    const kind = step % 7
    if (kind === 5) await store.remove(path, { expect: 'any', mode: step % 2 === 0 ? 'hide' : 'tombstone' })
    else await store.write(path, contentOf(values, kind === 3 ? undefined : index), { expect: 'any' })
    tell(path)
    if (step % 5 === 0) await list(store, version)
  }
}

async function list(store: ResourceStore, version: string): Promise<void> {
  try {
    await store.list('/tasks', { query: queryByStatus('open', indexByStatus(version)), limit: 10 })
  } catch (error) {
    if ((error as { status?: number }).status !== 503) throw error
  }
}
