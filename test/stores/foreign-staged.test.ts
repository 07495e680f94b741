import { setTimeout } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { ownStores } from '../support/owned-stores.ts'
import { sqliteLibraries } from '../support/sqlite.ts'

async function* pass(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('x')
}

async function* fail(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('x')
  throw new Error('The source failed.')
}

describe.each(Object.entries(sqliteLibraries))(
  'a write with staged content that the store does not have, with %s',
  (_, library) => {
    const { createFile, openStore } = ownStores(library)

    it('reads no stream where it is of another store', async () => {
      const [store, other] = [openStore((await createFile()).open()), openStore((await createFile()).open())]
      const unhandled: unknown[] = []
      const note = (reason: unknown): void => void unhandled.push(reason)
      process.on('unhandledRejection', note)
      try {
        const contentType = 'text/plain'
        const related = [{ path: '/a/b', content: { contentType, body: await other.stage!(pass()) } }]
        const write = async () => store.write('/a', { contentType, body: fail() }, { expect: 'any', related })
        await expect(write()).rejects.toThrow('The staged content belongs to another store.')
        await setTimeout(20)
        expect(unhandled).toEqual([])
      } finally {
        process.off('unhandledRejection', note)
      }
    })

    it('is 503 where the sweep took it, and may be sent again', async () => {
      const file = await createFile()
      const handle = file.open()
      const store = openStore(handle, { inlineLimit: 0, grace: 0, sweepInterval: 1 })
      const body = await store.stage!(pass())
      const count = () => handle.prepare('SELECT 1 FROM resource_contents').all()
      await expect.poll(count, { interval: 1, timeout: 30_000 }).toEqual([])
      const write = async () => store.write('/a', { contentType: 'text/plain', body }, { expect: 'any' })
      await expect(write()).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '0' } })
    })
  },
)
