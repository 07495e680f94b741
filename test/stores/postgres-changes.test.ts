import { expect, it } from 'vitest'
import { createPostgresChanges, type PostgresSteps } from '../../src/stores/postgres/changes.ts'

it('gives a creation up whose reason to fail vanishes at every attempt', async () => {
  let attempts = 0
  const steps = {
    put: async () => {
      attempts++
      return { unexpected: '/parents/1', isMissing: true }
    },
    explain: async () => undefined,
  } as unknown as PostgresSteps
  const names = { take: async () => String(attempts) }
  const changes = createPostgresChanges({} as never, steps, names as never, {} as never)
  const draft = (name: string) => ({ name, content: { contentType: 'text/plain', body: '' }, related: [] })
  const creation = changes.create(
    { collection: '/a', requires: '/parents/1', draft } as never,
    draft('0') as never,
    () => [],
    {},
  )
  await expect(creation).rejects.toMatchObject({ status: 503 })
  expect(attempts).toBe(10)
})
