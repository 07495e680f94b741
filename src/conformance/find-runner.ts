import { FUNCTION } from '../core/option-values.ts'
import type { OptionTable } from '../core/options.ts'
import type { TestRunner } from './types.ts'

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
