import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { CollectionIndex, Condition, OrderKey } from '../../src/stores/lists.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { type SqliteHandle, sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { interceptQueries } from '../support/intercepted-pool.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { createDatabaseFile } from '../support/sqlite.ts'

/** A statement that a list has run, with its values. */
interface Statement {
  readonly text: string
  readonly values: unknown[]
}

const LIMIT = 180_000
/** More than the first window looks at, so that each way to find members is taken. */
const ITEMS = 1300

const index: CollectionIndex = {
  version: 'plans',
  properties: ['flag', 'n', 'owner', 'text'],
  scope: ['owner'],
  valuesOf: () => ({}),
}

async function fill(store: ResourceStore): Promise<void> {
  for (let from = 0; from < ITEMS; from += 100) {
    const writes = Array.from({ length: 100 }, (_, i) => {
      const n = from + i
      const values = { flag: n % 2 === 0, n: n % 7, owner: n < 20 ? 'few' : 'many', text: `text ${n}` }
      const content = { contentType: 'text/plain', body: 'x', indexed: { index, values } }
      return store.write(`/things/${n + 1}`, content, { expect: 'any' })
    })
    await Promise.all(writes)
  }
  await store.remove('/things/5', { expect: 'any', mode: 'hide' })
}

const conditions: readonly (readonly Condition[])[] = [
  [],
  [{ property: 'text', operator: 'in', values: ['text 7'] }],
  [{ property: 'text', operator: 'in', values: ['text 7', 'text 9', 'nothing'] }],
  [{ property: 'n', operator: 'in', values: [3] }],
  [{ property: 'n', operator: 'notIn', values: [3, 4] }],
  [{ property: 'n', operator: 'gt', value: 5 }],
  [{ property: 'n', operator: 'gte', value: 5 }],
  [{ property: 'n', operator: 'lt', value: 2 }],
  [{ property: 'n', operator: 'lte', value: 2 }],
  [{ property: 'text', operator: 'prefix', value: 'text 12' }],
  [{ property: 'text', operator: 'exists', value: true }],
  [{ property: 'text', operator: 'exists', value: false }],
  [
    { property: 'flag', operator: 'in', values: [true] },
    { property: 'n', operator: 'in', values: [100] },
  ],
  [
    { property: 'flag', operator: 'in', values: [true] },
    { property: 'text', operator: 'gt', value: 'text 99' },
    { property: 'n', operator: 'notIn', values: [1] },
  ],
]
const up = (property: string): OrderKey => ({ property, direction: 'ascending' })
const down = (property: string): OrderKey => ({ property, direction: 'descending' })
const orders: readonly (readonly OrderKey[])[] = [
  [],
  [up('text')],
  [down('text')],
  [up('n')],
  [down('n')],
  [up('n'), down('text')],
  [down('flag'), up('n')],
  [down('text'), down('n')],
]

/** Lists in all of these ways, the second page as well. */
async function listAll(store: ResourceStore): Promise<void> {
  for (const [i, where] of conditions.entries()) {
    for (const [j, orderBy] of orders.entries()) {
      for (const owner of [undefined, 'many', 'few']) {
        const scope: Condition[] = owner === undefined ? [] : [{ property: 'owner', operator: 'in', values: [owner] }]
        const query = { index, where: [...where, ...scope], orderBy, count: (i + j) % 2 === 0 }
        const hidden = (i + j) % 5 === 0
        const { next } = await store.list('/things', { query, limit: 20, hidden })
        if (next !== undefined) await store.list('/things', { query, limit: 20, hidden, after: next })
      }
    }
  }
}

describe('the plans of queries', () => {
  it(
    'walk one index each in SQLite, and sort nothing',
    async () => {
      const file = await createDatabaseFile()
      const handle = file.open()
      const seen = new Map<string, unknown[]>()
      const watched: SqliteHandle = {
        exec: (sql) => handle.exec(sql),
        prepare(sql) {
          const statement = handle.prepare(sql)
          if (!sql.includes('_entries AS e')) return statement
          const watch =
            (method: 'get' | 'all' | 'run') =>
            (...values: never[]) => {
              seen.set(sql, values)
              return statement[method](...values)
            }
          return { get: watch('get'), all: watch('all'), run: watch('run') }
        },
      }
      const store = sqliteStore(watched, { sweepInterval: 0 })
      await fill(store)
      await listAll(store)
      expect(seen.size).toBeGreaterThan(100)
      for (const [text, values] of seen) {
        const plan = handle.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...(values as never[])) as { detail: string }[]
        const details = plan.map(({ detail }) => detail)
        const walks = details.filter((detail) => /\be\b/.test(detail))
        expect(walks, text).toEqual([
          expect.stringMatching(/^SEARCH e USING (?:(?:COVERING )?INDEX|PRIMARY KEY) .*\(place=\?/),
        ])
        expect(details.join(), text).not.toMatch(/TEMP B-TREE|AUTOMATIC/)
        // Every bound is one of the index: nothing that the walk passes over is looked at.
        const bounds = text.split(' ORDER BY ')[0]!.split('AS e')[1]!
        for (const column of bounds.match(/\b(?:scope|v\d+)(?= (?:=|<|>))/g) ?? [])
          expect(walks[0], text).toContain(column)
      }
      await store.close?.()
      await file.remove()
    },
    LIMIT,
  )

  it('take one statement for a page in two keys whose first keys are all different', async () => {
    const file = await createDatabaseFile()
    const handle = file.open()
    const texts: string[] = []
    const watched: SqliteHandle = {
      exec: (sql) => handle.exec(sql),
      prepare(sql) {
        const statement = handle.prepare(sql)
        return {
          get: statement.get.bind(statement),
          run: statement.run.bind(statement),
          all(...values) {
            if (sql.includes('_entries AS e')) texts.push(sql)
            return statement.all(...values)
          },
        }
      },
    }
    const store = sqliteStore(watched, { sweepInterval: 0 })
    await fill(store)
    const query = { index, where: [], orderBy: [down('text'), up('n')], count: false }
    const { next } = await store.list('/things', { query, limit: 20 })
    expect(texts.splice(0)).toHaveLength(1)
    await store.list('/things', { query, limit: 20, after: next! })
    // Three for the rest of the group that the cursor names.
    expect(texts).toHaveLength(4)
    await store.close?.()
    await file.remove()
  })

  describe('of Postgres', () => {
    let server: PostgresServer
    beforeAll(async () => {
      server = await startPostgres()
    }, LIMIT)
    afterAll(() => server.stop())

    it(
      'walk one index each, and neither sort nor filter',
      async () => {
        const pool = server.createPool({ max: 4 })
        const seen = new Map<string, Statement>()
        const settings: string[] = []
        const store = postgresStore({
          pool: interceptQueries(pool, ({ text, values = [] }, send) => {
            if (text.startsWith('SELECT') && text.includes('_entries AS e')) seen.set(text, { text, values })
            if (text.includes('REPEATABLE READ')) settings[0] = text
            return send()
          }),
          tablePrefix: `p${randomBytes(4).toString('hex')}_`,
          sweepInterval: 0,
        })
        await fill(store)
        await listAll(store)
        expect(seen.size).toBeGreaterThan(100)
        const client = await pool.connect()
        onTestFinished(() => client.release(true))
        await client.query(settings[0]!)
        for (const { text, values } of seen.values()) {
          const { rows } = await client.query(`EXPLAIN (FORMAT JSON) ${text}`, values)
          const nodes = listNodes(rows[0]['QUERY PLAN'][0].Plan)
          const walks = nodes.filter((node) => node['Relation Name'] !== undefined)
          expect(walks, text).toHaveLength(1)
          expect(walks[0]!['Node Type'], text).toMatch(/^Index (?:Only )?Scan$/)
          expect(walks[0]!['Index Cond'], text).toMatch(/place = /)
          expect(walks[0]!['Filter'], text).toBeUndefined()
          expect(nodes.map((node) => node['Node Type']).join(), text).not.toMatch(/Sort|Seq|Bitmap|Hash/)
        }
        await store.close?.()
      },
      LIMIT,
    )
  })
})

type PlanNode = Record<string, string> & { readonly Plans?: readonly PlanNode[] }

function listNodes(node: PlanNode): readonly PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(listNodes)]
}
