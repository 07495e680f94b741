import { readProperty } from '../core/options.ts'
import { formatEntityTag, isEntityTag } from '../protocol/entity-tag.ts'
import type { StoredResource } from '../stores/types.ts'

/**
 * The entity tag that the service sends with a stored resource (RFC 9110 §8.8.3): for jobs and tests that read the store
 * themselves. Representations that a definition makes from the stored one have other tags.
 * @param resource what `read`, `write`, `create` or `list` of a store gave
 * @returns the tag with its quotes; `undefined` where the store says that there is none
 * @throws TypeError for a store that gives a tag which no condition could match
 * @example
 * const state = await store.read('/tasks/7')
 * await fetch(url, { method: 'PUT', headers: { 'If-Match': entityTagOf(state) }, body })
 */
export function entityTagOf(resource: Pick<StoredResource, 'version' | 'entityTag'>): string | undefined {
  const entityTag = readProperty(resource, 'entityTag')
  const tag = entityTag ?? formatEntityTag(resource.version)
  if (tag === '') return undefined
  if (tag !== entityTag || isEntityTag(tag)) return tag
  throw new TypeError(`An entity tag has double quotes around it; the store gave ${JSON.stringify(tag)}.`)
}
