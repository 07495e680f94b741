import { describe, expect, it } from 'vitest'
import { startRecipe } from '../support/recipes.ts'

const as = (user: string, password: string) => ({ Authorization: `Basic ${btoa(`${user}:${password}`)}` })
const [ada, bob, root] = [as('ada', 'lovelace'), as('bob', 'babbage'), as('root', 'secret')]

describe('examples/recipes/owners.mjs', () => {
  it('shows users their own items, tenants those of the tenant, and root all', async () => {
    const { send } = await startRecipe('owners.mjs')
    const created = await send('POST', '/tasks', { headers: ada, json: { title: 'a', status: 'open' } })
    expect(created.status).toBe(201)
    const task = { id: 1, title: 'a', status: 'open', tenant: 'engines', owner: 'ada' }
    expect((await send('GET', '/tasks?status=open', { headers: ada })).value).toEqual([task])
    expect((await send('GET', '/tasks?status=open', { headers: bob })).value).toEqual([])
    expect((await send('GET', '/tasks', { headers: root })).value).toEqual([task])
    for (const method of ['GET', 'DELETE']) expect((await send(method, '/tasks/1', { headers: bob })).status).toBe(404)
    expect((await send('PUT', '/tasks/1', { headers: bob, json: task })).status).toBe(404)
    expect((await send('PUT', '/tasks/1', { headers: ada, json: { ...task, owner: 'bob' } })).status).toBe(403)
    expect((await send('PUT', '/tasks/1', { headers: ada, json: { ...task, title: 'b' } })).status).toBe(204)
    expect((await send('POST', '/tasks/1/comments', { headers: ada, json: { text: 'c' } })).status).toBe(201)
    expect((await send('GET', '/tasks/1/comments', { headers: bob })).status).toBe(404)

    expect((await send('POST', '/projects', { headers: bob, json: { name: 'p' } })).status).toBe(201)
    expect((await send('GET', '/projects', { headers: bob })).value).toEqual([{ id: 1, name: 'p', tenant: 'looms' }])
    expect((await send('GET', '/projects', { headers: ada })).value).toEqual([])
    // No tenant is known of root: it has no scope, and that is not everything.
    expect((await send('GET', '/projects', { headers: root })).status).toBe(403)
  })
})

describe('examples/recipes/timestamps.mjs', () => {
  it('sets who wrote and when, whatever the client says', async () => {
    const { send } = await startRecipe('timestamps.mjs')
    const json = { title: 'a', createdBy: 'bob', createdAt: '2000-01-01T00:00:00Z' }
    expect((await send('POST', '/tasks', { headers: ada, json })).status).toBe(201)
    const { value: first } = await send('GET', '/tasks/1', { headers: ada })
    expect(first).toMatchObject({ title: 'a', createdBy: 'ada', updatedBy: 'ada' })
    expect(first.createdAt > json.createdAt).toBe(true)
    expect((await send('PUT', '/tasks/1', { headers: bob, json: { title: 'b' } })).status).toBe(204)
    const { value: second } = await send('GET', '/tasks/1', { headers: ada })
    expect(second).toMatchObject({ title: 'b', createdBy: 'ada', createdAt: first.createdAt, updatedBy: 'bob' })
    expect((await send('GET', '/tasks?createdBy=ada', { headers: bob })).value).toHaveLength(1)
  })
})

describe('examples/recipes/lists.mjs', () => {
  it('filters, orders, counts, and refuses what it does not know', async () => {
    const { send } = await startRecipe('lists.mjs')
    for (const [title, status, city] of [
      ['a', 'open', 'Turin'],
      ['b', 'late', 'Trento'],
      ['c', 'closed', 'Turin'],
    ]) {
      expect((await send('POST', '/tasks', { json: { title, status, address: { city } } })).status).toBe(201)
    }
    const titles = async (query: string) =>
      (await send('GET', `/tasks?${query}`)).value.map(({ title }: { title: string }) => title)
    expect(await titles('status=open&status=late&sort=-title')).toEqual(['b', 'a'])
    expect(await titles('city=Turin&status[ne]=closed')).toEqual(['a'])
    const page = await send('GET', '/tasks?limit=1&count=true', { headers: { Origin: 'http://localhost:3000' } })
    expect(page.headers.get('x-total-count')).toBe('3')
    expect(page.headers.get('access-control-expose-headers')).toMatch(/X-Total-Count/i)
    expect((await send('GET', '/tasks?stauts=open')).status).toBe(400)
  })
})

describe('examples/recipes/files-later.mjs', () => {
  it('takes a file of an item that exists already', async () => {
    const { send } = await startRecipe('files-later.mjs')
    expect((await send('POST', '/users', { json: { name: 'Ada' } })).status).toBe(201)
    const headers = { 'Content-Type': 'image/png', 'Content-Disposition': 'attachment; filename="ada.png"' }
    expect((await send('PUT', '/users/1/photo', { headers, body: '0123456789' })).status).toBe(201)
    const photo = { name: 'ada.png', type: 'image/png', size: 10 }
    expect((await send('GET', '/users/1')).value).toEqual({ id: 1, name: 'Ada', photo })
    expect((await send('PUT', '/users/1/photo', { headers, body: '01' })).status).toBe(204)
    expect((await send('GET', '/users/1/photo')).value).toBe('01')
    expect((await send('PUT', '/users/2/photo', { headers, body: '01' })).status).toBe(404)
    const large = '0'.repeat(5 * 1024 * 1024 + 1)
    expect((await send('PUT', '/users/1/photo', { headers, body: large })).status).toBe(413)
    expect((await send('GET', '/users/1/photo')).value).toBe('01')
  })
})

describe('examples/recipes/json-server.mjs', () => {
  it("answers the requests of json-server's front ends", async () => {
    const { send } = await startRecipe('json-server.mjs')
    for (let views = 1; views <= 25; views++) {
      const json = { title: `Post ${views}`, views, authorId: views % 2 }
      expect(await send('POST', '/posts', { json })).toMatchObject({ status: 201, value: { id: views, ...json } })
    }
    const list = async (query: string) => {
      const { status, value, headers } = await send('GET', `/posts?${query}`)
      expect([query, status]).toEqual([query, 200])
      return [value.map(({ views }: { views: number }) => views), headers.get('x-total-count')]
    }
    expect(await list('_page=3&_limit=10')).toEqual([[21, 22, 23, 24, 25], '25'])
    expect(await list('_page=1')).toEqual([[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], '25'])
    expect(await list('_sort=views&_order=desc&_start=2&_end=5')).toEqual([[23, 22, 21], '25'])
    expect(await list('_sort=authorId,views&_order=asc,desc&_limit=2')).toEqual([[24, 22], '25'])
    expect(await list('authorId=1&views_gte=20&views_ne=23')).toEqual([[21, 25], null])
    expect(await list('authorId=1&_page=2&_limit=5')).toEqual([[11, 13, 15, 17, 19], '13'])
    // A question mark may stand in a query (RFC 3986 §3.4).
    expect(await list('title=Post 3?&title=Post 4')).toEqual([[4], null])
    for (const query of [
      'title_like=Post',
      '_embed=comments',
      'q=Post',
      'colour=red&_page=2',
      '_page=0',
      '_start=x',
      '_start=-1&_end=5',
      '_start=3&_end=3',
      '_start=4995&_end=5001',
    ]) {
      expect([query, (await send('GET', `/posts?${query}`)).status]).toEqual([query, 400])
    }
    expect(await list('_page=9')).toEqual([[], '25'])
    expect(await list('_sort=views&_order=DESC&_end=2')).toEqual([[25, 24], '25'])
    expect(await list('_sort=id&_order=desc&_limit=2')).toEqual([[25, 24], '25'])
    const ids = [25, 3, 99, 4, 5, 6, 7, 8, 9, 10]
    expect(
      await list(
        ids
          .slice(0, 3)
          .map((id) => `id=${id}`)
          .join('&'),
      ),
    ).toEqual([[3, 25], null])
    expect(await list(ids.map((id) => `id=${id}`).join('&'))).toEqual([[25, 3, 4, 5, 6, 7, 8, 9, 10], null])
    expect((await send('PATCH', '/posts/1', { json: { views: 99 } })).value).toMatchObject({
      title: 'Post 1',
      views: 99,
    })
    expect((await send('PUT', '/posts/1', { json: { title: 'New' } })).value).toEqual({ id: 1, title: 'New' })
    expect((await send('DELETE', '/posts/1')).status).toBe(200)
  })

  it('gives scripts of the front end the total, also of parts that are read page by page', async () => {
    const { send } = await startRecipe('json-server.mjs')
    await send('POST', '/posts', { json: { title: 'a' } })
    for (const query of ['', '?title=a', '?_page=1', '?_page=2']) {
      const { status, headers } = await send('GET', `/posts${query}`, { headers: { Origin: 'http://localhost:3000' } })
      expect([query, status, headers.get('access-control-allow-origin')]).toEqual([query, 200, 'http://localhost:3000'])
      expect(headers.get('access-control-expose-headers')).toMatch(/X-Total-Count/i)
    }
  })
})
