import { beforeAll, describe, expect, it } from 'vitest'
import { type DescribedAnswer, describeAnswer } from '../support/describe-answer.ts'
import { hosts, type Request, startHost } from '../support/hosts.ts'
import { multipartOf } from '../writes/support.ts'
import { createObserved, numberRequests, type Seen } from './observed.ts'

const as = (user: string, password: string) => ({ Authorization: `Basic ${btoa(`${user}:${password}`)}` })
const ada = as('ada', 'lovelace')
const json = { ...ada, 'Content-Type': 'application/json' }
const merge = { ...ada, 'Content-Type': 'application/merge-patch+json' }
const urlencoded = { ...ada, 'Content-Type': 'application/x-www-form-urlencoded' }
const key = { 'Idempotency-Key': '"a-key-of-sixteen"' }
const textOf = (text: string) => JSON.stringify({ text })

const formOf = (size: number) => {
  const { fields, body } = multipartOf([
    { name: 'text', content: 'form' },
    { name: 'photo', filename: 'p.png', type: 'image/png', content: Buffer.alloc(size, 'x') },
  ])
  return { headers: { ...ada, ...(fields as Record<string, string>) }, body: body! }
}

const post = (headers: Request['headers'], body: string | Uint8Array, path = '/tasks') =>
  ({ method: 'POST', path, headers: headers!, body }) satisfies Request
const put = (path: string, headers: Request['headers'], body: string | Uint8Array) =>
  ({ method: 'PUT', path, headers: headers!, body }) satisfies Request

/** In this order, on a service of its own. */
const SCRIPT: readonly (readonly [status: number, Request])[] = [
  // Every hook, once or as often as it takes.
  [201, post(json, textOf('a'))],
  [201, post({ ...json, 'X-Twice': ['a', 'b'], Cookie: 'a=1; b=2' }, textOf('b'), '/tasks?x=%C3%BC&x=+')],
  [201, post(urlencoded, 'text=c')],
  [201, post(formOf(100).headers, formOf(100).body)],
  [201, post(formOf(200_000).headers, formOf(200_000).body)],
  [201, post({ ...json, ...key }, textOf('once'))],
  [201, post({ ...json, ...key }, textOf('once'))],
  [201, put('/tasks/70', json, textOf('d'))],
  [204, put('/tasks/70', json, textOf('e'))],
  [412, put('/tasks/70', { ...json, 'If-Match': '"other"' }, textOf('f'))],
  [200, { method: 'PATCH', path: '/tasks/70', headers: merge, body: textOf('g') }],
  [200, { method: 'PATCH', path: '/tasks/70', headers: { ...merge, ...key }, body: textOf('h') }],
  [200, { method: 'PATCH', path: '/tasks/70', headers: { ...merge, ...key }, body: textOf('h') }],
  [201, put('/tasks/70/photo', { ...ada, 'Content-Type': 'image/png' }, 'PNG')],
  [204, put('/tasks/70/photo', { ...ada, 'Content-Type': 'image/png' }, Buffer.alloc(200_000, 'P'))],
  [200, { path: '/tasks/70', headers: ada }],
  [200, { method: 'HEAD', path: '/tasks/70', headers: ada }],
  [304, { path: '/tasks/70', headers: { ...ada, 'If-None-Match': '*' } }],
  [206, { path: '/tasks/70', headers: { ...ada, Range: 'bytes=0-3' } }],
  [200, { path: '/tasks/70/photo', headers: ada }],
  [200, { path: '/tasks?text=h&count=true', headers: ada }],
  [200, { path: '/tasks?limit=2', headers: ada }],
  [200, { method: 'QUERY', path: '/tasks', headers: urlencoded, body: 'text[prefix]=&sort=-text&limit=3' }],
  [204, { method: 'OPTIONS', path: '/tasks/70', headers: ada }],
  [201, post(json, textOf('below'), '/tasks/70/lines')],
  [200, { path: '/tasks/70/lines/1', headers: ada }],
  [200, { method: 'DELETE', path: '/tasks/70/lines/1', headers: ada }],
  [201, put('/docs/a/%C3%BC%20b', json, textOf('doc'))],
  [200, { path: '/docs/a/%C3%BC%20b?q=1', headers: ada }],
  // Another caller, and none.
  [404, { path: '/tasks/70', headers: as('eve', 'eve') }],
  [200, { path: '/tasks', headers: as('eve', 'eve') }],
  [404, put('/tasks/70', { ...json, ...as('eve', 'eve') }, textOf('mine'))],
  [404, post({ ...json, ...as('eve', 'eve') }, textOf('mine'), '/tasks/70/lines')],
  [403, { path: '/tasks/70' }],
  [401, post({ 'Content-Type': 'application/json' }, textOf('a'))],
  // What hooks refuse, and how they fail.
  [403, post({ ...json, 'X-Verdict': 'refuse' }, textOf('a'))],
  [404, { path: '/tasks/70', headers: { ...ada, 'X-Verdict': 'hide' } }],
  [404, { method: 'DELETE', path: '/tasks/70', headers: { ...ada, 'X-Verdict': 'hide' } }],
  [403, { method: 'PATCH', path: '/tasks/70', headers: { ...merge, 'X-Verdict': 'throw' }, body: '{}' }],
  [500, { path: '/tasks/70', headers: { ...ada, 'X-Verdict': 'fail' } }],
  [403, { path: '/tasks/70', headers: { ...ada, 'X-Verdict': 'no-scope' } }],
  [422, post(json, textOf('refused'))],
  [500, post(json, textOf('failing'))],
  [409, post(json, textOf('taken'))],
  [500, put('/tasks/70', json, textOf('unsent'))],
  [204, put('/tasks/70', json, textOf('unheard'))],
  [403, post(json, '{"owner":"eve"}')],
  [400, post(json, '{')],
  // By another method than the one on the wire.
  [204, { method: 'POST', path: '/tasks/70', headers: { ...ada, 'X-HTTP-Method-Override': 'DELETE' } }],
  [410, { path: '/tasks/70', headers: ada }],
  [200, { path: '/tasks/70?deleted=true', headers: ada }],
  [200, { path: '/tasks?deleted=true&count=true', headers: ada }],
  [201, put('/tasks/70', json, textOf('again'))],
]

async function play(name: string, prefix: string): Promise<{ answers: DescribedAnswer[]; seen: Seen }> {
  const { service, seen } = createObserved(name)
  const host = await startHost(name, service, prefix)
  numberRequests(host.server)
  const answers: DescribedAnswer[] = []
  try {
    for (const [number, [, request]] of SCRIPT.entries()) {
      const headers = { ...request.headers, 'X-Number': String(number) }
      answers.push(describeAnswer(await host.send({ ...request, headers, path: prefix + request.path }), prefix))
    }
  } finally {
    await host.close()
    await service.close()
  }
  return { answers, seen }
}

type Played = Awaited<ReturnType<typeof play>>
let reference: Played
beforeAll(async () => {
  reference = await play('plain', '')
})

describe('the hooks of a service on a plain server', () => {
  it('lead to the responses that they are for', () => {
    const shown = ([, { method = 'GET', path }]: (typeof SCRIPT)[number], status: number) =>
      `${method} ${path} ${status}`
    expect(reference.answers.map(({ status }, index) => shown(SCRIPT[index]!, status))).toEqual(
      SCRIPT.map((row) => shown(row, row[0])),
    )
  })

  it('see the request, in its asynchronous context, with the context of the host', () => {
    const { onError, ...calls } = reference.seen
    for (const [hook, requests] of Object.entries(calls)) {
      expect([hook, requests.length]).toEqual([hook, expect.any(Number)])
      expect(requests.length, hook).toBeGreaterThan(15)
      for (const request of requests) {
        expect(request).toMatchObject({
          hasHostContext: true,
          hasOwnContext: true,
          isAborted: false,
          clientAddress: '127.0.0.1',
        })
      }
    }
    expect(reference.seen.beforeWrite[1]).toMatchObject({
      ...{ method: 'POST', path: '/tasks', mount: '', query: 'x=%C3%BC&x=+', target: '/tasks?x=%C3%BC&x=+' },
      fields: { 'x-twice': 'a, b', cookie: 'a=1; b=2', 'x-number': '1' },
      principal: { scheme: 'basic', id: 'ada' },
    })
    const methods = new Set(reference.seen.authorize.map((request) => (request as { method: string }).method))
    // HEAD is judged as a GET.
    expect([...methods].sort()).toEqual(['DELETE', 'GET', 'PATCH', 'POST', 'PUT', 'QUERY'])
    expect(onError).toHaveLength(4)
  })
})

describe.each(['', '/api'])('the hooks of a service under "%s"', (prefix) => {
  const isReference = (name: string): boolean => name === 'plain' && prefix === ''

  it.each(Object.keys(hosts).filter((name) => !isReference(name)))('see and cause the same on %s', async (name) => {
    const { answers, seen } = await play(name, prefix)
    // Before all calls are compared, which is thousands of lines.
    expect(seen.authorize[0], `contexts.${name} of test/support/hosts.ts`).toMatchObject({ hasHostContext: true })
    expect(answers).toEqual(reference.answers)
    const expected = Object.entries(reference.seen).map(([hook, calls]) => [
      hook,
      calls.map((call) =>
        'mount' in call ? { ...call, mount: prefix, target: prefix + (call as { target?: string }).target } : call,
      ),
    ])
    expect(seen).toEqual(Object.fromEntries(expected))
  })
})
