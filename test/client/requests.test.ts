import { runInNewContext } from 'node:vm'
import { describe, expect, it, vi } from 'vitest'
import { createResourceClient, expectSuccess, type Fetch, ResponseError } from '../../src/client.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { startHost } from '../support/hosts.ts'
import { resources } from './resources.ts'
import { start } from './servers.ts'

function serve(): Promise<string> {
  return start(createResourceService(memoryStore(), { resources, https: 'optional' }))
}

async function open() {
  const base = await serve()
  return { base, client: createResourceClient<typeof resources>(base) }
}

describe('createResourceClient with definitions', () => {
  it('creates, reads, replaces, edits, lists and removes (issue 21: the client)', async () => {
    const { client } = await open()
    const created = expectSuccess(await client.create('/users', { name: 'Ada' }))
    expect(created.document.value).toEqual({ id: 1, name: 'Ada', role: 'member' })
    expect(created.document.entityTag).toMatch(/^".+"$/)
    const replaced = expectSuccess(await client.replace(created.document, { name: 'Ada L.', role: 'admin' }))
    expect(replaced.document.value).toEqual({ id: 1, name: 'Ada L.', role: 'admin' })
    const edited = expectSuccess(await client.edit(replaced.document, (user) => ({ ...user, name: 'Countess' })))
    expect(edited.document.value.name).toBe('Countess')
    const read = expectSuccess(await client.read('/users/{id}', { id: 1 }))
    expect(read.document).toEqual(edited.document)
    const names: string[] = []
    for await (const user of client.list('/users')) names.push(user.name)
    expect(names).toEqual(['Countess'])
    expect(await client.remove(read.document)).toMatchObject({ ok: true, status: 204 })
    expect(await client.read(read.document)).toMatchObject({ ok: false, status: 410 })
  })

  it('gives a refusal that the protocol foresees as a result with its problem (RFC 9457)', async () => {
    const { client } = await open()
    const missing = await client.read('/users/{id}', { id: 7 })
    expect(missing).toMatchObject({
      ok: false,
      status: 404,
      problem: { type: 'urn:problem-type:http-resource-service:not-found', status: 404 },
    })
    const invalid = await client.create('/users', { name: 1 } as never)
    expect(invalid).toMatchObject({ ok: false, status: 422, problem: { errors: [{ pointer: '/name' }] } })
    expect(() => expectSuccess(invalid)).toThrow(ResponseError)
    const { document } = expectSuccess(await client.create('/users', { name: 'Ada' }))
    await client.edit(document, (user) => ({ ...user, name: 'Grace' }))
    const late = await client.replace(document, { name: 'Ada' })
    expect(late).toEqual({ ok: false, status: 412, problem: { type: 'about:blank', status: 412 } })
    expect(await client.remove(document)).toMatchObject({ ok: false, status: 412 })
  })

  it('writes without a document only where the match is said (RFC 9110 §13.1.1, §13.1.2)', async () => {
    const { client } = await open()
    expect(await client.replace('/counters/{name}', { name: 'a' }, 'any', { n: 1 })).toMatchObject({ status: 412 })
    expect(await client.replace('/counters/{name}', { name: 'a' }, 'absent', { n: 1 })).toMatchObject({ status: 201 })
    expect(await client.replace('/counters/{name}', { name: 'a' }, 'absent', { n: 2 })).toMatchObject({ status: 412 })
    expect(await client.replace('/counters/{name}', { name: 'a' }, 'any', { n: 3 })).toMatchObject({ status: 204 })
    const read = expectSuccess(await client.read('/counters/{name}', { name: 'a' }))
    expect(read.document.value).toEqual({ n: 3 })
    await expect(client.replace('/config/app', { theme: 'dark' } as never, 1 as never)).rejects.toThrow(TypeError)
    expect(await client.remove('/counters/{name}', { name: 'a' }, 'any')).toMatchObject({ ok: true })
  })

  it('walks through all pages by Link (RFC 8288)', async () => {
    const { base, client } = await open()
    for (let i = 0; i < 7; i++) await client.create('/log', { i })
    const items: unknown[] = []
    for await (const item of client.list('/log', { limit: 3 })) items.push(item['i'])
    expect(items).toEqual([0, 1, 2, 3, 4, 5, 6])
    const sizes: number[] = []
    for await (const page of client.list('/log', { limit: 3 }).pages()) sizes.push(expectSuccess(page).items.length)
    expect(sizes).toEqual([3, 3, 1])
    const missing = createResourceClient(base).list('/none')
    for await (const page of missing.pages()) expect(page).toMatchObject({ ok: false, status: 404 })
    await expect(missing[Symbol.asyncIterator]().next()).rejects.toMatchObject({ name: 'ResponseError', status: 404 })
  })

  it('begins a list behind a page, so that a program without the list can show the next one', async () => {
    const { client } = await open()
    for (let i = 0; i < 5; i++) await client.create('/log', { i })
    const readPage = async (after?: string) => {
      for await (const page of client.list('/log', { limit: 2, after }).pages()) return expectSuccess(page)
      throw new Error('A list has a page.')
    }
    const seen: unknown[] = []
    let after: string | undefined
    do {
      const { items, next } = await readPage(after)
      seen.push(items.map(({ i }) => i))
      after = next
    } while (after)
    expect(seen).toEqual([[0, 1], [2, 3], [4]])
  })

  it.each([
    ['</a?limit=2&after=x%2Fy%20z>; rel="next"', 'x/y z'],
    ['</a?page=2>; rel="next"', undefined],
    ['</a?after=1>; rel="prev"', undefined],
    ['<http://[/?after=%ff>; title="a, b"; rel=next', '\ufffd'],
  ])('gives what a Link names as "after": %s', async (link, next) => {
    const base = await start((_req, res) => {
      res.setHeader('Content-Type', 'application/json').setHeader('Link', link).end('[]')
    })
    const { value } = await createResourceClient(base).list('/a').pages().next()
    expect(value).toMatchObject({ ok: true, next })
  })

  it('sends query, operators and sort keys', async () => {
    const seen: string[] = []
    const base = await start((req, res) => {
      seen.push(decodeURIComponent(req.url!))
      res.setHeader('Content-Type', 'application/json').setHeader('X-Total-Count', '12').end('[]')
    })
    const list = createResourceClient(base).list('/tasks', {
      query: {
        status: ['open', 'late'],
        dueAt: { gte: new Date(0), exists: true },
        done: undefined,
        city: [],
        // A class of decimal numbers.
        price: { lt: { toString: () => '9.5' } as never },
      },
      sort: ['-dueAt', 'priority'],
      count: true,
    })
    for await (const page of list.pages()) expect(page).toMatchObject({ total: 12, next: undefined })
    // A `Date` of jsdom is one of another realm.
    const before: Date = runInNewContext('new Date(0)')
    for await (const page of createResourceClient(base)
      .list('/tasks?a=1', { query: { dueAt: before } })
      .pages())
      expectSuccess(page)
    for await (const page of createResourceClient(base).list('/tasks', { sort: [], count: false }).pages())
      expectSuccess(page)
    expect(seen).toEqual([
      '/tasks?status=open&status=late&dueAt[gte]=1970-01-01T00:00:00.000Z&dueAt[exists]=true&price[lt]=9.5&sort=-dueAt,priority&count=true',
      '/tasks?a=1&dueAt=1970-01-01T00:00:00.000Z',
      '/tasks',
    ])
  })

  it('refuses an option of a list that does not exist: a filter beside query would leave the list whole', () => {
    const client = createResourceClient('https://host.example')
    const { signal } = new AbortController()
    const query = { status: 'open' }
    expect(
      client.list('/tasks', { query, sort: '-id', limit: 2, count: true, after: 'a', signal, timeout: 1 }),
    ).toBeDefined()
    const options = { limit: 2, status: 'open' }
    expect(() => client.list('/tasks', options as object)).toThrow(new TypeError('list has no option "status".'))
    expect(() => client.list('/tasks', { id: 7 } as object)).toThrow('"id"')
    // Code of others may put properties on every object.
    const polluted = Object.prototype as { extend?: boolean }
    polluted.extend = true
    try {
      expect(client.list('/tasks', { query })).toBeDefined()
    } finally {
      delete polluted.extend
    }
  })

  it('follows no Link and no Location to another origin: credentials would go there', async () => {
    const base = await start((_req, res) => {
      res.setHeader('Content-Type', 'application/json').setHeader('Link', '<https://evil.example/>; rel="next"')
      res
        .setHeader('Location', 'https://evil.example/1')
        .writeHead(_req.method === 'POST' ? 201 : 200)
        .end('[]')
    })
    const client = createResourceClient(base)
    const walk = async () => {
      for await (const item of client.list('/a')) expect(item).toBeUndefined()
    }
    await expect(walk()).rejects.toThrow(/another origin/)
    await expect(client.create('/a', {})).rejects.toThrow(/another origin/)
  })

  it('waits for accepted work as long as Retry-After says', async () => {
    const { client } = await open()
    const created = expectSuccess(await client.create('/jobs', { pages: 3 }))
    expect(created.status).toBe(202)
    const done = expectSuccess(await client.wait(created.operation))
    expect(done.document.value).toMatchObject({ id: 1, pages: 3, printed: true, state: 'ready' })
    const removal = expectSuccess(await client.remove('/jobs/{id}', { id: 1 }, 'any'))
    if (removal.status !== 202) throw new Error(`The removal is answered ${removal.status}.`)
    const removed = expectSuccess(await client.wait(removal.operation, { signal: AbortSignal.timeout(10_000) }))
    expect(removed.document.value).toMatchObject({ state: 'done' })
  })

  it('encodes parameters, and refuses those that would lead elsewhere', async () => {
    const { base, client } = await open()
    const name = 'ä b?c#d%2f'
    expect(await client.replace('/counters/{name}', { name }, 'absent', { n: 1 })).toMatchObject({ status: 201 })
    expect(await client.read('/counters/{name}', { name })).toMatchObject({ ok: true })
    for (const wrong of ['', '.', '..', undefined, null]) {
      await expect(client.read('/counters/{name}', { name: wrong as string })).rejects.toThrow(TypeError)
    }
    await expect(createResourceClient(`${base}/api`).read('/../config')).rejects.toThrow(TypeError)
    await expect(createResourceClient(base).read('https://evil.example/a')).rejects.toThrow(TypeError)
    const elsewhere = { url: 'https://evil.example/a', entityTag: '"1"', lastModified: undefined }
    await expect(createResourceClient(base).read(elsewhere)).rejects.toThrow(TypeError)
  })

  it('transfers what has not changed only once (RFC 9110 §13.1.2)', async () => {
    const base = await serve()
    const statuses: number[] = []
    const platformFetch: Fetch = fetch
    const spy: Fetch = async (url, options) => {
      const response = await platformFetch(url, options)
      if (options.method === 'GET') statuses.push(response.status)
      return response
    }
    const client = createResourceClient<typeof resources>(base, { fetch: spy, cacheSize: 2 })
    await client.create('/users', { name: 'Ada' })
    const first = expectSuccess(await client.read('/users/{id}', { id: 1 }))
    Object.assign(first.document.value, { name: 'changed by the program' })
    const second = expectSuccess(await client.read('/users/{id}', { id: 1 }))
    expect(second.document.value).toEqual({ id: 1, name: 'Ada', role: 'member' })
    expect(statuses).toEqual([200, 304])
    await client.edit('/users/{id}', { id: 1 }, (user) => ({ ...user, name: 'Grace' }))
    expect(expectSuccess(await client.read('/users/{id}', { id: 1 })).document.value.name).toBe('Grace')
    expect(statuses).toEqual([200, 304, 304, 200])
    for (const name of ['a', 'b']) await client.replace('/counters/{name}', { name }, 'absent', { n: 1 })
    await client.read('/users/{id}', { id: 1 })
    expect(statuses.at(-1)).toBe(200)
    // What is read goes last.
    for (const name of ['a', 'b']) {
      await client.read('/counters/{name}', { name })
      await client.read('/users/{id}', { id: 1 })
    }
    expect(statuses.slice(-3)).toEqual([304, 200, 304])
  })

  it('works below a mount of Koa and of Hono', async () => {
    for (const name of ['Koa 3', 'Hono']) {
      const host = await startHost(name, createResourceService(memoryStore(), { resources, https: 'optional' }), '/api')
      try {
        const client = createResourceClient<typeof resources>(`http://127.0.0.1:${host.port}/api/`)
        const { document } = expectSuccess(await client.create('/users', { name: 'Ada' }))
        expect(document.url).toBe(`http://127.0.0.1:${host.port}/api/users/1`)
        expect(await client.edit(document, (user) => ({ ...user, name: 'Grace' }))).toMatchObject({ ok: true })
        expect(await client.remove('/users/{id}', { id: 1 }, 'any')).toMatchObject({ ok: true })
      } finally {
        await host.close()
      }
    }
  })

  it('asks for the token and the header fields before each attempt', async () => {
    const seen: unknown[] = []
    const base = await start((req, res) => {
      seen.push([req.headers.authorization, req.headers['x-tenant']])
      res
        .setHeader('Content-Type', 'application/json')
        .writeHead(seen.length === 1 ? 503 : 200)
        .end('{}')
    })
    let count = 0
    const client = createResourceClient(base, {
      token: async () => `t${++count}`,
      headers: () => Promise.resolve({ 'X-Tenant': 'a' }),
    })
    await client.read('/a')
    expect(seen).toEqual([
      ['Bearer t1', 'a'],
      ['Bearer t2', 'a'],
    ])
  })

  it('sends the token and its own fields instead of those of the option headers', async () => {
    const seen: unknown[] = []
    const base = await start((req, res) => {
      seen.push([req.headers.authorization, req.headers['if-match'], req.headers['x-tenant']])
      res.writeHead(204).end()
    })
    const headers = { Authorization: 'Basic YTpi', 'If-Match': '"x"', 'X-Tenant': 'a' }
    await createResourceClient(base, { token: 't', headers }).remove('/a', 'any')
    await createResourceClient(base, { headers }).remove('/a', 'any')
    expect(seen).toEqual([
      ['Bearer t', '*', 'a'],
      ['Basic YTpi', '*', 'a'],
    ])
  })
})

describe('createResourceClient', () => {
  it('refuses a path whose dots lead to a neighbour of its base', async () => {
    const requests: string[] = []
    const fetch = (async (url: string) => {
      requests.push(url)
      return Response.json({})
    }) as unknown as Fetch
    const client = createResourceClient('https://example.org/api', { fetch })
    await expect(client.read('/../api-admin/keys')).rejects.toThrow('The path leads out of https://example.org/api')
    await expect(client.read('/../api')).rejects.toThrow('The path leads out of https://example.org/api')
    expect(requests).toEqual([])
    await client.read('/')
    expect(requests).toEqual(['https://example.org/api/'])
  })

  it('refuses options that make no sense', () => {
    const create = createResourceClient as (base: unknown, options?: unknown) => unknown
    for (const options of [
      { maxAttempts: 0 },
      { prefer: 'xml' },
      { fetch: 'x' },
      { retry: 1 },
      { token: 1 },
      { headers: 'Accept: a' },
      { headers: Promise.resolve({ Accept: 'a' }) },
      { timeout: 0 },
      { retries: -1 },
      { cacheSize: -1 },
    ]) {
      expect(() => create('http://a.example', options)).toThrow(TypeError)
    }
    expect(() => create('http://a.example', { token: undefined, retries: undefined })).not.toThrow()
    expect(() => create('/api')).toThrow(TypeError)
    expect(() => create('http://a.example/?b')).toThrow(TypeError)
    expect(() => create({ fetch: vi.fn() })).toThrow(TypeError)
  })

  it('throws what the definition does not foresee: another status, content that is not JSON', async () => {
    const answers: [number, string, string][] = [
      [200, 'text/plain', '{}'],
      [200, 'application/json', '{'],
      [418, 'application/json', '{"title":"teapot"}'],
      [500, 'text/html', 'oops'],
    ]
    for (const [status, type, body] of answers) {
      const base = await start((_req, res) => void res.setHeader('Content-Type', type).writeHead(status).end(body))
      await expect(createResourceClient(base).read('/a')).rejects.toMatchObject({ name: 'ResponseError', status })
    }
  })

  it('throws the reason of the signal, also during a pause', async () => {
    const base = await start((_req, res) => void res.setHeader('Retry-After', '20').writeHead(503).end())
    const client = createResourceClient(base)
    await expect(client.read('/a', { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
    const controller = new AbortController()
    setTimeout(() => controller.abort(new Error('enough')), 100)
    await expect(client.read('/a', { signal: controller.signal })).rejects.toThrow('enough')
  })

  it('gives up an attempt that takes too long, and no connection leads to a ResponseError', async () => {
    const base = await start(() => undefined)
    const client = createResourceClient(base, { timeout: 50, retries: 1 })
    await expect(client.read('/a')).rejects.toMatchObject({
      name: 'ResponseError',
      status: 0,
      mayHaveTakenEffect: false,
    })
    await expect(client.create('/a', {})).rejects.toMatchObject({ status: 0, mayHaveTakenEffect: true })
    await expect(createResourceClient('http://127.0.0.1:9', { retries: 0 }).read('/a')).rejects.toBeInstanceOf(
      ResponseError,
    )
  })
})
