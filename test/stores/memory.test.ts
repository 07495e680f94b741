import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { isPromise } from '../../src/core/maybe-promise.ts'
import { type MemoryStoreOptions, memoryStore } from '../../src/stores/memory.ts'
import { isLargeBody } from '../../src/stores/rules.ts'
import type { Content, Page, ResourceStore, StoredResource, StoredState, WriteResult } from '../../src/stores/types.ts'
import { testStore } from '../../src/testing.ts'
import { createMember } from '../support/create-member.ts'
import { MEASURED } from '../support/measured.ts'
import { startProcessorClock } from '../support/processor-time.ts'

testStore('memoryStore', () => memoryStore(), { describe, it, durable: false, digests: true })

const text = (body: string) => ({ contentType: 'text/plain', body })
const bytes = (body: Uint8Array | AsyncIterable<Uint8Array>) => ({ contentType: 'application/octet-stream', body })

function put(store: ResourceStore, path: string, content: Content = text('x')): StoredResource {
  const result = store.write(path, content, { expect: 'any' }) as WriteResult
  if (result.outcome === 'conflict') throw new Error('A write without a condition was refused.')
  return result.resource
}

function createdName(store: ResourceStore, collection: string): string {
  const { resource } = store.create(collection, text('x')) as WriteResult & { outcome: 'created' }
  return resource.path.slice(collection.length + 1)
}

/** A store whose clock the test moves. */
function createTimed(options: MemoryStoreOptions = {}) {
  const clock = { time: Date.UTC(2026, 0, 1) }
  return { clock, store: memoryStore({ ...options, now: () => clock.time }) }
}

async function* stream(size: number): AsyncGenerator<Uint8Array> {
  for (let rest = size; rest > 0; rest -= 65_536) yield new Uint8Array(Math.min(rest, 65_536)).fill(200)
}

// biome-ignore lint/correctness/useYield: it fails before its first chunk
async function* failing(): AsyncGenerator<Uint8Array> {
  throw new Error('broken off')
}

describe('memoryStore, for speed', () => {
  it('answers without a promise wherever no stream is involved (performance.md 6.2)', () => {
    const store = memoryStore()
    const answers = [
      store.write('/a/1', text('x'), { expect: 'any' }),
      store.write('/a/1', bytes(Buffer.from('x')), {
        expect: 'present',
        related: [{ path: '/a/2', content: text('y') }],
      }),
      store.create('/a', (name) => text(name)),
      store.read('/a/1'),
      store.list('/a', { limit: 10 }),
      store.remove('/a/1', { expect: 'any', mode: 'tombstone' }),
    ]
    expect(answers.some(isPromise)).toBe(false)
  })

  it('returns the same object for the same state, on which callers keep what they derive', () => {
    const store = memoryStore()
    const written = put(store, '/a/1')
    expect(store.read('/a/1')).toBe(written)
    expect(store.read('/a/1', { metadataOnly: true })).toBe(written)
    expect(store.list('/a', { limit: 1 })).toMatchObject({ items: [written] })
  })

  it('does not hand on what callers kept on a state to the state that hiding makes of it', () => {
    const store = memoryStore()
    const kept = Symbol('kept')
    Object.assign(put(store, '/a/1'), { [kept]: 'derived from the first state' })
    store.remove('/a/1', { expect: 'any', mode: 'hide' })
    expect(Object.getOwnPropertySymbols(store.read('/a/1', { hidden: true }))).toEqual([])
  })

  it('returns the same page until something on it changes', () => {
    const store = memoryStore()
    const list = (options = {}) => store.list('/a', { limit: 3, ...options }) as Page
    for (const name of ['1', '2', 'x']) put(store, `/a/${name}`)
    list()
    const page = list()
    expect(list()).toBe(page)
    put(store, '/b/1')
    expect(list()).toBe(page)
    const changes: readonly (() => unknown)[] = [
      () => put(store, '/a/2', text('changed')),
      () => put(store, '/a/1.5'),
      () => put(store, '/a/z'),
      () => store.remove('/a/z', { expect: 'any', mode: 'erase' }),
      () => store.remove('/a/1', { expect: 'any', mode: 'hide' }),
      () => put(store, '/a/1'),
      () => ['1', '2', 'x', '1.5'].map((name) => store.remove(`/a/${name}`, { expect: 'any', mode: 'erase' })),
      () => put(store, '/a/1'),
    ]
    for (const change of changes) {
      for (const options of [{}, { hidden: true }, { after: '1' }, { after: '' }])
        for (let i = 0; i < 3; i++) list(options)
      change()
      for (const options of [{}, { hidden: true }, { after: '1' }, { after: '' }]) {
        const { hidden = false, after } = options as { hidden?: boolean; after?: string }
        const names = ['1', '2', '1.5', 'x', 'z'].filter((name) => {
          const state = store.read(`/a/${name}`, { hidden }) as StoredState
          return state !== undefined && !('removed' in state)
        })
        const from = after === '1' ? names.filter((name) => name !== '1') : names
        const expected = after === '' ? from.filter((name) => !/^\d+$/.test(name)) : from
        const states = expected.slice(0, 3).map((name) => store.read(`/a/${name}`, { hidden }))
        expect(list(options).items).toEqual(states)
        expect(list(options).next).toBe(expected.length > 3 ? expected[2] : undefined)
      }
    }
  })

  it('keeps no page of large content, which would stay in memory after its removal', async () => {
    const store = memoryStore()
    const list = () => store.list('/a', { limit: 3 })
    await store.write('/a/1', { contentType: 'application/octet-stream', body: stream(3_000_000) }, { expect: 'any' })
    const pages = Array.from({ length: 4 }, list)
    expect(new Set(pages).size).toBe(4)
    await store.write('/a/1', text('small'), { expect: 'any' })
    expect(new Set(Array.from({ length: 4 }, list)).size).toBe(2)
  })

  it('keeps ASCII of up to 16 KiB as text, and all else as bytes of its own', () => {
    const store = memoryStore()
    const kindOf = (body: Uint8Array) => typeof put(store, '/a/1', bytes(body)).body
    expect(kindOf(Buffer.alloc(16_384, 'a'))).toBe('string')
    expect(kindOf(Buffer.alloc(16_385, 'a'))).toBe('object')
    expect(kindOf(Buffer.from([0x7f]))).toBe('string')
    expect(kindOf(Buffer.from([0x80]))).toBe('object')
    const slice = Buffer.alloc(1_000_000, 0xff).subarray(0, 10)
    const { body } = put(store, '/a/2', bytes(slice))
    expect((body as Uint8Array).buffer.byteLength, 'a slice must not keep the whole buffer alive').toBe(10)
  })

  it('makes one value of a stream of up to 1 MiB, and blocks of a longer one', async () => {
    const store = memoryStore()
    for (const [size, isLarge] of [
      [1_048_576, false],
      [1_048_577, true],
    ] as const) {
      const content = { contentType: 'application/octet-stream', body: stream(size) }
      const result = await store.write('/a/1', content, { expect: 'any' })
      expect(result.outcome !== 'conflict' && isLargeBody(result.resource.body)).toBe(isLarge)
    }
  })

  it('reads a page and one item as fast from 100 000 members as from 1 000', MEASURED, () => {
    const durations = [1000, 100_000].map((count) => {
      const store = memoryStore()
      for (let i = 1; i <= count; i++) put(store, `/a/${i}`)
      let best = Number.POSITIVE_INFINITY
      for (let round = 0; round < 30; round++) {
        const elapsed = startProcessorClock()
        for (let i = 0; i < 100; i++) {
          // Another page in every round: one that was asked for before would not be read.
          store.list('/a', { limit: 50 + round, after: String((count >> 1) + i) })
          store.read(`/a/${(count >> 1) + i}`)
        }
        best = Math.min(best, elapsed())
      }
      return best
    })
    expect(durations[1]! / durations[0]!).toBeLessThan(3)
  })

  it('lists a few visible members among many hidden ones at the cost of the page', MEASURED, () => {
    const durations = [10, 50_000].map((hidden) => {
      const store = memoryStore()
      for (let i = 1; i <= hidden; i++) {
        put(store, `/a/${i}`)
        store.remove(`/a/${i}`, { expect: 'any', mode: 'hide' })
      }
      for (let i = hidden + 1; i <= hidden + 5; i++) put(store, `/a/${i}`)
      expect(store.list('/a', { limit: 50 })).toMatchObject({ items: { length: 5 } })
      let best = Number.POSITIVE_INFINITY
      for (let round = 0; round < 30; round++) {
        const elapsed = startProcessorClock()
        // Another page every time, as above.
        for (let i = 0; i < 100; i++) store.list('/a', { limit: 51 + 100 * round + i })
        best = Math.min(best, elapsed())
      }
      return best
    })
    expect(durations[1]! / durations[0]!).toBeLessThan(5)
  })
})

describe('memoryStore, members', () => {
  it('lists a new member although the collection was emptied while its content was asked for', async () => {
    const store = memoryStore()
    store.create('/c', text('first'))
    store.create('/c', () => {
      store.remove('/c/1', { expect: 'any', mode: 'erase' })
      return text('second')
    })
    const { items } = await store.list('/c', { limit: 5 })
    expect(items.map((item) => item.path)).toEqual(['/c/2'])
    expect(createdName(store, '/c')).toBe('3')
  })

  it('lists a hidden member although the last visible one was removed', () => {
    const store = memoryStore()
    for (const path of ['/c/1', '/c/2']) put(store, path)
    store.remove('/c/1', { expect: 'any', mode: 'hide' })
    store.remove('/c/2', { expect: 'any', mode: 'erase' })
    expect(store.list('/c', { limit: 5, hidden: true })).toMatchObject({ items: [{ path: '/c/1' }] })
    put(store, '/c/3')
    expect(store.list('/c', { limit: 5, hidden: true })).toMatchObject({ items: [{ path: '/c/1' }, { path: '/c/3' }] })
  })

  it('lists members as they are after all of them were removed and created anew', async () => {
    const store = memoryStore()
    const list = async () => (await store.list('/c', { limit: 5 })).items
    const paths = ['/c/a', '/c/b']
    for (let round = 0; round < 4; round++) {
      for (const path of paths) store.write(path, text(`${path} ${round}`), { expect: 'any' })
      const expected = paths.map((path) => store.read(path))
      // A page that is asked for several times is kept.
      for (let i = 0; i < 4; i++) {
        expect(await list()).toEqual(expected)
      }
      for (const path of paths) store.remove(path, { expect: 'any', mode: 'erase' })
      expect(await list()).toEqual([])
    }
  })
})

describe('memoryStore, tombstones', () => {
  it('forgets a tombstone when its retention is over, and not a millisecond before', () => {
    const { clock, store } = createTimed({ retention: 1000 })
    put(store, '/a/1')
    store.remove('/a/1', { expect: 'any', mode: 'tombstone' })
    clock.time += 999
    expect(store.read('/a/1')).toMatchObject({ removed: true })
    clock.time += 1
    expect(store.read('/a/1')).toBeUndefined()
  })

  it('lets a removal choose its own retention', () => {
    const { clock, store } = createTimed({ retention: 1000 })
    put(store, '/a/1')
    store.remove('/a/1', { expect: 'any', mode: 'tombstone', retention: Number.POSITIVE_INFINITY })
    clock.time += 1e15
    expect(store.read('/a/1')).toMatchObject({ removed: true })
  })

  it('keeps no more of them than it may; the oldest go first', () => {
    const store = memoryStore({ maxTombstones: 2 })
    for (const path of ['/a/1', '/a/2', '/a/3']) {
      put(store, path)
      store.remove(path, { expect: 'any', mode: 'tombstone' })
    }
    expect(['/a/1', '/a/2', '/a/3'].map((path) => store.read(path) !== undefined)).toEqual([false, true, true])
    // What is written again has no tombstone that takes the place of another.
    put(store, '/a/3')
    put(store, '/a/4')
    store.remove('/a/4', { expect: 'any', mode: 'tombstone' })
    expect(['/a/2', '/a/4'].map((path) => store.read(path) !== undefined)).toEqual([true, true])
    const none = memoryStore({ maxTombstones: 0 })
    put(none, '/a/1')
    none.remove('/a/1', { expect: 'any', mode: 'tombstone' })
    expect(none.read('/a/1')).toBeUndefined()
  })

  it('remembers a removal for the rest of the second although its tombstone is gone (RFC 9110 §8.8.2.2)', () => {
    for (const options of [{ maxTombstones: 0 }, { retention: 10 }]) {
      const { clock, store } = createTimed(options)
      put(store, '/a/1')
      store.remove('/a/1', { expect: 'any', mode: 'tombstone' })
      clock.time += 20
      expect(store.read('/a/1')).toBeUndefined()
      expect(put(store, '/a/1').dateIsStrong).toBe(false)
      clock.time += 980
      expect(put(store, '/a/1').dateIsStrong).toBe(true)
    }
  })

  it('grows with neither removals nor failed creations (threat 142)', async () => {
    setFlagsFromString('--expose-gc')
    const collectGarbage = runInNewContext('gc') as () => void
    const { clock, store } = createTimed({ maxTombstones: 1000 })
    put(store, '/taken')
    // Not by expect, which keeps what it is given.
    const outcomes = new Set<string>()
    let i = 0
    async function churn(count: number): Promise<void> {
      for (const end = i + count; i < end; i++) {
        const name = createdName(store, `/c${i}`)
        put(store, `/c${i}/x${name}`)
        for (const path of [`/c${i}/${name}`, `/c${i}/x${name}`])
          store.remove(path, { expect: 'any', mode: 'tombstone' })
        try {
          await store.create(`/d${i}`, () => {
            throw new Error('no content')
          })
        } catch {}
        const related = () => [{ path: '/taken', content: text('x'), expect: 'absent' } as const]
        outcomes.add((await store.create(`/e${i}`, text('x'), { related })).outcome)
        try {
          await store.create(`/f${i}`, bytes(failing()))
        } catch {}
      }
    }
    async function measureAfter(count: number): Promise<number> {
      await churn(count)
      // Removals are remembered for the rest of their second.
      clock.time += 2000
      await churn(1)
      collectGarbage()
      return process.memoryUsage().heapUsed
    }
    // What is kept grows in each round. Compiled code and the like grow in some: they are not what is looked for.
    const sizes = [await measureAfter(5500)]
    for (let round = 0; round < 5; round++) sizes.push(await measureAfter(5500))
    const growth = sizes.slice(1).map((size, round) => size - sizes[round]!)
    expect(Math.min(...growth)).toBeLessThan(300_000)
    expect([...outcomes]).toEqual(['conflict'])
  })
})

describe('memoryStore, names', () => {
  it('assigns no name twice, however many collections become empty', () => {
    const store = memoryStore({ maxTombstones: 0 })
    const come = (collection: string): string => createdName(store, collection)
    const comeAndGo = (collection: string): string => {
      const name = come(collection)
      store.remove(`${collection}/${name}`, { expect: 'any', mode: 'erase' })
      return name
    }
    for (let i = 0; i < 9; i++) comeAndGo('/first')
    const names = [1, 2, 3, 4].map(() => comeAndGo('/a'))
    names.push(come('/a'))
    // Counters of 10 000 empty collections are kept. What begins when one has been forgotten begins above it.
    for (let i = 0; i < 9999; i++) comeAndGo(`/c${i}`)
    store.remove('/a/5', { expect: 'any', mode: 'erase' })
    names.push(come('/a'))
    expect(new Set(names).size).toBe(6)
  })

  it('counts on where it was in a collection that was empty meanwhile', () => {
    const store = memoryStore()
    expect([createdName(store, '/a'), createdName(store, '/a')]).toEqual(['1', '2'])
    for (const name of ['1', '2']) store.remove(`/a/${name}`, { expect: 'any', mode: 'erase' })
    expect(createdName(store, '/a')).toBe('3')
  })

  it('assigns no name again although it has forgotten the counters of thousands of empty collections', () => {
    const store = memoryStore()
    const used = new Map([['/high', '1000']])
    put(store, '/high/1000')
    store.remove('/high/1000', { expect: 'any', mode: 'erase' })
    for (let i = 0; i < 12_000; i++) {
      used.set(`/c${i}`, createdName(store, `/c${i}`))
      store.remove(`/c${i}/${used.get(`/c${i}`)}`, { expect: 'any', mode: 'erase' })
    }
    for (const [collection, name] of used) expect(Number(createdName(store, collection))).toBeGreaterThan(Number(name))
  })

  it.each([0, 1, 1000])('has names for new collections although one was used up but for %d, and forgotten', (left) => {
    const store = memoryStore()
    const erase = (path: string) => store.remove(path, { expect: 'any', mode: 'erase' })
    const comeAndGo = (collection: string): string => {
      const name = createdName(store, collection)
      erase(`${collection}/${name}`)
      return name
    }
    const names = [comeAndGo('/a')]
    put(store, `/a/${Number.MAX_SAFE_INTEGER - left}`)
    erase(`/a/${Number.MAX_SAFE_INTEGER - left}`)
    // Of more than 10 000 empty collections the oldest are forgotten: once the one above, then those that began after that.
    for (let i = 0; i < 21_000; i++) comeAndGo(`/c${i}`)
    for (let i = 0; i < 2000; i++) names.push(comeAndGo('/a'))
    expect(new Set(names).size).toBe(2001)
  })

  it('asks for the content again when a client takes the name while the content comes in', async () => {
    const store = memoryStore()
    const given: string[] = []
    async function* body() {
      yield Buffer.from('a')
      put(store, '/a/1')
      yield Buffer.from('b')
    }
    const stream = body()
    const resource = await createMember(store, '/a', (name) => {
      given.push(name)
      return { contentType: `text/x${name}`, body: stream }
    })
    expect(given).toEqual(['1', '2'])
    expect(resource).toMatchObject({ path: '/a/2', contentType: 'text/x2', size: 2 })
    expect(store.list('/a', { limit: 5 })).toMatchObject({ items: [{ path: '/a/1' }, { path: '/a/2' }] })
  })

  it('overwrites no name that a client takes after the collection was emptied while the content comes in', async () => {
    const store = memoryStore()
    async function* body() {
      yield Buffer.from('a')
      put(store, '/a/7')
      store.remove('/a/7', { expect: 'any', mode: 'erase' })
      put(store, '/a/1', text('client'))
      yield Buffer.from('b')
    }
    expect(await createMember(store, '/a', bytes(body()))).toMatchObject({ path: '/a/8' })
    expect(store.read('/a/1')).toMatchObject({ body: 'client' })
  })

  it('does not take a path without any slash for a member of the root', () => {
    const store = memoryStore()
    put(store, 'alone')
    put(store, '/1')
    expect(store.list('', { limit: 5 })).toMatchObject({ items: [{ path: '/1' }] })
  })
})

describe('memoryStore, the clock', () => {
  it('never lets a date go back, whatever the clock does', () => {
    const { clock, store } = createTimed()
    const first = put(store, '/a/1')
    clock.time -= 60_000
    const second = put(store, '/a/1')
    expect(second).toMatchObject({ lastModified: first.lastModified, dateIsStrong: false })
    store.remove('/a/1', { expect: 'any', mode: 'tombstone' })
    expect(store.read('/a/1')).toMatchObject({ removedAt: first.lastModified })
    expect(put(store, '/a/1')).toMatchObject({ lastModified: first.lastModified, dateIsStrong: false })
  })

  it('calls a date strong from the first millisecond of the next second on', () => {
    const { clock, store } = createTimed()
    put(store, '/a/1')
    clock.time += 999
    expect(put(store, '/a/1').dateIsStrong).toBe(false)
    clock.time += 1
    expect(put(store, '/a/1').dateIsStrong).toBe(true)
  })
})

it.each(['write', 'create', 'remove'] as const)(
  'memoryStore changes nothing by %s that is given up between the end of its content and the change',
  async (method) => {
    let inTime = 0
    for (let steps = 0; steps < 12; steps++) {
      const store = memoryStore()
      if (method === 'remove') put(store, '/b/1')
      const controller = new AbortController()
      let wasAbsent = false
      async function* body() {
        yield Buffer.from('a')
        void (async () => {
          for (let i = 0; i < steps; i++) await undefined
          wasAbsent = store.read('/a/1') === undefined
          controller.abort()
        })()
      }
      const { signal } = controller
      const content = { contentType: 'text/plain', body: body() }
      const relatedWrites = [{ path: '/a/1', content }]
      const change = {
        write: () => store.write('/a/1', content, { expect: 'any', signal }),
        create: () => store.create('/a', content, { signal }),
        remove: () => store.remove('/b/1', { expect: 'any', mode: 'erase', relatedWrites, signal }),
      }[method]
      await Promise.resolve<unknown>(change()).catch(() => undefined)
      if (!wasAbsent) continue
      inTime++
      expect([steps, store.read('/a/1')]).toEqual([steps, undefined])
    }
    expect(inTime).toBeGreaterThan(0)
  },
)

describe('memoryStore, options', () => {
  const wrong: readonly [object, RegExp][] = [
    [{ maxTombstone: 1 }, /memoryStore has no option "maxTombstone"/],
    [{ maxTombstones: -1 }, /memoryStore takes as maxTombstones: a number of 0 or more/],
    [{ maxTombstones: '5' }, /memoryStore takes as maxTombstones: a number of 0 or more/],
    [{ maxTombstones: Number.NaN }, /memoryStore takes as maxTombstones: a number of 0 or more/],
    [{ retention: -1 }, /memoryStore takes as retention: a number of milliseconds/],
    [{ retention: '5' }, /memoryStore takes as retention: a number of milliseconds/],
    [{ now: 5 }, /memoryStore takes as now: a function/],
    [{ retention: 'long' }, /memoryStore takes as retention: a number of milliseconds/],
  ]
  for (const [options, message] of wrong) {
    it(`refuses ${JSON.stringify(options)} in a sentence`, () => {
      expect(() => memoryStore(options)).toThrow(TypeError)
      expect(() => memoryStore(options)).toThrow(message)
    })
  }

  it('does not read options from a polluted prototype (threat 150)', () => {
    const prototype = Object.prototype as { maxTombstones?: number }
    prototype.maxTombstones = 0
    try {
      const store = memoryStore({})
      put(store, '/a/1')
      store.remove('/a/1', { expect: 'any', mode: 'tombstone' })
      expect(store.read('/a/1')).toMatchObject({ removed: true })
    } finally {
      delete prototype.maxTombstones
    }
  })
})

describe('memoryStore, staged content', () => {
  it('is written no more once it was given up', async () => {
    const store = memoryStore()
    const staged = await store.stage!(stream(10))
    await store.write('/a', { contentType: 'text/plain', body: staged }, { expect: 'any' })
    await staged.discard()
    const write = async () => store.write('/b', { contentType: 'text/plain', body: staged }, { expect: 'any' })
    await expect(write()).rejects.toThrow('was given up')
    expect([await store.read('/a'), await store.read('/b')]).toMatchObject([{ size: 10 }, undefined])
  })
})

it('memoryStore goes on behind a member that is called undefined', async () => {
  const store = memoryStore()
  for (const name of ['a', 'undefined', 'z']) put(store, `/c/${name}`)
  // Pages that are asked for repeatedly are kept.
  for (let round = 0; round < 3; round++) {
    const first = await store.list('/c', { limit: 2 })
    const second = await store.list('/c', { limit: 2, after: first.next })
    expect([first.next, second.items.map(({ path }) => path)]).toEqual(['undefined', ['/c/z']])
  }
})
