import { isLargeBody, isResource } from '../../../src/stores/rules.ts'
import { mutate } from './mutate.ts'

/** Takes the last byte of a range for the one after it. */
export const exclusiveRange = mutate((sound) => ({
  async read(path, options) {
    const state = await sound.read(path, options)
    if (!isResource(state) || !isLargeBody(state.body)) return state
    const { body, size } = state
    return { ...state, body: { open: (first, last) => body.open(first, last === size - 1 ? last : last - 1) } }
  },
}))
