import { describe, expect, it } from 'vitest'
import type { StandardSchema } from '../../src/core/definition-types.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { isResource } from '../../src/stores/rules.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { jsonOf, MERGE_PATCH, multipartOf, startService } from '../writes/support.ts'
import { as, scope, start } from './scoped.ts'
import { STORES } from './stores.ts'

/** A schema that takes everything, and does something else once, while the first value is validated. */
function meanwhile(action: () => unknown): StandardSchema {
  let isDone = false
  return {
    '~standard': {
      version: 1,
      vendor: 'test',
      async validate(value) {
        if (!isDone) await action()
        isDone = true
        return { value }
      },
    },
  }
}

const theirs = { contentType: 'application/json', body: '{"id":1,"owner":"bob"}' }
const readBody = async (store: ResourceStore) => {
  const state = await store.read('/notes/1', { hidden: true })
  return isResource(state) ? String(state.body) : undefined
}

describe.each(['memoryStore', 'sqliteStore'])('PUT that found nothing, where removal is soft, on %s', (name) => {
  const createStore = STORES[name]!

  it('meets its condition with what came meanwhile', async () => {
    const store = createStore()
    const schema = meanwhile(() => store.write('/notes/1', theirs, { expect: 'absent' }))
    const notes = collection({ deletion: 'soft', authorize: () => true, schema })
    const target = await startService({ resources: { '/notes': notes } }, store)
    const answer = await target.send('PUT', '/notes/1', jsonOf({ owner: 'ada' }, { 'If-None-Match': '*' }))
    expect([answer.status, await readBody(store)]).toEqual([412, theirs.body])
    await target.close()
  })

  it.each([{}, { conflict: () => undefined }])(
    'leaves alone what another has written and removed meanwhile, outside its scope (%o)',
    async (hooks) => {
      const store = createStore()
      const schema = meanwhile(async () => {
        await store.write('/notes/1', theirs, { expect: 'absent' })
        await store.remove('/notes/1', { expect: 'any', mode: 'hide' })
      })
      const notes = collection({ deletion: 'soft', scope, clientIds: true, schema, ...hooks })
      const target = await start(store, { '/notes': notes })
      const answer = await target.send('PUT', '/notes/1', jsonOf({ n: 1 }, as('ada')))
      expect([answer.status, await readBody(store)]).toEqual([404, theirs.body])
      await target.close()
    },
  )

  it('is gone for those who could see what another removes meanwhile, and was never there for others', async () => {
    for (const [owner, status] of [
      ['ada', 410],
      ['bob', 404],
    ] as const) {
      const store = createStore()
      await store.write('/notes/1', theirs, { expect: 'absent' })
      const mine = { ...theirs, body: JSON.stringify({ id: 1, owner }) }
      const schema = meanwhile(async () => {
        await store.write('/notes/1', mine, { expect: 'present' })
        await store.remove('/notes/1', { expect: 'any', mode: 'hide' })
      })
      const notes = collection({
        deletion: 'soft',
        schema,
        authorize: (_principal, _request, current) =>
          current?.deleted !== true ||
          (current.value as { owner?: string } | undefined)?.owner === 'ada' ||
          'not-found',
      })
      const target = await startService({ resources: { '/notes': notes } }, store)
      expect((await target.send('PATCH', '/notes/1', jsonOf({ n: 1 }, MERGE_PATCH))).status).toBe(status)
      await target.close()
    }
  })

  it('asks whether a removed item can be read before it compares the facts of its files', async () => {
    const notes = collection({
      deletion: 'soft',
      files: { file: {} },
      authorize: (_, { method }, current) => method !== 'GET' || current?.deleted !== true,
    })
    const target = await startService({ resources: { '/notes': notes } }, createStore())
    const file = { name: 'file', filename: 'a.txt', type: 'text/plain', content: 'bytes' }
    await target.send('POST', '/notes', multipartOf([file]))
    const facts = { name: 'a.txt', type: 'text/plain', size: 5 }
    expect((await target.send('PUT', '/notes/1', jsonOf({ file: facts }))).status).toBe(204)
    await target.send('DELETE', '/notes/1')
    for (const size of [5, 6]) {
      expect((await target.send('PUT', '/notes/1', jsonOf({ file: { ...facts, size } }))).status).toBe(403)
    }
    expect((await target.send('PUT', '/notes/1', jsonOf({ n: 1 }))).status).toBe(201)
    await target.close()
  })
})
