import { readProperty } from '../core/options.ts'
import { formatEntityTag, isEntityTag } from '../protocol/preconditions.ts'
import { isResource, type StoredResource, type StoredState } from '../stores/types.ts'

/** The part of a state that its tag is made of. */
type TaggedState = Pick<StoredResource, 'version' | 'entityTag'>

/**
 * The entity tag that the service sends with a stored resource (RFC 9110 §8.8.3): for jobs and tests that read the store
 * themselves. Representations that a definition makes from the stored one have other tags.
 * @param state what `read` of a store gave, or a resource that `write`, `create` or `list` gave
 * @returns the tag with its quotes; `undefined` where there is no resource, or the store says that it has no tag
 * @throws TypeError for a store that gives a tag which no condition could match
 * @example
 * const tag = entityTagOf(await store.read('/tasks/7'))
 * await fetch(url, { method: 'PUT', headers: { 'If-Match': tag }, body })
 */
export function entityTagOf(state: StoredState | TaggedState): string | undefined {
  const resource = state as StoredState
  if (!isResource(resource)) return undefined
  const entityTag = readProperty(resource, 'entityTag')
  const tag = entityTag ?? formatEntityTag(resource.version)
  if (tag === '') return undefined
  if (tag !== entityTag || isEntityTag(tag)) return tag
  throw new TypeError(`An entity tag has double quotes around it; the store gave ${JSON.stringify(tag)}.`)
}
