import { execFile } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Builds the package before all tests, unless it is built: examples and documents import it as users do. */
export default async function build(): Promise<void> {
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  const built = statSync('dist/index.js', { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (sources.every((file) => statSync(join('src', file)).mtimeMs < built)) return
  await promisify(execFile)('npm', ['run', '--silent', 'build:js'])
}
