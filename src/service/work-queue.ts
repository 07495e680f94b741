import { textOf } from '../actions/hooks.ts'
import type { JsonValue } from '../core/json.ts'
import { isResource, type RelatedWrite, type ResourceStore, type StoredResource } from '../stores/types.ts'

/** One piece of accepted work, as it is recorded in the store until it is done. */
export interface WorkRecord {
  readonly kind: 'remove' | 'process'
  /** Pattern of the route that the work is about. */
  readonly pattern: string
  /** Path of the resource that the work is about. */
  readonly path: string
  /** The state that a removal was asked for. */
  readonly version?: string
  /** Path of the monitor that tells of the work. */
  readonly monitor?: string
  /** How often it has been tried. */
  readonly attempts: number
  /** Milliseconds since the epoch before which nobody starts: the lease of whoever works on it, or a pause. */
  readonly notBefore: number
}

/** A record that this process has claimed; the version proves that nobody else has since. */
export interface ClaimedWork {
  readonly id: string
  readonly record: WorkRecord
  version: string
}

const COLLECTION = 'work'
/** Milliseconds for which claimed work is nobody else's; renewed while it lasts. */
export const LEASE = 30_000

/** Accepted work as records in the store; several processes share it by compare-and-swap. */
export interface WorkQueue {
  /** The write that records new work, to be made in the same atomic step as what it belongs to. */
  record(id: string, work: Omit<WorkRecord, 'attempts' | 'notBefore'>): RelatedWrite
  /** Claims work; `undefined` when it is done, not due, or somebody else's. */
  claim(id: string): Promise<ClaimedWork | undefined>
  /** Keeps a claim alive. @returns whether it still is ours */
  renew(work: ClaimedWork): Promise<boolean>
  /** Puts work back, to be tried again after a pause in milliseconds. */
  postpone(work: ClaimedWork, pause: number): Promise<void>
  /** Forgets work that is done. */
  finish(id: string): Promise<void>
  /** Takes work back that nobody has started. @returns whether that was so */
  withdraw(id: string): Promise<boolean>
  /** Ids of work that is due. */
  due(limit: number): Promise<readonly string[]>
}

export function createWorkQueue(store: ResourceStore, now: () => number): WorkQueue {
  const pathOf = (id: string): string => `${COLLECTION}/${id}`
  const contentOf = (record: WorkRecord) => ({ contentType: 'application/json', body: JSON.stringify(record) })

  async function read(id: string): Promise<{ resource: StoredResource; record: WorkRecord } | undefined> {
    const resource = await store.read(pathOf(id))
    return isResource(resource) ? { resource, record: parseRecord(resource) } : undefined
  }

  async function replace(work: ClaimedWork, record: WorkRecord): Promise<boolean> {
    const result = await store.write(pathOf(work.id), contentOf(record), { expect: { version: work.version } })
    if (result.outcome === 'conflict') return false
    work.version = result.resource.version
    return true
  }

  return {
    record(id, work) {
      return { path: pathOf(id), content: contentOf({ ...work, attempts: 0, notBefore: 0 }) }
    },

    async claim(id) {
      const found = await read(id)
      if (found === undefined || found.record.notBefore > now()) return undefined
      const { resource } = found
      const record = { ...found.record, attempts: found.record.attempts + 1, notBefore: now() + LEASE }
      const work: ClaimedWork = { id, record, version: resource.version }
      return (await replace(work, record)) ? work : undefined
    },

    renew(work) {
      return replace(work, { ...work.record, notBefore: now() + LEASE })
    },

    async postpone(work, pause) {
      await replace(work, { ...work.record, notBefore: now() + pause })
    },

    async finish(id) {
      await store.remove(pathOf(id), { expect: 'any', mode: 'erase' })
    },

    async withdraw(id) {
      const found = await read(id)
      if (found === undefined || found.record.notBefore > now()) return false
      const { version } = found.resource
      const result = await store.remove(pathOf(id), { expect: { version }, mode: 'erase' })
      return result.outcome === 'removed'
    },

    async due(limit) {
      const ids: string[] = []
      let after: string | undefined
      do {
        const page = await store.list(COLLECTION, { limit: 100, after })
        for (const item of page.items) {
          if (parseRecord(item).notBefore <= now()) ids.push(item.path.slice(COLLECTION.length + 1))
        }
        after = page.next
      } while (after !== undefined && ids.length < limit)
      return ids.slice(0, limit)
    },
  }
}

function parseRecord(resource: StoredResource): WorkRecord {
  return JSON.parse(textOf(resource)!) as JsonValue as unknown as WorkRecord
}
