import { describe, expect, it } from 'vitest'
import { giveBack, takeBuffer } from '../../src/core/byte-blocks.ts'
import { createHandler } from '../../src/core/node-handler.ts'
import { serve } from '../handlers/serve.ts'

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

it('a buffer goes back at once where the content that was read is not in it', async () => {
  let given: Uint8Array | undefined
  const read = (buffer?: Uint8Array) => {
    given = buffer
    return Buffer.from('abc')
  }
  const body = { size: 3, async *open() {}, read }
  const handler = createHandler({
    run: () => ({ status: 200, headers: ['Content-Length', '3'], body }),
    forwardErrors: false,
  })
  const send = await serve((req, res) => handler(req, res))
  expect((await send('GET', '/')).text).toBe('abc')
  expect(take(40)).toContain(given)
})
