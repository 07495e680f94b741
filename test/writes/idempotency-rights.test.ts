import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { HttpError } from '../../src/core/errors.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { isResource } from '../../src/stores/rules.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { jsonOf, MERGE_PATCH, startService, type Target, USER } from './support.ts'

const KEY = 'a-key-of-16-chars'
const keyed = (key = KEY): Readonly<Record<string, string>> => ({ 'Idempotency-Key': key })

const targets: Target[] = []
afterEach(async () => {
  for (const target of targets.splice(0)) await target.close()
})

async function start(options: ServiceOptions, store?: ResourceStore): Promise<Target> {
  const target = await startService(options, store)
  targets.push(target)
  return target
}

const users = { '/users': collection({ idempotency: 'optional' }) }

describe('Idempotency-Key of principals without an id', () => {
  it.each(['', 'short-of-16-char'.slice(1)])('needs 16 characters, as without credentials: %j is 400', async (key) => {
    const { send } = await start({ resources: users, auth: { schemes: [bearer(() => true)] } })
    const create = (key: string) => send('POST', '/users', jsonOf(USER, { ...keyed(key), Authorization: 'Bearer a' }))
    expect((await create(key)).status).toBe(400)
    expect((await create('of-16-characters')).status).toBe(201)
  })

  it('may be short where the scheme names the principal', async () => {
    const { send } = await start({ resources: users, auth: { schemes: [bearer((token) => ({ id: token }))] } })
    const create = (token: string) =>
      send('POST', '/users', jsonOf(USER, { ...keyed('1'), Authorization: `Bearer ${token}` }))
    expect([(await create('ann')).status, (await create('ann')).field('idempotency-replayed')]).toEqual([201, '?1'])
    expect((await create('bob')).field('idempotency-replayed')).toBeUndefined()
  })
})

describe('Idempotency-Key of principals of two schemes', () => {
  it('is tied to the scheme: one name may be that of two principals', async () => {
    const schemes = [basic({ realm: 'r', accounts: { ann: 'secret' } }), bearer((token) => ({ id: token }))]
    const { send } = await start({ resources: users, auth: { schemes } })
    const locations: unknown[] = []
    for (const Authorization of [`Basic ${btoa('ann:secret')}`, 'Bearer ann', `Basic ${btoa('ann:secret')}`]) {
      const answer = await send('POST', '/users', jsonOf(USER, { ...keyed(), Authorization }))
      locations.push([answer.field('location'), answer.field('idempotency-replayed')])
    }
    expect(locations).toEqual([
      ['/users/1', undefined],
      ['/users/2', undefined],
      ['/users/1', '?1'],
    ])
  })
})

describe('Idempotency-Key and authorize', () => {
  const accounts = { ann: 'secret', bob: 'secret' }
  const auth = { schemes: [basic({ realm: 'r', accounts })] }
  const by = (name: string) => ({ Authorization: `Basic ${Buffer.from(`${name}:secret`).toString('base64')}` })

  it('does not help a request that loses its rights to the one that wins the race for the key', async () => {
    const sound = memoryStore()
    // The others wait for their turn meanwhile, and are judged anew.
    const store: ResourceStore = {
      ...sound,
      write: async (path, content, options) => {
        await sleep(50)
        return sound.write(path, content, options)
      },
    }
    const owned = document({
      idempotency: 'optional',
      authorize: (principal, _, resource) =>
        resource === undefined || (resource.value as { owner?: unknown } | undefined)?.owner === principal?.id,
    })
    const { send } = await start({ resources: { '/docs/{name}': owned }, auth }, store)
    await send('PUT', '/docs/a', jsonOf({ owner: 'ann' }, by('ann')))
    const give = () =>
      send('PATCH', '/docs/a', { fields: { ...MERGE_PATCH, ...by('ann'), ...keyed() }, body: '{"owner":"bob"}' })
    const answers = await Promise.all(Array.from({ length: 6 }, give))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403, 403, 403, 403, 403])
    expect((await give()).status).toBe(403)
  })

  it('judges a request anew that beforeWrite refuses after the first one has taken its rights', async () => {
    let rival: (() => Promise<Answer>) | undefined
    const owned = document({
      types: ['application/json'],
      idempotency: 'optional',
      authorize: (principal, _, resource) =>
        resource === undefined || (resource.value as { owner?: unknown } | undefined)?.owner === principal?.id,
      beforeWrite: async (value) => {
        const first = rival
        rival = undefined
        if (first === undefined) return value
        expect((await first()).status).toBe(200)
        throw new HttpError(403, 'ERR_FORBIDDEN')
      },
    })
    const { send, store } = await start({ resources: { '/docs/{name}': owned }, auth })
    // Another process: in this one the rival would wait for its turn.
    const other = await start({ resources: { '/docs/{name}': owned }, auth }, store)
    await send('PUT', '/docs/a', jsonOf({ owner: 'ann' }, by('ann')))
    const request = { fields: { ...MERGE_PATCH, ...by('ann'), ...keyed() }, body: '{"owner":"bob"}' }
    rival = () => other.send('PATCH', '/docs/a', request)
    const answer = await send('PATCH', '/docs/a', request)
    expect([answer.status, answer.field('idempotency-replayed')]).toEqual([403, undefined])
  })

  it('gives the first response again once authorize agrees again, without a scope', async () => {
    const verdicts: (boolean | 'not-found')[] = []
    const authorize = () => verdicts.shift() ?? true
    const target = await start({ resources: { '/users': collection({ idempotency: 'optional', authorize }) } })
    const create = async () => {
      const answer = await target.send('POST', '/users', jsonOf(USER, keyed()))
      return [answer.status, answer.field('location'), answer.field('idempotency-replayed')]
    }
    verdicts.push(false)
    expect(await create()).toEqual([403, undefined, undefined])
    expect(await create()).toEqual([201, '/users/1', undefined])
    verdicts.push('not-found')
    expect(await create()).toEqual([404, undefined, undefined])
    verdicts.push(false)
    expect(await create()).toEqual([403, undefined, undefined])
    expect(await create()).toEqual([201, '/users/1', '?1'])
    expect((await target.store.list('/users', { limit: 5 })).items.filter(isResource)).toHaveLength(1)
  })

  it('does not show a response once authorize hides the resource', async () => {
    let isHidden = false
    const owned = document({ idempotency: 'optional', authorize: () => (isHidden ? 'not-found' : true) })
    const { send } = await start({ auth, resources: { '/docs/{name}': owned } })
    await send('PUT', '/docs/a', jsonOf({ a: 1 }, by('ann')))
    const patch = () => {
      const fields = { ...keyed('key'), ...by('ann'), 'Content-Type': 'application/merge-patch+json' }
      return send('PATCH', '/docs/a', { fields, body: '{"a":2}' })
    }
    expect([(await patch()).status, (await patch()).field('idempotency-replayed')]).toEqual([200, '?1'])
    isHidden = true
    const hidden = await patch()
    expect([hidden.status, hidden.field('idempotency-replayed')]).toEqual([404, undefined])
  })

  it('does not show a response to the same principal in another scope', async () => {
    const scoped = collection({
      idempotency: 'optional',
      scope: ({ headers }) => ({ tenant: String(headers['x-tenant']) }),
    })
    const { send } = await start({ resources: { '/users': scoped }, auth })
    const create = (tenant: string) =>
      send('POST', '/users', jsonOf(USER, { ...keyed(), ...by('ann'), 'X-Tenant': tenant }))
    const [first, other, again] = [await create('a'), await create('b'), await create('a')]
    expect([first, other, again].map(({ status }) => status)).toEqual([201, 201, 201])
    expect(other.field('idempotency-replayed')).toBeUndefined()
    expect(other.json()).toMatchObject({ tenant: 'b' })
    expect([again.field('idempotency-replayed'), again.text]).toEqual(['?1', first.text])
  })

  it('does not show a response to another principal that knows the key and the content', async () => {
    const { send } = await start({ resources: users, auth })
    const create = (name: string) => send('POST', '/users', jsonOf(USER, { ...keyed(), ...by(name) }))
    expect((await create('ann')).field('location')).toBe('/users/1')
    const other = await create('bob')
    expect([other.field('location'), other.field('idempotency-replayed')]).toEqual(['/users/2', undefined])
  })
})

it('a keyed request for a resource that is hidden takes the calls of the store that one for an absent resource takes', async () => {
  const store = memoryStore()
  const reads: string[] = []
  const read: ResourceStore['read'] = (path, options) => {
    reads.push(path.startsWith('idempotency/') ? 'record' : path.replace(/\d$/, 'n'))
    return store.read(path, options)
  }
  const authorize = (_: unknown, __: unknown, current: unknown) => (current === undefined ? true : 'not-found')
  const hidden = { '/users': collection({ idempotency: 'optional', authorize }) }
  const { send } = await start({ resources: hidden }, { ...store, read })
  await store.write('/users/1', { contentType: 'application/json', body: '{"id":1}' }, { expect: 'absent' })
  const readsOf = async (path: string): Promise<readonly string[]> => {
    reads.length = 0
    const answer = await send('PATCH', path, jsonOf({ n: 1 }, { ...MERGE_PATCH, ...keyed() }))
    expect(answer.status).toBe(404)
    return [...reads]
  }
  const found = await readsOf('/users/2')
  expect(found).toContain('record')
  expect(await readsOf('/users/1')).toEqual(found)
})
