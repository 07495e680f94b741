import { afterEach, describe, expect, it, vi } from 'vitest'
// @ts-expect-error the recipe is JavaScript
import { createDataProvider } from '../../examples/recipes/react-admin.mjs'
import { bearerCredentials, type RunningDemo, startDemo } from '../support/demo.ts'

let demo: RunningDemo | undefined
afterEach(() => {
  vi.unstubAllGlobals()
  return demo?.close()
})

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

  it('leaves out references whose targets are gone', async () => {
    const { ann } = await start()
    for (const title of ['a', 'b', 'c']) await ann.create('tasks', { data: { title } })
    await ann.delete('tasks', { id: 2 })
    const { data } = await ann.getMany('tasks', { ids: [1, 2, 3, 99] })
    expect(data.map(({ title }: { title: string }) => title)).toEqual(['a', 'c'])
  })

  it('changes and removes nothing that another user has changed meanwhile', async () => {
    const { ann, bob, provide } = await start()
    await ann.create('tasks', { data: { title: 'Weave', priority: 1 } })
    const other = provide('ann')
    const { data: seen } = await other.getOne('tasks', { id: 1 })
    const { data: changed } = await ann.update('tasks', { id: 1, data: { ...seen, title: 'Spin' }, previousData: seen })
    expect(changed).toMatchObject({ id: 1, title: 'Spin' })
    const mine = { id: 1, data: { ...seen, title: 'Knit' }, previousData: seen }
    await expect(other.update('tasks', mine)).rejects.toMatchObject({ status: 412 })
    await expect(other.delete('tasks', { id: 1, previousData: seen })).rejects.toMatchObject({ status: 412 })
    await expect(bob.getOne('tasks', { id: 1 })).rejects.toMatchObject({ status: 404 })
    const beside = { id: 1, data: { ...seen, priority: 2 }, previousData: seen }
    const { data: both } = await other.update('tasks', beside)
    expect(both).toMatchObject({ id: 1, title: 'Spin', priority: 2 })
    expect((await ann.delete('tasks', { id: 1, previousData: both })).data).toEqual(both)
    await expect(ann.getOne('tasks', { id: 1 })).rejects.toMatchObject({ status: 404 })
  })

  it('changes and removes many', async () => {
    const { ann } = await start()
    for (const title of ['a', 'b', 'c']) await ann.create('tasks', { data: { title, priority: 1 } })
    expect(await ann.updateMany('tasks', { ids: [1, 3], data: { status: 'late' } })).toEqual({ data: [1, 3] })
    const find = async (status: string) => {
      const sort = { field: 'priority', order: 'ASC' }
      const { data } = await ann.getManyReference('tasks', {
        target: 'status',
        id: status,
        filter: {},
        sort,
        pagination,
      })
      return data.map(({ id, title, priority }: Record<string, unknown>) => [id, title, priority])
    }
    const pagination = { page: 1, perPage: 5 }
    expect(await find('late')).toEqual([
      [1, 'a', 1],
      [3, 'c', 1],
    ])
    expect(await ann.deleteMany('tasks', { ids: [1, 3] })).toEqual({ data: [1, 3] })
    expect(await find('late')).toEqual([])
  })

  it('gives the errors of a form by the names of its inputs', async () => {
    const { ann } = await start()
    const refused = ann.create('tasks', { data: { title: '', address: { city: 5 } } })
    await expect(refused).rejects.toMatchObject({
      status: 422,
      body: { errors: { title: expect.any(String), 'address.city': expect.any(String) } },
    })
  })

  it('takes a base that is relative to the page', async () => {
    const { port } = await start().then(() => demo!)
    vi.stubGlobal('location', { href: `http://127.0.0.1:${port}/admin/index.html` })
    const ann = createDataProvider('/api', { token: bearerCredentials({ sub: 'ann' }).slice('Bearer '.length) })
    const { data } = await ann.create('tasks', { data: { title: 'Weave' } })
    const changed = await ann.update('tasks', { id: data.id, data: { ...data, title: 'Spin' }, previousData: data })
    expect(changed.data).toMatchObject({ id: data.id, title: 'Spin', createdAt: data.createdAt })
    expect((await ann.delete('tasks', { id: data.id, previousData: changed.data })).data).toEqual(changed.data)
  })
})
