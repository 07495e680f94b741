import { createServer, type RequestListener } from 'node:http'
import express from 'express'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { hosts, type RunningHost, runServer, startHost } from '../support/hosts.ts'
import { JSON_TYPE, multipartOf } from './support.ts'

const KEY = { 'Idempotency-Key': 'a-key-of-16-chars' }
const BYTES = { 'Content-Type': 'application/octet-stream' }
const LARGE = Buffer.alloc(1_500_000, 'large content ')

interface Running {
  readonly host: RunningHost
  readonly store: ResourceStore
  close(): Promise<void>
}

async function run(start: (service: ReturnType<typeof createResourceService>) => Promise<RunningHost>) {
  const store = memoryStore()
  const service = createResourceService(store, {
    https: 'optional',
    resources: {
      '/users': collection({ idempotency: 'optional' }),
      '/races': collection({ idempotency: 'optional' }),
      '/orders': collection({ idempotency: 'required' }),
      '/notes': collection({ idempotency: 'optional', types: ['application/octet-stream'] }),
      '/photos': collection({ idempotency: 'optional', files: { photo: {} } }),
      '/jobs': collection({ idempotency: 'required', create: 'accepted', process: () => ({ pages: 3 }) }),
    },
  })
  const host = await start(service)
  const close = async (): Promise<void> => {
    await host.close()
    await service.close()
  }
  return { host, store, close } satisfies Running
}

function post({ host }: Running, path: string, body: string | Uint8Array, headers = {}): Promise<Answer> {
  return host.send({ method: 'POST', path: `/api${path}`, headers: { ...JSON_TYPE, ...KEY, ...headers }, body })
}

/** A form with one file, under another boundary each time. */
function postForm(running: Running, photo: Uint8Array, boundary: string): Promise<Answer> {
  const form = multipartOf([
    { name: 'title', content: 'Sea' },
    { name: 'photo', filename: 'sea.png', type: 'image/png', content: photo },
  ])
  const [type] = Object.values(form.fields as Readonly<Record<string, string>>)
  const used = type!.slice(type!.indexOf('=') + 1)
  const body = Buffer.from(Buffer.from(form.body!).toString('latin1').replaceAll(used, boundary), 'latin1')
  return post(running, '/photos', body, { 'Content-Type': `multipart/form-data; boundary=${boundary}` })
}

/** The second answer is the first, byte for byte, and says that it is a repetition. */
function expectRepetition(first: Answer, second: Answer, status = 201): void {
  const { etag, location, 'content-location': place, 'content-type': type } = first.headers
  expect([first.status, typeof location, first.headers['idempotency-replayed']]).toEqual([status, 'string', undefined])
  expect([second.status, second.body.toString('latin1')]).toEqual([status, first.body.toString('latin1')])
  const { headers } = second
  expect([headers['etag'], headers['location'], headers['content-location'], headers['content-type']]).toEqual([
    etag,
    location,
    place,
    type,
  ])
  expect([headers['idempotency-replayed'], headers['cache-control']]).toEqual(['?1', 'no-store'])
}

async function expectItems({ store }: Running, path: string, count: number): Promise<void> {
  expect((await store.list(path, { limit: 5 })).items).toHaveLength(count)
}

/** A repeated request gets the first response; another body with the same key is refused. */
async function expectOneCreation(running: Running): Promise<void> {
  const first = await post(running, '/users', '{"name":"Ann"}')
  expect(first.headers['location']).toBe('/api/users/1')
  expectRepetition(first, await post(running, '/users', '{"name":"Ann"}'))
  expect((await post(running, '/users', '{"name":"Bob"}')).status).toBe(422)
  await expectItems(running, '/users', 1)
}

describe.each(Object.keys(hosts))('Idempotency-Key on %s', (name) => {
  let running: Running
  beforeAll(async () => {
    running = await run((service) => startHost(name, service, '/api'))
  })
  afterAll(() => running.close())

  it('creates once and repeats the first response (issue 20, all hosts)', () => expectOneCreation(running))

  it('creates once for eight simultaneous requests (issue 20, all hosts)', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => post(running, '/races', '{"name":"Ann"}')))
    const first = answers.filter(({ headers }) => headers['idempotency-replayed'] === undefined)
    expect(first).toHaveLength(1)
    for (const answer of answers) if (answer !== first[0]) expectRepetition(first[0]!, answer)
    await expectItems(running, '/races', 1)
  })

  it('compares streamed content (issue 20, all hosts)', async () => {
    const first = await post(running, '/notes', LARGE, BYTES)
    expectRepetition(first, await post(running, '/notes', LARGE, BYTES))
    const other = Buffer.from(LARGE)
    other[other.length - 1]! ^= 1
    expect((await post(running, '/notes', other, BYTES)).status).toBe(422)
    await expectItems(running, '/notes', 1)
  })

  it('compares the parts of a form, whatever its boundary is (issue 20, all hosts)', async () => {
    const first = await postForm(running, LARGE, 'one')
    expectRepetition(first, await postForm(running, LARGE, 'two'))
    expect((await postForm(running, LARGE.subarray(1), 'one')).status).toBe(422)
    await expectItems(running, '/photos', 1)
  })

  it('accepts work once (issue 20, all hosts)', async () => {
    const first = await post(running, '/jobs', '{"title":"a"}')
    expectRepetition(first, await post(running, '/jobs', '{"title":"a"}'), 202)
    await expectItems(running, '/jobs', 1)
  })

  it("answers 400 without a key where it is 'required', and for a malformed one (draft §2.7)", async () => {
    const missing = await running.host.send({ method: 'POST', path: '/api/orders', headers: JSON_TYPE, body: '{}' })
    const malformed = await post(running, '/orders', '{}', { 'Idempotency-Key': '"unfinished-key-of-20' })
    expect([missing.status, malformed.status]).toEqual([400, 400])
    expect(missing.body.toString()).toContain('idempotency-key-required')
    await expectItems(running, '/orders', 0)
  })
})

describe('Idempotency-Key behind a body parser of the host', () => {
  const closers: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0)) await close()
  })

  it.each([
    ['express.json()', express.json()],
    ['express.text()', express.text({ type: '*/*' })],
    ['express.raw()', express.raw({ type: '*/*' })],
  ])('compares the content that %s has left (issue 20, all hosts)', async (_, parser) => {
    const running = await run((service) => {
      const app = express().disable('x-powered-by').use('/api', parser, service)
      return runServer(createServer(app as RequestListener))
    })
    closers.push(running.close)
    await expectOneCreation(running)
  })
})
