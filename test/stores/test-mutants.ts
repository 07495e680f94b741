import { expect, it } from 'vitest'
import type { MaybePromise } from '../../src/core/maybe-promise.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import type { StoreFixture, TestStoreOptions } from '../../src/testing.ts'
import { runKit } from './kit-runner.ts'

/** The name of a broken store, the store, the title of the case that finds it out, and the sentence that the case names. */
export type Mutant = readonly [
  name: string,
  create: () => MaybePromise<StoreFixture | ResourceStore>,
  title: string,
  sentence: string,
]

/** Defines a test for each broken store: the case fails, and its message names the sentence of the contract. */
export function testMutants(mutants: readonly Mutant[], options: TestStoreOptions = {}): void {
  for (const [name, create, title, sentence] of mutants) {
    it(`finds out ${name}`, async () => {
      const { failures } = await runKit(create, options, title)
      expect([...failures.keys()]).toEqual([title])
      expect((failures.get(title) as Error).message).toContain(sentence)
    })
  }
}
