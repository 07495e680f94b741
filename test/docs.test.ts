import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { entries } from '../tsup.config.ts'

const run = promisify(execFile)

function listPages(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return listPages(path)
    return path.endsWith('.md') ? [path] : []
  })
}

const pages = ['README.md', ...listPages('docs')]

const blocks = pages.flatMap((page) =>
  [...readFileSync(page, 'utf8').matchAll(/^```js\n(.*?)^```/gms)].map(([, code], index) => ({
    name: `${page} ${index + 1}`,
    code: code!,
  })),
)

/** Within the project, so that programs find the package by its name; of this run alone. */
let folder: string
beforeAll(() => {
  mkdirSync('.tmp', { recursive: true })
  folder = mkdtempSync(join('.tmp', 'docs-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/**
 * Runs the blocks of a page one after the other, in one process: the package is loaded once. A block has failed where it
 * throws, at once or while the next ones run.
 */
const RUN_BLOCKS = `
import { setTimeout as sleep } from 'node:timers/promises'
let current
const failures = {}
const fail = (error) => (failures[current] ??= String(error?.stack ?? error))
process.on('uncaughtException', fail).on('unhandledRejection', fail)
for (current of process.argv.slice(2)) {
  await import(current).catch(fail)
  await sleep(50)
}
await sleep(200)
process.stdout.write('\\nfailures: ' + JSON.stringify(failures) + '\\n', () => process.exit(0))
`

function fileOf(name: string): string {
  return resolve(folder, `${name.replaceAll(/\W+/g, '-')}.mjs`)
}

/** What went wrong in each block, on free ports; whatever they start is ended once they have run. */
async function runBlocks(): Promise<Readonly<Record<string, string>>> {
  const runner = join(folder, 'run-blocks.mjs')
  writeFileSync(runner, RUN_BLOCKS)
  for (const { name, code } of blocks) writeFileSync(fileOf(name), code.replaceAll(/\b8080\b/g, '0'))
  const { stdout } = await run(process.execPath, [runner, ...blocks.map(({ name }) => fileOf(name))], {
    timeout: 100_000,
  })
  const [, failures] = [...stdout.matchAll(/^failures: (.*)$/gm)].at(-1)!
  return JSON.parse(failures!) as Record<string, string>
}

describe('documentation', () => {
  describe('has a program that runs', () => {
    let failures: Readonly<Record<string, string>>
    beforeAll(async () => {
      failures = await runBlocks()
    })

    it.each(blocks)('$name', ({ name }) => {
      expect(failures[fileOf(name)]).toBeUndefined()
    })
  })

  it('has programs that compile in an editor that checks types', () => {
    // The declarations of Node give subscribers of a diagnostics channel nothing but `unknown`.
    const checked = blocks.filter(({ name }) => !name.startsWith('docs/observability.md'))
    const files = new Map(checked.map(({ name, code }) => [resolve(`${name.replaceAll(/\W+/g, '-')}.mjs`), code]))
    const options: ts.CompilerOptions = {
      ...{
        allowJs: true,
        checkJs: true,
        strict: true,
        noImplicitAny: false,
        noEmit: true,
        skipLibCheck: true,
        types: ['node'],
      },
      ...{ target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.NodeNext, allowImportingTsExtensions: true },
      paths: Object.fromEntries(
        Object.entries(entries).map(([entry, file]) => [
          `http-resource-service${entry === 'index' ? '' : `/${entry}`}`,
          [resolve(file)],
        ]),
      ),
    }
    const host = ts.createCompilerHost(options)
    const { fileExists, readFile } = host
    host.fileExists = (file) => files.has(resolve(file)) || fileExists(file)
    host.readFile = (file) => files.get(resolve(file)) ?? readFile(file)
    const program = ts.createProgram([...files.keys()], options, host)
    const found = [...files.keys()]
      .flatMap((file) => ts.getPreEmitDiagnostics(program, program.getSourceFile(file)))
      .map(({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`)
    expect(found).toEqual([])
  })

  it('names the steps of a request as the built package does', async () => {
    const page = readFileSync('docs/how-a-request-flows.md', 'utf8')
    const steps = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name)
    const program = `
      import { subscribe } from 'node:diagnostics_channel'
      import { createServer } from 'node:http'
      import { bearer, collection, createResourceService, document, memoryStore } from 'http-resource-service'
      const service = createResourceService(memoryStore(), {
        allowedHosts: ['127.0.0.1'],
        methodOverride: true,
        cors: { origins: '*' },
        auth: { schemes: [bearer(() => true, { metadata: { resource: 'https://api.example' } })], requireAuth: () => false },
        resources: { '/{name}': document({ idempotency: 'optional' }), '/own/{x}': collection({ scope: () => undefined }) },
      })
      subscribe('http-resource-service:request', ({ steps }) => {
        console.log(JSON.stringify(steps))
        process.exit()
      })
      const server = createServer(service).listen(0, '127.0.0.1', () => {
        const { port } = server.address()
        fetch(\`http://127.0.0.1:\${port}/a\`, { method: 'PUT', body: 'text' }).catch(() => {})
      })
    `
    writeFileSync(join(folder, 'steps.mjs'), program)
    const { stdout } = await run(process.execPath, [join(folder, 'steps.mjs')], { timeout: 60_000 })
    expect(JSON.parse(stdout)).toEqual(steps)
  })

  it('links to pages that exist', () => {
    const broken = pages.flatMap((page) =>
      [...readFileSync(page, 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)]
        .map(([, link]) => join(page, '..', link!))
        .filter((target) => {
          try {
            readdirSync(target)
            return false
          } catch (error) {
            return (error as NodeJS.ErrnoException).code === 'ENOENT'
          }
        })
        .map((target) => `${page}: ${target}`),
    )
    expect(broken).toEqual([])
  })

  it('is true where it is derived from the source and the tests', async () => {
    await expect(run(process.execPath, ['scripts/write-docs.js', '--check'])).resolves.toBeDefined()
  })
})
