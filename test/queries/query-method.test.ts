import { createHash } from 'node:crypto'
import { METHODS } from 'node:http'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import type { RequestView } from '../../src/core/request-view.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { serve } from '../service/serve.ts'
import { hosts, type RunningHost, startHost } from '../support/hosts.ts'
import { idsOf, JSON_TYPE, linkOf, QUERY, serveTasks } from './tasks.ts'

const FORM = 'Content-Type: application/x-www-form-urlencoded'

describe('QUERY (RFC 10008)', () => {
  it('answers as GET does with the same parameters in its target, and says where that is', async () => {
    const { send } = await serveTasks()
    for (const query of ['status=open&sort=-priority', 'dueAt[gte]=2026-01-01T23:00:00Z&count=true', 'limit=2', '']) {
      const [got, queried] = [await send('GET', `/tasks?${query}`), await send('QUERY', '/tasks', [FORM], query)]
      expect([queried.status, queried.text]).toEqual([200, got.text])
      expect(queried.field('ETag')).toBe(got.field('ETag'))
      expect(queried.field('X-Total-Count')).toBe(got.field('X-Total-Count'))
      expect(queried.field('Link')).toBe(got.field('Link'))
      expect(queried.field('Cache-Control')).toBe('no-store')
      expect((await send('GET', queried.field('Location')!)).text).toBe(got.text)
    }
    const encoded = await send('QUERY', '/tasks', [FORM], 'status=%C3%B6pen')
    expect([idsOf(encoded.text), encoded.field('Location')]).toEqual([[5], '/tasks?status=%C3%B6pen'])
    expect(idsOf((await send('QUERY', '/tasks', [FORM], 'status=öpen')).text)).toEqual([5])
    // The target may have a part of the parameters.
    expect(idsOf((await send('QUERY', '/tasks?sort=-priority', [FORM], 'status=open')).text)).toEqual([1, 3])
    expect((await send('QUERY', '/tasks?limit=1', [FORM], 'limit=2')).status).toBe(400)
  })

  it('says where each page is, not where the first one is', async () => {
    const { send } = await serveTasks()
    const first = await send('QUERY', '/tasks', [FORM], 'sort=priority&limit=2')
    const next = linkOf(first.field('Link'), 'next')!
    const second = await send('QUERY', '/tasks', [FORM], next.slice(next.indexOf('?') + 1))
    expect([idsOf(first.text), idsOf(second.text)]).toEqual([
      [5, 2],
      [3, 4],
    ])
    expect((await send('GET', second.field('Location')!)).text).toBe(second.text)
  })

  it('says where the same GET is while its target is not longer than maxTargetLength', async () => {
    const { send } = await serveTasks({}, { maxTargetLength: 60 })
    const places: unknown[] = []
    for (const length of [60, 61]) {
      const query = 'status='.padEnd(length - '/tasks?'.length, 'x')
      places.push((await send('QUERY', '/tasks', [FORM], query)).field('Location')?.length)
    }
    expect(places).toEqual([60, undefined])
  })

  it('has 304, and a tag that changes with the query', async () => {
    const { send } = await serveTasks()
    const tag = (await send('QUERY', '/tasks', [FORM], 'status=x')).field('ETag')
    const same = await send('QUERY', '/tasks', [FORM, `If-None-Match: ${tag}`], 'status=x')
    // The fields of the 200 (RFC 9110 §15.4.5): a cache that stored the response would answer another QUERY with it.
    expect([same.status, same.field('ETag'), same.field('Cache-Control')]).toEqual([304, tag, 'no-store'])
    expect((await send('QUERY', '/tasks', [FORM, `If-None-Match: ${tag}`], 'status=y')).status).toBe(200)
    expect((await send('QUERY', '/tasks', [FORM, 'If-Match: "z"'], 'status=y')).status).toBe(412)
  })

  it('needs a content type that it knows', async () => {
    const { send } = await serveTasks()
    expect((await send('QUERY', '/tasks', [], 'status=x')).status).toBe(400)
    const other = await send('QUERY', '/tasks', [JSON_TYPE], '{}')
    expect([other.status, other.field('Accept-Query')]).toEqual([415, 'application/x-www-form-urlencoded'])
    expect((await send('QUERY', '/tasks', [FORM, 'Content-Encoding: zstd'], 'x')).status).toBe(415)
    expect((await send('QUERY', '/tasks', [`${FORM}; charset=iso-8859-1`], 'status=x')).status).toBe(415)
    expect((await send('QUERY', '/tasks', [`${FORM}; charset=UTF-8`], 'status=x')).status).toBe(200)
    expect((await send('QUERY', '/tasks', [FORM], Buffer.from('status=\xff', 'latin1'))).status).toBe(400)
    expect((await send('QUERY', '/tasks', [FORM], `status=${'x'.repeat(64 * 1024)}`)).status).toBe(413)
    const wrong = await send('QUERY', '/tasks', [FORM], 'stauts=x')
    expect([wrong.status, JSON.parse(wrong.text).errors[0].parameter]).toEqual([400, 'stauts'])
  })

  it('is no longer than the service takes content: limits.bodySize, where that is below 64 KiB', async () => {
    const { send } = await serveTasks({}, { limits: { bodySize: 200 } })
    const query = `status=${'x'.repeat(193)}`
    expect((await send('QUERY', '/tasks', [FORM], query)).status).toBe(200)
    const refused = await send('QUERY', '/tasks', [FORM], `${query}x`)
    expect([refused.status, refused.text]).toEqual([413, expect.stringContaining('200 bytes')])
  })

  it.each([
    ['broken escapes', '%&'],
    ['parameters that are not defined', 'x&'],
  ])('reads no more of 64 KiB of %s than is needed to refuse them', async (_, parameter) => {
    const { send } = await serveTasks()
    const decode = vi.spyOn(globalThis, 'decodeURIComponent')
    onTestFinished(() => decode.mockRestore())
    const refused = await send('QUERY', '/tasks', [FORM], parameter.repeat(32_000))
    expect(refused.status).toBe(400)
    expect(decode.mock.calls.length).toBeLessThan(100)
  })

  it('is announced by Accept-Query and Allow where lists take queries, 405 elsewhere, and 501 where no list does', async () => {
    const { send } = await serve(memoryStore(), {
      resources: {
        '/tasks': collection({ query: QUERY }),
        '/plain': collection(),
        '/write': collection({ query: QUERY, methods: ['POST'] }),
      },
    })
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      expect((await send(method, '/tasks')).field('Accept-Query')).toBe('application/x-www-form-urlencoded')
      expect((await send(method, '/plain')).field('Accept-Query')).toBeUndefined()
    }
    expect((await send('OPTIONS', '/tasks')).field('Allow')).toBe('GET, HEAD, QUERY, POST, OPTIONS')
    expect((await send('OPTIONS', '*')).field('Allow')).toContain('QUERY')
    const refused = await send('QUERY', '/plain', [FORM], '')
    expect([refused.status, refused.field('Allow')]).toEqual([405, 'GET, HEAD, POST, OPTIONS'])
    expect((await send('QUERY', '/write', [FORM], '')).status).toBe(405)
    expect((await send('QUERY', '/tasks/1', [FORM], '')).status).toBe(405)
    expect((await send('QUERY', '/nothing', [FORM], '')).status).toBe(404)
    const without = await serve(memoryStore(), { resources: { '/plain': collection() } })
    expect((await without.send('QUERY', '/plain', [FORM], '')).status).toBe(501)
    expect((await without.send('OPTIONS', '*')).field('Allow')).not.toContain('QUERY')
  })

  it('is safe: no cross-site refusal, and no credentials where writes alone need them; but it is preflighted', async () => {
    const { send } = await serve(memoryStore(), {
      resources: { '/tasks': collection({ query: QUERY, count: true }), '/docs/{name}': document() },
      auth: { schemes: [basic({ realm: 'r', accounts: { ada: 'ada' } })], requireAuth: 'writes' },
      cors: { origins: ['https://app.test'] },
    })
    expect((await send('QUERY', '/tasks', [FORM], '')).status).toBe(200)
    const credentials = `Authorization: Basic ${btoa('ada:ada')}`
    const foreign = await send(
      'QUERY',
      '/tasks',
      [FORM, credentials, 'Origin: https://evil.test', 'Sec-Fetch-Site: cross-site'],
      '',
    )
    expect([foreign.status, foreign.field('Access-Control-Allow-Origin')]).toEqual([200, undefined])
    const preflight = await send('OPTIONS', '/tasks', [
      'Origin: https://app.test',
      'Access-Control-Request-Method: QUERY',
    ])
    expect(preflight.field('Access-Control-Allow-Methods')).toBe('GET, HEAD, QUERY, POST')
    const granted = await send('QUERY', '/tasks', [FORM, 'Origin: https://app.test'], 'count=true')
    expect(granted.field('Access-Control-Expose-Headers')).toMatch(/X-Total-Count, Accept-Query$/)
    const counted = await serve(memoryStore(), {
      resources: { '/tasks': collection({ count: true }) },
      cors: { origins: ['https://app.test'] },
    })
    const answer = await counted.send('GET', '/tasks', ['Origin: https://app.test'])
    expect(answer.field('Accept-Query')).toBeDefined()
    expect(answer.field('Access-Control-Expose-Headers')).toMatch(/X-Total-Count, Accept-Query$/)
    const list = await send('GET', '/tasks', ['Origin: https://app.test'])
    expect(list.field('Access-Control-Expose-Headers')).toContain('X-Total-Count')
  })

  it('is refused as other requests are: digests, credentials, rights, cleartext and Accept', async () => {
    const { send } = await serve(memoryStore(), {
      resources: {
        '/tasks': collection({
          query: QUERY,
          authorize: (principal, { method }) => (method !== 'QUERY' ? true : principal?.id === 'bob' && 'not-found'),
        }),
        '/open': collection({ query: QUERY, authorize: () => true, requireAuth: 'none' }),
      },
      auth: { schemes: [basic({ realm: 'r', accounts: { ada: 'ada', bob: 'bob' } })] },
    })
    const credentials = (user: string) => `Authorization: Basic ${btoa(`${user}:${user}`)}`
    for (const [status, code, target, fields] of [
      [401, 'unauthenticated', '/tasks', []],
      [403, 'forbidden', '/tasks', [credentials('ada')]],
      [404, 'not-found', '/tasks', [credentials('bob')]],
      [403, 'cleartext', '/open', ['X-Forwarded-Proto: https']],
      [406, 'not-acceptable', '/open', ['Accept: image/png']],
      [400, 'digest-invalid-values', '/open', ['Content-Digest: sha-256=:AAAA:']],
      [400, 'digest-mismatched-values', '/open', [`Content-Digest: sha-256=:${'A'.repeat(43)}=:`]],
    ] as const) {
      const answer = await send('QUERY', target, [FORM, ...fields], 'status=x')
      expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(`${code}"`)])
    }
  })

  it('asks in its target for what is softly deleted, where requireAuth and authorize see it', async () => {
    const asks = ({ query }: RequestView) => query.get('deleted') === 'true'
    const { send } = await serve(memoryStore(), {
      resources: {
        '/notes': collection({
          deletion: 'soft',
          query: { ssn: { type: 'string', sensitive: true } },
          requireAuth: asks,
          authorize: (principal, request) => !asks(request) || principal?.id === 'ada',
        }),
      },
      auth: { schemes: [basic({ accounts: { ada: 'ada', bob: 'bob' } })] },
    })
    for (const ssn of ['1', '2']) {
      await send('POST', '/notes', [JSON_TYPE], JSON.stringify({ ssn }))
      await send('DELETE', `/notes/${ssn}`)
    }
    const as = (user: string) => [FORM, `Authorization: Basic ${btoa(`${user}:${user}`)}`]
    const refused = await send('QUERY', '/notes', as('ada'), 'deleted=true')
    expect([refused.status, JSON.parse(refused.text).errors]).toEqual([
      400,
      [{ parameter: 'deleted', detail: expect.stringContaining('in the target') }],
    ])
    expect((await send('QUERY', '/notes?deleted=true', [FORM], '')).status).toBe(401)
    expect((await send('QUERY', '/notes?deleted=true', as('bob'), '')).status).toBe(403)
    const page = await send('QUERY', '/notes?deleted=true', as('ada'), 'sort=ssn&limit=1')
    const next = await send('QUERY', linkOf(page.field('Link'), 'next')!, as('ada'), 'sort=ssn&limit=1')
    expect([...idsOf(page.text), ...idsOf(next.text)]).toEqual([1, 2])
    // The cursor is one of that list alone.
    const other = linkOf(page.field('Link'), 'next')!.replace('deleted=true', 'deleted=false')
    expect((await send('QUERY', other, as('ada'), 'sort=ssn&limit=1')).status).toBe(400)
  })

  it('takes what must not be in a target, and does not say it there', async () => {
    const { send } = await serve(memoryStore(), {
      resources: { '/people': collection({ query: { ssn: { type: 'string', sensitive: true }, city: 'string' } }) },
    })
    for (const [ssn, city] of [
      ['1', 'a'],
      ['2', 'a'],
      ['3', 'b'],
    ]) {
      await send('POST', '/people', [JSON_TYPE], JSON.stringify({ ssn, city }))
    }
    for (const query of ['ssn=1', 'ssn[exists]=true', 'sort=ssn', 'city=a&ssn[ne]=1']) {
      const answer = await send('GET', `/people?${query}`)
      expect([answer.status, JSON.parse(answer.text).errors]).toEqual([
        400,
        [{ parameter: 'ssn', detail: expect.stringContaining('QUERY') }],
      ])
      expect((await send('QUERY', `/people?${query}`, [FORM], '')).status).toBe(400)
      const queried = await send('QUERY', '/people', [FORM], query)
      expect([queried.status, queried.field('Location')]).toEqual([200, undefined])
    }
    const seen: number[] = []
    let after = ''
    do {
      const page = await send('QUERY', '/people', [FORM], `sort=-ssn&limit=1${after}`)
      seen.push(...idsOf(page.text))
      const next = linkOf(page.field('Link'), 'next')
      if (next === undefined) break
      const cursor = new URL(next, 'http://demo.test').searchParams.get('after')!
      expect(next).toBe(`/people?after=${cursor}`)
      expect(Buffer.from(cursor, 'base64url').toString()).not.toMatch(/"[123]"/)
      // The target of the link takes the same content.
      expect((await send('QUERY', next, [FORM], 'sort=-ssn&limit=1')).status).toBe(200)
      after = `&after=${cursor}`
    } while (seen.length < 9)
    expect(seen).toEqual([3, 2, 1])
  })

  it('keeps what its target has in the target of the next page', async () => {
    const query = { ssn: { type: 'string', sensitive: true }, city: 'string' } as const
    const { send } = await serve(memoryStore(), { resources: { '/people': collection({ query, count: true }) } })
    for (const city of ['a', 'b', 'a', 'a']) {
      await send('POST', '/people', [JSON_TYPE], JSON.stringify({ ssn: '1', city }))
    }
    const pages: unknown[] = []
    let target: string | undefined = '/people?city=a&limit=1&count=true&sort=-city'
    while (target !== undefined && pages.length < 9) {
      const page = await send('QUERY', target, [FORM], 'ssn=1')
      pages.push([page.status, idsOf(page.text), page.field('X-Total-Count')])
      target = linkOf(page.field('Link'), 'next')
    }
    expect(pages).toEqual([1, 3, 4].map((id) => [200, [id], '3']))
  })

  it('puts nothing into a target by which a sensitive value could be guessed', async () => {
    const { send } = await serve(memoryStore(), {
      resources: { '/people': collection({ query: { ssn: { type: 'string', sensitive: true } } }) },
    })
    for (const ssn of ['1', '1', '2', '2']) await send('POST', '/people', [JSON_TYPE], JSON.stringify({ ssn }))
    const page = await send('QUERY', '/people', [FORM], 'ssn=1&limit=1')
    const next = linkOf(page.field('Link'), 'next')!
    const cursor = Buffer.from(new URL(next, 'http://demo.test').searchParams.get('after')!, 'base64url')
    // All that a plain cursor is bound to could be tried out by who reads the logs.
    const guess = JSON.stringify([[{ property: 'ssn', operator: 'in', values: ['1'] }], [], false])
    expect(cursor.includes(createHash('sha256').update(guess).digest().subarray(0, 12))).toBe(false)
    expect(idsOf((await send('QUERY', next, [FORM], 'ssn=1&limit=1')).text)).toEqual([2])
    expect((await send('QUERY', next, [FORM], 'ssn=2&limit=1')).status).toBe(400)
    const bare = Buffer.concat([cursor.subarray(0, 12), Buffer.from('1')]).toString('base64url')
    expect((await send('QUERY', `/people?after=${bare}`, [FORM], 'ssn=1')).status).toBe(400)
  })

  it('takes a query that is too long for a target, page after page', async () => {
    const { send } = await serveTasks({}, { maxTargetLength: 200 })
    const query = `${Array.from({ length: 7 }, (_, i) => `status=${'v'.repeat(20)}${i}`).join('&')}&status=open&limit=1`
    expect((await send('GET', `/tasks?${query}`)).status).toBe(414)
    const first = await send('QUERY', '/tasks', [FORM], query)
    expect([idsOf(first.text), first.field('Location')]).toEqual([[1], undefined])
    const next = linkOf(first.field('Link'), 'next')!
    const second = await send('QUERY', next, [FORM], query)
    expect([idsOf(second.text), second.field('Link')]).toEqual([[3], undefined])
  })
})

describe.each(Object.keys(hosts))('QUERY on %s', (name) => {
  let host: RunningHost
  const service = createResourceService(memoryStore(), { resources: { '/tasks': collection({ query: QUERY }) } })
  beforeAll(async () => {
    host = await startHost(name, service, '/api')
  })
  afterAll(() => Promise.all([host.close(), service.close()]))

  it('is passed to the service', async () => {
    expect(METHODS).toContain('QUERY')
    const headers = { 'content-type': 'application/json' }
    await host.send({ method: 'POST', path: '/api/tasks', headers, body: '{"status":"open"}' })
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await host.send({ method: 'QUERY', path: '/api/tasks', headers: form, body: 'status[prefix]=o' })
    expect([answer.status, answer.body.toString()]).toEqual([200, '[{"id":1,"status":"open"}]'])
    expect(answer.headers['location']).toBe('/api/tasks?status%5Bprefix%5D=o')
  })
})
