import type { ResourceStore, StoreSupport } from '../stores/types.ts'
import { QUERY_OPTIONS, type QueryOptions } from './query-options.ts'
import type { ResourceDefinition } from './resource-definitions.ts'

/** What a store that lacks a part cannot do, for the message. */
const PARTS: Readonly<Record<Exclude<keyof StoreSupport, 'redirects' | 'tagsAreVersions'>, string>> = {
  relatedExpect: 'related writes that expect a path to be absent',
  queries: 'lists that select and order by indexed values',
  parents: 'writes that require another path',
}

/** @throws TypeError that names the definition, the store and the part that the store lacks */
export function requireSupport(store: ResourceStore, definitions: ReadonlyMap<string, ResourceDefinition>): void {
  for (const [pattern, { kind, options }] of definitions) {
    const wanted =
      kind === 'collection'
        ? (Object.keys(QUERY_OPTIONS) as (keyof QueryOptions)[]).find(
            (name) => options[name] !== undefined && options[name] !== false,
          )
        : undefined
    if (wanted !== undefined) requirePart(store, 'queries', `${pattern} has ${wanted}`)
    const { idempotency, outbox } = options
    if (idempotency !== undefined) requirePart(store, 'relatedExpect', `${pattern} has idempotency: '${idempotency}'`)
    const hasParent = 'parent' in options && options.parent === true
    if (hasParent) requirePart(store, 'parents', `${pattern} has parent: true`)
    if (outbox !== undefined) requirePart(store, 'relatedExpect', `${pattern} has an outbox`)
  }
}

function requirePart(store: ResourceStore, part: keyof typeof PARTS, user: string): void {
  if (store.supports?.[part] === true) return
  throw new TypeError(
    `${user}, which needs a store that supports ${part} (${PARTS[part]}); ${nameStore(store)} does not.`,
  )
}

function nameStore(store: ResourceStore): string {
  const name = store.constructor?.name ?? 'Object'
  return name === 'Object' ? 'the store of this service' : name
}
