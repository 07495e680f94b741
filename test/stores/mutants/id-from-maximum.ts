import { memberPath, splitPath } from '../../../src/stores/rules.ts'
import { mutate } from './mutate.ts'

/** Names a new member after the greatest that is there: the name of a removed one comes back. */
export const idFromMaximum = mutate((sound) => ({
  async create(collection, content, options = {}) {
    const { items } = await sound.list(collection, { limit: 1_000_000, hidden: true })
    const ids = items.map((item) => Number(splitPath(item.path).name)).filter(Number.isSafeInteger)
    const name = String(Math.max(0, ...ids) + 1)
    const related = options.related?.(name) ?? []
    const own = typeof content === 'function' ? content(name) : content
    const result = await sound.write(memberPath(collection, name), own, { ...options, expect: 'any', related })
    if (result.outcome === 'conflict') throw new Error('A write without a condition was refused.')
    return { outcome: 'created', resource: result.resource }
  },
}))
