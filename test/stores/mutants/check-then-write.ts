import { fits, mutate, pause } from './mutate.ts'

/** Compares first and swaps later: others come between. */
export const checkThenWrite = mutate((sound) => ({
  async write(path, content, { expect, ...rest }) {
    const current = await sound.read(path)
    await pause()
    if (!fits(current, expect)) return { outcome: 'conflict', current }
    return sound.write(path, content, { ...rest, expect: 'any' })
  },
}))
