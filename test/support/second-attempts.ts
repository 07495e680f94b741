import type { Reporter, TestCase } from 'vitest/node'

/**
 * Names at the end of a run the tests that passed at their second attempt only. Each is a defect to find: of the test,
 * which then depends on a clock or on what else the machine does, or of what it tests.
 */
export default class SecondAttempts implements Reporter {
  readonly #names: string[] = []

  onTestCaseResult(test: TestCase): void {
    if (test.diagnostic()?.flaky !== true) return
    const [error] = test.result().errors ?? []
    this.#names.push(`${test.module.relativeModuleId} > ${test.fullName}\n    ${error?.message.split('\n')[0] ?? ''}`)
  }

  onTestRunEnd(): void {
    if (this.#names.length === 0) return
    console.log(`Passed at the second attempt only:\n  ${this.#names.join('\n  ')}`)
  }
}
