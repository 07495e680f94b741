// Installs the packed library into an empty project, as a user would, and compiles users' programs there with the oldest
// and the newest TypeScript: one of a server, the type tests of the client, and one made of the OpenAPI document of the
// demo. dist/ must be built.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore } from 'http-resource-service'
import { openapi } from 'http-resource-service/openapi'
import openapiTS, { astToString } from 'openapi-typescript'
import { createDemo } from '../examples/demo/service.js'

const folder = mkdtempSync(join(tmpdir(), 'consumer-'))
const { name, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
const run = (command, ...args) => execFileSync(command, args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })

/** What docs/recipes/commonjs.md says: Node requires the package, and Jest imports it. */
function checkCommonJs() {
  const use = 'createResourceService(memoryStore())'
  writeFileSync(
    join(folder, 'required.cjs'),
    `const { createResourceService, memoryStore } = require('${name}'); ${use}`,
  )
  run(process.execPath, 'required.cjs')
  console.log('can be required')
  const load = `const { createResourceService, memoryStore } = await import('${name}')`
  writeFileSync(join(folder, 'dynamic.test.cjs'), `test('loads', async () => { ${load}; ${use} })`)
  writeFileSync(
    join(folder, 'static.test.mjs'),
    `import { createResourceService, memoryStore } from '${name}'; test('loads', () => { ${use} })`,
  )
  run('npm', 'install', '--no-audit', '--no-fund', '--silent', '--no-save', 'jest@30')
  const env = { ...process.env, NODE_OPTIONS: '--experimental-vm-modules' }
  execFileSync('npx', ['jest', '--testMatch', '**/*.test.?js'], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  console.log('can be tested with Jest')
}

/** A program of CommonJS, as docs/recipes/commonjs.md has it. */
function checkCommonJsTypes(version) {
  const program = `import { createResourceService, memoryStore } from '${name}'\ncreateResourceService(memoryStore())\n`
  for (const file of ['program.cts', 'program.mts']) writeFileSync(join(folder, file), program)
  const common = ['tsc', '--noEmit', '--target', 'es2022', '--skipLibCheck', '--types', 'node', '--ignoreConfig']
  const args = version.startsWith('5.') ? common.slice(0, -1) : common
  run('npx', ...args, '--module', 'node20', 'program.cts')
  run('npx', ...args, '--module', 'node16', 'program.mts')
  console.log(`compiles as CommonJS with TypeScript ${version}`)
}

/** The type tests of the client, importing the package. */
function copyClientTypes() {
  for (const [file, from] of [
    ['client-types.ts', 'test/types/client.test-d.ts'],
    ['equal.ts', 'test/types/equal.ts'],
    ['resources.ts', 'test/client/resources.ts'],
  ]) {
    const text = readFileSync(from, 'utf8')
      .replace("'../../src/client.ts'", `'${name}/client'`)
      .replace("'../../src/service/resource-definitions.ts'", `'${name}'`)
      .replace("'../../src/service/collection-options.ts'", `'${name}'`)
      .replace("'../client/resources.ts'", "'./resources.ts'")
    writeFileSync(join(folder, file), text)
  }
}

/** The types that openapi-typescript makes of the demo's description, and calls of openapi-fetch that use them. */
async function writeOpenApiTypes() {
  const service = createDemo(memoryStore(), { secret: 'a', user: 'a', password: 'a', origins: [] })
  const nodes = await openapiTS(JSON.stringify(openapi(service, { info: { title: 'Demo', version: '1.0.0' } })))
  await service.close()
  writeFileSync(join(folder, 'demo.ts'), astToString(nodes))
  cpSync('test/consumer/openapi-calls.ts', join(folder, 'openapi-calls.ts'))
}

try {
  const [{ filename }] = JSON.parse(
    execFileSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], { encoding: 'utf8' }),
  )
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  cpSync('test/consumer/index.ts', join(folder, 'index.ts'))
  copyClientTypes()
  await writeOpenApiTypes()
  const types = ['@types/node@20', '@types/express@5', '@types/koa@2', '@types/pg@8', '@types/better-sqlite3@7']
  const hosts = ['express@5', 'koa@3', 'fastify@5', 'hono@4', 'pg@8', 'libsql@0.5']
  const tools = ['zod', 'openapi-fetch'].map((tool) => `${tool}@${devDependencies[tool]}`)
  run('npm', 'install', '--no-audit', '--no-fund', '--silent', `./${filename}`, ...types, ...hosts, ...tools)
  checkCommonJs()
  for (const version of ['5.9.3', '7.0.2']) {
    run('npm', 'install', '--no-audit', '--no-fund', '--silent', '--no-save', `typescript@${version}`)
    checkCommonJsTypes(version)
    for (const [module, resolution] of [
      ['nodenext', 'nodenext'],
      ['esnext', 'bundler'],
    ]) {
      const config = {
        compilerOptions: {
          ...{ strict: true, noEmit: true, target: 'es2022', module, moduleResolution: resolution, types: ['node'] },
          // The client and openapi-fetch are for browsers too.
          ...{ lib: ['es2023', 'dom', 'dom.iterable'], allowImportingTsExtensions: true },
          ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: true },
        },
        files: ['index.ts', 'client-types.ts', 'openapi-calls.ts'],
      }
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
      try {
        run('npx', 'tsc', '-p', '.')
      } catch (error) {
        console.error(`TypeScript ${version}, ${resolution}:\n${error.stdout}`)
        process.exitCode = 1
        continue
      }
      console.log(`compiles with TypeScript ${version}, ${resolution}`)
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
