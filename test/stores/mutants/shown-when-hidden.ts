import { mutate } from './mutate.ts'

/** Lists hidden resources to everybody. */
export const shownWhenHidden = mutate((sound) => ({
  list: (collection, options) => sound.list(collection, { ...options, hidden: true }),
}))
