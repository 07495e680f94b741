import { HttpError } from '../../core/errors.ts'
import type { ListQuery } from '../index-types.ts'
import { memberKeyOf } from '../sql/names.ts'
import type { Indexer } from '../sql/queries/indexer.ts'
import { planPage, type SelectedPage } from '../sql/queries/page.ts'
import type { Found, Steps, WindowRequest } from '../sql/queries/steps.ts'
import { edgeColumns, type QueryDialect, type WindowValue, writeWindow } from '../sql/queries/window.ts'
import { type StateRow, toBytes, toResource } from '../sql/rows.ts'
import type { LargeBody, ListOptions, Page, StoredResource } from '../types.ts'
import { CONTENT, FACTS } from './columns.ts'
import { type PostgresConnection, type PostgresValue, type RunStatement, unnamed } from './connection.ts'
import type { PostgresIndexes } from './indexes.ts'

export interface PostgresQueries {
  list(collection: string, options: ListOptions, query: ListQuery): Promise<Page>
}

export interface PostgresQueriesOptions {
  readonly prefix: string
  readonly indexes: PostgresIndexes
  readonly indexer: Indexer
  readonly open: (id: number | string, size: number) => LargeBody
}

/** Rows that one statement counts: it does not keep this process waiting. */
const COUNT_STEPS = { inIndex: 10_000_000, byEntry: 1_000_000 }
const TYPES = { key: 'bytea', name: 'bytea', number: 'integer' }

export function createPostgresQueries(
  connection: PostgresConnection,
  { prefix, indexes, indexer, open }: PostgresQueriesOptions,
): PostgresQueries {
  const dialect: QueryDialect = {
    entries: `${prefix}entries`,
    useIndex: () => '',
    placeholder: (position, type) => `$${position}::${TYPES[type]}`,
    readKey: (column) => `encode(${column}, 'base64') AS ${column}`,
    readName: (column) => `convert_from(${column}, 'UTF8') AS ${column}`,
  }

  async function runWindow(run: RunStatement, { kind, window }: WindowRequest): Promise<readonly Found[] | number> {
    const { text, values } = writeWindow(window, kind, dialect)
    const rows = await run<Record<string, unknown>>(unnamed(text), values.map(toParameter))
    if (kind === 'count') return rows[0]!['n'] as number
    const columns = kind === 'rows' ? window.columns : edgeColumns(window)
    return rows.map((row) => ({
      keys: columns.map((slot) => toBytes(row[`v${slot}`])),
      sortKey: row['sort_key'] as string,
    }))
  }

  async function runSteps<Result>(run: RunStatement, steps: Steps<Result>, signal?: AbortSignal): Promise<Result> {
    for (let step = steps.next(); ; ) {
      if (step.done) return step.value
      signal?.throwIfAborted()
      step = steps.next(await runWindow(run, step.value))
    }
  }

  async function readMembers(
    run: RunStatement,
    collection: string,
    { found }: SelectedPage,
  ): Promise<readonly StoredResource[]> {
    if (found.length === 0) return []
    const paths = found.map(({ sortKey }) => memberKeyOf(collection, sortKey))
    const places = paths.map((_, i) => `$${i + 1}::bytea`).join(', ')
    const rows = await run<StateRow>(
      unnamed(`SELECT ${FACTS}, ${CONTENT} FROM ${prefix}states WHERE path IN (${places})`),
      paths.map((path) => Buffer.from(path)),
    )
    const byPath = new Map(rows.map((row) => [row.path, row]))
    return paths.map((path) => toResource(byPath.get(path)!, open))
  }

  function select(
    collection: string,
    { after, limit, hidden = false, signal }: ListOptions,
    query: ListQuery,
  ): Promise<Page | 'incomplete'> {
    const steps = planPage({ query, after, limit, hidden }, COUNT_STEPS)
    return connection.view(async (run) => {
      const place = await indexes.find(run, collection, query.index)
      if (place === undefined) return query.count ? { items: [], total: 0 } : { items: [] }
      if (place === 'unknown' || !place.isComplete) return 'incomplete'
      const page = await runSteps(run, steps(place.id), signal)
      return {
        items: await readMembers(run, collection, page),
        ...(page.next === undefined ? {} : { next: page.next }),
        ...(page.total === undefined ? {} : { total: page.total }),
      }
    }, signal)
  }

  return {
    async list(collection, options, query) {
      const page = await select(collection, options, query)
      if (page !== 'incomplete') return page
      await indexer.run(collection, query.index)
      const again = await select(collection, options, query)
      if (again !== 'incomplete') return again
      throw new HttpError(503, 'ERR_UNAVAILABLE', {
        detail: 'The items of this collection are being indexed.',
        headers: { 'Retry-After': '1' },
      })
    },
  }
}

function toParameter(value: WindowValue): PostgresValue {
  return typeof value === 'string' ? Buffer.from(value) : value
}
