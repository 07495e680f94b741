import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

/** What each folder may import beside itself. Arrows point down: no folder is named above its own line. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  core: ['protocol'],
  contents: ['protocol', 'core'],
  stores: ['protocol', 'core', 'contents'],
  'patch-formats': ['protocol', 'core'],
  'body-types': ['protocol', 'core'],
  'auth-schemes': ['protocol', 'core'],
  handlers: ['protocol', 'core', 'patch-formats', 'body-types', 'auth-schemes'],
  actions: ['protocol', 'core', 'stores', 'patch-formats', 'body-types', 'handlers'],
  work: ['protocol', 'core', 'stores', 'actions'],
  openapi: ['protocol', 'core', 'actions'],
  service: ['protocol', 'core', 'stores', 'patch-formats', 'body-types', 'handlers', 'actions', 'work', 'openapi'],
  adapters: ['protocol', 'core'],
  client: ['protocol', 'core', 'patch-formats'],
  conformance: ['protocol', 'core', 'contents', 'stores'],
}

/** The one file that imports each npm package. */
const PACKAGES: Readonly<Record<string, string>> = {
  jose: 'auth-schemes/jwt.ts',
}

/** The standalone middleware, each of which may be imported alone. */
const PIECES = [
  'auth',
  'body-parse',
  'conditional',
  'digest-fields',
  'method-override',
  'patch',
  'preflight',
  'range',
  'require-https',
]

const SOURCE = fileURLToPath(new URL('../src', import.meta.url))

const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))

interface Import {
  /** A path below src, or a name as it is written. */
  readonly name: string
  /** `import type`, of which nothing is left at run time. */
  readonly isType: boolean
}

function readImports(file: string): readonly Import[] {
  const source = ts.createSourceFile(file, readFileSync(join(SOURCE, file), 'utf8'), ts.ScriptTarget.ES2022)
  const found: Import[] = []
  const add = (specifier: ts.Node | undefined, isType: boolean): void => {
    if (specifier === undefined || !ts.isStringLiteral(specifier)) return
    const { text } = specifier
    const name = text.startsWith('.') ? posix.normalize(posix.join(posix.dirname(file), text)) : text
    found.push({ name, isType })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) add(node.moduleSpecifier, node.importClause?.isTypeOnly === true)
    else if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, node.isTypeOnly)
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, true)
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
      add(node.arguments[0], false)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

const imports = new Map(files.map((file) => [file, readImports(file)]))

/** The package of a path inside of it; none of the packages has a scope. */
const packageOf = (name: string): string => name.replace(/\/.*/, '')
const isOurs = (name: string): boolean => name.endsWith('.ts')
/** The folder of a file; empty for the entries, which may import everything. */
const layerOf = (file: string): string => (file.includes('/') ? file.slice(0, file.indexOf('/')) : '')

/** Our own files that a file imports, types included. */
function importedBy(file: string): readonly string[] {
  return (imports.get(file) ?? []).map(({ name }) => name).filter(isOurs)
}

/** Every file that is loaded with one. */
function reachableFrom(file: string): Set<string> {
  const reached = new Set<string>()
  const queue = [file]
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    for (const { name, isType } of imports.get(next) ?? []) {
      if (isType || !isOurs(name) || reached.has(name)) continue
      reached.add(name)
      queue.push(name)
    }
  }
  return reached
}

describe('the architecture', () => {
  it('has a line for every folder, and no arrow that points up', () => {
    const layers = new Set(files.map(layerOf).filter((layer) => layer !== ''))
    expect([...layers].sort()).toEqual(Object.keys(ALLOWED).sort())
    const order = Object.keys(ALLOWED)
    for (const [layer, below] of Object.entries(ALLOWED)) {
      for (const name of below)
        expect([layer, name, order.indexOf(name) < order.indexOf(layer)]).toEqual([layer, name, true])
    }
  })

  it('has only the arrows that are listed', () => {
    const wrong = files.flatMap((file) => {
      const layer = layerOf(file)
      if (layer === '') return []
      const below = [layer, ...ALLOWED[layer]!]
      return importedBy(file)
        .filter((name) => !below.includes(layerOf(name)))
        .map((name) => `${file} imports ${name}`)
    })
    expect(wrong).toEqual([])
  })

  it('lets only entries import entries', () => {
    const wrong = files.filter((file) => layerOf(file) !== '' && importedBy(file).some((name) => layerOf(name) === ''))
    expect(wrong).toEqual([])
  })

  it('imports only files that are there, none of them outside src', () => {
    const missing = files.flatMap((file) =>
      importedBy(file)
        .filter((name) => !imports.has(name) && !name.endsWith('.d.ts'))
        .map((name) => `${file} imports ${name}`),
    )
    expect(missing).toEqual([])
  })

  it('has no cycle of files that load each other', () => {
    const cycles = files.filter((file) => reachableFrom(file).has(file))
    expect(cycles).toEqual([])
  })

  it('keeps the protocol free of everything, Node included', () => {
    const wrong = files.filter(
      (file) => layerOf(file) === 'protocol' && imports.get(file)!.some(({ name }) => !isOurs(name)),
    )
    expect(wrong).toEqual([])
  })

  it('reads request fields by `exchange.field` or `readField`, which see own properties only', () => {
    const reads =
      /\b(?:exchange|req|request|this)\.headers(?:\.(?!get\b)|\[)|\{[^{}]*\bheaders\b[^{}]*\} = (?:exchange|req|this)\b/
    const allowed = ['core/fields.ts', 'handlers/conditional.ts']
    const wrong = files.filter(
      (file) => !allowed.includes(file) && reads.test(readFileSync(join(SOURCE, file), 'utf8')),
    )
    expect(wrong).toEqual([])
  })

  it('imports each npm package in one file, and none that is not listed', () => {
    const found: Record<string, string[]> = {}
    for (const file of files) {
      const names = imports.get(file)!.map(({ name }) => name)
      const foreign = names.filter((name) => !isOurs(name) && !name.startsWith('node:'))
      for (const name of new Set(foreign.map(packageOf))) (found[name] ??= []).push(file)
    }
    expect(found).toEqual(Object.fromEntries(Object.entries(PACKAGES).map(([name, file]) => [name, [file]])))
    const manifest = JSON.parse(readFileSync(join(dirname(SOURCE), 'package.json'), 'utf8'))
    expect(Object.keys(manifest.dependencies).sort()).toEqual(Object.keys(PACKAGES).sort())
  })

  it('keeps the client free of Node: it runs in browsers', () => {
    const wrong = [...reachableFrom('client.ts')].filter(
      (file) =>
        imports.get(file)!.some(({ name, isType }) => !isType && name.startsWith('node:')) ||
        /\b(?:Buffer|process)\./.test(readFileSync(join(SOURCE, file), 'utf8')),
    )
    expect(wrong).toEqual([])
  })

  it.each(PIECES)('loads no other piece, no store and no service with %s', (piece) => {
    const reached = reachableFrom(`handlers/${piece}.ts`)
    const others = PIECES.filter((name) => name !== piece && reached.has(`handlers/${name}.ts`))
    expect(others).toEqual([])
    expect(
      [...reached].filter((file) => ['stores', 'actions', 'work', 'service', 'adapters'].includes(layerOf(file))),
    ).toEqual([])
  })
})
