import { expect, it, vi } from 'vitest'
import { createPostgresChanges } from '../../src/stores/postgres/changes.ts'

it('gives a creation up whose reason to fail vanishes at every attempt', async () => {
  let attempts = 0
  const states = {
    // The related path is there when it is written, and gone when it is looked at.
    put: async () => void attempts++,
    readRow: async () => undefined,
    toFoundState: () => undefined,
  }
  const connection = { transact: (work: () => unknown) => work() }
  const names = { take: async () => String(attempts) }
  const [indexes, open] = [{ prepare: async () => {} }, () => {}]
  const content = { contentType: 'text/plain', body: '' }
  const related = ['/b', '/c'].map((path) => ({ path, content, expect: 'absent' }))
  const draft = (name: string) => ({ name, content, related, contents: [] })
  const taken = [0, 1, 2].map(() => ({ size: 0, body: '', id: undefined }))
  const parts: unknown = [connection, states, names, indexes, open, () => '1']
  const changes = createPostgresChanges(...(parts as Parameters<typeof createPostgresChanges>))
  const creation = changes.create({ collection: '/a', draft } as never, draft('0') as never, () => taken, {})
  await expect(creation).rejects.toMatchObject({ status: 503 })
  expect(attempts).toBe(10)
})

it('gives a creation up whose row a trigger of the database drops', async () => {
  let attempts = 0
  const create = async () => {
    if (++attempts > 20) throw new Error('There is no end.')
  }
  const states = { create, readRow: async () => undefined }
  const names = { take: async () => String(attempts) }
  const content = { contentType: 'text/plain', body: '' }
  const draft = (name: string) => ({ name, content, related: [], contents: [] })
  const taken = [{ size: 0, body: '', id: undefined }]
  const parts: unknown = [{}, states, names, { prepare: async () => {} }, () => {}, () => '1']
  const changes = createPostgresChanges(...(parts as Parameters<typeof createPostgresChanges>))
  const creation = changes.create({ collection: '/a', draft } as never, undefined, () => taken, {})
  await expect(creation).rejects.toMatchObject({ status: 503 })
  expect(attempts).toBe(10)
})

it.each([
  ['/b/x', 1],
  ['/b/7', 0],
])('writes what goes with a creation at once where it raises no counter: %s', async (path, count) => {
  const written = { outcome: 'created', resource: {} }
  const createBeside = vi.fn(async () => written)
  const states = { createBeside, put: async () => written }
  const connection = { transact: (work: () => unknown) => work() }
  const content = { contentType: 'text/plain', body: '' }
  const related = [{ path, content, expect: 'absent' }]
  const draft = (name: string) => ({ name, content, related, contents: [] })
  const taken = [0, 1].map(() => ({ size: 0, body: '', id: undefined }))
  const parts: unknown = [connection, states, {}, { prepare: async () => {} }, () => {}, () => '1']
  const changes = createPostgresChanges(...(parts as Parameters<typeof createPostgresChanges>))
  await changes.create({ collection: '/a', draft } as never, draft('0') as never, () => taken, {})
  expect(createBeside).toHaveBeenCalledTimes(count)
})
