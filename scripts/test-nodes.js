// Runs tests on other versions of Node: npm run test:nodes [-- 22 24 26] [-- 22 test/wire]
// Without the name of a file or folder: all of them.
// The binaries come from npm and are kept outside the project's own dependencies.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const isVersion = (argument) => /^\d+(\.\d+)*$/.test(argument)
const versions = process.argv.slice(2).filter(isVersion)
const paths = process.argv.slice(2).filter((argument) => !isVersion(argument))
const folder = join('node_modules', '.nodes')

for (const version of versions.length > 0 ? versions : ['22', '24', '26']) {
  const home = join(folder, version)
  const binary = join(home, 'node_modules', 'node', 'bin', 'node')
  if (!existsSync(binary)) {
    mkdirSync(home, { recursive: true })
    writeFileSync(join(home, 'package.json'), '{ "private": true, "allowScripts": { "node": true } }\n')
    run('npm', ['install', '--no-audit', '--no-fund', '--prefix', home, `node@${version}`])
  }
  run(binary, ['--version'])
  run(binary, [join('node_modules', 'vitest', 'vitest.mjs'), 'run', ...paths])
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' })
  if (status !== 0) {
    console.error(`${command} ${args.join(' ')} failed${error === undefined ? '' : `: ${error.message}`}`)
    process.exit(status ?? 1)
  }
}
