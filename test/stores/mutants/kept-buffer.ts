import { isStaged } from '../../../src/stores/rules.ts'
import { mutate } from './mutate.ts'

/** Keeps the chunks of a stream without copying them. */
export const keptBuffer = mutate((sound) => ({
  async write(path, content, options) {
    const { body } = content
    if (typeof body === 'string' || body instanceof Uint8Array || isStaged(body))
      return sound.write(path, content, options)
    const chunks: Uint8Array[] = []
    for await (const chunk of body) chunks.push(chunk)
    return sound.write(path, { ...content, body: Buffer.concat(chunks) }, options)
  },
}))
