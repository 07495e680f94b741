import { afterEach, describe, expect, it, vi } from 'vitest'
import { writeToConsole } from '../../src/core/diagnostics.ts'

const count = (): number => process.stderr.listenerCount('error')

describe('a burst of lines on the console', () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  it.each([
    ['is written', () => {}],
    [
      'fails',
      () => {
        throw new Error('EPIPE')
      },
    ],
  ])('shares one listener of the stream, which goes with the last line: it %s', async (_how, write) => {
    const log = vi.spyOn(console, 'error').mockImplementation(write)
    const before = count()
    for (let i = 0; i < 30; i++) writeToConsole('error', `line ${i}`)
    expect(log).toHaveBeenCalledTimes(30)
    expect(count()).toBe(before + 1)
    await expect.poll(count).toBe(before)
  })

  it('keeps that listener until the last of them is written', async () => {
    const written: (() => void)[] = []
    vi.spyOn(console, 'error').mockImplementation(() => {})
    vi.spyOn(process.stderr, 'write').mockImplementation(((_text: string, end: () => void) => {
      written.push(end)
      return true
    }) as typeof process.stderr.write)
    const before = count()
    for (const line of ['first', 'last']) writeToConsole('error', line)
    for (const left of [1, 0]) {
      written.shift()!()
      await new Promise(setImmediate)
      expect(count()).toBe(before + left)
    }
  })
})
