import { expect, it } from 'vitest'
import { type CollectionIndex, encodeValue } from '../../src/stores/lists.ts'
import type { QueryDialect } from '../../src/stores/sql/dialect.ts'
import { encodeEntry, KEY_COLUMNS, padEntry } from '../../src/stores/sql/queries/index-tables.ts'
import {
  type Answer,
  readAnswer,
  type Steps,
  type Window,
  type WindowRequest,
  writeMatch,
  writeWindow,
} from '../../src/stores/sql/queries/window.ts'
import { sortKeyOf } from '../../src/stores/sql/rows.ts'
import type { SqliteDatabase } from '../../src/stores/sqlite/handle.ts'
import { migrateSqlite } from '../../src/stores/sqlite/schema.ts'
import { sqliteLibraries } from '../support/sqlite.ts'
import { createWindowRunner, type WindowItem } from '../support/window-runner.ts'

const INDEX: CollectionIndex = {
  version: 'windows',
  properties: ['rank', 'owner'],
  scope: ['owner'],
  valuesOf: () => ({}),
}
const ITEMS = Array.from({ length: 40 }, (_, i): WindowItem => {
  const values = { rank: (i * 7) % 10, owner: i % 4 === 0 ? 'bob' : 'ann' }
  return { name: `m${i}`, values, hidden: i % 9 === 0 }
})
const DIALECT: QueryDialect = {
  entries: 'entries',
  useIndex: (name) => ` INDEXED BY ${name}`,
  placeholder: () => '?',
  readKey: (column) => column,
  readName: (column) => column,
}

function openEntries(): SqliteDatabase {
  const handle = sqliteLibraries['libsql']!(':memory:') as SqliteDatabase
  migrateSqlite(handle, '')
  const insert = handle.prepare(`INSERT INTO entries VALUES (?, ?, ${KEY_COLUMNS.map(() => '?').join(', ')})`)
  for (const { name, values, hidden } of ITEMS) {
    insert.run(hidden ? -1 : 1, sortKeyOf(`/${name}`), ...padEntry(encodeEntry(INDEX, values)))
  }
  return handle
}

const bound = (value: number, isOpen: boolean) => ({ key: encodeValue(value), isOpen })
const sortKey = sortKeyOf('/m12')
const ANN = encodeValue('ann')

const STRETCHES: readonly Partial<Window>[] = [
  { slot: undefined },
  { slot: undefined, after: { sortKey } },
  { equal: encodeValue(4) },
  { equal: encodeValue(4), after: { sortKey } },
  {},
  { after: { key: encodeValue(4), sortKey } },
  { low: bound(2, true), high: bound(7, false) },
  { low: bound(2, false), high: bound(7, true), direction: 'descending' },
]
const FILTERS: readonly Window['filters'][] = [
  [],
  [{ slot: 2, any: [ANN] }],
  [
    { slot: 1, none: [encodeValue(5)] },
    { slot: 2, low: { key: encodeValue('b'), isOpen: true } },
  ],
]

it('The statement of a window finds what the description of windows says', () => {
  const handle = openEntries()
  const { run } = createWindowRunner(INDEX, ITEMS)
  function* ask(request: WindowRequest): Steps<Answer> {
    return yield request
  }
  for (const stretch of STRETCHES) {
    for (const filters of FILTERS) {
      for (const scope of [undefined, ANN]) {
        for (const [place, most, limit] of [
          [1, 3, 2],
          [1, 6, 6],
          [-1, 3, 9],
          [1, 99, 2],
        ] as const) {
          const base: Window = { place, scope, slot: 1, direction: 'ascending', filters, columns: [2, 1], most, limit }
          for (const kind of ['rows', 'edge', 'count'] as const) {
            const request = { kind, window: { ...base, ...stretch } }
            const { text, values } = writeWindow(request.window, kind, DIALECT)
            const rows = handle.prepare(text).all(...values) as Record<string, unknown>[]
            const found = readAnswer(request, rows)
            const plain = (answer: Answer) =>
              typeof answer === 'number'
                ? answer
                : answer.map(({ keys, sortKey }) => [...keys.map((key) => Buffer.from(key).toString('hex')), sortKey])
            expect(plain(found), text).toEqual(plain(run(ask(request))))
          }
        }
      }
    }
  }
})

it('A member of another scope meets no conditions, whatever its name', () => {
  const handle = openEntries()
  const isThere = (scope: string, name: string): boolean => {
    const target = { place: 1, scope: encodeValue(scope), filters: [{ slot: 1, any: [encodeValue(7)] }] }
    const { text, values } = writeMatch(target, sortKeyOf(`/${name}`), DIALECT)
    return handle.prepare(text).get(...values) !== undefined
  }
  expect([isThere('ann', 'm1'), isThere('bob', 'm1'), isThere('ann', 'm2')]).toEqual([true, false, false])
})
