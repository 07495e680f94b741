import { setTimeout as sleep } from 'node:timers/promises'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type {
  Content,
  CreateResult,
  RelatedWrite,
  RemoveOptions,
  RemoveResult,
  ResourceStore,
  StagedBody,
  StoredResource,
  WriteResult,
} from '../stores/types.ts'
import { claim, claimFails, claimResource, claimSettles } from './claims.ts'

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

/** Fails unless a call ends at once, and with the reason, when its signal aborts while its source is silent. */
export async function claimGivenUp(
  call: (body: AsyncIterable<Uint8Array>, signal: AbortSignal) => unknown,
): Promise<void> {
  const [controller, reason] = [new AbortController(), new Error('The client is gone.')]
  const source = stall(createBytes(300_000, 4))
  const done = async () => call(source.body, controller.signal)
  const failure = claimFails(done, 'A write succeeded although its signal had been aborted.')
  await source.reached
  controller.abort(reason)
  const thrown = await claimSettles(failure, 'A write waits for a silent source although its signal has aborted.')
  claim(thrown === reason, 'An aborted write fails with the reason of its signal.')
  source.resume()
}

/** A promise that is fulfilled by a call. */
export function createGate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

export async function put(store: ResourceStore, path: string, content: Content): Promise<StoredResource> {
  return written(await store.write(path, content, { expect: 'any' }), 'A write without a condition was refused.')
}

export async function remove(
  store: ResourceStore,
  path: string,
  mode: RemoveOptions['mode'] = 'erase',
  more: Omit<RemoveOptions, 'expect' | 'mode'> = {},
): Promise<RemoveResult> {
  return store.remove(path, { expect: 'any', mode, ...more })
}

export async function readResource(store: ResourceStore, path: string): Promise<StoredResource> {
  return claimResource(await store.read(path), 'The resource was not found.')
}

export function written(result: WriteResult, sentence: string): StoredResource {
  claim(result.outcome !== 'conflict', sentence)
  return result.resource
}

export function created(result: CreateResult): StoredResource {
  claim(result.outcome === 'created', 'A creation that has nothing to conflict with was refused.')
  return result.resource
}

export async function create(
  store: ResourceStore,
  collection: string,
  content: Content | ((name: string) => Content),
): Promise<StoredResource> {
  return created(await store.create(collection, content))
}

export async function stage(store: ResourceStore, bytes: Uint8Array): Promise<StagedBody> {
  claim(store.stage !== undefined, 'The store has no method `stage`.')
  return store.stage(stream(bytes, 60_000))
}

/** Waits until nothing is left at a path, for ten seconds at most: a machine may be busy. */
export async function waitUntilGone(store: ResourceStore, path: string, sentence: string): Promise<void> {
  for (const end = Date.now() + 10_000; (await store.read(path)) !== undefined; await sleep(5))
    claim(Date.now() < end, sentence)
}

export function nameOf(state: { readonly path: string }): string {
  return state.path.slice(state.path.lastIndexOf('/') + 1)
}

export function pathsOf(states: readonly StoredResource[]): string[] {
  return states.map(({ path }) => path)
}

export function factsOf({ body: _, ...facts }: StoredResource): Omit<StoredResource, 'body'> {
  return facts
}

export function range(from: number, to: number, step = 1): number[] {
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step)
}

/** Values, each behind the name of a member: no 0, which a table whose ids begin at 1 does not have. */
export function named<Value>(values: readonly Value[]): [name: number, value: Value][] {
  return values.map((value, index) => [index + 1, value])
}

export function times<Result>(count: number, task: (index: number) => Promise<Result>): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => task(index)))
}

export function race<Result>(
  stores: readonly ResourceStore[],
  count: number,
  task: (store: ResourceStore, index: number) => MaybePromise<Result>,
): Promise<Result[]> {
  return times(count, async (index) => task(stores[index % stores.length]!, index))
}

/** Runs a task while others are at work, each of whom takes one step after the other. */
export async function amid(
  count: number,
  takeStep: (worker: number, step: number) => Promise<unknown>,
  task: () => Promise<void>,
): Promise<void> {
  let isOver = false
  const workers = times(count, async (worker) => {
    for (let step = 0; !isOver; step++) await takeStep(worker, step)
  })
  // Thrown below: a step may fail long before the task has ended.
  workers.catch(() => {})
  try {
    await task()
  } finally {
    isOver = true
    await workers
  }
}

/** Lets others come between: a store that answers at once would otherwise never be interrupted. */
export function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
