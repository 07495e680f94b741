// What one anonymous connection may cost, in bytes and in processor time: node bench/cost.mjs [name of a file in cost/]
// Bounds are in issue 16; they have generous margins, and none of them is in wall clock.
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const folder = path.join(path.dirname(fileURLToPath(import.meta.url)), 'cost')
const only = process.argv.slice(2)
const files = readdirSync(folder).filter((file) => file.endsWith('.mjs'))
const rows = []
for (const file of files.sort()) {
  if (only.length > 0 && !only.includes(file.replace('.mjs', ''))) continue
  const { default: attacks } = await import(pathToFileURL(path.join(folder, file)).href)
  for (const { name, run } of attacks) {
    const { figures, bound, ok } = await run()
    rows.push({ ok, attack: name, figures, bound })
    console.log(`${ok ? 'ok    ' : 'BROKEN'} ${name}: ${describe(figures)} (${bound})`)
  }
}
if (rows.length === 0) throw new Error('There is nothing to measure.')
const broken = rows.filter(({ ok }) => !ok)
console.log(`${rows.length - broken.length} of ${rows.length} bounds hold.`)
process.exit(broken.length === 0 ? 0 : 1)

/** @param {string | Record<string, number>} figures */
function describe(figures) {
  if (typeof figures === 'string') return figures
  return Object.entries(figures)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')
}
