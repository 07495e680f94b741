import { expect, it, onTestFinished } from 'vitest'
import type { Process } from '../../src/actions/hook-types.ts'
import type { Route, RouteContext } from '../../src/actions/route.ts'
import { createTurns } from '../../src/core/turns.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { untilAborted } from '../../src/stores/streams.ts'
import type { LargeBody } from '../../src/stores/types.ts'
import { createWorkHandler } from '../../src/work/handler.ts'
import type { ClaimedWork } from '../../src/work/queue.ts'

it('work that ends after it was given up for failed does not make its item ready', async () => {
  const store = memoryStore()
  const job = { contentType: 'application/json', body: '{"state":"pending"}' }
  await store.write('/jobs/1', job, { expect: 'absent' })
  let end = (_: object): void => {}
  const process = () =>
    new Promise<object>((resolve) => {
      end = resolve
    })
  const context = {
    ...{ store, turns: createTurns(), now: Date.now, limits: { bodySize: 1000 } },
    ...{ loadIndexes: async () => {}, findRoute: () => undefined },
  }
  const route = { observesChanges: false } as Route
  const handler = createWorkHandler(context as unknown as RouteContext, () => ({ route, process: process as never }))
  const record = { kind: 'process', pattern: '/jobs', path: '/jobs/1', attempts: 1 }
  const work = { record } as unknown as ClaimedWork
  const done = handler.perform(work, new AbortController().signal)
  await new Promise(setImmediate)
  await handler.fail(work, new Error('The lease is lost.'))
  end({ pages: 12 })
  await done
  const { body } = (await store.read('/jobs/1')) as { readonly body: string }
  expect(JSON.parse(body)).toMatchObject({ state: 'failed', problem: { status: 500 } })
  expect(JSON.parse(body)).not.toHaveProperty('pages')
})

/** Work on an item, over a store that has a file beside it. */
async function openWork(process: Process, more: object = {}) {
  const store = memoryStore()
  const json = (body: string) => ({ contentType: 'application/json', body })
  await store.write('/jobs/1', json('{"state":"pending","owner":"ada"}'), { expect: 'absent' })
  const context = {
    ...{ store, turns: createTurns(), now: Date.now, limits: { bodySize: 1000 } },
    ...{ loadIndexes: async () => {}, findRoute: () => undefined, ...more },
  }
  const route = { observesChanges: false } as Route
  const handler = createWorkHandler(context as unknown as RouteContext, () => ({ route, process }))
  const work = { record: { kind: 'process', pattern: '/jobs', path: '/jobs/1', attempts: 1 } } as unknown as ClaimedWork
  const readItem = async () => JSON.parse(((await store.read('/jobs/1')) as { readonly body: string }).body)
  return { handler, work, store, readItem }
}

it('a removal that could not be tried again is done where the resource is gone, and has failed where it is there', async () => {
  const { handler, store } = await openWork(() => ({}))
  const states: unknown[] = []
  for (const path of ['/jobs/1', '/jobs/2']) {
    const monitor = `monitors${path}`
    await store.write(monitor, { contentType: 'application/json', body: '{"state":"pending"}' }, { expect: 'absent' })
    const record = { kind: 'remove', pattern: '/jobs/{id}', path, monitor, attempts: 2 }
    await handler.fail({ record } as unknown as ClaimedWork, new Error('The process ended.'))
    const { state, result } = JSON.parse(((await store.read(monitor)) as { readonly body: string }).body)
    states.push([state, result])
  }
  expect(states).toEqual([
    ['failed', undefined],
    ['done', { deleted: true, id: 2 }],
  ])
})

it('work that is done makes its item ready, whatever state it gives', async () => {
  const { handler, work, readItem } = await openWork(() => ({ state: 'pending' }))
  await handler.perform(work, new AbortController().signal)
  expect(await readItem()).toMatchObject({ state: 'ready' })
})

it('work keeps the scope of its item, also where it is the first that asks for the scopes', async () => {
  let isLoaded = false
  const findRoute = () => (isLoaded ? { indexing: { scopeNames: ['owner'] } } : undefined)
  const loadIndexes = async () => void (isLoaded = true)
  const { handler, work, readItem } = await openWork(() => ({ owner: 'bob' }), { findRoute, loadIndexes })
  await handler.perform(work, new AbortController().signal)
  expect(await readItem()).toMatchObject({ owner: 'ada' })
})

it('work that is broken off waits no longer for the content of a file', async () => {
  const controller = new AbortController()
  const body: LargeBody = {
    open: (_first, _last, { signal } = {}) => untilAborted(silence(), signal),
  }
  const { handler, work, store } = await openWork(async ({ file }) => {
    const content = (await file('input'))!.open()
    setImmediate(() => controller.abort(new Error('The service is closing.')))
    for await (const _ of content);
    return {}
  })
  const { read } = store
  const state = { path: '/jobs/1/input', version: '1', contentType: 'text/plain', size: 10, body }
  Object.assign(store, { read: (path: string) => (path === state.path ? state : read(path)) })
  await expect(handler.perform(work, controller.signal)).rejects.toThrow('closing')
})

it('work fails where its store gives a promise in the place of content, and its rejection does not end the process', async () => {
  const rejected: unknown[] = []
  const onRejection = (error: unknown): void => void rejected.push(error)
  process.on('unhandledRejection', onRejection)
  onTestFinished(() => void process.off('unhandledRejection', onRejection))
  const { handler, work, store } = await openWork(async ({ file }) => {
    for await (const _ of (await file('input'))!.open());
    return {}
  })
  const { read } = store
  const body = { open: () => Promise.reject(new Error('away')) } as unknown as LargeBody
  const state = { path: '/jobs/1/input', version: '1', contentType: 'text/plain', size: 10, body }
  Object.assign(store, { read: (path: string) => (path === state.path ? state : read(path)) })
  await expect(handler.perform(work, new AbortController().signal)).rejects.toThrow(TypeError)
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(rejected).toEqual([])
})

async function* silence(): AsyncGenerator<Uint8Array> {
  await new Promise(() => {})
  yield new Uint8Array(0)
}
