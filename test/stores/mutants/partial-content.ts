import { isStaged } from '../../../src/stores/rules.ts'
import { mutate } from './mutate.ts'

async function* whatComes(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* stream
  } catch {
    // The mistake: what came so far is taken for the whole.
  }
}

/** Takes a stream that breaks off for one that has ended. */
export const partialContent = mutate((sound) => ({
  write(path, content, options) {
    const { body } = content
    if (typeof body === 'string' || body instanceof Uint8Array || isStaged(body))
      return sound.write(path, content, options)
    return sound.write(path, { ...content, body: whatComes(body) }, options)
  },
}))
