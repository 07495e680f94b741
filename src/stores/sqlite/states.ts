import type { MaybePromise } from '../../core/maybe-promise.ts'
import type { ListOptions, Page } from '../lists.ts'
import type { StoreClock } from '../new-state.ts'
import type { KnownState, KnownStates } from '../recent-cache.ts'
import {
  decodeText,
  encodeText,
  formatSortKey,
  LIVE,
  type OpenContent,
  type RowHead,
  type Shown,
  type StateRow,
  toPage,
  toResource,
  toState,
} from '../sql/rows.ts'
import type { ReadOptions, StoredResource, StoredState } from '../types.ts'
import type { SqliteConnection } from './connection.ts'
import type { SqliteStatements } from './statements.ts'

/** The rows of the paths, as they are read. */
export interface SqliteStates {
  /** As the store's own: waits, without blocking the process, while another process writes. */
  read(path: string, options?: ReadOptions): MaybePromise<StoredState>
  /** A page without a query, likewise. */
  list(collection: string, options: ListOptions): MaybePromise<Page>
  /** The state that a reader finds. With `without-content` its body may be empty. */
  find(path: string, hidden: Shown, content?: 'with-content' | 'without-content'): StoredState
  readHead(path: string): RowHead | undefined
}

export interface SqliteStatesOptions {
  readonly open: OpenContent
  readonly known: KnownStates
  readonly clock: Pick<StoreClock, 'now'>
}

export function createSqliteStates(
  connection: SqliteConnection,
  statements: SqliteStatements,
  { open, known, clock }: SqliteStatesOptions,
): SqliteStates {
  /** A state that is known and still there. */
  function recall(path: string): KnownState | undefined {
    const state = known.find(path)
    if (state === undefined) return undefined
    const row = statements.readVersion.get(state.path) as [string] | { readonly version: string } | undefined
    const version = Array.isArray(row) ? row[0] : row?.version
    return version === state.version ? state : undefined
  }

  function find(path: string, hidden: Shown, content = 'with-content'): StoredState {
    const state = recall(path)
    if (state !== undefined) return state.resource
    const isWhole = content === 'with-content'
    const row = (isWhole ? statements.readState : statements.readFacts).get(encodeText(path)) as StateRow | undefined
    const found = toState(row, hidden, clock.now(), open)
    if (isWhole && row?.state === LIVE) known.offer(row, found as StoredResource)
    return found
  }

  function readPage(collection: string, { after, limit, hidden = false }: ListOptions): Page {
    const place = [encodeText(collection), after === undefined ? '' : encodeText(formatSortKey(after))] as const
    const range = [...place, limit + 1] as const
    if (hidden) return toPage(statements.listAll.all(...range, ...range, limit + 1) as StateRow[], limit, toMember)
    const key = `${limit} ${place[0].length} ${place[0]}${place[1]}`
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
    return known.resourceOf(decodeText(row.path), row.version) ?? toResource(row, open)
  }

  return {
    read(path, { hidden = false, metadataOnly = false } = {}) {
      const shown = hidden ? 'shown' : 'not-shown'
      const content = metadataOnly ? 'without-content' : 'with-content'
      // As `connection.attempt`, without a function for each read.
      try {
        if (connection.isLeftOpen) connection.leaveTransaction()
        return find(path, shown, content)
      } catch (error) {
        return connection.attemptAgain(error, () => find(path, shown, content))
      }
    },

    list: (collection, options) => connection.attempt(() => readPage(collection, options)),
    find,
    readHead: (path) => recall(path) ?? (statements.readHead.get(encodeText(path)) as RowHead | undefined),
  }
}
