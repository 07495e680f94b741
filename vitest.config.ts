import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig, type TestProjectConfiguration } from 'vitest/config'
import { entries } from './tsup.config.ts'

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Folders whose files share processes: a process of its own costs each file 0.7 s of processor time. */
const SHARED =
  'test/{adapters,body-types,core,guards,handlers,hooks,openapi,patch-formats,properties,protocol,queries,service,writes}/*.test.ts'

export default defineConfig({
  test: {
    projects: [
      project({ name: 'shared', include: [SHARED], isolate: false }),
      project({ name: 'alone', include: ['test/**/*.test.ts'], exclude: [SHARED] }),
    ],
    globalSetup: ['test/support/build.ts', 'test/support/compare-answers.ts'],
    teardownTimeout: 60_000,
    reporters: ['default', './test/support/second-attempts.ts'],
    // Tests wait for half of their time, for clocks and other processes: on two processors a third worker shortens the suite.
    maxWorkers: Math.max(3, availableParallelism()),
  },
})

function project(files: {
  readonly name: string
  readonly include: string[]
  readonly exclude?: string[]
  readonly isolate?: boolean
}): TestProjectConfiguration {
  return {
    resolve: {
      // Examples import the package by its name; in tests that name stands for the source.
      alias: Object.entries(entries).map(([entry, path]) => ({
        find: new RegExp(`^http-resource-service${entry === 'index' ? '' : `/${entry}`}$`),
        replacement: source(path),
      })),
    },
    test: {
      ...files,
      setupFiles: [
        'test/support/record-answers.ts',
        'test/support/compare-bytes.ts',
        ...(files.isolate === false ? ['test/support/no-listeners-left.ts'] : []),
      ],
      // Beside ten busy processes: a test that hangs is found all the same.
      testTimeout: 180_000,
      hookTimeout: 180_000,
      expect: { poll: { timeout: 30_000 } },
      // Of 40,000 tests in a whole check, one is spoilt now and then by what else the machine does. It is tried once more
      // and named at the end of the run.
      retry: 1,
      pool: 'forks',
    },
  }
}
