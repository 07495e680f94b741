import { expect, it } from 'vitest'
import type { PostgresConnection, PostgresValue, RunStatement } from '../../src/stores/postgres/connection.ts'
import { createPostgresContents, type PostgresContents } from '../../src/stores/postgres/contents.ts'
import type { NameSource } from '../../src/stores/postgres/names.ts'
import type { PostgresStatements } from '../../src/stores/postgres/statements.ts'
import { createPostgresStates } from '../../src/stores/postgres/states.ts'
import type { SqlShared } from '../../src/stores/sql/dialect.ts'

/** Each statement is its own name. */
const statements = new Proxy({}, { get: (_, name) => name }) as PostgresStatements
const GRACE = 1000

/** States over a database that gives one row for each change, and the statements that it was sent. */
function openStates(row: object, grace: number) {
  const sent: [string, readonly PostgresValue[]][] = []
  const run = (async (statement: unknown, values: PostgresValue[]) => {
    sent.push([String(statement), values])
    return [row]
  }) as RunStatement
  const states = createPostgresStates(
    {} as PostgresConnection,
    statements,
    {} as PostgresContents,
    {} as NameSource,
    { settings: { grace }, nextVersion: () => 'v' } as unknown as SqlShared,
  )
  return { states, run, sent }
}

const drop = { mode: 'tombstone', expect: 'any', retention: 1, reach: 'live' } as const

it.each([
  [1.5, 1],
  [Number.POSITIVE_INFINITY, 2 ** 52],
  [2 ** 60, 2 ** 52],
])(
  'a tombstone, and content that is replaced, is kept for %d ms as a number of them that Postgres can count',
  async (time, kept) => {
    const { states, run, sent } = openStates({}, time)
    await states.drop(run, '/docs/1', { ...drop, retention: time })
    expect(sent[0]![1].slice(4)).toEqual([kept, kept])
    const connection = { run } as unknown as PostgresConnection
    const shared = { settings: { grace: time }, nextVersion: () => 'v' } as unknown as SqlShared
    await createPostgresContents(connection, statements, shared).begin()
    expect(sent[1]).toEqual(['beginContent', ['v', kept]])
  },
)

it('chunks that are given up are swept soon', async () => {
  let sweeps = 0
  const contents = createPostgresContents({ run: async () => [] } as unknown as PostgresConnection, statements, {
    owner: 'postgresStore',
    settings: { grace: GRACE },
    sweepSoon: () => sweeps++,
  } as unknown as SqlShared)
  await contents.abandon('chunks')
  expect(sweeps).toBe(1)
})

it.each([
  ['stays where a path shows it', [], []],
  ['goes with its row where none does', [{ id: '.key' }], ['key']],
])('content in a content store that is given up %s', async (_, rows, expected) => {
  const removed: string[] = []
  const shared = {
    owner: 'postgresStore',
    settings: { grace: GRACE, contents: { remove: async (key: string) => void removed.push(key) } },
  } as unknown as SqlShared
  await createPostgresContents({ run: async () => rows } as unknown as PostgresConnection, statements, shared).abandon(
    '.key',
  )
  expect(removed).toEqual(expected)
})
