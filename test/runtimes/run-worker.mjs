// Runs worker-entry.mjs in workerd, through the miniflare of the folder RUNTIME_FOLDER.
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const { RUNTIME_FOLDER, DEMO_SECRET, DEMO_USER, DEMO_PASSWORD, CORS_ORIGINS } = process.env
const require = createRequire(join(resolve(RUNTIME_FOLDER), 'package.json'))
const { Miniflare } = await import(pathToFileURL(require.resolve('miniflare')).href)

const { outputFiles } = await build({
  entryPoints: [join(import.meta.dirname, 'worker-entry.mjs')],
  ...{ bundle: true, format: 'esm', platform: 'node', write: false, logLevel: 'error' },
  external: ['node:*', 'cloudflare:*', 'kerberos'],
})
const worker = new Miniflare({
  modules: true,
  script: outputFiles[0].text,
  compatibilityDate: '2026-02-10', // the first that docs/runtimes.md names
  compatibilityFlags: ['nodejs_compat'],
  bindings: { DEMO_SECRET, DEMO_USER, DEMO_PASSWORD, CORS_ORIGINS },
  host: '127.0.0.1',
})
const { port } = await worker.ready
console.log(`listening on http://127.0.0.1:${port}`)
process.once('SIGTERM', () => worker.dispose().then(() => process.exit(0)))
