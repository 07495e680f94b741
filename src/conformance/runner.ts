import { isPromise } from '../core/maybe-promise.ts'
import { FUNCTION } from '../core/option-values.ts'
import type { OptionTable } from '../core/options.ts'
import { waitAtMost } from '../core/time.ts'
import type { ResourceStore } from '../stores/types.ts'
import { claimSettles } from './claims.ts'

/** The functions of a test runner: of vitest, of node:test, or of any other that has them in this form. */
export interface TestRunner {
  /** Groups the cases. Default: the global one, then that of node:test. */
  readonly describe: (name: string, define: () => void) => unknown
  /**
   * Runs a case. Default: the global one, then that of node:test.
   * @param timeout milliseconds that the case may take, as vitest, Jest and Bun have it; node:test sets none by itself, and
   *   Mocha needs `--timeout`
   */
  readonly it: (title: string, run: (...context: unknown[]) => Promise<void>, timeout: number) => unknown
}

export const RUNNER_OPTIONS: OptionTable<TestRunner> = { describe: FUNCTION, it: FUNCTION }

/**
 * The functions that were passed, or global ones, or those of node:test.
 * @throws TypeError when there are none
 */
export function findRunner(owner: string, options: Partial<TestRunner>): TestRunner {
  const globals = globalThis as Partial<TestRunner>
  const found = options.describe !== undefined || options.it !== undefined ? options : globals
  if (found.describe !== undefined && found.it !== undefined) return found as TestRunner
  // node:test would define its own tests beside those of the runner that is at work, where their failures would not be seen.
  if (process.env['VITEST'] === undefined) {
    const nodeTest = process.getBuiltinModule?.('node:test') as TestRunner | undefined
    if (nodeTest !== undefined && found === globals) return nodeTest
  }
  throw new TypeError(`${owner} found no test runner. Pass its functions as the options \`describe\` and \`it\`.`)
}

/** Milliseconds for a case. All of them take a fraction of it, but on a busy machine. */
const CASE_LIMIT = 30_000
/** Milliseconds after which the runner ends a case: later than the kit itself, which says what it has waited for. */
export const RUNNER_LIMIT: number = 2 * CASE_LIMIT

/**
 * Fails unless a case comes to its end in time.
 * @param open the calls that have not been answered yet, where they are known
 */
export async function claimEnds(done: Promise<void>, open?: ReadonlySet<string>): Promise<void> {
  await claimSettles(done, () => describeSilence(open), CASE_LIMIT)
}

/** Milliseconds to close in after a failure: a call that was never answered may keep the store from closing as well. */
const CLOSE_LIMIT = 5000

/** Runs a case and closes what it has opened. Fails as the case does: how it closes then tells less. */
export async function runAndClose(run: () => Promise<void>, close: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    await waitAtMost(
      CLOSE_LIMIT,
      close().catch(() => {}),
    )
    throw error
  }
  await claimSettles(close(), 'A call was never answered: close, after the case.', CASE_LIMIT)
}

function describeSilence(open: ReadonlySet<string> | undefined): string {
  const late = `The case did not come to its end in ${CASE_LIMIT / 1000} seconds.`
  if (open === undefined) return late
  if (open.size > 0) return `A call was never answered: ${[...open].join('; ')}. ${late}`
  return `${late} No call to the store is open: each may have taken too long.`
}

const METHODS = ['read', 'write', 'create', 'remove', 'list', 'stage'] as const

/**
 * Knows which calls to the stores of a case have not been answered yet.
 * @returns `watch` makes the same store, with calls that are noted until they are settled; `open` has them as they would be written
 */
export function createCallWatch(): { watch(store: ResourceStore): ResourceStore; readonly open: ReadonlySet<string> } {
  const open = new Set<string>()
  let count = 0

  function note(result: PromiseLike<unknown>, call: string): Promise<unknown> {
    // Asked for its result once only: a query of some libraries runs at every `then`.
    const promise = Promise.resolve(result)
    open.add(call)
    const settle = (): void => void open.delete(call)
    promise.then(settle, settle)
    return promise
  }

  function watch(store: ResourceStore): ResourceStore {
    const calls: Record<string, unknown> = { supports: store.supports }
    for (const name of METHODS) {
      if (store[name] === undefined) continue
      calls[name] = (...values: unknown[]) => {
        const method = store[name] as (...values: unknown[]) => unknown
        const result = method.apply(store, values)
        return isPromise(result) ? note(result, `${describe(name, values[0])}, call ${++count} of the case`) : result
      }
    }
    return calls as unknown as ResourceStore
  }

  return { watch, open }
}

function describe(name: string, subject: unknown): string {
  return typeof subject === 'string' ? `${name}(${JSON.stringify(subject)})` : `${name}()`
}
