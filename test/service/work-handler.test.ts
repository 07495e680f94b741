import { expect, it } from 'vitest'
import type { Route, RouteContext } from '../../src/actions/route.ts'
import { createTurns } from '../../src/core/turns.ts'
import { memoryStore } from '../../src/stores/memory.ts'
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
