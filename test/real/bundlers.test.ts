import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import commonjs from '@rollup/plugin-commonjs'
import { nodeResolve } from '@rollup/plugin-node-resolve'
import { build as esbuild } from 'esbuild'
import { type Browser, chromium } from 'playwright-core'
import { type Plugin, rollup } from 'rollup'
import { build as viteBuild } from 'vite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mount } from '../../src/adapters/node.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { findProgram } from './programs.ts'

// Its declarations are those of a CommonJS module, which it is not.
const convertCommonJs = commonjs as unknown as () => Plugin

/** A bundle, and everything that the bundler had to say. */
interface Bundled {
  readonly code: string
  readonly warnings: readonly string[]
}

const bundlers: Readonly<Record<string, (entry: string) => Promise<Bundled>>> = {
  async esbuild(entry) {
    const result = await esbuild({
      ...{ entryPoints: [entry], bundle: true, write: false, format: 'iife', platform: 'browser', logLevel: 'silent' },
      absWorkingDir: resolve(entry, '..'),
    })
    return { code: result.outputFiles[0]!.text, warnings: result.warnings.map(({ text }) => text) }
  },

  async rollup(entry) {
    const warnings: string[] = []
    const bundle = await rollup({
      input: entry,
      plugins: [nodeResolve({ browser: true }), convertCommonJs()],
      onLog: (level, { message }) => void (level === 'warn' && warnings.push(message)),
    })
    const { output } = await bundle.generate({ format: 'iife' })
    await bundle.close()
    return { code: output[0].code, warnings }
  },

  async vite(entry) {
    const warnings: string[] = []
    const warn = (text: string): void => void warnings.push(text)
    const result = await viteBuild({
      root: resolve(entry, '..'),
      configFile: false,
      customLogger: {
        ...{ info() {}, warn, warnOnce: warn, error: warn, clearScreen() {} },
        ...{ hasErrorLogged: () => false, hasWarned: false },
      },
      build: { write: false, minify: false, lib: { entry, formats: ['iife'], name: 'page' } },
    })
    const [first] = Array.isArray(result) ? result : [result]
    if (first === undefined || !('output' in first)) throw new Error('vite watches instead of building.')
    return { code: first.output[0].code, warnings }
  },
}

/** A page's own script, as an application would have it. */
const PAGE = `
import { createPatch, createResourceClient, expectSuccess, ResponseError } from 'http-resource-service/client'

const client = createResourceClient('/api')
globalThis.outcome = (async () => {
  const { document } = expectSuccess(
    await client.edit('/users/1', (user) => ({ ...user, role: 'admin', name: 'Ada L.' })),
  )
  const refused = await client.read('/users/99').then(expectSuccess).catch((error) => error)
  const patch = createPatch({ a: [1, 2] }, { a: [1, 3] }, 'json')
  return [document.value, refused instanceof ResponseError, refused.status, patch.patch]
})()
`

describe('http-resource-service/client', () => {
  const executablePath = findProgram('chromium', 'chromium-browser', 'google-chrome')
  const bundles: Record<string, Bundled> = {}
  let folder: string
  let browser: Browser | undefined
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bundlers-'))
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(resolve('.'), join(folder, 'node_modules', 'http-resource-service'))
    const entry = join(folder, 'page.js')
    writeFileSync(entry, PAGE)
    for (const [name, bundle] of Object.entries(bundlers)) bundles[name] = await bundle(entry)
    if (executablePath === undefined) return
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--no-proxy-server'] })
  })
  afterAll(async () => {
    await browser?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it.each(Object.keys(bundlers))('is bundled for browsers by %s without a warning (issue "Package")', (name) => {
    const { code, warnings } = bundles[name]!
    expect(warnings).toEqual([])
    expect(code).not.toMatch(/\bnode:|\bBuffer\b|\brequire\(/)
  })

  it.runIf(executablePath !== undefined).each(Object.keys(bundlers))(
    'edits a document in a browser, as bundled by %s (issue "Package")',
    async (name) => {
      const service = createResourceService(memoryStore(), { resources: { '/users': collection() } })
      const api = mount('/api', service)
      const server = createServer((req, res) =>
        api(req, res, () => {
          const isScript = req.url === '/page.js'
          res.writeHead(200, { 'Content-Type': isScript ? 'text/javascript' : 'text/html' })
          res.end(isScript ? bundles[name]!.code : '<!doctype html><script src="/page.js"></script>')
        }),
      )
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
      const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const created = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"name":"Ada"}' }
      expect((await fetch(`${base}/api/users`, created)).status).toBe(201)
      const page = await browser!.newPage()
      await page.goto(base)
      expect(await page.evaluate('outcome')).toEqual([
        { id: 1, name: 'Ada L.', role: 'admin' },
        true,
        404,
        [{ op: 'replace', path: '/a/1', value: 3 }],
      ])
      await page.close()
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  )
})
