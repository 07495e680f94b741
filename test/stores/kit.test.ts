import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'tsup'
import { describe, expect, it, vi } from 'vitest'
import { claimEnds } from '../../src/conformance/runner.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { isResource } from '../../src/stores/rules.ts'
import type { ListOptions, ResourceStore } from '../../src/stores/types.ts'
import { testStore } from '../../src/testing.ts'
import { runKit } from './kit-runner.ts'
import { alwaysStrong } from './mutants/always-strong.ts'
import { bareTag } from './mutants/bare-tag.ts'
import { checkThenWrite } from './mutants/check-then-write.ts'
import { deafToSignals } from './mutants/deaf-to-signals.ts'
import {
  halfRetention,
  lastTombstone,
  longestRetention,
  shortIntegers,
  wholeRetention,
} from './mutants/early-tombstones.ts'
import { exclusiveRange } from './mutants/exclusive-range.ts'
import {
  deafInCreations,
  deafToExpectations,
  ghostly,
  leavesRecords,
  looksThenWrites,
  showsTheLoser,
  silentConflict,
  tellsNoState,
  wrongVersion,
} from './mutants/expectations.ts'
import { datesRemovalsAnew, forgetful } from './mutants/forgetful.ts'
import { idFromMaximum } from './mutants/id-from-maximum.ts'
import { keptBuffer } from './mutants/kept-buffer.ts'
import { mutate } from './mutants/mutate.ts'
import { offsetCursor } from './mutants/offset-cursor.ts'
import { partialContent } from './mutants/partial-content.ts'
import { relatedApart } from './mutants/related-apart.ts'
import { reusedPage } from './mutants/reused-page.ts'
import { shownWhenHidden } from './mutants/shown-when-hidden.ts'
import { staleAbroad, staleWhileAsMany } from './mutants/stale-abroad.ts'
import { versionFromContent } from './mutants/version-from-content.ts'
import {
  judgesItselfFirst,
  looksThenRemoves,
  removesOnly,
  removesRegardless,
  writesAnyway,
} from './mutants/written-removals.ts'
import { firstDigest, reversedDigest, undigestedListing } from './mutants/wrong-digest.ts'

/** Broken stores, and a case that must find each of them out. */
const MUTANTS = [
  [checkThenWrite, 'lets exactly one of many writers win that expect the same version'],
  [checkThenWrite, 'behaves, towards all who use one resource at once, as if one call came after the other'],
  [versionFromContent, 'refuses a version of an earlier life of the resource'],
  [idFromMaximum, 'never assigns a name again once its resource was removed'],
  [partialContent, 'leaves nothing of a stream that breaks off, and passes its error on'],
  [offsetCursor, 'sees every member once while members before the cursor are removed'],
  [keptBuffer, 'has taken a chunk when it asks for the next one, so that the source may use its buffer again'],
  [deafToSignals, 'does nothing when the signal is aborted already'],
  [relatedApart, 'writes nothing at all when the write meets a conflict'],
  [exclusiveRange, 'opens every range, the first and the last byte included'],
  [shownWhenHidden, 'lists hidden resources, marked and in their place, only when asked'],
  [reusedPage, 'gives another page object once anything on the page has changed'],
  [bareTag, 'returns the bytes, the media type and the size that were written'],
  [alwaysStrong, 'calls a date strong while the resource changed once in that second, and only then'],
  [staleAbroad, 'shows in every process a page as it is, whatever another process does to its members'],
  [staleWhileAsMany, 'shows in every process a page as it is, whatever another process does to its members'],
  [lastTombstone, 'remembers every tombstone, each with its own path, and not the last ones only'],
  [lastTombstone, 'keeps a tombstone for the whole of its retention, whatever becomes of others'],
  [halfRetention, 'keeps a tombstone for the whole of its retention, whatever becomes of others'],
  [shortIntegers, 'keeps a tombstone for the whole of its retention, whatever becomes of others'],
  [wholeRetention, 'keeps a tombstone for the whole of its retention, whatever becomes of others'],
  [longestRetention, 'keeps a tombstone for the whole of its retention, whatever becomes of others'],
  [firstDigest, 'has the digest of the content of now, whatever the path held before'],
  [reversedDigest, 'has the SHA-256 digest of content that can be read only in pieces, in all that it returns'],
  [reversedDigest, 'has taken a chunk when it asks for the next one, so that the source may use its buffer again'],
  [undigestedListing, 'has the SHA-256 digest of content that can be read only in pieces, in all that it returns'],
  [forgetful, 'remembers every tombstone after a sudden end'],
  [datesRemovalsAnew, 'has tombstones, hidden resources and large content after a sudden end'],
  [forgetful, 'has everything that was acknowledged after a sudden end, exactly as it was'],
  [
    deafToExpectations,
    'writes nothing at all while a related path that must be absent is there, and says which with its state',
  ],
  [deafInCreations, 'creates nothing while a related path that must be absent is there, and says which with its state'],
  [looksThenWrites, 'lets exactly one of many steps win that expect the same related path to be absent'],
  [
    silentConflict,
    'writes nothing at all while a related path that must be absent is there, and says which with its state',
  ],
  [
    showsTheLoser,
    'writes nothing at all while a related path that must be absent is there, and says which with its state',
  ],
  [ghostly, 'writes a related path that must be absent where it never was, was removed or is hidden'],
  [leavesRecords, 'leaves related paths that must be absent alone when the path itself meets a conflict'],
  [wrongVersion, 'tells related writes the names that the new state then has'],
  [tellsNoState, 'tells related writes the names that the new state then has'],
  [removesOnly, 'writes what a removal brings with it, whatever its mode'],
  [writesAnyway, 'writes nothing when the removal meets a conflict, or there is nothing to remove'],
  [judgesItselfFirst, 'removes nothing while a path that the removal writes must be absent and is not'],
  [removesRegardless, 'removes nothing while a path that the removal writes must be absent and is not'],
  [looksThenRemoves, 'lets exactly one of many removals win that write the same path, which must be absent'],
] as const

describe('testStore', () => {
  it('finds no fault with a store that keeps the contract', async () => {
    const { failures, titles } = await runKit(() => memoryStore(), { digests: true })
    expect(failures).toEqual(new Map())
    expect(titles.length).toBeGreaterThan(100)
    expect(new Set(titles).size).toBe(titles.length)
  })

  for (const [create, title] of MUTANTS) {
    it(`fails a store that should and does not: "${title}"`, async () => {
      const { failures } = await runKit(create, { digests: true }, title)
      expect([...failures.keys()]).toContain(title)
      // What fails reads like a sentence.
      expect(failures.get(title)).toMatchObject({ message: expect.stringMatching(/^[A-Z].*[.]$/s) })
    })
  }

  it('finds no fault where calls say undefined, or false of hidden, of what others leave out', async () => {
    const spellOut = mutate((sound) => ({
      async read(path, options) {
        const state = await sound.read(path, options)
        return isResource(state) ? { filename: undefined, hidden: false, sha256: undefined, ...state } : state
      },
      async write(path, content, options) {
        const result = await sound.write(path, content, options)
        return result.outcome === 'conflict' ? { related: undefined, missing: undefined, ...result } : result
      },
      async remove(path, options) {
        const result = await sound.remove(path, options)
        return result.outcome === 'conflict' ? { related: undefined, ...result } : result
      },
    }))
    expect((await runKit(spellOut)).failures).toEqual(new Map())
  })

  it('says in a sentence that a removal gave no result', async () => {
    const title = 'finds nothing to remove where nothing is'
    const { failures } = await runKit(
      mutate(() => ({ remove: async () => undefined as never })),
      {},
      title,
    )
    expect(failures.get(title)).toMatchObject({ message: expect.stringMatching(/^Nothing was there to be removed\./) })
  })

  it('takes a store as it is, or with what belongs to it, which is closed after every case', async () => {
    const closed = { stores: 0, fixtures: 0 }
    const create = () => ({
      store: { ...memoryStore(), close: () => void closed.stores++ },
      close: () => void closed.fixtures++,
    })
    const { titles, failures } = await runKit(create)
    expect(failures).toEqual(new Map())
    expect(closed).toEqual({ stores: titles.length, fixtures: titles.length })
  })

  it('leaves out what a store says it cannot do', async () => {
    const withAll = await runKit(() => memoryStore())
    const off = [
      'hiding',
      'tombstones',
      'related',
      'relatedExpect',
      'stage',
      'dates',
      'paths',
      'contents',
      'durable',
    ] as const
    const options = Object.fromEntries(off.map((name) => [name, false]))
    const create = (): ResourceStore => {
      const sound = memoryStore()
      return {
        ...sound,
        remove(path, options) {
          if (options.mode !== 'erase') throw new Error('This store only erases.')
          return sound.remove(path, options)
        },
      }
    }
    const { titles, failures } = await runKit(create, options)
    expect(failures).toEqual(new Map())
    expect(titles.length).toBeGreaterThan(30)
    expect(titles.length).toBeLessThan(withAll.titles.length)
  })

  it('writes no member 0, which a table may not have, to a store without further paths', async () => {
    const create = (): ResourceStore => {
      const sound = memoryStore()
      return {
        ...sound,
        write(path, content, options) {
          if (path === '/things/0') throw new Error('The ids of this table begin at 1.')
          return sound.write(path, content, options)
        },
      }
    }
    const options = { paths: false, related: false, relatedExpect: false, parents: false, digests: true }
    expect((await runKit(create, options)).failures).toEqual(new Map())
  })

  it('skips, and says so, what a store does not offer', async () => {
    const { skipped, failures } = await runKit(() => {
      const { stage: _, ...bare } = memoryStore()
      return bare
    })
    expect(failures).toEqual(new Map())
    expect(skipped).toContain('keeps staged content after a conflict, for another try')
    expect(skipped).toContain('never uses a version again after a sudden end')
  })

  it('does not open a store again that is said not to be durable', async () => {
    const create = () => ({
      store: memoryStore(),
      reopen: () => Promise.reject(new Error('There is nothing to open.')),
    })
    expect((await runKit(create, { durable: false })).failures).toEqual(new Map())
  })

  it('ends where pages take longer than writes', async () => {
    const title = 'sees every lasting member once, in order, while many writers are at work'
    const create = () => {
      const sound = memoryStore()
      return {
        ...sound,
        async list(collection: string, options: ListOptions) {
          await new Promise((resolve) => setImmediate(resolve))
          return sound.list(collection, options)
        },
      }
    }
    expect((await runKit(create, {}, title)).failures).toEqual(new Map())
  })

  it('fails a call that is never answered', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const title = 'finds nothing at a path that was never written'
    const silent = () => ({ ...memoryStore(), read: () => new Promise<undefined>(() => {}) })
    const run = runKit(silent, {}, title)
    await vi.advanceTimersByTimeAsync(30_000)
    const { failures } = await run
    vi.useRealTimers()
    expect(failures.get(title)).toMatchObject({
      message:
        'A call was never answered: read("/things/1"), call 1 of the case. The case did not come to its end in 30 seconds.',
    })
  })

  it('names no call as unanswered where all are answered, but too late', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const ends = expect(claimEnds(new Promise(() => {}), new Set())).rejects.toThrow(
      /^The case did not come to its end in 30 seconds\. No call to the store is open/,
    )
    await vi.advanceTimersByTimeAsync(30_000)
    vi.useRealTimers()
    await ends
  })

  it('names the call that is never answered among those that are (issue 17.31)', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const title = 'refuses a version of an earlier life of the resource'
    const run = runKit(() => ({ ...memoryStore(), remove: () => new Promise<never>(() => {}) }), {}, title)
    await vi.advanceTimersByTimeAsync(30_000)
    const { failures } = await run
    vi.useRealTimers()
    expect(failures.get(title)).toMatchObject({
      message: expect.stringMatching(/^A call was never answered: remove\("\/things\/1"\)/),
    })
  })

  it('names the call that is never answered also where the store cannot be closed, and says so of a close alone', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const title = 'finds nothing at a path that was never written'
    const never = () => new Promise<never>(() => {})
    const failsWith = async (store: Partial<ResourceStore>, milliseconds: number) => {
      const run = runKit(() => ({ ...memoryStore(), ...store }), {}, title)
      await vi.advanceTimersByTimeAsync(milliseconds)
      return String((await run).failures.get(title))
    }
    const broken = () => Promise.reject(new Error('The pool is busy.'))
    for (const close of [never, broken])
      expect(await failsWith({ read: never, close }, 35_000)).toMatch(/A call was never answered: read\("/)
    expect(await failsWith({ close: never }, 30_000)).toMatch(/A call was never answered: close, after the case\.$/)
    expect(await failsWith({ close: broken }, 0)).toBe('Error: The pool is busy.')
    vi.useRealTimers()
  })

  it('names the range of content that never comes (issue 17.31)', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const title = 'returns the bytes, the media type and the size that were written'
    const silent = () => {
      const sound = memoryStore()
      return {
        ...sound,
        async read(path: string) {
          const state = await sound.read(path)
          const next = () => new Promise<never>(() => {})
          const body = { open: () => ({ [Symbol.asyncIterator]: () => ({ next }) }) }
          return isResource(state) ? { ...state, body } : state
        },
      }
    }
    const run = runKit(silent, {}, title)
    await vi.advanceTimersByTimeAsync(30_000)
    const { failures } = await run
    vi.useRealTimers()
    expect(failures.get(title)).toMatchObject({
      message: expect.stringMatching(/^A call was never answered: open, for bytes \d+ to \d+ of \/things\/\d+\.$/),
    })
  })

  it('tells the runner how long a case may take: the default of some is five seconds (issue 17.31)', () => {
    const timeouts = new Set<number>()
    testStore('the store', () => memoryStore(), {
      describe: (_, define) => define(),
      it: (_, __, timeout) => timeouts.add(timeout),
    })
    expect([...timeouts]).toEqual([60_000])
  })

  it('fails a store that is said to be durable and cannot be opened again', async () => {
    const { failures } = await runKit(() => memoryStore(), { durable: true })
    expect(failures.get('never uses a version again after a sudden end')).toMatchObject({
      message: 'A durable store needs `reopen` beside `store`.',
    })
  })

  it('ends a store with its own hook before the data are opened again', async () => {
    let crashes = 0
    const { failures } = await runKit(() => {
      const store = memoryStore()
      return { store, reopen: () => store, crash: () => void crashes++ }
    })
    expect(failures).toEqual(new Map())
    expect(crashes).toBeGreaterThan(3)
  })

  it('works in a collection and with content of the user', async () => {
    const { failures } = await runKit(
      () => {
        const sound = memoryStore()
        const check = (body: unknown) => {
          if (!(JSON.parse(String(body)) as { title?: string }).title) throw new Error('No title.')
        }
        return {
          ...sound,
          write(path, content, options) {
            if (!path.startsWith('/articles/')) throw new Error('Not a path of this store.')
            check(content.body)
            return sound.write(path, content, options)
          },
        }
      },
      {
        ...{ contents: false, paths: false, related: false, stage: false },
        collection: '/articles',
        content: (seed, name) => ({
          contentType: 'application/json',
          body: JSON.stringify({ title: `${name} ${seed}` }),
        }),
      },
    )
    expect(failures).toEqual(new Map())
  })

  it('refuses an option that it does not have', () => {
    const options = { describe: () => {}, it: () => {}, tombstone: false } as object
    expect(() => testStore('x', () => memoryStore(), options)).toThrow(/has no option "tombstone"/)
  })

  it('refuses half a runner, and finds none by itself inside of another one', () => {
    expect(() => testStore('x', () => memoryStore(), { describe: () => {} })).toThrow(/no test runner/)
    expect(() => testStore('x', () => memoryStore())).toThrow(/^testStore found no test runner/)
  })

  it('takes a function that makes a store, and says so where it is none or makes none', async () => {
    expect(() => testStore('x', memoryStore() as never, { describe, it })).toThrow(/takes a function .* not an object/)
    for (const made of [undefined, {}, memoryStore, { store: Promise.resolve(memoryStore()) }]) {
      const { failures } = await runKit(() => made as never, {}, 'names the path of what it returns')
      expect(String([...failures.values()])).toContain('made no store: an object with read (function)')
    }
  })

  it('runs under node:test without being given its functions', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'kit-'))
    try {
      await build({
        entry: [join(import.meta.dirname, 'kit.node-test.ts')],
        ...{ outDir: directory, format: 'esm', platform: 'node', config: false, silent: true, clean: false },
        outExtension: () => ({ js: '.mjs' }),
      })
      const { VITEST: _, NODE_OPTIONS: __, ...env } = process.env
      const file = join(directory, 'kit.node-test.mjs')
      const { stdout } = await promisify(execFile)(process.execPath, ['--test', '--test-reporter=tap', file], { env })
      expect(stdout).toMatch(/^# fail 0$/m)
      expect(Number(/^# pass (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(100)
      expect(Number(/^# skipped (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(0)
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
})
