import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { describe, expect, it } from 'vitest'
import { mount } from '../../src/adapters/node.ts'
import { HttpError } from '../../src/core/errors.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { startHost } from '../support/hosts.ts'
import { listenForTest } from '../support/listen.ts'
import { jsonOf, MERGE_PATCH, type SendOptions, send, startService, type Target, USER } from './support.ts'

const KEY = { 'Idempotency-Key': 'a-key-of-16-chars' }

async function start(options: ServiceOptions = {}, store?: ResourceStore): Promise<Target> {
  const resources = {
    '/users': collection({ idempotency: 'optional' }),
    '/docs/{name}': document({ idempotency: 'optional' }),
  }
  const target = await startService({ resources, ...options }, store)
  closeAfterTest(() => target.close())
  return target
}

const create = ({ port }: { readonly port: number }, path = '/users', fields = {}): Promise<Answer> =>
  send(port, 'POST', path, jsonOf(USER, { ...KEY, ...fields }))
const seen = (answer: Answer) => [answer.status, answer.field('location'), answer.field('idempotency-replayed')]
const count = async (store: ResourceStore, path = '/users') => (await store.list(path, { limit: 50 })).items.length

describe('Idempotency-Key across definitions, services and mounts', () => {
  it('is ignored while a definition has no idempotency, and known again once it has', async () => {
    const store = memoryStore()
    const on = await start({}, store)
    const off = await start({ resources: { '/users': collection() } }, store)
    expect(seen(await create(on))).toEqual([201, '/users/1', undefined])
    expect(seen(await create(off))).toEqual([201, '/users/2', undefined])
    expect(seen(await create(on))).toEqual([201, '/users/1', '?1'])
  })

  it('is known to every service over one store, whatever else their definitions say', async () => {
    const store = memoryStore()
    const one = await start({}, store)
    const resources = {
      '/users': collection({ idempotency: 'required', idempotencyRetention: 1000 }),
      '/users/{user}/notes': collection({ idempotency: 'optional' }),
    }
    const two = await start({ resources }, store)
    expect(seen(await create(one))).toEqual([201, '/users/1', undefined])
    expect(seen(await create(two))).toEqual([201, '/users/1', '?1'])
    expect(seen(await create(two, '/users/1/notes'))).toEqual([201, '/users/1/notes/1', undefined])
    expect(await count(store)).toBe(1)
  })

  it('has no record that is looked for once more where the store is away', async () => {
    const sound = memoryStore()
    const calls: string[] = []
    const store: ResourceStore = {
      ...sound,
      read(path, options) {
        calls.push('read')
        return sound.read(path, options)
      },
      create() {
        calls.push('create')
        return Promise.reject(new HttpError(503, 'ERR_UNAVAILABLE'))
      },
    }
    expect([(await create(await start({}, store))).status, calls]).toEqual([503, ['read', 'create']])
  })

  it('belongs to the target: the same key at two mounts is two keys', async () => {
    const store = memoryStore()
    const resources = { '/users': collection({ idempotency: 'optional' }) }
    const service = createResourceService(store, { resources })
    const [a, b] = [mount('/a', service), mount('/b', service)]
    const server = createServer((req, res) => (req.url!.startsWith('/a/') ? a(req, res) : b(req, res)))
    closeAfterTest(service.close)
    const target = { port: await listenForTest(server) }
    expect(seen(await create(target, '/a/users'))).toEqual([201, '/a/users/1', undefined])
    expect(seen(await create(target, '/b/users'))).toEqual([201, '/b/users/2', undefined])
    expect(seen(await create(target, '/a/users'))).toEqual([201, '/a/users/1', '?1'])
  })

  it('belongs to the target that the server sees behind a proxy that rewrites the path', async () => {
    const target = await start()
    const proxy = createServer(async (req, res) => {
      const chunks: Buffer[] = []
      for await (const chunk of req) chunks.push(chunk as Buffer)
      const fields = {
        'Content-Type': req.headers['content-type']!,
        'Idempotency-Key': String(req.headers['idempotency-key']),
      }
      const path = req.url!.replace(/^\/public/, '')
      const answer = await target.send(req.method!, path, { fields, body: Buffer.concat(chunks) })
      res.writeHead(answer.status, answer.fields.flat()).end(answer.body)
    })
    const port = await listenForTest(proxy)
    expect(seen(await create({ port }, '/public/users'))).toEqual([201, '/users/1', undefined])
    expect(seen(await create({ port }, '/public/users'))).toEqual([201, '/users/1', '?1'])
    expect(seen(await create(target))).toEqual([201, '/users/1', '?1'])
  })

  it('is one key however the path is encoded', async () => {
    const target = await start()
    expect(seen(await create(target, '/users'))).toEqual([201, '/users/1', undefined])
    expect(seen(await create(target, '/%75sers'))).toEqual([201, '/users/1', '?1'])
  })
})

describe('Idempotency-Key and clocks', () => {
  it('creates anew where the record expires between the look-up and the write', async () => {
    let time = 1_800_000_000_000
    const sound = memoryStore()
    // The first record is seen by the write only, and by then its time is over.
    let isBlind = false
    const store: ResourceStore = {
      ...sound,
      read: (path, options) => (isBlind && path.startsWith('idempotency/') ? undefined : sound.read(path, options)),
      create(path, content, options) {
        if (isBlind) time += 60_000
        return sound.create(path, content, options)
      },
    }
    const resources = { '/users': collection({ idempotency: 'optional', idempotencyRetention: 60_000 }) }
    const target = await start({ resources, now: () => time }, store)
    expect(seen(await create(target))).toEqual([201, '/users/1', undefined])
    isBlind = true
    const next = await create(target)
    expect([next.status, next.field('idempotency-replayed')]).toEqual([201, undefined])
    isBlind = false
    expect((await create(target)).field('location')).toBe(next.field('location'))
    expect(await count(store)).toBe(2)
  })

  it('creates once where two requests find the record expired: the later one leaves the new record alone', async () => {
    let time = 1_800_000_000_000
    const sound = memoryStore()
    let rival: (() => Promise<Answer>) | undefined
    const answers: Answer[] = []
    const store: ResourceStore = {
      ...sound,
      async remove(path, options) {
        const race = rival
        rival = undefined
        if (race !== undefined) answers.push(await race())
        return sound.remove(path, options)
      },
    }
    const resources = { '/users': collection({ idempotency: 'optional', idempotencyRetention: 60_000 }) }
    const target = await start({ resources, now: () => time }, store)
    await create(target)
    time += 60_000
    rival = () => create(target)
    answers.push(await create(target))
    expect(answers.map(seen)).toEqual([
      [201, answers[0]!.field('location'), undefined],
      [201, answers[0]!.field('location'), '?1'],
    ])
    expect(await count(store)).toBe(2)
  })

  it('stays known when the clock goes back', async () => {
    let time = 1_800_000_000_000
    const target = await start({ now: () => time })
    await create(target)
    for (const step of [-86_400_000, -1, 86_400_000]) {
      time += step
      expect(seen(await create(target))).toEqual([201, '/users/1', '?1'])
    }
  })
})

describe('Idempotency-Key of a request that is refused because it was done meanwhile', () => {
  const PATCH_TYPE = { 'Content-Type': 'application/json-patch+json', ...KEY }
  const patch = JSON.stringify([
    { op: 'test', path: '/n', value: 1 },
    { op: 'replace', path: '/n', value: 2 },
  ])

  /** A store in which another process is faster once: its record is there only behind the first look. */
  function createBlindStore(isAsync: boolean) {
    const sound = memoryStore()
    const looks = { left: 0 }
    const store: ResourceStore = {
      ...sound,
      read(path, options) {
        const isBlind = path.startsWith('idempotency/') && looks.left-- > 0
        const state = isBlind ? undefined : sound.read(path, options)
        return isAsync ? Promise.resolve(state) : state
      },
    }
    return { store, looks }
  }

  it.each([false, true])('gets the first response, by a store whose reads take time: %j', async (isAsync) => {
    const { store, looks } = createBlindStore(isAsync)
    let time = 1_800_000_000_000
    const { send } = await start({ now: () => time }, store)
    // Refused by what its content says, and before its content is read.
    const conditional = { ...PATCH_TYPE, 'Idempotency-Key': 'another-key-of-16' }
    for (const isConditional of [false, true]) {
      time += 60_000
      await send('PUT', '/docs/a', jsonOf({ n: 1 }))
      const condition = isConditional
        ? { ...conditional, 'If-Unmodified-Since': new Date(time).toUTCString() }
        : PATCH_TYPE
      const request = { fields: condition, body: patch }
      time += 60_000
      const first = await send('PATCH', '/docs/a', request)
      expect(first.status).toBe(200)
      looks.left = 1
      const second = await send('PATCH', '/docs/a', request)
      expect([second.status, second.text, looks.left]).toEqual([200, first.text, -1])
      expect(second.field('idempotency-replayed')).toBe('?1')
    }
  })

  it.each([false, true])(
    'is refused as before where nothing was done, and where it is another: %j',
    async (isAsync) => {
      const { store, looks } = createBlindStore(isAsync)
      const { send } = await start({}, store)
      await send('PUT', '/docs/a', jsonOf({ n: 2 }))
      const request = { fields: PATCH_TYPE, body: patch }
      expect((await send('PATCH', '/docs/a', request)).status).toBe(409)
      await send('PUT', '/docs/a', jsonOf({ n: 1 }))
      expect((await send('PATCH', '/docs/a', request)).status).toBe(200)
      looks.left = 1
      const other = await send('PATCH', '/docs/a', { ...request, body: patch.replace('2', '3') })
      expect(other.status).toBe(422)
    },
  )
})

it.each([false, true])(
  'a used key refuses another form before its parts are judged, by a store whose reads take time: %j',
  async (isAsync) => {
    const sound = memoryStore()
    const store: ResourceStore = {
      ...sound,
      read(path, options) {
        const state = sound.read(path, options)
        return isAsync ? Promise.resolve(state) : state
      },
    }
    const photos = collection({ idempotency: 'optional', files: { photo: {} }, maxSize: 10 })
    const { send } = await start({ resources: { '/photos': photos } }, store)
    const form = (name: string, content: string, key = KEY) => ({
      fields: { 'Content-Type': 'multipart/form-data; boundary=x', ...key },
      body: `--x\r\nContent-Disposition: form-data; name="${name}"; filename="a"\r\n\r\n${content}\r\n--x--\r\n`,
    })
    const unused = { 'Idempotency-Key': 'another-key-of-16' }
    const statusAndType = async (options: SendOptions) => {
      const answer = await send('POST', '/photos', options)
      return [answer.status, answer.json().type.split(':').at(-1)]
    }
    expect((await send('POST', '/photos', form('photo', 'small'))).status).toBe(201)
    expect(await statusAndType(form('photo', 'of 11 bytes', unused))).toEqual([413, 'too-large'])
    for (const other of [form('photo', 'of 11 bytes'), form('scan', 'small')]) {
      expect(await statusAndType(other)).toEqual([422, 'idempotency-key-reused'])
    }
    expect(seen(await send('POST', '/photos', form('photo', 'small')))).toEqual([201, '/photos/1', '?1'])
  },
)

describe('Idempotency-Key and other fields and methods', () => {
  it.each([255, 256])('has 255 characters at most, with quotes and without: %i', async (length) => {
    const target = await start()
    const key = 'k'.repeat(length)
    const [first, quoted] = [
      await create(target, '/users', { 'Idempotency-Key': key }),
      await create(target, '/users', { 'Idempotency-Key': `"${key}"` }),
    ]
    expect([first.status, quoted.status]).toEqual(length === 255 ? [201, 201] : [400, 400])
    expect(quoted.field('idempotency-replayed')).toBe(length === 255 ? '?1' : undefined)
  })

  it('is honoured over HTTP/2, and refused in two field lines', async () => {
    const service = createResourceService(memoryStore(), {
      https: 'optional',
      resources: { '/users': collection({ idempotency: 'optional' }) },
    })
    const host = await startHost('http2', service)
    const session = connectHttp2(`http://127.0.0.1:${host.port}`)
    closeAfterTest(service.close)
    closeAfterTest(() => host.close())
    closeAfterTest(() => session.close())
    const post = async (key: string | string[]) => {
      const head = { ':method': 'POST', ':path': '/users', 'content-type': 'application/json', 'idempotency-key': key }
      const stream = session.request(head).resume()
      stream.end('{"name":"Ann"}')
      const [fields] = (await once(stream, 'response')) as [Record<string, unknown>]
      return [fields[':status'], fields['idempotency-replayed']]
    }
    const key = KEY['Idempotency-Key']
    expect([await post(key), await post(`"${key}"`), await post([key, key])]).toEqual([
      [201, undefined],
      [201, '?1'],
      [400, undefined],
    ])
  })

  it('has no effect on GET, HEAD, PUT, DELETE and OPTIONS, however malformed it is', async () => {
    const { send } = await start()
    const malformed: readonly (readonly [string, string])[] = [
      ['Idempotency-Key', 'a,b'],
      ['Idempotency-Key', ''],
    ]
    const put = { fields: [['Content-Type', 'application/json'] as const, ...malformed], body: '{}' }
    const requests: readonly (readonly [string, SendOptions])[] = [
      ['PUT', put],
      ['PUT', put],
      ['GET', { fields: malformed }],
      ['HEAD', { fields: malformed }],
      ['OPTIONS', { fields: malformed }],
      ['DELETE', { fields: malformed }],
      ['DELETE', { fields: malformed }],
    ]
    const statuses: number[] = []
    for (const [method, options] of requests) statuses.push((await send(method, '/docs/a', options)).status)
    expect(statuses).toEqual([201, 204, 200, 200, 204, 204, 410])
  })

  it('covers a PATCH that changes nothing, although its repetition would change something', async () => {
    const { send } = await start()
    await send('PUT', '/docs/a', jsonOf({ n: 1 }))
    const patch = () => send('PATCH', '/docs/a', { fields: { ...MERGE_PATCH, ...KEY }, body: '{"n":1}' })
    const first = await patch()
    await send('PUT', '/docs/a', jsonOf({ n: 2 }))
    const second = await patch()
    expect([second.status, second.text, second.field('etag')]).toEqual([first.status, first.text, first.field('etag')])
    expect(second.field('idempotency-replayed')).toBe('?1')
    expect((await send('GET', '/docs/a')).json()).toEqual({ n: 2 })
  })

  it('repeats the response that the first request has preferred', async () => {
    const target = await start()
    const first = await create(target, '/users', { Prefer: 'return=minimal' })
    const second = await create(target, '/users', { Prefer: 'return=representation' })
    expect([first.text, first.field('preference-applied')]).toEqual(['', 'return=minimal'])
    expect([second.text, second.field('preference-applied'), second.field('idempotency-replayed')]).toEqual([
      '',
      'return=minimal',
      '?1',
    ])
  })
})
