import { defineConfig } from 'vitest/config'

// Run by scripts/test-runtimes.js, which has built the package.
export default defineConfig({
  test: { include: ['test/runtimes/*.test.ts'], testTimeout: 30_000, hookTimeout: 60_000, pool: 'forks' },
})
