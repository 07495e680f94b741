import { describe, expect, it } from 'vitest'
import { collection } from '../../src/service/resource-definitions.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { RelatedWrite } from '../../src/stores/types.ts'
import { serve } from '../service/serve.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { createDatabaseFile } from '../support/sqlite.ts'
import { contentOf, indexByStatus, listWhenIndexed, namesOf, queryByStatus } from '../support/statuses.ts'
import { idsOf, JSON_TYPE, linkOf, QUERY, TASKS } from './tasks.ts'

describe('queries and scopes on sqliteStore', () => {
  it('are those of memoryStore, and outlive the process', async () => {
    const file = await createDatabaseFile()
    closeAfterTest(() => file.remove())
    const open = () =>
      serve(sqliteStore(file.open()), {
        resources: {
          '/tasks': collection({
            query: QUERY,
            count: true,
            scope: ({ headers }) => (headers['x-user'] === 'boss' ? undefined : { owner: headers['x-user'] as string }),
          }),
        },
      })
    const first = await open()
    for (const user of ['ada', 'eve']) {
      for (const task of TASKS) {
        const created = await first.send('POST', '/tasks', [JSON_TYPE, `X-User: ${user}`], JSON.stringify(task))
        expect(created.status).toBe(201)
      }
    }
    for (const { send } of [first, await open()]) {
      for (const [user, query, ids] of [
        ['ada', 'status=open', [1, 3]],
        ['eve', 'status=open', [6, 8]],
        ['boss', 'status=open&sort=-dueAt', [3, 8, 1, 6]],
        ['ada', 'sort=-priority', [1, 4, 3, 2, 5]],
        ['ada', 'dueAt[gt]=2026-01-01T22:00:00Z&done=false', [3]],
        ['eve', 'city[prefix]=O&sort=city', [8, 6]],
        ['zoe', '', []],
      ] as const) {
        const seen: number[] = []
        for (let target: string | undefined = `/tasks?${query}&limit=2&count=true`; target !== undefined; ) {
          const page = await send('GET', target, [`X-User: ${user}`])
          expect([page.status, page.field('X-Total-Count')], page.text).toEqual([200, String(ids.length)])
          seen.push(...idsOf(page.text))
          target = linkOf(page.field('Link'), 'next')
        }
        expect([user, query, seen]).toEqual([user, query, ids])
      }
      expect((await send('GET', '/tasks/1', ['X-User: ada'])).status).toBe(200)
      for (const method of ['GET', 'HEAD', 'DELETE']) {
        expect((await send(method, '/tasks/1', ['X-User: eve'])).status).toBe(404)
      }
      expect(
        (
          await send(
            'PATCH',
            '/tasks/1',
            ['Content-Type: application/merge-patch+json', 'X-User: ada'],
            '{"owner":"eve"}',
          )
        ).status,
      ).toBe(403)
    }
  })

  it('find what is written after a write whose transaction was undone', async () => {
    const file = await createDatabaseFile()
    closeAfterTest(() => file.remove())
    const store = sqliteStore(file.open())
    closeAfterTest(async () => store.close())
    const put = (path: string, n: number, related: readonly RelatedWrite[] = []) =>
      store.write(path, contentOf({ status: 'open', n }, indexByStatus()), { expect: 'any', related })
    async function* large(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(500_000)
    }
    const content = { contentType: 'text/plain', body: await store.stage!(large()) }
    await store.write('/files/1', content, { expect: 'any' })
    // Content is used once: the second write fails as a whole.
    await expect(put('/tasks/1', 1, [{ path: '/files/2', content }])).rejects.toThrow('used by another write')
    await put('/others/1', 1)
    for (const n of [2, 3]) {
      await put(`/tasks/${n}`, n)
      const page = await listWhenIndexed(store, '/tasks', queryByStatus('open'))
      expect(namesOf(page)).toEqual(n === 2 ? ['2'] : ['3', '2'])
    }
    expect(namesOf(await listWhenIndexed(store, '/others', queryByStatus('open')))).toEqual(['1'])
  })

  it('keep 200 statements prepared, those that were used last', async () => {
    const file = await createDatabaseFile()
    closeAfterTest(() => file.remove())
    const handle = file.open()
    let count = 0
    const prepare = (sql: string) => {
      count++
      return handle.prepare(sql)
    }
    const store = sqliteStore({ exec: (sql) => handle.exec(sql), prepare })
    closeAfterTest(async () => store.close())
    const index = indexByStatus()
    await store.write('/tasks/1', contentOf({ status: 'open', n: 1 }, index), { expect: 'any' })
    /** How many statements are prepared for a query with so many values. */
    async function countPrepared(length: number): Promise<number> {
      const before = count
      const values = Array.from({ length }, (_, i) => `s${i}`)
      const query = {
        index,
        where: [{ property: 'status', operator: 'notIn', values }],
        orderBy: [],
        count: false,
      } as const
      expect(namesOf(await store.list('/tasks', { query, limit: 10 }))).toEqual(['1'])
      return count - before
    }
    await countPrepared(1)
    for (let length = 2; length < 100; length++) expect(await countPrepared(length)).toBe(2)
    expect(await countPrepared(1)).toBe(0)
    for (const length of [100, 101, 102]) await countPrepared(length)
    expect([await countPrepared(1), await countPrepared(2)]).toEqual([0, 2])
  })
})
