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
  'a write with staged content of another store, with %s',
  (_, library) => {
    const { createFile, openStore } = ownStores(library)

    it('reads no stream', async () => {
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
  },
)
