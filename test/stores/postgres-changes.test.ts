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

it('knows the counters that a transaction has raised once it is committed, and not before', async () => {
  const learn = vi.fn()
  const put = async (_: unknown, path: string) => ({
    outcome: 'created',
    resource: { path },
    counter: { collection: path.slice(0, 2), next: 8 },
  })
  const states = { put, readRow: async () => undefined }
  let commit = async () => {}
  const transact = async (work: () => unknown) => {
    const result = await work()
    expect(learn).not.toHaveBeenCalled()
    await commit()
    return result
  }
  const parts: unknown = [{ transact }, states, { learn }, { prepare: async () => {} }, () => {}, () => '1']
  const changes = createPostgresChanges(...(parts as Parameters<typeof createPostgresChanges>))
  const content = { contentType: 'text/plain', body: '' }
  const related = [{ path: '/b/7', content }]
  const taken = [0, 1].map(() => ({ size: 0, body: '', id: undefined }))
  const write = () => changes.write({ path: '/a/7', content, expect: 'any', related } as never, taken as never, {})
  commit = async () => Promise.reject(new Error('lost'))
  await expect(write()).rejects.toThrow('lost')
  expect(learn).not.toHaveBeenCalled()
  commit = async () => {}
  await write()
  expect(learn.mock.calls).toEqual([
    ['/a', 8],
    ['/b', 8],
  ])
})
