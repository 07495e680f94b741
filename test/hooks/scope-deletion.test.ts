import { describe, expect, it } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { JSON_PATCH, jsonOf, waitFor } from '../writes/support.ts'
import { as, list, patchOf, scope, shown, start } from './scoped.ts'
import { STORES } from './stores.ts'

describe.each(Object.entries(STORES))('removal and restoration in a scope on %s', (_, createStore) => {
  it('finds restored items by what beforeWrite gave them last', async () => {
    const notes = collection({
      scope,
      deletion: 'soft',
      authorize: () => true,
      query: { step: 'string' },
      beforeWrite: (value, { kind }) => ({ ...(value as object), step: kind }) as never,
    })
    const target = await start(createStore(), { '/notes': notes })
    await target.send('POST', '/notes', jsonOf({ n: 1 }, as('ada')))
    await target.send('DELETE', '/notes/1', { fields: as('ada') })
    expect(await list(target, 'ada', '/notes?step=created')).toEqual([])
    expect(await list(target, 'ada', '/notes?step=created&deleted=true')).toHaveLength(1)
    expect(await list(target, 'bob', '/notes?deleted=true')).toEqual([])
    expect((await target.send('PUT', '/notes/1', jsonOf({ n: 2 }, as('bob')))).status).toBe(404)
    expect((await target.send('PUT', '/notes/1', jsonOf({ n: 2 }, as('ada')))).status).toBeLessThan(300)
    expect(await list(target, 'ada', '/notes?step=restored')).toEqual([{ id: 1, n: 2, step: 'restored', owner: 'ada' }])
    expect(await list(target, 'ada', '/notes?step=created')).toEqual([])
  })

  it('queues the removal of items in it only, and leaves no trace of it', async () => {
    const target = await start(createStore(), { '/notes': collection({ scope, deletion: 'queued' }) })
    await target.send('POST', '/notes', jsonOf({ n: 1 }, as('ada')))
    const [other, none] = [
      await target.send('DELETE', '/notes/1', { fields: as('bob') }),
      await target.send('DELETE', '/notes/9', { fields: as('bob') }),
    ]
    expect(shown(other, '/notes/1')).toEqual(shown(none, '/notes/9'))
    expect(other.status).toBe(404)
    expect((await target.send('DELETE', '/notes/1', { fields: as('ada') })).status).toBe(202)
    await waitFor(
      () => target.send('GET', '/notes/1', { fields: as('ada') }),
      ({ status }) => status !== 200,
    )
    const [gone, never] = [
      await target.send('GET', '/notes/1', { fields: as('ada') }),
      await target.send('GET', '/notes/9', { fields: as('ada') }),
    ]
    expect(shown(gone, '/notes/1')).toEqual(shown(never, '/notes/9'))
  })

  it('does not apply a patch, and checks no condition or digest, for an item of others', async () => {
    const target = await start(createStore(), { '/notes': collection({ scope, digests: 'optional' }) })
    const tag = (await target.send('POST', '/notes', jsonOf({ n: 1 }, as('ada')))).field('etag')!
    const test = (value: number) => ({
      fields: { ...JSON_PATCH, ...as('bob') },
      body: JSON.stringify([{ op: 'test', path: '/n', value }]),
    })
    const digest = { 'Content-Digest': 'sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:' }
    for (const options of [
      test(1),
      test(2),
      { ...patchOf('bob', { n: 2 }), fields: { ...patchOf('bob', {}).fields, 'If-Match': tag } },
      { ...patchOf('bob', { n: 2 }), fields: { ...patchOf('bob', {}).fields, 'If-None-Match': tag } },
      { ...patchOf('bob', { n: 2 }), fields: { ...patchOf('bob', {}).fields, ...digest } },
    ]) {
      const other = await target.send('PATCH', '/notes/1', options)
      expect(shown(other, '/notes/1')).toEqual(shown(await target.send('PATCH', '/notes/9', options), '/notes/9'))
      expect(other.status).toBe(404)
    }
  })

  it('holds beside a pattern with {path...}, which has rights of its own', async () => {
    const target = await start(createStore(), {
      '/notes': collection({ scope, authorize: (_, { method }) => method !== 'PATCH' }),
      '/{path...}': document({ authorize: (_, { path }) => !path.startsWith('/secret/') }),
    })
    await target.send('POST', '/notes', jsonOf({ n: 1 }, as('ada')))
    expect((await target.send('GET', '/notes/1', { fields: as('bob') })).status).toBe(404)
    expect((await target.send('PATCH', '/notes/1', patchOf('ada', { n: 2 }))).status).toBe(403)
    expect((await target.send('PUT', '/notes/1/deep/er', jsonOf({ d: 1 }, as('bob')))).status).toBe(201)
    expect((await target.send('PUT', '/secret/deep/er', jsonOf({ d: 1 }, as('bob')))).status).toBe(403)
    expect((await target.send('GET', '/secret/a%2Fb', { fields: as('bob') })).status).toBeGreaterThan(399)
    expect(await list(target, 'ada', '/notes')).toEqual([{ id: 1, n: 1, owner: 'ada' }])
  })
})
