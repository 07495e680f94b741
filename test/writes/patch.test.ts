import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { MEASURED } from '../support/measured.ts'
import { startProcessorClock } from '../support/processor-time.ts'
import {
  JSON_PATCH,
  JSON_TYPE,
  jsonOf,
  MERGE_PATCH,
  type SendOptions,
  startDemo,
  startService,
  type Target,
  USER,
  waitFor,
} from './support.ts'

let demo: Target
beforeAll(async () => {
  demo = await startDemo()
})
afterAll(() => demo.close())

const FORMATS = 'application/json-patch+json, application/merge-patch+json'

/** A user of its own for one test. */
async function createUser(more: object = {}): Promise<string> {
  return (await demo.send('POST', '/users', jsonOf({ ...USER, ...more }))).field('location')!
}

/** Sends a patch that must fail, and makes sure that it changed nothing: same bytes, same tag (row P1, I7). */
async function expectRefused(
  target: Target,
  path: string,
  patch: unknown,
  status: number,
  fields: SendOptions['fields'] = JSON_PATCH,
) {
  const before = await target.send('GET', path)
  const answer = await target.send('PATCH', path, { fields, body: JSON.stringify(patch) })
  expect([JSON.stringify(patch).slice(0, 200), answer.status]).toEqual([JSON.stringify(patch).slice(0, 200), status])
  const after = await target.send('GET', path)
  expect([after.text, after.field('etag')]).toEqual([before.text, before.field('etag')])
  return answer
}

describe('PATCH', () => {
  it('answers 200 with the updated resource, which is the next GET (interface PATCH 5, rows P12, P13, H35)', async () => {
    const path = await createUser()
    const answer = await demo.send('PATCH', path, jsonOf({ role: 'admin' }, MERGE_PATCH))
    const read = await demo.send('GET', path)
    expect([answer.status, answer.text, answer.field('etag')]).toEqual([200, read.text, read.field('etag')])
    expect(answer.field('content-location')).toBe(path)
    expect(read.json().role).toBe('admin')
  })

  it('changes nothing and makes no new state when there is nothing to change (rows J22, M10)', async () => {
    const path = await createUser()
    const tag = (await demo.send('GET', path)).field('etag')
    for (const [patch, fields] of [
      [[], JSON_PATCH],
      [{}, MERGE_PATCH],
      [{ name: USER.name }, MERGE_PATCH],
      [[{ op: 'test', path: '/name', value: USER.name }], JSON_PATCH],
      [[{ op: 'replace', path: '/name', value: USER.name }], JSON_PATCH],
    ] as const) {
      const answer = await demo.send('PATCH', path, jsonOf(patch, fields))
      expect([answer.status, answer.text, answer.field('etag')]).toEqual([204, '', tag])
    }
    expect((await demo.send('GET', path)).field('etag')).toBe(tag)
  })

  it.each([['application/xml'], ['application/json'], ['text/plain'], ['application/json-patch'], [undefined]])(
    'knows no patch format %s: 415 with Accept-Patch (rows P4, P11, H178, threat 93)',
    async (type) => {
      const path = await createUser()
      const fields = type === undefined ? {} : { 'Content-Type': type }
      const answer = await demo.send('PATCH', path, { fields, body: '{}' })
      expect([answer.status, answer.field('accept-patch')]).toEqual([415, FORMATS])
    },
  )

  it.each(['Application/Merge-Patch+JSON', 'application/merge-patch+json; charset=utf-8'])(
    'takes the format however it is written: %s (rows H14, H29)',
    async (type) => {
      const answer = await demo.send('PATCH', await createUser(), jsonOf({ role: 'a' }, { 'Content-Type': type }))
      expect(answer.status).toBe(200)
    },
  )

  it('needs a target: 404, or 410 after a removal, and creates nothing (rows P7, H101)', async () => {
    for (const fields of [MERGE_PATCH, { ...MERGE_PATCH, 'If-Match': '*' }, { ...MERGE_PATCH, 'If-Match': '"x"' }]) {
      expect((await demo.send('PATCH', '/users/99999', jsonOf({ role: 'a' }, fields))).status).toBe(404)
    }
    expect((await demo.send('GET', '/users/99999')).status).toBe(404)
  })

  it('advertises its formats where it is allowed, and only there (rows P9, P10, H71)', async () => {
    const member = await demo.send('OPTIONS', await createUser())
    expect([member.field('accept-patch'), member.field('allow')!.includes('PATCH')]).toEqual([FORMATS, true])
    const list = await demo.send('OPTIONS', '/users')
    expect([list.field('accept-patch'), list.field('allow')!.includes('PATCH')]).toEqual([undefined, false])
  })

  it('takes nothing of the request for the resource but the change (row P3)', async () => {
    const path = await createUser()
    await demo.send('PATCH', path, jsonOf({ role: 'a' }, { ...MERGE_PATCH, 'Content-Language': 'fr' }))
    const read = await demo.send('GET', path)
    expect([read.field('content-language'), read.field('content-type')]).toEqual([undefined, 'application/json'])
  })

  it('patches only what is JSON (threat 93)', async () => {
    await demo.send('PUT', '/docs/text', { fields: { 'Content-Type': 'text/plain' }, body: '{"a":1}' })
    await expectRefused(demo, '/docs/text', { a: 2 }, 415, MERGE_PATCH)
    await demo.send('PUT', '/docs/report.json', { fields: JSON_TYPE, body: '{"status":"draft"}' })
    const answer = await demo.send('PATCH', '/docs/report.json', jsonOf({ status: 'final' }, MERGE_PATCH))
    expect([answer.status, answer.json()]).toEqual([200, { status: 'final' }])
  })

  it('validates the result: 422, and nothing has changed (row P6, threat 95)', async () => {
    const path = await createUser()
    for (const [patch, fields, pointer] of [
      [{ email: null }, MERGE_PATCH, '/email'],
      [{ email: 'none' }, MERGE_PATCH, '/email'],
      [[{ op: 'remove', path: '/name' }], JSON_PATCH, '/name'],
      [[{ op: 'replace', path: '', value: [] }], JSON_PATCH, ''],
      [['c'], MERGE_PATCH, ''],
      [{ id: null }, MERGE_PATCH, '/id'],
      [{ id: 99 }, MERGE_PATCH, '/id'],
      [{ id: '1' }, MERGE_PATCH, '/id'],
      [[{ op: 'add', path: '', value: USER }], JSON_PATCH, '/id'],
      [[{ op: 'copy', from: '/name', path: '/id' }], JSON_PATCH, '/id'],
    ] as const) {
      const answer = await expectRefused(demo, path, patch, 422, fields)
      expect(answer.json().errors[0].pointer).toBe(pointer)
    }
  })

  it('gives no member a wrong id, not even one that was stored without (threat 83)', async () => {
    await demo.store.write(
      '/users/500',
      { contentType: 'application/json', body: JSON.stringify(USER) },
      { expect: 'any' },
    )
    await expectRefused(demo, '/users/500', { id: 501 }, 422, MERGE_PATCH)
    expect((await demo.send('PATCH', '/users/500', jsonOf({ role: 'a' }, MERGE_PATCH))).status).toBe(200)
    expect((await demo.send('PATCH', '/users/500', jsonOf({ id: 500 }, MERGE_PATCH))).status).toBe(200)
  })

  it('changes an item that was stored with another id, as one of json-server, and leaves that alone', async () => {
    const body = JSON.stringify({ id: '501', ...USER })
    await demo.store.write('/users/501', { contentType: 'application/json', body }, { expect: 'any' })
    const fields = { ...MERGE_PATCH, Prefer: 'return=minimal' }
    for (const [patch, status] of [
      [{ id: '502' }, 422],
      [{ id: null }, 422],
      [{ role: 'a' }, 204],
      [{ id: 501 }, 204],
    ] as const) {
      expect([patch, (await demo.send('PATCH', '/users/501', jsonOf(patch, fields))).status]).toEqual([patch, status])
    }
    expect((await demo.send('GET', '/users/501')).json()).toEqual({ id: 501, ...USER, role: 'a' })
  })

  it('changes an item that another program has stored behind a byte order mark', async () => {
    const target = await startService({ resources: { '/a': collection() } })
    const content = { contentType: 'application/json', body: '\ufeff{"id":1,"a":1}' }
    await target.store.write('/a/1', content, { expect: 'any' })
    const answer = await target.send('PATCH', '/a/1', { fields: MERGE_PATCH, body: '{"b":2}' })
    expect([answer.status, answer.text]).toEqual([200, '{"id":1,"a":1,"b":2}'])
    await target.close()
  })

  it('refuses a patch that is malformed with 400 (rows P5, J1, J2, J3, J10, J13, J20, threat 86)', async () => {
    const path = await createUser({ a: 1 })
    for (const patch of [
      {},
      [1],
      'x',
      null,
      [{ path: '/a', value: 1 }],
      [{ op: 'spam', path: '/a', value: 1 }],
      [{ op: 'toString', path: '/a', value: 1 }],
      [{ op: 'constructor', path: '/a', value: 1 }],
      [{ op: '_get', path: '/a', value: 1 }],
      [{ op: ['add'], path: '/a', value: 1 }],
      [{ op: 'add', value: 1 }],
      [{ op: 'add', path: 'a/b', value: 1 }],
      [{ op: 'add', path: 5, value: 1 }],
      [{ op: 'add', path: '/~2', value: 1 }],
      [{ op: 'add', path: '/~', value: 1 }],
      [{ op: 'add', path: '/a' }],
      [{ op: 'replace', path: '/a' }],
      [{ op: 'test', path: '/a' }],
      [{ op: 'move', path: '/a' }],
      [{ op: 'copy', path: '/a', from: 'b' }],
      [{ op: 'move', from: '/a', path: '/a/b' }],
      [{ op: 'replace', path: '/role', value: 'x' }, { op: 'spam' }],
    ]) {
      const answer = await expectRefused(demo, path, patch, 400)
      expect(answer.json().type).toContain('malformed-patch')
    }
    for (const body of [
      '',
      '[',
      '[{"op":"add","op":"remove","path":"/a"}]',
      '\xff',
      '{"a":1,"a":2}',
      '['.repeat(100_000),
    ]) {
      for (const fields of [JSON_PATCH, MERGE_PATCH]) {
        const answer = await demo.send('PATCH', path, { fields, body: Buffer.from(body, 'latin1') })
        expect([body.slice(0, 9), answer.status]).toEqual([body.slice(0, 9), 400])
      }
    }
  })

  it('refuses a patch that does not fit with 409, and names the operation (rows P6, J8, J11, J12, J16, J23)', async () => {
    const path = await createUser({ list: [1, 3] })
    for (const last of [
      { op: 'add', path: '/no/x', value: 1 },
      { op: 'add', path: '/list/5', value: 1 },
      { op: 'add', path: '/list/01', value: 1 },
      { op: 'add', path: '/list/1e0', value: 1 },
      { op: 'add', path: '/list/-1', value: 1 },
      { op: 'add', path: '/list/4294967296', value: 1 },
      { op: 'remove', path: '/list/-' },
      { op: 'remove', path: '/list/9' },
      { op: 'replace', path: '/none', value: 1 },
      { op: 'replace', path: '/list/length', value: 0 },
      { op: 'move', from: '/none', path: '/x' },
      { op: 'copy', from: '/none', path: '/x' },
      { op: 'test', path: '/name', value: 'hunter2' },
      { op: 'test', path: '/none', value: null },
    ]) {
      const answer = await expectRefused(demo, path, [{ op: 'replace', path: '/name', value: 'B' }, last], 409)
      expect(answer.json()).toMatchObject({
        index: 1,
        path: last.op === 'move' || last.op === 'copy' ? '/none' : last.path,
      })
      expect(answer.text).not.toContain('hunter2')
    }
  })

  it('reaches no prototype (rows J21, M9, threat 85)', async () => {
    const path = await createUser({ list: [] })
    const names = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '__defineGetter__']
    for (const name of names) {
      for (const patch of [
        [{ op: 'add', path: `/${name}/polluted`, value: 1 }],
        [{ op: 'replace', path: `/${name}/polluted`, value: 1 }],
        [{ op: 'add', path: `/list/${name}/polluted`, value: 1 }],
        [{ op: 'copy', from: `/${name}`, path: '/x' }],
        [{ op: 'move', from: `/list/${name}`, path: '/x' }],
        [{ op: 'test', path: `/${name}`, value: {} }],
        [{ op: 'remove', path: `/${name}` }],
      ]) {
        await expectRefused(demo, path, patch, 409)
      }
    }
    const text = `{${names.map((name) => `${JSON.stringify(name)}:{"polluted":1}`).join()}}`
    const answer = await demo.send('PATCH', path, { fields: MERGE_PATCH, body: text })
    expect(answer.status).toBe(400)
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
    expect(Object.keys(Object.prototype)).toEqual([])
  })

  it('applies a merge patch whole or not at all, whatever its members are called (threat 90)', async () => {
    const target = await startService()
    await target.send('PUT', '/a', jsonOf({ a: 1 }))
    const body = '{"b":2,"constructor":{"c":3},"__proto__":{"d":4},"hasOwnProperty":5,"e":6}'
    const answer = await target.send('PATCH', '/a', { fields: MERGE_PATCH, body })
    expect(answer.text).toBe('{"a":1,"b":2,"constructor":{"c":3},"__proto__":{"d":4},"hasOwnProperty":5,"e":6}')
    await target.close()
  })

  it('answers a stale If-Unmodified-Since with an empty 412 (interface PATCH 4, rows H118, P8, threat 46)', async () => {
    const path = await createUser()
    const stale = { ...MERGE_PATCH, 'If-Unmodified-Since': 'Sun, 06 Nov 1994 08:49:37 GMT' }
    const answer = await demo.send('PATCH', path, jsonOf({ role: 'x' }, stale))
    expect([answer.status, answer.text, answer.field('content-length')]).toEqual([412, '', '0'])
    const first = (await demo.send('GET', path)).field('last-modified')!
    await demo.send('PATCH', path, jsonOf({ role: 'y' }, MERGE_PATCH))
    const within = await demo.send(
      'PATCH',
      path,
      jsonOf({ role: 'z' }, { ...MERGE_PATCH, 'If-Unmodified-Since': first }),
    )
    expect([within.status, (await demo.send('GET', path)).json().role]).toEqual([412, 'y'])
  })

  it('bounds what a patch may cost (rows P14, J24, threats 87, 88)', MEASURED, async () => {
    const target = await startService({ limits: { bodySize: 100_000 } })
    await target.send('PUT', '/a', jsonOf({ a: 'x'.repeat(1000), list: [] }))
    const add = { op: 'add', path: '/b', value: 1 }
    await expectRefused(
      target,
      '/a',
      Array.from({ length: 1001 }, () => add),
      413,
    )
    expect(
      (
        await target.send(
          'PATCH',
          '/a',
          jsonOf(
            Array.from({ length: 1000 }, () => add),
            JSON_PATCH,
          ),
        )
      ).status,
    ).toBe(200)
    const bomb = Array.from({ length: 30 }, (_, index) => ({ op: 'copy', from: '', path: `/c${index}` }))
    const elapsed = startProcessorClock()
    await expectRefused(target, '/a', bomb, 413)
    const grown = Array.from({ length: 200 }, (_, index) => ({ op: 'copy', from: '/a', path: `/d${index}` }))
    await expectRefused(target, '/a', grown, 413)
    await expectRefused(target, '/a', [{ op: 'add', path: `/${'p'.repeat(5000)}`, value: 1 }], 413)
    await expectRefused(target, '/a', { a: 'y'.repeat(110_000) }, 413, MERGE_PATCH)
    expect(elapsed()).toBeLessThan(5000)
    await target.close()
  })

  it('bounds the patched document in bytes', async () => {
    const target = await startService({ limits: { bodySize: 100 } })
    await target.send('PUT', '/a', jsonOf({ a: 'ü'.repeat(40) }))
    await expectRefused(target, '/a', { b: 'ü'.repeat(10) }, 413, MERGE_PATCH)
    await target.close()
  })

  it('keeps a copy apart from its original (row J14, threat 94)', async () => {
    const path = await createUser({ a: { b: 1 } })
    const patch = [
      { op: 'copy', from: '/a', path: '/c' },
      { op: 'replace', path: '/a/b', value: 2 },
    ]
    const { a, c } = (await demo.send('PATCH', path, jsonOf(patch, JSON_PATCH))).json()
    expect([a, c]).toEqual([{ b: 2 }, { b: 1 }])
    const again = (await demo.send('PATCH', path, jsonOf([{ op: 'add', path: '/c/d', value: 3 }], JSON_PATCH))).json()
    expect([again.a, again.c]).toEqual([{ b: 2 }, { b: 1, d: 3 }])
  })

  it('is seen whole or not at all by readers (row P2)', async () => {
    const path = await createUser({ a: 0, b: 0 })
    let isDone = false
    const writer = async (): Promise<void> => {
      for (let n = 1; n <= 30; n++) {
        const patch = [
          { op: 'replace', path: '/a', value: n },
          { op: 'replace', path: '/b', value: n },
        ]
        expect((await demo.send('PATCH', path, jsonOf(patch, JSON_PATCH))).status).toBe(200)
      }
      isDone = true
    }
    const reader = async (): Promise<void> => {
      while (!isDone) {
        const { a, b } = (await demo.send('GET', path)).json()
        expect(a).toBe(b)
      }
    }
    await Promise.all([writer(), reader(), reader()])
  })
})

describe('authorisation of a patch', () => {
  it('sees the state that is changed, not pointers (threats 89, 110)', async () => {
    // Who may change a role is decided on what was and what will be, however the patch says it.
    const target = await startService({
      resources: {
        '/a': collection({
          authorize: (_principal, _request, current) => current?.value === undefined || !isLocked(current.value),
        }),
      },
    })
    await target.send('PUT', '/a/1', jsonOf({ locked: false }))
    expect((await target.send('PATCH', '/a/1', jsonOf({ locked: true }, MERGE_PATCH))).status).toBe(200)
    expect((await target.send('PATCH', '/a/1', jsonOf({ locked: false }, MERGE_PATCH))).status).toBe(403)
    expect((await target.send('DELETE', '/a/1')).status).toBe(403)
    expect((await target.send('PUT', '/a/1', jsonOf({}))).status).toBe(403)
    await target.close()
  })

  it('is decided on the very state that is replaced (threat 110)', async () => {
    let pause: (() => Promise<void>) | undefined
    const target = await startService({
      resources: {
        '/a/{name}': document({
          async authorize(_principal, request, current) {
            const verdict = !isLocked(current?.value)
            if (request.headers['x-slow'] === '1') await pause?.()
            return verdict
          },
        }),
      },
    })
    await target.send('PUT', '/a/x', jsonOf({ locked: false }))
    for (const method of ['PUT', 'PATCH', 'DELETE']) {
      let isWaiting = false
      const released = new Promise<void>((resolve) => {
        pause = () => {
          isWaiting = true
          return new Promise((go) => {
            resolve()
            release = go
          })
        }
      })
      let release = (): void => {}
      const options =
        method === 'DELETE'
          ? { fields: { 'X-Slow': '1' } }
          : jsonOf({ mine: 1 }, { ...(method === 'PATCH' ? MERGE_PATCH : JSON_TYPE), 'X-Slow': '1' })
      const slow = target.send(method, '/a/x', options)
      await released
      expect(isWaiting).toBe(true)
      pause = undefined
      await target.store.write('/a/x', { contentType: 'application/json', body: '{"locked":true}' }, { expect: 'any' })
      release()
      expect([method, (await slow).status]).toEqual([method, 403])
      await target.store.write('/a/x', { contentType: 'application/json', body: '{"locked":false}' }, { expect: 'any' })
    }
    await waitFor(
      () => target.send('GET', '/a/x'),
      (answer) => answer.status === 200,
    )
    await target.close()
  })
})

function isLocked(value: unknown): boolean {
  return (value as { locked?: boolean } | undefined)?.locked === true
}
