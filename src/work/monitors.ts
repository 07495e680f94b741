import { ERASE } from '../actions/delete.ts'
import type { Authorize } from '../actions/hook-types.ts'
import { fetchJson, parseStored } from '../actions/resource-view.ts'
import { isJsonObject, type JsonObject, type JsonValue, readMember } from '../core/json.ts'
import { andThen, type MaybePromise, orElse } from '../core/maybe-promise.ts'
import { reportFailure } from '../core/operator-log.ts'
import { type Principal, type RequestView, withoutClaims } from '../core/request-view.ts'
import { memberPath, nameOf } from '../stores/rules.ts'
import type { RelatedWrite, ResourceStore, StoredResource } from '../stores/types.ts'
import type { OperationsSettings } from './operations.ts'
import { walkMembers } from './store-calls.ts'

/** Without a slash in front, so that no pattern of a definition lists them. */
const COLLECTION = 'monitors'
/** Bytes up to which content may be a monitor. */
const LARGEST = 64 * 1024

interface MonitorOptions extends Pick<OperationsSettings, 'path' | 'retention'> {
  readonly store: ResourceStore
  readonly now: () => number
  readonly isAdmin: OperationsSettings['isAdmin'] | undefined
}

/** Monitors of accepted work: who may see them, and for how long they are kept. */
export interface Monitors {
  /** The monitor of a removal. @param target the path of the resource, as clients know it */
  create(id: string, target: string, principal: Principal | undefined): Pick<RelatedWrite, 'path' | 'content'>
  /** Lets the principal who caused the work see its monitor, and admins; it does not exist for others. */
  readonly authorize: Authorize
  /** The store as the route of the monitors sees it: by the path that clients know. */
  readonly store: ResourceStore
  /** Removes the monitors whose work ended long ago. */
  sweep(): Promise<undefined>
}

export function createMonitors({ store, now, path: base, retention, isAdmin }: MonitorOptions): Monitors {
  function mayUse(monitor: JsonObject, principal: Principal | undefined, request: RequestView): MaybePromise<boolean> {
    const owner = readMember(monitor, 'principal')
    // Caused without credentials: the id is a secret between the server and its client.
    if (!isJsonObject(owner)) return true
    if (principal === undefined) return false
    if (owner['scheme'] === principal.scheme && owner['id'] === principal.id) return true
    return isAdmin === undefined ? false : isAdmin(principal, request)
  }

  async function sweepBelow(collection: string, before: number): Promise<void> {
    for await (const item of walkMembers(store, collection)) {
      if (!((await readEnd(item)) <= before)) continue
      await store.remove(item.path, { ...ERASE, expect: { version: item.version } })
    }
  }

  return {
    create(id, target, principal) {
      const facts = { id, kind: 'removal', target, state: 'pending', accepted: new Date(now()) }
      const body = JSON.stringify({ ...facts, principal: withoutClaims(principal) })
      const content = { contentType: 'application/json', body }
      return { path: memberPath(COLLECTION, id), content }
    },

    authorize(principal, request, current) {
      const monitor = current === undefined ? undefined : readMonitor(current.value, nameOf(current.path))
      if (monitor === undefined) return 'not-found'
      return andThen(mayUse(monitor, principal, request), (isAllowed) => isAllowed === true || 'not-found')
    },

    store: {
      ...store,
      // Release 0.1.0 kept them under the path that clients know.
      read: (path, options) =>
        andThen(
          store.read(memberPath(COLLECTION, nameOf(path)), options),
          (state) => state ?? store.read(path, options),
        ),
    },

    async sweep() {
      const before = now() - retention
      await sweepBelow(COLLECTION, before)
      await sweepBelow(base, before)
    },
  }
}

/** A monitor under a name; `undefined` for other content that stands there. */
function readMonitor(value: JsonValue | undefined, name: string): JsonObject | undefined {
  if (!isJsonObject(value)) return undefined
  return readMember(value, 'id') === name && readMember(value, 'kind') === 'removal' ? value : undefined
}

/** When the work of a monitor ended, in milliseconds since the epoch; `Infinity` while it has not, or its content is lost. */
async function readEnd(item: StoredResource): Promise<number> {
  const content = await orElse<StoredResource | void>(() => fetchJson(item, LARGEST, undefined), reportFailure)
  const monitor = content && readMonitor(parseStored(content), nameOf(item.path))
  const state = monitor?.['state']
  if (state !== 'done' && state !== 'failed') return Number.POSITIVE_INFINITY
  const ended = monitor?.['ended']
  return typeof ended === 'string' ? Date.parse(ended) : (item.lastModified ?? Number.POSITIVE_INFINITY)
}
