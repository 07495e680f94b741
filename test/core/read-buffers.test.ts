import { describe, expect, it } from 'vitest'
import { giveBack, takeBuffer } from '../../src/core/byte-blocks.ts'

const take = (count: number): Uint8Array[] => Array.from({ length: count }, takeBuffer)

describe('takeBuffer', () => {
  it('gives no buffer to two takers', () => {
    const buffers = take(5)
    for (const buffer of buffers) giveBack(buffer)
    const taken = take(10)
    expect(new Set(taken).size).toBe(10)
    expect(buffers.every((buffer) => taken.includes(buffer))).toBe(true)
  })

  it('gives again at most 32 buffers that were given back: no more are kept', () => {
    const buffers = take(50)
    for (const buffer of buffers) giveBack(buffer)
    expect(take(50).filter((buffer) => buffers.includes(buffer))).toHaveLength(32)
  })
})
