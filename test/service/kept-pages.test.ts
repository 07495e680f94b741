import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import type { Authorize } from '../../src/actions/hook-types.ts'
import { mount } from '../../src/adapters/node.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { createResourceService, type ResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Page, ResourceStore, StoredResource } from '../../src/stores/types.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { runServer } from '../support/hosts.ts'
import { senderTo } from './serve.ts'

const ROUNDS = [1, 2, 3]

async function listen(service: ResourceService) {
  const host = await runServer(createServer(service))
  closeAfterTest(() => host.close())
  return senderTo(host.port)
}

const idOf = (path: string): number => Number(path.slice(path.lastIndexOf('/') + 1))

/** A service on a store that returns pages and states of its own. */
function serveStore(own: Partial<ResourceStore>, pattern = '/users', options: CollectionOptions = {}) {
  const store = { ...memoryStore(), ...own }
  const resources = { [pattern]: collection({ types: ['application/json'], ...options }) }
  return listen(createResourceService(store, { resources, fallthrough: false }))
}

function stateOf(path: string, n: number): StoredResource {
  const body = JSON.stringify({ id: idOf(path), n })
  const times = { lastModified: 1_000_000_000_000, dateIsStrong: true }
  return { path, version: `v${n}`, contentType: 'application/json', body, size: body.length, ...times }
}

describe('what is kept beside a state or a page', () => {
  it('is kept for each service: Cache-Control is that of its own definitions', async () => {
    const store = memoryStore()
    await store.create('/users', () => ({ contentType: 'application/json', body: '{"id":1}' }))
    const values = ['no-store', 'public, max-age=60']
    const senders = await Promise.all(
      values.map((cacheControl) => {
        const resources = { '/users': collection({ types: ['application/json'], cacheControl }) }
        return listen(createResourceService(store, { resources, fallthrough: false }))
      }),
    )
    for (const _ of ROUNDS) {
      for (const [index, send] of senders.entries()) {
        for (const target of ['/users', '/users/1']) {
          for (const condition of [[], ['If-None-Match: *']]) {
            expect((await send('GET', target, condition)).field('cache-control')).toBe(values[index])
          }
        }
      }
    }
  })

  it('does not belong to a copy of the state with other content', async () => {
    let state = stateOf('/users/1', 1)
    const send = await serveStore({ read: () => state })
    for (const n of ROUNDS) {
      state = { ...state, ...stateOf('/users/1', n) }
      for (const _ of ROUNDS) {
        const answer = await send('GET', '/users/1')
        expect([JSON.parse(answer.text).n, answer.field('etag')]).toEqual([n, `"v${n}"`])
      }
    }
  })

  it('has a strong date once its second is over, where the store does not say (RFC 9110 §8.8.2.2)', async () => {
    const { dateIsStrong: _, ...state } = stateOf('/users/1', 1)
    let now = state.lastModified! + 900
    const store = { ...memoryStore(), read: () => state }
    const send = await listen(createResourceService(store, { resources: { '/users': collection() }, now: () => now }))
    const ask = async () => {
      const fields = ['Range: bytes=0-1', `If-Range: ${new Date(state.lastModified!).toUTCString()}`]
      return (await send('GET', '/users/1', fields)).status
    }
    expect([await ask(), await ask()]).toEqual([200, 200])
    now += 100
    expect([await ask(), await ask()]).toEqual([206, 206])
  })

  it('does not belong to a copy of the page with other items', async () => {
    let page: Page = { items: [] }
    const send = await serveStore({ list: () => page })
    const tags = new Set<string | undefined>()
    for (const n of ROUNDS) {
      page = { ...page, items: [stateOf('/users/1', n)] }
      for (const _ of ROUNDS) {
        const answer = await send('GET', '/users')
        expect(JSON.parse(answer.text)).toMatchObject([{ n }])
        tags.add(answer.field('etag'))
      }
    }
    expect(tags.size).toBe(ROUNDS.length)
  })

  it('names the collection of the request where a store has one page for several (RFC 8288 §3.2)', async () => {
    const page: Page = { items: [], next: 'x' }
    const send = await serveStore({ list: () => page }, '/{tenant}/users')
    for (const _ of ROUNDS) {
      for (const tenant of ['a', 'b']) {
        expect((await send('GET', `/${tenant}/users`)).field('link')).toContain(`</${tenant}/users?after=`)
      }
    }
  })

  it('has the links and the tag of the mount of the request where one service has several', async () => {
    for (const page of [{ items: [stateOf('/users/1', 1)] }, { items: [], next: 'x' }] as Page[]) {
      const store = { ...memoryStore(), list: () => page }
      // Of items that are not shown whole, a page says where they are.
      const resources = { '/users': collection({ types: ['*/*'] }) }
      const service = createResourceService(store, { resources, fallthrough: false })
      const mounted = ['/a', '/b', ''].map((prefix) => ({ prefix, handler: mount(prefix, service) }))
      const host = await runServer(
        createServer((req, res) => mounted.find(({ prefix }) => req.url!.startsWith(prefix))!.handler(req, res)),
      )
      closeAfterTest(() => host.close())
      const send = senderTo(host.port)
      const tags = new Set<string | undefined>()
      for (const _ of ROUNDS) {
        for (const prefix of ['/a', '/b']) {
          const answer = await send('GET', `${prefix}/users`)
          expect(`${answer.text} ${answer.field('link')}`).toContain(`${prefix}/users`)
          tags.add(answer.field('etag'))
        }
      }
      expect(tags.size).toBe(2)
    }
  })

  it('is kept on no frozen state and no frozen page', async () => {
    const state = Object.freeze(stateOf('/users/1', 1))
    const page: Page = Object.freeze({ items: [state] })
    const send = await serveStore({ read: () => state, list: () => page })
    for (const _ of ROUNDS) {
      expect([(await send('GET', '/users/1')).status, (await send('GET', '/users')).status]).toEqual([200, 200])
    }
  })

  it('has another entity tag once another page follows, an item has another tag, or another item the same version', async () => {
    let page: Page = { items: [stateOf('/users/1', 1)] }
    const send = await serveStore({ list: () => page })
    const tags = new Set<string | undefined>()
    const [item] = page.items
    const own = { items: [{ ...item!, entityTag: '"own"' }] }
    const other = { items: [{ ...stateOf('/users/2', 2), version: item!.version }] }
    for (const next of [page, { ...page, next: '1' }, own, other]) {
      page = next
      tags.add((await send('GET', '/users')).field('etag'))
    }
    expect(tags.size).toBe(4)
  })

  it('tells items apart that have equal versions: authorize decides about each', async () => {
    const items = [1, 2, 3].map((n) => ({ ...stateOf(`/users/${n}`, n), version: '1' }))
    const authorize: Authorize = (_principal, _request, current) => (current?.value as { n?: number })?.n !== 2
    const send = await serveStore({ list: () => ({ items }) }, '/users', { authorize })
    expect(JSON.parse((await send('GET', '/users')).text)).toMatchObject([{ n: 1 }, { n: 3 }])
  })

  it('is kept for each service: entries are those of its own definitions', async () => {
    const page: Page = { items: [stateOf('/users/1', 1)] }
    const store = { ...memoryStore(), list: () => page }
    const senders = await Promise.all(
      ['application/json', '*/*'].map((type) => {
        const resources = { '/users': collection({ types: [type] }) }
        return listen(createResourceService(store, { resources, fallthrough: false }))
      }),
    )
    const entries = [
      { id: 1, n: 1 },
      { id: 1, href: '/users/1', type: 'application/json', size: page.items[0]!.size },
    ]
    for (const _ of ROUNDS) {
      for (const [index, send] of senders.entries()) {
        expect(JSON.parse((await send('GET', '/users')).text)).toEqual([entries[index]])
      }
    }
  })

  it('says of each GET and of each QUERY what belongs to it, where a store has one page for all (RFC 10008)', async () => {
    let page: Page = { items: [], next: 'w' }
    const send = await serveStore({ list: () => page }, '/users', { query: { n: 'number' }, cacheControl: 'no-store' })
    const form = 'Content-Type: application/x-www-form-urlencoded'
    const tags = await Promise.all([1, 2, 1].map(async (n) => (await send('GET', `/users?n=${n}`)).field('etag')))
    expect([tags[1] === tags[0], tags[2] === tags[0]]).toEqual([false, true])
    const after = /after=([\w-]+)/.exec((await send('GET', '/users?n=1')).field('link')!)![1]!
    page = { items: [], next: 'x' }
    for (const _ of ROUNDS) {
      const got = await send('GET', '/users?n=1')
      expect([got.field('location'), got.field('accept-query')]).toEqual([undefined, expect.any(String)])
      for (const query of ['n=1', `n=1&after=${after}`]) {
        const queried = await send('QUERY', '/users', [form], query)
        expect([queried.field('location'), queried.field('accept-query')]).toEqual([`/users?${query}`, undefined])
      }
    }
  })
})

it('a page keeps the fields of GET and QUERY apart', async () => {
  const options: CollectionOptions = { query: { n: 'number' }, cacheControl: 'no-store' }
  const store = memoryStore()
  await store.create('/users', () => ({ contentType: 'application/json', body: '{"id":1}' }))
  const send = await listen(createResourceService(store, { resources: { '/users': collection(options) } }))
  const form = 'application/x-www-form-urlencoded'
  for (const _ of ROUNDS) {
    const queried = await send('QUERY', '/users', [`Content-Type: ${form}`])
    const read = await send('GET', '/users')
    expect([queried.status, queried.field('accept-query'), queried.field('location')]).toEqual([
      200,
      undefined,
      '/users',
    ])
    expect([read.status, read.field('accept-query'), read.field('location')]).toEqual([200, form, undefined])
  }
})
