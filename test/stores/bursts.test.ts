/**
 * Calls that overlap: what they return, and what is there afterwards, is what some order of them gives, one after the
 * other. The kit holds that for one path; here calls write, hide and remove several paths in one step, and list them.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../src/stores/memory.ts'
import { isLargeBody, isResource, splitPath } from '../../src/stores/rules.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { readWhole } from '../../src/stores/streams.ts'
import type {
  Content,
  Expectation,
  RemoveOptions,
  ResourceStore,
  StoredState,
  WriteResult,
} from '../../src/stores/types.ts'
import { createRandom } from '../stress/fuzzer.ts'
import { createDatabaseFile } from '../support/sqlite.ts'
import { checkThenWrite } from './mutants/check-then-write.ts'
import { mutate, pause } from './mutants/mutate.ts'
import { relatedApart } from './mutants/related-apart.ts'

/** What stands at a path. The version of a state that no call has shown is not known. */
type Entry = 'tombstone' | { readonly body: string; readonly version?: string | undefined; readonly isHidden: boolean }
type State = Map<string, Entry>
/** What a call has shown of a path; `undefined`: nothing. */
type Seen = (Exclude<Entry, 'tombstone'> & { readonly path: string }) | 'tombstone' | undefined

interface Related {
  readonly path: string
  readonly body: string
  readonly expect: 'any' | 'absent'
}

type Call =
  | { readonly kind: 'read'; readonly path: string; readonly hidden: boolean }
  | { readonly kind: 'list'; readonly collection: string; readonly hidden: boolean }
  | {
      readonly kind: 'write'
      readonly path: string
      readonly body: string
      readonly expect: Expectation
      readonly related: Related[]
    }
  | {
      readonly kind: 'remove'
      readonly path: string
      readonly mode: RemoveOptions['mode']
      readonly expect: RemoveOptions['expect']
      readonly related: string[]
    }

interface Result {
  readonly outcome: string
  /** The state of the path before a removal or a conflict, that after a write, or all states of a list. */
  readonly seen: readonly Seen[]
  /** What was in the way at a related path. */
  readonly inTheWay?: Seen
}

interface Done {
  readonly call: Call
  readonly result: Result
  readonly begin: number
  readonly end: number
}

const PATHS = ['/c/1', '/c/2', '/c/x', '/d/1']

async function see(state: StoredState): Promise<Seen> {
  if (!isResource(state)) return state === undefined ? undefined : 'tombstone'
  const { path, version, body, hidden, size } = state
  const bytes = isLargeBody(body) ? await readWhole(body.open(0, size - 1)) : Buffer.from(body as Uint8Array)
  return { path, version, body: bytes.toString(), isHidden: hidden === true }
}

async function perform(store: ResourceStore, call: Call): Promise<() => Promise<Result>> {
  if (call.kind === 'read') {
    const state = await store.read(call.path, { hidden: call.hidden })
    return async () => ({ outcome: '', seen: [await see(state)] })
  }
  if (call.kind === 'list') {
    const { items } = await store.list(call.collection, { limit: 100, hidden: call.hidden })
    return async () => ({ outcome: '', seen: await Promise.all(items.map(see)) })
  }
  const { path, expect, related } = call
  const result =
    call.kind === 'remove'
      ? await store.remove(path, { mode: call.mode, expect, related: call.related } as RemoveOptions)
      : await store.write(path, contentOf(call.body), {
          expect,
          related: call.related.map((one) => ({ ...one, content: contentOf(one.body) })),
        })
  const { outcome } = result
  const state = 'resource' in result ? result.resource : result.current
  const inTheWay = (result as Partial<WriteResult & { related: StoredState }>).related
  return async () => ({
    outcome,
    seen: [await see(state)],
    ...(related.length > 0 && { inTheWay: await see(inTheWay) }),
  })
}

/** Half of it is a stream, during which other calls go on. */
function contentOf(body: string): Content {
  const stream = async function* () {
    await pause()
    yield Buffer.from(body)
    await pause()
  }
  return { contentType: 'text/plain', body: Number(body.slice(1)) % 2 === 0 ? body : stream() }
}

/** Whether a call may have shown that of a path; what it has shown of the version is known from then on. */
function mayShow(state: State, path: string, seen: Seen, hidden: boolean): boolean {
  const entry = state.get(path)
  if (entry === undefined) return seen === undefined
  if (entry === 'tombstone' || (entry.isHidden && !hidden)) return seen === 'tombstone'
  if (seen === undefined || seen === 'tombstone' || seen.body !== entry.body || seen.isHidden !== entry.isHidden)
    return false
  if (entry.version === undefined) state.set(path, { ...entry, version: seen.version })
  return entry.version === undefined || entry.version === seen.version
}

function visible(state: State, path: string) {
  const entry = state.get(path)
  return entry === undefined || entry === 'tombstone' || entry.isHidden ? undefined : entry
}

/** Makes the change of a call. @returns false where its result is not that */
function follow(state: State, call: Call, { outcome, seen, inTheWay }: Result): boolean {
  const [first] = seen
  if (call.kind === 'read') return mayShow(state, call.path, first, call.hidden)
  if (call.kind === 'list') {
    const members = [...state].filter(
      ([path, entry]) =>
        splitPath(path).collection === call.collection && entry !== 'tombstone' && (call.hidden || !entry.isHidden),
    )
    const shown = new Map(seen.map((one) => [(one as { path: string }).path, one]))
    return (
      shown.size === members.length && members.every(([path]) => mayShow(state, path, shown.get(path), call.hidden))
    )
  }
  const current = visible(state, call.path)
  if (call.kind === 'write') {
    const taken = call.related.find(({ path, expect }) => expect === 'absent' && visible(state, path) !== undefined)
    if (taken !== undefined) return outcome === 'conflict' && mayShow(state, taken.path, inTheWay, false)
  }
  if (inTheWay !== undefined) return false
  if (!isMet(current, call.expect)) return outcome === 'conflict' && mayShow(state, call.path, first, false)
  if (call.kind === 'write') {
    if (outcome !== (current === undefined ? 'created' : 'replaced')) return false
    state.set(call.path, { body: call.body, isHidden: false })
    for (const { path, body } of call.related) state.set(path, { body, isHidden: false })
    return mayShow(state, call.path, first, false)
  }
  if (!mayShow(state, call.path, first, false)) return false
  if (current === undefined) return outcome === 'absent'
  for (const path of [call.path, ...call.related]) {
    const entry = state.get(path)
    if (entry === undefined || entry === 'tombstone') continue
    if (call.mode === 'erase') state.delete(path)
    else state.set(path, call.mode === 'tombstone' ? 'tombstone' : { body: entry.body, isHidden: true })
  }
  return outcome === 'removed'
}

function isMet(current: { readonly version?: string | undefined } | undefined, expectation: Expectation): boolean {
  if (expectation === 'any') return true
  if (expectation === 'absent' || current === undefined) return expectation === 'absent' && current === undefined
  return expectation === 'present' || expectation.version === current.version
}

/** Whether some order of the calls gives their results, and the state that is there afterwards. */
function hasOrder(state: State, calls: readonly Done[], after: ReadonlyMap<string, Seen>): boolean {
  if (calls.length === 0) return [...after].every(([path, seen]) => mayShow(state, path, seen, true))
  const firstEnd = Math.min(...calls.map(({ end }) => end))
  return calls.some((one) => {
    const next: State = new Map(state)
    if (one.begin > firstEnd || !follow(next, one.call, one.result)) return false
    return hasOrder(
      next,
      calls.filter((other) => other !== one),
      after,
    )
  })
}

/** @throws where no order explains what the calls of a burst have returned */
async function checkBursts(stores: readonly ResourceStore[], bursts: number, seed = 1): Promise<void> {
  const random = createRandom(seed)
  const pick = <Value>(...values: readonly Value[]): Value => values[random(values.length)]!
  let state: State = new Map()
  let bodies = 0
  const createBody = () => `b${bodies++}`
  const createCall = (): Call => {
    const path = pick(...PATHS)
    const others = PATHS.filter((other) => other !== path && random(3) === 0)
    const known = { version: visible(state, path)?.version ?? 'none' }
    const hidden = random(2) === 0
    switch (pick('read', 'list', 'write', 'write', 'remove')) {
      case 'read':
        return { kind: 'read', path, hidden }
      case 'list':
        return { kind: 'list', collection: splitPath(path).collection, hidden }
      case 'write': {
        const related = others.map(
          (path): Related => ({ path, body: createBody(), expect: pick('any', 'any', 'absent') }),
        )
        return {
          kind: 'write',
          path,
          body: createBody(),
          expect: pick<Expectation>('any', 'absent', known, known),
          related,
        }
      }
      default:
        return {
          kind: 'remove',
          path,
          mode: pick('erase', 'tombstone', 'hide'),
          expect: pick<RemoveOptions['expect']>('any', known),
          related: others,
        }
    }
  }
  for (let burst = 0; burst < bursts; burst++) {
    let moment = 0
    const calls = Array.from({ length: 2 + random(4) }, () => ({
      call: createCall(),
      store: pick(...stores),
      wait: random(3),
    }))
    const done = await Promise.all(
      calls.map(async ({ call, store, wait }): Promise<Done> => {
        for (let turn = 0; turn < wait; turn++) await nextTurn()
        const begin = moment++
        const readResult = await perform(store, call)
        const end = moment++
        return { call, result: await readResult(), begin, end }
      }),
    )
    const after = new Map<string, Seen>()
    for (const path of PATHS) after.set(path, await see(await pick(...stores).read(path, { hidden: true })))
    if (!hasOrder(state, done, after))
      throw new Error(`No order explains burst ${burst}: ${JSON.stringify([[...state], done, [...after]])}`)
    state = new Map([...after].flatMap(([path, seen]) => (seen === undefined ? [] : [[path, seen]])))
  }
}

describe('calls that overlap are as if one followed the other', () => {
  it('on memoryStore', () => checkBursts([memoryStore()], 1000))

  it('on two instances of sqliteStore that share a file', async () => {
    const file = await createDatabaseFile()
    const stores = [1, 2].map(() => sqliteStore(file.open(), { inlineLimit: 2 }))
    await checkBursts(stores, 150)
    for (const store of stores) await store.close?.()
    await file.remove()
  })

  const removesApart = mutate((sound) => ({
    async remove(path, { related = [], ...options }) {
      const result = await sound.remove(path, options)
      await pause()
      if (result.outcome === 'removed')
        for (const other of related) await sound.remove(other, { ...options, expect: 'any' })
      return result
    },
  }))
  for (const [name, create] of Object.entries({ checkThenWrite, relatedApart, removesApart })) {
    it(`which is not so of a broken store: ${name}`, async () => {
      await expect(checkBursts([create()], 1000)).rejects.toThrow('No order explains')
    })
  }
})
