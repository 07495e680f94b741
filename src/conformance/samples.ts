import { setTimeout as sleep } from 'node:timers/promises'
import type { Content, RelatedWrite } from '../stores/types.ts'

/** Bytes that differ from place to place and from seed to seed, so that any mix-up shows. */
export function createBytes(size: number, seed: number): Buffer {
  const bytes = Buffer.allocUnsafe(size)
  let state = (seed * 2_654_435_761 + 1) >>> 0
  for (let i = 0; i < size; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    bytes[i] = state >>> 24
  }
  return bytes
}

export const MEBIBYTE = 1_048_576

/** Milliseconds. A definition may have any number of them. The first of these no timer takes, and no integer of 32 bits. */
export const LONG_RETENTIONS: readonly number[] = [2 ** 31, 60_000.5, Number.POSITIVE_INFINITY]

export function binary(body: Content['body']): Content {
  return { contentType: 'application/octet-stream', body }
}

export function text(body: Content['body']): Content {
  return { contentType: 'text/plain', body }
}

export function absent(path: string, body = 'record'): RelatedWrite {
  return { path, content: text(body), expect: 'absent' }
}

/** A stream in chunks of the sizes given, in turn. */
export async function* stream(bytes: Uint8Array, ...sizes: number[]): AsyncGenerator<Uint8Array> {
  for (let from = 0, i = 0; from < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 65_536
    yield bytes.subarray(from, from + size)
    from += size
    // Chunks arrive over time, so that other calls come between.
    if (i % 8 === 7) await sleep(0)
  }
}

/** A stream that fills one buffer repeatedly, as readers of files and sockets do. */
export async function* reuseBuffer(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(size)
  for (let from = 0; from < bytes.length; from += size) {
    const part = bytes.subarray(from, from + size)
    buffer.set(part)
    yield buffer.subarray(0, part.length)
    buffer.fill(0xff)
  }
}

export async function* brokenStream(bytes: Uint8Array, error: Error): AsyncGenerator<Uint8Array> {
  yield* stream(bytes, 30_000)
  throw error
}

/** A stream that runs a task between two chunks, such as a change while it is taken in. */
export async function* interrupt(bytes: Uint8Array, task: () => unknown): AsyncGenerator<Uint8Array> {
  const half = bytes.length >> 1
  yield* stream(bytes.subarray(0, half), 50_000)
  await task()
  yield* stream(bytes.subarray(half), 50_000)
}

/** A stream that stops in the middle until `resume` is called, or `fail`. */
interface StalledStream {
  readonly body: AsyncIterable<Uint8Array>
  /** Fulfilled once the first half has been taken. */
  readonly reached: Promise<void>
  resume(): void
  fail(): void
}

export function stall(bytes: Uint8Array): StalledStream {
  const [reached, resumed] = [createGate(), createGate()]
  let isBroken = false
  const wait = async (): Promise<void> => {
    reached.open()
    await resumed.opened
    if (isBroken) throw new Error('The source has failed.')
  }
  const fail = (): void => {
    isBroken = true
    resumed.open()
  }
  return { body: interrupt(bytes, wait), reached: reached.opened, resume: resumed.open, fail }
}

/** A promise that is fulfilled by a call. */
export function createGate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

export function range(from: number, to: number, step = 1): number[] {
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step)
}

/** Values, each behind the name of a member: no 0, which a table whose ids begin at 1 does not have. */
export function named<Value>(values: readonly Value[]): [name: number, value: Value][] {
  return values.map((value, index) => [index + 1, value])
}
