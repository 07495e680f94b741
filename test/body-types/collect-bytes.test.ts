import { expect, it } from 'vitest'
import { collectBytes } from '../../src/body-types/read-body.ts'

it.each([1, 9000])('collects %d bytes a chunk of a source that uses its buffer again', async (size) => {
  const buffer = Buffer.alloc(size)
  async function* source() {
    for (const letter of 'abc') yield buffer.fill(letter)
  }
  const bytes = await collectBytes(source(), 3 * size)
  expect(String.fromCharCode(...[0, 1, 2].map((part) => bytes[part * size]!))).toBe('abc')
})
