import { mkdtemp, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import type { Process } from '../../src/actions/hook-types.ts'
import { fileContents } from '../../src/contents/file.ts'
import { HttpError } from '../../src/core/errors.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type SqliteHandle, sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { MEASURED } from '../support/measured.ts'
import { ADMIN, jsonOf, MERGE_PATCH, startDemo, startService, type Target, uploadOf, waitFor } from './support.ts'

const Database = createRequire(import.meta.url)('libsql') as new (file: string) => SqliteHandle

function start(
  process: Process,
  operations: ServiceOptions['operations'] = {},
  store = memoryStore(),
  options: Pick<CollectionOptions, 'authorize'> = {},
): Promise<Target> {
  const jobs = collection({ create: 'accepted', process, deletion: 'queued', ...options })
  // A report on the queue may come seconds later, when another test looks at the console.
  return startService({ resources: { '/jobs': jobs }, operations, log: false }, store)
}

const stateOf = (answer: Answer): string => answer.json().state
const until = (target: Target, path: string, state: string, fields: Readonly<Record<string, string>> = {}) =>
  waitFor(
    () => target.send('GET', path, { fields }),
    (answer) => answer.status === 200 && stateOf(answer) === state,
  )

/** A promise and the function that keeps it. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

describe('accepted work', () => {
  it('writes nothing that a polluted prototype has', async () => {
    const target = await start(() => ({ done: true }))
    const polluted = Object.prototype as { relatedWrites?: unknown; related?: unknown }
    const foreign = [{ path: '/b/1', content: { contentType: 'application/json', body: '{}' }, expect: 'any' }]
    for (const name of ['relatedWrites', 'related'] as const) {
      polluted[name] = foreign
      try {
        const location = (await target.send('POST', '/jobs', jsonOf({}))).field('location')!
        await until(target, location, 'ready')
        const removal = await target.send('DELETE', location)
        const monitor = removal.field('location')!
        await until(target, monitor, 'done')
        expect((await target.send('DELETE', monitor)).status).toBe(204)
      } finally {
        delete polluted[name]
      }
      expect(await target.store.read('/b/1')).toBe(undefined)
    }
    await target.close()
  })
})

describe('an accepted creation', () => {
  it('says pending with Retry-After, then ready with what the work found (DESIGN §3)', async () => {
    const { opened, open } = gate()
    const target = await start(async ({ value }) => {
      await opened
      return { length: String(value['text']).length }
    })
    const accepted = await target.send('POST', '/jobs', jsonOf({ text: 'abc' }))
    expect([accepted.status, accepted.field('location'), accepted.text]).toEqual([202, '/jobs/1', ''])
    const pending = await target.send('GET', '/jobs/1')
    expect([stateOf(pending), pending.field('retry-after')]).toEqual(['pending', '1'])
    const known = await target.send('GET', '/jobs/1', { fields: { 'If-None-Match': pending.field('etag')! } })
    expect([known.status, known.field('cache-control'), known.field('retry-after')]).toEqual([
      304,
      'no-cache',
      undefined,
    ])
    open()
    expect((await until(target, '/jobs/1', 'ready')).json()).toEqual({ id: 1, text: 'abc', state: 'ready', length: 3 })
    await target.close()
  })

  it('is looked for anew while it is pending, however long a cache may keep what is ready', async () => {
    const { opened, open } = gate()
    const jobs = collection({ create: 'accepted', process: () => opened.then(() => ({})), cacheControl: 'max-age=60' })
    const target = await startService({ resources: { '/jobs': jobs }, log: false }, memoryStore())
    await target.send('POST', '/jobs', jsonOf({ text: 'abc' }))
    const pending = await target.send('GET', '/jobs/1')
    const known = await target.send('GET', '/jobs/1', { fields: { 'If-None-Match': pending.field('etag')! } })
    open()
    const ready = await until(target, '/jobs/1', 'ready')
    const caching = [pending, known, ready].map((answer) => answer.field('cache-control'))
    expect(caching).toEqual(['no-cache', 'no-cache', 'max-age=60'])
    await target.close()
  })

  it('keeps the language that it was sent with', async () => {
    const jobs = collection({ create: 'accepted', process: () => ({}), storedHeaders: ['Content-Language'] })
    const target = await startService({ resources: { '/jobs': jobs }, log: false }, memoryStore())
    const fields = { 'Content-Type': 'application/json', 'Content-Language': 'de' }
    await target.send('POST', '/jobs', { fields, body: '{"text":"abc"}' })
    expect((await until(target, '/jobs/1', 'ready')).field('content-language')).toBe('de')
    await target.close()
  })

  it('that is softly deleted while it is pending has no Retry-After: its work does not go on', async () => {
    const { opened, open } = gate()
    const jobs = collection({ create: 'accepted', process: () => opened, deletion: 'soft', authorize: () => true })
    const target = await startService({ resources: { '/jobs': jobs }, log: false }, memoryStore())
    await target.send('POST', '/jobs', jsonOf({}))
    expect((await target.send('DELETE', '/jobs/1')).status).toBe(204)
    const deleted = await target.send('GET', '/jobs/1?deleted=true')
    expect([stateOf(deleted), deleted.field('retry-after')]).toEqual(['pending', undefined])
    open()
    await target.close()
  })

  it('ends, and is removed, although another change comes first more than once', async () => {
    const inner = memoryStore()
    /** How many calls with an expectation still come too late. */
    const late = { write: 0, remove: 0 }
    const store: ResourceStore = {
      ...inner,
      async write(path, content, options) {
        if (path === '/jobs/1' && late.write-- > 0) return { outcome: 'conflict', current: await inner.read(path) }
        return inner.write(path, content, options)
      },
      async remove(path, options) {
        if (path === '/jobs/1' && late.remove-- > 0) return { outcome: 'conflict', current: await inner.read(path) }
        return inner.remove(path, options)
      },
    }
    const target = await start(() => ({ pages: 3 }), {}, store)
    late.write = 3
    await target.send('POST', '/jobs', jsonOf({}))
    expect((await until(target, '/jobs/1', 'ready')).json()).toEqual({ id: 1, state: 'ready', pages: 3 })
    expect(late.write).toBeLessThan(0)
    late.remove = 3
    const accepted = await target.send('DELETE', '/jobs/1')
    await until(target, accepted.field('location')!, 'done')
    expect([late.remove < 0, (await target.send('GET', '/jobs/1')).status]).toEqual([true, 410])
    await target.close()
  })

  it('leaves the store alone once the service is closed', async () => {
    const inner = memoryStore()
    let calls = 0
    const list: ResourceStore['list'] = (...args) => {
      calls++
      return inner.list(...args)
    }
    const target = await start(() => ({}), { pollInterval: 5, retention: 20 }, { ...inner, list })
    await target.send('POST', '/jobs', jsonOf({}))
    await vi.waitFor(() => expect(calls).toBeGreaterThan(5), 30_000)
    await target.close()
    const atClose = calls
    await sleep(100)
    expect(calls - atClose).toBe(0)
  })

  it('is not begun where the service is closed while the store is asked for the item', async () => {
    const [asked, answered] = [gate(), gate()]
    const inner = memoryStore()
    const read: ResourceStore['read'] = async (path, options) => {
      if (path === '/jobs/1') {
        asked.open()
        await answered.opened
      }
      return inner.read(path, options)
    }
    const process = vi.fn(() => ({}))
    const target = await start(process, {}, { ...inner, read })
    await target.send('POST', '/jobs', jsonOf({}))
    await asked.opened
    const closed = target.close()
    answered.open()
    await closed
    expect(process).not.toHaveBeenCalled()
  })

  it('leaves alone what another process has ended meanwhile', async () => {
    const store = memoryStore()
    const target = await start(
      async ({ path }) => {
        const body = JSON.stringify({ id: 1, state: 'ready', by: 'another' })
        await store.write(path, { contentType: 'application/json', body }, { expect: 'present' })
        return { by: 'this' }
      },
      {},
      store,
    )
    await target.send('POST', '/jobs', jsonOf({}))
    await until(target, '/jobs/1', 'ready')
    await vi.waitFor(async () => expect((await store.list('work', { limit: 9 })).items).toEqual([]), 30_000)
    expect((await target.send('GET', '/jobs/1')).json()).toEqual({ id: 1, state: 'ready', by: 'another' })
    await target.close()
  })

  it('keeps the id of its path, whatever the work returns', async () => {
    const target = await start(() => ({ id: 99, pages: 3 }))
    await target.send('POST', '/jobs', jsonOf({}))
    expect((await until(target, '/jobs/1', 'ready')).json()).toEqual({ id: 1, state: 'ready', pages: 3 })
    await target.close()
  })

  it('fails for good with a problem (DESIGN §3)', async () => {
    const target = await start(() => {
      throw new HttpError(422, 'ERR_INVALID_CONTENT', { detail: 'A virus.' })
    })
    await target.send('POST', '/jobs', jsonOf({}))
    const failed = await until(target, '/jobs/1', 'failed')
    expect(failed.json().problem).toMatchObject({ status: 422, detail: 'A virus.' })
    await target.close()
  })

  it('is tried again after a failure that may pass, and fails in the end with a reason for the operator alone', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const attempts: number[] = []
    const target = await start(
      ({ attempt, id }) => {
        if (id === 1) attempts.push(attempt)
        if (id === 1 && attempt === 2) return undefined
        if (id === 2 && attempt === 2) throw new HttpError(503, 'ERR_UNAVAILABLE')
        throw new Error('secret')
      },
      { maxAttempts: 2 },
    )
    await target.send('POST', '/jobs', jsonOf({}))
    await until(target, '/jobs/1', 'ready')
    expect(attempts).toEqual([1, 2])
    await target.send('POST', '/jobs', jsonOf({}))
    const failed = await until(target, '/jobs/2', 'failed')
    expect([failed.json().problem.status, failed.text.includes('secret')]).toEqual([503, false])
    const lines = log.mock.calls.map(([text]) => String(text).split('\n', 1)[0])
    expect(lines).toEqual(Array(2).fill('http-resource-service: accepted work of /jobs failed: Error: secret'))
    log.mockRestore()
    await target.close()
  })

  it('survives an outage of the content store that lasts longer than maxAttempts', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'contents-'))
    const store = sqliteStore(new Database(':memory:'), { inlineLimit: 500, contents: fileContents({ directory }) })
    const attempts: number[] = []
    const process: Process = async (item) => {
      attempts.push(item.attempt)
      const document = await item.file('file')
      if (attempts.length === 1) await rename(directory, `${directory}-away`)
      if (attempts.length === 3) await rename(`${directory}-away`, directory)
      let size = 0
      await pipeline(document!.open(), async (chunks) => {
        for await (const chunk of chunks) size += chunk.length
      })
      return { size }
    }
    const jobs = collection({ create: 'accepted', process, files: { file: {} } })
    const target = await startService({ resources: { '/jobs': jobs }, operations: { maxAttempts: 1 } }, store)
    expect((await target.send('POST', '/jobs', uploadOf('x'.repeat(1000)))).status).toBe(202)
    const done = await waitFor(
      () => target.send('GET', '/jobs/1'),
      (answer) => stateOf(answer) !== 'pending',
    )
    expect([stateOf(done), done.json().size, attempts]).toEqual(['ready', 1000, [1, 2, 3]])
    await target.close()
    await store.close()
    await rm(directory, { recursive: true })
  })

  it('fails for good where a stream of its own fails while it reads a file', async () => {
    const store = sqliteStore(new Database(':memory:'), { inlineLimit: 500 })
    const process: Process = async (item) => {
      const document = await item.file('file')
      const refuse = new Transform({ transform: (_, __, done) => done(new HttpError(503, 'ERR_SCANNER')) })
      await pipeline(document!.open(), refuse)
    }
    const jobs = collection({ create: 'accepted', process, files: { file: {} } })
    const target = await startService({ resources: { '/jobs': jobs }, operations: { maxAttempts: 1 } }, store)
    await target.send('POST', '/jobs', uploadOf('x'.repeat(1000)))
    expect((await until(target, '/jobs/1', 'failed')).json().problem.status).toBe(503)
    await target.close()
    await store.close()
  })

  it.each([
    ['a promise below a property', () => ({ pages: Promise.reject(new Error('away')) })],
    ['a map', () => new Map([['pages', 3]])],
    ['a list', () => ['pages']],
    ['text', () => 'pages'],
  ])('fails where its work gives %s, of which JSON has no properties', async (_, process) => {
    const target = await start(process as never, { maxAttempts: 1 })
    await target.send('POST', '/jobs', jsonOf({}))
    const failed = (await until(target, '/jobs/1', 'failed')).json()
    expect(failed).toEqual({ id: 1, state: 'failed', problem: expect.objectContaining({ status: 500 }) })
    await target.close()
  })

  it('can be removed before its work is done: the removal wins', async () => {
    const { opened, open } = gate()
    let runs = 0
    const target = await start(async () => {
      runs++
      await opened
    })
    await target.send('POST', '/jobs', jsonOf({}))
    await until(target, '/jobs/1', 'pending')
    const removal = await target.send('DELETE', '/jobs/1')
    expect(removal.status).toBe(202)
    const done = await until(target, removal.field('location')!, 'done')
    expect(done.json().result).toEqual({ deleted: true, id: 1 })
    open()
    expect((await target.send('GET', '/jobs/1')).status).toBe(410)
    await sleep(20)
    expect([(await target.send('GET', '/jobs/1')).status, runs]).toEqual([410, 1])
    await target.close()
  })

  it.each([
    ['', {}],
    [', also where authorize has judged it', { authorize: () => true }],
  ])('is removed even when its work changed it meanwhile%s', async (_, options) => {
    const { opened, open } = gate()
    const target = await start(() => opened, { concurrency: 1 }, memoryStore(), options)
    await target.send('POST', '/jobs', jsonOf({}))
    const removal = await target.send('DELETE', '/jobs/1')
    open()
    expect((await until(target, removal.field('location')!, 'done')).status).toBe(200)
    expect((await target.send('GET', '/jobs/1')).status).toBe(410)
    await target.close()
  })
})

describe('the state of an accepted member', () => {
  it('is the server’s to tell: a patch that changes it is refused, any other is not (threat 83)', async () => {
    const methods = ['GET', 'PATCH', 'DELETE'] as const
    const target = await startService({
      resources: { '/jobs': collection({ create: 'accepted', memberMethods: methods }) },
    })
    await target.send('POST', '/jobs', jsonOf({ title: 'a' }))
    await until(target, '/jobs/1', 'ready')
    for (const patch of [{ state: 'failed' }, { state: null }, { problem: {} }]) {
      expect((await target.send('PATCH', '/jobs/1', jsonOf(patch, MERGE_PATCH))).status).toBe(422)
    }
    const renamed = await target.send('PATCH', '/jobs/1', jsonOf({ title: 'b', state: 'ready' }, MERGE_PATCH))
    expect([renamed.status, renamed.json()]).toEqual([200, { id: 1, title: 'b', state: 'ready' }])
    expect(() => collection({ create: 'accepted', memberMethods: ['PUT'] })).toThrow(TypeError)
    for (const own of [{ state: 'ready' }, { problem: {} }]) {
      expect((await target.send('POST', '/jobs', jsonOf(own))).status).toBe(422)
    }
    await target.close()
  })
})

/** Work that is done when the test says so. */
const BY_HAND = { queue: { enqueue: () => {} }, pollInterval: 3_600_000 }

/** A removal of `/a/1` that is accepted and not begun. */
async function acceptRemoval(options: Pick<CollectionOptions, 'afterCommit'> = {}) {
  const resources = { '/a': collection({ deletion: 'queued', ...options }) }
  const target = await startService({ resources, operations: BY_HAND })
  await target.send('POST', '/a', jsonOf({}))
  const monitor = (await target.send('DELETE', '/a/1')).field('location')!
  return { target, monitor, run: () => target.service.runOperation(monitor.slice('/operations/'.length)) }
}

describe('a queued removal', () => {
  it('answers 202 with a monitor that tells how it ended (interface DELETE 2, row H69)', async () => {
    const demo = await startDemo()
    const path = (await demo.send('POST', '/uploads', uploadOf())).field('location')!
    await until(demo, path, 'ready')
    const removal = await demo.send('DELETE', path, { fields: ADMIN })
    expect([removal.status, removal.text, removal.field('content-length')]).toEqual([202, '', '0'])
    expect(removal.field('location')).toMatch(/^\/operations\/[0-9a-f-]{36}$/)
    const done = await until(demo, removal.field('location')!, 'done', ADMIN)
    expect(done.json()).toMatchObject({ kind: 'removal', target: path, result: { deleted: true } })
    for (const gone of [path, `${path}/file`]) expect((await demo.send('GET', gone)).status).toBe(410)
    expect((await demo.send('DELETE', path, { fields: ADMIN })).status).toBe(410)
    expect((await demo.store.list('work', { limit: 10 })).items).toEqual([])
    await demo.close()
  })

  it('may be asked for twice', async () => {
    const demo = await startDemo()
    const path = (await demo.send('POST', '/uploads', uploadOf())).field('location')!
    const answers = await Promise.all([1, 2, 3].map(() => demo.send('DELETE', path, { fields: ADMIN })))
    expect(answers.map(({ status }) => status)).toContain(202)
    for (const answer of answers) {
      if (answer.status === 202) await until(demo, answer.field('location')!, 'done', ADMIN)
      else expect(answer.status).toBe(410)
    }
    await demo.close()
  })

  it('is called back by DELETE of its monitor before it has begun (DESIGN §3)', async () => {
    const { target, monitor, run } = await acceptRemoval()
    expect(stateOf(await target.send('GET', monitor))).toBe('pending')
    expect((await target.send('DELETE', monitor)).status).toBe(204)
    expect((await target.send('GET', monitor)).status).toBe(404)
    expect(await run()).toBe(false)
    expect((await target.send('GET', '/a/1')).status).toBe(200)
    await target.close()
  })

  it('is not called back once it has begun: 409', async () => {
    const { opened, open } = gate()
    const begun = gate()
    const store = memoryStore()
    const target = await startService(
      { resources: { '/a': collection({ deletion: 'queued' }) } },
      {
        ...store,
        async remove(path, options) {
          if (path !== '/a/1') return store.remove(path, options)
          begun.open()
          await opened
          return store.remove(path, options)
        },
      },
    )
    await target.send('POST', '/a', jsonOf({}))
    const monitor = (await target.send('DELETE', '/a/1')).field('location')!
    await begun.opened
    expect((await target.send('DELETE', monitor)).status).toBe(409)
    open()
    await until(target, monitor, 'done')
    expect((await target.send('DELETE', monitor)).status).toBe(204)
    await target.close()
  })

  it('leaves a monitor that can be removed, also where it has failed', async () => {
    const { target, monitor, run } = await acceptRemoval()
    await target.send('PUT', '/a/1', jsonOf({ new: 1 }))
    await run()
    expect(stateOf(await target.send('GET', monitor))).toBe('failed')
    expect((await target.send('DELETE', monitor)).status).toBe(204)
    expect((await target.send('GET', monitor)).status).toBe(404)
    await target.close()
  })

  it('spares what was changed after it was accepted, and says so', async () => {
    const { target, monitor, run } = await acceptRemoval()
    await target.send('PUT', '/a/1', jsonOf({ new: 1 }))
    expect(await run()).toBe(true)
    const failed = await target.send('GET', monitor)
    expect([stateOf(failed), failed.json().problem.status]).toEqual(['failed', 409])
    expect((await target.send('GET', '/a/1')).json()).toEqual({ id: 1, new: 1 })
    await target.close()
  })

  it('spares it also where a hook sees removals, and shows the hook none', async () => {
    const seen: unknown[] = []
    const { target, monitor, run } = await acceptRemoval({ afterCommit: ({ kind }) => void seen.push(kind) })
    await target.send('PUT', '/a/1', jsonOf({ new: 1 }))
    await run()
    expect(stateOf(await target.send('GET', monitor))).toBe('failed')
    expect((await target.send('GET', '/a/1')).json()).toEqual({ id: 1, new: 1 })
    await target.close()
    expect(seen).toEqual(['created', 'replaced'])
  })
})

describe('a queued removal of an accepted item', () => {
  /** What becomes of an item that another client changes after its removal was accepted. */
  async function patchMeanwhile(options: CollectionOptions, fields: Readonly<Record<string, string>> = {}) {
    const memberMethods = ['GET', 'PATCH', 'DELETE'] as const
    const jobs = collection({ create: 'accepted', deletion: 'queued', memberMethods, ...options })
    const target = await startService({ resources: { '/jobs': jobs }, operations: BY_HAND })
    await target.send('POST', '/jobs', jsonOf({ text: 'old' }))
    const monitor = (await target.send('DELETE', '/jobs/1', { fields })).field('location')!
    const patch = { fields: MERGE_PATCH, body: '{"text":"new"}' }
    expect((await target.send('PATCH', '/jobs/1', patch)).status).toBe(200)
    await target.service.runOperation(monitor.slice('/operations/'.length))
    const ended = await target.send('GET', monitor)
    const item = await target.send('GET', '/jobs/1')
    await target.close()
    return [stateOf(ended), item.status]
  }

  it('goes on where every client may remove every state', async () => {
    expect(await patchMeanwhile({})).toEqual(['done', 410])
  })

  it('spares what was changed after a condition was judged', async () => {
    expect(await patchMeanwhile({}, { 'If-Match': '*' })).toEqual(['failed', 200])
  })

  it('spares what was changed after authorize or the scope was judged', async () => {
    const authorize: CollectionOptions['authorize'] = (_, { method }, current) =>
      method !== 'DELETE' || (current?.value as { text?: string } | undefined)?.text === 'old'
    expect(await patchMeanwhile({ authorize })).toEqual(['failed', 200])
    expect(await patchMeanwhile({ scope: () => ({ tenant: 'a' }) })).toEqual(['failed', 200])
  })
})

describe('a queue of the user’s own', () => {
  it('gets work once it is recorded, and none that could not be', async () => {
    const told: string[] = []
    const inner = memoryStore()
    let writing = gate()
    let isFull = false
    const store: ResourceStore = {
      ...inner,
      async create(...args) {
        await writing.opened
        if (isFull) throw new HttpError(507, 'ERR_INSUFFICIENT_STORAGE')
        return inner.create(...args)
      },
      async write(...args) {
        await writing.opened
        if (isFull) throw new HttpError(507, 'ERR_INSUFFICIENT_STORAGE')
        return inner.write(...args)
      },
    }
    const queue = { enqueue: (id: string) => told.push(id) }
    const target = await start(() => undefined, { queue, pollInterval: 3_600_000 }, store)
    const requests = [() => target.send('POST', '/jobs', jsonOf({})), () => target.send('DELETE', '/jobs/1')] as const
    for (const [index, request] of requests.entries()) {
      writing = gate()
      const answer = request()
      await sleep(50)
      expect(told).toHaveLength(index)
      writing.open()
      expect((await answer).status).toBe(202)
      expect(told).toHaveLength(index + 1)
    }
    isFull = true
    expect((await target.send('POST', '/jobs', jsonOf({}))).status).toBe(507)
    expect(told).toHaveLength(2)
    await target.close()
  })

  it('gets each piece of work, and has it done when it likes (issue 4)', async () => {
    const told: [string, number][] = []
    let fails = 1
    const target = await start(
      () => {
        if (fails-- > 0) throw new Error('not yet')
      },
      { queue: { enqueue: (id, { delay }) => told.push([id, delay]) }, pollInterval: 3_600_000 },
    )
    await target.send('POST', '/jobs', jsonOf({}))
    expect(told).toHaveLength(1)
    await sleep(20)
    expect(stateOf(await target.send('GET', '/jobs/1'))).toBe('pending')
    const [[id]] = told as [[string, number]]
    expect(await target.service.runOperation(id)).toBe(true)
    expect(stateOf(await target.send('GET', '/jobs/1'))).toBe('pending')
    // It failed: the queue gets it once more with a delay, and not before.
    expect(told).toEqual([
      [id, 0],
      [id, 500],
    ])
    expect(await target.service.runOperation(id)).toBe(false)
    await sleep(510)
    expect(await target.service.runOperation(id)).toBe(true)
    expect(stateOf(await target.send('GET', '/jobs/1'))).toBe('ready')
    expect(await target.service.runOperation(id)).toBe(false)
    expect(await target.service.runOperation('no such work')).toBe(false)
    await target.close()
  })

  it('is notified once more when it was away, and the client gets its 202 all the same', async () => {
    let isAway = true
    const told = gate()
    let id = ''
    const target = await start(() => undefined, {
      pollInterval: 20,
      queue: {
        async enqueue(given) {
          if (isAway) throw new Error('away')
          id = given
          told.open()
        },
      },
    })
    expect((await target.send('POST', '/jobs', jsonOf({}))).status).toBe(202)
    isAway = false
    await told.opened
    await target.service.runOperation(id)
    expect(stateOf(await target.send('GET', '/jobs/1'))).toBe('ready')
    await target.close()
  })
})

describe('the life of accepted work', () => {
  it('goes on in the next process when one is shut down, and is not counted as tried (DESIGN §3)', async () => {
    const store = memoryStore()
    const attempts: number[] = []
    const begun = gate()
    const process: Process = async ({ attempt, signal }) => {
      attempts.push(attempt)
      if (attempts.length > 1) return
      begun.open()
      await sleep(60_000, undefined, { signal })
    }
    const first = await start(process, {}, store)
    await first.send('POST', '/jobs', jsonOf({}))
    await begun.opened
    await first.close()
    const second = await start(process, {}, store)
    await until(second, '/jobs/1', 'ready')
    expect(attempts).toEqual([1, 1])
    await second.close()
  })

  it('is over when close() is fulfilled: a store may be closed then', async () => {
    let isRunning = false
    const begun = gate()
    const target = await start(async ({ signal }) => {
      isRunning = true
      begun.open()
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      await sleep(50)
      isRunning = false
    })
    await target.send('POST', '/jobs', jsonOf({}))
    await begun.opened
    await target.service.close()
    expect(isRunning).toBe(false)
    await target.close()
  })

  it('does not wait for a store that is silent when it is asked for a file', MEASURED, async () => {
    const inner = memoryStore()
    const begun = gate()
    const silent: ResourceStore = {
      ...inner,
      read(path, options) {
        if (path !== '/jobs/1/input') return inner.read(path, options)
        begun.open()
        return new Promise((_, reject) => {
          options?.signal?.addEventListener('abort', () => reject(options.signal!.reason))
        })
      },
    }
    const attempts: number[] = []
    const process: Process = async ({ attempt, file }) => {
      attempts.push(attempt)
      await file('input')
    }
    const first = await start(process, {}, silent)
    await first.send('POST', '/jobs', jsonOf({}))
    await begun.opened
    const begin = performance.now()
    await first.close()
    expect(performance.now() - begin).toBeLessThan(4000)
    const second = await start(process, {}, inner)
    await until(second, '/jobs/1', 'ready')
    expect(attempts).toEqual([1, 1])
    await second.close()
  })

  it('is shared: of several processes one does a piece of work, and every piece is done once', async () => {
    const store = memoryStore()
    const done = new Map<number, number>()
    const process: Process = async ({ id }) => {
      await sleep(1)
      done.set(Number(id), (done.get(Number(id)) ?? 0) + 1)
    }
    const definition = { '/jobs': collection({ create: 'accepted', process }) }
    const others = [1, 2, 3].map(() =>
      createResourceService(store, { resources: definition, operations: { pollInterval: 5 } }),
    )
    const target = await start(process, { pollInterval: 5 }, store)
    await Promise.all(Array.from({ length: 40 }, () => target.send('POST', '/jobs', jsonOf({}))))
    for (let id = 1; id <= 40; id++) await until(target, `/jobs/${id}`, 'ready')
    expect([...done.values()]).toEqual(Array.from({ length: 40 }, () => 1))
    await Promise.all(others.map((other) => other.close()))
    await target.close()
  })

  it('is resumed when the process that had it is gone: its lease runs out', async () => {
    const store = memoryStore()
    const record = { kind: 'process', pattern: '/jobs', path: '/jobs/1', attempts: 1, notBefore: Date.now() + 200 }
    const json = (value: unknown) => ({ contentType: 'application/json', body: JSON.stringify(value) })
    await store.write('/jobs/1', json({ id: 1, state: 'pending' }), { expect: 'any' })
    await store.write('work/left-behind', json(record), { expect: 'any' })
    const attempts: number[] = []
    const target = await start(({ attempt }) => void attempts.push(attempt), {}, store)
    await until(target, '/jobs/1', 'ready')
    expect([attempts, Date.now() >= record.notBefore]).toEqual([[2], true])
    expect(await store.read('work/left-behind')).toBeUndefined()
    await target.close()
  })

  it('ends even when it ends the process whenever it is tried', async () => {
    const store = memoryStore()
    const record = { kind: 'process', pattern: '/jobs', path: '/jobs/1', attempts: 5, notBefore: 0 }
    const json = (value: unknown) => ({ contentType: 'application/json', body: JSON.stringify(value) })
    await store.write('/jobs/1', json({ id: 1, state: 'pending' }), { expect: 'any' })
    await store.write('work/poison', json(record), { expect: 'any' })
    const target = await start(() => process.exit(1), {}, store)
    expect((await until(target, '/jobs/1', 'failed')).json().problem.status).toBe(500)
    await target.close()
  })

  it('shows nothing of its records to anybody', async () => {
    const target = await startService({
      resources: { '/a': collection({ deletion: 'queued' }) },
      operations: { queue: { enqueue: () => {} } },
    })
    await target.send('POST', '/a', jsonOf({}))
    await target.send('DELETE', '/a/1')
    for (const path of ['/work', 'work', '/operations', '/operations/', '/operations/x']) {
      expect([400, 404]).toContain((await target.send('GET', path)).status)
    }
    await target.close()
  })
})
