import { NO_RELATED_WRITES } from '../actions/commit.ts'
import { fetchJson, parseStored } from '../actions/resource-view.ts'
import { isJsonObject, readMember } from '../core/json.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { shareCall } from '../core/time.ts'
import { createUnavailableError } from '../core/unavailable.ts'
import { isResource } from '../stores/rules.ts'
import type { ResourceStore, StoredState } from '../stores/types.ts'

/** Milliseconds after which the names are read again: another process may have learned one. */
const LIFETIME = 5000
const MAX_ATTEMPTS = 5
const MOST_BYTES = 64 * 1024

/**
 * The names of the properties that the scope of a definition gives. They are known once it has been asked, and kept in
 * the store: all processes have to index the same properties.
 */
interface ScopeNames {
  /** In ascending order; another array when a name is learned. */
  readonly names: readonly string[]
  load(): MaybePromise<void>
  learn(names: readonly string[]): Promise<void>
}

/** @param declared the names, where the definition says them; nothing is learned then */
export function createScopeNames(
  store: ResourceStore,
  pattern: string,
  declared: readonly string[] | undefined,
): ScopeNames {
  // Without a slash in front, so that no pattern of a definition leads to it.
  const path = `scopes/${encodeURIComponent(pattern)}`
  let names: readonly string[] = [...(declared ?? [])].sort()
  let loadedAt = Number.NEGATIVE_INFINITY

  function add(more: readonly string[]): void {
    const all = new Set([...names, ...more])
    if (all.size > names.length) names = [...all].sort()
  }

  async function read(): Promise<StoredState> {
    const state = await store.read(path)
    if (!isResource(state)) return state
    const value = parseStored(await fetchJson(state, MOST_BYTES, undefined))
    const kept = isJsonObject(value) ? readMember(value, 'properties') : undefined
    if (Array.isArray(kept)) add(kept.filter((name) => typeof name === 'string'))
    return state
  }

  const refresh = shareCall(async () => {
    await read()
    loadedAt = performance.now()
  })

  return {
    get names() {
      return names
    },

    load() {
      if (declared !== undefined || performance.now() - loadedAt < LIFETIME) return undefined
      return refresh()
    },

    async learn(more) {
      if (declared !== undefined) {
        throw new TypeError(`scope of ${pattern} gives ${more.join(', ')}, which its properties do not name.`)
      }
      for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
        const state = await read()
        if (more.every((name) => names.includes(name))) return
        const body = JSON.stringify({ properties: [...new Set([...names, ...more])].sort() })
        const expect = isResource(state) ? { version: state.version } : 'absent'
        const result = await store.write(
          path,
          { contentType: 'application/json', body },
          { expect, related: NO_RELATED_WRITES },
        )
        if (result.outcome !== 'conflict') return add(more)
      }
      throw createUnavailableError()
    },
  }
}
