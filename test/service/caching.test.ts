import { Agent, type Dispatcher, interceptors, request } from 'undici'
import { describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import type { RequestView } from '../../src/core/request-view.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { serve, serveFixtures } from './serve.ts'

const text = 'Content-Type: text/plain'
const json = 'Content-Type: application/json'
const ada = `Authorization: Basic ${btoa('ada:lovelace')}`
const schemes = [basic({ realm: 'test', accounts: { ada: 'lovelace' } })]

describe('Cache-Control (RFC 9111 §5.2)', () => {
  it('is on every answer: no-cache for reads, no-store for errors and for POST (rows C1, C6, C7, H184, I8)', async () => {
    const { send } = await serve(memoryStore(), { resources: { '/users': collection(), '/docs/{name}': document() } })
    const of = async (method: string, target: string, fields: readonly string[] = [], body?: string) =>
      (await send(method, target, fields, body)).field('Cache-Control')
    expect(await of('POST', '/users', [json], '{}')).toBe('no-store')
    expect(await of('GET', '/users')).toBe('no-cache')
    expect(await of('GET', '/users/1')).toBe('no-cache')
    expect(await of('HEAD', '/users/1')).toBe('no-cache')
    expect(await of('GET', '/users/1', ['If-None-Match: *'])).toBe('no-cache')
    expect(await of('GET', '/users/1', ['Range: bytes=0-1'])).toBe('no-cache, no-transform')
    expect(await of('OPTIONS', '/users/1')).toBe('no-cache')
    expect(await of('PUT', '/docs/a', [text], 'x')).toBe('no-cache')
    for (const [method, target] of [
      ['GET', '/users/9'],
      ['PUT', '/users'],
      ['PROPFIND', '/users'],
      ['GET', `/${'a'.repeat(3000)}`],
      ['GET', '/docs/%zz'],
    ] as const)
      expect(await of(method, target)).toBe('no-store')
    await send('DELETE', '/docs/a')
    expect(await of('GET', '/docs/a')).toBe('no-store')
  })

  it('has no Age, no Expires, no Pragma and no Warning beside it (rows C5, C11)', async () => {
    const { send } = await serveFixtures({ cacheControl: 'max-age=60' })
    const names = (await send('GET', '/docs/a.bin')).fields.map(([name]) => name)
    for (const name of ['age', 'expires', 'pragma', 'warning']) expect(names).not.toContain(name)
  })

  it.each([
    [undefined, 'private, no-cache'],
    ['no-cache', 'no-cache'],
    ['max-age=60', 'max-age=60'],
    ['public, max-age=60', 'public, max-age=60'],
    ['s-maxage=60', 's-maxage=60'],
    ['no-store', 'no-store'],
    ['private', 'private'],
    ['must-revalidate, max-age=60', 'private, must-revalidate, max-age=60'],
    ['max-age=60, immutable', 'max-age=60, immutable'],
  ])(
    '%s is sent as %s where the principal came from Authorization, which shared caches heed (RFC 9111 §3.5)',
    async (cacheControl, expected) => {
      const options: ServiceOptions = {
        ...(cacheControl === undefined ? {} : { cacheControl }),
        auth: { schemes, requireAuth: 'all' },
      }
      const { send } = await serveFixtures(options)
      const answer = await send('GET', '/docs/a.bin', [ada])
      expect([answer.field('Cache-Control'), answer.field('Vary')]).toEqual([expected, 'Authorization'])
      const refused = await send('GET', '/docs/a.bin')
      expect([refused.status, refused.field('Cache-Control'), refused.field('Vary')]).toEqual([
        401,
        'no-store',
        'Authorization',
      ])
    },
  )

  it('is private for optional credentials and not for anonymous requests, and Vary keeps the two apart (RFC 9111 §4.1)', async () => {
    const { send } = await serveFixtures({ auth: { schemes, requireAuth: 'writes' } })
    const mine = await send('GET', '/docs/a.bin', [ada])
    expect([mine.field('Cache-Control'), mine.field('Vary')]).toEqual(['private, no-cache', 'Authorization'])
    const anonymous = await send('GET', '/docs/a.bin')
    expect([anonymous.field('Cache-Control'), anonymous.field('Vary')]).toEqual(['no-cache', 'Authorization'])
  })
})

describe('what no cache takes into its key (threat 121)', () => {
  it.each([
    ...['X-Forwarded-Host: evil', 'X-Forwarded-Prefix: /evil', 'X-Original-URL: /x', 'X-Rewrite-URL: /x', 'Host: evil'],
    ...['X-HTTP-Method-Override: DELETE', 'X-HTTP-Method: PUT', 'Cookie: a=b', 'User-Agent: x', 'Referer: x', 'DNT: 1'],
    ...[
      'Accept-Language: fr',
      'Accept-Encoding: br',
      'Prefer: return=minimal',
      'TE: trailers',
      'Via: 1.1 x',
      'Save-Data: on',
    ],
  ])('%s changes nothing', async (field) => {
    const { send } = await serveFixtures()
    const plain = await send('GET', '/users/1')
    const answer = await send('GET', '/users/1', [field])
    expect(answer.fields.filter(([name]) => name !== 'date')).toEqual(plain.fields.filter(([name]) => name !== 'date'))
    expect(answer.text).toBe(plain.text)
  })
})

/** A shared cache in front of a service: what it passes on and what it answers itself. */
async function serveCached(options: ServiceOptions) {
  const seen: string[] = []
  const { port, send } = await serve(memoryStore(), {
    resources: {
      '/docs/{name}': document({ types: ['text/plain'], representations: [toUpper] }),
      '/plain/{name}': document(),
    },
    ...options,
    explain: (line) => seen.push(/^\w+ \S+ \d+/.exec(line)![0]),
  })
  for (const path of ['/docs/a', '/plain/a']) await send('PUT', path, [text, ada], 'one')
  seen.length = 0
  const agent = new Agent()
  const dispatcher = agent.compose(interceptors.cache({ type: 'shared', methods: ['GET', 'HEAD'] }))
  closeAfterTest(() => agent.close())
  const get = async (path: string, headers: Record<string, string> = {}, method: Dispatcher.HttpMethod = 'GET') => {
    const body = method === 'PUT' ? 'two' : null
    const type = body === null ? {} : { 'Content-Type': 'text/plain' }
    const url = `http://127.0.0.1:${port}${path}`
    const answer = await request(url, { dispatcher, method, headers: { ...type, ...headers }, body })
    return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() }
  }
  return { get, seen }
}

const toUpper = {
  type: 'text/csv',
  render: (content: Uint8Array) => Buffer.from(content).toString().toUpperCase(),
}

describe('accepted work', () => {
  it.each(['max-age=60', 'public, max-age=60'])('is not shown by caches while it goes on: %s', async (cacheControl) => {
    let finish = () => {}
    const work = new Promise<void>((resolve) => {
      finish = resolve
    })
    const resources = { '/jobs': collection({ create: 'accepted', process: () => work }) }
    const { send } = await serve(memoryStore(), { resources, cacheControl })
    await send('POST', '/jobs', [json], '{}')
    const see = async (...fields: string[]) => {
      const answer = await send('GET', '/jobs/1', fields)
      return [answer.status, answer.field('Cache-Control')]
    }
    const tag = (await send('GET', '/jobs/1')).field('ETag')
    expect(await see()).toEqual([200, 'no-cache'])
    expect(await see(`If-None-Match: ${tag}`)).toEqual([304, 'no-cache'])
    expect(await see('Range: bytes=0-1')).toEqual([206, 'no-cache, no-transform'])
    finish()
    await expect.poll(async () => (await send('GET', '/jobs/1')).json().state).toBe('ready')
    expect(await see()).toEqual([200, cacheControl])
  })
})

describe('a private cache (RFC 9111 §4.1)', () => {
  // Chromium sends the tag of a response that was for other credentials, and shows that response after a 304.
  it('never shows one user what a representation says to another', async () => {
    const accounts = { ada: 'lovelace', bob: 'builder' }
    const forUser = { type: 'text/csv', render: (_: Uint8Array, { principal }: RequestView) => `for ${principal?.id}` }
    const { send } = await serve(memoryStore(), {
      resources: { '/docs/{name}': document({ types: ['text/plain'], representations: [forUser] }) },
      auth: { schemes: [basic({ realm: 'test', accounts }), bearer((id) => ({ id }))], requireAuth: 'writes' },
    })
    const bob = `Authorization: Basic ${btoa('bob:builder')}`
    const csv = 'Accept: text/csv'
    await send('PUT', '/docs/a', [text, ada], 'one')
    const users = [
      ['for ada', [ada]],
      ['for bob', [bob]],
      // Another user, whom another scheme knows under the same name.
      ['for ada', ['Authorization: Bearer ada']],
      ['for undefined', []],
    ] as const
    const tags: string[] = []
    for (const [content, fields] of users) {
      const known = tags.length === 0 ? [] : [`If-None-Match: ${tags.join()}`]
      const answer = await send('GET', '/docs/a', [...fields, csv, ...known])
      expect([answer.status, answer.text]).toEqual([200, content])
      const tag = answer.field('ETag')!
      const again = await send('GET', '/docs/a', [...fields, csv, `If-None-Match: ${tag}`])
      expect([again.status, again.field('ETag')]).toEqual([304, tag])
      tags.push(tag)
    }
    // A write is about the state, which all representations share; of those for others a user knows no tag.
    const change = async (tag: string) => (await send('PUT', '/docs/a', [text, ada, `If-Match: ${tag}`], 'one')).status
    expect(await change(tags[1]!)).toBe(412)
    expect(await change(tags[0]!)).toBe(204)
    const read = await send('GET', '/docs/a', [csv])
    expect(await change(read.field('ETag')!)).toBe(204)
  })
})

describe('a shared cache in front (RFC 9111)', () => {
  it('asks again where it must, and gets 304 for what has not changed (row C9)', async () => {
    const { get, seen } = await serveCached({ cacheControl: 'max-age=60' })
    const reload = { 'Cache-Control': 'no-cache' }
    expect((await get('/plain/a')).text).toBe('one')
    expect((await get('/plain/a', reload)).text).toBe('one')
    expect((await get('/plain/a', {}, 'PUT')).status).toBe(204)
    expect((await get('/plain/a', reload)).text).toBe('two')
    expect(seen).toEqual(['GET /plain/a 200', 'GET /plain/a 304', 'PUT /plain/a 204', 'GET /plain/a 200'])
  })

  it('answers by itself while an answer is fresh', async () => {
    const { get, seen } = await serveCached({ cacheControl: 'max-age=60' })
    for (let i = 0; i < 3; i++) expect((await get('/plain/a')).text).toBe('one')
    expect(seen).toEqual(['GET /plain/a 200'])
  })

  it('never gives what one user got to another (row C2, threat 119)', async () => {
    const { get } = await serveCached({ cacheControl: 'max-age=60', auth: { schemes, requireAuth: 'all' } })
    const credentials = { Authorization: `Basic ${btoa('ada:lovelace')}` }
    expect((await get('/plain/a', credentials)).status).toBe(200)
    expect((await get('/plain/a')).status).toBe(401)
    expect((await get('/plain/a', credentials)).status).toBe(200)
  })

  it('never gives the answer for one origin to another (row X8)', async () => {
    const origins = ['https://a.example', 'https://b.example']
    const { get } = await serveCached({ cacheControl: 'max-age=60', cors: { origins } })
    expect((await get('/plain/a')).headers['access-control-allow-origin']).toBeUndefined()
    for (const origin of [...origins, ...origins])
      expect((await get('/plain/a', { Origin: origin })).headers['access-control-allow-origin']).toBe(origin)
    expect(
      (await get('/plain/a', { Origin: 'https://c.example' })).headers['access-control-allow-origin'],
    ).toBeUndefined()
  })

  it('keeps the representations of one resource apart (row H98)', async () => {
    const { get } = await serveCached({ cacheControl: 'max-age=60' })
    for (let i = 0; i < 2; i++) {
      expect((await get('/docs/a', { Accept: 'text/plain' })).text).toBe('one')
      expect((await get('/docs/a', { Accept: 'text/csv' })).text).toBe('ONE')
      expect((await get('/docs/a', { Accept: 'image/png' })).status).toBe(406)
      expect((await get('/docs/a')).text).toBe('one')
    }
  })

  it('keeps no error (row H184)', async () => {
    const { get } = await serveCached({ cacheControl: 'max-age=60' })
    expect((await get('/plain/new')).status).toBe(404)
    expect((await get('/plain/new', {}, 'PUT')).status).toBe(201)
    expect((await get('/plain/new')).text).toBe('two')
    expect((await get('/plain/new', {}, 'DELETE')).status).toBe(204)
    expect((await get('/plain/new')).status).toBe(410)
    expect((await get('/plain/new', {}, 'PUT')).status).toBe(201)
    expect((await get('/plain/new')).text).toBe('two')
  })
})
