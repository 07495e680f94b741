import type { MaybePromise } from '../core/maybe-promise.ts'
import { BOOLEAN, describeValue, FUNCTION, PATH, STORE, type ValueRule, writtenAs } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import type { Content, RemoveOptions, ResourceStore } from '../stores/types.ts'
import { put } from './calls.ts'
import { absentRelated } from './cases/absent-related.ts'
import { conditions, queryCounts } from './cases/conditions.ts'
import { content as contents, ranges } from './cases/content.ts'
import { creation } from './cases/creation.ts'
import { durability } from './cases/durability.ts'
import { faults, longValues } from './cases/faults.ts'
import { indexing, sharedIndexing } from './cases/indexing.ts'
import { isolation, staging } from './cases/isolation.ts'
import { listing } from './cases/listing.ts'
import { dates, digests, versions } from './cases/metadata.ts'
import { orders, queryPages } from './cases/orders.ts'
import { parents } from './cases/parents.ts'
import { races } from './cases/races.ts'
import { related } from './cases/related.ts'
import { hiding, removal } from './cases/removal.ts'
import { selection } from './cases/selection.ts'
import { reading, writing } from './cases/states.ts'
import { queryWalks, walks } from './cases/walks.ts'
import { writtenRemovals } from './cases/written-removals.ts'
import { claimEnds, createCallWatch, findRunner, RUNNER_LIMIT, RUNNER_OPTIONS, runAndClose } from './runner.ts'
import type { Capability, Case, StoreFixture, TestStoreOptions } from './types.ts'

/** The groups of cases, in order, and what all cases of a group need. */
const GROUPS: readonly (readonly [name: string, cases: readonly Case[], ...needs: Capability[]])[] = [
  ['read', reading],
  ['read, long values', longValues],
  ['write', writing],
  ['versions', versions],
  ['create', creation],
  ['remove', removal],
  ['remove, hiding', hiding, 'hiding'],
  ['list', listing],
  ['list, page by page', walks],
  ['content', contents, 'contents'],
  ['content that fails', faults],
  ['content that takes time', isolation, 'contents'],
  ['ranges of content', ranges, 'contents'],
  ['digests of content', digests, 'digests', 'contents'],
  ['dates', dates, 'dates'],
  ['related writes', related, 'related', 'contents'],
  ['related writes of what must be absent', absentRelated, 'relatedExpect', 'contents', 'paths'],
  ['removals that write', writtenRemovals, 'relatedExpect', 'contents', 'paths'],
  ['queries: conditions', conditions, 'queries', 'contents'],
  ['queries: members and values', selection, 'queries', 'contents'],
  ['queries: order', orders, 'queries', 'contents'],
  ['queries: pages', queryPages, 'queries', 'contents'],
  ['queries: walks', queryWalks, 'queries', 'contents'],
  ['queries: counts and hidden members', queryCounts, 'queries', 'contents'],
  ['queries: members that exist already', indexing, 'queries', 'contents'],
  ['queries: members of several processes', sharedIndexing, 'queries', 'contents', 'durable'],
  ['parents and what is below them', parents, 'parents', 'contents', 'paths'],
  ['stage', staging, 'stage', 'contents'],
  ['races', races],
  ['durability', durability, 'durable'],
]

/** `offered`: where the store or its fixture has what it takes. */
const DEFAULTS: Readonly<Record<Capability, boolean | 'offered'>> = {
  durable: 'offered',
  contents: true,
  paths: true,
  dates: true,
  tombstones: true,
  hiding: true,
  related: true,
  relatedExpect: 'offered',
  queries: 'offered',
  parents: 'offered',
  stage: 'offered',
  digests: false,
}

const OPTIONS: OptionTable<TestStoreOptions> = {
  ...RUNNER_OPTIONS,
  ...(Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, BOOLEAN])) as Record<Capability, ValueRule>),
  collection: writtenAs(PATH, "a path, such as '/things'"),
  content: FUNCTION,
}

/**
 * Defines the conformance kit for a store with the functions of a test runner: one case for every sentence of the
 * contract.
 *
 * ```ts
 * import { describe, it } from 'vitest' // or from 'node:test'
 * import { testStore } from 'http-resource-service/testing'
 *
 * testStore('userStore', async () => ({ store: userStore(pool), close: () => emptyTable() }), { describe, it })
 * testStore('cacheStore', () => cacheStore(), { describe, it, hiding: false })
 * ```
 *
 * @param name the name of the store
 * @param create makes a store without data, alone or with what belongs to it; called for every case
 * @param options what the store can do beyond the core of the contract, and the functions of the runner. Default for
 *   these: global ones, then those of node:test
 * @throws TypeError for an unknown option, for no function, or when no runner is found
 */
export function testStore(
  name: string,
  create: () => MaybePromise<StoreFixture | ResourceStore>,
  options?: TestStoreOptions,
): void {
  const given = resolveOptions('testStore', options, OPTIONS)
  if (!FUNCTION.accepts(create))
    throw new TypeError(`testStore takes a function that makes a store, not ${describeValue(create)}.`)
  const { describe, it } = findRunner('testStore', given)
  const can = { ...DEFAULTS, ...given }
  const modes: RemoveOptions['mode'][] = ['erase']
  if (can.tombstones !== false) modes.push('tombstone')
  if (can.hiding !== false) modes.push('hide')
  const { collection = '/things', content: createContent = createSample } = given
  const path = (name: string | number) => `${collection}/${name}`
  const content = (seed: number, name: string | number) => createContent(seed, String(name))

  describe(name, () => {
    for (const [group, cases, ...shared] of GROUPS) {
      const needsOf = ({ needs = [] }: Case): readonly Capability[] => [...shared, ...needs]
      const fitting = cases.filter((one) => needsOf(one).every((capability) => can[capability] !== false))
      if (fitting.length === 0) continue
      describe(group, () => {
        // A function that declares a parameter would be taken for one with a callback by some runners.
        for (const one of fitting) {
          const needs = needsOf(one)
          // Where a case fails, its title says which options leave it out.
          const title = needs.length === 0 ? one.title : `${one.title} [${needs.join(', ')}]`
          it(title, (...context) => runCase(one, needs, context[0]), RUNNER_LIMIT)
        }
      })
    }
  })

  async function runCase({ run }: Case, needs: readonly Capability[], context: unknown): Promise<void> {
    const created = await create()
    const fixture: StoreFixture = STORE.accepts(created)
      ? { store: created as ResourceStore }
      : (created as StoreFixture)
    if (!STORE.accepts(fixture?.store))
      throw new TypeError(`The function that testStore was given made no store: ${STORE.text}, alone or as \`store\`.`)
    const stores: ResourceStore[] = [fixture.store]
    const calls = createCallWatch()
    const watched = calls.watch(fixture.store)
    const { reopen, crash } = fixture

    async function open(): Promise<ResourceStore> {
      if (reopen === undefined || can.durable === false) {
        if (can.durable === true) throw new TypeError('A durable store needs `reopen` beside `store`.')
        return watched
      }
      const store = await reopen()
      stores.push(store)
      return calls.watch(store)
    }

    async function runHere(): Promise<void> {
      const missing = needs.find((capability) => can[capability] === 'offered' && !isOffered(fixture, capability))
      if (missing !== undefined) return skip(context, missing)
      const done = run({
        store: watched,
        collection,
        path,
        content,
        keep: (name, seed = name) => put(watched, path(name), content(seed, name)),
        modes,
        reopen: open,
        async crash() {
          if (crash !== undefined) {
            await crash()
            stores.splice(stores.indexOf(fixture.store), 1)
          }
          return open()
        },
      })
      await claimEnds(done, calls.open)
    }

    await runAndClose(runHere, async () => {
      for (const store of stores) await store.close?.()
      await fixture.close?.()
    })
  }
}

function isOffered({ store, reopen }: StoreFixture, capability: Capability): boolean {
  if (capability === 'durable') return reopen !== undefined
  if (capability === 'stage') return store.stage !== undefined
  return store.supports?.[capability as 'relatedExpect' | 'queries' | 'parents'] === true
}

/** Says why a case is left out, where the runner has a function for it. */
function skip(context: unknown, missing: Capability): void {
  const { skip } = (context ?? {}) as { skip?: (note: string) => void }
  skip?.call(context, `The store does not offer this (${missing}).`)
}

function createSample(seed: number): Content {
  const text = JSON.stringify({ seed, filling: '.'.repeat(seed % 100) })
  // Both ways of passing small content are used in turn.
  return { contentType: 'application/json', body: seed % 2 === 0 ? text : Buffer.from(text) }
}
