import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, expect, it } from 'vitest'
import { createBytes } from '../../src/conformance/samples.ts'
import { fileContents } from '../../src/contents/file.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { listKeys } from '../support/contents.ts'
import { startHost } from '../support/hosts.ts'
import { createDatabaseFile } from '../support/sqlite.ts'

const run = promisify(execFile)
const FILES = 12
const SIZE = 8_000_000

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/**
 * What the REST protocol of restic has of its own, in front of a service without definitions: POST stores under the name
 * of the target, success is 200, and a list has names and sizes.
 */
async function startAdapter(port: number): Promise<string> {
  async function list(path: string): Promise<string> {
    const entries: { readonly name: string; readonly size: number }[] = []
    for (let next: string | undefined = path; next !== undefined; ) {
      const response: Response = await fetch(new URL(next, `http://127.0.0.1:${port}`))
      if (response.status === 404) break
      for (const { id, size } of (await response.json()) as { id: string; size: number }[]) {
        entries.push({ name: id, size })
      }
      next = /<([^>]+)>; rel="next"/.exec(response.headers.get('Link') ?? '')?.[1]
    }
    return JSON.stringify(entries)
  }

  const server = createServer((req, res) => {
    const { pathname, searchParams } = new URL(req.url!, 'http://adapter')
    if (searchParams.has('create')) return void res.end()
    if (req.method === 'GET' && pathname.endsWith('/')) {
      const type = { 'Content-Type': 'application/vnd.x.restic.rest.v2' }
      return void list(pathname.slice(0, -1)).then(
        (text) => res.writeHead(200, type).end(text),
        () => res.destroy(),
      )
    }
    const method = req.method === 'POST' ? 'PUT' : req.method
    const headers = { 'content-type': 'application/octet-stream', ...req.headers }
    const outer = request({ port, host: '127.0.0.1', method, path: pathname, headers }, (answer: IncomingMessage) => {
      const status = [201, 204].includes(answer.statusCode!) ? 200 : answer.statusCode!
      res.writeHead(status, answer.headers)
      answer.pipe(res)
    })
    outer.on('error', () => res.destroy())
    req.pipe(outer)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `rest:http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

it('keeps a repository of restic: backup, check --read-data, restore, forget and prune (issue 22)', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'restic-'))
  closers.push(() => rm(folder, { recursive: true, force: true }))
  const contents = fileContents({ directory: join(folder, 'contents') })
  const file = await createDatabaseFile()
  const store = sqliteStore(file.open(), { contents, inlineLimit: 10_000, grace: 500, sweepInterval: 100 })
  const service = createResourceService(store)
  const host = await startHost('plain', service)
  closers.push(
    () => file.remove(),
    () => store.close?.(),
    () => service.close(),
    () => host.close(),
  )
  const env = {
    ...process.env,
    RESTIC_REPOSITORY: await startAdapter(host.port),
    RESTIC_PASSWORD: 'secret',
    RESTIC_CACHE_DIR: join(folder, 'cache'),
  }
  const restic = async (...values: string[]) => (await run('restic', values, { env })).stdout

  const data = join(folder, 'data')
  await mkdir(data)
  const write = (index: number, seed: number) => writeFile(join(data, `${index}`), createBytes(SIZE, seed))
  for (let index = 0; index < FILES; index++) await write(index, index)
  await restic('init')
  await restic('backup', data)
  for (let index = 0; index < FILES; index += 2) await write(index, 100 + index)
  await restic('backup', data)
  expect(await restic('check', '--read-data')).toContain('no errors were found')
  const before = (await listKeys(contents)).length
  await restic('forget', '--keep-last', '1', '--prune')
  expect(await restic('check', '--read-data')).toContain('no errors were found')
  await restic('restore', 'latest', '--target', join(folder, 'restored'))
  for (let index = 0; index < FILES; index++) {
    const restored = await readFile(join(folder, 'restored', data, `${index}`))
    expect(restored.equals(createBytes(SIZE, index % 2 === 0 ? 100 + index : index))).toBe(true)
  }
  await expect.poll(async () => (await listKeys(contents)).length).toBeLessThan(before)
})
