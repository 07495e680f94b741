// Runs the wire cases against the demo server on other runtimes: npm run test:runtimes [-- bun deno workerd]
// Their binaries are large. They come from npm, into a temporary folder that is removed at the end; RUNTIME_FOLDER names
// one that stays.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/** The package of each runtime. miniflare brings workerd with it. */
const PACKAGES = { bun: 'bun@1.4.5', deno: 'deno@2.9.6', workerd: 'miniflare@4.20260730.0' }

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(PACKAGES)
const kept = process.env.RUNTIME_FOLDER
const folder = kept === undefined ? mkdtempSync(join(tmpdir(), 'runtimes-')) : resolve(kept)
try {
  process.exitCode = install() && names.map(test).every(Boolean) ? 0 : 1
} finally {
  if (kept === undefined) rmSync(folder, { recursive: true, force: true })
}

function install() {
  const unknown = names.find((name) => !(name in PACKAGES))
  if (unknown !== undefined) {
    console.error(`"${unknown}" is none of ${Object.keys(PACKAGES).join(', ')}.`)
    return false
  }
  mkdirSync(folder, { recursive: true })
  // Their install steps fetch or link the binaries.
  const allowScripts = { bun: true, deno: true, workerd: true }
  if (!existsSync(join(folder, 'package.json')))
    writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ private: true, allowScripts })}\n`)
  const packages = names.map((name) => PACKAGES[name])
  return run('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', folder, ...packages], process.env)
}

function test(name) {
  console.log(`\n${PACKAGES[name]}`)
  const env = { ...process.env, RUNTIME: name, RUNTIME_FOLDER: folder }
  const vitest = join('node_modules', 'vitest', 'vitest.mjs')
  return run(process.execPath, [vitest, 'run', '--config', 'test/runtimes/vitest.config.ts'], env)
}

/** @returns whether it has ended well */
function run(command, args, env) {
  return spawnSync(command, args, { stdio: 'inherit', env }).status === 0
}
