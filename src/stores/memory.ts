import { randomBytes } from 'node:crypto'
import { HttpError } from '../core/errors.ts'
import { isPromise, type MaybePromise, andThen } from '../core/handler.ts'
import { readOptions } from '../core/options.ts'
import { createBlockCollector } from './block-collector.ts'
import { createSortedMembers, type SortedMembers } from './sorted-members.ts'
import {
  type Content,
  type ContentFields,
  type CreateOptions,
  type Expectation,
  isResource,
  isStaged,
  type LargeBody,
  memberPath,
  parseIntegerName,
  type RelatedWrite,
  type RemoveOptions,
  type ResourceStore,
  type SmallBody,
  type StagedBody,
  type StoredResource,
  type StoredState,
  sizeOf,
  splitPath,
  type Tombstone,
  type WriteOptions,
  type WriteResult,
} from './types.ts'

export interface MemoryStoreOptions {
  /** The most tombstones kept; the oldest go first, and their paths answer 404 again. Default 10 000. */
  readonly maxTombstones?: number
  /** Milliseconds after which a tombstone is forgotten. Default 30 days. */
  readonly retention?: number
  /** The clock, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

const DAY = 24 * 60 * 60 * 1000
const MAX_IDLE_COUNTERS = 10_000

interface Collection {
  readonly members: SortedMembers<StoredResource>
  next: number
}

/** Content as it is kept: never a stream. */
interface HeldContent extends ContentFields {
  readonly body: SmallBody | LargeBody
  readonly size: number
}

interface HeldBody extends StagedBody {
  readonly held: { readonly body: SmallBody | LargeBody; readonly size: number }
}

interface Grave {
  readonly tombstone: Tombstone
  readonly expires: number
}

/**
 * Keeps resources in the memory of this process: the default store, for tests, caches and demos.
 * Reads and writes of small content are synchronous. A restart forgets everything, versions included: none is used again.
 * @throws TypeError for an unknown option
 */
export function memoryStore(options?: MemoryStoreOptions): ResourceStore {
  const {
    maxTombstones = 10_000,
    retention = 30 * DAY,
    now = Date.now,
  } = readOptions('memoryStore', options, ['maxTombstones', 'retention', 'now'])

  const resources = new Map<string, StoredResource>()
  const graves = new Map<string, Grave>()
  const collections = new Map<string, Collection>()
  const idleCounters = new Map<string, number>()
  // Random per process and counted within it: no version of an earlier process can come back.
  const incarnation = randomBytes(6).toString('base64url')
  let writes = 0
  /** Paths that were erased without a trace in the current second: their dates name more than one state. */
  const erased = { second: 0, paths: new Set<string>() }
  let firstId = 1

  function stateOf(path: string, hidden: boolean): StoredState {
    const resource = resources.get(path)
    if (resource !== undefined && (hidden || resource.hidden !== true)) return resource
    if (resource !== undefined) return { removed: true, path, removedAt: resource.lastModified! }
    const grave = graves.get(path)
    if (grave === undefined) return undefined
    if (grave.expires > now()) return grave.tombstone
    graves.delete(path)
    return undefined
  }

  function collectionOf(path: string): Collection {
    let collection = collections.get(path)
    if (collection === undefined) {
      collection = { members: createSortedMembers(path + '/'), next: idleCounters.get(path) ?? firstId }
      idleCounters.delete(path)
      collections.set(path, collection)
    }
    return collection
  }

  /** An empty collection is reduced to its counter; of too many counters the oldest go, and new ones start above them. */
  function releaseCollection(path: string, collection: Collection): void {
    collections.delete(path)
    if (collection.next <= firstId) return
    idleCounters.set(path, collection.next)
    if (idleCounters.size <= MAX_IDLE_COUNTERS) return
    const [oldest, next] = idleCounters.entries().next().value!
    idleCounters.delete(oldest)
    firstId = Math.max(firstId, next)
  }

  function put(path: string, content: HeldContent): StoredResource {
    const time = now()
    const second = Math.floor(time / 1000)
    const previous = resources.get(path)
    const changed = previous?.lastModified ?? graves.get(path)?.tombstone.removedAt
    const isFirst = changed === undefined ? !wasErasedIn(second, path) : Math.floor(changed / 1000) !== second
    const resource: StoredResource = {
      path,
      version: `${incarnation}${(++writes).toString(36)}`,
      contentType: content.contentType,
      size: content.size,
      body: content.body,
      lastModified: time,
      dateIsStrong: isFirst,
    }
    for (const name of ['contentEncoding', 'contentLanguage', 'filename'] as const) {
      if (content[name] !== undefined) Object.assign(resource, { [name]: content[name] })
    }
    resources.set(path, resource)
    graves.delete(path)
    enlist(resource)
    return resource
  }

  function enlist(resource: StoredResource): void {
    const { collection, name } = splitPath(resource.path)
    if (name === '') return
    const known = collectionOf(collection)
    known.members.set(resource)
    const id = parseIntegerName(name)
    if (id !== undefined && id >= known.next) known.next = id + 1
  }

  function drop(path: string, mode: RemoveOptions['mode'], keep: number): void {
    const resource = resources.get(path)
    const time = now()
    if (resource === undefined) return
    if (mode === 'hide') {
      const hidden = {
        ...resource,
        hidden: true,
        version: `${incarnation}${(++writes).toString(36)}`,
        lastModified: time,
      }
      resources.set(path, hidden)
      enlist(hidden)
      return
    }
    resources.delete(path)
    const { collection } = splitPath(path)
    const known = collections.get(collection)
    known?.members.delete(path)
    if (known?.members.size === 0) releaseCollection(collection, known)
    if (mode === 'erase') rememberErased(path, time)
    else bury({ removed: true, path, removedAt: time }, time + keep)
  }

  function bury(tombstone: Tombstone, expires: number): void {
    graves.set(tombstone.path, { tombstone, expires })
    if (graves.size <= maxTombstones) return
    const oldest = graves.keys().next().value!
    rememberErased(oldest, graves.get(oldest)!.tombstone.removedAt)
    graves.delete(oldest)
  }

  function wasErasedIn(second: number, path: string): boolean {
    return erased.second === second && erased.paths.has(path)
  }

  function rememberErased(path: string, time: number): void {
    const second = Math.floor(time / 1000)
    if (second > erased.second) {
      erased.second = second
      erased.paths.clear()
    }
    if (second === erased.second) erased.paths.add(path)
  }

  /** Runs the commit once all content is held: at once when none of it is a stream. */
  function hold<Result>(
    contents: readonly Content[],
    signal: AbortSignal | undefined,
    commit: (held: readonly HeldContent[]) => Result,
  ): MaybePromise<Result> {
    signal?.throwIfAborted()
    const held = contents.map((content) => holdContent(content, signal))
    if (held.some(isPromise)) return Promise.all(held).then(commit)
    return commit(held as HeldContent[])
  }

  return {
    read(path, { hidden = false } = {}) {
      return stateOf(path, hidden)
    },

    write(path, content, { expect, related = [], signal }: WriteOptions): MaybePromise<WriteResult> {
      const all = related.length === 0 ? [content] : [content, ...related.map((write) => write.content)]
      return hold(all, signal, ([own, ...others]): WriteResult => {
        const current = stateOf(path, false)
        if (!isExpected(current, expect)) return { outcome: 'conflict', current }
        const outcome = isResource(current) ? 'replaced' : 'created'
        const resource = put(path, own!)
        for (const [index, held] of others.entries()) put(related[index]!.path, held)
        return { outcome, resource }
      })
    },

    create(collection, content, { related, signal }: CreateOptions = {}) {
      // The name is taken first: it stays unused when the content fails, which is better than two that share it.
      const known = collectionOf(collection)
      const id = known.next
      if (!Number.isSafeInteger(id)) {
        throw new HttpError(507, 'ERR_OUT_OF_SPACE', { detail: 'The collection has no names left.' })
      }
      known.next = id + 1
      const name = String(id)
      const others: readonly RelatedWrite[] = related?.(name) ?? []
      const own = typeof content === 'function' ? content(name) : content
      return hold([own, ...others.map((write) => write.content)], signal, ([held, ...rest]) => {
        const resource = put(memberPath(collection, name), held!)
        for (const [index, other] of rest.entries()) put(others[index]!.path, other)
        return { outcome: 'created' as const, resource }
      })
    },

    remove(path, { expect, mode, retention: keep = retention, related = [], signal }) {
      signal?.throwIfAborted()
      const current = stateOf(path, false)
      if (!isResource(current)) {
        if (expect === 'any') return { outcome: 'absent', current }
        return { outcome: 'conflict', current }
      }
      if (!isExpected(current, expect)) return { outcome: 'conflict', current }
      drop(path, mode, keep)
      for (const other of related) drop(other, mode, keep)
      return { outcome: 'removed', resource: current }
    },

    list(collection, { after, limit, hidden = false }) {
      const items: StoredResource[] = []
      const known = collections.get(collection)
      if (known === undefined) return { items }
      for (const member of known.members.after(after)) {
        if (member.hidden === true && !hidden) continue
        if (items.length === limit) {
          return { items, next: splitPath(items[limit - 1]!.path).name }
        }
        items.push(member)
      }
      return { items }
    },

    stage(body, stageOptions) {
      return collect(body, stageOptions?.signal).then(
        (held): HeldBody => ({
          staged: true,
          size: held.size,
          held,
          discard() {},
        }),
      )
    },
  }
}

function isExpected(current: StoredState, expect: Expectation): boolean {
  if (expect === 'any') return true
  if (expect === 'absent') return !isResource(current)
  if (expect === 'present') return isResource(current)
  return isResource(current) && current.version === expect.version
}

function holdContent(content: Content, signal: AbortSignal | undefined): MaybePromise<HeldContent> {
  const { body } = content
  if (typeof body === 'string') return { ...content, body, size: sizeOf(body) }
  if (body instanceof Uint8Array) return { ...content, body: detach(body), size: body.length }
  if (isStaged(body)) return { ...content, ...(body as HeldBody).held }
  return andThen(collect(body, signal), (held) => ({ ...content, ...held }))
}

/** A small part of a large buffer would keep all of it in memory. */
function detach(bytes: Uint8Array): Uint8Array {
  return bytes.buffer.byteLength > 2 * bytes.length + 1024 ? bytes.slice() : bytes
}

async function collect(body: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined) {
  const collector = createBlockCollector()
  for await (const chunk of body) {
    signal?.throwIfAborted()
    collector.push(chunk)
  }
  return collector.finish()
}
