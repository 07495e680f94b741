import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { andThen } from '../../src/core/maybe-promise.ts'
import { document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { isResource } from '../../src/stores/rules.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore, StoredState } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { beforeWrites } from '../support/before-writes.ts'
import { createDatabaseFile } from '../support/sqlite.ts'
import {
  ADMIN,
  FORM,
  JSON_PATCH,
  jsonOf,
  MERGE_PATCH,
  type SendOptions,
  startDemo,
  startService,
  type Target,
  USER,
  uploadOf,
} from './support.ts'

const WRITERS = 50
const countBy = (answers: readonly Answer[]): Record<number, number> => {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/** Two services on one store, as two processes would be: one of memory has one only. */
const setups: Readonly<Record<string, () => Promise<{ targets: Target[]; close(): Promise<void> }>>> = {
  async memoryStore() {
    const target = await startDemo(memoryStore())
    return { targets: [target], close: () => target.close() }
  },
  async sqliteStore() {
    const file = await createDatabaseFile()
    const stores = [sqliteStore(file.open()), sqliteStore(file.open())]
    const targets = [await startDemo(stores[0]), await startDemo(stores[1])]
    return {
      targets,
      async close() {
        for (const target of targets) await target.close()
        for (const store of stores) await store.close?.()
        await file.remove()
      },
    }
  },
}

/** A store whose entity tags are the content itself, in which somebody else writes right before the second write. */
function createRace(): ResourceStore {
  const inner = memoryStore()
  let writes = 0
  const tagged = (state: StoredState): StoredState =>
    isResource(state) ? { ...state, entityTag: `"${state.body}"` } : state
  const theirs = { contentType: 'text/plain', body: 'theirs' }
  const racing = beforeWrites(inner, () => ++writes === 2 && inner.write('/docs/a', theirs, { expect: 'any' }))
  const tagCurrent = <Result extends { outcome: string }>(result: Result): Result =>
    'current' in result ? { ...result, current: tagged(result.current as StoredState) } : result
  return {
    ...racing,
    read: (...request) => andThen(inner.read(...request), tagged),
    write: (...request) => andThen(racing.write(...request), tagCurrent),
    remove: (...request) => andThen(racing.remove(...request), tagCurrent),
  }
}

describe('a write under If-Match: * and If-None-Match', () => {
  it.each(['PUT', 'DELETE'])('finds the very state that was judged: %s (RFC 9110 §13.2)', async (method) => {
    const target = await startService(
      { resources: { '/docs/{name}': document({ types: ['text/plain'] }) } },
      createRace(),
    )
    const fields = { 'Content-Type': 'text/plain', 'If-Match': '*', 'If-None-Match': '"theirs"' }
    await target.send('PUT', '/docs/a', { fields: { 'Content-Type': 'text/plain' }, body: 'first' })
    const answer = await target.send(method, '/docs/a', method === 'PUT' ? { fields, body: 'mine' } : { fields })
    expect([answer.status, (await target.send('GET', '/docs/a')).text]).toEqual([412, 'theirs'])
    await target.close()
  })
})

describe("a PUT without a condition under preconditions: 'required'", () => {
  it.each([
    ['small', 4],
    ['large', 100_000],
  ])('replaces nothing that others put there while its content arrived: %s (RFC 6585 §3)', async (_, size) => {
    const inner = memoryStore()
    const theirs = { contentType: 'text/plain', body: 'theirs' }
    const racing = beforeWrites(inner, () => inner.write('/docs/a', theirs, { expect: 'absent' }))
    const resources = { '/docs/{name}': document({ preconditions: 'required' }) }
    const target = await startService({ resources }, racing)
    const answer = await target.send('PUT', '/docs/a', { body: 'm'.repeat(size) })
    expect([answer.status, (await target.send('GET', '/docs/a')).text.slice(0, 6)]).toEqual([428, 'theirs'])
    await target.close()
  })
})

describe.each(Object.keys(setups))('parallel writers on %s', (name) => {
  let targets: Target[] = []
  let close = async (): Promise<void> => {}
  beforeAll(async () => {
    const setup = await setups[name]!()
    targets = setup.targets
    close = setup.close
  })
  afterAll(() => close())

  const sendAll = (request: (index: number) => readonly [string, string, SendOptions]): Promise<Answer[]> =>
    Promise.all(Array.from({ length: WRITERS }, (_, index) => targets[index % targets.length]!.send(...request(index))))
  const send = (...request: readonly [string, string, SendOptions?]): Promise<Answer> => targets[0]!.send(...request)

  it('with the same valid If-Match have one winner, by PUT (row H132, threat 43)', async () => {
    const tag = (await send('PUT', '/docs/race', { body: 'v0' })).field('etag')!
    const answers = await sendAll((index) => ['PUT', '/docs/race', { fields: { 'If-Match': tag }, body: `v${index}` }])
    expect(countBy(answers)).toEqual({ 204: 1, 412: WRITERS - 1 })
    const winner = answers.findIndex(({ status }) => status === 204)
    const read = await send('GET', '/docs/race')
    expect([read.text, read.field('etag')]).toEqual([`v${winner}`, answers[winner]!.field('etag')])
  })

  it('with If-None-Match: * have one creator (row H132)', async () => {
    const answers = await sendAll((index) => [
      'PUT',
      '/docs/created',
      { fields: { 'If-None-Match': '*' }, body: `v${index}` },
    ])
    expect(countBy(answers)).toEqual({ 201: 1, 412: WRITERS - 1 })
    expect((await send('GET', '/docs/created')).text).toBe(`v${answers.findIndex(({ status }) => status === 201)}`)
  })

  it('of a new resource without a condition have one creator, and no state is lost sight of', async () => {
    const answers = await sendAll((index) => ['PUT', '/docs/plain', { body: `v${index}` }])
    expect(countBy(answers)).toEqual({ 201: 1, 204: WRITERS - 1 })
    expect(new Set(answers.map((answer) => answer.field('etag'))).size).toBe(WRITERS)
  })

  it('with the same valid If-Match have one winner, by PATCH and DELETE (row H132)', async () => {
    for (const [method, path, options] of [
      ['PATCH', '/users/1', jsonOf({ role: 'x' }, MERGE_PATCH)],
      ['DELETE', '/users/1', {}],
      ['DELETE', '/articles/1', {}],
    ] as const) {
      await send('PUT', path, jsonOf({ ...USER, title: 'T' }))
      const tag = (await send('GET', path)).field('etag')!
      const fields = { ...options.fields, ...ADMIN, 'If-Match': tag }
      const answers = await sendAll((index) => [
        method,
        path,
        method === 'PATCH' ? { fields, body: `{"role":"${index}"}` } : { fields },
      ])
      const counts = countBy(answers)
      // Who comes after a removal finds nothing to remove.
      if (method === 'PATCH') expect(counts).toEqual({ 200: 1, 412: WRITERS - 1 })
      else expect([counts[204], (counts[410] ?? 0) + (counts[412] ?? 0)]).toEqual([1, WRITERS - 1])
    }
  })

  it('without a condition lose no update by PATCH (interface PATCH 3, threat 44)', async () => {
    await send('PUT', '/docs/list', jsonOf({ list: [], n: 0 }))
    const answers = await sendAll((index) => [
      'PATCH',
      '/docs/list',
      jsonOf([{ op: 'add', path: '/list/-', value: index }], JSON_PATCH),
    ])
    const { list } = (await send('GET', '/docs/list')).json()
    const won = answers.flatMap(({ status }, index) => (status === 200 ? [index] : []))
    expect(countBy(answers)).toEqual({ 200: WRITERS })
    expect([...list].sort((a, b) => a - b)).toEqual(won)
    const members = await sendAll((index) => ['PATCH', '/docs/list', jsonOf({ [`m${index}`]: index }, MERGE_PATCH)])
    expect(countBy(members)).toEqual({ 200: WRITERS })
    expect(Object.keys((await send('GET', '/docs/list')).json())).toHaveLength(WRITERS + 2)
  })

  it('remove once (row H52)', async () => {
    await send('PUT', '/docs/gone', { body: 'x' })
    const answers = await sendAll(() => ['DELETE', '/docs/gone', { fields: ADMIN }])
    expect(countBy(answers)).toEqual({ 204: 1, 410: WRITERS - 1 })
  })

  it('get ids of their own by POST, whatever clients write meanwhile (interface POST 3, row H59)', async () => {
    const answers = await sendAll((index) => {
      if (index % 5 === 4)
        return ['PUT', `/jobs/${index}`, jsonOf({ name: 'client', priority: index }, { 'If-None-Match': '*' })]
      if (index % 5 === 3) return ['POST', '/jobs', { fields: FORM, body: `name=form&pri=${index}` }]
      return ['POST', '/jobs', jsonOf({ name: 'json', priority: index })]
    })
    const posted = answers.filter((_, index) => index % 5 !== 4)
    expect(countBy(posted)).toEqual({ 201: posted.length })
    expect(new Set(posted.map((answer) => answer.field('location'))).size).toBe(posted.length)
    for (const [index, { status, field }] of answers.entries()) {
      expect([201, 412]).toContain(status)
      // No request wrote over the item of another one.
      if (status === 201) expect((await send('GET', field('location')!)).json().priority).toBe(index)
    }
  })

  it('upload side by side (interface POST 4)', async () => {
    const answers = await sendAll((index) => ['POST', '/uploads', uploadOf(`bytes of ${index}`)])
    expect(countBy(answers)).toEqual({ 202: WRITERS })
    for (const [index, answer] of answers.entries()) {
      expect((await send('GET', `${answer.field('location')}/file`)).text).toBe(`bytes of ${index}`)
    }
  })

  it('leave every document whole (row H40)', async () => {
    const contents = Array.from({ length: WRITERS }, (_, index) =>
      String.fromCharCode(65 + index).repeat(100_000 + index),
    )
    await sendAll((index) => ['PUT', '/docs/big', { body: contents[index]!, chunked: index % 2 === 0 }])
    expect(contents).toContain((await send('GET', '/docs/big')).text)
  })
})

it('a patch that loses every race is 409 after 100 attempts, with pauses in between', async () => {
  const inner = memoryStore()
  let attempts = -1
  const rival = () =>
    inner.write('/a', { contentType: 'application/json', body: `{"n":${++attempts}}` }, { expect: 'any' })
  const target = await startService({ resources: { '/{name}': document() } }, beforeWrites(inner, rival))
  try {
    await target.send('PUT', '/a', jsonOf({}))
    const pauses = vi.spyOn(globalThis, 'setTimeout')
    const { status } = await target.send('PATCH', '/a', { fields: MERGE_PATCH, body: '{"m":1}' })
    const count = pauses.mock.calls.filter(([, time]) => Number(time) < 50).length
    pauses.mockRestore()
    expect([status, attempts]).toEqual([409, 100])
    expect(count).toBeGreaterThanOrEqual(90)
  } finally {
    await target.close()
  }
})
