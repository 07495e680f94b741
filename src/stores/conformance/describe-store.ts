import type { MaybePromise } from '../../core/handler.ts'
import { readOptions } from '../../core/options.ts'
import { type Content, type ResourceStore, splitPath } from '../types.ts'
import { content } from './cases/content.ts'
import { creation } from './cases/creation.ts'
import { dates } from './cases/dates.ts'
import { durability } from './cases/durability.ts'
import { hiding } from './cases/hiding.ts'
import { listing } from './cases/listing.ts'
import { ranges } from './cases/ranges.ts'
import { races } from './cases/races.ts'
import { reading } from './cases/reading.ts'
import { related } from './cases/related.ts'
import { removal } from './cases/removal.ts'
import { staging } from './cases/staging.ts'
import { versions } from './cases/versions.ts'
import { walks } from './cases/walks.ts'
import { writing } from './cases/writing.ts'
import type { Case, DescribeStoreOptions, StoreCapabilities, StoreFixture, TestRunner } from './types.ts'

const GROUPS: Readonly<Record<string, readonly Case[]>> = {
  read: reading,
  write: writing,
  versions,
  create: creation,
  remove: removal,
  'remove, hiding': hiding,
  list: listing,
  'list, page by page': walks,
  content,
  'ranges of content': ranges,
  dates,
  'related writes': related,
  stage: staging,
  races,
  durability,
}

const DEFAULTS: Required<StoreCapabilities> = {
  durable: false,
  contents: true,
  paths: true,
  dates: true,
  tombstones: true,
  hiding: true,
  related: true,
  stage: true,
}

/**
 * Defines the conformance kit for a store with the functions of a test runner: one case for every sentence of the
 * contract.
 *
 * ```ts
 * import { describe, it } from 'vitest' // or from 'node:test'
 * import { describeStore } from 'http-resource-service/testing'
 *
 * describeStore('userStore', async () => ({ store: userStore(pool), close: () => emptyTable() }), { describe, it })
 * ```
 *
 * @param name the name of the store
 * @param create makes a store without data; called for every case
 * @param options what the store can do beyond the core of the contract, and the functions of the runner. Default for
 *   these: global ones, then those of node:test
 * @throws TypeError when no runner is found
 */
export function describeStore(
  name: string,
  create: () => MaybePromise<StoreFixture>,
  options?: DescribeStoreOptions,
): void {
  const given = readOptions('describeStore', options, [
    ...(Object.keys(DEFAULTS) as (keyof StoreCapabilities)[]),
    'describe',
    'it',
    'collection',
    'content',
  ])
  const { describe, it } = findRunner(given)
  const can = { ...DEFAULTS, ...given }
  const { collection = '/things', content: createContent = createSample } = given

  describe(name, () => {
    for (const [group, cases] of Object.entries(GROUPS)) {
      const fitting = cases.filter(({ needs = [] }) => needs.every((capability) => can[capability]))
      if (fitting.length === 0) continue
      describe(group, () => {
        for (const { title, run } of fitting) it(title, () => runCase(run))
      })
    }
  })

  async function runCase(run: Case['run']): Promise<void> {
    const fixture = await create()
    const stores: ResourceStore[] = [fixture.store]
    try {
      await run({
        store: fixture.store,
        collection,
        path: (name) => `${collection}/${name}`,
        content: (seed, path) => createContent(seed, splitPath(path).name),
        async reopen() {
          if (!can.durable) return fixture.store
          if (fixture.reopen === undefined) throw new TypeError('A durable store needs `reopen` beside `store`.')
          const store = await fixture.reopen()
          stores.push(store)
          return store
        },
      })
    } finally {
      for (const store of stores) await store.close?.()
      await fixture.close?.()
    }
  }
}

function createSample(seed: number): Content {
  const text = JSON.stringify({ seed, filling: '.'.repeat(seed % 100) })
  // Both ways of passing small content are used in turn.
  return { contentType: 'application/json', body: seed % 2 === 0 ? text : Buffer.from(text) }
}

function findRunner(options: Partial<TestRunner>): TestRunner {
  const globals = globalThis as Partial<TestRunner>
  const found = options.describe !== undefined || options.it !== undefined ? options : globals
  if (found.describe !== undefined && found.it !== undefined) return found as TestRunner
  // node:test would define its own tests beside those of the runner that is at work, and nobody would see them fail.
  if (process.env['VITEST'] === undefined) {
    const nodeTest = process.getBuiltinModule?.('node:test') as TestRunner | undefined
    if (nodeTest !== undefined && found === globals) return nodeTest
  }
  throw new TypeError('describeStore found no test runner. Pass its functions as the options `describe` and `it`.')
}
