import { defineConfig } from 'vitest/config'

// A part of it in `npm run soak`; by hand, for an hour or a night: npx vitest run --config test/stress/vitest.config.ts
export default defineConfig({
  test: { include: ['test/stress/**/*.stress.ts'], testTimeout: 3_600_000, hookTimeout: 120_000, pool: 'forks' },
})
