import type { CollectionIndex, ListQuery } from '../../src/stores/lists.ts'
import type { Content, Page, ResourceStore, StoredResource } from '../../src/stores/types.ts'

/** The JSON of an item. */
export function readItem({ body }: StoredResource): { status?: string; n?: number } {
  return JSON.parse(typeof body === 'string' ? body : Buffer.from(body as Uint8Array).toString())
}

/** An item, with its values where an index is given. */
export function contentOf(values: { status: string; n: number }, index?: CollectionIndex): Content {
  const content = { contentType: 'application/json', body: JSON.stringify(values) }
  return index === undefined ? content : { ...content, indexed: { index, values } }
}

/** An index of items by their status and their number. */
export function indexByStatus(version = 'status-1'): CollectionIndex {
  return {
    version,
    properties: ['n', 'status'],
    scope: [],
    valuesOf: (item) => {
      const { status = null, n = null } = readItem(item)
      return { status, n }
    },
  }
}

/** Lists items of one status, the largest number first. */
export function queryByStatus(status: string, index: CollectionIndex = indexByStatus()): ListQuery {
  return {
    index,
    where: [{ property: 'status', operator: 'in', values: [status] }],
    orderBy: [{ property: 'n', direction: 'descending' }],
    count: true,
  }
}

/** Reads a page, and waits while items are being indexed. */
export async function listWhenIndexed(
  store: ResourceStore,
  collection: string,
  query: ListQuery,
  limit = 1000,
): Promise<Page> {
  for (const end = Date.now() + 30_000; ; await new Promise((resolve) => setTimeout(resolve, 5))) {
    try {
      return await store.list(collection, { query, limit })
    } catch (error) {
      if ((error as { status?: number }).status !== 503 || Date.now() > end) throw error
    }
  }
}

export function namesOf({ items }: Page): string[] {
  return items.map(({ path }) => path.slice(path.lastIndexOf('/') + 1))
}
