import { randomBytes } from 'node:crypto'
import type { ContentStore } from '../contents/types.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { type ValueRule, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { type ContentsBench, contentsCases } from './contents-cases.ts'
import { claimEnds, findRunner, RUNNER_LIMIT, RUNNER_OPTIONS, runAndClose, type TestRunner } from './runner.ts'
import { createBytes, stream } from './samples.ts'

/** A content store without content, made for one case, and what belongs to it. */
export interface ContentsFixture {
  readonly contents: ContentStore
  /** Opens the same place once more, as another process would. Left out: the same content store. */
  readonly reopen?: () => MaybePromise<ContentStore>
  /** Ends all that was opened and removes the content. */
  readonly close?: () => MaybePromise<void>
}

/** Options of `testContents`. */
export interface TestContentsOptions extends Partial<TestRunner> {
  /**
   * The largest content of the cases, in bytes, 2 000 000 or more: above the size from which a service takes content in
   * parts. Default 9 MiB.
   */
  readonly largest?: number
}

const LARGEST: ValueRule = {
  accepts: (value) => Number.isSafeInteger(value) && (value as number) >= 2_000_000,
  text: 'a number of bytes, 2000000 or more',
}

const OPTIONS = {
  ...RUNNER_OPTIONS,
  largest: withDefault(LARGEST, 9 * 1024 * 1024),
} satisfies OptionTable<TestContentsOptions>

/**
 * Defines the conformance kit for a content store with the functions of a test runner.
 *
 * ```ts
 * import { describe, it } from 'vitest' // or from 'node:test'
 * import { testContents } from 'http-resource-service/testing'
 *
 * testContents('bucketContents', async () => ({ contents: bucketContents(await emptyBucket()) }), { describe, it })
 * ```
 *
 * @param name the name of the content store
 * @param create makes a content store without content; called for every case
 * @param options the functions of the runner. Default: global ones, then those of node:test
 * @throws TypeError for an unknown option, or when no runner is found
 */
export function testContents(
  name: string,
  create: () => MaybePromise<ContentsFixture>,
  options?: TestContentsOptions,
): void {
  const given = resolveOptions('testContents', options, OPTIONS)
  const { largest } = given
  const { describe, it } = findRunner('testContents', given)

  describe(name, () => {
    for (const { title, run } of contentsCases) it(title, () => runCase(run), RUNNER_LIMIT)
  })

  async function runCase(run: (bench: ContentsBench) => Promise<void>): Promise<void> {
    const { contents, reopen = () => contents, close } = await create()
    const createKey = () => randomBytes(24).toString('hex')
    const bench: ContentsBench = {
      contents,
      largest,
      createKey,
      async keep(length, chunk = 60_000) {
        const [key, bytes] = [createKey(), createBytes(length, length)]
        const { size } = await contents.put(key, stream(bytes, chunk))
        return { key, bytes, size }
      },
      reopen: async () => reopen(),
    }
    await runAndClose(
      () => claimEnds(run(bench)),
      async () => close?.(),
    )
  }
}
