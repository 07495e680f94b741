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

  it('lapse by the time at which their lease began, however long the database took', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    let next = 1
    const run = async (_: unknown, [, count]: readonly unknown[]) => {
      vi.advanceTimersByTime(500)
      next += count as number
      return [{ next }]
    }
    const { take } = createNameSource({ run } as unknown as PostgresConnection, {} as PostgresStatements, 10)
    // The second comes so soon that it leases four.
    expect([await take('/a'), await take('/a')]).toEqual(['1', '2'])
    vi.advanceTimersByTime(KEPT_AFTER_EXPIRY / 3 - 501)
    expect(await take('/a')).toBe('3')
    vi.advanceTimersByTime(1)
    expect(await take('/a')).toBe('6')
  })

  it('are taken one by one where a block of them does not fit any more, and end with 507', async () => {
    let left = 2
    const run = async (_: unknown, [, count]: readonly unknown[]) => {
      if ((count as number) > left) return []
      left -= count as number
      return [{ next: 100 - left }]
    }
    const { take } = createNameSource({ run } as unknown as PostgresConnection, {} as PostgresStatements, 10)
    // The second comes so soon that four are asked for.
    expect([await take('/a'), await take('/a')]).toEqual(['98', '99'])
    await expect(take('/a')).rejects.toMatchObject({ status: 507 })
  })

  it('are waited for by so many calls as may wait, and no more', async () => {
    const run = async () => [{ next: 10 }]
    const { take } = createNameSource({ run } as unknown as PostgresConnection, {} as PostgresStatements, 2)
    const taken = await Promise.allSettled([take('/a'), take('/a'), take('/a')])
    expect(taken.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected'])
    expect(taken[2]).toMatchObject({ reason: { status: 503 } })
  })

  it('are raised above a name that a client writes, unless the counter is above it already', () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const { learn, raiseFor } = createNameSource({} as PostgresConnection, {} as PostgresStatements, 10)
    learn('/a', 50)
    // The answer to an earlier call may come later.
    learn('/a', 10)
    expect([raiseFor('/a', 49), raiseFor('/a', 50)]).toEqual([undefined, 51])
    // The steps grow, and the last name is the largest integer that is safe.
    expect(raiseFor('/a', 60)).toBe(64)
    expect(raiseFor('/a', Number.MAX_SAFE_INTEGER - 1)).toBe(Number.MAX_SAFE_INTEGER + 1)
  })

  it('are known of 10 000 collections at most', () => {
    const { learn, raiseFor } = createNameSource({} as PostgresConnection, {} as PostgresStatements, 10)
    for (let i = 0; i < 10_000; i++) learn(`/${i}`, 100)
    expect([raiseFor('/0', 50), raiseFor('/1', 50)]).toEqual([undefined, undefined])
    learn('/more', 100)
    expect([raiseFor('/1', 50), raiseFor('/0', 50)]).toEqual([undefined, expect.any(Number)])
  })
})
