import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { ContentStore } from '../../src/contents/types.ts'
import { HttpError } from '../../src/core/errors.ts'
import { type ContentLedger, createBesideContents } from '../../src/stores/sql/beside.ts'
import { type ChunkSink, createIntakeFactory } from '../../src/stores/sql/intake.ts'

const refuse = () => Promise.reject(new HttpError(503, 'ERR_UNAVAILABLE'))

/** Takes content in, of which more than ten bytes go into a content store. */
function createStage(ledger: Partial<ContentLedger>, contents: Partial<ContentStore>) {
  const sound = { readIdentity: () => '0123456789abcdef', begin: () => 1, abandon: () => undefined }
  const beside = createBesideContents(contents as ContentStore, { ...sound, ...ledger } as ContentLedger, 60_000)
  return createIntakeFactory({} as ChunkSink, { inlineLimit: 10, batchSize: 65_536, beside }).stage
}

describe('content that goes into a content store', () => {
  it.each<[string, Partial<ContentLedger>, Partial<ContentStore>]>([
    ['the identity of the database cannot be read', { readIdentity: refuse }, {}],
    ['the database refuses its row', { begin: refuse }, {}],
    ['the content store refuses it before it has read any of it', {}, { put: refuse }],
  ])('has its source closed when %s', async (_, ledger, contents) => {
    for (const signal of [undefined, new AbortController().signal]) {
      const source = new PassThrough()
      source.write(Buffer.alloc(100))
      await expect(createStage(ledger, contents)(source, signal)).rejects.toMatchObject({ status: 503 })
      await expect.poll(() => source.destroyed).toBe(true)
    }
  })
})

describe('the sweep of a content store', () => {
  it('fails with the removal that failed, and removes the other contents and their rows', async () => {
    const forgotten: unknown[] = []
    const ledger: Partial<ContentLedger> = {
      claim: () => [1, 2, 3].map((id) => ({ id, key: `key ${id}` })),
      forget: (id) => void forgotten.push(id),
    }
    const remove = (key: string) => (key === 'key 2' ? refuse() : Promise.resolve())
    const beside = createBesideContents({ remove } as unknown as ContentStore, ledger as ContentLedger, 60_000)
    await expect(beside.sweep()).rejects.toMatchObject({ status: 503 })
    expect(forgotten).toEqual([1, 3])
  })
})
