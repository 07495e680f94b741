import { afterEach, describe, expect, it, vi } from 'vitest'
import type { PostgresConnection } from '../../src/stores/postgres/connection.ts'
import { createNameSource } from '../../src/stores/postgres/names.ts'
import type { PostgresStatements } from '../../src/stores/postgres/statements.ts'
import { KEPT_AFTER_EXPIRY } from '../../src/stores/sql/rows.ts'

afterEach(() => {
  vi.useRealTimers()
})

describe('the names of a collection in Postgres', () => {
  it('are assigned from a block only while a name of it that a client has erased is remembered', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const leased: unknown[] = []
    let next = 1
    const run = async (_: unknown, [, count]: readonly unknown[]) => {
      leased.push(count)
      next += count as number
      return [{ next }]
    }
    const { take } = createNameSource({ run } as unknown as PostgresConnection, {} as PostgresStatements, 10)
    expect([await take('/a'), await take('/a'), await take('/a')]).toEqual(['1', '2', '3'])
    expect(leased).toEqual([1, 4])
    vi.advanceTimersByTime(KEPT_AFTER_EXPIRY / 3 - 1)
    expect(await take('/a')).toBe('4')
    vi.advanceTimersByTime(1)
    // The database has `5` in the block of before.
    expect(await take('/a')).toBe('6')
    expect(leased).toEqual([1, 4, 1])
  })

  it('are known of 10 000 collections at most', () => {
    const { learn, raiseFor } = createNameSource({} as PostgresConnection, {} as PostgresStatements, 10)
    for (let i = 0; i < 10_000; i++) learn(`/${i}`, 100)
    expect([raiseFor('/0', 50), raiseFor('/1', 50)]).toEqual([undefined, undefined])
    learn('/more', 100)
    expect([raiseFor('/1', 50), raiseFor('/0', 50)]).toEqual([undefined, expect.any(Number)])
  })
})
