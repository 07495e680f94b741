import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { startHost } from '../support/hosts.ts'
import { MEASURED } from '../support/measured.ts'
import { createDatabaseFile } from '../support/sqlite.ts'

/** More by hand: `UPLOAD_MIB=1024 npx vitest run test/stress/uploads.test.ts`. */
const MIB = Number(process.env['UPLOAD_MIB'] ?? 64)
const TIMEOUT = 600_000

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

async function sendUpload(port: number, mib: number): Promise<{ readonly status: number; readonly location: string }> {
  const script = fileURLToPath(new URL('./send-upload.mjs', import.meta.url))
  const client = spawn(process.execPath, [script, String(port), '/uploads', String(mib)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  client.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  await once(client, 'close')
  return JSON.parse(output)
}

/** The most that memory grows, in bytes, while something runs. */
async function measureGrowth(run: () => Promise<void>): Promise<number> {
  const before = process.memoryUsage().rss
  let peak = before
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss)
  }, 10)
  await run()
  clearInterval(timer)
  return peak - before
}

describe('a multipart upload', () => {
  it(`of ${MIB} MiB reaches the store whole, with memory growing by less than 64 MiB (row F11, threat 58)`, {
    ...MEASURED,
    timeout: TIMEOUT,
  }, async () => {
    const file = await createDatabaseFile()
    const store = sqliteStore(file.open())
    const service = createResourceService(store, {
      resources: { '/uploads': collection({ create: 'accepted', files: { file: { required: true } } }) },
    })
    const host = await startHost('plain', service)
    cleanups.push(async () => {
      await host.close()
      await service.close()
      await store.close?.()
      await file.remove()
    })
    await sendUpload(host.port, 8)
    let location = ''
    const growth = await measureGrowth(async () => {
      const answer = await sendUpload(host.port, MIB)
      expect(answer.status).toBe(202)
      location = answer.location
    })
    expect(growth).toBeLessThan(64 * 1024 * 1024)
    const { headers } = await host.send({ method: 'HEAD', path: `${location}/file` })
    expect(headers['content-length']).toBe(String(MIB * 1024 * 1024))
  })
})
