// Marks the exports of the built declarations that are not values: `node scripts/mark-type-exports.js [folder]`. The bundler of
// declarations forgets `export type`, so that functions and classes seem to exist that the package does not export.
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import ts from 'typescript'

const folder = process.argv[2] ?? 'dist'
const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))

for (const target of Object.values(exports)) {
  if (typeof target === 'string') continue
  const values = Object.keys(await import(pathToFileURL(resolve(target.default))))
  const file = join(folder, target.types.replace('./dist/', ''))
  writeFileSync(file, markTypes(file, readFileSync(file, 'utf8'), values))
}

/** The same declarations, with `type` before every export that is not among the values. */
function markTypes(file, text, values) {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest)
  const starts = source.statements.flatMap((statement) => {
    if (!ts.isExportDeclaration(statement) || statement.isTypeOnly) return []
    if (statement.exportClause === undefined) throw new Error(`${file} exports everything of another file.`)
    return statement.exportClause.elements
      .filter((element) => !element.isTypeOnly && !values.includes(element.name.text))
      .map((element) => element.getStart(source))
  })
  return starts.reduceRight((marked, start) => `${marked.slice(0, start)}type ${marked.slice(start)}`, text)
}
