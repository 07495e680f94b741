import { isResource } from '../../../src/stores/rules.ts'
import { mutate } from './mutate.ts'

/** Gives entity tags without the quotes that belong to them. */
export const bareTag = mutate((sound) => ({
  async read(path, options) {
    const state = await sound.read(path, options)
    return isResource(state) ? { ...state, entityTag: state.version } : state
  },
}))
