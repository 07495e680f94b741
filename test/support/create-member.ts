import type { Content, CreateOptions, ResourceStore, StoredResource } from '../../src/stores/types.ts'

/** Creates a member that has nothing to conflict with. */
export async function createMember(
  store: ResourceStore,
  collection: string,
  content: Content | ((name: string) => Content),
  options?: CreateOptions,
): Promise<StoredResource> {
  const result = await store.create(collection, content, options)
  if (result.outcome !== 'created')
    throw new Error(`The creation was refused for ${result.related?.path ?? result.missing}.`)
  return result.resource
}
