import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createResourceService, type ResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type RunningHost, runServer } from '../support/hosts.ts'
import { findProgram, run } from './programs.ts'

const [sh, curl, openssl] = [findProgram('sh'), findProgram('curl'), findProgram('openssl')]

/** The shell commands of a page, as they are printed. */
const recipesOf = (page: string): string[] =>
  [...readFileSync(page, 'utf8').matchAll(/^```sh\n(.*?)^```/gms)].map(([, text]) => text!)
const [retry, digest, put] = recipesOf('docs/exactly-once.md') as [string, string, string]

let host: RunningHost
let service: ResourceService
let folder: string
const store = memoryStore()
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'recipes-'))
  service = createResourceService(store, {
    resources: {
      '/orders': collection({ ids: 'string', clientIds: true, idempotency: 'optional' }),
    },
  })
  // The first connection is lost after its request has been carried out.
  let isFirst = true
  host = await runServer(
    createServer((req, res) => {
      if (isFirst && req.method === 'POST') {
        isFirst = false
        res.writeHead = () => res
        res.write = () => true
        res.end = () => res.destroy()
      }
      return service(req, res)
    }),
  )
})
afterAll(async () => {
  await host.close()
  await service.close()
  rmSync(folder, { recursive: true, force: true })
})

const perform = async (recipe: string): Promise<string> => {
  const text = recipe.replaceAll('https://host.example', `http://127.0.0.1:${host.port}`)
  const { stdout, stderr } = await run(sh!, ['-e', '-c', text], { cwd: folder })
  return stdout === '' ? stderr : stdout
}
const countOrders = async (): Promise<number> => (await store.list('/orders', { limit: 9 })).items.length

describe.runIf(sh && curl && openssl)('the recipes of the documentation', () => {
  it('have curl repeat a request whose response is lost, with one creation', async () => {
    const answer = await perform(retry)
    expect(answer).toMatch(/^HTTP\/1\.1 201 /m)
    expect(answer).toContain('Idempotency-Replayed: ?1')
    expect(await countOrders()).toBe(1)
  })

  it('have the body of a request with a key verified', async () => {
    expect(await perform(digest)).toMatch(/^HTTP\/1\.1 201 /m)
    expect(await perform(digest.replace('base64)', 'base64 | tr a-y b-z)'))).toMatch(/^HTTP\/1\.1 400 /m)
    expect(await countOrders()).toBe(2)
  })

  it('create once by PUT with If-None-Match: *, without a key', async () => {
    expect([await perform(put), await perform(put)]).toEqual([
      expect.stringMatching(/^HTTP\/1\.1 201 /),
      expect.stringMatching(/^HTTP\/1\.1 412 /),
    ])
    expect(await countOrders()).toBe(3)
  })
})
