import { execFile } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { builtinModules, createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { rollup } from 'rollup'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { entries } from '../tsup.config.ts'

const run = promisify(execFile)
const DECLARATIONS = join('.tmp', 'declarations')

/** The folder of the built declarations; `npm start` and the tests build without them. */
async function buildDeclarations(): Promise<string> {
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  const built = statSync('dist/index.d.ts', { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (sources.every((file) => statSync(join('src', file)).mtimeMs < built)) return 'dist'
  await run('npx', ['tsup', '--dts-only', '--silent', '--out-dir', DECLARATIONS])
  await run(process.execPath, ['scripts/mark-type-exports.js', DECLARATIONS])
  return DECLARATIONS
}
let declarations: Promise<string> | undefined
function findDeclarations(): Promise<string> {
  declarations ??= buildDeclarations()
  return declarations
}
const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const subpaths = Object.keys(manifest.exports).filter((subpath) => subpath !== './package.json')
const nameOf = (subpath: string): string => manifest.name + subpath.slice(1)

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'package-'))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(resolve('.'), join(folder, 'node_modules', manifest.name))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Everything that a built file imports, now or later. */
function importsOf(file: string): string[] {
  return ts.preProcessFile(readFileSync(file, 'utf8')).importedFiles.map(({ fileName }) => fileName)
}

/** What a built file imports as soon as it is imported itself. */
function staticImportsOf(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b.*?\bfrom '([^']+)'/gm)].map(([, name]) => name!)
}

const isPackage = (name: string): boolean =>
  !/^[./]/.test(name) && !name.startsWith('node:') && !builtinModules.includes(name)

/** The packages that an import path loads at once, through files of this package. */
function packagesBehind(file: string, seen: Set<string> = new Set()): string[] {
  if (seen.has(file)) return []
  seen.add(file)
  return staticImportsOf(file).flatMap((name) => {
    if (name.startsWith('.')) return packagesBehind(join(dirname(file), name), seen)
    return isPackage(name) ? [name] : []
  })
}

/** The packages that a bundle of an import path needs, now or later. */
async function packagesInBundle(file: string): Promise<string[]> {
  const bundle = await rollup({
    input: file,
    external: (id) => !/^[./]/.test(id),
    treeshake: { moduleSideEffects: manifest.sideEffects },
  })
  const { output } = await bundle.generate({ format: 'es' })
  const chunks = output.filter((file) => file.type === 'chunk')
  const own = new Set(chunks.map(({ fileName }) => fileName))
  return chunks
    .flatMap((chunk) => [...chunk.imports, ...chunk.dynamicImports])
    .filter((id) => isPackage(id) && !own.has(id))
}

/** A program of TypeScript of one file, which is not on the disk. */
function createProgram(file: string, text: string): ts.Program {
  const options: ts.CompilerOptions = {
    ...{ module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, types: ['node'] },
    ...{ skipLibCheck: true, declaration: true, strict: true },
  }
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile } = host
  host.fileExists = (path) => path === file || fileExists(path)
  host.readFile = (path) => (path === file ? text : readFile(path))
  return ts.createProgram([file], options, host)
}

/** Thousands of bytes of a bundle with one export of a built file, minified and gzipped. */
async function measureBundle(file: string, name: string): Promise<number> {
  const { outputFiles } = await build({
    stdin: { contents: `export { ${name} } from './dist/${file}.js'`, resolveDir: '.' },
    ...{ bundle: true, minify: true, format: 'esm', platform: 'node', write: false },
  })
  return gzipSync(outputFiles[0]!.contents).length / 1000
}

/** The text of everything that a program may load, in one file. */
async function bundleAll(): Promise<string> {
  const contents = Object.keys(entries).map((entry) => `export * as '${entry}' from './dist/${entry}.js'`)
  const { outputFiles } = await build({
    stdin: { contents: contents.join('\n'), resolveDir: '.' },
    ...{ bundle: true, packages: 'external', format: 'esm', platform: 'node', write: false },
  })
  return outputFiles[0]!.text
}

describe('package.json', () => {
  it('is built whole whenever it is packed: a build of `npm start` has no declarations, a fresh clone nothing', () => {
    expect(manifest.scripts.prepack).toContain('npm run -s build ')
    expect(manifest.scripts.build).toMatch(/^tsup && /)
  })

  it('exports exactly what is built', () => {
    const built = Object.keys(entries).map((entry) => (entry === 'index' ? '.' : `./${entry}`))
    expect(subpaths.sort()).toEqual(built.sort())
    for (const subpath of subpaths) {
      const file = subpath === '.' ? 'index' : subpath.slice(2)
      expect(manifest.exports[subpath]).toEqual({ types: `./dist/${file}.d.ts`, default: `./dist/${file}.js` })
    }
  })

  it.each([
    ['body-parse', ['bodyParse']],
    ['conditional', ['conditional']],
    ['digest-fields', ['digestFields']],
    ['method-override', ['methodOverride']],
    ['patch', ['formatPointer', 'jsonPatch', 'mergePatch', 'parsePointer', 'patch']],
    ['preflight', ['preflight']],
    ['range', ['openFile', 'range']],
    ['require-https', ['requireHttps']],
    [
      'protocol',
      [
        'evaluateIfRange',
        'evaluatePreconditions',
        'formatAllow',
        'formatChallenge',
        'formatContentDisposition',
        'formatContentRange',
        'formatEntityTag',
        'formatHttpDate',
        'isEntityTag',
        'isJsonType',
        'isSafeMethod',
        'matchEntityTags',
        'mergeVary',
        'parseAccept',
        'parseAuthParameters',
        'parseAuthorization',
        'parseContentDisposition',
        'parseForwarded',
        'parseHttpDate',
        'parseMediaType',
        'parsePrefer',
        'parseRequestTarget',
        'refusesIdentity',
        'selectMediaType',
        'selectRanges',
      ],
    ],
  ])('exports from %s what users need, and no part of the inside', async (subpath, names) => {
    expect(Object.keys((await import(resolve(entries[subpath]!))) as object).sort()).toEqual(names)
  })

  it('exports from its root what each standalone middleware exports', async () => {
    const root = Object.keys(await import(resolve(entries['index']!)))
    const middleware = Object.entries(entries).filter(
      ([entry, file]) => /handlers|auth\.|patch\./.test(file) && entry !== 'index',
    )
    expect(middleware.length).toBe(9)
    for (const [entry, file] of middleware) {
      const missing = Object.keys(await import(resolve(file))).filter((name) => !root.includes(name))
      expect([entry, missing]).toEqual([entry, []])
    }
  })

  it('exports every path that the documentation imports', () => {
    const pages = ['README.md', ...readdirSync('docs', { recursive: true, encoding: 'utf8' }).map((p) => `docs/${p}`)]
    const named = pages
      .filter((page) => page.endsWith('.md'))
      .flatMap((page) => [...readFileSync(page, 'utf8').matchAll(/from '(http-resource-service[^']*)'/g)])
      .map(([, path]) => path!)
    expect([...new Set(named)].filter((path) => !subpaths.map(nameOf).includes(path))).toEqual([])
  })

  it('names the sources in a stack trace under --enable-source-maps', async () => {
    const program = `import { createResourceService, memoryStore } from ${JSON.stringify(resolve('dist/index.js'))}
      try { createResourceService(memoryStore(), { bogus: 1 }) } catch ({ stack }) { console.log(stack) }`
    const args = ['--enable-source-maps', '--input-type=module', '--eval', program]
    const { stdout } = await run(process.execPath, args)
    const line = /readServiceOptions \(\S*src\/service\/service-options\.ts:(\d+):\d+\)/.exec(stdout)?.[1]
    const source = readFileSync('src/service/service-options.ts', 'utf8').split('\n')
    expect(source[Number(line) - 1], stdout).toContain('resolveOptions(')
  })

  it('has middleware of the size that the README says', async () => {
    const rows = [...readFileSync('README.md', 'utf8').matchAll(/^\| \[`(\w+)\(.*\/([a-z-]+)\.md\) .* (\d+) kB \|$/gm)]
    expect(rows.length).toBe(9)
    for (const [, name, file, size] of rows) {
      const actual = await measureBundle(file!, name!)
      expect(Math.abs(actual - Number(size)), `${name}: ${actual} kB`).toBeLessThan(1.5)
    }
  })

  it('depends on every package that the built files import, and on no other', () => {
    // An earlier build may have left files that nothing imports.
    const files = new Set(Object.keys(entries).map((entry) => join('dist', `${entry}.js`)))
    for (const file of files) {
      for (const name of importsOf(file)) if (name.startsWith('.')) files.add(join(dirname(file), name))
    }
    const imported = [...files].flatMap(importsOf)
    const packages = [...new Set(imported.map((name) => name.replace(/^(\w[^/:]*)\/.*/, '$1')))].filter(
      (name) =>
        !name.startsWith('.') &&
        !name.startsWith('node:') &&
        !builtinModules.includes(name) &&
        !name.startsWith(manifest.name),
    )
    const optional = Object.keys(manifest.peerDependencies ?? {})
    const allowed = [...Object.keys(manifest.dependencies), ...optional]
    expect(packages.filter((name) => !allowed.includes(name))).toEqual([])
    expect(Object.keys(manifest.dependencies).filter((name) => !packages.includes(name))).toEqual([])
  })
})

describe('package-lock.json', () => {
  it('names the optional packages of every platform, without which npm ci fails', () => {
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
      packages: Record<string, { optionalDependencies?: Record<string, string> }>
    }
    // An install leaves out what it could not fetch for other platforms, and the next `npm ci` misses it.
    const isThere = (name: string, at: string): boolean =>
      [at, ''].some((place) => packages[`${place === '' ? '' : `${place}/`}node_modules/${name}`] !== undefined)
    const missing = Object.entries(packages).flatMap(([at, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter((name) => !isThere(name, at)),
    )
    expect(missing).toEqual([])
  })
})

describe('the built package', () => {
  it('has no other package inlined', () => {
    const files = readdirSync('dist', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'))
    const inlined = files.filter((file) => readFileSync(join('dist', file), 'utf8').includes('node_modules/'))
    expect(inlined).toEqual([])
  })

  it.each(subpaths)('can be required and imported: %s', async (subpath) => {
    const require = createRequire(join(folder, 'index.js'))
    const program = `
      import { createRequire } from 'node:module'
      const required = createRequire(import.meta.url)('${nameOf(subpath)}')
      const imported = await import('${nameOf(subpath)}')
      if (Object.keys(required).join() !== Object.keys(imported).join()) throw new Error('They differ.')
      if (Object.keys(imported).length === 0) throw new Error('It is empty.')
    `
    const file = join(folder, `${subpath.replaceAll(/\W/g, '-')}.mjs`)
    writeFileSync(file, program)
    await run(process.execPath, ['--no-warnings', file])
    expect(require.resolve(nameOf(subpath))).toContain('dist')
  })

  it('declares as values exactly what it exports', async () => {
    const names = Object.keys(entries)
    const file = resolve(await findDeclarations(), 'values.ts')
    const text = names.map((name, i) => `import * as n${i} from './${name}.js'\nexport const v${i} = n${i}\n`).join('')
    const program = createProgram(file, text)
    const checker = program.getTypeChecker()
    const constants = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)!)!)
    expect(constants).toHaveLength(names.length)
    for (const [index, name] of names.entries()) {
      const declared = checker.getTypeOfSymbol(constants[index]!).getProperties()
      const exported = Object.keys((await import(resolve('dist', `${name}.js`))) as object)
      expect([name, declared.map((symbol) => symbol.name).sort()]).toEqual([name, exported.sort()])
    }
  }, 600_000)

  it('lets a program with declarations of its own export its definitions', async () => {
    const text = `import { collection, document, singleton } from './index.js'
      export const resources = {
        '/users': collection({ query: { name: 'string' }, files: { photo: { replaceable: true } } }),
        '/docs/{name}': document({ deletion: 'soft' }),
        '/config': singleton({ methods: ['GET'] }),
      }`
    const program = createProgram(resolve(await findDeclarations(), 'definitions.ts'), text)
    const messages = ts.getPreEmitDiagnostics(program).map(({ messageText }) => messageText)
    expect(messages).toEqual([])
  }, 600_000)

  it('lets a program with declarations of its own export a client and what its requests give', async () => {
    const text = `import { collection, document, singleton } from './index.js'
      import { createResourceClient, expectSuccess } from './client.js'
      const resources = {
        '/users': collection({ query: { name: 'string' }, files: { photo: { replaceable: true } } }),
        '/jobs': collection({ create: 'accepted', deletion: 'queued' }),
        '/docs/{name}': document({ deletion: 'soft' }),
        '/config': singleton({ idempotency: 'optional' }),
      }
      export const client = createResourceClient<typeof resources>('http://localhost')
      export const open = createResourceClient('http://localhost')
      export const readUser = (id: number) => client.read('/users/{id}', { id })
      export const expectUser = async (id: number) => expectSuccess(await readUser(id))
      export const createUser = () => client.create('/users', { name: 'Ada' })
      export const editUser = (id: number) => client.edit('/users/{id}', { id }, (user) => user)
      export const listUsers = () => client.list('/users')
      export const removeUser = (id: number) => client.remove('/users/{id}', { id }, 'any')
      export const createJob = () => client.create('/jobs', {})
      export const removeJob = (id: number) => client.remove('/jobs/{id}', { id }, 'any')
      export const replaceDoc = () => client.replace('/docs/{name}', { name: 'a' }, 'any', {})
      export const replaceConfig = () => client.replace('/config', 'any', {})
      export const upload = (id: number) => client.upload('/users/{id}/photo', { id }, 'any', new Blob([]))
      export const download = (id: number) => client.download('/users/{id}/photo', { id })
      export const anything = [open.read('/a'), open.create('/a', {}), open.remove('/a', 'any')] as const
      export class Api {
        users = () => client.list('/users', { limit: 5 })
      }`
    const program = createProgram(resolve(await findDeclarations(), 'client-results.ts'), text)
    const messages = ts.getPreEmitDiagnostics(program).map(({ messageText }) => messageText)
    expect(messages).toEqual([])
  }, 600_000)

  it.each([
    'body-parse',
    'conditional',
    'range',
    'digest-fields',
    'preflight',
    'patch',
    'method-override',
    'require-https',
    'protocol',
    'errors',
  ])('loads no dependency for the middleware %s', async (piece) => {
    const file = join('dist', `${piece}.js`)
    expect(packagesBehind(file)).toEqual([])
    expect(await packagesInBundle(file)).toEqual([])
  })

  it('loads what describes a service when it is asked for a description, and not before (issue 21)', () => {
    const loadedBy = (file: string, seen: Set<string> = new Set()): Set<string> => {
      if (seen.has(file)) return seen
      seen.add(file)
      for (const name of staticImportsOf(file)) if (name.startsWith('.')) loadedBy(join(dirname(file), name), seen)
      return seen
    }
    const describes = (file: string): boolean => readFileSync(file, 'utf8').includes('function describeOperation(')
    expect([...loadedBy('dist/index.js')].filter(describes)).toEqual([])
    expect([...loadedBy('dist/openapi.js')].filter(describes)).toHaveLength(1)
  })

  it('shows bundlers the package that s3Contents needs, and hides from webpack the one that few programs have', async () => {
    expect(await packagesInBundle('dist/contents/s3.js')).toEqual(['aws4fetch'])
    // A comment of any other kind, and none, make webpack put an error in the place of the import.
    const hidden = [...(await bundleAll()).matchAll(/import\(\s*([^'"\s][^)]*)\)/g)].map(([, request]) =>
      request!.trim(),
    )
    expect(hidden).toEqual([expect.stringMatching(/^\/\* webpackIgnore: true \*\/\s*name$/)])
  })

  it('loads its dependencies when they are needed, and not before', async () => {
    expect(packagesBehind('dist/index.js')).toEqual([])
    expect(await packagesInBundle('dist/auth.js')).toEqual(['jose'])
  })
})
