import { setImmediate as nextTurn } from 'node:timers/promises'
import Libsql from 'libsql'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createBytes, stream } from '../../src/conformance/samples.ts'
import type { ContentStore } from '../../src/contents/types.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { memoryContents } from '../contents/mutants.ts'
import { listKeys } from '../support/contents.ts'
import { startPostgres } from '../support/postgres.ts'

interface Opened {
  readonly store: ResourceStore
  close(): Promise<void>
}

const options = { inlineLimit: 10, grace: 100, sweepInterval: 20 }
const openers: Readonly<Record<string, (contents: ContentStore) => Promise<Opened>>> = {
  async sqliteStore(contents) {
    const handle = new Libsql(':memory:')
    const store = sqliteStore(handle, { ...options, contents })
    return {
      store,
      async close() {
        await store.close?.()
        handle.close()
      },
    }
  },
  async postgresStore(contents) {
    const server = await startPostgres()
    const store = postgresStore({ pool: server.createPool({ max: 2 }), ...options, contents })
    return {
      store,
      async close() {
        await store.close?.()
        await server.stop()
      },
    }
  },
}

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** Writes content, all of one path. */
async function write(store: ResourceStore, count: number): Promise<void> {
  for (let written = 0; written < count; ) {
    try {
      await store.write('/a', { contentType: 'text/plain', body: 'x'.repeat(100) }, { expect: 'any' })
      written++
    } catch (error) {
      // On a busy machine a write takes longer than `grace` now and then: its content is swept away.
      if ((error as { status?: unknown }).status !== 503) throw error
    }
  }
}

describe.each(Object.entries(openers))('%s, content that cannot be removed', (_, open) => {
  it('keeps no other content from being removed, neither released after it nor with it', async () => {
    const contents = memoryContents()
    let isStuck = (_key: string): boolean => true
    const { store, close } = await open({
      ...contents,
      async remove(key) {
        if (isStuck(key)) throw new Error('The object is locked.')
        await contents.remove(key)
      },
      async *list() {
        for await (const one of contents.list()) yield { ...one, age: 1000 }
      },
    })
    closers.push(close)
    const countRemovable = async () => (await listKeys(contents)).filter((key) => !isStuck(key)).length
    /** All but the one that is shown. */
    const untilRemoved = () => expect.poll(countRemovable).toBe(1)

    // More than a step of the sweep takes.
    await write(store, 31)
    const stuck = (await listKeys(contents)).slice(0, 30)
    await new Promise((resolve) => setTimeout(resolve, 300))
    await write(store, 20)
    isStuck = (key) => stuck.includes(key)
    await untilRemoved()
    stuck.splice(-5)
    await untilRemoved()
    expect(await listKeys(contents)).toHaveLength(26)
    // Content without a row, as the restore of a backup leaves it.
    const orphan = `${stuck[0]!.slice(0, 16)}${'0'.repeat(32)}`
    await contents.put(orphan, stream(createBytes(100, 1), 100))
    await untilRemoved()
  })

  it('is tried again 64 at a time: content that many clients replace would outrun smaller steps', async () => {
    const contents = memoryContents()
    const refused = new Set<string>()
    let isStuck = true
    let together = 0
    let most = 0
    const { store, close } = await open({
      ...contents,
      async remove(key) {
        if (isStuck) {
          refused.add(key)
          throw new Error('The object is locked.')
        }
        most = Math.max(most, ++together)
        await nextTurn()
        together--
        await contents.remove(key)
      },
    })
    closers.push(close)
    await write(store, 66)
    await vi.waitFor(() => expect(refused.size).toBeGreaterThan(64), 30_000)
    isStuck = false
    await vi.waitFor(async () => expect(await listKeys(contents)).toHaveLength(1), 30_000)
    expect(most).toBe(64)
  })
})
