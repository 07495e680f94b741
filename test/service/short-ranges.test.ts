import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { fileContents } from '../../src/contents/file.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { hosts, startHost } from '../support/hosts.ts'
import { createDatabaseFile } from '../support/sqlite.ts'

const BLOCK = 64 * 1024
const BLOCKS = 300

/** The bytes of one block, unlike those of any other. */
function block(index: number): Buffer {
  const seed = createHash('sha256').update(String(index)).digest()
  return Buffer.alloc(BLOCK, seed)
}

async function* blocks(): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < BLOCKS; index++) yield block(index)
}

/** The header of a request for one block, or for a part of it. */
const rangeOf = (index: number, length = BLOCK) => `bytes=${index * BLOCK}-${index * BLOCK + length - 1}`

async function createFileStore(): Promise<ResourceStore> {
  const directory = await mkdtemp(join(tmpdir(), 'short-ranges-'))
  const file = await createDatabaseFile()
  const store = sqliteStore(file.open(), { contents: fileContents({ directory }) })
  closeAfterTest(() => rm(directory, { recursive: true, force: true }))
  closeAfterTest(() => file.remove())
  closeAfterTest(() => store.close?.())
  await store.write('/large', { contentType: 'application/octet-stream', body: blocks() }, { expect: 'any' })
  return store
}

async function serve(store: ResourceStore, kind: string) {
  const service = createResourceService(store, { onError: () => {} })
  const host = await startHost(kind, service)
  closeAfterTest(() => service.close())
  closeAfterTest(() => host.close())
  return host
}

describe('short ranges that are read into buffers which are used again', () => {
  it.each(Object.keys(hosts))('are right for clients that ask at the same time: %s', async (kind) => {
    const host = await serve(await createFileStore(), kind)
    const ask = async (index: number, length: number) => {
      const answer = await host.send({ path: '/large', headers: { Range: rangeOf(index, length) } })
      expect(answer.status).toBe(206)
      expect(answer.body.equals(block(index).subarray(0, length))).toBe(true)
    }
    for (let round = 0; round < 4; round++) {
      await Promise.all(
        Array.from({ length: 40 }, (_, n) => ask((round * 71 + n * 7) % BLOCKS, n % 3 === 0 ? 99 : BLOCK)),
      )
    }
  })

  it.each([
    ['plain', (port: number) => connect(port, '127.0.0.1')],
    ['https', (port: number) => connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })],
  ])('are right for a client that reads none of them until others have been answered: %s', async (kind, open) => {
    const host = await serve(await createFileStore(), kind)
    const silent = open(host.port)
    closeAfterTest(() => silent.destroy())
    const lines = (index: number) => `GET /large HTTP/1.1\r\nHost: localhost\r\nRange: ${rangeOf(index)}\r\n`
    for (let index = 0; index < BLOCKS; index++) {
      silent.write(`${lines(index)}${index === BLOCKS - 1 ? 'Connection: close\r\n' : ''}\r\n`)
    }
    await setTimeout(300)
    for (let index = 0; index < BLOCKS; index++) {
      const answer = await host.send({ path: '/large', headers: { Range: rangeOf(index) } })
      expect(answer.body.equals(block(index))).toBe(true)
    }
    const received: Buffer[] = []
    for await (const chunk of silent) received.push(chunk as Buffer)
    let rest = Buffer.concat(received)
    for (let index = 0; index < BLOCKS; index++) {
      const end = rest.indexOf('\r\n\r\n')
      expect(rest.subarray(0, end).toString()).toContain(`bytes ${index * BLOCK}-`)
      expect(rest.subarray(end + 4, end + 4 + BLOCK).equals(block(index))).toBe(true)
      rest = rest.subarray(end + 4 + BLOCK)
    }
    expect(rest).toHaveLength(0)
  })

  it('leave a buffer alone that a store may still fill after its read has failed', async () => {
    const store = await createFileStore()
    let late: Uint8Array | undefined
    const failing: ResourceStore = {
      ...store,
      async read(path, options) {
        const state = await store.read(path, options)
        if (state === undefined || 'removed' in state || typeof state.body === 'string') return state
        const { body } = state
        if (body instanceof Uint8Array || body.read === undefined) return state
        const read: typeof body.read = (first, last, options) => {
          if (late !== undefined) return body.read!(first, last, options)
          late = options?.buffer
          throw new Error('The read takes too long.')
        }
        return { ...state, body: { ...body, read } }
      },
    }
    const host = await serve(failing, 'plain')
    expect((await host.send({ path: '/large', headers: { Range: rangeOf(0) } })).status).toBe(500)
    expect(late).toBeInstanceOf(Uint8Array)
    const timer = setInterval(() => late!.fill(0), 0)
    closeAfterTest(() => clearInterval(timer))
    for (let index = 0; index < 40; index++) {
      const answer = await host.send({ path: '/large', headers: { Range: rangeOf(index) } })
      expect(answer.body.equals(block(index))).toBe(true)
    }
  })
})
