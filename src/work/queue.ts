import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { NO_RELATED_WRITES } from '../actions/commit.ts'
import { ERASE } from '../actions/delete.ts'
import { fetchJson, parseStored } from '../actions/resource-view.ts'
import { isJsonObject } from '../core/json.ts'
import { isStoreFailure } from '../core/operator-log.ts'
import { isResource } from '../stores/rules.ts'
import type { RelatedWrite, ResourceStore, StoredResource } from '../stores/types.ts'
import { walkMembers } from './store-calls.ts'

/** One piece of accepted work, as it is recorded in the store until it is done. */
export interface WorkRecord {
  readonly kind: 'remove' | 'process'
  /** Pattern of the route that the work is about. */
  readonly pattern: string
  /** Path of the resource that the work is about. */
  readonly path: string
  /** The state that a removal was asked for; any state when it is left out. */
  readonly version?: string | undefined
  /** Path of the monitor that tells of the work. */
  readonly monitor?: string
  /** Who asked for it, for the hooks that see its changes. */
  readonly principal?: { readonly scheme: string; readonly id: string } | undefined
  /** How often it has been tried; without those attempts that the store has brought to nothing. */
  readonly attempts: number
  /** How many those are. */
  readonly spared?: number
  /** The name of the claim that a process has on it, or had when it ended. */
  readonly claim?: string | undefined
  /** Milliseconds since the epoch before which no process starts: the lease of the process that works on it, or a pause. */
  readonly notBefore: number
}

/** A record that this process claims; the version proves that no other process has since. */
export interface ClaimedWork {
  readonly id: string
  readonly record: WorkRecord
  version: string
}

/** Work that could be started. */
interface DueWork {
  readonly ids: readonly string[]
  /** Milliseconds until the next of the others is due, as far as they were looked at; `undefined` when there is none. */
  readonly wait: number | undefined
  /** Why records could not be read, one of them; the others are found all the same. */
  readonly unreadable?: unknown
}

const COLLECTION = 'work'
/** Milliseconds for which other processes leave claimed work alone; renewed while it lasts. After a crash it is resumed then. */
export const LEASE = 10_000

/**
 * Milliseconds that work waits at most. More comes from a clock that was put back; the clocks of machines that share a
 * store differ by less, and a pause is shorter.
 */
const LONGEST_WAIT = 600_000

/** Records in a row that the store does not give: after more it is away, and each of the others would be waited for as well. */
const MOST_LOST = 10

export type WorkQueue = ReturnType<typeof createWorkQueue>

/** Accepted work as records in the store; several processes share it by compare-and-swap. */
export function createWorkQueue(store: ResourceStore, now: () => number) {
  const pathOf = (id: string): string => `${COLLECTION}/${id}`
  const contentOf = (record: WorkRecord) => ({ contentType: 'application/json', body: JSON.stringify(record) })

  /** Milliseconds until work is due. */
  function waitOf({ notBefore }: WorkRecord): number {
    const wait = notBefore - now()
    return wait > LONGEST_WAIT ? 0 : Math.max(0, wait)
  }

  async function readDue(id: string): Promise<{ version: string; record: WorkRecord } | undefined> {
    const resource = await store.read(pathOf(id))
    if (!isResource(resource)) return undefined
    const record = await readRecord(resource)
    return waitOf(record) > 0 ? undefined : { version: resource.version, record }
  }

  async function replace(work: ClaimedWork, record: WorkRecord): Promise<boolean> {
    const options = { expect: { version: work.version }, related: NO_RELATED_WRITES }
    const result = await store.write(pathOf(work.id), contentOf(record), options)
    if (result.outcome === 'conflict') return false
    work.version = result.resource.version
    return true
  }

  /** Replaces a record that is still claimed, also after a change by this process whose answer came late or never. */
  async function replaceOwn(work: ClaimedWork, record: WorkRecord): Promise<boolean> {
    if (await replace(work, record)) return true
    const resource = await store.read(pathOf(work.id))
    if (!isResource(resource)) return false
    if ((await readRecord(resource)).claim !== work.record.claim) return false
    work.version = resource.version
    return replace(work, record)
  }

  const keep = (work: ClaimedWork): Promise<boolean> => replaceOwn(work, { ...work.record, notBefore: now() + LEASE })

  return {
    /** The write that records new work, to be made in the same atomic step as what it belongs to. */
    record(id: string, work: Omit<WorkRecord, 'attempts' | 'notBefore'>): RelatedWrite {
      return { path: pathOf(id), content: contentOf({ ...work, attempts: 0, notBefore: 0 }) }
    },

    /**
     * Finds work to be claimed; `undefined` when it is done, not due, or somebody else's, or the signal is aborted.
     * @param maxAttempts after so many attempts the claim ends the work: it waits, to be sure that no other process does it
     */
    async find(
      id: string,
      maxAttempts: number = Number.POSITIVE_INFINITY,
      signal?: AbortSignal,
    ): Promise<ClaimedWork | undefined> {
      const found = await readDue(id)
      if (found === undefined) return undefined
      // A process with another clock may be at work on it: then it renews its claim meanwhile.
      if (found.record.attempts >= maxAttempts)
        await sleep(LEASE / 2, undefined, { signal, ref: false }).catch(() => {})
      if (signal?.aborted) return undefined
      const record = { ...found.record, attempts: found.record.attempts + 1, claim: randomUUID() }
      return { id, record, version: found.version }
    },

    /** Claims what was found, also where it has done so and the answer has got lost. @returns whether this process has it */
    claim: (work: ClaimedWork): Promise<boolean> => keep(work),
    /** Keeps a claim alive. @returns whether this process still has it */
    renew: (work: ClaimedWork): Promise<boolean> => keep(work),

    /**
     * Puts work back, to be tried again after a pause in milliseconds.
     * @param counts how often it has been tried by now, where that is another number than when it was claimed
     */
    async postpone(
      work: ClaimedWork,
      pause: number,
      counts?: Partial<Pick<WorkRecord, 'attempts' | 'spared'>>,
    ): Promise<void> {
      // No claim: a renewal that is under way finds it lost.
      await replaceOwn(work, { ...work.record, ...counts, claim: undefined, notBefore: now() + pause })
    },

    /** Forgets work that is done. */
    async finish(id: string): Promise<void> {
      await store.remove(pathOf(id), { ...ERASE, expect: 'any' })
    },

    /**
     * Takes work back that has not been started.
     * @param monitor goes in the same atomic step
     * @returns whether that was so
     */
    async withdraw(id: string, monitor: string): Promise<boolean> {
      const found = await readDue(id)
      if (found === undefined) return false
      const { attempts, spared = 0 } = found.record
      // An attempt may have removed the resource before it failed or its process ended.
      if (attempts + spared > 0) return false
      const expect = { version: found.version }
      const result = await store.remove(pathOf(id), { ...ERASE, expect, related: [monitor] })
      return result.outcome === 'removed'
    },

    /** Looks for work that is due. Passes over records that cannot be read, unless that is so of each, or of many in a row. */
    async due(limit: number): Promise<DueWork> {
      const ids: string[] = []
      let wait: number | undefined
      let unreadable: unknown
      let lost = 0
      for await (const item of walkMembers(store, COLLECTION)) {
        let rest: number
        try {
          rest = waitOf(await readRecord(item))
          lost = 0
        } catch (error) {
          unreadable = error
          if (isStoreFailure(error) && ++lost > MOST_LOST) throw error
          continue
        }
        if (rest === 0) ids.push(item.path.slice(COLLECTION.length + 1))
        else wait = Math.min(wait ?? rest, rest)
        if (ids.length === limit) break
      }
      if (lost > 0 && ids.length === 0 && wait === undefined) throw unreadable
      return { ids, wait, unreadable }
    },
  }
}

/** @throws Error for a record that somebody else has written, or changed */
async function readRecord(resource: StoredResource): Promise<WorkRecord> {
  const record = parseStored(await fetchJson(resource, Number.POSITIVE_INFINITY, undefined))
  if (isJsonObject(record) && Number.isFinite(record.attempts) && Number.isFinite(record.notBefore)) {
    return record as unknown as WorkRecord
  }
  throw new Error(`The record ${resource.path} of accepted work is malformed.`)
}
