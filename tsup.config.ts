import { defineConfig } from 'tsup'
import { mergeChunks } from './scripts/merge-chunks.ts'

/** One entry per subpath of the package; package.json and test/package.test.ts hold the same list. */
export const entries: Record<string, string> = {
  index: 'src/index.ts',
  'stores/memory': 'src/stores/memory.ts',
  'stores/sqlite': 'src/stores/sqlite.ts',
  'stores/postgres': 'src/stores/postgres.ts',
  'contents/file': 'src/contents/file.ts',
  'contents/s3': 'src/contents/s3.ts',
  conditional: 'src/handlers/conditional.ts',
  range: 'src/handlers/range.ts',
  'digest-fields': 'src/handlers/digest-fields.ts',
  preflight: 'src/handlers/preflight.ts',
  auth: 'src/auth.ts',
  patch: 'src/patch.ts',
  'body-parse': 'src/handlers/body-parse.ts',
  'method-override': 'src/handlers/method-override.ts',
  'require-https': 'src/handlers/require-https.ts',
  client: 'src/client.ts',
  errors: 'src/core/errors.ts',
  protocol: 'src/protocol.ts',
  koa: 'src/adapters/koa.ts',
  fastify: 'src/adapters/fastify.ts',
  hono: 'src/adapters/hono.ts',
  testing: 'src/testing.ts',
  openapi: 'src/openapi.ts',
}

const isWhole = process.env['npm_lifecycle_event'] !== 'build:js'

export default defineConfig({
  entry: entries,
  format: 'esm',
  target: 'node20',
  platform: 'node',
  // Declarations take seconds; `npm start` does without, and leaves alone what a program that runs may still need.
  dts: isWhole,
  splitting: true,
  sourcemap: true,
  clean: isWhole,
  onSuccess: () => mergeChunks('dist', Object.keys(entries)),
})
