import fc from 'fast-check'
import { expect } from 'vitest'
import type { MaybePromise } from '../../src/core/maybe-promise.ts'
import { isLargeBody, isResource, parseIntegerName, splitPath } from '../../src/stores/rules.ts'
import type {
  Content,
  Expectation,
  RemoveOptions,
  ResourceStore,
  StoredResource,
  StoredState,
} from '../../src/stores/types.ts'
import { createMember } from '../support/create-member.ts'

/** A store without data, for one run. */
export interface ModelSubject {
  readonly store: ResourceStore
  readonly close?: () => MaybePromise<void>
}

export interface ModelOptions {
  /** Default 100. */
  readonly numRuns?: number
  /** The most calls of one run. Default 40. */
  readonly maxCommands?: number
  readonly seed?: number
}

/** What stands at a path, as plainly as it can be said. */
type Entry =
  | {
      readonly kind: 'resource'
      readonly bytes: Buffer
      readonly type: string
      readonly version: string
      readonly hidden: boolean
    }
  | { readonly kind: 'tombstone' }

interface Model {
  readonly entries: Map<string, Entry>
  /** Every version that a path ever had. */
  readonly versions: Map<string, string[]>
  /** Integer names that were ever in use, by collection. */
  readonly names: Map<string, Set<number>>
}

type Command = fc.AsyncCommand<Model, ResourceStore>
type Expecting = 'any' | 'absent' | 'present' | 'current' | 'former' | 'nonesuch'
type Way = 'value' | 'stream' | 'staged'

const PATHS = ['/c/1', '/c/2', '/c/3', '/c/12', '/c/x', '/c/X', '/c/007', '/c/1/d', '/c/1/d/2', '/e', 'q/1', '/']
const COLLECTIONS = ['/c', '/c/1/d', '', 'q', '/none']

/**
 * Runs random calls against a store and against a model of a few lines, and compares all that they tell.
 * @param create makes a store without data, for every run
 */
export async function checkModel(create: () => MaybePromise<ModelSubject>, options: ModelOptions = {}): Promise<void> {
  const { numRuns = 100, maxCommands = 40, seed } = options
  await fc.assert(
    fc.asyncProperty(fc.commands(commandArbitraries(), { maxCommands, size: 'max' }), async (commands) => {
      const { store, close } = await create()
      try {
        const setup = () => ({ model: { entries: new Map(), versions: new Map(), names: new Map() }, real: store })
        await fc.asyncModelRun(setup, commands)
      } finally {
        await store.close?.()
        await close?.()
      }
    }),
    { numRuns, ...(seed === undefined ? {} : { seed }) },
  )
}

function commandArbitraries(): fc.Arbitrary<Command>[] {
  const path = fc.constantFrom(...PATHS)
  const collection = fc.constantFrom(...COLLECTIONS)
  const expecting = fc.constantFrom<Expecting>('any', 'absent', 'present', 'current', 'former', 'nonesuch')
  const mode = fc.constantFrom('erase', 'tombstone', 'hide')
  const way = fc.constantFrom<Way>('value', 'stream', 'staged')
  const small = fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.string({ unit: 'binary', maxLength: 100 }))
  const large = fc.integer({ min: 60_000, max: 140_000 }).map((size) => new Uint8Array(size).fill(size % 251))
  const body = fc.oneof({ weight: 12, arbitrary: small }, { weight: 1, arbitrary: large })
  const type = fc.constantFrom('application/json', 'text/plain; charset=utf-8')
  return [
    fc.tuple(path, expecting, body, type, way).map((parts) => createWrite(...parts)),
    fc.tuple(collection, body, type, way).map((parts) => createCreation(...parts)),
    fc.tuple(path, expecting, mode).map((parts) => createRemoval(...parts)),
    fc.tuple(path, fc.boolean()).map((parts) => createRead(...parts)),
    fc.tuple(collection, fc.integer({ min: 1, max: 6 }), fc.boolean()).map((parts) => createWalk(...parts)),
  ]
}

function createCommand(name: string, run: (model: Model, store: ResourceStore) => Promise<void>): Command {
  return { check: () => true, run, toString: () => name }
}

function createWrite(path: string, expecting: Expecting, body: string | Uint8Array, type: string, way: Way): Command {
  return createCommand(`write(${path}, ${expecting}, ${body.length} as ${way})`, async (model, store) => {
    const before = visible(model, path)
    const expectation = expectationOf(model, path, expecting)
    const result = await store.write(path, await contentOf(store, body, type, way), { expect: expectation })
    if (!isMet(before, expectation)) {
      expect(result.outcome).toBe('conflict')
      await expectState(model, path, result.outcome === 'conflict' ? result.current : undefined, false)
      return
    }
    expect(result.outcome).toBe(before === undefined ? 'created' : 'replaced')
    if (result.outcome !== 'conflict') await learn(model, path, result.resource, body, type)
  })
}

function createCreation(collection: string, body: string | Uint8Array, type: string, way: Way): Command {
  return createCommand(`create(${collection}, ${body.length} as ${way})`, async (model, store) => {
    const resource = await createMember(store, collection, await contentOf(store, body, type, way))
    const place = splitPath(resource.path)
    const id = parseIntegerName(place.name)
    expect(place.collection).toBe(collection)
    expect(id).toBeGreaterThan(0)
    expect([...(model.names.get(collection) ?? [])]).not.toContain(id)
    await learn(model, resource.path, resource, body, type)
  })
}

function createRemoval(path: string, expecting: Expecting, mode: RemoveOptions['mode']): Command {
  return createCommand(`remove(${path}, ${expecting}, ${mode})`, async (model, store) => {
    const before = visible(model, path)
    const expectation = expectationOf(
      model,
      path,
      expecting === 'absent' ? 'any' : expecting,
    ) as RemoveOptions['expect']
    const result = await store.remove(path, { expect: expectation, mode })
    if (before === undefined || !isMet(before, expectation)) {
      expect(result.outcome).toBe(before === undefined && expectation === 'any' ? 'absent' : 'conflict')
      if (result.outcome !== 'removed') await expectState(model, path, result.current, false)
      return
    }
    expect(result.outcome).toBe('removed')
    if (result.outcome === 'removed') await expectResource(before, result.resource)
    if (mode === 'erase') model.entries.delete(path)
    else if (mode === 'tombstone') model.entries.set(path, { kind: 'tombstone' })
    else {
      const state = await store.read(path, { hidden: true })
      if (!isResource(state)) throw new Error('A hidden resource was not found.')
      expect(state.hidden).toBe(true)
      expectNewVersion(model, path, state.version)
      model.entries.set(path, { ...before, version: state.version, hidden: true })
    }
  })
}

function createRead(path: string, hidden: boolean): Command {
  return createCommand(`read(${path}${hidden ? ', hidden' : ''})`, async (model, store) => {
    await expectState(model, path, await store.read(path, { hidden }), hidden)
    await expectState(model, path, await store.read(path, { hidden, metadataOnly: true }), hidden, 'metadata')
  })
}

function createWalk(collection: string, limit: number, hidden: boolean): Command {
  return createCommand(`walk(${collection}, ${limit}${hidden ? ', hidden' : ''})`, async (model, store) => {
    const expected = [...model.entries.keys()].filter((path) => {
      const { collection: own, name } = splitPath(path)
      const entry = model.entries.get(path)!
      return (
        own === collection &&
        path.includes('/') &&
        name !== '' &&
        entry.kind === 'resource' &&
        (hidden || !entry.hidden)
      )
    })
    const found: string[] = []
    for (let after: string | undefined; ; ) {
      const page = await store.list(collection, { limit, hidden, after })
      expect(page.items.length).toBeLessThanOrEqual(limit)
      for (const item of page.items) await expectState(model, item.path, item, hidden)
      found.push(...page.items.map((item) => item.path))
      if (page.next === undefined) break
      expect(page.items.length).toBe(limit)
      after = page.next
    }
    expect([...found].sort()).toEqual([...expected].sort())
    const integers = (paths: string[]) => paths.map((path) => parseIntegerName(splitPath(path).name))
    const values = integers(found).filter((value) => value !== undefined)
    expect(values).toEqual([...values].sort((a, b) => a - b))
    expect(integers(found).slice(0, values.length)).toEqual(values)
  })
}

async function contentOf(store: ResourceStore, body: string | Uint8Array, type: string, way: Way): Promise<Content> {
  if (way === 'value') return { contentType: type, body }
  if (way === 'stream' || store.stage === undefined) return { contentType: type, body: stream(body) }
  return { contentType: type, body: await store.stage(stream(body)) }
}

async function* stream(body: string | Uint8Array): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(body as Uint8Array)
  for (let from = 0; from < bytes.length; from += 50_000) yield bytes.subarray(from, from + 50_000)
}

function visible(model: Model, path: string) {
  const entry = model.entries.get(path)
  return entry?.kind === 'resource' && !entry.hidden ? entry : undefined
}

function expectationOf(model: Model, path: string, expecting: Expecting): Expectation {
  const versions = model.versions.get(path) ?? []
  const entry = model.entries.get(path)
  const current = entry?.kind === 'resource' ? entry.version : undefined
  if (expecting === 'current') return { version: current ?? 'nonesuch' }
  if (expecting === 'former') return { version: versions.find((version) => version !== current) ?? 'nonesuch' }
  return expecting === 'nonesuch' ? { version: 'nonesuch' } : expecting
}

function isMet(before: { readonly version: string } | undefined, expectation: Expectation): boolean {
  if (expectation === 'any') return true
  if (expectation === 'absent') return before === undefined
  return before !== undefined && (expectation === 'present' || expectation.version === before.version)
}

/** Compares the result of a write with what was given, and takes it over into the model. */
async function learn(model: Model, path: string, resource: StoredResource, body: string | Uint8Array, type: string) {
  expect(resource.path).toBe(path)
  expectNewVersion(model, path, resource.version)
  const bytes = Buffer.from(body as Uint8Array)
  const entry = { kind: 'resource', bytes, type, version: resource.version, hidden: false } as const
  await expectResource(entry, resource)
  model.entries.set(path, entry)
  const { collection, name } = splitPath(path)
  const id = parseIntegerName(name)
  if (id === undefined) return
  const names = model.names.get(collection) ?? new Set()
  model.names.set(collection, names.add(id))
}

function expectNewVersion(model: Model, path: string, version: string): void {
  const known = model.versions.get(path) ?? []
  expect(known).not.toContain(version)
  model.versions.set(path, [...known, version])
}

async function expectState(
  model: Model,
  path: string,
  state: StoredState,
  hidden: boolean,
  what: 'content' | 'metadata' = 'content',
): Promise<void> {
  const entry = model.entries.get(path)
  if (entry === undefined) expect(state).toBeUndefined()
  else if (entry.kind === 'tombstone' || (entry.hidden && !hidden)) expect(state).toMatchObject({ removed: true, path })
  else {
    if (!isResource(state)) throw new Error(`The store has no resource at ${path}.`)
    expect(state.path).toBe(path)
    expect(state.version).toBe(entry.version)
    expect(state.hidden === true).toBe(entry.hidden)
    if (what === 'content') await expectResource(entry, state)
  }
}

async function expectResource(entry: Entry & { kind: 'resource' }, resource: StoredResource): Promise<void> {
  expect(resource.version).toBe(entry.version)
  expect(resource.contentType).toBe(entry.type)
  expect(resource.size).toBe(entry.bytes.length)
  expect(Buffer.compare(await readAll(resource), entry.bytes)).toBe(0)
}

async function readAll({ body, size }: StoredResource): Promise<Buffer> {
  if (!isLargeBody(body)) return Buffer.from(body as Uint8Array)
  const chunks: Buffer[] = []
  for await (const chunk of body.open(0, size - 1)) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}
