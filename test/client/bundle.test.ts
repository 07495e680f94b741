import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { type Browser, chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type * as Client from '../../src/client.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { findProgram } from '../real/programs.ts'
import { resources } from './resources.ts'

/** A bundle of everything that the client exports, as a page loads it. */
async function bundle() {
  const { outputFiles, metafile, warnings } = await build({
    entryPoints: ['src/client.ts'],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    write: false,
    metafile: true,
    outfile: 'client.js',
    logLevel: 'silent',
  })
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports.map(({ path }) => path))
  return {
    code: outputFiles.find(({ path }) => path.endsWith('.js'))!.text,
    inputs: Object.keys(metafile.inputs),
    imports,
    warnings,
  }
}

describe('the client in a bundle', () => {
  it('has at most 8 kB, gzipped (issue 21: the client)', async () => {
    const { code } = await bundle()
    expect(gzipSync(code, { level: 9 }).length).toBeLessThanOrEqual(8_000)
  })

  it('holds nothing of the server, and imports nothing', async () => {
    const { inputs, imports } = await bundle()
    expect(imports).toEqual([])
    const own = inputs.filter((file) => file.startsWith('src/') && !file.startsWith('src/client'))
    expect(own).toEqual(['src/core/json.ts'])
  })
})

const PAGE = `<!doctype html><title>a</title>
<script type="module">import * as client from '/client.js'; globalThis.client = client</script>`
const executablePath = findProgram('chromium', 'chromium-browser', 'google-chrome')

describe.runIf(executablePath !== undefined)('the client in Chromium', () => {
  let browser: Browser
  let server: Server
  let origin: string

  beforeAll(async () => {
    const { code } = await bundle()
    const service = createResourceService(memoryStore(), { resources })
    server = createServer((req, res) => {
      if (req.url === '/') return void res.setHeader('Content-Type', 'text/html').end(PAGE)
      if (req.url === '/files/moved')
        return void req.resume().on('end', () => res.writeHead(303, { Location: '/' }).end())
      if (req.url !== '/client.js') return void service(req, res)
      return void res.setHeader('Content-Type', 'text/javascript').end(code)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    // Unlike a page at 127.0.0.1, one of http at a name is not a secure context.
    const args = ['--no-sandbox', '--host-resolver-rules=MAP intranet.test 127.0.0.1']
    browser = await chromium.launch({ executablePath: executablePath!, args })
  })

  afterAll(async () => {
    await browser.close()
    server.closeAllConnections()
    server.close()
  })

  it('edits, reads again with its tag, lists, and uploads with progress, below a relative base', async () => {
    const page = await browser.newPage()
    await page.goto(origin)
    await page.waitForFunction('globalThis.client')
    const seen = await page.evaluate(async () => {
      const { createResourceClient, expectSuccess } = (globalThis as unknown as { client: typeof Client }).client
      const client = createResourceClient('/')
      expectSuccess(await client.create('/users', { name: 'Ada' }))
      const edited = expectSuccess(await client.edit('/users/1', (user) => ({ ...(user as object), name: 'Grace' })))
      const again = expectSuccess(await client.read('/users/1'))
      const names: unknown[] = []
      for await (const item of client.list('/users')) names.push((item as { name: unknown }).name)
      const sent: [number, number][] = []
      const content = new Blob([new Uint8Array(3_000_000)])
      const upload = await client.upload('/files/a', 'absent', content, {
        onProgress: (...state) => void sent.push(state),
      })
      const { file } = expectSuccess(await client.download('/files/a'))
      const { size } = await file.blob()
      return { edited: edited.document.value, again: again.document.value, names, sent, upload: upload.status, size }
    })
    expect(seen).toMatchObject({
      edited: { id: 1, name: 'Grace', role: 'member' },
      again: { id: 1, name: 'Grace', role: 'member' },
      names: ['Grace'],
      upload: 201,
      size: 3_000_000,
    })
    expect(seen.sent.at(-1)).toEqual([3_000_000, 3_000_000])
    expect(seen.sent.length).toBeGreaterThan(1)
    await page.close()
  })

  it('creates on a page of http, where browsers have no randomUUID', async () => {
    const page = await browser.newPage()
    await page.goto(origin.replace('127.0.0.1', 'intranet.test'))
    await page.waitForFunction('globalThis.client')
    const seen = await page.evaluate(async () => {
      const { client, isSecureContext } = globalThis as unknown as { client: typeof Client; isSecureContext: boolean }
      const { status } = await client.createResourceClient('/').create('/users', { name: 'Ada' })
      return { isSecureContext, status }
    })
    expect(seen).toEqual({ isSecureContext: false, status: 201 })
    await page.close()
  })

  it('does not take the page that an upload was redirected to for its success (RFC 9110 §15.4.4)', async () => {
    const page = await browser.newPage()
    await page.goto(origin)
    await page.waitForFunction('globalThis.client')
    const seen = await page.evaluate(async () => {
      const { createResourceClient } = (globalThis as unknown as { client: typeof Client }).client
      const client = createResourceClient('/')
      const uploads = [{}, { onProgress: () => undefined }].map((options) =>
        client.upload('/files/moved', 'any', new Blob(['text']), options).then(
          () => 'success',
          (error: Error) => error.message,
        ),
      )
      return Promise.all(uploads)
    })
    expect(seen).toEqual([expect.stringContaining('redirected'), expect.stringContaining('redirected')])
    await page.close()
  })
})
