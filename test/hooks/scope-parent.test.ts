import { describe, expect, it } from 'vitest'
import { json } from '../../src/actions/hook-types.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { jsonOf } from '../writes/support.ts'
import { as, list, patchOf, png, scope, shown, start } from './scoped.ts'
import { STORES } from './stores.ts'

const parents = Object.entries(STORES).filter(([, create]) => create().supports?.parents === true)

describe.each(parents)('a scope beside parent: true on %s', (_, createStore) => {
  const resources = {
    '/notes': collection({ scope, clientIds: true, idempotency: 'optional', files: { photo: { replaceable: true } } }),
    '/notes/{note}/lines': collection({
      parent: true,
      idempotency: 'optional',
      files: { photo: { replaceable: true } },
    }),
    '/notes/{note}/marks': collection({
      parent: true,
      clientIds: true,
      scope: ({ headers }) => ({ by: headers['x-user'] as string }),
    }),
  }

  it('hides all that is below an item of others, in the same bytes as below none', async () => {
    const target = await start(createStore(), resources)
    await target.send('POST', '/notes', jsonOf({ n: 1 }, as('ada')))
    for (const below of ['lines', 'marks']) {
      expect((await target.send('POST', `/notes/1/${below}`, jsonOf({}, as('ada')))).status).toBe(201)
      const asked = async (path: string) => {
        const options = [
          ['GET', '', { fields: as('bob') }],
          ['POST', '', jsonOf({}, as('bob'))],
          ['GET', '/1', { fields: as('bob') }],
          ['GET', '/1', { fields: { ...as('bob'), 'If-None-Match': '*' } }],
          ['PUT', '/1', jsonOf({}, as('bob'))],
          ['PUT', '/1', jsonOf({}, { ...as('bob'), 'If-Match': '"x"' })],
          ['PATCH', '/1', patchOf('bob', {})],
          ['DELETE', '/1', { fields: as('bob') }],
          ['PUT', '/1/photo', png('bob', 'x')],
        ] as const
        const answers = []
        for (const [method, more, about] of options) {
          answers.push(shown(await target.send(method, `${path}${more}`, about), `${path}${more}`))
        }
        return answers
      }
      const others = await asked(`/notes/1/${below}`)
      expect(others.map(({ status }) => status)).toEqual(Array.from({ length: 9 }, () => 404))
      expect(others).toEqual(await asked(`/notes/9/${below}`))
    }
  })

  it('keeps all that is below an item of a caller out of shared caches, as it does the item (RFC 9111 §5.2.2.7)', async () => {
    const cacheControl = 'public, max-age=60'
    const target = await start(createStore(), {
      '/notes': collection({ scope, cacheControl }),
      '/notes/{note}/lines': collection({ parent: true, cacheControl, files: { photo: { replaceable: true } } }),
      '/notes/{note}/lines/{line}/words': collection({ parent: true, cacheControl }),
    })
    for (const path of ['/notes', '/notes/1/lines', '/notes/1/lines/1/words']) {
      expect((await target.send('POST', path, jsonOf({}, as('ada')))).status).toBe(201)
    }
    await target.send('PUT', '/notes/1/lines/1/photo', png('ada', 'x'))
    const line = '/notes/1/lines/1'
    for (const path of ['/notes/1', '/notes/1/lines', line, `${line}/photo`, `${line}/words`, `${line}/words/1`]) {
      for (const method of ['GET', 'HEAD']) {
        const answer = await target.send(method, path, { fields: as('ada') })
        expect([path, answer.status, answer.field('Cache-Control')]).toEqual([path, 200, 'private, max-age=60'])
      }
    }
  })

  it('names in an error the definition whose scope is wrong', async () => {
    const errors: string[] = []
    const onError = (error: unknown): void => void errors.push((error as Error).message)
    let isWrong = false
    const notes = collection({ scope: () => (isWrong ? { owner: Number.NaN } : { owner: 'ada' }) })
    const target = await start(
      createStore(),
      { '/notes': notes, '/notes/{note}/lines': collection({ parent: true }) },
      { onError },
    )
    await target.send('POST', '/notes', jsonOf({}))
    isWrong = true
    expect((await target.send('GET', '/notes/1/lines')).status).toBe(500)
    expect(errors).toEqual(['scope of /notes gives as owner text, a number or a boolean, not the number NaN.'])
  })

  it('is judged for the parent and for what is below it, each by its own', async () => {
    const target = await start(createStore(), resources)
    await target.send('POST', '/notes', jsonOf({ n: 1 }, as('ada')))
    await target.send('POST', '/notes/1/marks', jsonOf({ m: 1 }, as('ada')))
    await target.send('POST', '/notes/1/marks', jsonOf({ m: 2 }, as('boss')))
    await target.send('POST', '/notes/1/lines', jsonOf({ l: 1 }, as('boss')))
    expect(await list(target, 'ada', '/notes/1/marks')).toEqual([{ id: 1, m: 1, by: 'ada' }])
    expect(await list(target, 'boss', '/notes/1/marks')).toEqual([{ id: 2, m: 2, by: 'boss' }])
    expect(await list(target, 'ada', '/notes/1/lines')).toEqual([{ id: 1, l: 1 }])
    expect((await target.send('GET', '/notes/1/marks/2', { fields: as('ada') })).status).toBe(404)
  })

  it('that lacks a value does not tell which parents there are', async () => {
    const target = await start(createStore(), resources)
    await target.send('POST', '/notes', jsonOf({ n: 1 }, as('ada')))
    const [there, none] = [await target.send('GET', '/notes/1/lines'), await target.send('GET', '/notes/9/lines')]
    expect(shown(there, '/notes/1/lines')).toEqual(shown(none, '/notes/9/lines'))
    expect(there.status).toBe(404)
  })

  it('has a repetition answered 404 for those who may not see the parent, and once it has gone', async () => {
    const target = await start(createStore(), resources)
    const repeat = (user: string) =>
      target.send('POST', '/notes/1/lines', jsonOf({ l: 1 }, { ...as(user), 'Idempotency-Key': '"a-key-of-sixteen"' }))
    await target.send('PUT', '/notes/1', jsonOf({}, as('ada')))
    const [first, again] = [await repeat('ada'), await repeat('ada')]
    expect([first.status, again.status, again.field('idempotency-replayed')]).toEqual([201, 201, '?1'])
    expect((await repeat('bob')).status).toBe(404)
    await target.send('DELETE', '/notes/1', { fields: as('ada') })
    expect((await repeat('ada')).status).toBe(404)
    await target.send('PUT', '/notes/1', jsonOf({}, as('bob')))
    expect((await repeat('ada')).status).toBe(404)
    expect(await list(target, 'bob', '/notes/1/lines')).toEqual([])
  })

  it('takes what is below a parent, its outbox and the parent in one step, or none of it', async () => {
    const store = createStore()
    const changes: string[] = []
    let inTheWay = false
    const target = await start(store, {
      ...resources,
      '/notes': collection({
        scope,
        clientIds: true,
        outbox: ({ kind, eventId }) => [
          { path: inTheWay ? '/log/taken' : `/log/${eventId}`, content: json({ kind }), expect: 'absent' },
        ],
        afterCommit: ({ kind }) => void changes.push(kind),
      }),
    })
    await store.write('/log/taken', json({}), { expect: 'absent' })
    await target.send('PUT', '/notes/1', jsonOf({}, as('ada')))
    await target.send('POST', '/notes/1/lines', jsonOf({ l: 1 }, as('ada')))
    inTheWay = true
    expect((await target.send('DELETE', '/notes/1', { fields: as('ada') })).status).toBe(409)
    expect(await list(target, 'ada', '/notes/1/lines')).toEqual([{ id: 1, l: 1 }])
    inTheWay = false
    expect((await target.send('DELETE', '/notes/1', { fields: as('bob') })).status).toBe(404)
    expect((await target.send('DELETE', '/notes/1', { fields: as('ada') })).status).toBe(204)
    expect((await target.send('GET', '/notes/1/lines/1', { fields: as('boss') })).status).toBe(404)
    await target.send('PUT', '/notes/1', jsonOf({}, as('bob')))
    expect(await list(target, 'bob', '/notes/1/lines')).toEqual([])
    await target.service.close()
    expect(changes).toEqual(['created', 'deleted', 'created'])
    const { items } = await store.list('/log', { limit: 10 })
    expect(items).toHaveLength(4)
  })

  it('refuses an outbox that would leave something below a parent that is removed', async () => {
    const store = createStore()
    const target = await start(
      store,
      {
        ...resources,
        '/notes': collection({ outbox: ({ path, kind }) => [{ path: `${path}/lines/${kind}`, content: json({}) }] }),
      },
      { onError: () => undefined },
    )
    expect((await target.send('PUT', '/notes/1', jsonOf({}))).status).toBe(201)
    expect((await target.send('DELETE', '/notes/1')).status).toBe(500)
    expect((await target.send('GET', '/notes/1')).status).toBe(200)
    expect(await store.read('/notes/1/lines/deleted')).toBeUndefined()
  })
})
