import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { ADMIN, JSON_TYPE, jsonOf, MERGE_PATCH, startDemo, startService, type Target, USER } from './support.ts'

let demo: Target
beforeAll(async () => {
  demo = await startDemo()
})
afterAll(() => demo.close())

describe('the answer to a write that is refused', () => {
  it('is a problem document with type, title and status, and names the faults (rows E1 to E5, E7, H184)', async () => {
    const answer = await demo.send('POST', '/users', jsonOf({ name: '', email: 'x' }))
    expect([answer.status, answer.field('content-type'), answer.field('cache-control')]).toEqual([
      422,
      'application/problem+json',
      'no-store',
    ])
    const problem = answer.json()
    expect(problem).toMatchObject({ title: 'Unprocessable Entity', status: 422 })
    expect(new URL(problem.type).protocol).toBe('urn:')
    for (const error of problem.errors) expect(Object.keys(error)).toEqual(['pointer', 'detail'])
    for (const name of Object.keys(problem)) expect(name).toMatch(/^[A-Za-z]\w{2,}$/)
  })

  it('is text where the client takes no JSON (row E10)', async () => {
    const answer = await demo.send('POST', '/users', { fields: { ...JSON_TYPE, Accept: 'text/plain' }, body: '{' })
    expect([answer.status, answer.field('content-type')]).toEqual([400, 'text/plain; charset=utf-8'])
  })

  it('repeats nothing of what was sent (row E8, threat 66, I6)', async () => {
    const secret = 'hunter2'
    const requests = [
      ['POST', '/users', JSON_TYPE, `{"a":"${secret}`],
      ['POST', '/users', JSON_TYPE, `{"${secret}":1,"${secret}":2}`],
      ['PUT', '/docs/x', JSON_TYPE, `${secret}`],
      ['PATCH', '/config/app', { 'Content-Type': 'application/json-patch+json' }, `[{"op":"${secret}","path":"/a"}]`],
      [
        'PATCH',
        '/config/app',
        { 'Content-Type': 'application/json-patch+json' },
        `[{"op":"test","path":"/port","value":"${secret}"}]`,
      ],
      ['PATCH', '/config/app', MERGE_PATCH, `{"port":"${secret}"}`],
      ['POST', '/jobs', { 'Content-Type': 'application/x-www-form-urlencoded' }, `name=x&pri=${secret}`],
      ['POST', '/users', { 'Content-Type': `text/${secret}x; a` }, '{}'],
      ['DELETE', '/users/1', { Authorization: `Bearer ${secret}` }, ''],
      ['DELETE', '/users/1', { Authorization: `Basic ${btoa(`demo:${secret}`)}` }, ''],
    ] as const
    for (const [method, path, fields, body] of requests) {
      const answer = await demo.send(method, path, { fields, body })
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(answer.status).toBeLessThan(500)
      expect(`${JSON.stringify(answer.fields)}${answer.text}`).not.toContain(secret)
    }
  })
})

describe('a store that fails', () => {
  const failures: readonly (readonly [code: string | undefined, status: number])[] = [
    [undefined, 500],
    ['ENOSPC', 507],
    ['EMFILE', 503],
  ]
  it.each(failures)(
    'with %s means %i, says nothing of the reason, and has changed nothing (rows H180, H181, E5, threat 140)',
    async (code, status) => {
      const store = memoryStore()
      let isBroken = false
      const fail = (): never => {
        throw Object.assign(new Error('secret path /var/lib/store'), { code })
      }
      const broken: ResourceStore = {
        ...store,
        write: (...args) => (isBroken ? fail() : store.write(...args)),
        create: async (...args) => (isBroken ? fail() : store.create(...args)),
        remove: (...args) => (isBroken ? fail() : store.remove(...args)),
        stage: async (...args) => (isBroken ? fail() : store.stage!(...args)),
      }
      const errors: unknown[] = []
      const target = await startService({ onError: (error) => errors.push(error) }, broken)
      await target.send('PUT', '/a', jsonOf({ a: 1 }))
      const before = await target.send('GET', '/a')
      isBroken = true
      const answers = [
        await target.send('PUT', '/a', jsonOf({ a: 2 })),
        await target.send('PUT', '/a', { fields: { 'If-Match': before.field('etag')! }, body: 'x'.repeat(100_000) }),
        await target.send('PATCH', '/a', jsonOf({ a: 2 }, MERGE_PATCH)),
        await target.send('POST', '/c', jsonOf({ a: 2 })),
        await target.send('DELETE', '/a'),
      ]
      for (const answer of answers) {
        expect([answer.status, answer.text.includes('secret')]).toEqual([status, false])
        if (status === 503) expect(answer.field('retry-after')).toMatch(/^\d+$/)
      }
      expect(errors).toHaveLength(answers.length)
      isBroken = false
      const after = await target.send('GET', '/a')
      expect([after.text, after.field('etag')]).toEqual([before.text, before.field('etag')])
      await target.close()
    },
  )

  it('in the middle of a stream leaves the old content (threat 140)', async () => {
    const store = memoryStore()
    const target = await startService(
      { onError: () => {} },
      {
        ...store,
        write(path, content, options) {
          const { body } = content
          if (typeof body === 'string' || body instanceof Uint8Array || 'staged' in body)
            return store.write(path, content, options)
          async function* cut(stream: AsyncIterable<Uint8Array>) {
            for await (const chunk of stream) {
              yield chunk
              throw new Error('The disk is gone.')
            }
          }
          return store.write(path, { ...content, body: cut(body) }, options)
        },
      },
    )
    await target.send('PUT', '/a', { body: 'old' })
    expect((await target.send('PUT', '/a', { body: 'x'.repeat(300_000) })).status).toBe(500)
    expect((await target.send('GET', '/a')).text).toBe('old')
    await target.close()
  })
})

describe('X-HTTP-Method-Override, where it is enabled', () => {
  it('turns POST into PUT, PATCH or DELETE, and nothing else into anything (row H75, threat 113, interface OPTIONS 7)', async () => {
    const target = await startService({ methodOverride: true })
    const override = (method: string): Record<string, string> => ({ 'X-HTTP-Method-Override': method })
    const put = await target.send('POST', '/a/x', jsonOf({ a: 1 }, override('PUT')))
    expect([put.status, put.field('location')]).toEqual([201, '/a/x'])
    const patch = await target.send('POST', '/a/x', jsonOf({ b: 2 }, { ...MERGE_PATCH, ...override('PATCH') }))
    expect([patch.status, patch.json()]).toEqual([200, { a: 1, b: 2 }])
    expect((await target.send('GET', '/a/x', { fields: override('DELETE') })).status).toBe(200)
    for (const method of ['TRACE', 'GET', 'POST', 'delete, put', '', 'CONNECT']) {
      expect([method, (await target.send('POST', '/a/x', { fields: override(method) })).status]).toEqual([method, 400])
    }
    const twice = [...Object.entries(override('DELETE')), ...Object.entries(override('DELETE'))]
    expect((await target.send('POST', '/a/x', { fields: twice })).status).toBe(400)
    expect((await target.send('GET', '/a/x')).json()).toEqual({ a: 1, b: 2 })
    expect((await target.send('POST', '/a/x', { fields: override('DELETE') })).status).toBe(204)
    expect((await target.send('GET', '/a/x')).status).toBe(410)
    await target.close()
  })
})

describe('the order of decisions on a write (section 17)', () => {
  it.each([
    ['400 target before 401', 'DELETE', '/users/%zz', {}, 400],
    ['414 before 401', 'DELETE', `/users/${'1'.repeat(2100)}`, {}, 414],
    ['501 before 404', 'PROPFIND', '/nowhere', {}, 501],
    ['404 route before 405', 'POST', '/nowhere', {}, 404],
    ['405 before 401', 'DELETE', '/users', {}, 405],
    ['405 before 415', 'PUT', '/users', { 'Content-Type': 'x/y' }, 405],
    ['401 before 404', 'DELETE', '/users/404', {}, 401],
    ['401 before 412', 'DELETE', '/users/1', { 'If-Match': '"x"' }, 401],
    ['401 before 415', 'PUT', '/users/1?deleted=true', { 'Content-Type': 'x/y' }, 401],
    ['415 before 404', 'PATCH', '/users/404', { 'Content-Type': 'x/y' }, 415],
    ['415 before 412', 'PUT', '/users/1', { 'Content-Type': 'x/y', 'If-Match': '"x"' }, 415],
    ['413 before 404', 'PATCH', '/users/404', { ...MERGE_PATCH, 'Content-Length': '99999999' }, 413],
    ['413 before 412', 'PUT', '/users/1', { ...JSON_TYPE, 'Content-Length': '99999999', 'If-Match': '"x"' }, 413],
    ['415 before 413', 'PUT', '/users/1', { 'Content-Type': 'x/y', 'Content-Length': '99999999' }, 415],
    ['400 Content-Range before 412', 'PUT', '/docs/a', { 'Content-Range': 'bytes 0-1/2', 'If-Match': '"x"' }, 400],
    ['404 before 428', 'DELETE', '/strict/none', ADMIN, 404],
    ['404 before 412', 'DELETE', '/users/404', { ...ADMIN, 'If-Match': '"x"' }, 404],
    ['428 before 400 content', 'PUT', '/strict/a', JSON_TYPE, 428],
    ['412 before 400 content', 'PUT', '/users/1', { ...JSON_TYPE, 'If-Match': '"x"' }, 412],
  ] as const)('%s', async (_order, method, path, fields, status) => {
    await demo.send('PUT', '/users/1', jsonOf(USER))
    await demo.send('PUT', '/strict/a', { fields: { 'If-None-Match': '*' }, body: 'x' })
    const hasLength = 'Content-Length' in fields
    const answer = await demo.send(method, path, hasLength ? { fields } : { fields, body: '{' })
    expect(answer.status).toBe(status)
  })
})
