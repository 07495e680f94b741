import { expect, it, vi } from 'vitest'
import { readUpTo } from '../../src/core/byte-blocks.ts'

const bytes = (text: string) => Buffer.from(text)

/** A stream that tells whether it was closed. */
function observe(pieces: readonly string[]) {
  const left = [...pieces]
  const close = vi.fn(async () => ({ done: true as const, value: undefined }))
  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    const piece = left.shift()
    return piece === undefined ? { done: true, value: undefined } : { done: false, value: bytes(piece) }
  }
  return { close, stream: { [Symbol.asyncIterator]: () => ({ next, return: close }) } as AsyncIterable<Uint8Array> }
}

it('closes a source of which some has been read, whether the rest was begun or not', async () => {
  for (const reads of [0, 1, 2]) {
    const { stream, close } = observe(['begin', 'middle', 'end'])
    const rest = (await readUpTo(stream, 4)) as AsyncIterable<Uint8Array>
    const iterator = rest[Symbol.asyncIterator]()
    for (let count = 0; count < reads; count++) expect((await iterator.next()).done).toBe(false)
    await iterator.return!()
    expect(close).toHaveBeenCalledTimes(1)
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
  }
})

it('gives every byte once, and closes nothing that has ended', async () => {
  const { stream, close } = observe(['begin', 'middle', 'end'])
  const rest = (await readUpTo(stream, 4)) as AsyncIterable<Uint8Array>
  const pieces: Uint8Array[] = []
  for await (const piece of rest) pieces.push(Buffer.from(piece))
  expect(Buffer.concat(pieces).toString()).toBe('beginmiddleend')
  await rest[Symbol.asyncIterator]().return!()
  expect(close).not.toHaveBeenCalled()
})

it('asks a source for nothing more, and closes it not, once that has failed', async () => {
  let asked = 0
  const close = vi.fn(async () => ({ done: true as const, value: undefined }))
  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    if (asked++ === 0) return { done: false, value: bytes('begin') }
    throw new Error('broken')
  }
  const stream = { [Symbol.asyncIterator]: () => ({ next, return: close }) } as AsyncIterable<Uint8Array>
  const iterator = ((await readUpTo(stream, 4)) as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]()
  expect(String((await iterator.next()).value)).toBe('begin')
  await expect(iterator.next()).rejects.toThrow('broken')
  expect(await iterator.next()).toEqual({ done: true, value: undefined })
  await iterator.return!()
  expect([asked, close.mock.calls.length]).toEqual([2, 0])
})
