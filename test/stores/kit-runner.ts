import type { MaybePromise } from '../../src/core/maybe-promise.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { type StoreFixture, type TestStoreOptions, testStore } from '../../src/testing.ts'

export interface KitRun {
  /** Titles of all cases, in order. */
  readonly titles: readonly string[]
  readonly skipped: readonly string[]
  /** What the cases that failed have thrown, by title. */
  readonly failures: ReadonlyMap<string, unknown>
}

/**
 * Runs the kit without a test runner, for tests of the kit itself.
 * @param only title of the one case to run; left out, all of them
 */
export async function runKit(
  create: () => MaybePromise<StoreFixture | ResourceStore>,
  options: TestStoreOptions = {},
  only?: string,
): Promise<KitRun> {
  const cases: { title: string; run: (context: unknown) => Promise<void> }[] = []
  testStore('the store', create, {
    ...options,
    describe: (_, define) => define(),
    // Without the options that leave the case out, which a title ends with.
    it: (title, run) => cases.push({ title: title.replace(/ \[[^[]*\]$/, ''), run }),
  })
  const failures = new Map<string, unknown>()
  const skipped: string[] = []
  for (const { title, run } of cases) {
    if (only !== undefined && title !== only) continue
    try {
      await run({ skip: () => skipped.push(title) })
    } catch (error) {
      failures.set(title, error)
    }
  }
  return { titles: cases.map(({ title }) => title), skipped, failures }
}
