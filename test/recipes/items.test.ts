import { describe, expect, it } from 'vitest'
import { startRecipe } from '../support/recipes.ts'

const as = (user: string, password: string) => ({ Authorization: `Basic ${btoa(`${user}:${password}`)}` })

describe('examples/recipes/soft-deletion.mjs', () => {
  it('hides what was deleted from all but admins, who read and restore it', async () => {
    const { send } = await startRecipe('soft-deletion.mjs')
    const [ada, admin] = [as('ada', 'lovelace'), as('admin', 'secret')]
    const article = { title: 'Engines' }
    expect((await send('POST', '/articles', { headers: ada, json: article })).status).toBe(201)
    expect((await send('DELETE', '/articles/1', { headers: ada })).status).toBe(204)
    expect((await send('GET', '/articles/1', { headers: ada })).status).toBe(410)
    expect((await send('GET', '/articles', { headers: ada })).value).toEqual([])

    for (const path of ['/articles/1?deleted=true', '/articles?deleted=true']) {
      expect((await send('GET', path, { headers: ada })).status).toBe(403)
    }
    const deleted = await send('GET', '/articles/1?deleted=true', { headers: admin })
    expect([deleted.status, deleted.value]).toEqual([200, { id: 1, ...article }])
    expect((await send('GET', '/articles?deleted=true', { headers: admin })).value).toEqual([{ id: 1, ...article }])

    expect((await send('PUT', '/articles/1', { headers: ada, json: article })).status).toBe(403)
    expect((await send('PUT', '/articles/1', { headers: admin, json: deleted.value })).status).toBe(201)
    expect((await send('GET', '/articles/1', { headers: ada })).value).toEqual({ id: 1, ...article })
    expect((await send('PUT', '/articles/1', { headers: ada, json: article })).status).toBe(204)
  })
})

describe('examples/recipes/client-ids.mjs', () => {
  const fresh = { 'If-None-Match': '*' }
  const json = { title: 'Engines' }

  it('creates once under a UUID of the client: the second PUT with If-None-Match: * is 412', async () => {
    const { send } = await startRecipe('client-ids.mjs')
    const path = `/notes/${crypto.randomUUID()}`
    const created = await send('PUT', path, { headers: fresh, json })
    expect([created.status, created.headers.get('location')]).toEqual([201, path])
    expect((await send('PUT', path, { headers: fresh, json: { title: 'Other' } })).status).toBe(412)
    expect((await send('GET', path)).value).toEqual({ id: path.slice(7), ...json })
    expect((await send('PUT', '/notes/7', { headers: fresh, json })).status).toBe(404)
    expect((await send('POST', '/notes', { json })).headers.get('location')).toMatch(/^\/notes\/[\da-f-]{36}$/)
  })

  it('creates under a name of the client, and replaces only with a condition', async () => {
    const { send } = await startRecipe('client-ids.mjs')
    expect((await send('PUT', '/pages/about-us', { headers: fresh, json })).status).toBe(201)
    expect((await send('PUT', '/pages/about-us', { json })).status).toBe(428)
    const tag = (await send('GET', '/pages/about-us')).headers.get('etag')!
    expect((await send('PUT', '/pages/about-us', { headers: { 'If-Match': tag }, json })).status).toBe(204)
    expect((await send('GET', '/pages')).value).toEqual([{ id: 'about-us', ...json }])
  })
})
