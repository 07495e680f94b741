/** What is read: states, pages of a collection, and pages by a query. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { isPromise, type MaybePromise } from '../../core/maybe-promise.ts'
import type { ForwardClock } from '../../core/time.ts'
import type { ListOptions, Page } from '../lists.ts'
import { throwIfAborted } from '../rules.ts'
import type { QueryDialect, SqlParts } from '../sql/dialect.ts'
import { preparePage, type SelectedPage } from '../sql/queries/page.ts'
import { FURTHER_WINDOW } from '../sql/queries/selection.ts'
import {
  type Answer,
  readAnswer,
  type Steps,
  type WindowRequest,
  writeMatch,
  writeWindow,
} from '../sql/queries/window.ts'
import {
  escapeText,
  formatSortKey,
  HIDDEN,
  LIVE,
  memberKeyOf,
  type OpenContent,
  type RowHead,
  type StateRow,
  toPage,
  toResource,
  toState,
  unescapeText,
} from '../sql/rows.ts'
import type { Abortable, ReadOptions, StoredResource, StoredState } from '../types.ts'
import type { SqliteConnection } from './connection.ts'
import type { SqliteStatement, SqliteValue } from './handle.ts'
import type { SqliteIndexes } from './indexes.ts'
import type { KnownState, KnownStates } from './row-writes.ts'
import { FACTS_AND_CONTENT, type SqliteStatements } from './statements.ts'

export interface SqliteStates {
  /** As the store's own: waits, without blocking the process, while another process writes. */
  read(path: string, options?: ReadOptions): MaybePromise<StoredState>
  /** A page without a query, likewise. */
  list(collection: string, options: ListOptions): MaybePromise<Page>
  /** The state that a reader finds who sees nothing hidden. */
  find(path: string): StoredState
  readHead(path: string): RowHead | undefined
  /** The resource of a row; the object that is known, where it has the same version. */
  toMember(row: StateRow): StoredResource
}

const WHOLE: ReadOptions = {}

export function createSqliteStates(
  connection: SqliteConnection,
  statements: SqliteStatements,
  clock: Pick<ForwardClock, 'now'>,
  open: OpenContent,
  known: KnownStates,
): SqliteStates {
  /** A state that is known and still there. */
  function recall(path: string): KnownState | undefined {
    const state = known.find(path)
    if (state === undefined) return undefined
    const row = statements.readVersion.get(state.path) as [string] | { readonly version: string } | undefined
    const version = Array.isArray(row) ? row[0] : row?.version
    return version === state.version ? state : undefined
  }

  function find(path: string, options: ReadOptions = WHOLE): StoredState {
    const state = recall(path)
    if (state !== undefined) return state.resource
    const isWhole = options.metadataOnly !== true
    const row = (isWhole ? statements.readState : statements.readFacts).get(escapeText(path)) as StateRow | undefined
    const found = toState(row, options, clock.now(), open)
    if (isWhole && row?.state === LIVE) known.offer(row, found as StoredResource)
    return found
  }

  function readPage(collection: string, { after, limit, hidden = false }: ListOptions): Page {
    const place = [escapeText(collection), after === undefined ? '' : escapeText(formatSortKey(after))] as const
    const range = [...place, limit + 1] as const
    if (hidden) return toPage(statements.listAll.all(...range, ...range, limit + 1) as StateRow[], limit, toMember)
    const key = range.join(' ')
    const knownPage = known.findPage(key)
    if (knownPage !== undefined) {
      const current = statements.listVersions.get(...range) as { versions: string | null }
      if (current.versions === knownPage.versions) return knownPage.page
    }
    const rows = statements.listLive.all(...range) as StateRow[]
    const page = toPage(rows, limit, toMember)
    known.offerPage(key, rows, page)
    return page
  }

  function toMember(row: StateRow): StoredResource {
    return known.resourceOf(unescapeText(row.path), row.version) ?? toResource(row, open)
  }

  return {
    read: (path, options) => connection.attempt(() => find(path, options)),
    list: (collection, options) => connection.attempt(() => readPage(collection, options)),
    find: (path) => find(path),
    toMember,
    readHead: (path) => recall(path) ?? (statements.readHead.get(escapeText(path)) as RowHead | undefined),
  }
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
  indexes: SqliteIndexes,
  toMember: SqliteStates['toMember'],
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

  function runWindow(request: WindowRequest): Answer {
    const { text, values } = writeWindow(request.window, request.kind, dialect)
    return readAnswer(request, prepare(text).all(...(values as SqliteValue[])) as Record<string, unknown>[])
  }

  /**
   * Runs steps at once; when they take longer, with turns of the event loop between them.
   * @param last the answer to the step before; the first step takes none
   */
  function runSteps<Result>(steps: Steps<Result>, call: Abortable, last: Answer = 0): MaybePromise<Result> {
    const end = performance.now() + LONGEST_TURN
    for (let step = steps.next(last); ; ) {
      if (step.done) return step.value
      const request = step.value
      const answer = connection.attempt(() => runWindow(request))
      if (isPromise(answer) || performance.now() > end) return runStepsLater(steps, call, answer)
      step = steps.next(answer)
    }
  }

  async function runStepsLater<Result>(
    steps: Steps<Result>,
    call: Abortable,
    last: MaybePromise<Answer>,
  ): Promise<Result> {
    const answer = await last
    await nextTurn()
    throwIfAborted(call)
    return runSteps(steps, call, answer)
  }

  /** The members that were found, as they are now, without those that do not match any more. */
  function readMembers(collection: string, { range, found }: SelectedPage): readonly StoredResource[] {
    if (range === undefined) return []
    const filters = [...range.filters.values()]
    const rows = found.map(({ place, sortKey }) => {
      const match = writeMatch({ place, scope: range.scope, filters }, sortKey, dialect)
      const text = `SELECT ${FACTS_AND_CONTENT} FROM ${prefix}states WHERE path = ? AND state = ? AND EXISTS (${match.text})`
      const values = [memberKeyOf(collection, sortKey), place > 0 ? LIVE : HIDDEN, ...match.values]
      return prepare(text).get(...(values as SqliteValue[])) as StateRow | undefined
    })
    return rows.filter((row) => row !== undefined).map(toMember)
  }

  return (collection, options, query) => {
    throwIfAborted(options)
    const read = preparePage(query, options, COUNT_STEPS)
    return connection.attempt(() =>
      read({
        findPlace: () => indexes.find(collection, query.index),
        run: (steps) => runSteps(steps, options),
        readMembers: (page) => connection.attempt(() => readMembers(collection, page)),
      }),
    )
  }
}
