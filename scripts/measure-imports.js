// What each import path loads: `node scripts/measure-imports.js`. dist/ must be built.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The files of this package that one of them imports at once, itself included. */
export function reachableFrom(file, seen = new Set()) {
  if (seen.has(file)) return seen
  seen.add(file)
  const text = readFileSync(file, 'utf8')
  for (const [, target] of text.matchAll(/^(?:import|export)\b[^'"]*?(?:from\s*)?['"](\.[^'"]+)['"]/gm)) {
    reachableFrom(join(dirname(file), target), seen)
  }
  return seen
}

/** Bytes that an import path loads, without the packages and modules of Node that it uses. */
export function sizeOfImport(file) {
  return [...reachableFrom(file)].reduce((sum, path) => sum + readFileSync(path).length, 0)
}

if (process.argv[1] === import.meta.filename) {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))
  for (const [subpath, target] of Object.entries(exports)) {
    if (typeof target === 'string') continue
    console.log(subpath.padEnd(20), `${(sizeOfImport(target.default) / 1000).toFixed(1)} kB`)
  }
}
