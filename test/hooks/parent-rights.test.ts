import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createGate } from '../../src/conformance/samples.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { beforeWrites } from '../support/before-writes.ts'
import { openRawClient } from '../wire/raw-client.ts'
import { jsonOf, type Target } from '../writes/support.ts'
import { as, patchOf, png, scope, start } from './scoped.ts'
import { STORES } from './stores.ts'

const MINUTE = 60_000

/** Sends a request whose content is sent once the service has asked for it and something else has happened. */
async function sendLate(
  { port }: Target,
  [method, path, type, body]: readonly [string, string, string, string],
  meanwhile: () => Promise<unknown>,
  more: readonly string[] = [],
): Promise<number> {
  const client = await openRawClient(port)
  try {
    const fields = [
      `Content-Type: ${type}`,
      `Content-Length: ${body.length}`,
      'X-User: ada',
      'Expect: 100-continue',
      ...more,
    ]
    client.send([`${method} ${path} HTTP/1.1`, 'Host: localhost', ...fields, '', ''].join('\r\n'))
    expect((await client.read(method)).status).toBe(100)
    await meanwhile()
    client.send(body)
    return (await client.read(method)).status
  } finally {
    await client.leave()
  }
}

describe.each(Object.entries(STORES))('a parent that another caller is given, on %s', (_, createStore) => {
  /** @param wrap the store as the service gets it */
  async function startBelow(wrap = (store: ResourceStore) => store) {
    let time = Date.now()
    const resources = {
      '/tasks': collection({ scope, clientIds: true }),
      '/tasks/{task}/comments': collection({ parent: true, count: true, files: { photo: { replaceable: true } } }),
    }
    const pass = (milliseconds: number) => {
      time += milliseconds
    }
    const target = await start(wrap(createStore()), resources, { now: () => time })
    expect((await target.send('PUT', '/tasks/1', jsonOf({}, as('ada')))).status).toBe(201)
    expect((await target.send('PUT', '/tasks/1/comments/7', jsonOf({ n: 1 }, as('ada')))).status).toBe(201)
    return {
      target,
      pass,
      async handOver(within = MINUTE) {
        expect((await target.send('PUT', '/tasks/1', jsonOf({ owner: 'bob' }, as('boss')))).status).toBe(204)
        pass(within)
      },
    }
  }

  it.each([
    ['a patch', ['PATCH', '/tasks/1/comments/7', 'application/merge-patch+json', '{"n":2}']],
    ['a patch that changes nothing', ['PATCH', '/tasks/1/comments/7', 'application/merge-patch+json', '{"n":1}']],
    ['a replacement', ['PUT', '/tasks/1/comments/7', 'application/json', '{"n":2}']],
    ['a file', ['PUT', '/tasks/1/comments/7/photo', 'image/png', 'png']],
    ['a query', ['QUERY', '/tasks/1/comments', 'application/x-www-form-urlencoded', 'limit=9']],
  ] as const)('hides the items below it from %s that arrives late', async (_, request) => {
    const { target, handOver } = await startBelow()
    expect(await sendLate(target, request, handOver)).toBe(404)
    const item = await target.send('GET', '/tasks/1/comments/7', { fields: as('bob') })
    expect(item.json()).toEqual({ id: 7, n: 1 })
    expect((await target.send('PUT', '/tasks/1/comments/7/photo', png('bob', 'png'))).status).toBe(201)
  })

  it.each([
    ['a patch', 'PATCH', '/7', 'application/merge-patch+json'],
    ['a replacement', 'PUT', '/7', 'application/json'],
    ['a new item', 'POST', '', 'application/json'],
    ['a file', 'PUT', '/7/photo', 'image/png'],
  ])('is not written below by %s that arrives a moment late', async (_, method, rest, type) => {
    const { target, handOver } = await startBelow()
    const request = [method, `/tasks/1/comments${rest}`, type, '{"n":2}'] as const
    expect(await sendLate(target, request, () => handOver(150))).toBe(404)
    const list = await target.send('GET', '/tasks/1/comments', { fields: as('bob') })
    expect(list.json()).toEqual([{ id: 7, n: 1 }])
  })

  it.each([
    ['a patch', 'PATCH', 'application/merge-patch+json', ''],
    ['a replacement under a condition', 'PUT', 'application/json', 'If-Match'],
  ])('hides what its new owner has written at once from %s', async (_, method, type, condition) => {
    const { target, handOver } = await startBelow()
    const item = await target.send('GET', '/tasks/1/comments/7', { fields: as('ada') })
    const more = condition === '' ? [] : [`${condition}: ${item.field('etag')}`]
    const late = sendLate(
      target,
      [method, '/tasks/1/comments/7', type, '{"n":2}'],
      async () => {
        await handOver(0)
        const secret = jsonOf({ n: 3, secret: true }, as('bob'))
        expect((await target.send('PUT', '/tasks/1/comments/7', secret)).status).toBe(204)
      },
      more,
    )
    expect(await late).toBe(404)
    expect((await target.send('GET', '/tasks/1/comments/7', { fields: as('bob') })).json()).toEqual({
      id: 7,
      n: 3,
      secret: true,
    })
  })

  it.each([
    ['a patch', 'PATCH', '/7', patchOf('ada', { n: 2 })],
    ['a replacement', 'PUT', '/7', jsonOf({ n: 2 }, as('ada'))],
    ['a new item', 'POST', '', jsonOf({ n: 2 }, as('ada'))],
  ])('is not written below by %s where it was given away while the store read it', async (_, method, rest, request) => {
    let meanwhile: (() => Promise<void>) | undefined
    const { target, handOver } = await startBelow((store) => ({
      ...store,
      async read(path, options) {
        const state = await store.read(path, options)
        const now = path === '/tasks/1' ? meanwhile : undefined
        if (now !== undefined) meanwhile = undefined
        await now?.()
        return state
      },
    }))
    meanwhile = () => handOver(150)
    expect((await target.send(method, `/tasks/1/comments${rest}`, request)).status).toBe(404)
    const list = await target.send('GET', '/tasks/1/comments', { fields: as('bob') })
    expect(list.json()).toEqual([{ id: 7, n: 1 }])
  })

  it('is read twice for a new item where each read takes over 100 ms: at first, and before the item is written', async () => {
    let isSlow = false
    let reads = 0
    const { target, pass } = await startBelow((store) => ({
      ...store,
      async read(path, options) {
        if (isSlow && path === '/tasks/1') {
          reads++
          pass(150)
        }
        return store.read(path, options)
      },
    }))
    isSlow = true
    expect((await target.send('POST', '/tasks/1/comments', jsonOf({ n: 2 }, as('ada')))).status).toBe(201)
    expect(reads).toBe(2)
  })

  it('hides what was written meanwhile from a patch that waits for its turn', async () => {
    const [reached, held] = [createGate(), createGate()]
    let isHeld = false
    const { target, handOver } = await startBelow((store) =>
      beforeWrites(store, () => {
        if (!isHeld) return
        isHeld = false
        reached.open()
        return held.opened
      }),
    )
    const path = '/tasks/1/comments/7'
    const etag = (await target.send('GET', path, { fields: as('ada') })).field('etag')!
    isHeld = true
    const first = target.send('PUT', path, jsonOf({ n: 2 }, as('boss')))
    await reached.opened
    const { fields, body } = patchOf('ada', { n: 3 })
    const second = target.send('PATCH', path, { fields: { ...fields, 'If-Match': etag }, body })
    await sleep(50)
    await handOver()
    held.open()
    expect([(await first).status, (await second).status]).toEqual([204, 404])
  })

  it.each([
    ['an item', 'GET', '/7'],
    ['the fields of an item', 'HEAD', '/7'],
    ['a list', 'GET', ''],
    ['a count', 'GET', '?count=true'],
    ['a file', 'GET', '/7/photo'],
    ['a removal', 'DELETE', '/7'],
  ])('hides the items below it from a request for %s that waits for the store', async (_, method, rest) => {
    let meanwhile: (() => Promise<void>) | undefined
    const target = await startBelow((store) => {
      const waiting = async (path: string): Promise<void> => {
        const now = path.startsWith('/tasks/1/comments') ? meanwhile : undefined
        if (now === undefined) return
        meanwhile = undefined
        await now()
      }
      return {
        ...store,
        read: (path, options) => waiting(path).then(() => store.read(path, options)),
        list: (path, options) => waiting(path).then(() => store.list(path, options)),
      }
    })
    const path = `/tasks/1/comments${rest}`
    const send = (user: string) => target.target.send(method, path, { fields: as(user) })
    expect((await target.target.send('PUT', '/tasks/1/comments/7/photo', png('ada', 'png'))).status).toBe(201)
    if (method !== 'DELETE') expect((await send('ada')).status).toBe(200)
    meanwhile = () => target.handOver()
    expect((await send('ada')).status).toBe(404)
    expect((await send('bob')).status).toBe(method === 'DELETE' ? 204 : 200)
  })
})
