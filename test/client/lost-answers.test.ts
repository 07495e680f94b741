import { describe, expect, it } from 'vitest'
import { createResourceClient, expectSuccess, type ResourceClientOptions } from '../../src/client.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { resources } from './resources.ts'
import { loseFirst, start, startLossyProxy } from './servers.ts'

/** A client whose first answer to one method is lost, and one beside it that loses nothing. */
async function open(method: string, options?: ResourceClientOptions<typeof resources>) {
  const base = await start(createResourceService(memoryStore(), { resources, https: 'optional' }))
  const lossy = await startLossyProxy(base, loseFirst(method))
  return {
    base,
    safe: createResourceClient<typeof resources>(base),
    client: createResourceClient<typeof resources>(lossy, options),
  }
}

describe('a client whose answer was lost after the server had done its work', () => {
  it('takes its own edit for no conflict (issue 21: compare before reporting a conflict)', async () => {
    const { client, safe } = await open('PATCH')
    await safe.replace('/counters/{name}', { name: 'a' }, 'absent', { n: 1 })
    const edited = await client.edit('/counters/{name}', { name: 'a' }, (value) => ({
      ...(value as JsonObject),
      n: 2,
    }))
    expect(expectSuccess(edited).document.value).toEqual({ n: 2 })
    expect(expectSuccess(await safe.read('/counters/{name}', { name: 'a' })).document.value).toEqual({ n: 2 })
  })

  it('takes its own edit for no conflict where it may try once only', async () => {
    const { client, safe } = await open('PATCH', { maxAttempts: 1 })
    await safe.replace('/counters/{name}', { name: 'a' }, 'absent', { n: 1 })
    const edited = await client.edit('/counters/{name}', { name: 'a' }, () => ({ n: 2 }))
    expect(expectSuccess(edited).document.value).toEqual({ n: 2 })
  })

  it('creates one item where the collection keeps keys', async () => {
    const { client, safe } = await open('POST', { keyed: ['/orders'] })
    const created = expectSuccess(await client.create('/orders', { pages: 3 }))
    expect(created.document.value).toEqual({ id: 1, pages: 3 })
    const items: unknown[] = []
    for await (const item of safe.list('/orders')) items.push(item)
    expect(items).toEqual([{ id: 1, pages: 3 }])
  })

  it('does not apply an edit twice below the change of another client', async () => {
    const base = await start(createResourceService(memoryStore(), { resources, https: 'optional' }))
    const safe = createResourceClient<typeof resources>(base)
    await safe.replace('/counters/{name}', { name: 'a' }, 'absent', { n: 1, log: 0 })
    const change = (name: string) =>
      safe.edit('/counters/{name}', { name: 'a' }, (value) => ({
        ...(value as JsonObject),
        [name]: Number((value as JsonObject)[name]) + 1,
      }))
    const lose = loseFirst('PATCH')
    let other: Promise<unknown> = Promise.resolve()
    const target = await startLossyProxy(base, (req) => {
      const treatment = lose(req)
      if (treatment === 'drop') other = change('log')
      return treatment
    })
    const client = createResourceClient<typeof resources>(target)
    const edited = await client.edit('/counters/{name}', { name: 'a' }, async (value) => {
      await other
      return { ...(value as JsonObject), n: Number((value as JsonObject)['n']) + 1 }
    })
    await other
    expect(edited).toMatchObject({ ok: true })
    expect(expectSuccess(await safe.read('/counters/{name}', { name: 'a' })).document.value).toEqual({ n: 2, log: 1 })
  })

  it('reports the conflict of an edit where it cannot know whether its own took effect', async () => {
    const base = await start(createResourceService(memoryStore(), { resources, https: 'optional' }))
    const safe = createResourceClient<typeof resources>(base)
    await safe.replace('/counters/{name}', { name: 'a' }, 'absent', { n: 1 })
    const lose = loseFirst('PATCH')
    const target = await startLossyProxy(base, (req) => {
      const treatment = lose(req)
      if (treatment === 'drop') void safe.replace('/counters/{name}', { name: 'a' }, 'any', { n: 9 })
      return treatment
    })
    const client = createResourceClient<typeof resources>(target)
    const edited = await client.edit('/counters/{name}', { name: 'a' }, (value) => ({
      n: Number((value as JsonObject)['n']) + 1,
    }))
    expect(edited).toMatchObject({ status: 412, conflicts: [{ pointer: '/n', base: 1, mine: 2, theirs: 9 }] })
  })

  it.each([
    // A proxy may say so of an answer that it has lost.
    [502, 'after', 2],
    [503, 'after', 2],
    [504, 'after', 2],
    // What was refused by 429 was not done: the function sees the change of the other client.
    [429, 'instead', 10],
  ] as const)('counts once where a proxy answers %i', async (status, when, n) => {
    const base = await start(createResourceService(memoryStore(), { resources, https: 'optional' }))
    const safe = createResourceClient<typeof resources>(base)
    await safe.replace('/counters/{name}', { name: 'a' }, 'absent', { n: 1 })
    let isFirst = true
    const proxy = await start(async (req, res) => {
      const chunks: Buffer[] = []
      for await (const chunk of req) chunks.push(chunk as Buffer)
      const isLost = req.method === 'PATCH' && isFirst
      if (isLost) isFirst = false
      if (isLost && when === 'instead') {
        await safe.replace('/counters/{name}', { name: 'a' }, 'any', { n: 9 })
        return void res.writeHead(status).end()
      }
      const { method = 'GET', headers } = req
      const fields = Object.entries(headers).filter(([name]) => /^(?:if-|content-type|prefer)/.test(name))
      const body = chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }
      const answer = await fetch(base + req.url!, { method, headers: fields as [string, string][], ...body })
      const content = await answer.text()
      if (isLost) res.writeHead(status).end()
      else res.writeHead(answer.status, Object.fromEntries(answer.headers)).end(content)
    })
    const client = createResourceClient<typeof resources>(proxy)
    const edited = await client.edit('/counters/{name}', { name: 'a' }, (value) => ({
      n: Number((value as JsonObject)['n']) + 1,
    }))
    expect(edited).toMatchObject({ ok: true })
    expect(expectSuccess(await safe.read('/counters/{name}', { name: 'a' })).document.value).toEqual({ n })
  })

  it('takes its own replacement for no conflict, with what the server added to it', async () => {
    const { client, safe } = await open('PUT')
    await safe.create('/users', { name: 'Ada' })
    const { document } = expectSuccess(await client.read('/users/{id}', { id: 1 }))
    const replaced = expectSuccess(await client.replace(document, { name: 'Grace' }))
    expect(replaced.document.value).toEqual({ id: 1, name: 'Grace', role: 'member' })
    expect(await client.edit(replaced.document, (user) => ({ ...user, role: 'admin' }))).toMatchObject({ ok: true })
  })

  it('takes its own replacement by what was there for no conflict, without the id that the server adds', async () => {
    const { client, safe } = await open('PUT')
    await safe.create('/users', { name: 'Ada' })
    const { document } = expectSuccess(await client.read('/users/{id}', { id: 1 }))
    expect(await client.replace(document, { name: 'Ada', role: 'member' })).toMatchObject({ ok: true })
  })

  it('reports the conflict of a removal of a property that another client has kept', async () => {
    const base = await start(createResourceService(memoryStore(), { resources, https: 'optional' }))
    const safe = createResourceClient<typeof resources>(base)
    await safe.replace('/counters/{name}', { name: 'a' }, 'absent', { a: 1, b: 2 })
    const lossy = await start(async (req, res) => {
      const response = await fetch(base + req.url!)
      // The write never gets there, and another client writes meanwhile.
      if (req.method === 'PUT' && req.headers['if-match'] !== undefined) {
        await safe.replace('/counters/{name}', { name: 'a' }, 'any', { a: 1, b: 2, c: 3 })
        res.writeHead(lost++ === 0 ? 504 : 412).end()
      } else res.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text())
    })
    let lost = 0
    const client = createResourceClient<typeof resources>(lossy)
    const { document } = expectSuccess(await client.read('/counters/{name}', { name: 'a' }))
    expect(await client.replace(document, { a: 1 })).toMatchObject({ ok: false, status: 412 })
  })

  it('takes its own creation by PUT for no conflict, and reports that of another client', async () => {
    const { client } = await open('PUT')
    expect(await client.replace('/counters/{name}', { name: 'a' }, 'absent', { n: 1 })).toMatchObject({ ok: true })
    expect(await client.replace('/counters/{name}', { name: 'a' }, 'absent', { n: 1 })).toMatchObject({ status: 412 })
    const base = await start(createResourceService(memoryStore(), { resources, https: 'optional' }))
    const lossy = await startLossyProxy(base, loseFirst('PUT'))
    const other = createResourceClient<typeof resources>(base)
    await other.replace('/counters/{name}', { name: 'a' }, 'absent', { n: 2 })
    const late = createResourceClient<typeof resources>(lossy)
    expect(await late.replace('/counters/{name}', { name: 'a' }, 'absent', { n: 1 })).toMatchObject({ status: 412 })
  })

  it('takes its own removal for success', async () => {
    const { client, safe } = await open('DELETE')
    await safe.create('/users', { name: 'Ada' })
    const { document } = expectSuccess(await client.read('/users/{id}', { id: 1 }))
    expect(await client.remove(document)).toMatchObject({ ok: true, status: 204 })
    expect(await client.remove(document)).toMatchObject({ ok: false })
  })

  it('takes its own removal for success where that was accepted, and is done by now', async () => {
    const base = await start(createResourceService(memoryStore(), { resources, https: 'optional' }))
    let isLost = false
    const client = createResourceClient<typeof resources>(base, {
      async fetch(url, options) {
        const response = await fetch(url, options as RequestInit)
        if (options.method !== 'DELETE' || isLost) return response
        isLost = true
        const statusOf = async () => (await fetch(url, { method: 'HEAD' })).status
        await expect.poll(statusOf, { timeout: 10_000 }).toBe(410)
        throw new TypeError('The response is lost.')
      },
    })
    await client.upload('/spool/{name}', { name: 'a' }, 'absent', 'text')
    const removal = await client.remove('/spool/{name}', { name: 'a' }, 'any')
    expect(removal).toEqual({ ok: true, status: 204, content: undefined })
  })

  it('takes its own upload for no conflict', async () => {
    const { client, safe } = await open('PUT')
    const content = Uint8Array.from({ length: 300_000 }, (_, i) => i % 251)
    const uploaded = expectSuccess(await client.upload('/files/{name}', { name: 'a' }, 'absent', content))
    expect(uploaded.resource.entityTag).toMatch(/^"/)
    expect(await safe.upload('/files/{name}', { name: 'a' }, 'any', 'other')).toMatchObject({ ok: true })
    expect(await client.upload(uploaded.resource, content)).toMatchObject({ ok: false, status: 412 })
  })

  it('does not take the beginning of its content for its own upload', async () => {
    const { client, safe } = await open('PUT')
    const content = new Uint8Array(100_000).fill(7)
    expectSuccess(await safe.upload('/files/{name}', { name: 'a' }, 'absent', content.subarray(1)))
    const uploaded = await client.upload('/files/{name}', { name: 'a' }, 'absent', content)
    expect(uploaded).toMatchObject({ ok: false, status: 412 })
  })

  it('does not repeat a creation whose key the server may not keep: it throws, since the item may exist', async () => {
    const { client, safe } = await open('POST')
    const creation = client.create('/users', { name: 'Ada' })
    await expect(creation).rejects.toMatchObject({ name: 'ResponseError', status: 0, mayHaveTakenEffect: true })
    const names: string[] = []
    for await (const { name } of safe.list('/users')) names.push(name)
    expect(names).toEqual(['Ada'])
  })

  it('repeats a creation under the same key where the caller says so, or the client names the collection', async () => {
    const keys: unknown[] = []
    let isLost = true
    const base = await start((req, res) => {
      keys.push(req.headers['idempotency-key'])
      isLost = !isLost
      if (!isLost) return req.socket.destroy()
      res.setHeader('Content-Type', 'application/json').setHeader('ETag', '"1"')
      return res.writeHead(201, { Location: '/tasks/1', 'Content-Location': '/tasks/1' }).end('{"id":1}')
    })
    const plain = createResourceClient(base)
    expect(await plain.create('/tasks', { a: 1 }, { repeat: true })).toMatchObject({ ok: true, status: 201 })
    const keyed = createResourceClient(base, { keyed: ['/tasks'] })
    expect(await keyed.create('/tasks', { a: 1 }, { key: 'order-1' })).toMatchObject({ ok: true })
    await expect(keyed.create('/others', { a: 1 })).rejects.toMatchObject({ mayHaveTakenEffect: true })
    expect(keys[0]).toMatch(/^\d{16,48}$/)
    expect(keys.slice(0, 4)).toEqual([keys[0], keys[0], 'order-1', 'order-1'])
    expect(keys).toHaveLength(5)
  })

  it('repeats after 429, 502, 503 and 504, not before Retry-After, and gives up after the last attempt', async () => {
    const times: number[] = []
    const statuses = [429, 502, 503, 504, 200]
    const base = await start((_req, res) => {
      times.push(performance.now())
      const status = statuses[times.length - 1]!
      if (status === 429) res.setHeader('Retry-After', '1')
      res.setHeader('Content-Type', 'application/json').writeHead(status).end('{}')
    })
    expect(await createResourceClient(base, { retries: 4 }).read('/a')).toMatchObject({ ok: true })
    expect(times[1]! - times[0]!).toBeGreaterThan(990)
    times.length = 0
    statuses[0] = 503
    await expect(createResourceClient(base, { retries: 1 }).read('/a')).rejects.toMatchObject({ status: 502 })
    expect(times).toHaveLength(2)
  })

  it('loses none of 60 edits while every fifth answer is lost', async () => {
    const base = await start(createResourceService(memoryStore(), { resources, https: 'optional' }))
    const safe = createResourceClient<typeof resources>(base)
    await safe.replace('/counters/{name}', { name: 'a' }, 'absent', {})
    let count = 0
    const lossy = await startLossyProxy(base, () => (++count % 5 === 0 ? 'drop' : 'deliver'))
    const edits = [0, 1].map(async (side) => {
      const client = createResourceClient<typeof resources>(lossy, { maxAttempts: 100, retries: 10 })
      for (let i = 0; i < 30; i++) {
        const edit = await client.edit('/counters/{name}', { name: 'a' }, (value) => ({
          ...(value as JsonObject),
          [`${side}-${i}`]: i,
        }))
        expectSuccess(edit)
      }
    })
    await Promise.all(edits)
    const { document } = expectSuccess(await safe.read('/counters/{name}', { name: 'a' }))
    expect(Object.keys(document.value as JsonObject)).toHaveLength(60)
  })
})
