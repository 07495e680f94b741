import { throwIfAborted } from '../rules.ts'
import type { QueryDialect, SqlParts } from '../sql/dialect.ts'
import { preparePage, type SelectedPage } from '../sql/queries/page.ts'
import { type Answer, readAnswer, type Steps, type WindowRequest, writeWindow } from '../sql/queries/window.ts'
import { memberKeyOf, type OpenContent, type StateRow, toResource } from '../sql/rows.ts'
import type { Abortable, StoredResource } from '../types.ts'
import type { PostgresConnection, RunStatement } from './connection.ts'
import type { PostgresIndexes } from './indexes.ts'
import { CONTENT, FACTS } from './write-statements.ts'

/** Rows that one statement counts: it does not keep this process waiting. */
const COUNT_STEPS = { inIndex: 10_000_000, byEntry: 1_000_000 }
/** Members that one statement reads: it takes 65,535 values at most. */
const MOST_READ = 10_000
const TYPES = { key: 'bytea', name: 'bytea', number: 'integer' }

export function createPostgresQueries(
  connection: PostgresConnection,
  prefix: string,
  indexes: PostgresIndexes,
  open: OpenContent,
): SqlParts['select'] {
  const dialect: QueryDialect = {
    entries: `${prefix}entries`,
    useIndex: () => '',
    placeholder: (position, type) => `$${position}::${TYPES[type]}`,
    readKey: (column) => `encode(${column}, 'base64') AS ${column}`,
    readName: (column) => `convert_from(${column}, 'UTF8') AS ${column}`,
  }

  async function runWindow(run: RunStatement, request: WindowRequest): Promise<Answer> {
    const { text, values } = writeWindow(request.window, request.kind, dialect)
    const parameters = values.map((value) => (typeof value === 'string' ? Buffer.from(value) : value))
    return readAnswer(request, await run<Record<string, unknown>>(text, parameters))
  }

  async function runSteps<Result>(run: RunStatement, steps: Steps<Result>, call: Abortable): Promise<Result> {
    for (let step = steps.next(); ; ) {
      if (step.done) return step.value
      throwIfAborted(call)
      step = steps.next(await runWindow(run, step.value))
    }
  }

  async function readMembers(run: RunStatement, collection: string, page: SelectedPage): Promise<StoredResource[]> {
    const { found } = page
    if (found.length === 0) return []
    const paths = found.map(({ sortKey }) => memberKeyOf(collection, sortKey))
    const byPath = new Map<string, StateRow>()
    for (let at = 0; at < paths.length; at += MOST_READ) {
      const keys = paths.slice(at, at + MOST_READ).map((path) => Buffer.from(path))
      const places = keys.map((_, i) => `$${i + 1}::bytea`).join(', ')
      const text = `SELECT ${FACTS}, ${CONTENT} FROM ${prefix}states WHERE path IN (${places})`
      for (const row of await run<StateRow>(text, keys)) byPath.set(row.path, row)
    }
    return paths.map((path) => toResource(byPath.get(path)!, open))
  }

  return (collection, options, query) => {
    const read = preparePage(query, options, COUNT_STEPS)
    return connection.view(
      async (run) =>
        read({
          findPlace: () => indexes.find(run, collection, query.index),
          run: (steps) => runSteps(run, steps, options),
          readMembers: (page) => readMembers(run, collection, page),
        }),
      options,
    )
  }
}
