import { afterEach, describe, expect, it } from 'vitest'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { STORES } from '../hooks/stores.ts'
import { jsonOf, multipartOf, startService, type Target } from './support.ts'

let target: Target
afterEach(() => target.close())

const ADMIN = { 'X-User': 'admin' }
const adminsOnly = {
  authorize: (_: unknown, { method, headers }: { method: string; headers: Record<string, unknown> }) =>
    method === 'GET' || headers['x-user'] === 'admin',
}
const json = document({ types: ['application/json'], ...adminsOnly })
const fileOf = (name: string) =>
  multipartOf([{ name, filename: 'a.json', type: 'application/json', content: '{"verdict":"good"}' }])

describe.each(Object.entries(STORES))(
  'paths below a collection that have another definition, on %s',
  (_, createStore) => {
    const serve = async (resources: NonNullable<ServiceOptions['resources']>): Promise<void> => {
      target = await startService({ resources }, createStore())
    }

    it('are not written by a file of a form', async () => {
      await serve({
        '/uploads': collection({ create: 'accepted' }),
        '/uploads/{upload}/verdict': json,
        '/uploads/{upload}/comments': collection({ parent: true }),
      })
      for (const name of ['verdict', 'comments']) {
        const answer = await target.send('POST', '/uploads', fileOf(name))
        expect([answer.status, answer.json().errors[0].pointer]).toEqual([422, `/${name}`])
      }
      expect((await target.send('GET', '/uploads')).json()).toEqual([])
      expect((await target.send('POST', '/uploads', fileOf('scan'))).status).toBe(202)
    })

    it('are not removed with an item that may have a file of their name', async () => {
      await serve({ '/notes': collection({ files: { file: {} } }), '/notes/7/file': document() })
      expect((await target.send('PUT', '/notes/7', jsonOf({}))).status).toBe(201)
      expect((await target.send('PUT', '/notes/7/file', jsonOf({ own: true }))).status).toBe(201)
      expect((await target.send('DELETE', '/notes/7')).status).toBe(204)
      expect((await target.send('GET', '/notes/7/file')).text).toBe('{"own":true}')
    })

    it('are not removed with an item as if they were its files', async () => {
      await serve({ '/uploads': collection({ create: 'accepted' }), '/uploads/{upload}/verdict': json })
      const path = (await target.send('POST', '/uploads', fileOf('scan'))).field('location')!
      expect((await target.send('PUT', `${path}/verdict`, jsonOf({ verdict: 'bad' }, ADMIN))).status).toBe(201)
      expect((await target.send('DELETE', path)).status).toBe(204)
      expect((await target.send('GET', `${path}/scan`)).status).toBe(410)
      expect((await target.send('GET', `${path}/verdict`)).json()).toEqual({ verdict: 'bad' })
    })

    it('have no files of the collection: 404, and neither is written nor read', async () => {
      const files = { photo: { replaceable: true } }
      await serve({ '/items': collection({ clientIds: true, files }), '/items/7': json })
      const photo = { fields: { 'Content-Type': 'image/png' }, body: 'png' }
      for (const path of ['/items/7', '/items/8']) {
        expect((await target.send('PUT', path, jsonOf({ verdict: 'bad' }, ADMIN))).status).toBe(201)
      }
      expect((await target.send('PUT', '/items/8/photo', photo)).status).toBe(201)
      expect((await target.send('PUT', '/items/7/photo', photo)).status).toBe(404)
      expect((await target.send('GET', '/items/7')).json()).toEqual({ verdict: 'bad' })
      await target.store.write('/items/7/photo', { contentType: 'image/png', body: 'png' }, { expect: 'any' })
      expect((await target.send('GET', '/items/7/photo')).status).toBe(404)
    })

    it('are not written by POST: 409, and nothing is stored', async () => {
      await serve({
        '/{kind}': collection({ ids: 'string' }),
        '/secrets/{id}': json,
        '/years': collection(),
        '/years/1': singleton(adminsOnly),
        '/texts': collection({ types: ['text/plain'] }),
        '/texts/1': json,
        '/tokens': collection({ ids: 'uuid' }),
      })
      const text = { fields: { 'Content-Type': 'text/plain' }, body: 'good' }
      for (const path of ['/secrets', '/years', '/texts']) {
        const answer = await target.send('POST', path, path === '/texts' ? text : jsonOf({ verdict: 'good' }))
        expect([path, answer.status]).toEqual([path, 409])
        expect((await target.send('GET', `${path}/1`)).status).toBe(404)
      }
      // The next item gets another name than the one that was refused.
      for (const path of ['/years', '/texts']) {
        const answer = await target.send('POST', path, path === '/texts' ? text : jsonOf({}))
        expect(answer.field('location')).toBe(`${path}/2`)
      }
      expect((await target.send('PUT', '/years/1', jsonOf({}, ADMIN))).status).toBe(201)
      expect((await target.send('POST', '/years', jsonOf({}))).field('location')).toBe('/years/3')
      expect((await target.send('POST', '/notes', jsonOf({}))).field('location')).toBe('/notes/1')
      expect((await target.send('POST', '/tokens', jsonOf({}))).status).toBe(201)
    })
  },
)
