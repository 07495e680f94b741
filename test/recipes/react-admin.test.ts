import { afterEach, describe, expect, it } from 'vitest'
// @ts-expect-error the recipe is JavaScript
import { createDataProvider } from '../../examples/recipes/react-admin.mjs'
import { bearerCredentials, type RunningDemo, startDemo } from '../support/demo.ts'

let demo: RunningDemo | undefined
afterEach(() => demo?.close())

async function start() {
  demo = await startDemo('plain', { prefix: '/api' })
  const base = `http://127.0.0.1:${demo.port}/api`
  const provide = (sub: string) =>
    createDataProvider(base, { headers: () => ({ Authorization: bearerCredentials({ sub }) }) })
  return { provide, ann: provide('ann'), bob: provide('bob') }
}

describe('examples/recipes/react-admin.mjs', () => {
  it('lists with a filter, an order, a range and the total', async () => {
    const { ann, bob } = await start()
    for (let priority = 1; priority <= 7; priority++) {
      const data = { title: `Task ${priority}`, priority, status: priority === 4 ? 'late' : 'open' }
      expect((await ann.create('tasks', { data })).data).toMatchObject({ id: priority, ...data, owner: 'ann' })
    }
    const list = async (
      provider: typeof ann,
      page: number,
      filter = {},
      sort = { field: 'priority', order: 'DESC' },
    ) => {
      const { data, total } = await provider.getList('tasks', { filter, sort, pagination: { page, perPage: 3 } })
      return [data.map(({ id }: { id: number }) => id), total]
    }
    expect(await list(ann, 1)).toEqual([[7, 6, 5], 7])
    expect(await list(ann, 3)).toEqual([[1], 7])
    expect(await list(ann, 4)).toEqual([[], 7])
    expect(await list(ann, 2, { status: 'open' })).toEqual([[3, 2, 1], 6])
    expect(await list(ann, 1, { priority: { gte: 6 } }, { field: 'id', order: 'ASC' })).toEqual([[6, 7], 2])
    expect(await list(bob, 1)).toEqual([[], 0])
    await expect(list(ann, 1, { colour: 'red' })).rejects.toMatchObject({ status: 400 })
    const many = await ann.getMany('tasks', { ids: [2, 4] })
    expect(many.data.map(({ title }: { title: string }) => title)).toEqual(['Task 2', 'Task 4'])
  })

  it('changes and removes only the state that the user has seen', async () => {
    const { ann, bob, provide } = await start()
    await ann.create('tasks', { data: { title: 'Weave' } })
    const other = provide('ann')
    const { data: seen } = await other.getOne('tasks', { id: 1 })
    const { data: changed } = await ann.update('tasks', { id: 1, data: { ...seen, title: 'Spin' }, previousData: seen })
    expect(changed).toMatchObject({ id: 1, title: 'Spin' })
    await expect(other.update('tasks', { id: 1, data: seen })).rejects.toMatchObject({ status: 412 })
    await expect(other.delete('tasks', { id: 1 })).rejects.toMatchObject({ status: 412 })
    await expect(bob.getOne('tasks', { id: 1 })).rejects.toMatchObject({ status: 404 })
    await expect(ann.create('tasks', { data: { title: '' } })).rejects.toMatchObject({ status: 422 })
    expect((await ann.updateMany('tasks', { ids: [1], data: { title: 'Print' } })).data).toEqual([1])
    expect((await ann.delete('tasks', { id: 1, previousData: changed })).data).toEqual(changed)
    await expect(ann.getOne('tasks', { id: 1 })).rejects.toMatchObject({ status: expect.any(Number) })
  })
})
