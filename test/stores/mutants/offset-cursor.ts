import { mutate } from './mutate.ts'

/** Counts members instead of naming the last one: a walk misses and repeats members when others come or go. */
export const offsetCursor = mutate((sound) => ({
  async list(collection, { after, limit, ...rest }) {
    const from = Number(after ?? 0) || 0
    const { items } = await sound.list(collection, { ...rest, limit: 1_000_000 })
    const page = items.slice(from, from + limit)
    return from + limit < items.length ? { items: page, next: String(from + limit) } : { items: page }
  },
}))
