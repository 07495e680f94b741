import { setImmediate as nextTurn } from 'node:timers/promises'
import { isPromise, type MaybePromise } from '../../core/maybe-promise.ts'
import type { KnownStates } from '../recent-cache.ts'
import type { QueryDialect, SqlParts } from '../sql/dialect.ts'
import { type FoundMember, preparePage, type SelectedPage } from '../sql/queries/page.ts'
import { FURTHER_WINDOW } from '../sql/queries/selection.ts'
import {
  type Found,
  readAnswer,
  type Steps,
  type WindowRequest,
  writeMatch,
  writeWindow,
} from '../sql/queries/window.ts'
import {
  decodeText,
  FACTS_AND_CONTENT,
  HIDDEN,
  LIVE,
  memberKeyOf,
  type OpenContent,
  type StateRow,
  toResource,
} from '../sql/rows.ts'
import { type Abortable, type StoredResource, throwIfAborted } from '../types.ts'
import type { SqliteConnection } from './connection.ts'
import type { SqliteStatement, SqliteValue } from './handle.ts'
import type { SqliteIndexes } from './indexes.ts'

export interface SqliteQueriesOptions {
  readonly indexes: SqliteIndexes
  readonly known: KnownStates
  readonly open: OpenContent
}

/** Statements that are kept prepared: their texts differ by slots and kinds of conditions. */
const MOST_STATEMENTS = 200
/** Milliseconds after which the steps of a list let other requests in between. */
const LONGEST_TURN = 10
/** Rows that one statement counts: some milliseconds. */
const COUNT_STEPS = { inIndex: 50_000, byEntry: FURTHER_WINDOW }

export function createSqliteQueries(
  connection: SqliteConnection,
  prefix: string,
  { indexes, known, open }: SqliteQueriesOptions,
): SqlParts['select'] {
  const dialect: QueryDialect = {
    entries: `${prefix}entries`,
    useIndex: (name) => ` INDEXED BY ${name}`,
    placeholder: () => '?',
    readKey: (column) => column,
    readName: (column) => column,
  }
  const statements = new Map<string, SqliteStatement>()

  function prepare(text: string): SqliteStatement {
    const statement = statements.get(text) ?? connection.handle.prepare(text)
    // The one that was used last goes last.
    statements.delete(text)
    statements.set(text, statement)
    if (statements.size > MOST_STATEMENTS) statements.delete(statements.keys().next().value!)
    return statement
  }

  function runWindow(request: WindowRequest): readonly Found[] | number {
    const { text, values } = writeWindow(request.window, request.kind, dialect)
    return readAnswer(request, prepare(text).all(...(values as SqliteValue[])) as Record<string, unknown>[])
  }

  /** Runs steps at once; when they take longer, with turns of the event loop between them. */
  function runSteps<Result>(steps: Steps<Result>, call: Abortable): MaybePromise<Result> {
    const end = performance.now() + LONGEST_TURN
    for (let step = steps.next(); ; ) {
      if (step.done) return step.value
      const request = step.value
      const answer = connection.attempt(() => runWindow(request))
      if (isPromise(answer) || performance.now() > end) return runLongSteps(steps, answer, call)
      step = steps.next(answer)
    }
  }

  async function runLongSteps<Result>(
    steps: Steps<Result>,
    first: MaybePromise<readonly Found[] | number>,
    call: Abortable,
  ): Promise<Result> {
    for (let step = steps.next(await first); ; ) {
      if (step.done) return step.value
      const request = step.value
      await nextTurn()
      throwIfAborted(call)
      step = steps.next(await connection.attempt(() => runWindow(request)))
    }
  }

  /** The members that were found, as they are now, without those that do not match any more. */
  function readMembers(collection: string, { range, found }: SelectedPage): readonly StoredResource[] {
    return found.flatMap((member) => {
      const row = readMember(collection, member, range!)
      return row === undefined ? [] : [known.resourceOf(decodeText(row.path), row.version) ?? toResource(row, open)]
    })
  }

  function readMember(
    collection: string,
    { place, sortKey }: FoundMember,
    { scope, filters }: NonNullable<SelectedPage['range']>,
  ): StateRow | undefined {
    const match = writeMatch({ place, scope, filters: [...filters.values()] }, sortKey, dialect)
    const text = `SELECT ${FACTS_AND_CONTENT} FROM ${prefix}states WHERE path = ? AND state = ? AND EXISTS (${match.text})`
    const state = place > 0 ? LIVE : HIDDEN
    return prepare(text).get(memberKeyOf(collection, sortKey), state, ...(match.values as SqliteValue[])) as
      | StateRow
      | undefined
  }

  return (collection, options, query) => {
    throwIfAborted(options)
    const readPage = preparePage(query, options, COUNT_STEPS)
    return connection.attempt(() =>
      readPage({
        findPlace: () => indexes.find(collection, query.index),
        run: (steps) => runSteps(steps, options),
        readMembers: (page) => connection.attempt(() => readMembers(collection, page)),
      }),
    )
  }
}
