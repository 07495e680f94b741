import { createHash } from 'node:crypto'
import { isResource } from '../../../src/stores/rules.ts'
import type { StoredState } from '../../../src/stores/types.ts'
import { mutate } from './mutate.ts'

function nameByContent<State extends StoredState>(state: State): State {
  if (!isResource(state)) return state
  const body = typeof state.body === 'string' || state.body instanceof Uint8Array ? state.body : String(state.size)
  return { ...state, version: createHash('sha256').update(body).digest('hex') }
}

/** Names states after their content: a change back, or removal and re-creation, goes unnoticed. */
export const versionFromContent = mutate((sound) => ({
  async read(path, options) {
    return nameByContent(await sound.read(path, options))
  },
  async write(path, content, options) {
    const current = await sound.read(path)
    const { expect } = options
    const isSame =
      typeof expect === 'object' && isResource(current) && nameByContent(current).version === expect.version
    const result = await sound.write(
      path,
      content,
      isSame ? { ...options, expect: { version: current.version } } : options,
    )
    if (result.outcome === 'conflict') return { ...result, current: nameByContent(result.current) }
    return { ...result, resource: nameByContent(result.resource) }
  },
  async remove(path, options) {
    const current = await sound.read(path)
    const { expect } = options
    const isSame =
      typeof expect === 'object' && isResource(current) && nameByContent(current).version === expect.version
    return sound.remove(path, isSame ? { ...options, expect: { version: current.version } } : options)
  },
}))
