import type pg from 'pg'
import { expect } from 'vitest'
import type { SqliteHandle } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { indexByStatus, listWhenIndexed, namesOf, queryByStatus, readItem } from './statuses.ts'

/** Members without an entry, and entries without a member, at places whose walk is over. Takes no parameters. */
export function disagreements(prefix: string): Readonly<Record<string, string>> {
  const [states, entries, places, pending] = ['states', 'entries', 'places', 'pending'].map((name) => prefix + name)
  const member = 's.collection = p.collection AND s.state < 2'
  const side = 'CASE s.state WHEN 0 THEN p.id ELSE -p.id END'
  const entry = `EXISTS (SELECT 1 FROM ${entries} AS e WHERE e.place = ${side} AND e.sort_key = s.sort_key)`
  const waiting = `EXISTS (SELECT 1 FROM ${pending} AS w WHERE w.place = p.id AND w.sort_key = s.sort_key)`
  return {
    'members without an entry':
      `SELECT s.path AS what FROM ${places} AS p JOIN ${states} AS s ON ${member} ` +
      `WHERE p.phase = 2 AND NOT ${entry} AND NOT ${waiting}`,
    'members with an entry that wait for one':
      `SELECT s.path AS what FROM ${places} AS p JOIN ${states} AS s ON ${member} ` +
      `WHERE p.phase = 2 AND ${entry} AND ${waiting}`,
    'entries without a member':
      `SELECT e.sort_key AS what FROM ${entries} AS e WHERE NOT EXISTS (SELECT 1 FROM ${places} AS p JOIN ${states} AS s ` +
      `ON ${member} WHERE s.sort_key = e.sort_key AND e.place = ${side})`,
    'members that wait and are gone':
      `SELECT w.sort_key AS what FROM ${pending} AS w WHERE NOT EXISTS (SELECT 1 FROM ${places} AS p JOIN ${states} AS s ` +
      `ON ${member} WHERE s.sort_key = w.sort_key AND w.place = p.id)`,
  }
}

/** Checks that each member has its entry and each entry its member. */
export function checkSqliteEntries(handle: SqliteHandle, prefix = 'resource_'): void {
  for (const [name, sql] of Object.entries(disagreements(prefix))) {
    expect(
      (handle.prepare(sql).all() as { what: string }[]).map(({ what }) => what),
      name,
    ).toEqual([])
  }
}

/** The same in Postgres. */
export async function checkPostgresEntries(pool: pg.Pool, prefix: string): Promise<void> {
  for (const [name, sql] of Object.entries(disagreements(prefix))) {
    const { rows } = await pool.query(sql)
    expect(
      rows.map(({ what }) => String(what)),
      name,
    ).toEqual([])
  }
}

/** Checks that queries find what a look at each item finds. */
export async function checkStatuses(store: ResourceStore, version: string): Promise<void> {
  const { items } = await store.list('/tasks', { limit: 100_000 })
  for (const status of ['open', 'done', 'late']) {
    const members = items.map((item) => ({ ...readItem(item), path: item.path }))
    const expected = members.filter((item) => item.status === status).sort((a, b) => b.n! - a.n!)
    const page = await listWhenIndexed(store, '/tasks', queryByStatus(status, indexByStatus(version)), 100_000)
    // Items with equal numbers follow each other by name, which is for other tests.
    expect(page.items.map((item) => readItem(item).n)).toEqual(expected.map(({ n }) => n))
    expect(namesOf(page).sort()).toEqual(expected.map(({ path }) => path.slice('/tasks/'.length)).sort())
    expect(page.total).toBe(expected.length)
  }
}
