import type { RelatedWrite, ResourceStore } from '../../src/stores/types.ts'

/** A store that ignores the retention of related writes, so that it lists the records of first responses. */
export function listRecords(store: ResourceStore): ResourceStore {
  const strip = (writes: readonly RelatedWrite[]): readonly RelatedWrite[] =>
    writes.map(({ retention: _, ...write }) => write)
  return {
    ...store,
    write: (path, content, { related, relatedTo, ...options }) =>
      store.write(path, content, {
        ...options,
        ...(related && { related: strip(related) }),
        ...(relatedTo && { relatedTo: (state) => strip(relatedTo(state)) }),
      }),
    create: (collection, content, { related, ...options } = {}) =>
      store.create(collection, content, {
        ...options,
        ...(related && { related: (name, state) => strip(related(name, state)) }),
      }),
  }
}
