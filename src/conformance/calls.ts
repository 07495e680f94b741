import { setTimeout as sleep } from 'node:timers/promises'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type {
  Content,
  CreateResult,
  RemoveOptions,
  RemoveResult,
  ResourceStore,
  StagedBody,
  StoredResource,
  WriteResult,
} from '../stores/types.ts'
import { claim, claimFails, claimResource, claimSettles } from './claims.ts'
import { createBytes, stall, stream } from './samples.ts'

/** Calls of the store that is tested, as most cases make them, one by one and side by side. */

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

/** What a result says. A property that is `undefined` says as much as one that is left out; a faulty store gives no result. */
export function saidBy(result: object | undefined): object | undefined {
  return result && Object.fromEntries(Object.entries(result).filter(([, value]) => value !== undefined))
}

export function factsOf({ body: _, hidden = false, ...facts }: StoredResource): object | undefined {
  return saidBy({ ...facts, hidden })
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
