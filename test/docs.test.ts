import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { blocks, findCheck } from './support/doc-blocks.ts'
import { compileProgram } from './support/recipes.ts'
import { findTypeErrors } from './support/type-check.ts'

const run = promisify(execFile)

/** Programs that stand in the documentation alone; those of files in examples/ have tests of their own. */
const programs = blocks.filter((block) => findCheck(block) === 'run')

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
  for (const { name, language, code } of programs) {
    writeFileSync(fileOf(name), language === 'ts' ? compileProgram(code) : code)
  }
  const freePort = resolve('test/support/free-port.mjs')
  const { stdout } = await run(
    process.execPath,
    ['--import', freePort, 'run-blocks.mjs', ...programs.map(({ name }) => fileOf(name))],
    // What they write, a database for instance, goes with the folder.
    { timeout: 100_000, cwd: folder },
  )
  const [, failures] = [...stdout.matchAll(/^failures: (.*)$/gm)].at(-1)!
  return JSON.parse(failures!) as Record<string, string>
}

describe('documentation', () => {
  describe('has a program that runs', () => {
    let failures: Readonly<Record<string, string>>
    beforeAll(async () => {
      failures = await runBlocks()
    })

    it.each(programs)('$name', ({ name }) => {
      expect(failures[fileOf(name)]).toBeUndefined()
    })
  })

  it('has programs that compile in an editor that checks types', () => {
    // The declarations of Node give subscribers of a diagnostics channel nothing but `unknown`.
    const checked = blocks.filter(
      ({ name, language }) => language === 'js' && !name.startsWith('docs/observability.md'),
    )
    expect(findTypeErrors(checked, 'mjs', { allowJs: true, checkJs: true, noImplicitAny: false })).toEqual([])
  })

  it('has TypeScript that compiles under "strict"', () => {
    const checked = blocks.filter(({ language }) => language === 'ts')
    expect(findTypeErrors(checked, 'ts', {})).toEqual([])
  })

  it('names the steps of a request as the built package does, and a minified bundle of it', async () => {
    const page = readFileSync('docs/how-a-request-flows.md', 'utf8')
    const steps = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name)
    const program = `
      import { subscribe } from 'node:diagnostics_channel'
      import { createServer } from 'node:http'
      import { bearer, collection, createResourceService, memoryStore } from 'http-resource-service'
      const service = createResourceService(memoryStore(), {
        allowedHosts: ['127.0.0.1'],
        methodOverride: true,
        cors: { origins: '*' },
        auth: { schemes: [bearer(() => true, { metadata: { resource: 'https://api.example' } })], requireAuth: () => false },
        resources: {
          '/lists': collection(),
          '/lists/{list}/items': collection({
            idempotency: 'optional',
            parent: true,
            scope: () => undefined,
            deletion: 'soft',
            authorize: () => true,
          }),
        },
      })
      const traces = []
      subscribe('http-resource-service:request', ({ steps }) => traces.push(steps))
      const server = createServer(service).listen(0, '127.0.0.1', async () => {
        const { port } = server.address()
        const send = (method, path, body) =>
          fetch(\`http://127.0.0.1:\${port}\${path}\`, { method, body, headers: { 'Content-Type': 'application/json' } })
        await send('POST', '/lists', '{}')
        await send('POST', '/lists/1/items', '{}')
        await send('GET', '/lists/1/items/1')
        console.log(JSON.stringify(traces.slice(1)))
        process.exit()
      })
    `
    const file = join(folder, 'steps.mjs')
    const bundle = join(folder, 'steps-bundle.cjs')
    writeFileSync(file, program)
    const { stdout } = await run(process.execPath, [file], { timeout: 60_000 })
    await build({
      entryPoints: [file],
      outfile: bundle,
      bundle: true,
      minify: true,
      platform: 'node',
      logLevel: 'error',
    })
    expect((await run(process.execPath, [bundle], { timeout: 60_000 })).stdout).toBe(stdout)
    const traces = JSON.parse(stdout) as string[][]
    // A request takes the steps that its method needs: each in the order of the page, and together all of them.
    for (const trace of traces) expect(trace).toEqual(steps.filter((name) => trace.includes(name!)))
    expect(steps.filter((name) => !traces.flat().includes(name!))).toEqual([])
  })

  it('explains every type that the page of the store contract names', () => {
    const page = readFileSync('docs/store-contract.md', 'utf8')
    const types = page.split('\n').map((line) => line.split(/(?<!\\)\|/)[2] ?? '')
    const named = new Set(types.join().match(/\b[A-Z][a-z]\w*/g))
    const standard = 'AbortSignal AsyncIterable Exclude Omit Pick PromiseLike Readonly Record Uint8Array'.split(' ')
    const explained = [...page.matchAll(/^(?:## |\| `)([A-Z]\w*)/gm)].map(([, name]) => name)
    const open = [...named].filter((name) => ![...standard, ...explained, 'Value'].includes(name))
    expect(open).toEqual([])
  })

  it('is true where it is derived from the source and the tests', async () => {
    await expect(run(process.execPath, ['scripts/write-docs.js', '--check'])).resolves.toBeDefined()
  })
})
